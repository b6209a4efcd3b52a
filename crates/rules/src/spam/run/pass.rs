//! Expressions over the same haystacks: one pass for their literals, then only those run of which one was found.
//!
//! The plain way: run each expression over each haystack. Instead the haystacks are laid end to end, folded, and
//! searched once for literals of which every match of an expression contains one; that leaves a few pairs of an expression
//! and a haystack. The tricks, and what each buys:
//! * **ASCII has literals of its own**: what rules write for letters that look alike falls away, so that few strings are left.
//!   Haystacks beyond ASCII are asked for what holds for any bytes.
//! * **As often as it must**: a match of a loop has one of its literals in every turn.
//! * **Outlines**: what has no literals, or common ones, runs only where the sets of bytes that a match goes through follow
//!   each other; all of these are looked for in one more pass.
//! * **Where the literals stand** is where a match is, give or take its length, if it has a longest: only there is it run.
//! * **What is left** runs only where the haystack is long enough and has a byte of each set that a match needs.

use std::collections::HashMap;
use std::ops::Range;

use pattern::ByteSet;
use pattern::expression::{Joint, JointRoom, Literals, Outline, Outlines, Toil, fold};

use super::words::{PADDING, Words};
use crate::spam::search::{Ready, SHARE_COMMON};

/// An expression by its place in a [`Pass`], a haystack that it may match in, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) place: u32,
    /// The number of the haystack.
    pub(super) haystack: u32,
    /// No match begins before it, and none ends behind it.
    pub(super) within: Range<u32>,
}

/// Anywhere in a haystack.
pub(super) const ANYWHERE: Range<u32> = 0..u32::MAX;

/// The literals of a number of expressions.
#[derive(Debug, Default)]
pub(super) struct Pass {
    items: Vec<Condition>,
    index: Index,
    /// Expressions without literals: for haystacks that are ASCII, and for others.
    always: [Vec<u32>; 2],
    /// The same two, for what is run often otherwise.
    outlines: [Outlines; 2],
    /// Joint automaton of expressions that would run over most ASCII haystacks, and these expressions.
    joint: Joint,
    members: Vec<u32>,
}

/// Expressions whose parts are less rare, in bits, are not walked together with others: they would be found everywhere.
const BITS_OF_JOINT: f64 = 14.0;
/// Bound on the cost of the walk of a mail ([`Toil`]): some hundredths of a second for hostile mails, since it is not cut into slices.
const TOIL_MAX: u64 = 1 << 15;

/// An outline that is not as rare as this is of no use.
const SHARE_OF_OUTLINE_MAX: f64 = 0.02;
/// Literals that are not rarer than this much times the share of the outline are of no use beside it.
const SHARE_GAIN: f64 = 2.0;

/// The most places that are counted of literals of which a match has several.
const COUNTED_MAX: usize = 1 << 15;

/// Matches that may be longer are looked for in the whole haystack.
const REACH_MAX: u32 = 1 << 16;

/// Literals and outlines that select an expression.
struct Filters<'n> {
    literals: Option<&'n Literals>,
    outline: Option<&'n Outline>,
}

impl<'n> Filters<'n> {
    /// Rare literals alone; where they are common, the outline too, and alone where it is rarer.
    fn of(literals: Option<&'n Literals>, outline: Option<&'n Outline>) -> Filters<'n> {
        let share = literals.map_or(1.0, |literals| literals.share);
        let outline = outline.filter(|outline| share > SHARE_COMMON && outline.share < SHARE_OF_OUTLINE_MAX);
        let is_rarer = outline.is_some_and(|outline| outline.share * SHARE_GAIN < share);
        Filters { literals: literals.filter(|_| !is_rarer), outline }
    }
}

/// Condition on a haystack, whatever its literals.
#[derive(Debug)]
struct Condition {
    bytes_min: usize,
    /// How far the ends of a match are from where a literal in it begins, at most; of a long one nothing.
    reach: Option<u32>,
    sets: Box<[ByteSet]>,
    /// For either kind, whether the outline has to be there.
    is_outlined: [bool; 2],
}

/// Literals, and whose they are.
#[derive(Debug, Default)]
struct Index {
    words: Words,
    /// Index of the first owner of each literal; one more at the end.
    starts: Vec<u32>,
    owners: Vec<Owner>,
}

