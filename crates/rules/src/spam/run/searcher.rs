//! The memory that searches of one thread work in.

use std::ops::Range;

use pattern::expression::{Expression, JointRoom, Search, Want};

use super::profile::{Profile, Work};

/// Searches for expressions by their number, to be used for one mail after another by one thread.
#[derive(Default)]
pub struct Scratch {
    /// The engine that the searches are of.
    engine: u64,
    searches: Vec<Option<Used>>,
    /// Mails that were begun.
    mails: u32,
    /// Haystacks in lower case.
    pub(super) joined: super::pass::Joined,
    /// Value of each rule, by its id.
    pub(super) values: Vec<f64>,
    /// Tests of the header that may hit, and where.
    pub(super) tests: Vec<(u32, Option<Range<u32>>)>,
    /// Candidates of a pass.
    pub(super) pairs: Vec<super::pass::Pair>,
    /// The states of what is walked together, of each view, and of each request for header fields.
    pub(super) rooms: [JointRoom; VIEWS],
    pub(super) header_rooms: Vec<JointRoom>,
    profile: Option<Box<Profile>>,
}

/// A search, and the mail that it was last used for.
struct Used {
    mail: u32,
    search: Box<Search>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Scratch({} searches)", self.searches.iter().flatten().count())
    }
}

/// Views with expressions.
const VIEWS: usize = 4;

/// After so many mails the memory of searches is added up; those that were not used meanwhile are the first to go.
const MAILS_BETWEEN: u32 = 64;

impl Scratch {
    /// The memory that searches hold, in bytes.
    pub fn bytes(&self) -> usize {
        let rooms: usize = self.rooms.iter().chain(&self.header_rooms).map(JointRoom::memory).sum();
        rooms + self.searches.iter().flatten().map(|used| used.search.memory()).sum::<usize>()
    }

    /// From now on the time of checks is added up, by a clock of the caller's.
    pub fn measure(&mut self, clock: fn() -> u64) {
        self.profile = Some(Box::new(Profile::new(clock)));
    }

    /// Profile of the checks since [`Scratch::measure`].
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_deref()
    }

    /// The time, where it is added up.
    pub(super) fn now(&self) -> u64 {
        self.profile.as_ref().map_or(0, |profile| profile.now())
    }

    /// Adds the time since `begun`.
    pub(super) fn spent(&mut self, work: Work, begun: u64) {
        if let Some(profile) = &mut self.profile {
            profile.add(work, begun);
        }
    }

    /// Begins a mail with an engine; gives memory back where searches hold more than `bytes_max` together.
    pub(super) fn begin(&mut self, engine: u64, bytes_max: usize) {
        if self.engine != engine {
            self.engine = engine;
            self.forget();
        }
        self.mails = self.mails.wrapping_add(1);
        if self.mails.is_multiple_of(MAILS_BETWEEN) && self.bytes() > bytes_max {
            let now = self.mails;
            let is_idle = |used: &mut Used| now.wrapping_sub(used.mail) >= MAILS_BETWEEN;
            self.searches.iter_mut().for_each(|place| drop(place.take_if(is_idle)));
            if self.bytes() > bytes_max {
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        self.searches.clear();
        self.rooms = Default::default();
        self.header_rooms.clear();
    }
}

impl Scratch {
    /// The search for the expression of a number.
    pub(super) fn search(&mut self, number: u32, expression: &Expression, want: Want) -> &mut Search {
        let place = number as usize;
        if self.searches.len() <= place {
            self.searches.resize_with(place + 1, || None);
        }
        let mail = self.mails;
        let begin = || Used { mail, search: Box::new(expression.search(want)) };
        let used = self.searches[place].get_or_insert_with(begin);
        used.mail = mail;
        &mut used.search
    }
}

#[cfg(test)]
mod tests {
    use pattern::expression::Flags;
    use stream::Fuel;

    use super::*;

    #[test]
    fn what_was_not_used_of_late_goes_first_and_the_rest_only_where_that_is_not_enough() {
        let expression = Expression::new(b"a.{9}b", Flags::default()).expect("an expression");
        let mut scratch = Scratch::default();
        let uses = |scratch: &mut Scratch, numbers: &[u32], bytes_max: usize| {
            for _ in 0..MAILS_BETWEEN {
                scratch.begin(1, bytes_max);
                for &number in numbers {
                    scratch.search(number, &expression, Want::Hit).run(b"a", &mut Fuel::new(100));
                }
            }
        };
        let there = |scratch: &Scratch| scratch.searches.iter().map(Option::is_some).collect::<Vec<_>>();
        uses(&mut scratch, &[0, 1], usize::MAX);
        let both = scratch.bytes();
        uses(&mut scratch, &[0], both);
        assert_eq!(there(&scratch), [true, true], "there was room");
        uses(&mut scratch, &[0], both - 1);
        assert_eq!(there(&scratch), [true, false]);
        let one = scratch.bytes();
        assert!(one < both);
        uses(&mut scratch, &[], one - 1);
        assert_eq!(there(&scratch), [false, false]);
    }
}
