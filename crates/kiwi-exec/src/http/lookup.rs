//! From names to addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

type Names = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Looks up names: by asking the system, unless told otherwise.
#[derive(Clone)]
pub(super) struct Lookup(Arc<Names>);

impl Lookup {
    pub fn new(names: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(names))
    }

    /// All addresses of a name, and at least one.
    pub async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let (names, name) = (Arc::clone(&self.0), name.to_owned());
        // The system's own way blocks.
        let found = tokio::task::spawn_blocking(move || names(&name)).await.map_err(io::Error::other)??;
        if found.is_empty() { Err(io::Error::other("the name has no address")) } else { Ok(found) }
    }
}

impl Default for Lookup {
    fn default() -> Self {
        Self::new(|name| Ok((name, 0).to_socket_addrs()?.map(|address: SocketAddr| address.ip()).collect()))
    }
}

impl std::fmt::Debug for Lookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lookup")
    }
}
