//! The host's side: processes that inspect, and what becomes of inspections when one of them dies.
//!
//! They are copies of one that is started for them, the [`Template`].
//!
//! Each jail has a thread here that watches over it (the *warden*) and has another made when it is gone. What a jail reports is
//! passed on by whoever polls an inspection, or hears a bell: an event loop has its own ([`Bells`]), and for everybody else the
//! warden does. What a jail writes is believed as far as it is a message: it decides about the objects that it was given, and about
//! nothing else.
//!
//! A jail that dies, stands still or makes no sense costs the inspections that it had: they are [`Unfinished::Gone`], which is a
//! temporary refusal. Content that two jails died of is not given to a third for an hour.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use flow::{Context, Inspecting, Inspector, Progress, Unfinished, wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stream::Limits;

use crate::account::Account;
use crate::bells::Bells;
use crate::confine::Confined;
use crate::handle::Handle;
use crate::launch::Launch;
use crate::link::{Counts, Ends, HEARD_BYTES_MAX, Line, Woken};
use crate::patience::give_way;
use crate::protocol::{Place, Ready};
use crate::ring::{self, OWN_BELL, Reader, Shared, Writer};
use crate::suspects::{Sample, Suspects};
use crate::template::{ANSWER_WAIT, Copied, Signatures, Template};

/// How long a jail may make no progress while it works.
const STANDS_FOR: Duration = Duration::from_secs(60);

/// How long a jail may hear nothing while it has nothing to do: somebody has stopped it.
const DEAF_FOR: Duration = Duration::from_secs(10);

/// How long is waited before the next jail is started, after one that did not live long.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a jail lives that is no failure at its start.
const SHORT_LIFE: Duration = Duration::from_secs(2);

/// Settings that all jails of a set share.
pub struct Settings {
    /// How many there are.
    pub count: usize,
    /// The bounds of each inspection.
    pub limits: Limits,
    /// Bytes that all inspections of all jails may hold; one of them a quarter.
    pub memory_bytes: usize,
    /// Starter of the jails.
    pub launch: Box<dyn Launch>,
    /// The event loops that they may wake; everybody else is woken by a warden.
    pub bells: Arc<Bells>,
}

/// A set of jails with the same signatures. When it is dropped, and the last of its inspections, they end.
pub struct Jails {
    jails: Vec<Arc<Jail>>,
    next: AtomicUsize,
    takes_back: bool,
    bells: Arc<Bells>,
    /// Nobody wants inspections any more.
    is_over: Arc<AtomicBool>,
}

/// Facts about a jail.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// Number in the set, from 1 on.
    pub number: usize,
    /// Its process; none while there is none.
    pub pid: Option<u32>,
    /// Its memory that is in RAM, signatures that are mapped included, as it says.
    pub resident_bytes: u64,
    /// Inspections begun in this place.
    pub inspections: u64,
    /// Jails started in this place.
    pub starts: u64,
}

/// One jail after the other.
struct Jail {
    /// Number in the set, from 1 on.
    number: usize,
    line: Arc<Line>,
    common: Arc<Common>,
}

/// State that wardens and inspections share.
struct Common {
    signatures: Signatures,
    settings: Settings,
    /// Account of the memory that jails may borrow, and the file by which they see it.
    account: (Account, OwnedFd),
    /// Template of the jails, unless it was lost; none before the first.
    template: Mutex<Option<Arc<Template>>>,
}

impl Common {
    /// The template that there is, or a new one.
    fn template(&self) -> io::Result<Arc<Template>> {
        let mut template = self.template.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = template.as_ref().filter(|template| !template.is_lost()) {
            return Ok(template.clone());
        }
        let Settings { launch, limits, .. } = &self.settings;
        let new = Arc::new(Template::start(&**launch, limits.clone(), &self.signatures)?);
        Ok(template.insert(new).clone())
    }
}

impl Settings {
    /// Bytes of each jail's own: half of all, where there is anybody to share the other half with.
    fn own_bytes(&self) -> u64 {
        let parts = if self.count > 1 { 2 * self.count } else { 1 };
        (self.memory_bytes / parts) as u64
    }

    /// Bytes of the account: the rest.
    fn account_bytes(&self) -> u64 {
        self.memory_bytes as u64 - self.own_bytes() * self.count.max(1) as u64
    }
}

