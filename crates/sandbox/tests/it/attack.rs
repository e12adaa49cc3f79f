//! Attempts of a program inside the sandbox to get out of it. Each prints whether it worked; none does harm if it does.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

/// Targets of the attempts, as words of a command.
pub(crate) struct Targets {
    pub(crate) outside: PathBuf,
    pub(crate) hidden: PathBuf,
    pub(crate) tcp: u16,
    pub(crate) udp: u16,
    /// Process of the same user, outside.
    pub(crate) victim: u32,
    /// Terminal of the same user.
    pub(crate) terminal: String,
    /// Shared memory segment of the same user.
    pub(crate) segment: i64,
}

impl Targets {
    pub(crate) fn to_words(&self) -> String {
        let Self { outside, hidden, tcp, udp, victim, terminal, segment } = self;
        format!("{} {} {tcp} {udp} {victim} {terminal} {segment}", outside.display(), hidden.display())
    }

    pub(crate) fn from_words(words: &[&str]) -> Self {
        let [outside, hidden, tcp, udp, victim, terminal, segment] = *words else {
            panic!("seven words, not {words:?}");
        };
        Self {
            outside: outside.into(),
            hidden: hidden.into(),
            tcp: tcp.parse().unwrap(),
            udp: udp.parse().unwrap(),
            victim: victim.parse().unwrap(),
            terminal: terminal.to_owned(),
            segment: segment.parse().unwrap(),
        }
    }

    /// Tries everything that a protection should stop, and prints what worked.
    pub(crate) fn attack(&self) {
        self.write();
        self.change_metadata();
        self.read_hidden();
        self.reach_processes();
        self.reach_network();
        Self::use_kernel();
        report("inside", std::fs::write("own", "x").is_ok());
        // Last, because the kernel ends a program that goes too far.
        let large = File::create("large").and_then(|mut file| {
            file.seek(SeekFrom::Start(8 << 20))?;
            file.write_all(b"x")
        });
        report("file-size", large.is_ok());
    }

    fn write(&self) {
        let outside = &self.outside;
        let file = outside.join("file");
        report("write", can_write(&file));
        report("append", OpenOptions::new().append(true).open(&file).is_ok());
        report("truncate", OpenOptions::new().write(true).truncate(true).open(&file).is_ok());
        // Without waiting for a reader, should there be none.
        let pipe = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(outside.join("pipe"));
        report("pipe", pipe.is_ok());
        report("create", File::create(outside.join("created")).is_ok());
        report("folder", std::fs::create_dir(outside.join("folder")).is_ok());
        report("link-outside", symlink("file", outside.join("link")).is_ok());
        report("rename", std::fs::rename(outside.join("spare"), outside.join("renamed")).is_ok());
        report("fetch", std::fs::rename(outside.join("other"), "fetched").is_ok());
        report("remove", std::fs::remove_file(outside.join("doomed")).is_ok());
        let _ = symlink(&file, "through");
        report("symlink", can_write(Path::new("through")));
        report("hardlink", std::fs::hard_link(&file, "hard").is_ok());
        report("own-file-by-proc", can_write(Path::new(&format!("/proc/self/root{}", file.display()))));
        report("sysctl", can_write(Path::new("/proc/sys/kernel/core_pattern")));
        report("cgroup", can_write(Path::new("/sys/fs/cgroup/cgroup.procs")));
        report("disk", block_devices().iter().any(|disk| can_write(disk)));
        report("kernel-log", can_write(Path::new("/dev/kmsg")));
        let terminal = OpenOptions::new().write(true).open(&self.terminal);
        report("terminal", terminal.is_ok());
        report("terminal-input", terminal.is_ok_and(|terminal| types_into(&terminal)));
    }

