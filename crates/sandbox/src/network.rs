//! Network namespaces: made once, entered by one run after the other.

use crate::error::Error;
use crate::features::Feature;
use crate::keeper::{self, Entered};
use crate::mechanisms::Mechanisms;
use crate::plan;
use crate::process::system;
use crate::sys::memory::Stack;
use crate::sys::process::{self as calls, Children};
use crate::sys::{Call, Errno, files, mounts, sockets};
use std::cell::Cell;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Unused namespaces that are kept. Making one costs milliseconds, keeping it some kernel memory.
const KEPT: usize = 32;
/// Connections that wait for the server of a listener.
const BACKLOG: i32 = 128;

/// Store of unused namespaces.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    unused: Mutex<Vec<Namespaces>>,
}

/// Kept namespaces: of users, where the sandbox uses one, and of the network.
#[derive(Debug)]
struct Namespaces {
    user: Option<OwnedFd>,
    network: OwnedFd,
}

/// Network namespace in use by a run; it goes back to the pool after the last process.
#[derive(Debug)]
pub(crate) struct Slot {
    namespaces: Option<Namespaces>,
    pool: Weak<Pool>,
}

impl Slot {
    pub(crate) fn entered(&self) -> Option<Entered> {
        let namespaces = self.namespaces.as_ref()?;
        Some(Entered {
            user: namespaces.user.as_ref().map(AsRawFd::as_raw_fd),
            network: namespaces.network.as_raw_fd(),
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let (Some(pool), Some(namespaces)) = (self.pool.upgrade(), self.namespaces.take()) {
            let mut unused = pool.unused.lock().unwrap_or_else(PoisonError::into_inner);
            if unused.len() < KEPT {
                unused.push(namespaces);
            }
        }
    }
}

/// Listener on 127.0.0.1 that a run reaches and that the calling process serves.
///
/// Where the sandbox has network namespaces, the listener is inside one, and only processes started with this value reach it.
#[derive(Clone, Debug)]
pub struct Loopback {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    listener: TcpListener,
    port: u16,
    slot: Option<Arc<Slot>>,
}

impl Loopback {
    /// Port of the listener.
    pub fn port(&self) -> u16 {
        self.inner.port
    }

    /// Listener to accept connections from. It ends, in every duplicate, when the last copy of this value and its processes are gone.
    pub fn listener(&self) -> std::io::Result<TcpListener> {
        self.inner.listener.try_clone()
    }

    pub(crate) fn slot(&self) -> Option<Arc<Slot>> {
        self.inner.slot.clone()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The namespace serves another run next, which must not reach a forgotten duplicate.
        sockets::stop_listening(self.listener.as_raw_fd());
    }
}

impl Pool {
    /// Takes a namespace out of the pool, or makes one.
    pub(crate) fn take(self: &Arc<Self>, mechanisms: &Mechanisms) -> Result<Arc<Slot>, Error> {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let namespaces = match unused {
            Some(namespaces) => namespaces,
            None => make(mechanisms.has(Feature::UserNamespace))?,
        };
        Ok(Arc::new(Slot { namespaces: Some(namespaces), pool: Arc::downgrade(self) }))
    }

    /// Forgets the namespaces that are not in use.
    pub(crate) fn clear(&self) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Makes a listener, inside a namespace if the sandbox has them.
    pub(crate) fn listen(self: &Arc<Self>, mechanisms: &Mechanisms) -> Result<Loopback, Error> {
        let (listener, slot) = if mechanisms.has(Feature::NetworkNamespace) {
            let slot = self.take(mechanisms)?;
            let fd = listen_inside(&slot)?;
            (TcpListener::from(fd), Some(slot))
        } else {
            let listener = TcpListener::bind(("127.0.0.1", 0))
                .map_err(|source| Error::System { what: "listening on 127.0.0.1", source })?;
            (listener, None)
        };
        let port = listener
            .local_addr()
            .map_err(|source| Error::System { what: "reading the listener's port", source })?
            .port();
        Ok(Loopback { inner: Arc::new(Inner { listener, port, slot }) })
    }
}

/// Runs a function in a short-lived process that shares memory and descriptors with this one, in namespaces of its own.
fn in_helper<T: Copy>(what: &'static str, flags: i32, work: impl Fn() -> Call<T>) -> Result<T, Error> {
    let mut stack = Stack::new().map_err(|errno| system(what, errno))?;
    let result: Cell<Call<T>> = Cell::new(Err(Errno(libc::EAGAIN)));
    let mut child = || {
        result.set(work());
        0
    };
    let mask = calls::block_signals();
    let shared = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    let cloned = calls::clone(&mut stack, shared | flags, &mut child);
    if let Ok(pid) = cloned {
        let _ = calls::reap(Children::Pid(pid), true);
    }
    calls::restore_signals(&mask);
    cloned.and_then(|_| result.get()).map_err(|errno| system(what, errno))
}

/// Makes a network namespace with its loopback interface up, owned by a user namespace of its own if asked for.
fn make(with_user: bool) -> Result<Namespaces, Error> {
    let maps = with_user.then(plan::user_map);
    let flags = libc::CLONE_NEWNET | if with_user { libc::CLONE_NEWUSER } else { 0 };
    let (user, network) = in_helper("creating a network namespace", flags, || {
        if let Some((users, groups)) = &maps {
            keeper::write_user_map(users, groups)?;
        }
        sockets::raise_loopback()?;
        let network = files::open(c"/proc/self/ns/net", libc::O_RDONLY, 0)?;
        if !with_user {
            return Ok((None, network));
        }
        match files::open(c"/proc/self/ns/user", libc::O_RDONLY, 0) {
            Ok(user) => Ok((Some(user), network)),
            Err(errno) => {
                files::close(network);
                Err(errno)
            }
        }
    })?;
    Ok(Namespaces { user: user.map(files::own), network: files::own(network) })
}

fn listen_inside(slot: &Slot) -> Result<OwnedFd, Error> {
    let Some(Entered { user, network }) = slot.entered() else {
        return Err(system("entering a network namespace", Errno(libc::EBADF)));
    };
    let fd: RawFd = in_helper("listening inside a network namespace", 0, || {
        if let Some(user) = user {
            mounts::enter_namespace(user, libc::CLONE_NEWUSER)?;
        }
        mounts::enter_namespace(network, libc::CLONE_NEWNET)?;
        sockets::listen_on_loopback(BACKLOG)
    })?;
    Ok(files::own(fd))
}

#[cfg(test)]
mod tests {
    use super::Pool;
    use crate::features::Features;
    use crate::mechanisms::Mechanisms;
    use crate::sys::process::allows_tracing;
    use std::sync::Arc;

    #[test]
    fn namespaces_are_kept_and_leave_the_caller_as_it_was() {
        let pool = Arc::new(Pool::default());
        let mechanisms = Mechanisms::candidates(Features::all());
        let before = allows_tracing();
        let Ok(loopback) = pool.listen(&mechanisms) else {
            println!("not run: no network namespace here");
            return;
        };
        // A helper that shares our memory must not leave it protected like a privileged program's.
        assert_eq!(allows_tracing(), before);
        assert!(std::net::TcpStream::connect(("127.0.0.1", loopback.port())).is_err());
        drop(loopback);
        assert_eq!(pool.unused.lock().unwrap().len(), 1);
        let _again = pool.listen(&mechanisms).unwrap();
        assert_eq!(pool.unused.lock().unwrap().len(), 0);
    }
}
