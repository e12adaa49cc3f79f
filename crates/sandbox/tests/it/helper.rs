//! Roles that this binary plays when a test starts it again.

use crate::support::{Bench, GRACE, MARK};
use proctor_sandbox::{Feature, Features, Mode, Sandbox, Spec, Stream, Workspace};
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;

/// Variable with the role and its arguments, separated by spaces.
pub(crate) const COMMAND: &str = "SANDBOX_TEST_COMMAND";

/// Entry point of the roles; an ordinary run of the tests finds nothing to do here.
#[test]
fn entry() {
    let Ok(command) = std::env::var(COMMAND) else { return };
    let words: Vec<&str> = command.split(' ').collect();
    let code = match *words.as_slice() {
        ["attempts", outside, hidden, port, udp, caller] => {
            attempts(
                Path::new(outside),
                Path::new(hidden),
                port.parse().unwrap(),
                udp.parse().unwrap(),
                caller,
            );
            0
        }
        ["memory", mebibytes] => {
            fill(mebibytes.parse().unwrap());
            0
        }
        ["caller", base, mode] => caller(Path::new(base), mode),
        ["leaks", base] => crate::leaks::count(Path::new(base)),
        _ => panic!("unknown role {command}"),
    };
    std::process::exit(code);
}

/// Tries everything that a protection should stop, and prints what worked.
fn attempts(outside: &Path, hidden: &Path, port: u16, udp: u16, caller: &str) {
    let file = outside.join("file");
    let report = |name: &str, worked: bool| println!("\n{name} {}", if worked { "worked" } else { "failed" });
    report("write", OpenOptions::new().write(true).open(&file).is_ok());
    report("append", OpenOptions::new().append(true).open(&file).is_ok());
    report("create", File::create(outside.join("created")).is_ok());
    report("folder", std::fs::create_dir(outside.join("folder")).is_ok());
    report("rename", std::fs::rename(outside.join("spare"), outside.join("renamed")).is_ok());
    report("fetch", std::fs::rename(outside.join("spare"), "fetched").is_ok());
    report("remove", std::fs::remove_file(outside.join("doomed")).is_ok());
    report("chmod", std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).is_ok());
    report("chown", chown(&file, Some(rustix::process::getuid().as_raw()), None).is_ok());
    let open = File::open(&file);
    report(
        "fchmod",
        open.as_ref().is_ok_and(|file| file.set_permissions(std::fs::Permissions::from_mode(0o600)).is_ok()),
    );
    report(
        "utime",
        rustix::fs::utimensat(rustix::fs::CWD, &file, &now(), rustix::fs::AtFlags::empty()).is_ok(),
    );
    report("xattr", rustix::fs::setxattr(&file, "user.x", b"x", rustix::fs::XattrFlags::empty()).is_ok());
    let _ = symlink(&file, "through");
    report("symlink", OpenOptions::new().write(true).open("through").is_ok());
    report("hardlink", std::fs::hard_link(&file, "hard").is_ok());
    report("hidden-read", std::fs::read(hidden.join("secret")).is_ok());
    report("hidden-list", std::fs::read_dir(hidden).is_ok_and(|mut entries| entries.next().is_some()));
    report("hidden-socket", UnixStream::connect(hidden.join("socket")).is_ok());
    report("hidden-proc", std::fs::read(format!("/proc/{caller}/root{}/secret", hidden.display())).is_ok());
    report(
        "environ-proc",
        std::fs::read(format!("/proc/{caller}/environ")).is_ok_and(|text| !text.is_empty()),
    );
    report("sysctl", OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern").is_ok());
    report("tcp", TcpStream::connect(("127.0.0.1", port)).is_ok());
    if let Ok(socket) = UdpSocket::bind(("127.0.0.1", 0)) {
        let _ = socket.send_to(b"datagram", ("127.0.0.1", udp));
    }
    report("unix", UnixStream::connect(outside.join("socket")).is_ok());
    let name = SocketAddr::from_abstract_name(format!("sandbox-test-{}", outside.display())).unwrap();
    report("abstract", UnixStream::connect_addr(&name).is_ok());
    report("disk", OpenOptions::new().write(true).open("/dev/vda").is_ok());
    let many: Vec<_> = (0..200).map_while(|_| File::open("/dev/null").ok()).collect();
    report("descriptors", many.len() == 200);
    drop(many);
    report("inside", std::fs::write("own", "x").is_ok());
    // Last, because the kernel ends a program that goes too far.
    let large = File::create("large").and_then(|mut file| {
        file.seek(SeekFrom::Start(8 << 20))?;
        file.write_all(b"x")
    });
    report("file-size", large.is_ok());
}

