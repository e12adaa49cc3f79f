//! Attempts of the trial, made by a confined process that cannot allocate.

use crate::error::Error;
use crate::limits::Limits;
use crate::plan::text;
use crate::sys::{Call, files, memory, process, sockets};
use std::ffi::CString;
use std::path::Path;

/// One above the longest path of a Unix socket.
pub(super) const LONGEST_SOCKET: usize = 108;

/// Attempt that a protection should make fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Changing or creating a file outside.
    Write,
    /// Changing mode, owner, times or attributes of a file outside.
    Metadata,
    /// Writing to a named pipe of another process.
    Pipe,
    /// Linking a file from outside into the workspace.
    Link,
    /// Attaching shared memory of another process.
    SharedMemory,
    /// Reading a hidden file.
    ReadHidden,
    /// Connecting to a socket in a hidden folder.
    HiddenSocket,
    /// Opening the environment of the calling process.
    ReadProcess,
    /// Sending a signal to the calling process.
    Signal,
    /// Using the keyring that the caller's session has.
    Keyring,
    /// Connecting to a TCP port of the host.
    Tcp,
    /// Sending a datagram to a port of the host.
    Udp,
    /// Connecting to a Unix socket by path.
    UnixPath,
    /// Connecting to a Unix socket whose name does not tell its path.
    UnixElsewhere,
    /// Connecting to an abstract Unix socket.
    UnixAbstract,
    /// Opening a socket to the machine's hypervisor.
    Vsock,
    /// Mapping more memory than the limit.
    Memory,
    /// Holding memory by a descriptor alone.
    UnmappedMemory,
    /// Writing a file beyond its limit.
    FileSize,
    /// Opening more descriptors than the limit.
    Descriptors,
    /// Killing the supervisor.
    KillSupervisor,
    /// Writing inside the workspace: the only attempt that must succeed.
    WriteInside,
}

impl Attempt {
    pub(crate) fn bit(self) -> i32 {
        1 << (self as i32)
    }
}

/// Targets of the attempts.
pub(super) struct Targets<'a> {
    pub(super) inside: &'a Path,
    pub(super) outside: &'a Path,
    pub(super) hidden: &'a Path,
    pub(super) tcp_port: u16,
    pub(super) udp_port: u16,
    pub(super) abstract_name: &'a [u8],
    pub(super) segment: Option<i32>,
    pub(super) caller: u32,
    pub(super) limits: Limits,
    pub(super) is_first: bool,
    /// Whether mounts mask the sockets whose path is known.
    pub(super) masks_sockets: bool,
}

/// Prepared attempts.
#[derive(Debug)]
pub(crate) struct Trial {
    inside_file: CString,
    inside_link: CString,
    outside_file: CString,
    outside_new: CString,
    outside_folder: CString,
    hidden_file: CString,
    outside_pipe: CString,
    outside_socket: CString,
    elsewhere_socket: Vec<u8>,
    hidden_socket: Vec<u8>,
    abstract_name: Vec<u8>,
    tcp_port: u16,
    udp_port: u16,
    segment: Option<i32>,
    caller: i32,
    caller_environment: CString,
    limits: Limits,
    is_first: bool,
    masks_sockets: bool,
}

impl Trial {
    pub(super) fn new(targets: &Targets<'_>) -> Result<Self, Error> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = |path: &Path| text("scratch folder", path.as_os_str());
        let mut abstract_name = vec![0];
        abstract_name.extend(targets.abstract_name);
        Ok(Self {
            inside_file: path(&targets.inside.join("trial"))?,
            inside_link: path(&targets.inside.join("link"))?,
            outside_file: path(&targets.outside.join("file"))?,
            outside_new: path(&targets.outside.join("new"))?,
            outside_folder: path(&targets.outside.join("folder"))?,
            hidden_file: path(&targets.hidden.join("secret"))?,
            outside_pipe: path(&targets.outside.join("pipe"))?,
            outside_socket: path(&targets.outside.join("socket"))?,
            elsewhere_socket: targets.outside.join("elsewhere").as_os_str().as_bytes().to_vec(),
            hidden_socket: targets.hidden.join("socket").as_os_str().as_bytes().to_vec(),
            abstract_name,
            tcp_port: targets.tcp_port,
            udp_port: targets.udp_port,
            segment: targets.segment,
            caller: i32::try_from(targets.caller).unwrap_or(i32::MAX),
            caller_environment: path(Path::new(&format!("/proc/{}/environ", targets.caller)))?,
            limits: targets.limits,
            is_first: targets.is_first,
            masks_sockets: targets.masks_sockets,
        })
    }

