//! State of one logical signature over one stream: counts, numbers read beside matches, and, at the end, the condition.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stream::ReadAt;

use crate::allowance::Allowance;
use crate::layout::Layout;
use crate::run::ends::Ends;
use crate::syntax::compare::{Compare, REACH, Reading};
use crate::syntax::expression::SUBSIGNATURES_MAX;
use crate::syntax::pcre::{KEPT_BYTES, Pcre, Search, Turn};
use crate::syntax::picture::{self, PICTURE_BYTES_MAX, Shown};
use crate::syntax::signature::Logic;

/// The most bytes that one search of a rule of YARA looks at, each as often as it does; but for the last match.
const SEARCHED_AT_ONCE_MAX: u64 = 16 << 20;

/// A logical signature of which something matched.
#[derive(Debug, Clone)]
pub(crate) struct RuleState {
    counts: Box<[Count]>,
    /// Where the first match started.
    first: u64,
    /// One for each comparison.
    readings: Box<[Reading]>,
    /// For each macro the starts of the subsignature before it.
    before: Box<[Ends]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    count: u32,
    last_start: u64,
}

impl RuleState {
    pub(crate) fn new(logic: &Logic, first: u64) -> RuleState {
        RuleState {
            counts: vec![Count::default(); usize::from(logic.subs)].into_boxed_slice(),
            first,
            readings: vec![Reading::default(); logic.compares.len()].into_boxed_slice(),
            before: vec![Ends::default(); logic.macros.len()].into_boxed_slice(),
        }
    }

    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn count_of(&self, sub: u8) -> u32 {
        self.counts.get(usize::from(sub)).map_or(0, |count| count.count)
    }

    /// Counts a match, unless it is the last one told again; whether it did.
    pub(crate) fn count(&mut self, sub: u8, start: u64) -> bool {
        let Some(count) = self.counts.get_mut(usize::from(sub)) else {
            return false;
        };
        if count.count > 0 && count.last_start == start {
            return false;
        }
        *count = Count { count: count.count.saturating_add(1), last_start: start };
        true
    }

    /// Counts so many further matches.
    pub(crate) fn count_more(&mut self, sub: u8, more: u64) {
        if let Some(count) = self.counts.get_mut(usize::from(sub)) {
            count.count = count.count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        }
    }

    /// Begins to read the number of a comparison beside a match that was known behind `known` bytes; whether its bytes
    /// can still be had.
    pub(crate) fn read(&mut self, index: usize, compare: &Compare, start: u64, known: u64) -> bool {
        let place = compare.place(start);
        let within = place.is_none_or(|place| place.saturating_add(REACH as u64) >= known);
        self.readings[index] = match place {
            Some(place) if within => Reading::at(place, compare.count()),
            _ => Reading::default(),
        };
        within
    }

    /// Takes bytes for a reading; whether it is done.
    pub(crate) fn take(&mut self, index: usize, offset: u64, bytes: &[u8]) -> bool {
        self.readings[index].take(offset, bytes)
    }

    /// The subsignature before a macro started there; starts before `oldest` are forgotten. Whether one had to be that
    /// still matters.
    pub(crate) fn before(&mut self, index: usize, start: u64, oldest: u64) -> bool {
        self.before[index].forget(oldest);
        self.before[index].push(start, start)
    }

    /// Whether the subsignature before a macro started from `low` to `high`.
    pub(crate) fn is_before(&self, index: usize, low: u64, high: Option<u64>) -> bool {
        high.is_some_and(|high| self.before[index].within(low, high).next().is_some())
    }

    /// Work to be done for the signature at the end, now that all has passed.
    pub(crate) fn ending(&self, logic: &Logic) -> Ending {
        let mut counts = [0; SUBSIGNATURES_MAX];
        for (count, known) in counts.iter_mut().zip(&self.counts) {
            *count = known.count;
        }
        for (compare, reading) in logic.compares.iter().zip(&self.readings) {
            let holds = reading.complete().is_some_and(|bytes| compare.holds(bytes));
            counts[usize::from(compare.sub)] = u32::from(holds);
        }
        Ending { counts, next: 0, search: None }
    }
}

/// A logical signature whose stream has ended: its regular expressions are searched one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    counts: [u32; SUBSIGNATURES_MAX],
    /// Number of the next expression.
    next: usize,
    search: Option<Search>,
}

impl Ending {
    /// Goes on a little; once all is known, whether the signature holds.
    pub(crate) fn turn(&mut self, logic: &Logic, layout: Option<&Layout>, content: &mut Content<'_>) -> Option<bool> {
        while let Some(pcre) = logic.expressions.get(self.next) {
            if self.search.is_none() && pcre.trigger.holds(|sub| self.counts[usize::from(sub)]) {
                self.search = content.begin(pcre, layout);
            }
            let Some(search) = &mut self.search else {
                self.next += 1;
                continue;
            };
            if !content.turn(pcre, search) {
                self.counts[usize::from(pcre.sub)] = search.count;
                (self.search, self.next) = (None, self.next + 1);
            }
            return None;
        }
        Some(logic.expression.holds(|sub| self.counts[usize::from(sub)]))
    }
}