impl Jails {
    /// Starts them, and waits until all are ready. How they are confined is returned.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(
        settings: Settings,
        signatures: Signatures,
        counts: Arc<Counts>,
        suspects: Arc<Suspects>,
    ) -> io::Result<(Jails, Confined)> {
        let (count, takes_back, bells) = (settings.count.max(1), signatures.takes_back, settings.bells.clone());
        let is_over = Arc::new(AtomicBool::new(false));
        let account = Account::new(settings.account_bytes())?;
        let common = Arc::new(Common { signatures, settings, account, template: Mutex::default() });
        let mut jails =
            Jails { jails: Vec::new(), next: AtomicUsize::new(0), takes_back, bells, is_over: is_over.clone() };
        let (ready, readies) = mpsc::channel();
        for index in 0..count {
            let line = Arc::new(Line::new(counts.clone(), suspects.clone(), is_over.clone()));
            common.settings.bells.serve(&line);
            let jail = Arc::new(Jail { number: index + 1, line, common: common.clone() });
            let (held, ready) = (jail.clone(), ready.clone());
            std::thread::Builder::new().name(format!("warden-{index}")).spawn(move || {
                held.watch(&ready);
                held.leave();
            })?;
            jails.jails.push(jail);
        }
        drop(ready);
        let mut confined = None;
        for _ in 0..count {
            confined = Some(readies.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?);
        }
        let confined = confined.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((jails, confined))
    }

    /// Facts about each.
    pub fn processes(&self) -> Vec<Process> {
        let process = |jail: &Arc<Jail>| {
            let link = jail.line.lock();
            let told = |what| link.ends.as_ref().map_or(0, |ends| ends.reader.side().told(what));
            Process {
                number: jail.number,
                pid: link.pid,
                resident_bytes: told(ring::Told::ResidentBytes),
                inspections: link.begun,
                starts: link.starts,
            }
        };
        self.jails.iter().map(process).collect()
    }

    /// The process that the jails are copies of, unless it was lost: its number and its memory.
    pub fn template(&self) -> Option<Ready> {
        let common = &self.jails.first()?.common;
        // Who starts another holds it for as long as that takes.
        let template = common.template.try_lock().ok()?;
        template.as_ref().filter(|template| !template.is_lost()).map(|template| template.ready())
    }

    /// Bytes that inspections may still borrow, in all jails together.
    pub fn free_bytes(&self) -> u64 {
        let Some(jail) = self.jails.first() else { return 0 };
        let own_bytes = jail.common.settings.own_bytes();
        let free = |jail: &Arc<Jail>| {
            let link = jail.line.lock();
            link.ends.as_ref().map_or(own_bytes, |ends| ends.reader.side().told(ring::Told::FreeBytes))
        };
        self.jails.iter().map(free).sum::<u64>() + jail.common.account.0.free_bytes()
    }
}

impl Inspector for Jails {
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        let index = self.next.fetch_add(1, Relaxed) % self.jails.len();
        let line = self.jails[index].line.clone();
        let bell = self.bells.here();
        let stream = line.open(bell);
        let context = wire::write(&(bell, context), Vec::new());
        Box::new(Handle::new(line, stream, context))
    }

    fn takes_back(&self) -> bool {
        self.takes_back
    }
}

impl Drop for Jails {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        for jail in &self.jails {
            jail.line.lock().rouse();
        }
    }
}

