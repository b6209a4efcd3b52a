//! The host's side: processes that inspect, and what becomes of inspections when one of them dies.
//!
//! Each jail has a thread here that waits for it (the *warden*): it passes on what the jail reports to whoever waits for that,
//! and starts another when it is gone. Whoever polls an inspection passes on what is there already, so under load the warden
//! sleeps. What a jail writes is believed as far as it is a message: it decides about the objects that it was given, and about
//! nothing else.
//!
//! A jail that dies, stands still or makes no sense costs the inspections that it had: they are [`Unfinished::Gone`], which is a
//! temporary refusal. Content that two jails died of is not given to a third for an hour.
//!
//! Bounds: [`CREDIT_BYTES`] on their way to an inspection, [`REPORTS_MAX`] reports that nobody has taken.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use flow::{Context, Inspecting, Inspector, Out, Progress, Unfinished, wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stream::Limits;

use crate::confine::Confined;
use crate::protocol::{Asked, CREDIT_BYTES, MESSAGE_BYTES_MAX, Start, Told, write_pieces};
use crate::ring::{self, Broken, PAYLOAD_BYTES_MAX, Reader, Shared, Writer};
use crate::start;
use crate::suspects::{Sample, Suspects};

/// Reports of one inspection that nobody has taken; a jail that sends more is broken.
const REPORTS_MAX: usize = 100_000;

/// How long a jail may take to begin: it maps the signatures.
const BEGIN_WAIT: Duration = Duration::from_secs(60);

/// How long a jail may make no progress while it works.
const STANDS_FOR: Duration = Duration::from_secs(60);

/// How long is waited before the next jail is started, after one that did not live long.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a jail lives that is no failure at its start.
const SHORT_LIFE: Duration = Duration::from_secs(2);

/// Signatures as they are handed to jails: compiled, in files.
pub struct Signatures {
    /// The compiled signatures.
    pub base: OwnedFd,
    /// What lies over them, and the files whose signatures of before are not in force any more.
    pub overlay: Option<(OwnedFd, Vec<Box<str>>)>,
    /// Whether some of them may take back what was reported.
    pub takes_back: bool,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// What all jails of a set share.
pub struct Settings {
    /// How many there are.
    pub count: usize,
    /// The bounds of each inspection.
    pub limits: Limits,
    /// Bytes that all inspections of all jails may hold; one of them a quarter.
    pub memory_bytes: usize,
    /// The user that jails become, where the process may do that.
    pub user: Option<u32>,
}

/// A set of jails with the same signatures. When it is dropped, and the last of its inspections, they end.
pub struct Jails {
    jails: Vec<Arc<Jail>>,
    next: AtomicUsize,
    takes_back: bool,
}

/// What is counted of jails, for the whole run of the program.
#[derive(Debug, Default)]
pub struct Counts {
    /// Jails that were started.
    pub started: AtomicU64,
    /// Jails that ended by themselves.
    pub lost: AtomicU64,
    /// Objects that were not given to a jail because others had died of them.
    pub banned: AtomicU64,
}

/// One jail after the other.
struct Jail {
    link: Mutex<Link>,
    common: Arc<Common>,
}

/// What wardens and inspections need to know.
struct Common {
    signatures: Signatures,
    settings: Settings,
    counts: Arc<Counts>,
    suspects: Arc<Suspects>,
    /// Nobody wants inspections any more.
    is_over: AtomicBool,
}

/// The way to the jail that there is.
struct Link {
    /// None while there is no jail.
    ends: Option<Ends>,
    wards: HashMap<u32, Ward>,
    next_stream: u32,
    /// Inspections that nobody wants any more, and the jail has not heard of it.
    closing: Vec<u32>,
    /// The jail has written what cannot be: nothing more of it is read.
    is_broken: bool,
}

struct Ends {
    reader: Reader,
    writer: Writer,
}

/// What is known of an inspection.
#[derive(Default)]
struct Ward {
    reports: VecDeque<Out>,
    piece: Vec<u8>,
    /// Bytes that it has taken.
    taken: u64,
    progress: Option<Progress>,
    waker: Option<Waker>,
    sample: Sample,
    /// Whether the jail has heard of it.
    is_begun: bool,
    /// Whether it may wait for room to write, and not for the jail.
    wants_room: bool,
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
        let (count, takes_back) = (settings.count.max(1), signatures.takes_back);
        let is_over = AtomicBool::new(false);
        let common = Arc::new(Common { signatures, settings, counts, suspects, is_over });
        let mut jails = Jails { jails: Vec::new(), next: AtomicUsize::new(0), takes_back };
        let (ready, readies) = mpsc::channel();
        for index in 0..count {
            let link =
                Link { ends: None, wards: HashMap::new(), next_stream: 0, closing: Vec::new(), is_broken: false };
            let jail = Arc::new(Jail { link: Mutex::new(link), common: common.clone() });
            let (held, ready) = (jail.clone(), ready.clone());
            std::thread::Builder::new().name(format!("warden-{index}")).spawn(move || held.watch(&ready))?;
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

    /// Bytes that inspections may still borrow, in all jails together.
    pub fn free_bytes(&self) -> u64 {
        let free = |jail: &Arc<Jail>| {
            let link = jail.lock();
            link.ends.as_ref().map_or(0, |ends| ends.reader.side().told(ring::Told::FreeBytes))
        };
        self.jails.iter().map(free).sum()
    }
}

impl Inspector for Jails {
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        let index = self.next.fetch_add(1, Relaxed) % self.jails.len();
        let jail = self.jails[index].clone();
        let stream = jail.open();
        let context = wire::write(&context, Vec::new());
        Box::new(Handle {
            jail,
            stream,
            context,
            opened: 0,
            fed: 0,
            end: End::Open,
            stop: None,
            reports: VecDeque::new(),
        })
    }

