//! The way to a jail, as everybody shares it who has an inspection there: the rings, and what is known of each inspection.
//!
//! Whoever holds the lock passes on all that the jail has said, to whomever it concerns. What a jail writes is believed as far as
//! it is a message.
//!
//! Bounds: [`REPORTS_MAX`] reports that nobody has taken; [`HEARD_BYTES_MAX`] passed on before others have their turns.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use flow::{Out, Progress, Unfinished, wire};

use crate::protocol::{Asked, MESSAGE_BYTES_MAX, Told};
use crate::ring::{Broken, HEADER_BYTES, OWN_BELL, PAYLOAD_BYTES_MAX, Reader, Whom, Writer};
use crate::suspects::{Sample, Suspects};

/// Unread reports of one inspection; a jail that sends more is broken.
const REPORTS_MAX: usize = 100_000;

/// Seconds that an inspection may keep whoever waits for it. Mail servers wait ten minutes for the reply to a message (RFC 5321
/// section 4.5.3.2.6).
const PATIENCE_SECONDS: u32 = 300;

/// Bytes passed on at once, and one frame more: a jail that writes without end keeps nobody from anything else.
pub(crate) const HEARD_BYTES_MAX: usize = 64 << 10;

/// Counts of jails, for the whole run of the program.
#[derive(Debug, Default)]
pub struct Counts {
    /// Jails that were started.
    pub started: AtomicU64,
    /// Jails that ended by themselves.
    pub lost: AtomicU64,
    /// Objects that were not given to a jail because others had died of them.
    pub banned: AtomicU64,
}

/// The way to one jail after the other.
pub struct Line {
    link: Mutex<Link>,
    /// Counts of all jails.
    pub counts: Arc<Counts>,
    /// Contents that jails died of.
    pub suspects: Arc<Suspects>,
    /// Nobody wants inspections any more.
    is_over: Arc<AtomicBool>,
}

/// The way to the jail that there is.
pub struct Link {
    /// None while there is no jail.
    pub ends: Option<Ends>,
    /// Inspections, by their streams.
    pub wards: HashMap<u32, Ward>,
    next_stream: u32,
    /// Inspections that were begun, in this jail and those before it.
    pub begun: u64,
    /// Jails that were started in this place, and the process of the one that there is.
    pub starts: u64,
    /// See [`Link::starts`].
    pub pid: Option<u32>,
    /// Inspections that nobody wants any more, and the jail has not heard of it.
    pub closing: Vec<u32>,
    /// The jail has written what cannot be: nothing more of it is read.
    pub is_broken: bool,
}

/// Wakers of inspections with news. They are woken when it is dropped: after the lock, on which they would wait.
#[derive(Default)]
pub struct Woken(Vec<Waker>);

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

/// Both rings.
pub struct Ends {
    /// Its messages.
    pub reader: Reader,
    /// Messages to it.
    pub writer: Writer,
}

/// State of an inspection.
#[derive(Default)]
pub struct Ward {
    /// Its reports that were not taken yet.
    pub reports: VecDeque<Out>,
    piece: Vec<u8>,
    /// Bytes that it has taken.
    pub taken: u64,
    /// Bytes that are to be taken before whoever waits is woken, unless it has ended.
    pub wanted: u64,
    /// How far it was when it said so last.
    pub progress: Option<Progress>,
    /// How many answers it had heard when it said last that it waits for another.
    pub waits: Option<u64>,
    /// Waker of its client.
    pub waker: Option<Waker>,
    /// Bell by which the jail wakes it.
    pub bell: u8,
    /// Sample by which it is recognised if a jail dies of it.
    pub sample: Sample,
    /// Whether the jail has heard of it.
    pub is_begun: bool,
    /// Whether it may wait for room to write, and not for the jail.
    pub wants_room: bool,
    /// Seconds that the client has waited for the next report; `None` while it does not wait.
    pub waited: Option<u32>,
}

impl Line {
    /// One without a jail.
    pub fn new(counts: Arc<Counts>, suspects: Arc<Suspects>, is_over: Arc<AtomicBool>) -> Line {
        let link = Link {
            ends: None,
            wards: HashMap::new(),
            next_stream: 0,
            begun: 0,
            starts: 0,
            pid: None,
            closing: Vec::new(),
            is_broken: false,
        };
        Line { link: Mutex::new(link), counts, suspects, is_over }
    }

