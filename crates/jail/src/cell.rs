//! The jail's side: inspections that take turns, until nobody is there any more to ask for them.
//!
//! One thread. It hears what is asked, gives every inspection that has something to do a turn, reports, and sleeps where
//! there is nothing to do. What it has no room to report waits, and so does the inspection.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use flow::{Inspecting, Inspector, Progress, Unfinished, wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;

use crate::company;
use crate::local::Local;
use crate::memory::Memory;
use crate::protocol::{Asked, MESSAGE_BYTES_MAX, Told, write_pieces};
use crate::ring::{self, BELLS_MAX, Broken, Head, OWN_BELL, Reader, TO_JAIL_BYTES, Whom, Writer};
use crate::statm::resident_bytes;
use crate::thrift::Thrift;

/// How long is slept where somebody else has to make room.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Bytes read after which the host hears that there is room again; less than any queue that is full.
const ROOM_BYTES: usize = TO_JAIL_BYTES / 4;

/// Content of all inspections that is taken from the queue before it can be inspected, and one frame more: as much as the queue
/// holds, so that those whose content lies behind another's have their turns beside it, and are hashed side by side.
const WAITING_BYTES_MAX: usize = TO_JAIL_BYTES;

/// The smallest frame whose content is inspected where it lies: a turn for less costs more than its copy.
const IN_PLACE_BYTES_MIN: usize = 16 << 10;

/// Bytes taken from the queue before all inspections with work have their turns.
const HEARD_BYTES_MAX: usize = TO_JAIL_BYTES;

/// Content that an inspection has taken before the host hears of it, while there is more.
const AHEAD_BYTES: u64 = 128 << 10;

/// How often it tidies up, and looks how much memory it has.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// How long is slept before it tidies up, and how often it does so when it has nothing to do: the second time hashes what waited at
/// the first, and the third frees the room of that.
const REST: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const RESTS: u32 = 3;

/// How long is slept at the most.
const SLEEP: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A jail that works.
pub struct Cell<'m> {
    inspector: Local,
    memory: &'m Memory,
    reader: Reader,
    writer: Writer,
    /// Ends when the host does.
    host: OwnedFd,
    wards: HashMap<u32, Ward>,
    /// Inspections that may have work.
    active: VecDeque<u32>,
    /// The file that says how much memory it has.
    statm: Option<File>,
    /// When it tidied up last, and how often since it heard anything.
    tidied: Instant,
    rests: u32,
    thrift: Thrift,
    /// Bytes that were read since the host heard of it last.
    read_bytes: usize,
    /// The queue was about full since: somebody may wait for room.
    was_full: bool,
    /// Bells to ring: the result or progress of an inspection is there, or room.
    news: Whom,
}

/// An inspection.
enum Ward {
    /// Its context comes in pieces.
    Announced(Vec<u8>),
    /// It runs.
    Running(Box<Running>),
}

struct Running {
    inspecting: Box<dyn Inspecting>,
    /// Bell of the inspection's client.
    bell: u8,
    waiting: Waiting,
    taken: u64,
    /// How much of that the host has been told.
    told: u64,
    /// How much somebody waits for.
    wanted: Option<u64>,
    /// Whether the awaited news has been told.
    is_news: bool,
    finish: Finish,
    /// A report that is not all written.
    report: Vec<u8>,
    written: usize,
    /// An answer that is not all here, and how many are.
    answer: Vec<u8>,
    heard: u64,
    /// Message to send when all is reported.
    owes: Option<Told>,
    is_active: bool,
}

/// Bytes that were fed and not taken, in the frames that they came in.
#[derive(Default)]
struct Waiting {
    frames: VecDeque<Vec<u8>>,
    /// How much of the first is taken.
    at: usize,
    /// How much is not.
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, frame: Vec<u8>) {
        if !frame.is_empty() {
            self.bytes += frame.len();
            self.frames.push_back(frame);
        }
    }

    /// The next bytes; `None` if all is taken.
    fn front(&self) -> Option<&[u8]> {
        self.frames.front().map(|frame| &frame[self.at..])
    }

    /// So many bytes of that are taken.
    fn take(&mut self, count: usize) {
        self.bytes -= count;
        self.at += count;
        if self.front().is_some_and(<[u8]>::is_empty) {
            self.frames.pop_front();
            self.at = 0;
        }
    }
}

