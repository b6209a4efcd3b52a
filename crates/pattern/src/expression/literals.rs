//! Strings of which every match contains one.
//!
//! Of a sequence, the strings that neighbours form together are followed as long as there are few; of alternatives, each has to
//! have its own. Among all such sets the one is taken whose strings are rarest in ordinary content, by the model of byte
//! pairs; where all are very rare, the one of fewest. Strings are in lower case: a match contains one of them once its ASCII letters are.
//!
//! What a look around asks for is not counted, and neither is what a reference repeats.

use super::syntax::{Node, Repeat, UNBOUNDED, has_case};
use crate::rarity;

/// What literals a caller can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteralLimits {
    /// How many there may be.
    pub count_max: usize,
    /// How short they may be.
    pub bytes_min: usize,
    /// How long they get; of longer ones the rarest part is taken.
    pub bytes_max: usize,
}

impl Default for LiteralLimits {
    fn default() -> LiteralLimits {
        LiteralLimits { count_max: 64, bytes_min: 3, bytes_max: 24 }
    }
}

/// The best set of strings, if there is one within the limits.
pub(super) fn literals(node: &Node, limits: LiteralLimits) -> Option<Vec<Vec<u8>>> {
    let finder = Finder { limits };
    let mut run = Run::new();
    finder.node(node, &mut run);
    finder.flush(&mut run);
    let mut strings = run.best?.strings;
    strings.sort_unstable();
    strings.dedup();
    Some(strings)
}

/// Strings of which one is needed, and how often one of them stands somewhere.
struct Needed {
    strings: Vec<Vec<u8>>,
    share: f64,
}

/// A sequence under way.
struct Run {
    /// What stands in front of here: exactly one of these, which do not begin before the run did.
    ends: Vec<Vec<u8>>,
    best: Option<Needed>,
}

impl Run {
    fn new() -> Run {
        Run { ends: vec![Vec::new()], best: None }
    }

    fn offer(&mut self, needed: Option<Needed>) {
        let Some(needed) = needed else {
            return;
        };
        if self.best.as_ref().is_none_or(|best| needed.share < best.share) {
            self.best = Some(needed);
        }
    }
}

struct Finder {
    limits: LiteralLimits,
}

/// The most values of one byte that are followed.
const CLASS_MAX: usize = 16;
/// The most bytes of all strings that are followed at once.
const FOLLOWED_BYTES_MAX: usize = 1 << 14;