/// An expression that has a literal.
#[derive(Debug, Clone, Copy)]
struct Owner {
    place: u32,
    kind: Kind,
    /// At how many places one of its literals has to begin.
    times: u32,
}

/// Haystacks for which a literal counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ascii = 0,
    Other = 1,
}

/// Haystacks end to end, folded.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// As they are; they end where those of `text` do.
    raw: Vec<u8>,
    text: Text,
    facts: Vec<Fact>,
    noted: Noted,
    outlined: Outlined,
}

/// Table of the outlines found in haystacks: a row of bits for each haystack.
#[derive(Debug, Default)]
struct Outlined {
    bits: Vec<u64>,
    /// Words of a row.
    width: usize,
}

/// In which haystack each literal was found last, and where.
#[derive(Debug, Default)]
struct Noted {
    stamps: Vec<u32>,
    /// Spot of each literal.
    spots: Vec<u32>,
    /// Where a literal was found first and last in a haystack.
    places: Vec<(u32, u32)>,
    /// The stamp of the next haystack.
    next: u32,
}

#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Facts about a haystack.
#[derive(Debug, Clone, Copy)]
struct Fact {
    length: usize,
    kind: Kind,
    /// The bytes that stand in it.
    bytes: ByteSet,
}

impl Joined {
    /// No haystack, in the memory that there is.
    pub(super) fn clear(&mut self) {
        self.text.bytes.clear();
        self.text.ends.clear();
        self.facts.clear();
        self.raw.clear();
    }

    /// Adds a haystack behind the others.
    pub(super) fn push(&mut self, haystack: &[u8]) {
        let kind = if haystack.is_ascii() { Kind::Ascii } else { Kind::Other };
        self.raw.extend_from_slice(haystack);
        let text = &mut self.text;
        let start = text.bytes.len();
        text.bytes.extend_from_slice(haystack);
        fold(&mut text.bytes[start..]);
        text.ends.push(text.bytes.len());
        self.facts.push(Fact { length: haystack.len(), kind, bytes: ByteSet::present(haystack) });
    }
}

impl Outlined {
    /// Clears the table of outlines for this number of haystacks and expressions.
    fn begin(&mut self, haystacks: usize, expressions: usize) {
        self.width = expressions.div_ceil(64);
        self.bits.clear();
        self.bits.resize(self.width * haystacks, 0);
    }

    fn note(&mut self, haystack: u32, place: u32) {
        self.bits[haystack as usize * self.width + place as usize / 64] |= 1 << (place % 64);
    }

    fn has(&self, haystack: u32, place: u32) -> bool {
        self.bits[haystack as usize * self.width + place as usize / 64] >> (place % 64) & 1 != 0
    }
}

impl Noted {
    /// The stamp of the first of so many haystacks, for so many literals.
    fn begin(&mut self, literals: usize, haystacks: usize) -> u32 {
        let haystacks = u32::try_from(haystacks).unwrap_or(u32::MAX);
        if self.next.checked_add(haystacks).is_none() {
            self.stamps.clear();
            self.next = 0;
        }
        if self.stamps.len() < literals {
            self.stamps.resize(literals, u32::MAX);
            self.spots.resize(literals, 0);
        }
        self.places.clear();
        let first = self.next;
        self.next = first.saturating_add(haystacks);
        first
    }

    /// Notes where in a haystack a literal begins, and says whether it is the first place there; and the spot of both.
    fn note(&mut self, literal: u32, stamp: u32, at: u32) -> (bool, u32) {
        let literal = literal as usize;
        let is_new = std::mem::replace(&mut self.stamps[literal], stamp) != stamp;
        if is_new {
            self.spots[literal] = self.places.len() as u32;
            self.places.push((at, at));
        } else if let Some((_, last)) = self.places.get_mut(self.spots[literal] as usize) {
            *last = at;
        }
        (is_new, self.spots[literal])
    }
}