/// How far the end of the content is.
#[derive(PartialEq, Eq)]
enum Finish {
    NotYet,
    Asked,
    Done,
}

impl<'m> Cell<'m> {
    /// One with nothing to do yet.
    pub fn new(inspector: Local, memory: &'m Memory, reader: Reader, writer: Writer, host: OwnedFd) -> Cell<'m> {
        let (wards, active) = (HashMap::new(), VecDeque::new());
        Cell {
            inspector,
            memory,
            reader,
            writer,
            host,
            wards,
            active,
            statm: None,
            tidied: Instant::now(),
            rests: 0,
            thrift: Thrift::default(),
            read_bytes: 0,
            was_full: false,
            news: Whom::default(),
        }
    }

    /// Tells how much memory it has by this file (proc_pid_statm(5)), if there is one.
    pub fn with_statm(self, statm: Option<File>) -> Cell<'m> {
        let cell = Cell { statm, ..self };
        cell.measure();
        cell
    }

    fn measure(&self) {
        if let Some(statm) = &self.statm {
            self.writer.side().tell(ring::Told::ResidentBytes, resident_bytes(statm));
        }
    }

    /// Frees memory that slow clients and gone ones do not need. If there is little work, the system gets it back.
    fn tidy(&mut self) {
        self.tidied = Instant::now();
        company::tidy();
        if self.thrift.look() {
            self.writer.trim();
        }
        self.rests += 1;
        self.measure();
    }

    /// Works until the host is gone.
    ///
    /// # Errors
    /// When what the host says makes no sense.
    pub fn run(mut self) -> Result<(), Broken> {
        let mut turns = 0_u64;
        loop {
            self.hear()?;
            let moved = self.round();
            turns += 1;
            if self.tidied.elapsed() >= TIDY_EVERY {
                self.tidy();
            }
            let side = self.writer.side();
            side.tell(ring::Told::Progress, turns);
            side.tell(ring::Told::FreeBytes, self.memory.free_bytes() as u64);
            self.tell_news();
            let nap = match () {
                () if !self.active.is_empty() && moved => continue,
                () if !self.active.is_empty() => NAP,
                () if !self.reader.may_sleep(OWN_BELL) => continue,
                () if self.rests < RESTS => REST,
                () => SLEEP,
            };
            if !self.sleep(&nap) {
                return Ok(());
            }
        }
    }

    /// Sleeps; whether the host is still there.
    fn sleep(&self, most: &Timespec) -> bool {
        let bell = self.reader.bell();
        let mut polled =
            [PollFd::new(&bell, PollFlags::IN), PollFd::new(&self.host, PollFlags::IN.union(PollFlags::HUP))];
        let _ = poll(&mut polled, Some(most));
        let gone = !polled[1].revents().is_empty();
        self.reader.awake();
        !gone
    }

