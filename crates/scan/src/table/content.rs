//! The compiled signatures of one target type: patterns, and what their matches mean.
//!
//! A *chain* is a body: its parts in order with the gaps between them and the place where it must start. A chain
//! belongs to a signature, as its only body or as one of its subsignatures. From a part that matched, `users` leads to
//! the links of the chains that it is. Everything is a flat array of plain values, and what logical signatures ask for
//! beside their bodies is in [`Rules`].

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use pattern::flat::{Flat, Reader, Unfit, Writer};
use pattern::{PartId, Patterns, Piece, Refusal, Spread};

use crate::packed::Packed;
use crate::syntax::body::Gap;
use crate::syntax::location::{Location, PlainLocation};
use crate::syntax::signature::{Logic, Signature};
use crate::table::rules::{Rule, Rules};

/// One part of a chain.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) gap: Gap,
    /// The most bytes that the part may match.
    pub(crate) bytes_max: u32,
}

/// The parts of one chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links<'t> {
    table: &'t Table,
    first: usize,
    count: usize,
}

impl<'t> Links<'t> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, number: usize) -> Option<&'t Link> {
        let kind = (number < self.count).then(|| self.table.links.get(self.first + number))?;
        self.table.kinds.get(usize::try_from(kind?).ok()?)
    }
}

/// A body.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Chain {
    location: u32,
    pub(crate) signature: u32,
    first_link: u32,
    links: u16,
    /// Number of the subsignature in a logical signature.
    pub(crate) sub: u8,
    padding: u8,
}

/// A signature.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Named {
    pub(crate) name: u32,
    /// Its rule, or [`NO_RULE`].
    rule: u32,
}

/// Mark of a signature that is not logical.
const NO_RULE: u32 = u32::MAX;

/// A link of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) chain: u32,
    pub(crate) link: u16,
}

/// A macro subsignature of a signature.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MacroUser {
    signature: u32,
    group: u8,
    /// Number of the macro.
    index: u8,
    padding: u16,
}

/// A picture that a subsignature of a signature knows.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PictureUser {
    hash: u64,
    signature: u32,
    sub: u8,
    padding: [u8; 3],
}

/// Conditions of a signature besides its bodies.
pub(crate) enum Asks<'t> {
    /// Nothing: one of its bodies is enough.
    Nothing,
    /// This.
    Rule(&'t Rule),
    /// A condition that cannot be read: it never holds.
    Unknown,
}

/// The compiled signatures of one target type.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) patterns: Patterns,
    pub(crate) chains: Flat<Chain>,
    pub(crate) signatures: Flat<Named>,
    rules: Rules,
    /// Rules that may hold at the end of a stream in which nothing matched, if their sizes fit.
    pub(crate) hold_untouched: Flat<u32>,
    /// Whether some chain is placed by the layout of an executable.
    pub(crate) needs_layout: bool,
    /// Whether some chain is placed by version information.
    pub(crate) needs_version: bool,
    /// Whether some rule runs regular expressions over the content.
    pub(crate) wants_content: bool,
    /// Whether some rule reads bytes beside a match.
    pub(crate) reads_beside: bool,
    macros: Flat<MacroUser>,
    /// Sorted by hash.
    pictures: Flat<PictureUser>,
    locations: Flat<PlainLocation>,
    /// Each kind of link once.
    kinds: Flat<Link>,
    /// The kinds of the links of all chains, one chain after the other.
    links: Packed,
    /// Places of links, those of one part after those of another.
    users: Packed,
    /// Where those of each part begin.
    user_starts: Packed,
}

impl Table {
    /// The macro subsignatures of a group: signature, and which of its macros.
    pub(crate) fn macros(&self, group: u8) -> impl Iterator<Item = (u32, usize)> {
        let all = self.macros.iter().filter(move |one| one.group == group);
        all.map(|one| (one.signature, usize::from(one.index)))
    }

