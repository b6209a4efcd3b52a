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

use crate::link::{Line, Link, Ward, Woken};
use crate::protocol::{Asked, CREDIT_BYTES, write_pieces};
use crate::ring::Writer;

/// What a jail may not have heard of while nobody waits for it: a small object wakes it once, when it is complete.
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
        let progress = self.progress(&mut link);
        let waits = !context.waker().will_wake(NOBODY);
        link.knock(if waits { 1 } else { LAZY_BYTES });
        if let Some(progress) = progress {
            return Poll::Ready(progress);
        }
        let link = &mut *link;
        let Some(ward) = link.wards.get_mut(&self.stream) else {
            return Poll::Ready(Progress::Lost(Unfinished::Gone));
        };
        if waits {
            let is_between = self.end == End::Open && ward.taken == self.fed;
            ward.wanted = match &link.ends {
                Some(ends) if self.end == End::Open => self.wanted(&ends.writer),
                _ => self.fed,
            };
            ward.waker = Some(context.waker().clone());
            let has_more = !self.context.is_empty() || !self.answers.is_empty();
            ward.wants_room = self.end == End::Due || has_more || is_between;
            if !link.may_wait() {
                context.waker().wake_by_ref();
            }
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
