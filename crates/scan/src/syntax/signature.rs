//! A signature as it was read, before it is compiled.

use stream::FileType;

use crate::layout::Layout;
use crate::syntax::body::BodyPart;
use crate::syntax::compare::Compare;
use crate::syntax::expression::Expression;
use crate::syntax::line::{Reject, number};
use crate::syntax::location::Location;
use crate::syntax::pcre::Pcre;
use crate::syntax::picture::Picture;
use crate::syntax::style::Style;
use crate::syntax::{body, location};
use crate::target::Container;

/// One body in one place.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) location: Location,
    pub(crate) parts: Vec<BodyPart>,
    /// Number of the subsignature in a logical signature.
    pub(crate) sub: u8,
}

/// Condition of a logical signature over its bodies.
#[derive(Debug, Clone)]
pub(crate) struct Logic {
    pub(crate) expression: Expression,
    pub(crate) subs: u8,
    /// The least and the greatest size of the stream.
    pub(crate) file_size: Option<(u64, u64)>,
    /// The least and the greatest offset of the entry point.
    pub(crate) entry_point: Option<(u64, u64)>,
    /// The least and the greatest number of sections.
    pub(crate) sections: Option<(u64, u64)>,
    pub(crate) container: Option<Container>,
    /// The containers around the stream, the innermost last; `None` is any.
    pub(crate) intermediates: Vec<Option<FileType>>,
    pub(crate) compares: Vec<Compare>,
    pub(crate) macros: Vec<Macro>,
    pub(crate) expressions: Vec<Pcre>,
    pub(crate) pictures: Vec<Picture>,
    /// The text that it was read from, short bodies in place of its own.
    pub(crate) source: Box<str>,
}

/// A macro subsignature: a member of a group starts at that distance from the start of the subsignature before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Macro {
    pub(crate) sub: u8,
    pub(crate) group: u8,
    pub(crate) min: u32,
    pub(crate) max: u32,
}

impl Macro {
    /// Reads `${min-max}group$`.
    pub(crate) fn parse(text: &str, sub: u8) -> Result<Macro, Reject> {
        let inside = text.strip_prefix("${").and_then(|text| text.strip_suffix('$')?.split_once('}'));
        let (range, group) = inside.ok_or_else(|| format!("{text:?} is no macro subsignature"))?;
        let (min, max) = range.split_once('-').ok_or_else(|| format!("no range in {text:?}"))?;
        let (min, max) = (number(min)?, number(max)?);
        let group = number(group)?;
        if sub == 0 || min > max || group >= location::GROUPS_MAX {
            return Err(Reject::Unsupported(format!("the macro subsignature {text:?} is first, or out of range")));
        }
        Ok(Macro { sub, group, min, max })
    }
}

impl Logic {
    /// Whether it asks for the layout of an executable.
    pub(crate) fn needs_layout(&self) -> bool {
        self.entry_point.is_some()
            || self.sections.is_some()
            || self.expressions.iter().any(|one| one.location.needs_layout())
    }

    /// Whether it may hold where no body matched: as it stands, or by a regular expression that runs there all the same.
    pub(crate) fn counts_untouched(&self) -> bool {
        self.expression.holds(|_| 0) || self.expressions.iter().any(|one| one.trigger.holds(|_| 0))
    }

    /// Whether it can only be decided at the end.
    pub(crate) fn is_late(&self) -> bool {
        self.file_size.is_some()
            || self.needs_layout()
            || !self.compares.is_empty()
            || !self.expressions.is_empty()
            || !self.pictures.is_empty()
            || !self.expression.is_monotone()
    }

    /// Whether an object within these containers, the innermost last, is one that it speaks of.
    pub(crate) fn lies_in(&self, containers: &[FileType]) -> bool {
        let innermost = self.intermediates.iter().rev().zip(containers.iter().rev());
        self.container.is_none_or(|wanted| wanted.admits(containers.last().copied()))
            && self.intermediates.len() <= containers.len()
            && { innermost }.all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == *is))
    }

    /// Whether a stream of that size and layout is one that it speaks of.
    pub(crate) fn fits(&self, size: u64, layout: Option<&Layout>) -> bool {
        let within = |wanted: Option<(u64, u64)>, found: Option<u64>| {
            wanted.is_none_or(|(min, max)| found.is_some_and(|found| (min..=max).contains(&found)))
        };
        within(self.file_size, Some(size))
            && within(self.entry_point, layout.and_then(|layout| layout.entry))
            && within(self.sections, layout.map(|layout| layout.sections().len() as u64))
    }
}

/// A signature by content.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) target: u8,
    pub(crate) bodies: Vec<Body>,
    pub(crate) logic: Option<Logic>,
}

impl Signature {
    /// One body, from the fields of an extended signature.
    pub(crate) fn extended(target: &str, offset: &str, hex: &str) -> Result<Signature, Reject> {
        let target = target_number(target)?;
        let body = body(offset, hex, target, Style::default(), 0)?;
        Ok(Signature { target, bodies: vec![body], logic: None })
    }
}

/// Reads a target number.
pub(crate) fn target_number(text: &str) -> Result<u8, Reject> {
    // As with clamscan, none is any.
    let text = if matches!(text, "" | "*") { "0" } else { text };
    match number(text).map_err(|error| format!("target: {error}"))? {
        target @ (0..=7 | 9..=12) => Ok(target),
        target => Err(Reject::Unsupported(format!("target type {target}"))),
    }
}

/// Reads one body.
pub(crate) fn body(offset: &str, hex: &str, target: u8, style: Style, sub: u8) -> Result<Body, Reject> {
    let location = location::Location::parse(offset).map_err(Reject::Unsupported)?;
    if location.needs_layout() && !matches!(target, 1 | 6 | 9) {
        return Err(Reject::Malformed(format!("the offset {offset} needs an executable target")));
    }
    let mut parts = body::parse(hex)?;
    style.apply(&mut parts);
    Ok(Body { location, parts, sub })
}
