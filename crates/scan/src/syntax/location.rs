//! Where in a stream a body may start.

use std::ops::RangeInclusive;

use bytemuck::{Pod, Zeroable};

use crate::layout::Layout;
use crate::syntax::line::number;

/// The first offset, relative to something, at which a body may start, and how far beyond it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Anywhere,
    /// From the start of the stream.
    Absolute {
        first: u64,
        shift: u64,
    },
    /// Before the end of the stream.
    FromEnd {
        back: u64,
        shift: u64,
    },
    /// From the entry point of an executable.
    Entry {
        delta: i64,
        shift: u64,
    },
    /// From the start of a section.
    Section {
        index: u32,
        delta: u64,
        shift: u64,
    },
    /// From the start of the last section.
    LastSection {
        delta: u64,
        shift: u64,
    },
    /// Within a section.
    InSection {
        index: u32,
    },
    /// At the name of a text in the version information of an executable.
    Version,
    /// Anywhere; a match means nothing by itself, but for the macro subsignatures that speak of this group.
    Group(u8),
}

/// A location as a plain value.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PlainLocation {
    first: u64,
    shift: u64,
    index: u32,
    kind: u32,
}

impl From<Location> for PlainLocation {
    fn from(location: Location) -> PlainLocation {
        let (kind, index, first, shift) = match location {
            Location::Anywhere => (0, 0, 0, 0),
            Location::Absolute { first, shift } => (1, 0, first, shift),
            Location::FromEnd { back, shift } => (2, 0, back, shift),
            Location::Entry { delta, shift } => (3, 0, delta.cast_unsigned(), shift),
            Location::Section { index, delta, shift } => (4, index, delta, shift),
            Location::LastSection { delta, shift } => (5, 0, delta, shift),
            Location::InSection { index } => (6, index, 0, 0),
            Location::Version => (VERSION, 0, 0, 0),
            Location::Group(group) => (GROUP, group.into(), 0, 0),
        };
        PlainLocation { first, shift, index, kind }
    }
}

/// The last kinds of a [`PlainLocation`].
const VERSION: u32 = 7;
const GROUP: u32 = 8;

impl PlainLocation {
    /// Whether it stands for a location.
    pub(crate) fn is_one(self) -> bool {
        self.kind < GROUP || (self.kind == GROUP && self.index < GROUPS_MAX.into())
    }

    /// The location that it stands for.
    pub(crate) fn location(self) -> Location {
        let PlainLocation { first, shift, index, kind } = self;
        match kind {
            0 => Location::Anywhere,
            1 => Location::Absolute { first, shift },
            2 => Location::FromEnd { back: first, shift },
            3 => Location::Entry { delta: first.cast_signed(), shift },
            4 => Location::Section { index, delta: first, shift },
            5 => Location::LastSection { delta: first, shift },
            6 => Location::InSection { index },
            VERSION => Location::Version,
            _ => Location::Group(index as u8),
        }
    }
}

/// How many macro groups there are.
pub(crate) const GROUPS_MAX: u8 = 32;

impl Location {
    /// Parses an offset as it stands in `.ndb` files and before subsignatures.
    pub(crate) fn parse(text: &str) -> Result<Location, String> {
        if text == "*" {
            return Ok(Location::Anywhere);
        }
        if text == "VI" {
            return Ok(Location::Version);
        }
        if let Some(group) = text.strip_prefix('$') {
            let group: u8 = number(group)?;
            let known = group < GROUPS_MAX;
            return known.then_some(Location::Group(group)).ok_or_else(|| format!("there is no macro group {group}"));
        }
        let (base, shift) = match text.split_once(',') {
            Some((base, "")) => (base, 0),
            Some((base, shift)) => (base, number(shift)?),
            None => (text, 0),
        };
        Location::with_shift(base, shift)
    }

    fn with_shift(base: &str, shift: u64) -> Result<Location, String> {
        if let Some(back) = base.strip_prefix("EOF-") {
            return Ok(Location::FromEnd { back: number(back)?, shift });
        }
        if let Some(delta) = base.strip_prefix("EP+") {
            let delta = i64::from(number::<u32>(delta)?);
            return Ok(Location::Entry { delta, shift });
        }
        if let Some(delta) = base.strip_prefix("EP-") {
            let delta = -i64::from(number::<u32>(delta)?);
            return Ok(Location::Entry { delta, shift });
        }
        if let Some(delta) = base.strip_prefix("SL+") {
            return Ok(Location::LastSection { delta: number(delta)?, shift });
        }
        if let Some(index) = base.strip_prefix("SE") {
            return Ok(Location::InSection { index: number(index)? });
        }
        if let Some((index, delta)) = base.strip_prefix('S').and_then(|rest| rest.split_once('+')) {
            return Ok(Location::Section { index: number(index)?, delta: number(delta)?, shift });
        }
        // As with clamscan, an empty number is 0.
        let first = if base.is_empty() { 0 } else { number(base)? };
        Ok(Location::Absolute { first, shift })
    }