    /// Whether some signature knows pictures.
    pub(crate) fn knows_pictures(&self) -> bool {
        !self.pictures.is_empty()
    }

    /// The subsignatures that know a picture: signature, and which of its subsignatures.
    pub(crate) fn pictures(&self, hash: u64) -> impl Iterator<Item = (u32, u8)> {
        let first = self.pictures.partition_point(|one| one.hash < hash);
        let same = self.pictures[first..].iter().take_while(move |one| one.hash == hash);
        same.map(|one| (one.signature, one.sub))
    }

    /// Conditions of a signature.
    pub(crate) fn asks(&self, signature: u32) -> Asks<'_> {
        match self.signatures.get(signature as usize) {
            Some(Named { rule: NO_RULE, .. }) => Asks::Nothing,
            Some(named) => self.rules.get(named.rule).map_or(Asks::Unknown, Asks::Rule),
            None => Asks::Unknown,
        }
    }

    /// Rule of a signature, if it is logical.
    pub(crate) fn rule(&self, signature: u32) -> Option<&Rule> {
        match self.asks(signature) {
            Asks::Rule(rule) => Some(rule),
            _ => None,
        }
    }

    /// The links that a part is.
    pub(crate) fn users(&self, part: PartId) -> impl Iterator<Item = User> {
        let start = |part: usize| self.user_starts.get(part).unwrap_or(0) as usize;
        let places = start(part as usize)..start(part as usize + 1);
        places.filter_map(|place| self.user(self.users.get(place)?))
    }

    /// The link at a place.
    fn user(&self, place: u64) -> Option<User> {
        // A chain has a link at least, so that no two begin at the same place.
        let chain = self.chains.partition_point(|chain| u64::from(chain.first_link) <= place).checked_sub(1)?;
        let link = place - u64::from(self.chains[chain].first_link);
        (link < self.chains[chain].links.into()).then_some(User { chain: chain as u32, link: link as u16 })
    }

    /// The links of a chain.
    pub(crate) fn links(&self, chain: &Chain) -> Links<'_> {
        Links { table: self, first: chain.first_link as usize, count: chain.links.into() }
    }

    /// Where a chain may start.
    pub(crate) fn location(&self, chain: &Chain) -> Location {
        self.locations[chain.location as usize].location()
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let flags = [self.needs_layout, self.needs_version, self.wants_content, self.reads_beside];
        writer.array(&flags.map(u8::from))?;
        writer.array(&self.chains)?;
        writer.array(&self.signatures)?;
        writer.array(&self.hold_untouched)?;
        writer.array(&self.macros)?;
        writer.array(&self.pictures)?;
        writer.array(&self.locations)?;
        writer.array(&self.kinds)?;
        self.links.store(writer)?;
        self.users.store(writer)?;
        self.user_starts.store(writer)?;
        self.rules.store(writer)?;
        self.patterns.store(writer)
    }

    /// A stored table, whose names are numbered below `names`.
    pub(crate) fn load(reader: &mut Reader, names: u32) -> Result<Table, Unfit> {
        let [needs_layout, needs_version, wants_content, reads_beside] =
            reader.values::<u8, 4>()?.map(|flag| flag != 0);
        let table = Table {
            needs_layout,
            needs_version,
            wants_content,
            reads_beside,
            chains: reader.array()?,
            signatures: reader.array()?,
            hold_untouched: reader.array()?,
            macros: reader.array()?,
            pictures: reader.array()?,
            locations: reader.array()?,
            kinds: reader.array()?,
            links: Packed::load(reader)?,
            users: Packed::load(reader)?,
            user_starts: Packed::load(reader)?,
            rules: Rules::load(reader)?,
            patterns: Patterns::load(reader)?,
        };
        if table.fits(names) { Ok(table) } else { Err(Unfit::Malformed) }
    }

    /// Whether every number in it leads somewhere.
    fn fits(&self, names: u32) -> bool {
        let signatures = self.signatures.len();
        let is_signature = |number: u32| (number as usize) < signatures;
        let named_fit = self
            .signatures
            .iter()
            .all(|named| named.name < names && (named.rule == NO_RULE || (named.rule as usize) < self.rules.len()));
        let chains_fit = self.chains.iter().all(|chain| {
            is_signature(chain.signature)
                && (chain.location as usize) < self.locations.len()
                && chain.first_link as usize + usize::from(chain.links) <= self.links.len()
        });
        let links_fit = self.chains.is_sorted_by_key(|chain| chain.first_link)
            && self.links.iter().all(|kind| kind < self.kinds.len() as u64)
            && self.locations.iter().all(|location| location.is_one())
            && self.users.iter().all(|place| place < self.links.len() as u64)
            && self.user_starts.iter().all(|start| start <= self.users.len() as u64);
        named_fit
            && chains_fit
            && links_fit
            && self.hold_untouched.iter().all(|&number| is_signature(number))
            && self.macros.iter().all(|one| is_signature(one.signature))
            && self.pictures.iter().all(|one| is_signature(one.signature))
            && self.pictures.is_sorted_by_key(|one| one.hash)
    }
}

