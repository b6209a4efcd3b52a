//! The compiled rules of all YARA files: what to look for, and what it means.
//!
//! A *chain* is one form of a string: its parts in order with the gaps between them. From a part that matched, `users`
//! leads to the links of the chains that it is, and from a chain that is complete to its string. Everything is a flat
//! array of plain values, but for the finders of strings that are looked for at the end.

use pattern::{PartId, Patterns, Piece};

use super::fact::{Asked, Field, Head};
use super::finder::{Finder, Kept};
use super::id::{NodeId, StringId};
use super::node::{Arena, CURRENT, List, Node, Where};
use crate::syntax::body::{BodyPart, Gap};
use crate::syntax::line::Reject;

/// How much of an object is kept for reads at places that are computed.
const HEAD_BYTES: u64 = 64 << 10;

/// One part of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) gap: Gap,
    /// The most bytes that the part may match.
    pub(crate) bytes_max: u32,
}

/// A form of a string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) string: StringId,
    first_link: u32,
    links: u16,
}

/// A link of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) chain: u32,
    pub(crate) link: u16,
}

/// A string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    pub(crate) rule: u32,
    /// Whether its places are asked for or needed to count it, not just whether it was found.
    pub(crate) placed: bool,
    /// Whether it is asked how often it was found.
    pub(crate) counted: bool,
    /// Whether it is asked how long its matches are.
    pub(crate) measured: bool,
    /// The most bytes of a match, if several may be found that start at one place. They count once.
    pub(crate) again: Option<u32>,
    /// The first and the last offset that it is asked for at.
    pub(crate) at: (u64, u64),
    /// The finders that are run at the end, of [`Table::finders`], if something was found on the stream.
    pub(crate) kept: Option<List>,
    /// Whether what is found on the stream is only a hint, so that the finders are run over large objects, too.
    pub(crate) is_hint: bool,
    /// Whether they are run without a hint.
    pub(crate) always: bool,
}

/// A rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// The number of its name.
    pub(crate) name: u32,
    pub(crate) condition: NodeId,
    /// Whether it is told; private ones are only asked for by others.
    pub(crate) told: bool,
}

/// The compiled rules.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) patterns: Patterns,
    pub(crate) arena: Arena,
    pub(crate) rules: Vec<Rule>,
    pub(crate) texts: Vec<Text>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) finders: Vec<Finder>,
    /// Rules that may hold of an object in which no string was found.
    pub(crate) untouched: Vec<u32>,
    /// Rules with those that speak of them.
    pub(crate) dependents: Vec<(u32, u32)>,
    /// How much of the beginning of an object is kept.
    pub(crate) kept_bytes: u64,
    /// Whether some rule asks for the layout of an executable.
    pub(crate) needs_layout: bool,
    /// The tables of a PE file that rules ask for.
    pub(crate) asked: Asked,
    /// Whether some rule asks how the object is called.
    pub(crate) asks_names: bool,
    /// Whether some rule reads at places that are computed.
    pub(crate) reads_anywhere: bool,
    /// The files that it was read from.
    pub(crate) sources: Vec<Source>,
    links: Vec<Link>,
    users: Vec<User>,
    user_starts: Vec<u32>,
}

/// A file of rules, and the numbers of the names of those that were not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) text: Box<str>,
    pub(crate) names: Vec<u32>,
}

impl Table {
    /// The links that a part is.
    pub(crate) fn users(&self, part: PartId) -> &[User] {
        let part = part as usize;
        let start = self.user_starts.get(part).copied().unwrap_or(0) as usize;
        let end = self.user_starts.get(part + 1).copied().unwrap_or(0) as usize;
        self.users.get(start..end).unwrap_or(&[])
    }

    /// The links of a chain.
    pub(crate) fn links(&self, chain: &Chain) -> &[Link] {
        let first = chain.first_link as usize;
        self.links.get(first..first + usize::from(chain.links)).unwrap_or(&[])
    }
}

/// A string as it was read: the ways to look for it.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Its forms on the stream; none of an expression that is run at the end in any case.
    pub(crate) forms: Vec<Vec<BodyPart>>,
    /// The same to be looked for at the end, and what each of its matches contains one of. Nothing of a body, and of a text
    /// in many forms.
    pub(crate) kept: Option<Kept>,
    pub(crate) hints: Vec<Vec<BodyPart>>,
}

impl Read {
    /// Whether matches of a form that start at one place may differ in length.
    fn stretches(&self) -> bool {
        let stretches = |piece: &Piece| piece.lengths().0 != piece.lengths().1;
        self.forms.iter().flatten().flat_map(|part| &part.pieces).any(stretches)
    }