    /// Whether it can only be known from the head of an executable.
    pub(crate) const fn needs_layout(self) -> bool {
        matches!(
            self,
            Location::Entry { .. }
                | Location::Section { .. }
                | Location::LastSection { .. }
                | Location::InSection { .. }
                | Location::Version
        )
    }

    /// Whether it is placed by something that is only known later: the end, or a table that has not passed yet.
    pub(crate) fn is_late(self, layout: Option<&Layout>) -> bool {
        match self {
            Location::FromEnd { .. } | Location::Version => true,
            Location::Section { .. } | Location::LastSection { .. } | Location::InSection { .. } => {
                layout.is_some_and(Layout::awaits_sections)
            }
            _ => false,
        }
    }

    /// Whether a body may start at `start`, as far as that is known before the end.
    pub(crate) fn admits(self, start: u64, layout: Option<&Layout>) -> bool {
        self.is_late(layout) || self.starts(layout, None).is_some_and(|starts| starts.contains(&start))
    }

    /// Where a body that is placed by something that was known too late may have started, now that all is known.
    pub(crate) fn at_end(self, layout: Option<&Layout>, size: u64) -> Vec<RangeInclusive<u64>> {
        match self {
            Location::Version => layout.iter().flat_map(|layout| &layout.version).map(|&start| start..=start).collect(),
            _ => self.starts(layout, Some(size)).into_iter().collect(),
        }
    }

    /// How far before the end of the stream the earliest start of a late body is, if that is known.
    pub(crate) const fn back(self) -> Option<u64> {
        match self {
            Location::FromEnd { back, .. } => Some(back),
            _ => None,
        }
    }

    fn starts(self, layout: Option<&Layout>, size: Option<u64>) -> Option<RangeInclusive<u64>> {
        let sections = || layout.map(Layout::sections).unwrap_or_default();
        let (first, shift) = match self {
            Location::Anywhere | Location::Group(_) => (0, u64::MAX),
            Location::Version => return None,
            Location::Absolute { first, shift } => (first, shift),
            Location::FromEnd { back, shift } => (size?.checked_sub(back)?, shift),
            Location::Entry { delta, shift } => (layout?.entry?.checked_add_signed(delta)?, shift),
            Location::Section { index, delta, shift } => {
                (sections().get(index as usize)?.raw.start.checked_add(delta)?, shift)
            }
            Location::LastSection { delta, shift } => (sections().last()?.raw.start.checked_add(delta)?, shift),
            Location::InSection { index } => {
                let raw = &sections().get(index as usize)?.raw;
                // As with clamscan, right behind it counts as well.
                (raw.start, raw.end.checked_sub(raw.start)?)
            }
        };
        Some(first..=first.saturating_add(shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_the_manual_has_them() {
        let parse = |text| Location::parse(text).expect(text);
        assert_eq!(parse("*"), Location::Anywhere);
        assert_eq!(parse("12,3"), Location::Absolute { first: 12, shift: 3 });
        assert_eq!(parse("12,"), Location::Absolute { first: 12, shift: 0 });
        assert_eq!(parse(",3"), Location::Absolute { first: 0, shift: 3 });
        assert_eq!(parse("EOF-40"), Location::FromEnd { back: 40, shift: 0 });
        assert_eq!(parse("EP-5,9"), Location::Entry { delta: -5, shift: 9 });
        assert_eq!(parse("S2+7"), Location::Section { index: 2, delta: 7, shift: 0 });
        assert_eq!(parse("SL+7"), Location::LastSection { delta: 7, shift: 0 });
        assert_eq!(parse("SE1"), Location::InSection { index: 1 });
    }

    #[test]
    fn what_is_no_offset_is_said_to_be_malformed() {
        assert_eq!(Location::parse("VI"), Ok(Location::Version));
        assert_eq!(Location::parse("$3"), Ok(Location::Group(3)));
        for text in ["x", "$32", "-1", "EOF+3", "1,x", "S+1", "SEx", "99999999999999999999"] {
            assert!(Location::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_start_before_the_end_is_judged_by_the_size() {
        let location = Location::FromEnd { back: 14, shift: 4 };
        assert_eq!(location.at_end(None, 20), [6..=10]);
        assert_eq!(location.at_end(None, 13), []);
    }
}