    /// Takes what is asked, as long as there is not too much that waits already, and no more than the queue has room for, so that
    /// others have their turns: the rest stays there. Content of some size is inspected where it lies.
    fn hear(&mut self) -> Result<(), Broken> {
        let (mut waiting, mut heard) = (self.waiting_bytes(), 0);
        while waiting < WAITING_BYTES_MAX
            && heard < HEARD_BYTES_MAX
            && let Some(head) = self.reader.head()?
        {
            let (stream, asked) = (head.stream, Asked::of(head.kind).ok_or(Broken)?);
            heard += head.bytes();
            self.rests = 0;
            self.read_bytes += head.bytes();
            self.was_full |= self.reader.is_about_full();
            if asked == Asked::Feed && matches!(self.wards.get(&stream), Some(Ward::Running(_))) {
                waiting += self.take_content(&head);
                continue;
            }
            let frame = self.reader.read()?.ok_or(Broken)?;
            match (asked, self.wards.get_mut(&stream)) {
                (Asked::OpenMore | Asked::Open, None) => {
                    self.wards.insert(stream, Ward::Announced(frame.payload.to_vec()));
                }
                (Asked::OpenMore | Asked::Open, Some(Ward::Announced(context))) => {
                    if context.len() + frame.payload.len() > MESSAGE_BYTES_MAX {
                        return Err(Broken);
                    }
                    context.extend_from_slice(frame.payload);
                }
                (Asked::Finish, Some(Ward::Running(ward))) => ward.finish = Finish::Asked,
                (Asked::Want, Some(Ward::Running(ward))) => {
                    ward.wanted = Some(u64::from_le_bytes(frame.payload.try_into().map_err(|_| Broken)?));
                }
                (Asked::AnswerMore | Asked::Answer, Some(Ward::Running(ward))) => {
                    if let Some(answer) = ward.answered(frame.payload, asked == Asked::Answer)? {
                        ward.inspecting.answer(answer);
                    }
                }
                (Asked::RecalledMore | Asked::Recalled, Some(Ward::Running(ward))) => {
                    if let Some(recalled) = ward.answered(frame.payload, asked == Asked::Recalled)? {
                        ward.inspecting.recalled(recalled);
                    }
                }
                (Asked::Stop, Some(Ward::Running(ward))) => ward.inspecting.stop(stop_name(frame.payload)),
                (Asked::Close, _) => drop(self.wards.remove(&stream)),
                // Of one that is over more may be on its way.
                (Asked::Feed | Asked::Want | Asked::Finish | Asked::Stop, None) => {}
                (Asked::AnswerMore | Asked::Answer | Asked::RecalledMore | Asked::Recalled, None) => {}
                _ => return Err(Broken),
            }
            if asked == Asked::Open {
                self.open(stream)?;
            }
            self.wake(stream);
        }
        self.tell_of_room();
        Ok(())
    }

    /// Takes content; how much of it waits.
    fn take_content(&mut self, head: &Head) -> usize {
        let stream = head.stream;
        let Some(Ward::Running(ward)) = self.wards.get_mut(&stream) else { return 0 };
        if head.bytes() < IN_PLACE_BYTES_MIN {
            let mut frame = Vec::new();
            self.reader.take(head, &mut frame);
            ward.waiting.push(frame);
            self.wake(stream);
            return head.bytes();
        }
        #[allow(unsafe_code, reason = "memory that the host shares is read where it lies")]
        // SAFETY: the host writes, which leaves a frame alone until it is taken.
        let content = unsafe { self.reader.payload(head) };
        let before = ward.waiting.bytes;
        let turn = guarded(stream, &mut self.writer, |writer| ward.turn_in_place(stream, content, writer));
        let waiting = ward.waiting.bytes.saturating_sub(before);
        self.reader.pass(head);
        self.conclude(stream, turn);
        // There may be as much again before anybody else has a turn.
        self.tell_of_room();
        self.tell_news();
        waiting
    }

    /// Tells those who may wait for room that there is some. They wait for a queue that is full.
    fn tell_of_room(&mut self) {
        if self.was_full && self.read_bytes > ROOM_BYTES {
            (self.read_bytes, self.was_full, self.news) = (0, false, Whom::ALL);
        }
    }

    /// Wakes those for whom there is something.
    fn tell_news(&mut self) {
        if self.news != Whom::default() {
            self.writer.ring(std::mem::take(&mut self.news));
        }
    }

    /// Content that was fed and has not been taken.
    fn waiting_bytes(&self) -> usize {
        let left = |stream: &u32| match self.wards.get(stream) {
            Some(Ward::Running(ward)) => ward.waiting.bytes,
            _ => 0,
        };
        self.active.iter().map(left).sum()
    }

    fn open(&mut self, stream: u32) -> Result<(), Broken> {
        let Some(Ward::Announced(context)) = self.wards.remove(&stream) else { return Err(Broken) };
        let (bell, context) = wire::read::<(u8, _)>(&context).map_err(|_| Broken)?;
        if usize::from(bell) >= BELLS_MAX {
            return Err(Broken);
        }
        let running = Running {
            inspecting: self.inspector.open(context),
            bell,
            waiting: Waiting::default(),
            taken: 0,
            told: 0,
            wanted: None,
            is_news: false,
            finish: Finish::NotYet,
            report: Vec::new(),
            written: 0,
            answer: Vec::new(),
            heard: 0,
            owes: None,
            is_active: false,
        };
        self.wards.insert(stream, Ward::Running(Box::new(running)));
        Ok(())
    }

