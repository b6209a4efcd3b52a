//! How jails begin: each is a copy of a process that has read what all of them know.
//!
//! That process, the *template*, is this program, started anew. It is handed the signatures and the rules over the socket that is
//! its standard input, reads them once, and from then on copies itself (fork(2)) for each jail that its host asks for: a jail
//! is there in a millisecond, and what was read lies in memory once however many there are. A template sees no byte of
//! anybody's content; whatever a copy is handed besides, it gives up the rest ([`confine`]) before it says that it is ready.
//!
//! A copy ends with its template, and the template with its host: without one it hears the end of the socket.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use flow::wire;
use inspect::{Engine, IntrusionFiles, IntrusionRules, PageFiles, PageRules, RuleFiles, Scorer};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage};
use rustix::net::{SendFlags, recvmsg, sendmsg};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::process::{getpid, getppid, kill_process, set_parent_process_death_signal, waitpid};
use scan::{Database, Owner};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::account::Account;
use crate::calls::{self, Calls};
use crate::cell::Cell;
use crate::confine::{confine, withdraw};
use crate::local::Local;
use crate::map::map;
use crate::memory::Memory;
use crate::protocol::{Place, Ready, Request, Start};
use crate::ring::{BELLS_MAX, Reader, Shared, Writer};
use crate::statm::resident_bytes;

/// Descriptors of a jail: the memory of the rings, its bell, that of the warden, the account, its socket, and the bells
/// of event loops. A template has fewer: signatures, an overlay, rules of spam, phrases and intrusion rules.
const DESCRIPTORS_MAX: usize = OF_EACH_JAIL + BELLS_MAX - 1;
const OF_EACH_JAIL: usize = 5;

/// The longest message.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Says something to a template, with descriptors beside it.
///
/// # Errors
/// When it is gone.
pub fn send(mut to: &UnixStream, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let message = wire::write(message, Vec::new());
    let len = (message.len() as u32).to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(to.as_fd(), &[io::IoSlice::new(&len)], &mut beside, SendFlags::NOSIGNAL)?;
    to.write_all(&len[sent..])?;
    to.write_all(&message)
}

/// The next message of the host; `None` when it is gone.
fn receive<T: DeserializeOwned>(mut host: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut len = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [io::IoSliceMut::new(&mut len)];
    let got = match recvmsg(host.as_fd(), slices, &mut beside, RecvFlags::CMSG_CLOEXEC) {
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        outcome => outcome?,
    };
    if got.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    host.read_exact(&mut len[got.bytes..])?;
    let len = u32::from_le_bytes(len) as usize;
    if len > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; len];
    host.read_exact(&mut message)?;
    let message = wire::read(&message).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Some((message, descriptors)))
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

/// Runs this process as the template of jails, that a host has started with a socket as its standard input, or as one of its
/// copies: until the host is gone.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sluice: jail: {error}");
            ExitCode::from(2)
        }
    }
}

/// Data that a template has read.
struct Known {
    engine: Arc<Engine>,
    scorer: Option<Arc<Scorer>>,
    pages: Option<Arc<PageRules>>,
    intrusion: Option<IntrusionRules>,
}

