//! How a jail begins: what it is handed over a socket, in both directions.
//!
//! The host writes the length of a [`Start`], with the descriptors beside it, and the [`Start`]; the jail answers with one byte
//! that says how it is confined, and from then on the socket says only that the other side lives.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use flow::wire;
use inspect::{Engine, RuleFiles, Scorer};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage};
use rustix::net::{SendFlags, recvmsg, sendmsg};
use scan::{Database, Owner};

use crate::account::Account;
use crate::cell::Cell;
use crate::confine::confine;
use crate::local::Local;
use crate::map::map;
use crate::memory::Memory;
use crate::protocol::Start;
use crate::ring::{Reader, Shared, Writer};

/// The memory of the rings, the bell of the jail, that of the host, the account, the signatures, what lies over them, and rules.
pub const DESCRIPTORS_MAX: usize = 7;

/// The longest [`Start`].
const START_BYTES_MAX: usize = 16 << 20;

/// Hands everything to a jail.
///
/// # Errors
/// When it is gone.
pub fn send(mut host: &UnixStream, start: &Start, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let message = wire::write(start, Vec::new());
    let len = (message.len() as u32).to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(host.as_fd(), &[io::IoSlice::new(&len)], &mut beside, SendFlags::NOSIGNAL)?;
    host.write_all(&message)
}

fn receive(mut host: &UnixStream) -> io::Result<(Start, Vec<OwnedFd>)> {
    let mut len = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(host.as_fd(), &mut [io::IoSliceMut::new(&mut len)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    host.read_exact(&mut len[got.bytes..])?;
    let len = u32::from_le_bytes(len) as usize;
    if len > START_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; len];
    host.read_exact(&mut message)?;
    let start = wire::read(&message).map_err(|error| io::Error::other(error.to_string()))?;
    Ok((start, descriptors))
}

/// Gives up what a jail gives up, and says what of it is in force: what can be had on this machine.
pub fn probe() -> ExitCode {
    match confine() {
        Ok(confined) => {
            let _ = rustix::io::write(io::stdout(), format!("{confined}\n").as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = rustix::io::write(io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::from(2)
        }
    }
}

/// Runs this process as a jail, that a host has started with a socket as its standard input: until the host is gone.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sluice: jail: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve() -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    let host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let (start, descriptors) = receive(&host).map_err(failed)?;
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next().ok_or("too few descriptors");
    let (rings, own_bell, hosts_bell, account) = (next()?, next()?, next()?, next()?);
    let signatures = File::from(next()?);
    let overlay = if start.has_overlay { Some(File::from(next()?)) } else { None };
    let rules = if start.has_rules { Some(File::from(next()?)) } else { None };

    // They are mapped, and not looked at: that comes later.
    let [to_jail, from_jail] = Shared::open(&rings).map_err(failed)?.sides();
    let account = Account::open(&account, start.account_bytes).map_err(failed)?.with_ledger(from_jail.clone());
    let signatures = map(&signatures).map_err(failed)?;
    let overlay = overlay.as_ref().map(map).transpose().map_err(failed)?;
    let rules = rules.as_ref().map(map).transpose().map_err(failed)?;
    let memory_in_ram = File::open("/proc/self/statm").ok();
    let confined = confine()?;
    let database = Arc::new(database(&start, signatures, overlay)?);
    let engine = Engine { database, limits: start.limits };
    let memory = Arc::new(Memory::with_account(start.memory_bytes as usize, start.share_bytes as usize, account));
    let inspector = Local::new(Arc::new(engine), Some(memory.clone()));
    let inspector = match rules {
        Some(rules) => {
            let files: RuleFiles = wire::read((*rules).as_ref()).map_err(|error| format!("rules: {error}"))?;
            inspector.scoring_here(Arc::new(Scorer::new(&files)))
        }
        None => inspector,
    };
    // Not as a socket: to send is none of the calls that are left.
    rustix::io::write(&host, &[confined.code()]).map_err(|error| error.to_string())?;
    let (reader, writer) = (Reader::new(to_jail, own_bell), Writer::new(from_jail, hosts_bell));
    let cell = Cell::new(inspector, &memory, reader, writer, host.into()).with_statm(memory_in_ram);
    cell.run().map_err(|_| "the host makes no sense".into())
}

/// The signatures that were handed over.
fn database(start: &Start, signatures: Owner, overlay: Option<Owner>) -> Result<Database, String> {
    let load = |owner| Database::load(owner).map_err(|error| error.to_string());
    let database = load(signatures)?;
    let database = match overlay {
        Some(overlay) => {
            let replaced: Vec<&str> = start.replaced.iter().map(|file| &**file).collect();
            database.with_overlay(load(overlay)?, &replaced)
        }
        None => database,
    };
    Ok(database.dated(start.now))
}