/// The kept beginning of an object, read when it is first asked for.
pub(crate) struct Content<'a> {
    kept: &'a dyn ReadAt,
    size: u64,
    known: &'a mut Known,
    allowance: &'a Allowance,
    searched: u64,
}

/// Content that is kept from turn to turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    bytes: Option<Vec<u8>>,
    /// The object as a picture, until it is hashed.
    decoded: Option<Box<Shown>>,
    picture: Option<u64>,
    lost: bool,
}

impl Known {
    /// Whether a search was given up, or did not see the whole object.
    pub(crate) const fn is_lost(&self) -> bool {
        self.lost
    }
}

impl<'a> Content<'a> {
    pub(crate) fn new(kept: &'a dyn ReadAt, size: u64, known: &'a mut Known, allowance: &'a Allowance) -> Content<'a> {
        Content { kept, size, known, allowance, searched: 0 }
    }

    /// The size of the object.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes were searched, all searches together.
    pub(crate) const fn searched(&self) -> u64 {
        self.searched
    }

    /// Searches what is kept; `search` may look at so many bytes, and says at how many it did, and whether that was all. Tells
    /// that, too.
    pub(crate) fn search(&mut self, search: impl FnOnce(&[u8], u64) -> (u64, bool)) -> u64 {
        if !self.allowance.grants_search(1) {
            self.known.lost = true;
            return 1;
        }
        let (work, whole) = search(self.bytes(), SEARCHED_AT_ONCE_MAX);
        self.searched += work;
        self.known.lost |= !whole || !self.allowance.grants_search(work);
        work
    }

    /// A search was given up.
    pub(crate) const fn lose(&mut self) {
        self.known.lost = true;
    }

    /// Kept beginning of the object.
    fn bytes(&mut self) -> &[u8] {
        let (kept, size) = (self.kept, self.size);
        let bytes = self.known.bytes.get_or_insert_with(|| read(kept, size.min(KEPT_BYTES)));
        self.known.lost |= (bytes.len() as u64) < size;
        bytes
    }

    /// Decodes the object as a picture, unless it is larger than what is looked at.
    pub(crate) fn decode_picture(&mut self) {
        if self.size > PICTURE_BYTES_MAX {
            return;
        }
        let bytes = read(self.kept, self.size);
        if bytes.len() as u64 == self.size {
            let (decoded, work) = picture::decoded(&bytes, self.allowance);
            self.searched += work;
            self.known.decoded = decoded.map(Box::new);
        } else {
            self.known.lost = true;
        }
    }

    /// Computes the hash of the picture that was decoded.
    pub(crate) fn hash_picture(&mut self) {
        if let Some(decoded) = self.known.decoded.take() {
            self.searched += u64::from(decoded.width()) * u64::from(decoded.height());
            self.known.picture = catch_unwind(AssertUnwindSafe(|| picture::hash(*decoded))).ok();
        }
    }

    /// The hash of the picture that the object is, once it was looked at.
    pub(crate) const fn picture(&self) -> Option<u64> {
        self.known.picture
    }

    /// Adds work that fuel is to be burned for, beside the searches.
    pub(crate) fn work(&mut self, steps: u64) {
        self.searched += steps;
    }

    /// Reads what is kept from that offset on; whether all of it is.
    pub(crate) fn bytes_at(&self, offset: u64, buffer: &mut [u8]) -> bool {
        self.kept.read_at(offset, buffer) == buffer.len()
    }

    /// So many bytes from that offset on, if all of them are kept.
    pub(crate) fn range(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let length = usize::try_from(length.min(KEPT_BYTES + 1)).ok().filter(|&length| length as u64 <= KEPT_BYTES)?;
        let mut bytes = vec![0; length];
        self.bytes_at(offset, &mut bytes).then_some(bytes)
    }

    /// Begins a search.
    fn begin(&mut self, pcre: &Pcre, layout: Option<&Layout>) -> Option<Search> {
        let size = self.size;
        pcre.search(self.bytes(), size, layout)
    }

    /// Goes on with a search; whether it has to go on.
    fn turn(&mut self, pcre: &Pcre, search: &mut Search) -> bool {
        let (turn, work) = pcre.turn(search, self.bytes());
        self.searched += work;
        let granted = self.allowance.grants_search(work);
        self.known.lost |= turn == Turn::GivenUp || !granted && turn == Turn::More;
        turn == Turn::More && granted
    }
}

/// Reads kept bytes from the start on.
fn read(kept: &dyn ReadAt, wanted: u64) -> Vec<u8> {
    let mut bytes = vec![0; wanted as usize];
    let mut filled = 0;
    while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match kept.read_at(filled as u64, room) {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    bytes
}