    fn wake(&mut self, stream: u32) {
        if let Some(Ward::Running(ward)) = self.wards.get_mut(&stream)
            && !std::mem::replace(&mut ward.is_active, true)
        {
            self.active.push_back(stream);
        }
    }

    /// Gives each that has something to do a turn; whether anything came of it.
    fn round(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.active.len() {
            let Some(stream) = self.active.pop_front() else { break };
            // One that has come so far with what lay in the queue is here once too often.
            let Some(Ward::Running(ward)) = self.wards.get_mut(&stream) else { continue };
            if !std::mem::take(&mut ward.is_active) {
                continue;
            }
            let turn = guarded(stream, &mut self.writer, |writer| ward.turn(stream, &mut [&[]; 2], writer));
            moved |= turn != Turn::Stuck;
            self.conclude(stream, turn);
        }
        moved
    }

    /// Does what follows from a turn.
    fn conclude(&mut self, stream: u32, turn: Turn) {
        let Some(Ward::Running(ward)) = self.wards.get_mut(&stream) else { return };
        // What is reported on the way waits until there is something to be done about it.
        if ward.has_news() || matches!(turn, Turn::Over | Turn::Stuck) {
            self.news.add(Whom::of(ward.bell));
        }
        match turn {
            Turn::Over => drop(self.wards.remove(&stream)),
            Turn::Idle => ward.is_active = false,
            Turn::More | Turn::Hungry | Turn::Stuck => self.wake(stream),
        }
    }
}

/// A turn of which the host knows, should the process die of it. A mistake of ours costs the one inspection.
fn guarded(stream: u32, writer: &mut Writer, turn: impl FnOnce(&mut Writer) -> Turn) -> Turn {
    writer.side().tell(ring::Told::Working, u64::from(stream) + 1);
    let turn = catch_unwind(AssertUnwindSafe(|| turn(&mut *writer))).unwrap_or_else(|_| {
        writer.write(stream, Told::Took(Progress::Lost(Unfinished::Gone)).kind(), &[0; 8]);
        Turn::Over
    });
    writer.side().tell(ring::Told::Working, 0);
    turn
}

/// Result of a turn.
#[derive(PartialEq, Eq)]
enum Turn {
    /// Work is left.
    More,
    /// It can take more of the content that there is.
    Hungry,
    /// No room for its messages.
    Stuck,
    /// It waits for more content.
    Idle,
    /// It has ended.
    Over,
}

impl Running {
    /// Hears a piece of an answer, and has it with the last.
    fn answered<T: DeserializeOwned>(&mut self, piece: &[u8], is_last: bool) -> Result<Option<T>, Broken> {
        if self.answer.len() + piece.len() > MESSAGE_BYTES_MAX {
            return Err(Broken);
        }
        self.answer.extend_from_slice(piece);
        if !is_last {
            return Ok(None);
        }
        self.heard += 1;
        wire::read(&std::mem::take(&mut self.answer)).map(Some).map_err(|_| Broken)
    }

    /// Turns with content that lies in the queue, until all of it is taken or it costs more than most: then what is left waits.
    fn turn_in_place(&mut self, stream: u32, mut content: [&[u8]; 2], writer: &mut Writer) -> Turn {
        let mut turn = Turn::Hungry;
        while turn == Turn::Hungry && self.waiting.bytes == 0 {
            turn = self.turn(stream, &mut content, writer);
        }
        content.into_iter().for_each(|rest| self.waiting.push(rest.to_vec()));
        turn
    }

