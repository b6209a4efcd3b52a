//! Questions under way: how they are sent, sent again and given up, and what is learned from their answers.

use proto::dns::{Message, Request, class, flag, rcode};

use super::cache::{Key, Known};
use super::list::{TEST_CLEAN, TEST_LISTED, WASTE, WASTE_MAX};
use super::wire::{addresses, capability, lifetime, question_of, text};
use super::{ADDRESSES_MAX, Client, Transmit};
use crate::prefix::{Prefix, read4, read6};

/// For how many seconds addresses are asked for one by one after an error in the answer to a prefix.
const PREFIX_FAILED_TTL: u32 = 60;

#[derive(Debug)]
pub(super) struct Question {
    pub(super) request: Request,
    pub(super) sent_at: u64,
    pub(super) is_hedged: bool,
    pub(super) by_tcp: bool,
    pub(super) ids: Vec<u16>,
    pub(super) waiting: Vec<u64>,
    pub(super) is_probe: bool,
}

impl Client {
    /// The next packet to send.
    pub fn transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Takes a packet that came from a resolver.
    pub fn handle(&mut self, packet: &[u8], now: u64) {
        let id = packet.first_chunk::<2>().map(|id| u16::from_be_bytes(*id));
        let Some(&key) = id.and_then(|id| self.by_id.get(&id)) else {
            self.counts.strays += 1;
            return;
        };
        let Some(question) = self.questions.get(&key) else { return };
        let request = Request { id: id.unwrap_or(0), ..question.request.clone() };
        let Ok(message) = request.read(packet) else {
            self.counts.strays += 1;
            return;
        };
        if message.flags & flag::TC != 0 && !question.by_tcp {
            return self.repeat_by_tcp(key);
        }
        self.answered(key, &message, now);
    }

    /// Executes due actions.
    pub fn advance(&mut self, now: u64) {
        let limits = &self.limits;
        let overdue: Vec<(usize, Key)> = self
            .questions
            .iter()
            .filter(|(_, question)| now.saturating_sub(question.sent_at) >= limits.timeout_ms)
            .map(|(key, _)| *key)
            .collect();
        let slow: Vec<(usize, Key)> = self
            .questions
            .iter()
            .filter(|(_, question)| !question.is_hedged && now.saturating_sub(question.sent_at) >= limits.hedge_ms)
            .map(|(key, _)| *key)
            .collect();
        for key in slow {
            self.send(key, 1);
            self.counts.repeated += 1;
            if let Some(question) = self.questions.get_mut(&key) {
                question.is_hedged = true;
            }
        }
        overdue.into_iter().for_each(|key| self.failed(key, now));
    }

    /// When something is due.
    pub fn deadline(&self) -> Option<u64> {
        let due = |question: &Question| {
            let wait = if question.is_hedged { self.limits.timeout_ms } else { self.limits.hedge_ms };
            question.sent_at.saturating_add(wait)
        };
        self.questions.values().map(due).min()
    }

    /// Sends a question unless it is under way. Returns whether it was sent.
    pub(super) fn question(&mut self, key: (usize, Key), now: u64) -> bool {
        if self.questions.contains_key(&key) {
            return false;
        }
        let Some((name, kind)) = question_of(key.1, &self.zones[key.0].name) else {
            return false;
        };
        let request = Request::new(0, name, kind, class::IN).with_mixed_case(self.next_random());
        let question = Question {
            request,
            sent_at: now,
            is_hedged: false,
            by_tcp: false,
            ids: Vec::new(),
            waiting: Vec::new(),
            is_probe: false,
        };
        self.questions.insert(key, question);
        self.send(key, 0);
        true
    }

    fn send(&mut self, key: (usize, Key), resolver: usize) {
        let id = self.free_id();
        let Some(question) = self.questions.get_mut(&key) else { return };
        question.ids.push(id);
        self.by_id.insert(id, key);
        let packet = Request { id, ..question.request.clone() }.packet();
        self.transmits.push_back(Transmit { resolver, tcp: question.by_tcp, packet });
    }

    fn repeat_by_tcp(&mut self, key: (usize, Key)) {
        if let Some(question) = self.questions.get_mut(&key) {
            question.by_tcp = true;
            self.counts.repeated += 1;
            self.send(key, 0);
        }
    }

    fn free_id(&mut self) -> u16 {
        loop {
            let id = u16::try_from(self.next_random() >> 48).unwrap_or(0);
            if !self.by_id.contains_key(&id) {
                return id;
            }
            if self.by_id.len() > 60_000 {
                // Nearly all are taken: the oldest question will be given up soon; this one repeats an id.
                return id;
            }
        }
    }

