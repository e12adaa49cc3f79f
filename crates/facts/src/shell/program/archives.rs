//! Archives, compression and encryption.

use super::Value::{Assign, Code, Config, Directory, Flag, List, Opaque, Pattern, Read, Text, Write};
use super::{Program, program};

pub(super) static TABLE: &[Program] = &[
    program(&["tar", "bsdtar"], Read).options(&[
        // The mode, which is looked at apart, says whether the archive is read or written.
        (super::Value::Remote, "-f file"),
        (Text, "-bHLKNV blocking-factor format tape-length starting-file newer label volume record-size strip-components mode"),
        (Text, "owner group mtime sort level num occurrence? newer-mtime after-date warning quoting-style index-number"),
        (Pattern, "exclude transform xform exclude-tag exclude-tag-all exclude-tag-under pax-option"),
        (Assign, "set-mtime-command-env"),
        (Directory, "-C directory cd"),
        (List, "-TX files-from exclude-from"),
        (Write, "-g listed-incremental index-file volno-file"),
        (Read, "add-file"),
        (Code, "-IF use-compress-program info-script new-volume-script to-command rmt-command rsh-command set-mtime-command"),
        (Pattern, "checkpoint"),
        (Opaque, "checkpoint-action options"),
        (Flag, "-AcdrtuxaBGhiJjklmMnoOpPRsSUvwWzZ catenate concatenate create diff compare delete append list test-label update extract get"),
        (Flag, "auto-compress bzip2 xz lzip lzma lzop gzip gunzip ungzip zstd compress uncompress no-auto-compress keep-old-files"),
        (Flag, "keep-newer-files overwrite overwrite-dir unlink-first recursive-unlink remove-files skip-old-files keep-directory-symlink"),
        (Flag, "no-overwrite-dir one-top-level? ignore-zeros read-full-records multi-volume verify sparse to-stdout same-order"),
        (Flag, "preserve-order preserve-permissions same-permissions same-owner no-same-owner no-same-permissions numeric-owner"),
        (Flag, "touch atime-preserve? dereference hard-dereference check-links one-file-system absolute-names? no-recursion recursion"),
        (Flag, "null no-null verbatim-files-from no-verbatim-files-from exclude-vcs exclude-backups exclude-caches exclude-vcs-ignores"),
        (Flag, "wildcards no-wildcards anchored no-anchored ignore-case backup? suffix? totals? verbose block-number full-time utc"),
        (Flag, "show-defaults show-omitted-dirs show-transformed-names interactive confirmation force-local posix old-archive selinux"),
        (Flag, "acls xattrs no-acls no-xattrs no-selinux delay-directory-restore no-delay-directory-restore ignore-failed-read"),
        (Flag, "ignore-command-error no-ignore-command-error seek no-seek no-check-device check-device hole-detection? version help"),
    ]),
    program(&["zip"], Read).first(&[Write], &[]).options(&[
        (Text, "-nst suffixes"),
        (Pattern, "-xi exclude include"),
        (Text, "-P password compression-method split-size"),
        (Write, "-bO temp-path output-file logfile-path"),
        (Code, "unzip-command TT"),
        (Flag, "-0123456789ADFGJLRSTUXcdefghjklmoqruvwyz@ recurse-paths quiet update delete freshen move junk-paths test encrypt"),
        (Flag, "no-extra symlinks verbose filesync copy-entries grow fix fixfix adjust-sfx help version log-append log-info"),
    ]).single_dash(),
    program(&["unzip", "zipinfo"], Pattern).first(&[Read], &[]).options(&[
        (Write, "-d"),
        (Text, "-PIO"),
        (Pattern, "-x"),
        (Flag, "-ZAabBcCDfFhjKlLMnopqStTuUvVWX:z12s^"),
    ]),
    program(&["gzip", "pigz", "bzip2", "pbzip2", "xz", "lzma", "zstd", "lz4", "lzop", "brotli", "compress"], Write).options(&[
        (Text, "-STbMp suffix threads memlimit processes blocksize format check lzma1 lzma2 filters"),
        (Write, "-oD output output-dir-flat"),
        (List, "filelist files"),
        (Flag, "-cdfhklLnNqrtvVzZHJRmiKeF0123456789 stdout to-stdout decompress uncompress force keep list license no-name name quiet recursive rm"),
        (Flag, "rsyncable? synchronous test verbose fast best extreme fast? compress single-stream no-sparse ultra long? help version"),
    ]),
    program(&["gunzip", "bunzip2", "unxz", "unlzma", "unzstd", "unpigz", "unlz4", "uncompress"], Write).options(&[
        (Text, "-STM suffix threads memlimit"),
        (Write, "-o"),
        (Flag, "-cdfhklLnNqrtvV stdout to-stdout force keep list quiet recursive test verbose help version rm"),
    ]),
    program(&["7z", "7za", "7zr", "p7zip", "unrar", "rar", "unar", "lsar", "cpio", "pax", "dpkg-deb", "rpm2cpio"], Write)
        .opaque().lenient(),
    program(&["gpg", "gpg2"], Read).options(&[
        (Text, "-ruNz recipient local-user default-key passphrase compress-level cipher-algo digest-algo compress-algo passphrase-fd status-fd"),
        (Text, "batch-size pinentry-mode trust-model s2k-mode command-fd set-filename display-charset logger-fd hidden-recipient"),
        (Write, "-o output homedir keyring secret-keyring status-file logger-file log-file attribute-file"),
        (Read, "passphrase-file recipient-file command-file"),
        (super::Value::Url, "keyserver"),
        (Code, "photo-viewer agent-program dirmngr-program gpg-agent-program exec-path"),
        (Config, "options load-extension"),
        (Flag, "-sbcedakKvqnAt sign clear-sign clearsign detach-sign encrypt symmetric store decrypt verify list-keys list-secret-keys"),
        (Flag, "list-public-keys fingerprint armor textmode batch yes no quiet verbose dry-run export export-secret-keys import"),
        (Flag, "list-packets print-md gen-key full-generate-key quick-generate-key with-colons no-tty always-trust version help"),
    ]),
    program(&["openssl"], Text).subcommands(),
    program(
        &[
            "openssl enc", "openssl base64", "openssl dgst", "openssl rand", "openssl x509", "openssl req", "openssl rsa",
            "openssl genrsa", "openssl genpkey", "openssl pkey", "openssl pkcs12", "openssl ec", "openssl ecparam",
            "openssl aes-256-cbc", "openssl passwd", "openssl verify", "openssl sha256", "openssl md5", "openssl asn1parse",
            "openssl rsautl", "openssl pkeyutl", "openssl ca", "openssl cms", "openssl smime", "openssl crl", "openssl prime",
            "openssl version", "openssl ciphers", "openssl s_client",
        ],
        Read,
    )
    .single_dash()
    .options(&[
        (Read, "in inkey key CA CAkey CAfile CApath cert certfile kfile rand sigfile extfile peerform keyfile file signature CAserial chainCAfile"),
        (Write, "out keyout writerand sess_out keylogfile outdir CAserial-out noout-file keylog msgfile"),
        (super::Value::Host, "connect proxy host starttls-host servername-connect"),
        (Config, "config engine provider provider-path propquery startdate-config"),
        (Text, "passin passout pass k K iv S md days subj newkey inform outform keyform alias name curve pkeyopt algorithm servername"),
        (Text, "starttls port crlf verify_return verify alpn nbio addext extensions reqexts set_serial sigopt macopt bits iter bufsize"),
        (Flag, "-hex"),
        (Flag, "e d a A base64 salt nosalt none p P z pbkdf2 debug v help text noout nodes new x509 pubin pubout modulus check hex binary"),
        (Flag, "sha1 sha224 sha256 sha384 sha512 md5 r c sign-c nokeys clcerts cacerts export des3 aes128 aes256 traditional param_enc"),
        (Flag, "genkey fingerprint serial subject issuer dates enddate startdate pubkey purpose ocsp_uri email hash batch utf8 6 1 5 apr1"),
        (Flag, "showcerts quiet ign_eof tls1_2 tls1_3 brief aes-256-cbc aes-128-cbc aes-256-gcm des-ede3-cbc checkend decrypt encrypt"),
    ]),
];