    /// A turn, with content that lies behind what waits.
    fn turn(&mut self, stream: u32, content: &mut [&[u8]; 2], writer: &mut Writer) -> Turn {
        if !self.report(stream, writer) {
            return Turn::Stuck;
        }
        self.feed(content);
        let is_taken = self.waiting.bytes == 0 && content.iter().all(|piece| piece.is_empty());
        let Poll::Ready(progress) = self.inspecting.poll(&mut Context::from_waker(Waker::noop())) else {
            return Turn::More;
        };
        match progress {
            Progress::Tired => {}
            Progress::Hungry | Progress::Stopped if !is_taken => {}
            Progress::Hungry | Progress::Stopped if self.finish == Finish::Asked => {
                self.finish = Finish::Done;
                self.inspecting.finish();
            }
            Progress::Waiting => self.owes = Some(Told::Waits),
            _ => self.owes = Some(Told::Took(progress)),
        }
        // While it works on what is left, more may come, unless that is all.
        let is_worth_telling = self.is_wanted() || self.taken - self.told >= AHEAD_BYTES;
        let is_ahead = self.owes.is_none() && self.finish == Finish::NotYet && !is_taken && is_worth_telling;
        if is_ahead {
            self.owes = Some(Told::Took(Progress::Hungry));
        }
        let ended = matches!(self.owes, Some(Told::Took(Progress::Done | Progress::Lost(_))));
        let owed = self.owes.is_some();
        match self.report(stream, writer) {
            false => Turn::Stuck,
            true if ended => Turn::Over,
            true if owed && !is_ahead => Turn::Idle,
            true if progress != Progress::Tired && !is_taken => Turn::Hungry,
            true => Turn::More,
        }
    }

    /// Feeds what is taken now of what waits, and of content behind that.
    fn feed(&mut self, content: &mut [&[u8]; 2]) {
        while let Some(front) = self.waiting.front() {
            let taken = self.inspecting.feed(front);
            if taken == 0 {
                return;
            }
            self.waiting.take(taken);
            self.taken += taken as u64;
        }
        for piece in content {
            let taken = self.inspecting.feed(piece);
            *piece = &piece[taken..];
            self.taken += taken as u64;
            if !piece.is_empty() {
                return;
            }
        }
    }

    /// Reports what there is to report; whether there was room for all of it.
    fn report(&mut self, stream: u32, writer: &mut Writer) -> bool {
        loop {
            let kinds = [Told::OutMore.kind(), Told::Out.kind()];
            self.written = write_pieces(writer, stream, kinds, &self.report, self.written);
            if self.written < self.report.len() {
                return false;
            }
            let Some(out) = self.inspecting.hear() else { break };
            let mut report = std::mem::take(&mut self.report);
            report.clear();
            (self.report, self.written) = (wire::write(&out, report), 0);
        }
        let Some(owed) = self.owes else { return true };
        let count = if owed == Told::Waits { self.heard } else { self.taken };
        let told = writer.write(stream, owed.kind(), &count.to_le_bytes());
        if told {
            self.owes = None;
            self.told = self.taken;
            self.is_news |= owed != Told::Took(Progress::Hungry) || self.is_wanted();
        }
        told
    }

    /// Whether it has taken what somebody waits for.
    fn is_wanted(&self) -> bool {
        self.wanted.is_some_and(|wanted| self.taken >= wanted)
    }

    /// Whether somebody waits for what was told since this was called last.
    fn has_news(&mut self) -> bool {
        let is_news = std::mem::take(&mut self.is_news);
        self.wanted.take_if(|wanted| is_news && self.taken >= *wanted);
        is_news
    }
}

