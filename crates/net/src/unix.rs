//! Unix sockets: bound atomically with a file mode, and served to peers whose user id the kernel reports.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::accept::{AcceptLoop, ConnectionSet, ConnectionSlot};
use crate::connection::TextHandler;
use crate::message::{LineReader, LineWriter};
use crate::peer::{Identity, Peer};
use crate::stream::{self, StreamLimits};

/// Idle limit while fewer than half of the slots are taken. Agents do not connect again after their connection was closed, and then act
/// without asking: only when slots become scarce are idle peers closed early.
const UNCROWDED_IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// Time for the process behind an existing socket file to accept a probe.
const PROBE: Duration = Duration::from_secs(2);
/// Attempts to lock the folder while another process starts in it.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// A bound Unix socket. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// Settings of a served Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixOptions {
    /// Connections over this number are closed at once.
    pub max_connections: usize,
    /// Accepts users other than our own and root. The file's mode must let them, too.
    pub any_user: bool,
    /// Limits of each connection. The idle limit holds while more than half of the slots are taken; else it is a day.
    pub limits: StreamLimits,
    /// Time for messages in flight to finish when the server stops.
    pub grace: Duration,
}

impl Default for UnixOptions {
    fn default() -> UnixOptions {
        UnixOptions {
            max_connections: 1024,
            any_user: false,
            limits: StreamLimits::socket(),
            grace: Duration::from_secs(15),
        }
    }
}

impl UnixSocket {
    /// Binds a socket file that only our own user can open. A file that a dead server left is replaced.
    pub async fn bind(path: impl AsRef<Path>) -> io::Result<UnixSocket> {
        UnixSocket::bind_with_mode(path, 0o600).await
    }

    /// Binds with another file mode, such as `0o660` for a group.
    pub async fn bind_with_mode(path: impl AsRef<Path>, mode: u32) -> io::Result<UnixSocket> {
        let path = path.as_ref();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        // Two servers that start at once must not both find the old socket dead.
        let _lock = lock(&folder).await?;
        refuse_if_in_use(path).await?;
        let (listener, file) = bind_in_place(path, &folder, mode)?;
        Ok(UnixSocket { listener, file })
    }