    fn change_metadata(&self) {
        let file = self.outside.join("file");
        let mode = || Permissions::from_mode(0o600);
        report("chmod", std::fs::set_permissions(&file, mode()).is_ok());
        let owner = Some(rustix::process::getuid().as_raw());
        report("chown", chown(&file, owner, None).is_ok());
        report("lchown", std::os::unix::fs::lchown(&file, owner, None).is_ok());
        let open = File::open(&file);
        report("fchmod", open.as_ref().is_ok_and(|file| file.set_permissions(mode()).is_ok()));
        report(
            "fchown",
            open.as_ref().is_ok_and(|file| std::os::unix::fs::fchown(file, owner, None).is_ok()),
        );
        report(
            "utime",
            rustix::fs::utimensat(rustix::fs::CWD, &file, &now(), rustix::fs::AtFlags::empty()).is_ok(),
        );
        let flags = rustix::fs::XattrFlags::empty();
        report("xattr", rustix::fs::setxattr(&file, "user.x", b"x", flags).is_ok());
        report(
            "fxattr",
            open.as_ref().is_ok_and(|file| rustix::fs::fsetxattr(file, "user.y", b"x", flags).is_ok()),
        );
        report("remove-xattr", rustix::fs::removexattr(&file, "user.kept").is_ok());
        report("file-flags", open.is_ok_and(|file| keeps_flags(&file)));
    }

    fn read_hidden(&self) {
        let hidden = &self.hidden;
        let secret = hidden.join("secret");
        report("hidden-read", can_read(&secret));
        report("hidden-list", std::fs::read_dir(hidden).is_ok_and(|mut entries| entries.next().is_some()));
        report("hidden-socket", UnixStream::connect(hidden.join("socket")).is_ok());
        report("hidden-datagram", sends_to(&hidden.join("datagram")));
        let _ = symlink(&secret, "to-secret");
        report("hidden-symlink", can_read(Path::new("to-secret")));
        report("hidden-hardlink", std::fs::hard_link(&secret, "linked-secret").is_ok());
        let victim = format!("/proc/{}", self.victim);
        for (name, base) in [("victim", victim.as_str()), ("self", "/proc/self"), ("first", "/proc/1")] {
            report(
                &format!("hidden-root-{name}"),
                can_read(Path::new(&format!("{base}/root{}", secret.display()))),
            );
        }
        report("hidden-cwd", can_read(Path::new(&format!("{victim}/cwd/secret"))));
        report("hidden-descriptor", can_read(Path::new(&format!("{victim}/fd/0"))));
        report("hidden-rename", std::fs::rename(hidden, self.outside.join("seen")).is_ok());
        report("hidden-disk", block_devices().iter().any(|disk| can_read(disk)));
    }

    fn reach_processes(&self) {
        let parent = rustix::process::Pid::as_raw(rustix::process::getppid());
        for (name, pid) in [("victim", i64::from(self.victim)), ("supervisor", i64::from(parent))] {
            let proc = format!("/proc/{pid}");
            report(&format!("{name}-environ"), can_read(Path::new(&format!("{proc}/environ"))));
            report(&format!("{name}-memory"), File::open(format!("{proc}/mem")).is_ok());
            report(&format!("{name}-memory-write"), can_write(Path::new(&format!("{proc}/mem"))));
            report(&format!("{name}-maps"), can_read(Path::new(&format!("{proc}/maps"))));
            report(&format!("{name}-trace"), call(libc::SYS_ptrace, [PTRACE_SEIZE, pid, 0, 0, 0, 0]));
        }
        report("signal", call(libc::SYS_kill, [i64::from(self.victim), 0, 0, 0, 0, 0]));
        report("keyring", call(libc::SYS_keyctl, [0, SESSION_KEYRING, 0, 0, 0, 0]));
        report("segment", call(libc::SYS_shmat, [self.segment, 0, 0, 0, 0, 0]));
    }

