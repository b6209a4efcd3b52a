//! The store of a running server as the next hop `store:` of another process: of a command that releases what was kept.
//!
//! The command's end of each connection is a socket of its own; two threads carry bytes between it and the control socket of the store.

use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use edge::upstream::within::{self, Caller};

use super::{callers, control};
use crate::config::Config;

/// Mail for `store:` goes to the store of this configuration from here on, if it has one.
pub fn offer(config: &Config) {
    let Some(volume) = config.store.as_ref().map(|store| store.volume()) else { return };
    within::offer(Box::new(move |theirs, caller| {
        carry(&volume, &caller, &theirs).map_err(|error| {
            eprintln!("sluice: {}: {error}", control::path(&volume).display());
            theirs
        })
    }));
}

/// Begins a session with the server, and carries its bytes to and from `theirs`.
fn carry(volume: &Path, caller: &Caller, theirs: &UnixStream) -> io::Result<()> {
    let mut server = UnixStream::connect(control::path(volume))?;
    server.write_all(callers::line(caller).as_bytes())?;
    let theirs = theirs.try_clone()?;
    theirs.set_nonblocking(false)?;
    for (from, to) in [(server.try_clone()?, theirs.try_clone()?), (theirs, server)] {
        std::thread::Builder::new().name("store".into()).spawn(move || copy(from, to))?;
    }
    Ok(())
}

fn copy(mut from: UnixStream, mut to: UnixStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