/// Collects the signatures of one target type.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    patterns: pattern::Builder,
    signatures: Vec<(Named, Range<usize>)>,
    chains: Vec<(Chain, Vec<PartId>)>,
    links: Vec<u32>,
    kinds: Interned<Link>,
    locations: Interned<PlainLocation>,
    rules: Vec<Logic>,
}

/// Values, each of them once.
#[derive(Debug)]
struct Interned<T> {
    values: Vec<T>,
    known: HashMap<Box<[u8]>, u32, BuildHasherDefault<Spread>>,
}

impl<T> Default for Interned<T> {
    fn default() -> Interned<T> {
        Interned { values: Vec::new(), known: HashMap::default() }
    }
}

impl<T: Pod> Interned<T> {
    /// The place of a value.
    fn add(&mut self, value: T) -> u32 {
        if let Some(&place) = self.known.get(bytemuck::bytes_of(&value)) {
            return place;
        }
        let place = self.values.len() as u32;
        self.values.push(value);
        self.known.insert(bytemuck::bytes_of(&value).into(), place);
        place
    }
}

impl TableBuilder {
    /// Adds a signature.
    ///
    /// # Errors
    /// If one of its parts cannot be scanned for; it is left out as a whole.
    pub(crate) fn add(&mut self, name: u32, signature: &Signature) -> Result<(), Refusal> {
        let mut compiled = Vec::with_capacity(signature.bodies.len());
        for body in &signature.bodies {
            let mut parts = Vec::with_capacity(body.parts.len());
            for (index, part) in body.parts.iter().enumerate() {
                let location = if index == 0 { body.location } else { Location::Anywhere };
                parts.push(self.part(&part.pieces, location)?);
            }
            compiled.push(parts);
        }
        let number = self.signatures.len() as u32;
        let first_chain = self.chains.len();
        for (body, parts) in signature.bodies.iter().zip(compiled) {
            let chain = Chain {
                location: self.locations.add(body.location.into()),
                signature: number,
                sub: body.sub,
                first_link: self.links.len() as u32,
                links: body.parts.len() as u16,
                padding: 0,
            };
            let kinds = body.parts.iter().map(|part| Link { gap: part.gap, bytes_max: bytes_max(&part.pieces) });
            self.links.extend(kinds.map(|link| self.kinds.add(link)));
            self.chains.push((chain, parts));
        }
        let rule = signature.logic.as_ref().map_or(NO_RULE, |logic| self.rule(logic));
        let named = Named { name, rule };
        self.signatures.push((named, first_chain..self.chains.len()));
        Ok(())
    }