    /// Makes all attempts: those that succeeded, as bits.
    pub(crate) fn run(&self) -> i32 {
        [
            (Attempt::Write, self.can_write()),
            (Attempt::Metadata, self.can_change_metadata()),
            (Attempt::Pipe, can_open(&self.outside_pipe, libc::O_WRONLY | libc::O_NONBLOCK)),
            (Attempt::Link, self.can_link()),
            (Attempt::SharedMemory, self.segment.is_some_and(process::can_attach)),
            (Attempt::ReadHidden, can_open(&self.hidden_file, libc::O_RDONLY)),
            (Attempt::HiddenSocket, can_connect(&self.hidden_socket)),
            (Attempt::ReadProcess, can_open(&self.caller_environment, libc::O_RDONLY)),
            (Attempt::Signal, self.can_signal()),
            (Attempt::Keyring, process::can_use_keyring()),
            (Attempt::Tcp, self.can_connect_tcp()),
            (Attempt::Udp, self.send_datagram()),
            (Attempt::UnixPath, self.can_reach_socket()),
            (Attempt::UnixElsewhere, can_connect(&self.elsewhere_socket)),
            (Attempt::UnixAbstract, can_connect(&self.abstract_name)),
            (Attempt::Vsock, works(sockets::open(libc::AF_VSOCK, libc::SOCK_STREAM))),
            (Attempt::Memory, memory::can_map(usize::try_from(self.limits.memory).unwrap_or(usize::MAX))),
            (Attempt::UnmappedMemory, memory::can_hold_unmapped()),
            (Attempt::FileSize, self.can_write_large()),
            (Attempt::Descriptors, self.can_open_many()),
            (Attempt::KillSupervisor, self.can_kill_supervisor()),
            (Attempt::WriteInside, self.can_write_inside()),
        ]
        .into_iter()
        .filter(|(_, is_possible)| *is_possible)
        .fold(0, |bits, (attempt, _)| bits | attempt.bit())
    }

    fn can_write(&self) -> bool {
        [
            can_open(&self.outside_file, libc::O_WRONLY),
            can_open(&self.outside_new, libc::O_WRONLY | libc::O_CREAT),
            files::truncate(&self.outside_file).is_ok(),
            files::make_directory(&self.outside_folder, 0o700).is_ok(),
            files::make_symlink(c"target", &self.outside_new).is_ok(),
            files::remove_file(&self.outside_file).is_ok(),
        ]
        .contains(&true)
    }

    fn can_change_metadata(&self) -> bool {
        [
            files::change_mode(&self.outside_file, 0o600).is_ok(),
            files::change_owner_to_self(&self.outside_file).is_ok(),
            files::change_times(&self.outside_file).is_ok(),
            files::set_attribute(&self.outside_file, c"user.proctor").is_ok(),
        ]
        .contains(&true)
    }

    fn can_link(&self) -> bool {
        let linked = files::make_link(&self.outside_file, &self.inside_link).is_ok();
        let _ = files::remove_file(&self.inside_link);
        linked
    }

    fn can_connect_tcp(&self) -> bool {
        let Ok(fd) = sockets::open(libc::AF_INET, libc::SOCK_STREAM) else { return false };
        let connected = sockets::connect_loopback(fd, self.tcp_port).is_ok();
        files::close(fd);
        connected
    }

    /// The socket elsewhere closes all Unix sockets for this process; in others, masks alone keep the one with a known path away.
    fn can_reach_socket(&self) -> bool {
        let is_visible = self.masks_sockets && files::is_socket(&self.outside_socket);
        is_visible || can_connect(self.outside_socket.to_bytes())
    }

    /// Sends a datagram. Only the receiver knows whether it got out, so this is never counted here.
    fn send_datagram(&self) -> bool {
        if let Ok(fd) = sockets::open(libc::AF_INET, libc::SOCK_DGRAM) {
            if sockets::connect_loopback(fd, self.udp_port).is_ok() {
                let _ = files::write(fd, b"trial");
            }
            files::close(fd);
        }
        false
    }

    fn can_write_large(&self) -> bool {
        let Ok(fd) = files::open(&self.inside_file, libc::O_WRONLY | libc::O_CREAT, 0o600) else {
            return false;
        };
        let offset = i64::try_from(self.limits.file_size).unwrap_or(i64::MAX);
        let written = files::seek(fd, offset).is_ok() && files::write(fd, b"x").is_ok();
        files::close(fd);
        written
    }

    fn can_open_many(&self) -> bool {
        let beyond = i32::try_from(self.limits.descriptors).unwrap_or(i32::MAX);
        works(files::duplicate_from(0, beyond))
    }

    fn can_write_inside(&self) -> bool {
        can_open(&self.inside_file, libc::O_WRONLY | libc::O_CREAT)
    }

    /// In a namespace the caller has no number, and another process may have that one.
    fn can_signal(&self) -> bool {
        !self.is_first && process::send_signal(self.caller, 0).is_ok()
    }

    /// PID 1 of a namespace takes no signal from inside it.
    fn can_kill_supervisor(&self) -> bool {
        !self.is_first && process::send_signal(process::parent_id(), 0).is_ok()
    }
}

/// Whether a call gave a descriptor, which is closed again.
fn works(result: Call<i32>) -> bool {
    match result {
        Ok(fd) => {
            files::close(fd);
            true
        }
        Err(_) => false,
    }
}

fn can_open(path: &CString, flags: i32) -> bool {
    works(files::open(path, flags, 0o600))
}

fn can_connect(name: &[u8]) -> bool {
    let Ok(fd) = sockets::open(libc::AF_UNIX, libc::SOCK_STREAM) else { return false };
    let connected = sockets::connect_unix(fd, name).is_ok();
    files::close(fd);
    connected
}
