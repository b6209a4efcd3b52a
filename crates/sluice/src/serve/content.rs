//! Content on its way through a door: held back, inspected, and overwritten where findings ask for it. What becomes of
//! it then is the door's to decide.
//!
//! Bounds: the head window while nothing has been sent, then [`Held::TAIL_BYTES`] and the piece that was taken last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inspect::{Action, Blank, Context, In, Inspection, Out, Policy, Progress, Rule, Verdict};
use proto::smtp::Reply;
use stream::{Coding, Fuel, Object};

use super::message;
use super::pool::Held;
use super::site::Site;
use super::systemd;
use crate::cpu;
use crate::memory::Loan;

/// Work done on one message before others have their turn.
const TURN_FUEL: u64 = 256 << 10;

/// How long the verdict may take after the end of the content; later it is a temporary refusal, never a clean.
const VERDICT_WAIT: Duration = Duration::from_secs(120);

/// Content under way.
pub struct Content {
    /// What has come in and has not gone on.
    pub held: Held,
    window_bytes: usize,
    inspection: Inspection,
    cleared: u64,
    received: u64,
    header: HeaderEnd,
    blanks: Vec<Blank>,
    /// What was overwritten from its start, whatever is found in it again.
    preset: Vec<Blank>,
    late: bool,
    /// An allow list may still speak for what was found.
    allow_list: bool,
    /// What the inspection holds, borrowed.
    loan: Loan,
    verdict: Option<Verdict>,
    deadline: Option<Instant>,
    inspecting: Duration,
}

impl Content {
    /// A mail, inspected as the site does and as the door's policy asks. Of it `window_bytes` may be held.
    pub fn mail(site: &Site, policy: Policy, rules: Arc<[Rule]>, window_bytes: usize) -> Content {
        let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
        let context = Context { policy, object, rules, passwords: site.passwords.clone(), explain: false };
        let mut loan = Loan::new(site.memory.clone());
        Content {
            held: Held::new(site.pool.clone()),
            window_bytes,
            inspection: loan.work(|| Inspection::new(site.engine.clone(), context).with_clocks(cpu::CLOCKS)),
            loan,
            cleared: 0,
            received: 0,
            header: HeaderEnd::default(),
            blanks: Vec::new(),
            preset: Vec::new(),
            late: false,
            allow_list: site.engine.database.takes_back(),
            verdict: None,
            deadline: None,
            inspecting: Duration::ZERO,
        }
    }

    /// Bytes that have come in.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Time spent in the inspection.
    pub fn inspecting(&self) -> Duration {
        self.inspecting
    }

    /// A part was to be overwritten of which something had been sent.
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// What was marked to be overwritten.
    pub fn blanks(&self) -> &[Blank] {
        &self.blanks
    }

    /// Whether `count` more bytes may be held.
    pub fn grow(&mut self, count: usize) -> bool {
        self.held.grow(count, self.window_bytes)
    }

    /// Counts bytes that nobody wants to see.
    pub fn pass_over(&mut self, count: usize) {
        self.received += count as u64;
    }

    /// Holds and inspects more.
    pub async fn push(&mut self, content: &[u8]) {
        self.received += content.len() as u64;
        self.header.see(content);
        self.held.push(content);
        self.inspect(content).await;
    }

    /// Inspects more that is not held: it is kept elsewhere.
    pub async fn inspect(&mut self, mut content: &[u8]) {
        while !content.is_empty() && !self.is_starved() {
            let taken = self.inspection.tell(In::Feed(content));
            content = &content[taken..];
            self.work().await;
        }
    }