impl Pass {
    /// Collects the literals of expressions, which are known by their places from here on.
    pub(super) fn new<'a>(expressions: impl Iterator<Item = &'a Ready>) -> Pass {
        let mut pass = Pass::default();
        let mut builder = Builder::default();
        for (place, ready) in (0..).zip(expressions) {
            let needs = &ready.needs;
            let mut is_outlined = [false; 2];
            let any = needs.any.as_ref();
            let parts = needs.parts.as_ref().filter(|parts| parts.bits >= BITS_OF_JOINT);
            for (kind, literals) in [(Kind::Ascii, needs.ascii.as_ref().or(any)), (Kind::Other, any)] {
                if let Some(parts) = parts.filter(|_| kind == Kind::Ascii) {
                    pass.joint.push(parts);
                    pass.members.push(place);
                    continue;
                }
                let filters = Filters::of(literals, needs.outline.as_ref());
                if let Some(outline) = filters.outline {
                    pass.outlines[kind as usize].add(place, outline);
                    is_outlined[kind as usize] = true;
                }
                match filters.literals {
                    Some(literals) => builder.add(place, kind, literals),
                    None => pass.always[kind as usize].push(place),
                }
            }
            let sets = needs.sets.iter().copied().filter(|set| set.len() < 200).collect();
            let reach = needs.bytes_max.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes < REACH_MAX);
            pass.items.push(Condition { bytes_min: needs.bytes_min, reach, sets, is_outlined });
        }
        pass.index = builder.build();
        pass
    }

    /// Lists the pairs of expression and haystack with a possible match, and its place, in order of both, each once.
    pub(super) fn candidates(&self, joined: &mut Joined, room: &mut JointRoom, pairs: &mut Vec<Pair>) {
        pairs.clear();
        self.outline(joined);
        self.walk(joined, room, pairs);
        let outlined = &joined.outlined;
        for (haystack, fact) in (0..).zip(&joined.facts) {
            let all = self.always[fact.kind as usize].iter().copied();
            let all = all.filter(|&place| self.may_match(place, haystack, fact, outlined));
            pairs.extend(all.map(|place| Pair { place, haystack, within: ANYWHERE }));
        }
        self.find(joined, pairs);
        pairs.sort_unstable_by_key(|pair| (pair.place, pair.haystack));
        pairs.dedup_by(|pair, kept| {
            let is_same = (pair.place, pair.haystack) == (kept.place, kept.haystack);
            if is_same {
                kept.within.start = kept.within.start.min(pair.within.start);
                kept.within.end = kept.within.end.max(pair.within.end);
            }
            is_same
        });
    }

    /// Walks over haystacks that are ASCII.
    fn walk(&self, joined: &mut Joined, room: &mut JointRoom, pairs: &mut Vec<Pair>) {
        let Joined { raw, text, facts, .. } = joined;
        let mut toil = Toil::new(TOIL_MAX);
        let mut start = 0;
        for ((haystack, fact), &end) in (0..).zip(&*facts).zip(&text.ends) {
            let bytes = &raw[start..end];
            start = end;
            if fact.kind != Kind::Ascii {
                continue;
            }
            let all = self.members.iter().copied().filter(|&place| self.items[place as usize].may_match(fact));
            let all = all.map(|place| Pair { place, haystack, within: ANYWHERE });
            let is_known = self.joint.find(room, bytes, &mut toil, |member| {
                let place = self.members[member as usize];
                if self.items[place as usize].may_match(fact) {
                    pairs.push(Pair { place, haystack, within: ANYWHERE });
                }
            });
            if !is_known {
                pairs.extend(all);
            }
        }
    }

    /// Looks for outlines.
    fn outline(&self, joined: &mut Joined) {
        let Joined { raw, text, facts, outlined, .. } = joined;
        outlined.begin(facts.len(), self.items.len());
        let mut start = 0;
        for ((haystack, fact), &end) in (0..).zip(&*facts).zip(&text.ends) {
            let outlines = &self.outlines[fact.kind as usize];
            outlines.find(&raw[start..end], |place| outlined.note(haystack, place));
            start = end;
        }
    }

    /// Whether what is known of a haystack allows a match.
    fn may_match(&self, place: u32, haystack: u32, fact: &Fact, outlined: &Outlined) -> bool {
        let item = &self.items[place as usize];
        (!item.is_outlined[fact.kind as usize] || outlined.has(haystack, place)) && item.may_match(fact)
    }

    /// Adds the pairs for which literals are found.
    fn find(&self, joined: &mut Joined, pairs: &mut Vec<Pair>) {
        let Joined { text, facts, noted, outlined, .. } = joined;
        let index = &self.index;
        // Literals that repeat are noted once in each haystack.
        let first = noted.begin(index.words.len(), facts.len());
        let mut counted: Vec<((u32, u32), u32, usize)> = Vec::new();
        let mut spots: Vec<(u32, u32, u32)> = Vec::new();
        let mut haystack = 0;
        text.bytes.extend_from_slice(&[0; PADDING]);
        index.words.find(&text.bytes, |word, start| {
            haystack = text.place(start, haystack);
            let Some(fact) = facts.get(haystack as usize) else { return };
            let at = u32::try_from(start - text.start(haystack)).unwrap_or(u32::MAX);
            let (is_new, spot) = noted.note(word, first + haystack, at);
            let owners = index.owners(word).iter();
            let is_asked = |owner: &&Owner| owner.kind == fact.kind && (is_new || owner.times > 1);
            for owner in owners.filter(is_asked) {
                if !self.may_match(owner.place, haystack, fact, outlined) {
                    continue;
                }
                match owner.times {
                    1 => spots.push((owner.place, haystack, spot)),
                    times if counted.len() < COUNTED_MAX => counted.push(((owner.place, haystack), times, start)),
                    // So many are not counted: it may match.
                    _ if is_new => pairs.push(Pair { place: owner.place, haystack, within: ANYWHERE }),
                    _ => {}
                }
            }
        });
        text.bytes.truncate(text.bytes.len() - PADDING);
        pairs.extend(spots.into_iter().map(|(place, haystack, spot)| {
            let within = self.items[place as usize].around(noted.places[spot as usize]);
            Pair { place, haystack, within }
        }));
        counted.sort_unstable();
        counted.dedup();
        let all = counted.chunk_by(|one, other| one.0 == other.0);
        let is_full = counted.len() >= COUNTED_MAX;
        let all = all.filter(|all| is_full || all.len() >= all[0].1 as usize).map(|all| all[0].0);
        pairs.extend(all.map(|(place, haystack)| Pair { place, haystack, within: ANYWHERE }));
    }

    /// Expressions without literals in haystacks that are ASCII.
    pub(super) fn always(&self) -> usize {
        self.always[Kind::Ascii as usize].len()
    }

    /// Words of outlines, of which there are four for each byte.
    pub(super) fn words(&self) -> usize {
        self.outlines.iter().map(Outlines::words).sum()
    }

    /// Expressions that are walked together.
    pub(super) fn joint(&self) -> usize {
        self.members.len()
    }

    /// Literals.
    pub(super) fn literals(&self) -> usize {
        self.index.words.len()
    }
}