    /// Whether the stream tells what the rule asks for. Of the matches that start at one place it does not tell which is
    /// YARA's, the only one whose length and neighbours count.
    fn is_of_stream(&self, text: &Text) -> bool {
        let of_one_part = self.forms.iter().all(|form| form.len() == 1);
        let is_asked = text.placed || text.counted || text.measured;
        let fullword = self.kept.as_ref().is_some_and(|kept| kept.modifiers.fullword);
        let stretches = self.stretches() && (fullword || text.measured) || !of_one_part && is_asked;
        !self.forms.is_empty() && !stretches && !self.may_be_missed()
    }

    /// Whether YARA may miss a match.
    fn may_be_missed(&self) -> bool {
        match &self.kept {
            Some(kept) => kept.may_be_missed(),
            None => self.forms.iter().any(|form| Kept::of_body(form).is_some_and(|kept| kept.may_be_missed())),
        }
    }

    /// The most bytes of a part.
    fn bytes_max(&self) -> u32 {
        self.forms.iter().flatten().map(|part| bytes_max(&part.pieces)).max().unwrap_or(0)
    }

    /// The finders to run at the end, if there can be some.
    fn at_the_end(&self) -> Option<Vec<Finder>> {
        let finder = |kept: Kept| kept.finder().ok();
        match &self.kept {
            Some(kept) => Some(vec![finder(kept.clone())?]),
            None => self.forms.iter().map(|form| Kept::of_body(form).and_then(finder)).collect(),
        }
    }
}

/// The way that a string is looked for.
struct Way<'r> {
    forms: &'r [Vec<BodyPart>],
    /// The parts of each form.
    parts: Vec<Vec<PartId>>,
    /// Run at the end; then the forms are their hints.
    finders: Vec<Finder>,
}

/// Collects rules.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    patterns: pattern::Builder,
    pub(crate) arena: Arena,
    rules: Vec<Rule>,
    texts: Vec<Text>,
    chains: Vec<(Chain, Vec<PartId>)>,
    links: Vec<Link>,
    finders: Vec<Finder>,
    dependents: Vec<(u32, u32)>,
    sources: Vec<Source>,
}

