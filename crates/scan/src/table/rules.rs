//! Conditions of logical signatures, read when they are first needed.
//!
//! A rule is kept as the text that it was read from, its bodies left out: what one asks for beside them is small, most
//! are never asked, and a text needs no form of its own in a file. Reading it again takes a few microseconds, once for
//! all scans.

use std::io;
use std::sync::{Arc, OnceLock};

use pattern::flat::{Flat, Reader, Unfit, Writer};

use crate::syntax::logical;
use crate::syntax::signature::Logic;

/// Conditions of a logical signature.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) logic: Logic,
    /// Whether it can be told as soon as it holds.
    pub(crate) early: bool,
}

/// The rules of a table, by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    text: Flat<u8>,
    ends: Flat<u64>,
    read: Arc<[OnceLock<Option<Box<Rule>>>]>,
}

impl Rules {
    /// Rules of which each has the text of [`Logic::source`].
    pub(crate) fn new<'t>(sources: impl IntoIterator<Item = &'t str>) -> Rules {
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        for source in sources {
            text.extend_from_slice(source.as_bytes());
            ends.push(text.len() as u64);
        }
        Rules::of(text.into(), ends.into())
    }

    fn of(text: Flat<u8>, ends: Flat<u64>) -> Rules {
        let read = std::iter::repeat_with(OnceLock::new).take(ends.len()).collect();
        Rules { text, ends, read }
    }

    /// The rule with that number. Nothing is there only if the text was changed.
    pub(crate) fn get(&self, number: u32) -> Option<&Rule> {
        let cell = self.read.get(number as usize)?;
        cell.get_or_init(|| self.parse(number as usize).map(Box::new)).as_deref()
    }

    fn parse(&self, number: usize) -> Option<Rule> {
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        let range = usize::try_from(start).ok()?..usize::try_from(*self.ends.get(number)?).ok()?;
        let text = std::str::from_utf8(self.text.get(range)?).ok()?;
        let logic = logical::parse(&logical::fields(text, 2)).ok()?.logic?;
        Some(Rule { early: !logic.is_late(), logic })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&self.text)?;
        writer.array(&self.ends)
    }

    pub(crate) fn load(reader: &mut Reader) -> Result<Rules, Unfit> {
        Ok(Rules::of(reader.array()?, reader.array()?))
    }
}
