//! The mail store of this process as a next hop: pairs of sockets that nobody else sees.
//!
//! There is one for the whole run of the program, whatever is reloaded. Whoever connects before it is there waits for its
//! greeting.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use proto::smtp::Protocol;

use crate::net::stream::Stream;

/// Serves a connection; gives it back if it does not any more.
pub type Store = Box<dyn Fn(UnixStream, Protocol) -> Result<(), UnixStream> + Send + Sync>;

static STORE: OnceLock<Store> = OnceLock::new();

/// Mail may go to this store from here on: the first that is offered stays.
pub fn offer(store: Store) {
    let _ = STORE.set(store);
}

/// Connects to the store.
///
/// # Errors
/// When there is none, or it takes no more mail.
pub fn connect(protocol: Protocol) -> io::Result<Stream> {
    let store = STORE.get().ok_or_else(|| io::Error::other("there is no store in this process"))?;
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    store(theirs, protocol).map_err(|_| io::Error::other("the store is closing"))?;
    Ok(Stream::Unix(tokio::net::UnixStream::from_std(ours)?))
}