/// The name of a finding that a host ends an inspection with. Names are for ever, so only those that are known.
fn stop_name(name: &[u8]) -> &'static str {
    const KNOWN: [&str; 2] = ["Heuristics.Limits.Exceeded.MaxScanTime", "Heuristics.Limits.Exceeded.Time"];
    KNOWN.into_iter().find(|known| known.as_bytes() == name).unwrap_or(KNOWN[1])
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use flow::{Context as Object, Out, Wants};
    use inspect::Engine;
    use scan::Database;
    use stream::Limits;

    use super::*;
    use crate::ring::{PAYLOAD_BYTES_MAX, Shared, bell};

    /// A jail that works when it is told to, and what its host has of it.
    fn with_cell<T>(act: impl FnOnce(&mut Cell<'_>, &mut Writer, &mut Reader) -> T) -> T {
        let [to_jail, from_jail] = Shared::new().unwrap().0.sides();
        let mut host = Writer::new(to_jail.clone(), bell().unwrap());
        let hosts_bell = bell().unwrap();
        let mut listener = Reader::new(from_jail.clone(), hosts_bell.try_clone().unwrap());
        let (reader, writer) = (Reader::new(to_jail, bell().unwrap()), Writer::new(from_jail, hosts_bell));
        let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
        let (socket, _other) = UnixStream::pair().unwrap();
        let memory = Memory::new(1 << 20);
        let mut cell = Cell::new(Local::new(Arc::new(engine), None), &memory, reader, writer, socket.into());
        act(&mut cell, &mut host, &mut listener)
    }

    fn open(stream: u32, context: Object) -> (u32, u8, Vec<u8>) {
        (stream, Asked::Open.kind(), wire::write(&(OWN_BELL, context), Vec::new()))
    }

    /// Whether the host is woken when the jail has read a ring that this many frames have filled.
    fn hears_of_room(frames_max: usize) -> bool {
        with_cell(|cell, host, listener| {
            let (stream, kind, context) = open(7, Object::default());
            assert!(host.write(stream, kind, &context));
            let written = (0..frames_max).take_while(|_| host.write(7, Asked::Feed.kind(), &[b'a'; 32 << 10])).count();
            assert_eq!(written < frames_max, frames_max > TO_JAIL_BYTES / (32 << 10), "{frames_max}");
            assert!(listener.may_sleep(OWN_BELL));
            cell.hear().unwrap();
            cell.tell_news();
            let bell = listener.bell();
            poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
        })
    }

    #[test]
    fn who_waits_for_room_in_a_full_queue_hears_of_it() {
        assert!(hears_of_room(usize::MAX));
        assert!(!hears_of_room(TO_JAIL_BYTES / (32 << 10) / 2), "nobody waits where half is free");
    }

    /// Hears what the jail reports of objects: whose each is, and the hash of its content.
    fn hear_objects(listener: &mut Reader, objects: &mut Vec<(u32, Option<[u8; 32]>)>) {
        while let Some(frame) = listener.read().unwrap() {
            if Told::of(frame.kind) == Some(Told::Out)
                && let Out::Object(report) = wire::read(frame.payload).unwrap()
            {
                objects.push((frame.stream, report.sha256));
            }
        }
    }

    #[test]
    fn content_is_inspected_as_it_was_fed_however_its_frames_lie() {
        const STREAMS: u32 = 3;
        let content =
            |stream: u32| (0..400_000_u32).map(move |at| (at.wrapping_mul(2_654_435_761 + stream) >> 24) as u8);
        let contents: Vec<Vec<u8>> = (0..STREAMS).map(|stream| content(stream).collect()).collect();
        let mut objects = Vec::new();
        with_cell(|cell, host, listener| {
            let mut ask = |cell: &mut Cell<'_>, (stream, kind, payload): (u32, u8, &[u8])| {
                while !host.write(stream, kind, payload) {
                    cell.hear().unwrap();
                    cell.round();
                    hear_objects(listener, &mut objects);
                }
            };
            for stream in 0..STREAMS {
                let wants = Wants { objects: true, ..Wants::default() };
                let (stream, kind, context) = open(stream, Object { wants, ..Object::default() });
                ask(cell, (stream, kind, &context));
            }
            let (mut fed, mut turn) = ([0; STREAMS as usize], 0_usize);
            while fed.iter().any(|&fed| fed < contents[0].len()) {
                turn += 1;
                let stream = turn * turn % STREAMS as usize;
                let stream = if turn % 7 < 2 { turn % STREAMS as usize } else { stream };
                let count = (turn * 7_919 % PAYLOAD_BYTES_MAX).min(contents[stream].len() - fed[stream]);
                let piece = &contents[stream][fed[stream]..][..count];
                ask(cell, (stream as u32, Asked::Feed.kind(), piece));
                fed[stream] += count;
                if turn % 5 == 0 {
                    cell.hear().unwrap();
                }
            }
            (0..STREAMS).for_each(|stream| ask(cell, (stream, Asked::Finish.kind(), &[])));
            while !cell.wards.is_empty() {
                cell.hear().unwrap();
                cell.round();
            }
            hear_objects(listener, &mut objects);
        });
        objects.sort_unstable();
        let sums = contents.iter().map(|content| Some(digest::sha256::digest(content)));
        assert_eq!(objects, (0..STREAMS).zip(sums).collect::<Vec<_>>());
    }
}
