//! The memory that searches of one thread work in.

use std::ops::Range;

use pattern::expression::{Expression, JointRoom, Search, Want};

use super::profile::{Profile, Work};

/// Searches for expressions by their number, to be used for one mail after another by one thread.
#[derive(Default)]
pub struct Scratch {
    /// The engine that the searches are of.
    engine: u64,
    searches: Vec<Option<Box<Search>>>,
    /// Mails since memory was looked at.
    mails: u32,
    /// Haystacks in lower case.
    pub(super) joined: super::pass::Joined,
    /// What each rule came to, by its id.
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

impl std::fmt::Debug for Scratch {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Scratch({} searches)", self.searches.iter().flatten().count())
    }
}

/// Views with expressions.
const VIEWS: usize = 4;

/// After so many mails the memory of searches is added up.
const MAILS_BETWEEN: u32 = 64;

impl Scratch {
    /// The memory that searches hold, in bytes.
    pub fn bytes(&self) -> usize {
        let rooms: usize = self.rooms.iter().chain(&self.header_rooms).map(JointRoom::memory).sum();
        rooms + self.searches.iter().flatten().map(|search| search.memory()).sum::<usize>()
    }

    /// From now on the time of checks is added up, by a clock of the caller's.
    pub fn measure(&mut self, clock: fn() -> u64) {
        self.profile = Some(Box::new(Profile::new(clock)));
    }

    /// What the checks took since [`Scratch::measure`].
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
        self.mails += 1;
        if self.mails >= MAILS_BETWEEN {
            self.mails = 0;
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
        self.searches[place].get_or_insert_with(|| Box::new(expression.search(want)))
    }
}
