//! Strings of which every match contains one.
//!
//! Of a sequence, the strings that neighbours form together are followed as long as there are few; of alternatives, each has to
//! have its own. Among all such sets the one is taken whose strings are rarest in ordinary content, by the model of byte
//! pairs; where all are very rare, the one of fewest. Strings are folded: a match contains one of them once it is, too ([`fold`]).
//!
//! What a look around asks for is not counted, and neither is what a reference repeats.

use std::rc::Rc;

use super::facts::Facts;
use super::strings::{Alternatives, Found, LiteralLimits, Strings};
use super::syntax::{Node, Repeat, UNBOUNDED, has_case};
use crate::rarity;

/// Strings of which each match contains one.
#[derive(Debug, Clone, PartialEq)]
pub struct Literals {
    /// The strings; where there is none, nothing matches.
    pub strings: Vec<Vec<u8>>,
    /// At how many places, at least, one of them begins in a match.
    pub times: u32,
    /// The share of places of ordinary content where one of them stands, by a model.
    pub share: f64,
}

/// The best set of strings, if there is one within the limits.
pub(super) fn needed(node: &Node, limits: LiteralLimits, facts: &Facts) -> Option<Literals> {
    let bytes_max = limits.bytes_max.min(BYTES_MAX);
    let finder = Finder { limits: LiteralLimits { bytes_max, ..limits }, facts };
    let mut run = Run::new();
    finder.node(node, &mut run);
    finder.flush(&mut run);
    run.best.map(told)
}

fn told(mut found: Found) -> Literals {
    found.strings.sort();
    let strings = found.strings.iter().map(<[u8]>::to_vec).collect();
    Literals { strings, times: found.times, share: found.share }
}

/// A sequence under way.
struct Run {
    /// Strings of which one precedes this place, if none of `closed` does; they do not begin before the run did.
    ends: Strings,
    /// Strings that are rare enough as they are, so that nothing is put behind them.
    closed: Strings,
    /// Strings of the run.
    window: Vec<Rc<Strings>>,
    best: Option<Found>,
}

impl Run {
    fn new() -> Run {
        Run { ends: Strings::one(b""), closed: Strings::default(), window: Vec::new(), best: None }
    }

    /// Takes what is rare enough out of `strings`.
    fn close(&mut self, strings: &Strings, bytes_min: usize) -> Strings {
        let is_rare = |string: &[u8]| string.len() >= bytes_min && is_closed(string);
        if !strings.iter().any(is_rare) {
            return strings.clone();
        }
        let mut common = Strings::with_capacity(strings.len(), strings.bytes());
        for string in strings.iter() {
            if is_rare(string) { &mut self.closed } else { &mut common }.push(string);
        }
        self.closed.sort();
        common.is_even = strings.is_even;
        common
    }

    fn offer(&mut self, needed: Option<Found>) {
        let Some(needed) = needed else {
            return;
        };
        if self.best.as_ref().is_none_or(|best| needed.share < best.share) {
            self.best = Some(needed);
        }
    }
}

struct Finder<'f> {
    limits: LiteralLimits,
    facts: &'f Facts,
}

/// The most values of one byte that are followed.
const CLASS_MAX: usize = 16;
/// The most strings that neighbours form together.
const PRODUCT_MAX: usize = 128;
/// The most bytes of all strings that are followed at once.
const FOLLOWED_BYTES_MAX: usize = 1 << 14;
/// The most bytes of a string that is told.
const BYTES_MAX: usize = 1 << 10;
const _: () = assert!(FOLLOWED_BYTES_MAX <= u16::MAX as usize && BYTES_MAX <= FOLLOWED_BYTES_MAX);

