//! World outside of a run: files, sockets, ports, processes and terminals that it should not reach.

use crate::attack::{Targets, call, result};
use crate::support::{Bench, GRACE};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

pub(crate) struct World {
    folder: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    victim: Child,
    segment: i64,
    terminal: String,
    _terminal: OwnedFd,
    /// Reading end of a named pipe, without which nobody could open it for writing.
    _pipe: std::fs::File,
    _listeners: Vec<UnixListener>,
    _receivers: Vec<UnixDatagram>,
}

/// Attempts that worked and those that failed.
pub(crate) struct Results {
    pub(crate) worked: Vec<String>,
    pub(crate) failed: Vec<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join("hidden");
        std::fs::create_dir(&hidden).unwrap();
        for name in ["file", "spare", "other", "doomed", "hidden/secret"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        // Not every file system has these.
        let _ = rustix::fs::setxattr(
            folder.path().join("file"),
            "user.kept",
            b"x",
            rustix::fs::XattrFlags::empty(),
        );
        let name = format!("sandbox-test-{}", folder.path().display());
        let name = SocketAddr::from_abstract_name(name).unwrap();
        let listeners = vec![
            UnixListener::bind(folder.path().join("socket")).unwrap(),
            UnixListener::bind(hidden.join("socket")).unwrap(),
            UnixListener::bind_addr(&name).unwrap(),
        ];
        // Its name leads nowhere, so that no mount can cover it.
        let open = std::fs::File::open(folder.path()).unwrap();
        let elsewhere = UnixListener::bind(format!("/proc/self/fd/{}/elsewhere", open.as_raw_fd())).unwrap();
        let fifo = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let pipe = std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(fifo).unwrap();
        let receivers = [folder.path(), &hidden]
            .map(|folder| UnixDatagram::bind(folder.join("datagram")).unwrap())
            .into();
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let udp = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        udp.set_nonblocking(true).unwrap();
        // A process of the same user that knows a secret, stands in the hidden folder, and has its file open.
        let victim = Command::new("sleep")
            .arg("600")
            .current_dir(&hidden)
            .env("SANDBOX_TEST_SECRET", "x")
            .stdin(std::fs::File::open(hidden.join("secret")).unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let terminal =
            rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&terminal).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let segment = result(libc::SYS_shmget, [0, 4096, 0o600, 0, 0, 0]);
        Self {
            folder,
            tcp,
            udp,
            victim,
            segment,
            terminal: name,
            _terminal: terminal,
            _pipe: pipe,
            _listeners: listeners.into_iter().chain([elsewhere]).collect(),
            _receivers: receivers,
        }
    }

    /// Runs all attempts under a bench's sandbox.
    pub(crate) fn attack(&self, bench: &Bench) -> Results {
        let hidden = self.folder.path().join("hidden");
        let targets = Targets {
            outside: self.folder.path().to_owned(),
            hidden: hidden.clone(),
            tcp: self.tcp.local_addr().unwrap().port(),
            udp: self.udp.local_addr().unwrap().port(),
            victim: self.victim.id(),
            terminal: self.terminal.clone(),
            segment: self.segment,
        };
        let limits = proctor_sandbox::Limits {
            file_size: 4 << 20,
            descriptors: 100,
            ..proctor_sandbox::Limits::default()
        };
        let command = format!("attempts {}", targets.to_words());
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

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        // Marked for removal; it goes with the last process that has it.
        call(libc::SYS_shmctl, [self.segment, 0, 0, 0, 0, 0]);
    }
}
