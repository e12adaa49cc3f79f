//! Callers of a server, and how much they have proven about themselves.

/// Peer of a connection, as its server sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The transport: `stdio`, `unix`, `http`, `websocket` or `grpc`.
    pub transport: &'static str,
    /// The identity that the transport has verified.
    pub identity: Identity,
}

impl Peer {
    /// The process that started this one and holds its standard streams.
    pub fn this_process() -> Peer {
        Peer { transport: "stdio", identity: Identity::ThisProcess }
    }
}

/// A verified identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The parent process, over standard input and output.
    ThisProcess,
    /// A process of this user: loopback without credentials.
    Loopback,
    /// The user id at the other end of a Unix socket, as the kernel reports it.
    Uid(u32),
    /// The name that a bearer token or API key was issued to.
    Token(String),
    /// The subject of a verified client certificate.
    Certificate(String),
}