    /// How many links there are.
    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }

    fn part(&mut self, pieces: &[Piece], location: Location) -> Result<PartId, Refusal> {
        match location {
            Location::Absolute { first, shift } => {
                let last = first.saturating_add(shift);
                self.patterns.add_at(pieces, first..=last)
            }
            _ => self.patterns.add(pieces),
        }
    }

    fn rule(&mut self, logic: &Logic) -> u32 {
        self.rules.push(logic.clone());
        (self.rules.len() - 1) as u32
    }

    /// Compiles what was added. Names get the numbers that `renamed` has for them; signatures without one are left out.
    pub(crate) fn build(self, renamed: impl Fn(u32) -> Option<u32>) -> Table {
        let mut signatures = Vec::with_capacity(self.signatures.len());
        let mut kept = vec![false; self.chains.len()];
        let mut hold_untouched = Vec::new();
        let mut macros = Vec::new();
        let mut pictures = Vec::new();
        for (number, (mut named, chains)) in self.signatures.into_iter().enumerate() {
            if let Some(name) = renamed(named.name) {
                named.name = name;
                kept[chains].fill(true);
                let logic = self.rules.get(named.rule as usize);
                if logic.is_some_and(Logic::counts_untouched) {
                    hold_untouched.push(number as u32);
                }
                let of_rule = logic.into_iter().flat_map(|logic| logic.macros.iter().zip(0u8..));
                let signature = number as u32;
                let known = logic.into_iter().flat_map(|logic| &logic.pictures);
                pictures.extend(known.map(|one| PictureUser {
                    hash: one.hash,
                    signature,
                    sub: one.sub,
                    padding: [0; 3],
                }));
                macros.extend(of_rule.map(|(one, index)| MacroUser { signature, group: one.group, index, padding: 0 }));
            }
            signatures.push(named);
        }
        pictures.sort_by_key(|one| one.hash);
        let patterns = self.patterns.build();
        // The places of the links of each part, in their order: counted first.
        let kept = || self.chains.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(chain, _)| chain);
        let mut user_starts = vec![0u32; patterns.len() + 1];
        kept().flat_map(|(_, parts)| parts).for_each(|part| user_starts[*part as usize + 1] += 1);
        for part in 1..user_starts.len() {
            user_starts[part] += user_starts[part - 1];
        }
        let (mut ends, mut users) = (user_starts.clone(), vec![0u32; user_starts[patterns.len()] as usize]);
        for (part, place) in kept().flat_map(|(chain, parts)| parts.iter().zip(chain.first_link..)) {
            let end = &mut ends[*part as usize];
            users[*end as usize] = place;
            *end += 1;
        }
        let chains: Vec<Chain> = self.chains.into_iter().map(|(chain, _)| chain).collect();
        let locations = self.locations.values.iter().map(|location| location.location());
        Table {
            needs_layout: locations.clone().any(|location| location.needs_layout())
                || self.rules.iter().any(Logic::needs_layout),
            needs_version: locations.clone().any(|location| location == Location::Version),
            wants_content: self.rules.iter().any(|logic| !logic.expressions.is_empty()),
            reads_beside: self.rules.iter().any(|logic| !logic.compares.is_empty()),
            macros: macros.into(),
            pictures: pictures.into(),
            patterns,
            chains: chains.into(),
            signatures: signatures.into(),
            rules: Rules::new(self.rules.iter().map(|logic| &*logic.source)),
            hold_untouched: hold_untouched.into(),
            links: Packed::new(self.links.iter().copied().map(u64::from)),
            users: Packed::new(users.iter().copied().map(u64::from)),
            user_starts: Packed::new(user_starts.iter().copied().map(u64::from)),
            kinds: self.kinds.values.into(),
            locations: self.locations.values.into(),
        }
    }
}

fn bytes_max(pieces: &[Piece]) -> u32 {
    let all = pieces.iter().map(|piece| piece.lengths().1 as u64);
    u32::try_from(all.sum::<u64>()).unwrap_or(u32::MAX)
}