impl TableBuilder {
    /// Remembers a file whose rules were added.
    pub(crate) fn add_source(&mut self, source: Source) {
        self.sources.push(source);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Gives a rule its name.
    pub(crate) fn call(&mut self, rule: u32, name: u32) {
        if let Some(rule) = self.rules.get_mut(rule as usize) {
            rule.name = name;
        }
    }

    /// The number that the next string gets.
    pub(crate) fn next_string(&self) -> StringId {
        self.texts.len() as StringId
    }

    /// Adds a rule with its strings, whose condition is the last thing in the arena, behind `mark`; its number.
    ///
    /// # Errors
    /// If a string cannot be looked for. Then nothing was added, but the condition is still in the arena.
    pub(crate) fn add(&mut self, rule: Rule, strings: &[Read], mark: (usize, usize)) -> Result<u32, Reject> {
        let number = self.rules.len() as u32;
        let first = self.next_string();
        let new = Text {
            rule: number,
            placed: false,
            counted: false,
            measured: false,
            again: None,
            at: (0, u64::MAX),
            kept: None,
            is_hint: false,
            always: false,
        };
        let mut texts = vec![new; strings.len()];
        self.uses(&mut texts, first, mark);
        let mut ways = Vec::new();
        for (text, string) in texts.iter_mut().zip(strings) {
            ways.push(self.way(text, string)?);
        }
        for ((text, id), way) in texts.iter_mut().zip(first..).zip(ways) {
            if !way.finders.is_empty() {
                let start = self.finders.len() as u32;
                text.kept = Some(List { start, length: way.finders.len() as u32 });
                text.always = way.parts.is_empty();
                self.finders.extend(way.finders);
            }
            for (form, parts) in way.forms.iter().zip(way.parts) {
                let (first_link, links) = (self.links.len() as u32, form.len() as u16);
                self.links.extend(form.iter().map(|part| Link { gap: part.gap, bytes_max: bytes_max(&part.pieces) }));
                self.chains.push((Chain { string: id, first_link, links }, parts));
            }
        }
        self.texts.extend(texts);
        for node in self.arena.since(mark) {
            if let Node::Rule(other) = node {
                self.dependents.push((*other, number));
            }
        }
        self.rules.push(rule);
        Ok(number)
    }

    /// How a string is looked for: on the stream if it can be, and at the end if the stream does not tell what the rule asks
    /// for.
    fn way<'r>(&mut self, text: &mut Text, string: &'r Read) -> Result<Way<'r>, Reject> {
        let mut reject = Reject::Unsupported("a regular expression that is too large".to_owned());
        let is_of_stream = string.is_of_stream(text);
        if !is_of_stream {
            text.at = (0, u64::MAX);
        }
        if !string.forms.is_empty() {
            match self.parts_of(&string.forms, text.at) {
                Ok(parts) => {
                    // Of a string of several parts a start is found again with every end.
                    text.placed |= text.counted && string.forms.iter().any(|form| form.len() > 1);
                    let again = string.stretches() || string.forms.len() > 1;
                    text.again = again.then(|| string.bytes_max());
                    let finders = if is_of_stream { Vec::new() } else { string.at_the_end().unwrap_or_default() };
                    return Ok(Way { forms: &string.forms, parts, finders });
                }
                Err(refused) => reject = refused,
            }
        }
        text.at = (0, u64::MAX);
        text.is_hint = true;
        let finders = string.at_the_end().ok_or(reject)?;
        let parts = self.parts_of(&string.hints, text.at).unwrap_or_default();
        Ok(Way { forms: &string.hints, parts, finders })
    }

    fn parts_of(&mut self, forms: &[Vec<BodyPart>], at: (u64, u64)) -> Result<Vec<Vec<PartId>>, Reject> {
        forms.iter().map(|form| self.parts(form, at)).collect()
    }

    fn parts(&mut self, form: &[BodyPart], at: (u64, u64)) -> Result<Vec<PartId>, Reject> {
        let mut parts = Vec::with_capacity(form.len());
        for (index, part) in form.iter().enumerate() {
            let added = match index {
                0 if at != (0, u64::MAX) => self.patterns.add_at(&part.pieces, at.0..=at.1),
                _ => self.patterns.add(&part.pieces),
            };
            parts.push(added.map_err(|refusal| Reject::Unsupported(format!("a string: {refusal}")))?);
        }
        Ok(parts)
    }

    /// Whether the last rule that was added has strings that are looked for at the end.
    pub(crate) fn keeps(&self) -> bool {
        let number = self.rules.len().checked_sub(1);
        let of_it = |text: &&Text| Some(text.rule as usize) == number;
        self.texts.iter().rev().take_while(of_it).any(|text| text.kept.is_some())
    }

    /// Notes what a condition asks of each string.
    fn uses(&self, texts: &mut [Text], first: StringId, mark: (usize, usize)) {
        // Places by `at` and a number, and whether there are other uses.
        let mut places: Vec<(Option<(u64, u64)>, bool)> = vec![(None, false); texts.len()];
        let index = |string: StringId| string.checked_sub(first).map(|index| index as usize);
        let of_current = |node: &Node| matches!(node, Node::Length(CURRENT, _));
        let measures_current = self.arena.since(mark).iter().any(of_current);
        for node in self.arena.since(mark) {
            let (strings, place, placed) = match node {
                Node::Found(string, place) | Node::Count(string, place) => {
                    (std::slice::from_ref(string), *place, false)
                }
                Node::Offset(string, _) | Node::Length(string, _) => {
                    (std::slice::from_ref(string), Where::Anywhere, true)
                }
                Node::Of(_, list, place) => (self.arena.list(*list), *place, false),
                Node::ForOf(_, list, _) => (self.arena.list(*list), Where::Anywhere, true),
                _ => continue,
            };
            let fixed = match place {
                Where::At(at) => match self.arena.get(at) {
                    Node::Number(at) => u64::try_from(at).ok(),
                    _ => None,
                },
                _ => None,
            };
            for index in strings.iter().filter_map(|string| index(*string)) {
                let (Some(text), Some((at, other))) = (texts.get_mut(index), places.get_mut(index)) else {
                    continue;
                };
                text.placed |= placed || place != Where::Anywhere;
                text.counted |= matches!(node, Node::Count(..));
                text.measured |=
                    matches!(node, Node::Length(..)) || measures_current && matches!(node, Node::ForOf(..));
                match fixed {
                    Some(fixed) => {
                        *at = Some(at.map_or((fixed, fixed), |(low, high)| (low.min(fixed), high.max(fixed))))
                    }
                    None => *other = true,
                }
            }
        }
        for (text, (at, other)) in texts.iter_mut().zip(places) {
            text.at = at.filter(|_| !other).unwrap_or((0, u64::MAX));
        }
    }

    /// Compiles what was added. Names get the numbers that `place` has for them; rules whose old ones are `ignored` are not
    /// told.
    pub(crate) fn build(mut self, place: impl Fn(u32) -> u32, ignored: impl Fn(u32) -> bool) -> Table {
        for rule in &mut self.rules {
            rule.told &= !ignored(rule.name);
            rule.name = place(rule.name);
        }
        for name in self.sources.iter_mut().flat_map(|source| &mut source.names) {
            *name = place(*name);
        }
        let patterns = self.patterns.build();
        let mut by_part: Vec<(PartId, User)> = Vec::new();
        for ((_, parts), chain) in self.chains.iter().zip(0u32..) {
            by_part.extend(parts.iter().zip(0u16..).map(|(&part, link)| (part, User { chain, link })));
        }
        by_part.sort_by_key(|(part, user)| (*part, user.chain, user.link));
        let mut user_starts = vec![0u32; patterns.len() + 1];
        for (part, _) in &by_part {
            user_starts[*part as usize + 1] += 1;
        }
        for part in 1..user_starts.len() {
            user_starts[part] += user_starts[part - 1];
        }
        let any_always = self.texts.iter().any(|text| text.always);
        let always = |string: StringId| match self.texts.get(string as usize) {
            Some(text) => text.always,
            None => any_always,
        };
        let mut may_hold = Vec::with_capacity(self.rules.len());
        for rule in &self.rules {
            let of_rule = |rule: u32| may_hold.get(rule as usize).copied().unwrap_or(true);
            may_hold.push(self.arena.may_hold_untouched(rule.condition, &of_rule, &always));
        }
        let nodes = self.arena.since((0, 0));
        let computed =
            |node: &Node| matches!(node, Node::Read(_, at) if !matches!(self.arena.get(*at), Node::Number(_)));
        let reads = nodes.iter().filter_map(|node| match node {
            Node::Read(width, at) => match self.arena.get(*at) {
                Node::Number(at) => u64::try_from(at).ok().map(|at| at.saturating_add(width.bytes.into())),
                _ => Some(HEAD_BYTES),
            },
            _ => None,
        });
        let kept_bytes = match self.finders.is_empty() && !nodes.iter().any(Arena::is_of_bytes) {
            true => reads.max().unwrap_or(0).min(crate::syntax::pcre::KEPT_BYTES),
            false => crate::syntax::pcre::KEPT_BYTES,
        };
        Table {
            kept_bytes,
            needs_layout: nodes.iter().any(Arena::is_of_head),
            asked: nodes.iter().map(asked).fold(Asked::default(), Asked::or),
            asks_names: nodes
                .iter()
                .any(|node| matches!(field_of(node), Some(Field::FileName | Field::FilePath | Field::Extension))),
            reads_anywhere: nodes.iter().any(|node| computed(node) || Arena::is_of_bytes(node)),
            untouched: (0u32..).zip(&may_hold).filter(|(_, may)| **may).map(|(rule, _)| rule).collect(),
            patterns,
            rules: self.rules,
            texts: self.texts,
            chains: self.chains.into_iter().map(|(chain, _)| chain).collect(),
            finders: self.finders,
            dependents: self.dependents,
            sources: self.sources,
            links: self.links,
            users: by_part.into_iter().map(|(_, user)| user).collect(),
            user_starts,
            arena: self.arena,
        }
    }
}

/// The tables of a PE file that a node asks for.
fn asked(node: &Node) -> Asked {
    Asked {
        imports: matches!(node, Node::Imports(..) | Node::Head(Head::Libraries | Head::Functions))
            || field_of(node) == Some(Field::ImportHash),
        exports: matches!(node, Node::Exports(_) | Node::Head(Head::Exports)),
        version: matches!(field_of(node), Some(Field::Version(_))),
        resources: matches!(node, Node::Head(Head::Resources)),
        signers: matches!(node, Node::Head(Head::Signatures)) || matches!(field_of(node), Some(Field::Signer(..))),
    }
}

/// The text that a node asks for.
fn field_of(node: &Node) -> Option<Field> {
    match node {
        Node::Compare(field, ..) | Node::Has(field) => Some(*field),
        _ => None,
    }
}

fn bytes_max(pieces: &[Piece]) -> u32 {
    let all = pieces.iter().map(|piece| piece.lengths().1 as u64);
    u32::try_from(all.sum::<u64>()).unwrap_or(u32::MAX)
}