impl Condition {
    /// Where matches are that hold a literal whose first and last place these are. A line feed behind a match may count as its.
    fn around(&self, (first, last): (u32, u32)) -> Range<u32> {
        let around = |reach: u32| first.saturating_sub(reach)..last.saturating_add(reach + 1);
        self.reach.map_or(ANYWHERE, around)
    }

    /// Whether what is known of a haystack allows a match.
    fn may_match(&self, fact: &Fact) -> bool {
        fact.length >= self.bytes_min && self.sets.iter().all(|set| set.meets(&fact.bytes))
    }
}

impl Text {
    /// Where a haystack begins.
    fn start(&self, haystack: u32) -> usize {
        (haystack as usize).checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The haystack in which a byte stands, which is near `near`.
    fn place(&self, at: usize, near: u32) -> u32 {
        if self.start(near) <= at && self.ends.get(near as usize).is_some_and(|&end| at < end) {
            return near;
        }
        self.ends.partition_point(|&end| end <= at) as u32
    }
}

impl Index {
    fn owners(&self, word: u32) -> &[Owner] {
        let place = word as usize;
        &self.owners[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// Collects literals.
#[derive(Debug, Default)]
struct Builder<'n> {
    words: Vec<&'n [u8]>,
    numbers: HashMap<&'n [u8], u32>,
    owners: Vec<(u32, Owner)>,
}

impl<'n> Builder<'n> {
    fn add(&mut self, place: u32, kind: Kind, literals: &'n Literals) {
        for string in &literals.strings {
            let number = *self.numbers.entry(string).or_insert_with(|| {
                self.words.push(string);
                self.words.len() as u32 - 1
            });
            self.owners.push((number, Owner { place, kind, times: literals.times }));
        }
    }

    fn build(mut self) -> Index {
        self.owners.sort_by_key(|(word, owner)| (*word, owner.place));
        let mut starts = Vec::with_capacity(self.words.len() + 1);
        let mut at = 0;
        for word in 0..self.words.len() as u32 {
            starts.push(at as u32);
            at += self.owners[at..].iter().take_while(|(owned, _)| *owned == word).count();
        }
        starts.push(at as u32);
        let owners = self.owners.into_iter().map(|(_, owner)| owner).collect();
        Index { words: Words::new(&self.words), starts, owners }
    }
}

#[cfg(test)]
mod tests {
    use pattern::expression::Reader;

    use super::*;

    fn pass(texts: &[&str]) -> Pass {
        let ready = |text: &&str| Ready::new(text.as_bytes(), "i", &mut Reader::default()).unwrap();
        let all: Vec<Ready> = texts.iter().map(ready).collect();
        Pass::new(all.iter())
    }

    fn pairs(pass: &Pass, haystacks: &[&str]) -> Vec<Pair> {
        let (mut joined, mut pairs) = (Joined::default(), Vec::new());
        haystacks.iter().for_each(|haystack| joined.push(haystack.as_bytes()));
        pass.candidates(&mut joined, &mut JointRoom::default(), &mut pairs);
        pairs
    }

    fn candidates(pass: &Pass, haystacks: &[&str]) -> Vec<(u32, u32)> {
        pairs(pass, haystacks).into_iter().map(|pair| (pair.place, pair.haystack)).collect()
    }

    #[test]
    fn only_what_a_literal_was_found_of_is_a_candidate() {
        let pass = pass(&["free money", "viagra|cialis", r"\d"]);
        assert_eq!(pass.always(), 1);
        let pairs = candidates(&pass, &["Viagra 1\n", "nothing\n", "FREE MONEY and cialis 2\n"]);
        assert_eq!(pairs, [(0, 2), (1, 0), (1, 2), (2, 0), (2, 2)]);
    }

    #[test]
    fn a_literal_belongs_to_all_that_have_it() {
        let pass = pass(&["abcdef", "abcdef+"]);
        assert_eq!(candidates(&pass, &["xabcdefx"]), [(0, 0), (1, 0)]);
    }

    #[test]
    fn letters_that_look_alike_are_known_by_their_outline() {
        let pass = pass(&[r"(?!pills)[p\xfe]{1,2}[\W_]{0,3}(?:[i1!|]|\xc3\xad)[\W_]{0,3}[l1|]{2}[\W_]{0,3}[s$z5]"]);
        assert_eq!(pass.always(), 1);
        assert_eq!(candidates(&pass, &["p - i - ll s", "what there is", "p\u{ed}lls", "caf\u{e9}"]), [(0, 0), (0, 2)]);
    }

    #[test]
    fn a_loop_needs_its_literals_as_often_as_it_turns() {
        let pass = pass(&["(?:(?:name|address|phone)[\\s:]+){3}"]);
        let haystacks = ["name: phone:", "name name name:", "your name and address and the phone:", "name name"];
        assert_eq!(candidates(&pass, &haystacks), [(0, 1), (0, 2)]);
    }

    #[test]
    fn a_match_is_around_its_literals_as_far_as_it_may_be_long() {
        let pass = pass(&["[a-z] viagra", "viagra.{0,9}|cialis", "free.*money"]);
        let found =
            pairs(&pass, &["nothing", &"-".repeat(40).replacen('-', "viagra or viagra, cialis", 1), "free money"]);
        let within: Vec<_> = found.iter().map(|pair| (pair.place, pair.haystack, pair.within.clone())).collect();
        // The literal is " viagra", and a line feed may be taken.
        assert_eq!(within[0], (0, 1, 1..9 + 8 + 1));
        assert_eq!(within[1], (1, 1, 0..18 + 15 + 1));
        assert_eq!(within[2], (2, 2, ANYWHERE));
        assert_eq!(within.len(), 3);
    }

    #[test]
    fn without_literals_length_bytes_and_outline_decide() {
        let pass = pass(&["[0-9][a-z]{4}", "(?:[^,]{1,90},){3}x"]);
        assert_eq!(candidates(&pass, &["1abcd", "1abc", "abcdefgh", "a,b,c,x", "1b,c,x"]), [(0, 0), (1, 3)]);
    }
}
