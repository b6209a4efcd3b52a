//! Matches of strings: found while the object passed, or searched for when a condition first asks.

use super::{Evaluator, Loops, SEARCHED_OF_TURN, Value};
use crate::run::strings::Matches;
use crate::syntax::pcre::KEPT_BYTES;
use crate::yara::id::StringId;
use crate::yara::node::{CURRENT, List, Where};

/// The most matches of a string that are looked for at the end, and of all strings.
const MATCHES_MAX: usize = 4096;

const MATCHES_OF_ALL_MAX: usize = 65_536;

impl<'a> Evaluator<'a, '_, '_> {
    fn string(&self, string: StringId, loops: Loops<'_>) -> Option<StringId> {
        if string == CURRENT { loops.string } else { Some(string) }
    }

    /// Does something with the matches of a string, if it has any.
    fn with<T>(&self, string: StringId, loops: Loops<'_>, act: impl FnOnce(&Matches) -> T) -> Option<T> {
        let string = self.string(string, loops)?;
        let (on_stream, text) = (self.facts.found.get(&string), self.facts.table.texts.get(string as usize)?);
        let Some(kept) = text.kept.filter(|_| text.is_hint || self.facts.size <= KEPT_BYTES) else {
            return on_stream.map(act);
        };
        if on_stream.is_none() && !text.always {
            return None;
        }
        let searched = &self.verdicts.searched;
        if !searched.borrow().contains_key(&string) {
            let matches = self.search(string, kept)?;
            searched.borrow_mut().insert(string, matches);
        }
        searched.borrow().get(&string).filter(|matches| matches.count > 0).map(act)
    }

    /// Runs the finders of a string over what is kept, unless the next turn has to do it.
    fn search(&self, string: StringId, kept: List) -> Option<Matches> {
        if self.waits.get() || self.searched.get() > SEARCHED_OF_TURN {
            self.waits.set(true);
            return None;
        }
        let text = self.facts.table.texts.get(string as usize);
        let room = MATCHES_OF_ALL_MAX.saturating_sub(self.verdicts.places.get()).clamp(1, MATCHES_MAX);
        let is_counted = text.is_some_and(|text| text.placed || text.counted);
        let most = if is_counted { room } else { 1 };
        let mut matches = Matches::default();
        let finders = kept.start as usize..(kept.start + kept.length) as usize;
        for finder in self.facts.table.finders.get(finders).unwrap_or(&[]) {
            let work = self.content.borrow_mut().search(|content, work_max| {
                let found = finder.find(content, most, work_max);
                found.places.iter().for_each(|&(start, length)| matches.add(start, length, true));
                (found.work, found.whole)
            });
            self.searched.set(self.searched.get() + work);
        }
        self.verdicts.places.set(self.verdicts.places.get() + matches.places.len());
        if is_counted && matches.count >= most as u64 {
            self.content.borrow_mut().lose();
        }
        Some(matches)
    }

    /// Something was given up.
    pub(super) fn lose(&self) {
        self.verdicts.lost.set(self.verdicts.lost.get() + 1);
    }

    pub(super) fn is_found(&self, string: StringId, place: Where, loops: Loops<'_>) -> bool {
        match place {
            Where::Anywhere => self.with(string, loops, |matches| matches.count > 0).unwrap_or(false),
            Where::At(at) => self.value(at, loops).is_some_and(|at| self.within(string, (at, at), loops) > 0),
            Where::In(low, high) => {
                let range = self.value(low, loops).zip(self.value(high, loops));
                range.is_some_and(|range| self.within(string, range, loops) > 0)
            }
        }
    }

    pub(super) fn count(&self, string: StringId, place: Where, loops: Loops<'_>) -> Value {
        match place {
            Where::In(low, high) => {
                let range = (self.value(low, loops)?, self.value(high, loops)?);
                Some(self.within(string, range, loops))
            }
            _ => Some(self.with(string, loops, |matches| matches.count).unwrap_or(0) as i64),
        }
    }

    /// How many matches start in a range.
    fn within(&self, string: StringId, (low, high): (i64, i64), loops: Loops<'_>) -> i64 {
        let Ok(high) = u64::try_from(high) else {
            return 0;
        };
        let range = u64::try_from(low).unwrap_or(0)..=high;
        let count = self
            .with(string, loops, |matches| matches.places.iter().filter(|(start, _)| range.contains(start)).count());
        count.unwrap_or(0) as i64
    }

    /// Start and length of a match.
    pub(super) fn nth(&self, string: StringId, index: i64, loops: Loops<'_>) -> Option<(i64, i64)> {
        let index = usize::try_from(index.checked_sub(1)?).ok()?;
        let (start, length) = self.with(string, loops, |matches| matches.places.get(index).copied()).flatten()?;
        Some((i64::try_from(start).ok()?, i64::try_from(length).ok()?))
    }
}