impl Jail {
    /// Starts one jail after the other, until nobody wants them any more.
    fn watch(&self, ready: &mpsc::Sender<io::Result<Confined>>) {
        let mut told = false;
        while !self.is_over() {
            let began = Instant::now();
            match self.begin() {
                Ok((copied, host, confined)) => {
                    self.line.counts.started.fetch_add(1, Relaxed);
                    {
                        let mut link = self.line.lock();
                        (link.starts, link.pid) = (link.starts + 1, Some(copied.id()));
                    }
                    if !std::mem::replace(&mut told, true) {
                        let _ = ready.send(Ok(confined));
                    }
                    self.guard(&host);
                    let is_over = self.is_over();
                    // Whoever waits hears of it at once: its template may not answer, or another may be on its way.
                    let (ends, lost, worked_on) = self.bury();
                    let ended = copied.end();
                    // One that went with its template died of nothing that it was given.
                    if let (Ok(_), Some(sample)) = (&ended, worked_on) {
                        self.line.suspects.killed(&sample);
                    }
                    let status = ended.unwrap_or_else(|error| error.to_string());
                    if !is_over {
                        self.line.counts.lost.fetch_add(1, Relaxed);
                        tracing::error!(pid = copied.id(), status, inspections = lost, "an inspection process died");
                    }
                    let borrowed = ends.map_or(0, |ends| ends.reader.side().told(ring::Told::BorrowedBytes));
                    self.common.account.0.put_back(borrowed);
                }
                Err(error) if told => {
                    tracing::error!(%error, "an inspection process cannot be started");
                    self.line.lock().give_up();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            }
            if !self.is_over() && began.elapsed() < SHORT_LIFE {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// The template goes with the last warden, and not with whoever had the jails: he may not be allowed to end a process, and
    /// would wait for that for ever.
    fn leave(&self) {
        let template = self.common.template.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(template);
    }

    /// Whether the process is retired and has no inspections left.
    fn is_over(&self) -> bool {
        self.line.is_over() && self.line.lock().wards.is_empty()
    }

    /// Starts a process, and waits until it is ready.
    fn begin(&self) -> io::Result<(Copied, UnixStream, Confined)> {
        let template = self.common.template()?;
        let settings = &self.common.settings;
        let (shared, file) = Shared::new()?;
        let (jails_bell, own_bell) = (ring::bell()?, ring::bell()?);
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER_WAIT))?;
        let place = Place {
            number: self.number as u32,
            memory_bytes: settings.own_bytes(),
            share_bytes: settings.memory_bytes as u64 / 4,
            account_bytes: settings.account_bytes(),
        };
        let (_, account) = &self.common.account;
        let mut descriptors = vec![file.as_fd(), jails_bell.as_fd(), own_bell.as_fd(), account.as_fd(), theirs.as_fd()];
        descriptors.extend(settings.bells.ropes());
        let copied = template.copy(place, &descriptors)?;
        // If the process ends, nobody has it.
        drop(descriptors);
        drop(theirs);
        let mut code = [0];
        if let Err(error) = (&ours).read_exact(&mut code) {
            return Err(io::Error::other(format!("an inspection process: {error} ({})", end(&copied))));
        }
        let [to_jail, from_jail] = shared.sides();
        let ends = Ends { reader: Reader::new(from_jail, own_bell), writer: Writer::new(to_jail, jails_bell) };
        let mut link = self.line.lock();
        (link.ends, link.is_broken) = (Some(ends), false);
        link.wake_all();
        Ok((copied, ours, Confined::of(code[0])))
    }

    /// Passes on what the jail reports, until it is gone or has to go.
    fn guard(&self, host: &UnixStream) {
        let (mut seen, mut ticked) = ((0, Instant::now()), Instant::now());
        let Some(bell) =
            self.line.lock().ends.as_ref().and_then(|ends| ends.reader.bell().as_fd().try_clone_to_owned().ok())
        else {
            return;
        };
        loop {
            let may_sleep = {
                let mut woken = Woken::default();
                let mut link = self.line.lock();
                link.pass_on(&mut woken);
                if ticked.elapsed() >= Duration::from_secs(1) {
                    ticked = Instant::now();
                    link.tick();
                }
                give_way(link.wards.len());
                if link.is_broken {
                    tracing::error!("an inspection process sent invalid data");
                    return;
                }
                !link.is_awaited(OWN_BELL) || link.may_wait(OWN_BELL)
            };
            if self.is_over() || self.stands(&mut seen) {
                return;
            }
            if !may_sleep {
                continue;
            }
            let mut polled = [PollFd::new(&bell, PollFlags::IN), PollFd::new(host, PollFlags::IN | PollFlags::HUP)];
            let _ = poll(&mut polled, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
            let is_gone = !polled[1].revents().is_empty();
            let mut woken = Woken::default();
            let mut link = self.line.lock();
            if let Some(ends) = &link.ends {
                ends.reader.awake();
            }
            if is_gone {
                // What it has said before it went counts: no more than the ring holds.
                (0..=ring::FROM_JAIL_BYTES / HEARD_BYTES_MAX).for_each(|_| _ = link.pass_on(&mut woken));
                return;
            }
        }
    }

    /// Whether it works on something and comes no further, or does not even begin.
    fn stands(&self, seen: &mut (u64, Instant)) -> bool {
        let link = self.line.lock();
        let Some(ends) = &link.ends else { return false };
        let side = ends.reader.side();
        let (progress, works) = (side.told(ring::Told::Progress), side.told(ring::Told::Working) != 0);
        if progress != seen.0 || !works && !ends.writer.is_unheard() {
            *seen = (progress, Instant::now());
        }
        let stands = seen.1.elapsed() > if works { STANDS_FOR } else { DEAF_FOR };
        if stands {
            tracing::error!(seconds = seen.1.elapsed().as_secs(), "an inspection process makes no progress");
        }
        stands
    }

    /// The jail is gone, or has to go: whatever it had has no verdict. Returns the way to it, how many inspections it had, and what
    /// it worked on.
    fn bury(&self) -> (Option<Ends>, usize, Option<Sample>) {
        let mut link = self.line.lock();
        link.closing.clear();
        let (ends, lost) = (link.ends.take(), link.wards.len());
        let working = ends.as_ref().map_or(0, |ends| ends.reader.side().told(ring::Told::Working));
        let killer = working.checked_sub(1).and_then(|stream| u32::try_from(stream).ok());
        link.pid = None;
        let worked_on = killer.and_then(|stream| link.wards.get(&stream)).map(|ward| ward.sample.clone());
        // What it had not heard of goes to the next.
        for ward in link.wards.values_mut().filter(|ward| ward.is_begun && ward.progress != Some(Progress::Done)) {
            ward.progress = Some(Progress::Lost(Unfinished::Gone));
        }
        link.wake_all();
        (ends, lost, worked_on)
    }
}

/// Ends a process, and says how it has ended.
fn end(copied: &Copied) -> String {
    copied.end().unwrap_or_else(|error| error.to_string())
}