impl Finder {
    /// Continues the run with a node.
    fn node(&self, node: &Node, run: &mut Run) {
        match node {
            Node::Empty | Node::Assert(_) | Node::Look(_) => {}
            Node::Never => run.ends.clear(),
            Node::Literal { bytes, fold } => self.literal(bytes, *fold, run),
            Node::Set(_) => self.extend(self.exact(node), run),
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.node(node, run)),
            Node::Group(node, _) | Node::Atomic(node) => self.node(node, run),
            Node::Alternate(nodes) => match self.exact(node) {
                Some(all) => self.extend(Some(all), run),
                None => {
                    self.flush(run);
                    run.offer(self.alternatives(nodes));
                }
            },
            Node::Repeat(repeat) => self.repeat(repeat, run),
            Node::Backreference { .. } => self.flush(run),
        }
    }

    fn literal(&self, bytes: &[u8], fold: bool, run: &mut Run) {
        for part in bytes.chunk_by(|&one, &other| !fold || one.is_ascii() && other.is_ascii()) {
            for part in part.chunks(self.limits.bytes_max.max(1)) {
                let cases = if fold { cases(part) } else { vec![part.to_ascii_lowercase()] };
                self.extend(Some(cases), run);
            }
        }
    }

    /// Each alternative needs its own.
    fn alternatives(&self, nodes: &[Node]) -> Option<Needed> {
        let mut all = Needed { strings: Vec::new(), share: 0.0 };
        for node in nodes {
            let mut run = Run::new();
            self.node(node, &mut run);
            self.flush(&mut run);
            let needed = run.best?;
            all.share += needed.share;
            all.strings.extend(needed.strings);
            if all.strings.len() > self.limits.count_max {
                return None;
            }
        }
        Some(all)
    }

    fn repeat(&self, repeat: &Repeat, run: &mut Run) {
        let exact = self.exact(&repeat.node);
        if (repeat.min, repeat.max) == (0, 1) {
            let optional = exact.map(|mut all| {
                all.push(Vec::new());
                all
            });
            return self.extend(optional, run);
        }
        if repeat.min == 0 {
            return self.flush(run);
        }
        let Some(all) = exact else {
            self.node(&repeat.node, run);
            return if repeat.max > 1 {
                self.flush(run)
            };
        };
        for _ in 0..repeat.min.min(self.limits.bytes_max as u32) {
            self.extend(Some(all.clone()), run);
        }
        if repeat.max == UNBOUNDED || repeat.max > repeat.min || repeat.min > self.limits.bytes_max as u32 {
            self.flush(run);
            // The last turn belongs to what follows.
            self.extend(Some(all), run);
        }
    }

    /// Whatever the node matches, if that is few strings.
    fn exact(&self, node: &Node) -> Option<Vec<Vec<u8>>> {
        match node {
            Node::Empty | Node::Assert(_) | Node::Look(_) => Some(vec![Vec::new()]),
            Node::Literal { bytes, fold } => {
                let has_cases = *fold && bytes.len() > 1 && !bytes.is_ascii();
                let is_exact = bytes.len() <= self.limits.bytes_max && !has_cases;
                is_exact.then(|| if *fold { cases(bytes) } else { vec![bytes.to_ascii_lowercase()] })
            }
            Node::Set(set) => {
                let mut bytes: Vec<_> = set.iter().map(|byte| vec![byte.to_ascii_lowercase()]).collect();
                bytes.sort_unstable();
                bytes.dedup();
                (bytes.len() <= CLASS_MAX).then_some(bytes)
            }
            Node::Group(node, _) | Node::Atomic(node) => self.exact(node),
            Node::Alternate(nodes) => {
                let mut all = Vec::new();
                for node in nodes {
                    all.extend(self.exact(node)?);
                    if all.len() > self.limits.count_max {
                        return None;
                    }
                }
                all.sort_unstable();
                all.dedup();
                Some(all)
            }
            Node::Concat(nodes) => {
                let first = Some(vec![Vec::new()]);
                nodes.iter().try_fold(first, |all, node| Some(self.product(&all?, &self.exact(node)?))).flatten()
            }
            Node::Repeat(repeat) if (repeat.min, repeat.max) == (0, 1) => {
                let mut all = self.exact(&repeat.node)?;
                all.push(Vec::new());
                Some(all)
            }
            Node::Repeat(repeat) if repeat.min == repeat.max && repeat.min as usize <= self.limits.bytes_max => {
                let each = self.exact(&repeat.node)?;
                let first = Some(vec![Vec::new()]);
                (0..repeat.min).try_fold(first, |all, _| Some(self.product(&all?, &each))).flatten()
            }
            Node::Never | Node::Repeat(_) | Node::Backreference { .. } => None,
        }
    }

    /// Each of `all` with each of `next` behind it, if these are few.
    fn product(&self, all: &[Vec<u8>], next: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
        let count = all.len().checked_mul(next.len()).filter(|&count| count <= self.limits.count_max)?;
        let longest = |of: &[Vec<u8>]| of.iter().map(Vec::len).max().unwrap_or(0);
        if count.saturating_mul(longest(all) + longest(next)) > FOLLOWED_BYTES_MAX {
            return None;
        }
        let with = |one: &Vec<u8>| next.iter().map(|next| [&one[..], next].concat()).collect::<Vec<_>>();
        let mut product: Vec<_> = all.iter().flat_map(with).collect();
        product.sort_unstable();
        product.dedup();
        Some(product)
    }

    /// Continues the run with strings of which exactly one follows; without them it ends and another begins.
    fn extend(&self, next: Option<Vec<Vec<u8>>>, run: &mut Run) {
        let Some(next) = next else {
            return self.flush(run);
        };
        if let Some(product) = self.product(&run.ends, &next) {
            run.ends = product;
            return;
        }
        self.flush(run);
        if next.len() <= self.limits.count_max {
            run.ends = next;
        }
    }

    /// Ends the run: its strings are needed. Another begins.
    fn flush(&self, run: &mut Run) {
        let ends = std::mem::replace(&mut run.ends, vec![Vec::new()]);
        let is_usable = ends.iter().all(|string| string.len() >= self.limits.bytes_min.max(1));
        if !is_usable || ends.len() > self.limits.count_max {
            return;
        }
        let strings: Vec<_> = ends.iter().map(|string| rarest(string, self.limits.bytes_max)).collect();
        let share = strings.iter().map(|string| share(string) + SHARE_OF_EACH).sum();
        run.offer(Some(Needed { strings, share }));
    }
}

/// What a string that is ASCII, or one byte, becomes where case does not count: other letters are not in lower case where it is
/// searched for.
fn cases(part: &[u8]) -> Vec<Vec<u8>> {
    match part {
        [byte] if !byte.is_ascii() && has_case(*byte) => vec![vec![byte & !0x20], vec![byte | 0x20]],
        part => vec![part.to_ascii_lowercase()],
    }
}

/// The rarest part of a string of that many bytes.
fn rarest(string: &[u8], bytes_max: usize) -> Vec<u8> {
    let windows = string.windows(bytes_max.clamp(1, string.len().max(1)));
    let rarest = windows.max_by_key(|window| cost(window));
    rarest.unwrap_or_default().to_vec()
}

/// The cost of a string by the model of byte pairs, in eighths of a bit.
fn cost(string: &[u8]) -> u32 {
    let pairs = string.windows(2).map(|pair| rarity::after(pair[0], pair[1])).sum::<u32>();
    string.first().map_or(0, |&first| rarity::alone(first)) + pairs
}

/// What a string costs whatever it is: of sets that are rare enough, the one of fewer strings is better.
const SHARE_OF_EACH: f64 = 1.0 / (1 << 22) as f64;

/// How often a string stands at an offset, by the model.
fn share(string: &[u8]) -> f64 {
    (-f64::from(cost(string)) / 8.0).exp2()
}
