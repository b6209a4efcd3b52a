//! One inspection in a jail, as its door has it: what is asked of the jail, and what it has said of this.
//!
//! It owns its place in the [`Link`] (its ward) from [`Handle::new`] until it is dropped; that its jail may die meanwhile is
//! the host's business, and only seen here as the ward's progress.
//!
//! Bounds: [`CREDIT_BYTES`] on their way to the jail, and answers to what it has asked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use flow::{Answer, Inspecting, NOBODY, Out, Progress, Recalled, Unfinished, wire};

use crate::link::{Ends, Line, Link, Ward, Woken};
use crate::patience::give_way;
use crate::protocol::{Asked, CREDIT_BYTES, write_pieces};
use crate::ring::{PAYLOAD_BYTES_MAX, Writer};

/// Bytes that a jail may not have heard of while no client waits for it: a small object wakes it once, when it is
/// complete.
const LAZY_BYTES: u64 = 32 << 10;

/// An inspection in a jail.
///
/// Polled with [`NOBODY`], it waits for nothing: what was fed goes to the jail in its own time.
pub struct Handle {
    line: Arc<Line>,
    stream: u32,
    /// The context, and how much of it has been sent.
    context: Vec<u8>,
    opened: usize,
    fed: u64,
    /// Last request to the jail that is waited for.
    asked: u64,
    /// It was offered more than it could send.
    has_refused: bool,
    end: End,
    /// A finding that it is to end with.
    stop: Option<&'static str>,
    reports: VecDeque<Out>,
    /// Answers that the jail has not heard, with the kinds of their frames, how much of the first has been sent, and how many have been before.
    answers: VecDeque<([u8; 2], Vec<u8>)>,
    answer_sent: usize,
    answered: u64,
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
    /// One that has its number, and of which the jail has not heard.
    pub fn new(line: Arc<Line>, stream: u32, context: Vec<u8>) -> Handle {
        Handle {
            line,
            stream,
            context,
            opened: 0,
            fed: 0,
            asked: 0,
            has_refused: false,
            end: End::Open,
            stop: None,
            reports: VecDeque::new(),
            answers: VecDeque::new(),
            answer_sent: 0,
            answered: 0,
        }
    }

    /// Sends what answers there are, as far as there is room.
    fn send_answers(&mut self, writer: &mut Writer) {
        while let Some((kinds, answer)) = self.answers.front() {
            self.answer_sent = write_pieces(writer, self.stream, *kinds, answer, self.answer_sent);
            if self.answer_sent < answer.len() {
                return;
            }
            self.answers.pop_front();
            self.answer_sent = 0;
            self.answered += 1;
        }
    }

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

    /// Bytes that may be on their way: what is free is shared by all who send.
    fn credit(writer: &Writer) -> u64 {
        CREDIT_BYTES.min(writer.free_bytes() as u64)
    }

    /// Bytes that are to be inspected before whoever waits hears that it is [`Progress::Hungry`]: all of them, since what is
    /// cleared may have to go on; but if there is more to send, so many that it is worth it.
    fn wanted(&self, writer: &Writer) -> u64 {
        if self.has_refused { self.fed.saturating_sub(Handle::credit(writer) / 2) } else { self.fed }
    }

    /// Tells the jail how much is waited for, unless it knows; whether there was room.
    fn ask(&mut self, wanted: u64, writer: &mut Writer) -> bool {
        let knows = wanted == self.asked || self.end != End::Open || !self.context.is_empty();
        if !knows && writer.write(self.stream, Asked::Want.kind(), &wanted.to_le_bytes()) {
            self.asked = wanted;
        }
        knows || wanted == self.asked
    }