impl Finder<'_> {
    /// Continues the run with a node.
    fn node(&self, node: &Node, run: &mut Run) {
        match node {
            Node::Empty | Node::Assert(_) | Node::Look(_) => {}
            Node::Never => run.ends.clear(),
            Node::Literal { bytes, fold } => self.literal(bytes, *fold, run),
            Node::Set(_) => self.extend(self.exact(node).map(Rc::new), run),
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.node(node, run)),
            Node::Group(node, _) | Node::Atomic(node) => self.node(node, run),
            Node::Alternate(nodes) => {
                let strings = || self.strings_of_alternatives(node, nodes);
                let strings = match self.facts.of(nodes) {
                    Some(fact) => fact.strings(self.limits, strings),
                    None => strings(),
                };
                match strings {
                    Alternatives::Exact(all) => self.extend(Some(all), run),
                    Alternatives::Needed(needed) => {
                        self.flush(run);
                        run.offer(needed.map(|needed| Found::clone(&needed)));
                    }
                }
            }
            Node::Repeat(repeat) => self.repeat(repeat, run),
            Node::Backreference { .. } => self.flush(run),
        }
    }

    fn literal(&self, bytes: &[u8], fold: bool, run: &mut Run) {
        for part in bytes.chunk_by(|&one, &other| !fold || one.is_ascii() && other.is_ascii()) {
            for part in part.chunks(self.limits.bytes_max.max(1)) {
                let cases = if fold { cases(part) } else { Strings::one(&folded(part)) };
                self.extend(Some(Rc::new(cases)), run);
            }
        }
    }

    fn strings_of_alternatives(&self, node: &Node, nodes: &[Node]) -> Alternatives {
        match self.exact(node) {
            Some(all) => Alternatives::Exact(Rc::new(all)),
            None => Alternatives::Needed(self.alternatives(nodes).map(Rc::new)),
        }
    }

    /// Each alternative needs its own.
    fn alternatives(&self, nodes: &[Node]) -> Option<Found> {
        let mut all = Found { strings: Strings::default(), times: u32::MAX, share: 0.0 };
        for node in nodes {
            let mut run = Run::new();
            self.node(node, &mut run);
            self.flush(&mut run);
            let needed = run.best?;
            all.share += needed.share;
            all.times = all.times.min(needed.times);
            all.strings.extend(needed.strings.iter());
            if all.strings.len() > self.limits.count_max {
                return None;
            }
        }
        Some(all)
    }

    /// Literals of each turn of a loop, as often as there are turns.
    fn turns(&self, repeat: &Repeat) -> Option<Found> {
        let mut run = Run::new();
        self.node(&repeat.node, &mut run);
        self.flush(&mut run);
        run.best.map(|best| Found { times: best.times.saturating_mul(repeat.min), ..best })
    }

    fn repeat(&self, repeat: &Repeat, run: &mut Run) {
        let exact = self.exact(&repeat.node);
        if (repeat.min, repeat.max) == (0, 1) {
            let optional = exact.map(|mut all| {
                all.push(b"");
                all
            });
            return self.extend(optional.map(Rc::new), run);
        }
        if repeat.min == 0 {
            return self.flush(run);
        }
        let Some(all) = exact else {
            if repeat.min > 1 {
                self.flush(run);
                run.offer(self.turns(repeat));
                return;
            }
            self.node(&repeat.node, run);
            return if repeat.max > 1 {
                self.flush(run)
            };
        };
        let all = Rc::new(all);
        for _ in 0..repeat.min.min(self.limits.bytes_max as u32) {
            self.extend(Some(Rc::clone(&all)), run);
        }
        if repeat.max == UNBOUNDED || repeat.max > repeat.min || repeat.min > self.limits.bytes_max as u32 {
            self.flush(run);
            // The last turn belongs to what follows.
            self.extend(Some(all), run);
        }
    }

    /// All strings that the node matches, if they are few.
    fn exact(&self, node: &Node) -> Option<Strings> {
        (count(node)? <= self.limits.count_max).then(|| self.strings(node)).flatten()
    }

    /// The same, of a node that matches few.
    fn strings(&self, node: &Node) -> Option<Strings> {
        match node {
            Node::Empty | Node::Assert(_) | Node::Look(_) => Some(Strings::one(b"")),
            Node::Literal { bytes, fold } => {
                let has_cases = *fold && bytes.len() > 1 && !bytes.is_ascii();
                let is_exact = bytes.len() <= self.limits.bytes_max && !has_cases;
                is_exact.then(|| if *fold { cases(bytes) } else { Strings::one(&folded(bytes)) })
            }
            Node::Set(set) => {
                let set = set.folded();
                (set.len() <= CLASS_MAX).then(|| Strings::of_bytes(&set))
            }
            Node::Group(node, _) | Node::Atomic(node) => self.strings(node),
            Node::Alternate(nodes) => {
                let mut all = Strings::default();
                for node in &**nodes {
                    all.extend(self.strings(node)?.iter());
                    if all.len() > self.limits.count_max {
                        return None;
                    }
                }
                all.sort();
                Some(all)
            }
            Node::Concat(nodes) => {
                let first = Some(Strings::one(b""));
                nodes.iter().try_fold(first, |all, node| Some(self.product(&all?, &self.strings(node)?))).flatten()
            }
            Node::Repeat(repeat) if (repeat.min, repeat.max) == (0, 1) => {
                let mut all = self.strings(&repeat.node)?;
                all.push(b"");
                Some(all)
            }
            Node::Repeat(repeat) if repeat.min == repeat.max && repeat.min as usize <= self.limits.bytes_max => {
                let each = self.strings(&repeat.node)?;
                let first = Some(Strings::one(b""));
                (0..repeat.min).try_fold(first, |all, _| Some(self.product(&all?, &each))).flatten()
            }
            Node::Never | Node::Repeat(_) | Node::Backreference { .. } => None,
        }
    }

    /// Each of `all` with each of `next` behind it, if these are few.
    fn product(&self, all: &Strings, next: &Strings) -> Option<Strings> {
        let count =
            all.len().checked_mul(next.len()).filter(|&count| count <= self.limits.count_max.min(PRODUCT_MAX))?;
        if count.saturating_mul(all.longest() + next.longest()) > FOLLOWED_BYTES_MAX {
            return None;
        }
        if all.is_nothing() && next.is_even {
            return Some(next.clone());
        }
        let bytes = all.bytes() * next.len() + next.bytes() * all.len();
        let mut product = Strings::with_capacity(count, bytes);
        all.iter().for_each(|one| next.iter().for_each(|next| product.push_both(one, next)));
        product.is_even = all.is_even && next.is_even;
        product.sort();
        Some(product)
    }

    /// Continues the run with strings of which exactly one follows; without them it ends and another begins.
    fn extend(&self, next: Option<Rc<Strings>>, run: &mut Run) {
        let Some(next) = next else {
            return self.flush(run);
        };
        if self.append(&next, run) {
            return;
        }
        // What came last, as much as may be, begins the next run.
        let bytes_min = self.limits.bytes_min.max(1);
        let common = |strings: &Strings| {
            strings.iter().filter(|string| string.len() < bytes_min || !is_closed(string)).count().max(1)
        };
        let mut window = std::mem::take(&mut run.window);
        self.flush(run);
        let mut count = common(&next);
        let fits = |strings: &&Rc<Strings>| {
            count = count.saturating_mul(common(strings));
            count <= self.limits.count_max
        };
        let kept = window.iter().rev().take_while(fits).count();
        let again = window.split_off(window.len() - kept);
        for strings in again.iter().chain([&next]) {
            if !self.append(strings, run) {
                self.flush(run);
            }
        }
    }

    /// Puts each of `next` behind each of the run's strings, if these are few. Where they are not, those that are rare enough stay
    /// as they are.
    fn append(&self, next: &Rc<Strings>, run: &mut Run) -> bool {
        let count_max = self.limits.count_max;
        let product = self.product(&run.ends, next).filter(|all| all.len() + run.closed.len() <= count_max);
        if let Some(product) = product {
            run.ends = product;
            run.window.push(Rc::clone(next));
            return true;
        }
        let bytes_min = self.limits.bytes_min.max(1);
        let common = run.close(next, bytes_min);
        let ends = std::mem::take(&mut run.ends);
        run.ends = run.close(&ends, bytes_min);
        let product = self.product(&run.ends, &common).filter(|all| all.len() + run.closed.len() <= count_max);
        let Some(product) = product else {
            return false;
        };
        run.ends = product;
        run.window.push(Rc::clone(next));
        true
    }

    /// Ends the run: its strings are needed. Another begins.
    fn flush(&self, run: &mut Run) {
        run.window.clear();
        let Run { ends, closed, best, .. } = run;
        let bytes_min = self.limits.bytes_min.max(1);
        let is_usable = ends.iter().all(|string| string.len() >= bytes_min);
        if is_usable && ends.len() + closed.len() <= self.limits.count_max {
            let strings = || ends.iter().chain(closed.iter()).map(|string| rarest(string, self.limits.bytes_max));
            let share = strings().map(|string| share(string) + SHARE_OF_EACH).sum();
            if best.as_ref().is_none_or(|best| share < best.share) {
                let mut all = Strings::with_capacity(ends.len() + closed.len(), ends.bytes() + closed.bytes());
                all.extend(strings());
                *best = Some(Found { strings: all, times: 1, share });
            }
        }
        ends.reset();
        closed.clear();
    }
}