fn now() -> rustix::fs::Timestamps {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    rustix::fs::Timestamps { last_access: now, last_modification: now }
}

/// Touches memory, at most two gigabytes whatever the caller says, and then waits to be killed, at most a minute.
fn fill(mebibytes: usize) {
    let mut blocks = Vec::new();
    for _ in 0..mebibytes.min(2048) {
        blocks.push(vec![1_u8; 1 << 20]);
    }
    println!("\nfilled {}", blocks.len());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Starts a run with daemons and says so; the test kills this process then.
fn caller(base: &Path, mode: &str) -> i32 {
    let (mode, features) = match mode {
        "off" => (Mode::Off, Features::all()),
        "supervised" => (Mode::Auto, Features::all().without(Feature::PidNamespace)),
        _ => (Mode::Auto, Features::all()),
    };
    let sandbox = Sandbox::new(mode, features, base).unwrap();
    let workspace = Workspace::create(base).unwrap();
    let script = "setsid sleep 300 & (setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' &) ; echo started > ready; sleep 300";
    let spec = Spec::new("/bin/sh", workspace.workspace())
        .arguments(["-c", script])
        .environment("PATH", "/usr/bin:/bin")
        .environment(MARK, std::env::var(MARK).unwrap())
        .stdout(Stream::Null)
        .stderr(Stream::Null)
        .writable(workspace.root());
    let _process = sandbox.spawn(spec).unwrap();
    crate::support::eventually("the run never started", || workspace.workspace().join("ready").exists());
    println!("\nready");
    std::thread::sleep(std::time::Duration::from_secs(60));
    1
}

/// Outside world of a run: files, sockets and ports that it should not reach.
pub(crate) struct World {
    folder: tempfile::TempDir,
    tcp: std::net::TcpListener,
    udp: UdpSocket,
    _sockets: Vec<std::os::unix::net::UnixListener>,
}

/// Attempts that worked and those that failed.
pub(crate) struct Results {
    pub(crate) worked: Vec<String>,
    pub(crate) failed: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join("hidden");
        std::fs::create_dir(&hidden).unwrap();
        for name in ["file", "spare", "doomed", "hidden/secret"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let name =
            SocketAddr::from_abstract_name(format!("sandbox-test-{}", folder.path().display())).unwrap();
        let sockets = vec![
            UnixListener::bind(folder.path().join("socket")).unwrap(),
            UnixListener::bind(hidden.join("socket")).unwrap(),
            UnixListener::bind_addr(&name).unwrap(),
        ];
        let tcp = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        udp.set_nonblocking(true).unwrap();
        Self { folder, tcp, udp, _sockets: sockets }
    }

    /// Runs all attempts under a bench's sandbox.
    pub(crate) fn attack(&self, bench: &Bench) -> Results {
        let hidden = self.folder.path().join("hidden");
        let command = format!(
            "attempts {} {} {} {} {}",
            self.folder.path().display(),
            hidden.display(),
            self.tcp.local_addr().unwrap().port(),
            self.udp.local_addr().unwrap().port(),
            std::process::id()
        );
        let limits = proctor_sandbox::Limits {
            file_size: 4 << 20,
            descriptors: 100,
            ..proctor_sandbox::Limits::default()
        };
        let spec = bench.helper(&command).hidden([hidden]).limits(limits);
        let mut process = bench.sandbox.spawn(spec).unwrap();
        let (stdout, stderr) = crate::support::drain(&mut process);
        let exit = process.wait(std::time::Duration::from_secs(60)).unwrap();
        process.terminate(GRACE).unwrap();
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        assert!(stdout.contains("\ninside "), "{exit:?}\n{stdout}\n{stderr}");
        let pick = |end: &str| -> Vec<String> {
            stdout.lines().filter_map(|line| line.strip_suffix(end)).map(str::to_owned).collect()
        };
        let mut results = Results { worked: pick(" worked"), failed: pick(" failed") };
        let arrived = self.udp.recv(&mut [0; 16]).is_ok();
        let list = if arrived { &mut results.worked } else { &mut results.failed };
        list.push("udp".to_owned());
        results
    }
}