    fn next_random(&mut self) -> u64 {
        // xorshift64*, seeded by the host. Who can watch our queries need not guess.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn answered(&mut self, key: (usize, Key), message: &Message, now: u64) {
        let is_prefix = matches!(key.1, Key::Prefix4(_) | Key::Prefix6(_));
        let (exists, addresses) = match message.rcode() {
            rcode::NOERROR => (true, addresses(message)),
            rcode::NXDOMAIN => (false, Vec::new()),
            // A server that fails at prefixes may answer addresses.
            _ if is_prefix => return self.learn(key, Known::ask_single(key.1), PREFIX_FAILED_TTL, now),
            _ => return self.failed(key, now),
        };
        if addresses.iter().any(|address| address[..3] == [127, 255, 255]) {
            // We are told not to ask.
            return self.refused(key, now);
        }
        // An answer that must not be cached is kept for the waiting lookups, which would ask for ever otherwise.
        let ttl = lifetime(message).min(self.limits.ttl_max).max(1);
        let known = match (key.1, text(message)) {
            (Key::Capability, text) => capability(&text.unwrap_or_default()),
            (Key::Prefix4(_), Some(text)) => Known::Prefix4(read4(&text).unwrap_or(Prefix::AskSingle)),
            (Key::Prefix6(_), Some(text)) => Known::Prefix6(read6(&text).unwrap_or(Prefix::AskSingle)),
            // A name without its text record: an intermediary has removed it.
            (Key::Prefix4(_) | Key::Prefix6(_), None) if exists => Known::ask_single(key.1),
            (Key::Prefix4(_), None) => Known::Prefix4(Prefix::Classes(Vec::new())),
            (Key::Prefix6(_), None) => Known::Prefix6(Prefix::Classes(Vec::new())),
            (Key::Address4(_) | Key::Address6(_), _) => {
                Known::Address(addresses.into_iter().filter(|address| address[0] == 127).take(ADDRESSES_MAX).collect())
            }
        };
        // A missing capability is checked again after a day, even if the answer has a shorter TTL.
        let ttl = if key.1 == Key::Capability { ttl.max(3_600) } else { ttl };
        self.zones[key.0].failures = 0;
        self.learn(key, known, ttl, now);
    }

    /// Stores an answer, and informs the waiting lookups.
    fn learn(&mut self, key: (usize, Key), known: Known, ttl: u32, now: u64) {
        let list = &mut self.zones[key.0];
        list.waste = match known {
            _ if known.says_ask_single() => (list.waste + WASTE).min(2 * WASTE_MAX),
            Known::Prefix4(_) | Known::Prefix6(_) => list.waste.saturating_sub(1),
            _ => list.waste,
        };
        self.note_probe(key, &known);
        self.cache.insert(key, known, ttl, now);
        self.settle(key, now);
    }

    fn note_probe(&mut self, key: (usize, Key), known: &Known) {
        let list = &mut self.zones[key.0];
        let index = match key.1 {
            Key::Address4(TEST_LISTED) => 0,
            Key::Address4(TEST_CLEAN) => 1,
            _ => return,
        };
        list.probed[index] = Some(*known != Known::Address(Vec::new()));
        if let [Some(listed), Some(clean)] = list.probed {
            list.is_off = !listed || clean;
        }
    }

    /// The zone does not want to be asked: it is left alone for ten times as long as one that does not answer.
    fn refused(&mut self, key: (usize, Key), now: u64) {
        self.zones[key.0].rests_until = now.saturating_add(self.limits.rest_ms.saturating_mul(10));
        self.give_up(key);
    }

    fn failed(&mut self, key: (usize, Key), now: u64) {
        let list = &mut self.zones[key.0];
        list.failures = list.failures.saturating_add(1);
        if list.failures >= self.limits.failures_max {
            list.rests_until = now.saturating_add(self.limits.rest_ms);
            // One more failure afterwards, and it rests again.
            list.failures = self.limits.failures_max.saturating_sub(1);
        }
        self.give_up(key);
    }

    pub(super) fn close(&mut self, key: (usize, Key)) -> Vec<u64> {
        let Some(question) = self.questions.remove(&key) else {
            return Vec::new();
        };
        for id in question.ids {
            if self.by_id.get(&id) == Some(&key) {
                self.by_id.remove(&id);
            }
        }
        question.waiting
    }

    fn give_up(&mut self, key: (usize, Key)) {
        for number in self.close(key) {
            if let Some(lookup) = self.lookups.get_mut(&number) {
                lookup.is_partial = true;
            }
            self.finish(number, key.0, Vec::new());
        }
    }
}