    /// Whether nobody wants inspections any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Nobody else has it meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream for one more inspection, and who waits for it has this bell.
    pub fn open(&self, bell: u8) -> u32 {
        let mut link = self.lock();
        // Numbers come round after four thousand million; none of those that are open is taken again.
        while link.wards.contains_key(&link.next_stream) {
            link.next_stream = link.next_stream.wrapping_add(1);
        }
        let stream = link.next_stream;
        link.next_stream = stream.wrapping_add(1);
        link.wards.insert(stream, Ward { bell, ..Ward::default() });
        link.begun += 1;
        stream
    }
}

impl Link {
    /// Wakes everybody who waits.
    pub fn wake_all(&mut self) {
        self.wards.values_mut().filter_map(|ward| ward.waker.take()).for_each(Waker::wake);
    }

    /// Ends all inspections as lost: no jail is there, and none to come for now.
    pub fn give_up(&mut self) {
        self.wards.values_mut().for_each(|ward| ward.progress = Some(Progress::Lost(Unfinished::Gone)));
        self.wake_all();
    }

    /// A second has gone by: an inspection that keeps whoever waits for too long is lost to him, however busy its jail says it is.
    pub fn tick(&mut self) {
        for ward in self.wards.values_mut().filter(|ward| ward.is_begun) {
            let Some(waited) = &mut ward.waited else { continue };
            *waited += 1;
            if *waited == PATIENCE_SECONDS {
                tracing::error!(seconds = *waited, "an inspection process keeps an inspection waiting");
                ward.progress = Some(Progress::Lost(Unfinished::Gone));
                ward.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Passes on what is there, [`HEARD_BYTES_MAX`] of it at the most: whoever waits for more [looks](Link::may_wait) whether there
    /// is. Returns how much it was.
    pub fn pass_on(&mut self, woken: &mut Woken) -> usize {
        self.hear(woken).unwrap_or_else(|Broken| {
            self.is_broken = true;
            // Who guards it makes an end of it.
            self.rouse();
            0
        })
    }

    /// Passes on what is there for whoever has this bell, and has heard it; whether there is more, for when others had their turns.
    pub fn hear_bell(line: &Line, bell: u8) -> bool {
        let mut heard = 0;
        while heard < HEARD_BYTES_MAX {
            let mut woken = Woken::default();
            let mut link = line.lock();
            heard += link.pass_on(&mut woken);
            if link.is_broken || !link.is_awaited(bell) || link.may_wait(bell) {
                return false;
            }
        }
        true
    }

    fn hear(&mut self, woken: &mut Woken) -> Result<usize, Broken> {
        let mut heard = 0;
        let Some(ends) = self.ends.as_mut().filter(|_| !self.is_broken) else { return Ok(heard) };
        while heard < HEARD_BYTES_MAX
            && let Some(frame) = ends.reader.read()?
        {
            heard += HEADER_BYTES + frame.payload.len();
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
                Told::Waits => {
                    ward.waits = Some(u64::from_le_bytes(frame.payload.try_into().map_err(|_| Broken)?));
                    woken.0.extend(ward.waker.take());
                }
                Told::Took(progress) => {
                    ward.taken = u64::from_le_bytes(frame.payload.try_into().map_err(|_| Broken)?);
                    ward.progress = Some(progress);
                    if ward.taken >= ward.wanted || !matches!(progress, Progress::Hungry) {
                        woken.0.extend(ward.waker.take());
                    }
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
            let waiting = self.wards.values_mut().filter(|ward| ward.wants_room);
            woken.0.extend(waiting.filter_map(|ward| ward.waker.take()));
        }
        Ok(heard)
    }

    /// Wakes the jail, if it sleeps and there are so many bytes that it has not heard of.
    pub fn knock(&mut self, bytes_min: u64) {
        if let Some(ends) = &mut self.ends
            && ends.writer.unrung_bytes() >= bytes_min
        {
            ends.writer.ring(Whom::of(OWN_BELL));
        }
    }

    /// Says that somebody waits for this bell and what the jail reports; whether there is nothing yet.
    pub fn may_wait(&self, bell: u8) -> bool {
        self.ends.as_ref().is_none_or(|ends| ends.reader.may_sleep(bell))
    }

    /// Whether somebody waits for this bell.
    pub fn is_awaited(&self, bell: u8) -> bool {
        self.wards.values().any(|ward| ward.bell == bell && ward.waker.is_some())
    }

    /// Wakes whoever guards the jail.
    pub fn rouse(&self) {
        if let Some(ends) = &self.ends {
            ends.reader.rouse();
        }
    }
}
