//! The mail store of this process as a next hop: pairs of sockets that nobody else sees.
//!
//! There is one for the whole run of the program, whatever is reloaded. Whoever connects before it is there waits for its
//! greeting.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};

use crate::net::stream::Stream;

/// The client of a connection, as the store has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A client by LMTP.
    Lmtp,
    /// A client by SMTP.
    Smtp,
    /// A client by SMTP whose mail is relayed to any recipient.
    Insider,
    /// A command that releases mail of an account, which had logged in when the mail was kept.
    Account(Arc<str>),
}

impl Caller {
    /// Those that doors make.
    pub const DOORS: [Caller; 3] = [Caller::Lmtp, Caller::Smtp, Caller::Insider];
}

/// Serves a connection; gives it back if it does not any more.
pub type Store = Box<dyn Fn(UnixStream, Caller) -> Result<(), UnixStream> + Send + Sync>;

static STORE: OnceLock<Store> = OnceLock::new();

/// Mail may go to this store from here on: the first that is offered stays.
pub fn offer(store: Store) {
    let _ = STORE.set(store);
}

/// Connects to the store.
///
/// # Errors
/// When there is none, or it takes no more mail.
pub fn connect(caller: Caller) -> io::Result<Stream> {
    let store = STORE.get().ok_or_else(|| io::Error::other("there is no store in this process"))?;
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    store(theirs, caller).map_err(|_| io::Error::other("the store is closing"))?;
    Ok(Stream::Unix(tokio::net::UnixStream::from_std(ours)?))
}