    /// The socket file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Polls for the next connection.
    pub fn poll_accept(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<io::Result<UnixStream>> {
        self.listener.poll_accept(cx).map_ok(|(stream, _)| stream)
    }

    /// Serves a message a line until `stop` is cancelled; then messages in flight are answered and the file is removed.
    pub async fn serve<H: TextHandler>(
        self,
        handler: H,
        options: UnixOptions,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let connections = ConnectionSet::new(options.max_connections, stop.clone());
        let own = rustix::process::geteuid().as_raw();
        let mut accepting = AcceptLoop::new(|cx: &mut std::task::Context<'_>| self.listener.poll_accept(cx));
        while let Some((stream, _)) = accepting.next(&stop).await {
            let Some(slot) = connections.admit() else { continue };
            let Ok(caller) = stream.peer_cred() else { continue };
            let uid = caller.uid();
            if options.any_user || is_allowed(uid, own) {
                let mut limits = options.limits.clone();
                if !connections.is_crowded() {
                    limits.idle = limits.idle.map(|idle| idle.max(UNCROWDED_IDLE));
                }
                tokio::spawn(serve_connection(handler.clone(), uid, stream, limits, slot));
            }
        }
        drop(self);
        connections.finish(options.grace).await;
        Ok(())
    }
}

/// Connects to a Unix socket, as a client; a message is a line.
pub async fn connect(
    path: &Path,
) -> io::Result<(LineReader<tokio::net::unix::OwnedReadHalf>, LineWriter<tokio::net::unix::OwnedWriteHalf>)> {
    let (reader, writer) = UnixStream::connect(path).await?.into_split();
    Ok((LineReader::new(reader), LineWriter(writer)))
}

/// Whether a user may connect to a socket of this process.
#[cfg(feature = "listen")]
pub(crate) fn may_connect(uid: u32) -> bool {
    is_allowed(uid, rustix::process::geteuid().as_raw())
}

/// Our own user, and root, which could become it anyway.
fn is_allowed(uid: u32, own: u32) -> bool {
    uid == own || uid == 0
}

async fn serve_connection<H: TextHandler>(
    handler: H,
    uid: u32,
    mut stream: UnixStream,
    limits: StreamLimits,
    slot: ConnectionSlot,
) {
    let peer = Peer { transport: "unix", identity: Identity::Uid(uid) };
    let (reader, writer) = stream.split();
    tokio::select! {
        biased;
        () = slot.abort.cancelled() => {}
        // A broken connection has no peer to report the error to.
        _ = stream::serve_noted(|| slot.begin_work(), &handler, &peer, (reader, writer), &limits, &slot.stop) => {}
    }
}

/// Locks the folder itself, which leaves no file behind.
async fn lock(folder: &Path) -> io::Result<fs::File> {
    use rustix::fs::{FlockOperation, flock};
    let handle = fs::File::open(folder)
        .map_err(|error| describe(&error, format_args!("cannot open the folder `{}`", folder.display())))?;
    for _ in 0..LOCK_TRIES {
        if flock(&handle, FlockOperation::NonBlockingLockExclusive) != Err(rustix::io::Errno::WOULDBLOCK) {
            // Locked, or a file system without locks, where the race of two starting servers is accepted.
            return Ok(handle);
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Err(io::Error::new(
        io::ErrorKind::WouldBlock,
        format!("another process holds the folder `{}`; try again", folder.display()),
    ))
}

async fn refuse_if_in_use(path: &Path) -> io::Result<()> {
    let taken = |why: &str| {
        let text = format!("cannot listen on `{}`: {why}", path.display());
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(describe(&error, format_args!("cannot look at `{}`", path.display()))),
        Ok(found) if !found.file_type().is_socket() => {
            return taken("the file exists and is no socket; remove it or choose another path");
        }
        Ok(_) => {}
    }
    match tokio::time::timeout(PROBE, UnixStream::connect(path)).await {
        Ok(Err(error))
            if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) =>
        {
            Ok(())
        }
        _ => taken("another process listens there; stop it or choose another path"),
    }
}

/// Binds in a folder that only our user can enter, sets the mode and renames: at no moment can others connect.
fn bind_in_place(path: &Path, folder: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    let private = folder.join(format!(".{}", name.get(..8).unwrap_or(&name)));
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&private)
        .map_err(|error| describe(&error, format_args!("cannot make a folder in `{}`", folder.display())))?;
    let made = (|| {
        let unnamed = private.join("s");
        let listener = UnixListener::bind(&unnamed)?;
        fs::set_permissions(&unnamed, fs::Permissions::from_mode(mode))?;
        let found = fs::symlink_metadata(&unnamed)?;
        fs::rename(&unnamed, path).inspect_err(|_| drop(fs::remove_file(&unnamed)))?;
        Ok((listener, SocketFile { path: path.to_owned(), device: found.dev(), inode: found.ino() }))
    })();
    // A folder that cannot be removed is no reason to fail.
    let _ = fs::remove_dir(&private);
    made.map_err(|error: io::Error| describe(&error, format_args!("cannot listen on `{}`", path.display())))
}

fn describe(error: &io::Error, what: std::fmt::Arguments<'_>) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The identity of our socket file: another server may have replaced it by its own.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Ok(found) = fs::symlink_metadata(&self.path)
            && (found.dev(), found.ino()) == (self.device, self.inode)
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_are_refused() {
        assert!(is_allowed(1000, 1000) && is_allowed(0, 1000));
        assert!(!is_allowed(1001, 1000) && !is_allowed(1000, 0));
    }
}
