//! The compiled signatures of one target type: patterns, and what their matches mean.
//!
//! A *chain* is a body: its parts in order with the gaps between them and the place where it must start. A chain
//! belongs to a signature, as its only body or as one of its subsignatures. From a part that matched, `users` leads to
//! the links of the chains that it is. Everything is a flat array of plain values.

use std::ops::Range;

use pattern::{PartId, Patterns, Piece, Refusal};

use crate::body::Gap;
use crate::location::Location;
use crate::signature::{Logic, Signature};

/// One part of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) gap: Gap,
    /// The most bytes that the part may match.
    pub(crate) bytes_max: u32,
}

/// A body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) location: Location,
    pub(crate) signature: u32,
    /// Which subsignature of a logical signature it is.
    pub(crate) sub: u8,
    first_link: u32,
    links: u16,
}

/// What a logical signature asks for.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) logic: Logic,
    /// Whether it can be told as soon as it holds.
    pub(crate) early: bool,
}

/// A signature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub(crate) name: u32,
    /// Its rule, if it is logical.
    pub(crate) rule: Option<u32>,
}

/// A link of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) chain: u32,
    pub(crate) link: u16,
}

/// The compiled signatures of one target type.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) patterns: Patterns,
    pub(crate) chains: Vec<Chain>,
    pub(crate) signatures: Vec<Named>,
    pub(crate) rules: Vec<Rule>,
    /// Rules that hold at the end of a stream in which nothing matched, if their sizes fit.
    pub(crate) hold_untouched: Vec<u32>,
    /// Whether some chain is placed by the layout of an executable.
    pub(crate) needs_layout: bool,
    /// Whether some rule runs regular expressions over the content.
    pub(crate) wants_content: bool,
    /// Whether some rule reads bytes beside a match.
    pub(crate) reads_beside: bool,
    /// The macro subsignatures of each group: signature, and which of its macros.
    macros: Vec<(u8, u32, u8)>,
    links: Vec<Link>,
    users: Vec<User>,
    user_starts: Vec<u32>,
}

impl Table {
    /// The macro subsignatures of a group: signature, and which of its macros.
    pub(crate) fn macros(&self, group: u8) -> impl Iterator<Item = (u32, usize)> {
        let all = self.macros.iter().filter(move |(of, _, _)| *of == group);
        all.map(|&(_, signature, index)| (signature, usize::from(index)))
    }

    /// What a signature asks for, if it is logical.
    pub(crate) fn rule(&self, signature: u32) -> Option<&Rule> {
        self.rules.get(self.signatures.get(signature as usize)?.rule? as usize)
    }

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
        &self.links[first..first + usize::from(chain.links)]
    }
}

/// Collects the signatures of one target type.
#[derive(Debug, Default)]
pub(crate) struct TableBuilder {
    patterns: pattern::Builder,
    signatures: Vec<(Named, Range<usize>)>,
    chains: Vec<(Chain, Vec<PartId>)>,
    links: Vec<Link>,
    rules: Vec<Rule>,
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
                location: body.location,
                signature: number,
                sub: body.sub,
                first_link: self.links.len() as u32,
                links: body.parts.len() as u16,
            };
            self.links.extend(body.parts.iter().map(|part| Link { gap: part.gap, bytes_max: bytes_max(&part.pieces) }));
            self.chains.push((chain, parts));
        }
        let rule = signature.logic.as_ref().map(|logic| self.rule(logic));
        let named = Named { name, rule };
        self.signatures.push((named, first_chain..self.chains.len()));
        Ok(())
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
        self.rules.push(Rule { early: !logic.is_late(), logic: logic.clone() });
        (self.rules.len() - 1) as u32
    }

    /// Compiles what was added, without the signatures whose names are `ignored`.
    pub(crate) fn build(self, ignored: impl Fn(u32) -> bool) -> Table {
        let mut signatures = Vec::with_capacity(self.signatures.len());
        let mut kept = vec![false; self.chains.len()];
        let mut hold_untouched = Vec::new();
        let mut macros = Vec::new();
        for (number, (named, chains)) in self.signatures.into_iter().enumerate() {
            if !ignored(named.name) {
                kept[chains].fill(true);
                let logic = named.rule.map(|rule| &self.rules[rule as usize].logic);
                if logic.is_some_and(|logic| logic.expression.holds(|_| 0)) {
                    hold_untouched.push(number as u32);
                }
                let of_rule = logic.into_iter().flat_map(|logic| logic.macros.iter().zip(0u8..));
                macros.extend(of_rule.map(|(one, index)| (one.group, number as u32, index)));
            }
            signatures.push(named);
        }
        let patterns = self.patterns.build();
        let mut by_part: Vec<(PartId, User)> = Vec::new();
        for (index, (_, parts)) in self.chains.iter().enumerate().filter(|(index, _)| kept[*index]) {
            let users = parts.iter().zip(0u16..).map(|(&part, link)| {
                let chain = index as u32;
                (part, User { chain, link })
            });
            by_part.extend(users);
        }
        by_part.sort_by_key(|(part, user)| (*part, user.chain, user.link));
        let mut user_starts = vec![0u32; patterns.len() + 1];
        for (part, _) in &by_part {
            user_starts[*part as usize + 1] += 1;
        }
        for part in 1..user_starts.len() {
            user_starts[part] += user_starts[part - 1];
        }
        let chains: Vec<Chain> = self.chains.into_iter().map(|(chain, _)| chain).collect();
        Table {
            needs_layout: chains.iter().any(|chain| chain.location.needs_layout())
                || self.rules.iter().any(|rule| rule.logic.needs_layout()),
            wants_content: self.rules.iter().any(|rule| !rule.logic.expressions.is_empty()),
            reads_beside: self.rules.iter().any(|rule| !rule.logic.compares.is_empty()),
            macros,
            patterns,
            chains,
            signatures,
            rules: self.rules,
            hold_untouched,
            links: self.links,
            users: by_part.into_iter().map(|(_, user)| user).collect(),
            user_starts,
        }
    }
}

fn bytes_max(pieces: &[Piece]) -> u32 {
    let all = pieces.iter().map(|piece| piece.lengths().1 as u64);
    u32::try_from(all.sum::<u64>()).unwrap_or(u32::MAX)
}
