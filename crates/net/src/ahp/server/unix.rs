//! A Unix socket: the kernel says who calls.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::accept::{Accepting, Connections, Place};
use super::{AhpServer, EventHandler, Identity, Peer, StreamLimits};

/// How long a peer may be idle while there is room for others. Agents do not connect again after their connection was closed, and then act
/// without asking: only when places become scarce are idle peers closed early.
const PATIENT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the owner of an existing socket has to accept when we look whether there is one.
const PROBE: Duration = Duration::from_secs(2);
/// How long another process may be starting on the same folder.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(25);

/// A socket file that is listened on. It is removed when this is dropped.
#[derive(Debug)]
pub struct Listening {
    listener: UnixListener,
    file: SocketFile,
}

/// How a Unix socket is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixOptions {
    /// More connections than this are closed at once.
    pub max_connections: usize,
    /// Whether users other than our own and root may call. The file's mode must let them, too.
    pub any_user: bool,
    /// What each connection may take. The time of being idle is for when more than half of the places are taken; else it is a day.
    pub limits: StreamLimits,
    /// How long messages in flight have to finish when the server stops.
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

impl Listening {
    /// Listens on a socket file that only our own user can open. A file that a dead server left is replaced.
    pub async fn bind(path: impl AsRef<Path>) -> io::Result<Listening> {
        Listening::bind_with_mode(path, 0o600).await
    }

    /// The same, with another file mode, such as `0o660` for a group.
    pub async fn bind_with_mode(path: impl AsRef<Path>, mode: u32) -> io::Result<Listening> {
        let path = path.as_ref();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        // Two that start at once must not both find the old socket dead.
        let _lock = lock(&folder).await?;
        refuse_what_is_in_use(path).await?;
        let (listener, file) = put_in_place(path, &folder, mode)?;
        Ok(Listening { listener, file })
    }

    /// The socket file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The next connection.
    #[cfg_attr(
        not(any(feature = "http", feature = "websocket", feature = "grpc")),
        expect(dead_code, reason = "only HTTP accepts this way")
    )]
    pub(crate) fn poll_accept(
        &self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<UnixStream>> {
        self.listener.poll_accept(cx).map_ok(|(stream, _)| stream)
    }

    /// Serves until `stop` is cancelled; then what is in flight is answered and the file removed.
    pub async fn serve<H: EventHandler>(
        self,
        server: AhpServer<H>,
        options: UnixOptions,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let connections = Connections::new(options.max_connections, stop.clone());
        let own = rustix::process::geteuid().as_raw();
        let mut accepting = Accepting::new(|cx: &mut std::task::Context<'_>| self.listener.poll_accept(cx));
        while let Some((stream, _)) = accepting.next(&stop).await {
            let Some(place) = connections.admit() else { continue };
            let Ok(caller) = stream.peer_cred() else { continue };
            let uid = caller.uid();
            if options.any_user || is_allowed(uid, own) {
                let mut limits = options.limits.clone();
                if !connections.is_crowded() {
                    limits.idle = limits.idle.map(|idle| idle.max(PATIENT));
                }
                tokio::spawn(converse(server.clone(), uid, stream, limits, place));
            }
        }
        drop(self);
        connections.finish(options.grace).await;
        Ok(())
    }
}

/// Whether a user may call on a socket of ours.
#[cfg_attr(
    not(any(feature = "http", feature = "websocket", feature = "grpc")),
    expect(dead_code, reason = "only HTTP asks")
)]
pub(crate) fn may_call(uid: u32) -> bool {
    is_allowed(uid, rustix::process::geteuid().as_raw())
}

/// Our own user may, and root, who could become it anyway.
fn is_allowed(uid: u32, own: u32) -> bool {
    uid == own || uid == 0
}

async fn converse<H: EventHandler>(
    server: AhpServer<H>,
    uid: u32,
    mut stream: UnixStream,
    limits: StreamLimits,
    place: Place,
) {
    let peer = Peer { transport: "unix", identity: Identity::Uid(uid) };
    let (reader, writer) = stream.split();
    tokio::select! {
        biased;
        () = place.kill.cancelled() => {}
        // A connection that breaks is over; there is nobody to tell.
        _ = server.serve_stream_until(peer, reader, writer, &limits, &place.stop) => {}
    }
}

/// A lock on the folder itself, which leaves no file behind.
async fn lock(folder: &Path) -> io::Result<fs::File> {
    use rustix::fs::{FlockOperation, flock};
    let handle = fs::File::open(folder)
        .map_err(|error| describe(&error, format_args!("cannot open the folder `{}`", folder.display())))?;
    for _ in 0..LOCK_TRIES {
        if flock(&handle, FlockOperation::NonBlockingLockExclusive) != Err(rustix::io::Errno::WOULDBLOCK) {
            // Locked, or a file system without locks: the rest is safe enough without.
            return Ok(handle);
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Err(io::Error::new(
        io::ErrorKind::WouldBlock,
        format!("another process holds the folder `{}`; try again", folder.display()),
    ))
}

async fn refuse_what_is_in_use(path: &Path) -> io::Result<()> {
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

/// Made in a folder that nobody else can enter, and moved when its mode is right: at no moment can others connect.
fn put_in_place(path: &Path, folder: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let name = uuid::Uuid::new_v4().simple().to_string();
    let nursery = folder.join(format!(".{}", name.get(..8).unwrap_or(&name)));
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&nursery)
        .map_err(|error| describe(&error, format_args!("cannot make a folder in `{}`", folder.display())))?;
    let made = (|| {
        let newborn = nursery.join("s");
        let listener = UnixListener::bind(&newborn)?;
        fs::set_permissions(&newborn, fs::Permissions::from_mode(mode))?;
        let found = fs::symlink_metadata(&newborn)?;
        fs::rename(&newborn, path).inspect_err(|_| drop(fs::remove_file(&newborn)))?;
        Ok((listener, SocketFile { path: path.to_owned(), device: found.dev(), inode: found.ino() }))
    })();
    // Its only file has moved away or was removed; if neither worked, an empty folder is no reason to fail.
    let _ = fs::remove_dir(&nursery);
    made.map_err(|error: io::Error| describe(&error, format_args!("cannot listen on `{}`", path.display())))
}

fn describe(error: &io::Error, what: std::fmt::Arguments<'_>) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Which file is ours: another server may have put its own in the same place.
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
    fn other_users_may_not_call() {
        assert!(is_allowed(1000, 1000) && is_allowed(0, 1000));
        assert!(!is_allowed(1001, 1000) && !is_allowed(1000, 0));
    }
}