    /// How far it is, as far as the jail has said.
    fn progress(&mut self, link: &mut Link) -> Option<Progress> {
        let stream = self.stream;
        let ward = link.wards.get_mut(&stream)?;
        self.reports.append(&mut ward.reports);
        let (progress, taken, waits) = (ward.progress, ward.taken, ward.waits);
        if let Some(Progress::Done | Progress::Lost(_)) = progress {
            return progress;
        }
        let ends = link.ends.as_mut()?;
        ward.is_begun = true;
        if !self.announce(&mut ends.writer) {
            return None;
        }
        self.send_answers(&mut ends.writer);
        self.stop.take_if(|name| ends.writer.write(stream, Asked::Stop.kind(), name.as_bytes()));
        match self.end {
            End::Told if self.answers.is_empty() && waits == Some(self.answered) => Some(Progress::Waiting),
            End::Told => None,
            End::Due if ends.writer.write(stream, Asked::Finish.kind(), &[]) => {
                self.end = End::Told;
                None
            }
            End::Due => None,
            End::Open if taken < self.wanted(&ends.writer) || ends.writer.room().is_none_or(|room| room == 0) => None,
            End::Open if progress == Some(Progress::Stopped) => Some(Progress::Stopped),
            End::Open => Some(Progress::Hungry),
        }
    }
}

impl Inspecting for Handle {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let line = self.line.clone();
        let mut link = line.lock();
        let link = &mut *link;
        let Some(ward) = link.wards.get_mut(&self.stream) else { return bytes.len() };
        if let Some(Progress::Done | Progress::Lost(_)) = ward.progress {
            return bytes.len();
        }
        if line.suspects.is_banned(ward.sample.take(bytes)) {
            line.counts.banned.fetch_add(1, Relaxed);
            tracing::warn!("content that killed inspection processes is not inspected again for an hour");
            ward.progress = Some(Progress::Lost(Unfinished::Gone));
            return bytes.len();
        }
        let taken = ward.taken;
        let Some(ends) = &mut link.ends else { return 0 };
        ward.is_begun = true;
        if !self.announce(&mut ends.writer) {
            return 0;
        }
        let credit = Handle::credit(&ends.writer).saturating_sub(self.fed.saturating_sub(taken)) as usize;
        let count = bytes.len().min(credit).min(ends.writer.room().unwrap_or(0));
        self.has_refused = count < bytes.len();
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

    fn answer(&mut self, answer: Answer) {
        let kinds = [Asked::AnswerMore.kind(), Asked::Answer.kind()];
        self.answers.push_back((kinds, wire::write(&answer, Vec::new())));
    }