    fn reach_network(&self) {
        report("tcp", TcpStream::connect(("127.0.0.1", self.tcp)).is_ok());
        // Whether these arrive is known to the receiver alone.
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", 0)) {
            let _ = socket.send_to(b"datagram", ("127.0.0.1", self.udp));
        }
        report("unix", UnixStream::connect(self.outside.join("socket")).is_ok());
        report("unix-elsewhere", UnixStream::connect(self.outside.join("elsewhere")).is_ok());
        report("unix-datagram", sends_to(&self.outside.join("datagram")));
        let name =
            SocketAddr::from_abstract_name(format!("sandbox-test-{}", self.outside.display())).unwrap();
        report("abstract", UnixStream::connect_addr(&name).is_ok());
        let vsock = [i64::from(libc::AF_VSOCK), i64::from(libc::SOCK_STREAM), 0, 0, 0, 0];
        report("vsock", call(libc::SYS_socket, vsock));
    }

    fn use_kernel() {
        let many: Vec<_> = (0..200).map_while(|_| File::open("/dev/null").ok()).collect();
        report("descriptors", many.len() == 200);
        drop(many);
        let mapped = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        report("map", call(libc::SYS_mmap, [0, MAPPED, access.into(), mapped.into(), -1, 0]));
        report("unmapped-memory", call(libc::SYS_memfd_create, [address(c"x"), 0, 0, 0, 0, 0]));
        let node = i64::from(libc::S_IFCHR | 0o600);
        let null = 0x103;
        report("device-node", call(libc::SYS_mknodat, [AT_FDCWD, address(c"node"), node, null, 0, 0]));
        std::fs::create_dir("mounted").unwrap();
        let mounted =
            call(libc::SYS_mount, [address(c"none"), address(c"mounted"), address(c"tmpfs"), 0, 0, 0]);
        if mounted {
            // The sandbox is off: the caller's own tree was changed.
            assert!(call(libc::SYS_umount2, [address(c"mounted"), 0, 0, 0, 0, 0]));
        }
        report("mount", mounted);
        let parameters = [0_u8; 256];
        let ring = parameters.as_ptr().expose_provenance().cast_signed();
        report("ring", call(libc::SYS_io_uring_setup, [1, i64::try_from(ring).unwrap(), 0, 0, 0, 0]));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        report("new-privileges", !status.contains("NoNewPrivs:\t1"));
        report("capabilities", !status.contains("CapEff:\t0000000000000000"));
        report("root-change", call(libc::SYS_chroot, [address(c"mounted"), 0, 0, 0, 0, 0]));
    }
}

const PTRACE_SEIZE: i64 = 0x4206;
const SESSION_KEYRING: i64 = -3;
const AT_FDCWD: i64 = -100;
/// Bytes of a mapping above the limit on memory.
const MAPPED: i64 = 5 << 30;

fn report(name: &str, worked: bool) {
    println!("\n{name} {}", if worked { "worked" } else { "failed" });
}

fn can_write(path: &Path) -> bool {
    OpenOptions::new().write(true).open(path).is_ok()
}

/// Whether a byte of a file can be read.
fn can_read(path: &Path) -> bool {
    File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|count| count > 0)
}

fn sends_to(path: &Path) -> bool {
    UnixDatagram::unbound().is_ok_and(|socket| socket.send_to(b"datagram", path).is_ok())
}

fn block_devices() -> Vec<PathBuf> {
    ["vda", "sda", "nvme0n1", "xvda", "mapper/control", "mem"].map(|name| Path::new("/dev").join(name)).into()
}

fn now() -> rustix::fs::Timestamps {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    rustix::fs::Timestamps { last_access: now, last_modification: now }
}

/// Whether a character can be put into the input of a terminal.
fn types_into(terminal: &File) -> bool {
    const TIOCSTI: i64 = 0x5412;
    call(libc::SYS_ioctl, [terminal.as_raw_fd().into(), TIOCSTI, address(c"x"), 0, 0, 0])
}

/// Whether the flags of a file can be set, to what they are.
fn keeps_flags(file: &File) -> bool {
    const GET_FLAGS: i64 = 0x8008_6601;
    const SET_FLAGS: i64 = 0x4008_6602;
    let flags = [0_u64];
    let place = i64::try_from(flags.as_ptr().expose_provenance()).unwrap();
    let fd = i64::from(file.as_raw_fd());
    call(libc::SYS_ioctl, [fd, GET_FLAGS, place, 0, 0, 0])
        && call(libc::SYS_ioctl, [fd, SET_FLAGS, place, 0, 0, 0])
}

fn address(text: &std::ffi::CStr) -> i64 {
    i64::try_from(text.as_ptr().expose_provenance()).unwrap()
}

/// Whether a system call succeeds.
pub(crate) fn call(number: i64, arguments: [i64; 6]) -> bool {
    result(number, arguments) >= 0
}

/// Result of a system call.
#[expect(unsafe_code, reason = "most of these calls have no safe interface")]
pub(crate) fn result(number: i64, arguments: [i64; 6]) -> i64 {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: pointers among the arguments lead to live values, and what succeeds changes no memory of this program but those.
    unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) }
}