    fn takes_back(&self) -> bool {
        self.takes_back
    }
}

impl Drop for Jails {
    fn drop(&mut self) {
        if let Some(jail) = self.jails.first() {
            jail.common.is_over.store(true, Relaxed);
        }
        for jail in &self.jails {
            jail.lock().knock();
        }
    }
}

impl Jail {
    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> u32 {
        let mut link = self.lock();
        // Numbers come round after four thousand million; none of those that are open is taken again.
        while link.wards.contains_key(&link.next_stream) {
            link.next_stream = link.next_stream.wrapping_add(1);
        }
        let stream = link.next_stream;
        link.next_stream = stream.wrapping_add(1);
        link.wards.insert(stream, Ward::default());
        stream
    }

    /// Starts one jail after the other, until nobody wants them any more.
    fn watch(&self, ready: &mpsc::Sender<io::Result<Confined>>) {
        let mut told = false;
        while !self.is_over() {
            let began = Instant::now();
            match self.begin() {
                Ok((mut child, host, confined)) => {
                    self.common.counts.started.fetch_add(1, Relaxed);
                    if !std::mem::replace(&mut told, true) {
                        let _ = ready.send(Ok(confined));
                    }
                    self.guard(&host);
                    let is_over = self.is_over();
                    let _ = child.kill();
                    let status = child.wait();
                    if !is_over {
                        self.common.counts.lost.fetch_add(1, Relaxed);
                        let lost = self.lock().wards.len();
                        tracing::error!(status = ?status.ok(), inspections = lost, "an inspection process is gone");
                    }
                    self.bury();
                }
                Err(error) if told => {
                    tracing::error!(%error, "an inspection process cannot be started");
                    self.lock().give_up();
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

    /// Whether nobody wants it any more, and nobody has anything in it.
    fn is_over(&self) -> bool {
        self.common.is_over.load(Relaxed) && self.lock().wards.is_empty()
    }

    /// Starts a process.
    fn begin(&self) -> io::Result<(Child, UnixStream, Confined)> {
        let Common { signatures, settings, .. } = &*self.common;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("sluice").arg("jail").env_clear().current_dir("/");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        if let Some(user) = settings.user {
            command.uid(user).gid(user);
        }
        let mut child = command.spawn()?;
        drop(command);
        let began = self.introduce(&ours, signatures, settings);
        match began {
            Ok(confined) => Ok((child, ours, confined)),
            Err(error) => {
                let _ = child.kill();
                let status = child.wait()?;
                Err(io::Error::other(format!("{error} ({status})")))
            }
        }
    }

    /// Hands a process what it needs, and waits until it is ready.
    fn introduce(&self, mut host: &UnixStream, signatures: &Signatures, settings: &Settings) -> io::Result<Confined> {
        let (shared, file) = Shared::new()?;
        let (jails_bell, own_bell) = (ring::bell()?, ring::bell()?);
        let overlay = signatures.overlay.as_ref();
        let memory_bytes = (settings.memory_bytes / settings.count.max(1)) as u64;
        let start = Start {
            limits: settings.limits.clone(),
            memory_bytes,
            share_bytes: (settings.memory_bytes as u64 / 4).min(memory_bytes),
            has_overlay: overlay.is_some(),
            replaced: overlay.map_or_else(Vec::new, |(_, replaced)| replaced.clone()),
            now: signatures.now,
        };
        let mut descriptors = vec![file.as_fd(), jails_bell.as_fd(), own_bell.as_fd(), signatures.base.as_fd()];
        descriptors.extend(overlay.map(|(overlay, _)| overlay.as_fd()));
        start::send(host, &start, &descriptors)?;
        host.set_read_timeout(Some(BEGIN_WAIT))?;
        let mut code = [0];
        host.read_exact(&mut code).map_err(|error| io::Error::other(format!("an inspection process: {error}")))?;
        let [to_jail, from_jail] = shared.sides();
        let ends = Ends { reader: Reader::new(from_jail, own_bell), writer: Writer::new(to_jail, jails_bell) };
        let mut link = self.lock();
        (link.ends, link.is_broken) = (Some(ends), false);
        link.wake_all();
        Ok(Confined::of(code[0]))
    }

    /// Passes on what the jail reports, until it is gone or has to go.
    fn guard(&self, host: &UnixStream) {
        let mut seen = (0, Instant::now());
        let Some(bell) =
            self.lock().ends.as_ref().and_then(|ends| ends.reader.bell().as_fd().try_clone_to_owned().ok())
        else {
            return;
        };
        loop {
            let may_sleep = {
                let mut link = self.lock();
                link.pass_on();
                if link.is_broken {
                    tracing::error!("an inspection process makes no sense");
                    return;
                }
                link.ends.as_ref().is_none_or(|ends| ends.reader.may_sleep())
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
            let mut link = self.lock();
            if let Some(ends) = &link.ends {
                ends.reader.awake();
            }
            if is_gone {
                // What it has said before it went counts.
                link.pass_on();
                return;
            }
        }
    }

    /// Whether it works on something and comes no further.
    fn stands(&self, seen: &mut (u64, Instant)) -> bool {
        let link = self.lock();
        let Some(ends) = &link.ends else { return false };
        let side = ends.reader.side();
        let (progress, works) = (side.told(ring::Told::Progress), side.told(ring::Told::Working) != 0);
        if progress != seen.0 || !works {
            *seen = (progress, Instant::now());
        }
        let stands = seen.1.elapsed() > STANDS_FOR;
        if stands {
            tracing::error!(seconds = seen.1.elapsed().as_secs(), "an inspection process stands still");
        }
        stands
    }

    /// The jail is gone: whatever it had has no verdict, and what it worked on is remembered.
    fn bury(&self) {
        let mut link = self.lock();
        link.closing.clear();
        let worked_on = link.ends.take().map(|ends| ends.reader.side().told(ring::Told::Working));
        let killer = worked_on.and_then(|stream| u32::try_from(stream.checked_sub(1)?).ok());
        if let Some(ward) = killer.and_then(|stream| link.wards.get(&stream)) {
            self.common.suspects.killed(&ward.sample);
        }
        // What it had not heard of goes to the next.
        for ward in link.wards.values_mut().filter(|ward| ward.is_begun && ward.progress != Some(Progress::Done)) {
            ward.progress = Some(Progress::Lost(Unfinished::Gone));
        }
        link.wake_all();
    }
}

impl Link {
    fn wake_all(&mut self) {
        self.wards.values_mut().filter_map(|ward| ward.waker.take()).for_each(Waker::wake);
    }

    /// There is no jail, and none to come for now.
    fn give_up(&mut self) {
        self.wards.values_mut().for_each(|ward| ward.progress = Some(Progress::Lost(Unfinished::Gone)));
        self.wake_all();
    }

    /// Passes on all that is there.
    fn pass_on(&mut self) {
        let outcome = self.hear();
        self.is_broken |= outcome.is_err();
    }

    fn hear(&mut self) -> Result<(), Broken> {
        let Some(ends) = self.ends.as_mut().filter(|_| !self.is_broken) else { return Ok(()) };
        let mut heard = false;
        while let Some(frame) = ends.reader.read()? {
            heard = true;
            let told = Told::of(frame.kind).ok_or(Broken)?;
            // What nobody wants any more may still be reported.
            let Some(ward) = self.wards.get_mut(&frame.stream) else { continue };
            match told {
                Told::OutMore | Told::Out => {
                    if ward.piece.len() + frame.payload.len() > MESSAGE_BYTES_MAX || ward.reports.len() > REPORTS_MAX {
                        return Err(Broken);
                    }
                    ward.piece.extend_from_slice(frame.payload);
                    if told == Told::Out {
                        ward.reports.push_back(wire::read(&ward.piece).map_err(|_| Broken)?);
                        ward.piece.clear();
                        ward.piece.shrink_to(PAYLOAD_BYTES_MAX);
                    }
                }
                Told::Took(progress) => {
                    ward.taken = u64::from_le_bytes(frame.payload.try_into().map_err(|_| Broken)?);
                    ward.progress = Some(progress);
                    ward.waker.take().into_iter().for_each(Waker::wake);
                }
            }
        }
        while let Some(&stream) = self.closing.last()
            && ends.writer.write(stream, Asked::Close.kind(), &[])
        {
            self.closing.pop();
        }
        if ends.writer.room().is_some_and(|room| room > 0) {
            // Whatever they wait for, they look for themselves.
            self.wards
                .values_mut()
                .filter(|ward| ward.wants_room)
                .filter_map(|ward| ward.waker.take())
                .for_each(Waker::wake);
        }
        if heard {
            // There is room again where it may have waited for some.
            self.knock();
        }
        Ok(())
    }

    /// Wakes the jail, if it sleeps.
    fn knock(&self) {
        if let Some(ends) = &self.ends {
            ends.writer.ring();
        }
    }
}

/// An inspection in a jail.
struct Handle {
    jail: Arc<Jail>,
    stream: u32,
    /// The context, and how much of it has been sent.
    context: Vec<u8>,
    opened: usize,
    fed: u64,
    end: End,
    /// A finding that it is to end with.
    stop: Option<&'static str>,
    reports: VecDeque<Out>,
}

/// How far the end of the content is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// It is complete, and the jail has not heard of it.
    Due,
    Told,
}

impl Handle {
    /// Sends what has to be sent before content.
    fn announce(&mut self, writer: &mut Writer) -> bool {
        let kinds = [Asked::OpenMore.kind(), Asked::Open.kind()];
        self.opened = write_pieces(writer, self.stream, kinds, &self.context, self.opened);
        let is_open = self.opened == self.context.len();
        if is_open {
            (self.context, self.opened) = (Vec::new(), 0);
        }
        is_open
    }

    /// How far it is, as far as the jail has said.
    fn progress(&mut self, link: &mut Link) -> Option<Progress> {
        let (stream, fed) = (self.stream, self.fed);
        let ward = link.wards.get_mut(&stream)?;
        self.reports.append(&mut ward.reports);
        let (progress, taken) = (ward.progress, ward.taken);
        if let Some(Progress::Done | Progress::Lost(_)) = progress {
            return progress;
        }
        let ends = link.ends.as_mut()?;
        ward.is_begun = true;
        if !self.announce(&mut ends.writer) {
            return None;
        }
        self.stop.take_if(|name| ends.writer.write(stream, Asked::Stop.kind(), name.as_bytes()));
        match self.end {
            End::Told => None,
            End::Due if ends.writer.write(stream, Asked::Finish.kind(), &[]) => {
                self.end = End::Told;
                None
            }
            End::Due => None,
            // Whoever waits for it may have to send what is cleared, so all of it is waited for.
            End::Open if taken < fed || ends.writer.room().is_none_or(|room| room == 0) => None,
            End::Open if progress == Some(Progress::Stopped) => Some(Progress::Stopped),
            End::Open => Some(Progress::Hungry),
        }
    }
}

impl Inspecting for Handle {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let jail = self.jail.clone();
        let mut link = jail.lock();
        let link = &mut *link;
        let Some(ward) = link.wards.get_mut(&self.stream) else { return bytes.len() };
        if let Some(Progress::Done | Progress::Lost(_)) = ward.progress {
            return bytes.len();
        }
        if jail.common.suspects.is_banned(ward.sample.take(bytes)) {
            jail.common.counts.banned.fetch_add(1, Relaxed);
            tracing::warn!("content that inspection processes died of is not inspected again for a time");
            ward.progress = Some(Progress::Lost(Unfinished::Gone));
            return bytes.len();
        }
        let taken = ward.taken;
        let Some(ends) = &mut link.ends else { return 0 };
        ward.is_begun = true;
        if !self.announce(&mut ends.writer) {
            return 0;
        }
        let credit = CREDIT_BYTES.saturating_sub(self.fed.saturating_sub(taken)) as usize;
        let count = bytes.len().min(credit).min(ends.writer.room().unwrap_or(0));
        if count == 0 || !ends.writer.write(self.stream, Asked::Feed.kind(), &bytes[..count]) {
            return 0;
        }
        self.fed += count as u64;
        count
    }

    fn finish(&mut self) {
        if self.end == End::Open {
            self.end = End::Due;
        }
    }

    fn stop(&mut self, name: &'static str) {
        self.stop = Some(name);
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let jail = self.jail.clone();
        let mut link = jail.lock();
        link.pass_on();
        let progress = self.progress(&mut link);
        link.knock();
        match progress {
            Some(progress) => Poll::Ready(progress),
            None if !link.wards.contains_key(&self.stream) => Poll::Ready(Progress::Lost(Unfinished::Gone)),
            None => {
                if let Some(ward) = link.wards.get_mut(&self.stream) {
                    ward.waker = Some(context.waker().clone());
                    ward.wants_room = self.end == End::Due || !self.context.is_empty() || ward.taken == self.fed;
                }
                Poll::Pending
            }
        }
    }

    fn hear(&mut self) -> Option<Out> {
        self.reports.pop_front()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut link = self.jail.lock();
        let ward = link.wards.remove(&self.stream);
        let is_over = |ward: Ward| !ward.is_begun || matches!(ward.progress, Some(Progress::Done | Progress::Lost(_)));
        if !ward.is_none_or(is_over) && link.ends.is_some() {
            link.closing.push(self.stream);
            link.pass_on();
        }
        link.knock();
    }
}