    /// Lets the inspection work, in turns with everybody else, and hears what it says.
    async fn work(&mut self) {
        loop {
            let turn = Instant::now();
            let progress = systemd::turn(|| self.loan.work(|| self.inspection.work(&mut Fuel::new(TURN_FUEL))));
            self.inspecting += turn.elapsed();
            while let Some(out) = self.inspection.hear() {
                match out {
                    Out::Cleared(offset) => self.cleared = offset,
                    Out::Blank(blank) => self.blank(blank),
                    Out::Verdict(verdict) => self.verdict = Some(verdict),
                    Out::Finding(spotted) => tracing::debug!(found = message::describe(&spotted), "found"),
                    Out::Object(_) => {}
                }
            }
            if self.is_starved() {
                return self.loan.work(|| self.inspection.abandon());
            }
            let overdue = self.deadline.is_some_and(|deadline| Instant::now() > deadline);
            if progress != Progress::Tired || overdue {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn blank(&mut self, blank: Blank) {
        if self.preset.iter().any(|known| known.part <= blank.part && blank.end <= known.end) {
            return;
        }
        self.late |= !self.held.blank(blank);
        match self.blanks.iter_mut().find(|known| known.part == blank.part) {
            Some(known) => known.end = known.end.max(blank.end),
            None => self.blanks.push(blank),
        }
    }

    /// Marks what is known from an earlier time to be dangerous; to be called before anything is sent.
    pub fn blank_known(&mut self, known: &[Blank]) {
        known.iter().for_each(|blank| self.blank(*blank));
        self.preset = known.to_vec();
    }

    /// Nothing is to be overwritten after all.
    pub fn spare(&mut self) {
        self.blanks.clear();
        self.held.spare();
    }

    /// Marks everything behind the header, and the header if something was found in it.
    pub fn blank_whole(&mut self, verdict: &Verdict) {
        let body = self.header.end().unwrap_or(0);
        let in_header = verdict.findings.iter().any(|spotted| spotted.object == 0 && spotted.finding.offset < body);
        let part = if in_header { 0 } else { body };
        self.blank(Blank { part, end: u64::MAX, coding: Coding::Identity, late: false });
    }

    /// How much may be sent, all but `tail` bytes.
    pub fn sendable(&self, tail: usize) -> usize {
        let cleared = usize::try_from(self.cleared - self.held.sent()).expect("what is held fits memory");
        self.held.len().saturating_sub(tail).min(cleared)
    }

    /// Whether the inspection had to end for want of memory.
    pub fn is_starved(&self) -> bool {
        self.loan.is_refused()
    }

    /// Whether it is known already that content that streams will not be handed on as a whole under `heaviest` or less:
    /// no use to send more of it.
    pub fn is_hopeless(&self, heaviest: Action) -> bool {
        self.is_starved() || !self.allow_list && (self.late || self.inspection.action() > heaviest)
    }

    /// The content is complete: the verdict.
    ///
    /// # Errors
    /// When there is none, and so nothing is known to be clean.
    pub async fn finish(&mut self) -> Result<Verdict, Unfinished> {
        self.deadline = Some(Instant::now() + VERDICT_WAIT);
        self.inspection.tell(In::Finish);
        self.work().await;
        let why = if self.is_starved() { Unfinished::Starved } else { Unfinished::Late };
        self.verdict.take().ok_or(why)
    }
}

/// Why an inspection has no verdict. It may have one at another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// It took longer than its door waits.
    Late,
    /// All inspections together hold too much, or this one does.
    Starved,
}

impl Unfinished {
    /// What a client is told.
    pub const fn words(self) -> &'static str {
        match self {
            Unfinished::Late => "The inspection took too long",
            Unfinished::Starved => "No memory for the inspection now",
        }
    }

    /// The reply to a client that may try again.
    pub fn reply(self) -> Reply {
        let status = match self {
            Unfinished::Late => (4, 7, 1),
            Unfinished::Starved => (4, 3, 2),
        };
        Reply::new(451, status, self.words())
    }
}

/// Where the header of a mail ends.
struct HeaderEnd {
    seen: u64,
    /// Line feeds in a row, carriage returns left out; the empty line is there at two.
    line_feeds: u8,
}

impl Default for HeaderEnd {
    fn default() -> HeaderEnd {
        HeaderEnd { seen: 0, line_feeds: 1 }
    }
}

impl HeaderEnd {
    fn see(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.line_feeds == 2 {
                return;
            }
            self.seen += 1;
            match byte {
                b'\n' => self.line_feeds += 1,
                b'\r' => {}
                _ => self.line_feeds = 0,
            }
        }
    }

    fn end(&self) -> Option<u64> {
        (self.line_feeds == 2).then_some(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_ends_at_the_first_empty_line_however_it_is_cut() {
        let mail = b"A: b\r\nC: d\r\n\r\nbody\r\n\r\nmore";
        for cut in 0..mail.len() {
            let mut header = HeaderEnd::default();
            header.see(&mail[..cut]);
            header.see(&mail[cut..]);
            assert_eq!(header.end(), Some(14));
        }
        let mut header = HeaderEnd::default();
        header.see(b"A: b\r\nC: d\r\n");
        assert_eq!(header.end(), None);
        let mut header = HeaderEnd::default();
        header.see(b"\r\nno header");
        assert_eq!(header.end(), Some(2));
    }
}