fn serve() -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    withdraw()?;
    // A kernel without the filter is told of by the copies.
    calls::confine(Calls::Template).map_err(|error| error.to_string())?;
    let host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let Some((start, descriptors)) = receive(&host).map_err(failed)? else { return Ok(()) };
    let known = Known::read(&start, descriptors)?;
    let resident_bytes = File::open("/proc/self/statm").map_or(0, resident_bytes);
    let ready = Ready { pid: std::process::id(), resident_bytes };
    rustix::io::write(&host, &ready.to_bytes()).map_err(|error| error.to_string())?;
    let own = getpid();
    while let Some((request, descriptors)) = receive(&host).map_err(failed)? {
        let answer = match request {
            Request::Copy(place) => match fork() {
                Ok(None) => {
                    drop(host);
                    return inmate(own, &known, &place, descriptors);
                }
                Ok(Some(pid)) => pid.as_raw_nonzero().get(),
                // Those that there are live on.
                Err(error) => -error.raw_os_error().unwrap_or(libc::EAGAIN),
            },
            Request::End(pid) => end(pid),
        };
        rustix::io::write(&host, &answer.to_le_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

impl Known {
    /// Reads what was handed over.
    fn read(start: &Start, descriptors: Vec<OwnedFd>) -> Result<Known, String> {
        let mut files = descriptors.into_iter().map(File::from);
        let mut next = || map(&files.next().ok_or("too few descriptors")?).map_err(|error| error.to_string());
        let signatures = next()?;
        let overlay = start.has_overlay.then(&mut next).transpose()?;
        let rules = start.has_rules.then(&mut next).transpose()?;
        let pages = start.has_pages.then(&mut next).transpose()?;
        let intrusion = start.has_intrusion.then(&mut next).transpose()?;
        let database = Arc::new(database(start, signatures, overlay)?);
        let engine = Arc::new(Engine { database, limits: start.limits.clone() });
        let scorer = match rules {
            Some(rules) => {
                let files: RuleFiles = wire::read((*rules).as_ref()).map_err(|error| format!("rules: {error}"))?;
                let scorer = Scorer::new(&files);
                scorer.build();
                Some(Arc::new(scorer))
            }
            None => None,
        };
        let pages = match pages {
            Some(pages) => {
                let files: PageFiles = wire::read((*pages).as_ref()).map_err(|error| format!("phrases: {error}"))?;
                Some(Arc::new(files.compile()))
            }
            None => None,
        };
        let intrusion = match intrusion {
            Some(files) => {
                let read = wire::read::<IntrusionFiles>((*files).as_ref());
                Some(read.map_err(|error| format!("intrusion rules: {error}"))?.compile())
            }
            None => None,
        };
        Ok(Known { engine, scorer, pages, intrusion })
    }
}

/// Another process with all that this one has; none in that one.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so nothing is left half done in its copy.
    #[allow(unsafe_code, reason = "a copy of a process with threads could not go on")]
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(pid)) }
}

/// Ends a copy of this process, and says how it has ended, as wait(2) does; less than 0 if there is none.
fn end(pid: u32) -> i32 {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return -1 };
    // Until it is waited for, its number is nobody else's.
    let _ = kill_process(pid, Signal::KILL);
    match waitpid(Some(pid), WaitOptions::empty()) {
        Ok(Some((_, status))) => status.as_raw(),
        _ => -1,
    }
}

/// Works as a jail, until the host is gone.
fn inmate(template: Pid, known: &Known, place: &Place, mut descriptors: Vec<OwnedFd>) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    // Of one that ended before, nothing is heard.
    if getppid() != Some(template) {
        return Ok(());
    }
    let name = CString::new(format!("sluice: jail {}", place.number)).unwrap_or_default();
    let _ = rustix::thread::set_name(&name);
    let bells = descriptors.split_off(OF_EACH_JAIL.min(descriptors.len()));
    let Ok([rings, own_bell, hosts_bell, account, host]) = <[OwnedFd; OF_EACH_JAIL]>::try_from(descriptors) else {
        return Err("too few descriptors".into());
    };
    // The way to the template's host is none of its own.
    rustix::stdio::dup2_stdin(&host).map_err(|error| error.to_string())?;
    let [to_jail, from_jail] = Shared::open(&rings).map_err(failed)?.sides();
    let account = Account::open(&account, place.account_bytes).map_err(failed)?.with_ledger(from_jail.clone());
    let memory_in_ram = File::open("/proc/self/statm").ok();
    let confined = confine()?;
    let memory = Arc::new(Memory::with_account(place.memory_bytes as usize, place.share_bytes as usize, account));
    let inspector = Local::new(known.engine.clone(), Some(memory.clone()))
        .with_pages(known.pages.clone())
        .with_intrusion(known.intrusion.clone());
    let inspector = match &known.scorer {
        Some(scorer) => inspector.scoring_here(scorer.clone()),
        None => inspector,
    };
    // Not as a socket: to send is none of the calls that are left.
    rustix::io::write(&host, &[confined.code()]).map_err(|error| error.to_string())?;
    let (reader, writer) = (Reader::new(to_jail, own_bell), Writer::new(from_jail, hosts_bell).with_bells(bells));
    let cell = Cell::new(inspector, &memory, reader, writer, host).with_statm(memory_in_ram);
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