/// How many strings a node matches at most; nothing if nobody can count them.
fn count(node: &Node) -> Option<usize> {
    match node {
        Node::Empty | Node::Assert(_) | Node::Look(_) | Node::Literal { .. } => Some(1),
        Node::Set(set) => Some(set.folded().len()).filter(|&count| count <= CLASS_MAX),
        Node::Group(node, _) | Node::Atomic(node) => count(node),
        Node::Alternate(nodes) => nodes.iter().try_fold(0_usize, |sum, node| sum.checked_add(count(node)?)),
        Node::Concat(nodes) => nodes.iter().try_fold(1_usize, |product, node| product.checked_mul(count(node)?)),
        Node::Repeat(repeat) if (repeat.min, repeat.max) == (0, 1) => count(&repeat.node)?.checked_add(1),
        Node::Repeat(repeat) if repeat.min == repeat.max => count(&repeat.node)?.checked_pow(repeat.min),
        Node::Never | Node::Repeat(_) | Node::Backreference { .. } => None,
    }
}

/// Writes ASCII letters in lower case, and blanks (tabs, line feeds and the like) as spaces: the form in which literals are told
/// and looked for.
pub fn fold(text: &mut [u8]) {
    for byte in text {
        *byte = folded_byte(*byte);
    }
}