    fn recalled(&mut self, recalled: Option<Recalled>) {
        let kinds = [Asked::RecalledMore.kind(), Asked::Recalled.kind()];
        self.answers.push_back((kinds, wire::write(&recalled, Vec::new())));
    }

    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<Progress> {
        let line = self.line.clone();
        let mut woken = Woken::default();
        let mut link = line.lock();
        link.pass_on(&mut woken);
        give_way(link.wards.len());
        let link = &mut *link;
        let progress = self.progress(link);
        let waits = !context.waker().will_wake(NOBODY);
        if let Some(ward) = link.wards.get_mut(&self.stream) {
            ward.waited = if progress.is_none() && waits { Some(ward.waited.unwrap_or(0)) } else { None };
        }
        let is_asking = progress.is_none() && waits;
        if let (true, Some(ward)) = (is_asking, link.wards.get_mut(&self.stream)) {
            let writer = link.ends.as_mut().map(|ends| &mut ends.writer);
            ward.wanted = match &writer {
                // The jail is on its way to it.
                Some(_) if self.end == End::Open && ward.taken < self.asked => self.asked,
                Some(writer) if self.end == End::Open => self.wanted(writer),
                _ => self.fed,
            };
            let is_asked = writer.is_none_or(|writer| self.ask(ward.wanted, writer));
            let is_between = self.end == End::Open && ward.taken == self.fed;
            let has_more = !self.context.is_empty() || !self.answers.is_empty();
            ward.wants_room = self.end == End::Due || has_more || is_between || !is_asked;
            ward.waker = Some(context.waker().clone());
        }
        link.knock(if waits { 1 } else { LAZY_BYTES });
        if let Some(progress) = progress {
            return Poll::Ready(progress);
        }
        let Some(ward) = link.wards.get(&self.stream) else {
            return Poll::Ready(Progress::Lost(Unfinished::Gone));
        };
        // Either the jail sees that the queue is about full, or this sees that it is not any more.
        let has_room = |ends: &Ends| ends.writer.room() == Some(PAYLOAD_BYTES_MAX);
        if waits && (!link.may_wait(ward.bell) || ward.wants_room && link.ends.as_ref().is_some_and(has_room)) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn hear(&mut self) -> Option<Out> {
        self.reports.pop_front()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut woken = Woken::default();
        let mut link = self.line.lock();
        let ward = link.wards.remove(&self.stream);
        give_way(link.wards.len());
        let is_over = |ward: Ward| !ward.is_begun || matches!(ward.progress, Some(Progress::Done | Progress::Lost(_)));
        if !ward.is_none_or(is_over) && link.ends.is_some() {
            link.closing.push(self.stream);
            link.pass_on(&mut woken);
        }
        link.knock(1);
        // Nobody may want the jail any more.
        if self.line.is_over() && link.wards.is_empty() {
            link.rouse();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Wake, Waker};

    use super::*;
    use crate::protocol::Told;
    use crate::ring::{OWN_BELL, Reader, Shared, bell};

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    /// A way to a jail, and the jail's ends of it.
    fn with_jail() -> (Arc<Line>, Reader, Writer) {
        let [to_jail, from_jail] = Shared::new().unwrap().0.sides();
        let reader = Reader::new(to_jail.clone(), bell().unwrap());
        let writer = Writer::new(from_jail.clone(), bell().unwrap());
        let ends =
            Ends { reader: Reader::new(from_jail, bell().unwrap()), writer: Writer::new(to_jail, bell().unwrap()) };
        let line = Arc::new(Line::new(Arc::default(), Arc::default(), Arc::default()));
        line.lock().ends = Some(ends);
        (line, reader, writer)
    }

    #[test]
    fn an_inspection_that_says_nothing_is_lost_after_five_minutes_of_waiting() {
        let (line, _, mut jail) = with_jail();
        let mut handle = Handle::new(line.clone(), line.open(OWN_BELL), vec![0]);
        assert_eq!(handle.feed(b"content"), 7);
        let waker = Waker::from(Arc::new(Nothing));
        let poll = |handle: &mut Handle| handle.poll(&mut Context::from_waker(&waker));
        let wait = |seconds: u32| (0..seconds).for_each(|_| line.lock().tick());

        assert!(poll(&mut handle).is_pending());
        wait(299);
        assert!(poll(&mut handle).is_pending());
        // It has come as far as was asked, so what it is waited for next begins anew.
        assert!(jail.write(handle.stream, Told::Took(Progress::Hungry).kind(), &7_u64.to_le_bytes()));
        assert_eq!(poll(&mut handle), Poll::Ready(Progress::Hungry));
        wait(299);
        handle.finish();
        assert!(poll(&mut handle).is_pending());
        wait(299);
        // To say the same again is no progress.
        assert!(jail.write(handle.stream, Told::Took(Progress::Hungry).kind(), &7_u64.to_le_bytes()));
        assert!(poll(&mut handle).is_pending());
        wait(1);
        assert_eq!(poll(&mut handle), Poll::Ready(Progress::Lost(Unfinished::Gone)));
    }

    #[test]
    fn a_jail_hears_once_how_much_is_waited_for() {
        let (line, mut jails, _) = with_jail();
        let mut handle = Handle::new(line.clone(), line.open(OWN_BELL), vec![0]);
        while handle.feed(&[b'a'; 32 << 10]) > 0 {}
        assert!(handle.poll(&mut Context::from_waker(NOBODY)).is_pending());
        let waker = Waker::from(Arc::new(Nothing));
        for _ in 0..2 {
            assert!(handle.poll(&mut Context::from_waker(&waker)).is_pending());
        }
        let (mut fed, mut wanted) = (0, Vec::new());
        while let Some(frame) = jails.read().unwrap() {
            match Asked::of(frame.kind) {
                Some(Asked::Feed) => fed += frame.payload.len() as u64,
                Some(Asked::Want) => wanted.push(u64::from_le_bytes(frame.payload.try_into().unwrap())),
                _ => {}
            }
        }
        assert!(matches!(wanted[..], [wanted] if 0 < wanted && wanted < fed), "{wanted:?} of {fed}");
    }
}