/// Folds a byte without a table or a branch, so that the compiler makes vectors of it.
#[inline]
fn folded_byte(byte: u8) -> u8 {
    let is_capital = byte.wrapping_sub(b'A') < 26;
    let is_blank = byte.wrapping_sub(b'\t') < 5;
    if is_blank { b' ' } else { byte | (u8::from(is_capital) << 5) }
}

fn folded(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    fold(&mut text);
    text
}

/// Cases of a string that is ASCII, or one byte: other letters are not in lower case in the searched text.
fn cases(part: &[u8]) -> Strings {
    match part {
        [byte] if !byte.is_ascii() && has_case(*byte) => {
            let mut both = Strings::one(&[byte & !0x20]);
            both.push(&[byte | 0x20]);
            both
        }
        part => Strings::one(&folded(part)),
    }
}

/// The rarest part of a string of that many bytes.
fn rarest(string: &[u8], bytes_max: usize) -> &[u8] {
    if string.len() <= bytes_max {
        return string;
    }
    string.windows(bytes_max.max(1)).max_by_key(|window| cost(window)).unwrap_or_default()
}

/// Where the rarest `bytes` bytes in a row of a string begin, by the model of byte pairs; 0 if it has no more.
pub fn rarest_gram(string: &[u8], bytes: usize) -> usize {
    let windows = string.windows(bytes.max(1)).enumerate();
    windows.max_by_key(|(_, window)| cost(window)).map_or(0, |(at, _)| at)
}

/// Strings that occur in all fields about relays, so that they are no evidence: their bytes cost nothing.
pub(super) const FRAMES: [&[u8]; 10] =
    [b"rdns=", b"helo=", b"auth=", b"intl=", b"ident=", b"envfrom=", b" ip=", b" by=", b" id=", b"msa="];

/// The cost of a string by the model of byte pairs, in eighths of a bit.
fn cost(string: &[u8]) -> u32 {
    if let Some((before, behind)) = around_frame(string) {
        return cost(before) + cost(behind);
    }
    let pairs = string.windows(2).map(|pair| rarity::after(pair[0], pair[1])).sum::<u32>();
    string.first().map_or(0, |&first| rarity::alone(first)) + pairs
}

/// Parts of a string before and after the first of [`FRAMES`].
fn around_frame(string: &[u8]) -> Option<(&[u8], &[u8])> {
    let sign = string.iter().position(|&byte| byte == b'=')?;
    let (before, behind) = string.split_at(sign + 1);
    let frame = FRAMES.iter().find_map(|frame| before.strip_suffix(*frame));
    frame.map(|before| (before, behind))
}

/// Whether a string costs so much that it need not grow.
fn is_closed(string: &[u8]) -> bool {
    if string.contains(&b'=') {
        return cost(string) > COST_CLOSED;
    }
    let mut sum = string.first().map_or(0, |&first| rarity::alone(first));
    sum > COST_CLOSED
        || string.windows(2).any(|pair| {
            sum += rarity::after(pair[0], pair[1]);
            sum > COST_CLOSED
        })
}

/// Cost of every string: of sets that are rare enough, the one of fewer strings is better.
const SHARE_OF_EACH: f64 = 1.0 / (1 << 22) as f64;

/// The cost beyond which a string is rare enough, so that it need not grow where there are many: once in 2^20 places.
const COST_CLOSED: u32 = 20 * 8;

/// How often a string stands at an offset, by the model.
fn share(string: &[u8]) -> f64 {
    (-f64::from(cost(string)) / 8.0).exp2()
}
