//! Matches that repeat in a run of equal bytes: counted by arithmetic instead of one by one.

use pattern::Match;

use super::{Context, Counted, Follower, Hit, oldest, reach};
use crate::run::ends::{Line, Stretch};
use crate::syntax::location::Location;
use crate::table::content::{Asks, Chain, Links, User};
use crate::table::rules::Rule;

/// So many matches of a body in a run of equal bytes are counted one by one, to know behind which a signature holds.
const COUNTED_SINGLY: u64 = 1024;

impl Follower {
    /// Parts matched behind each of many bytes: as if [`Follower::on_match`] were called for each.
    pub(crate) fn on_repeated(&mut self, context: Context<'_>, first: &[Match], times: u64, hits: &mut Vec<Hit>) {
        let users = first.iter().flat_map(|&found| context.table.users(found.part).map(move |user| (user, found)));
        let mut users: Vec<(User, Match)> = users.collect();
        users.sort_by_key(|(user, _)| user.chain);
        for of_chain in users.chunk_by(|(one, _), (other, _)| one.chain == other.chain) {
            self.chain_repeated(context, of_chain, times, hits);
        }
    }

    /// Links of one chain matched behind each of many bytes.
    fn chain_repeated(&mut self, context: Context<'_>, users: &[(User, Match)], times: u64, hits: &mut Vec<Hit>) {
        let Some((User { chain: number, .. }, _)) = users.first() else {
            return;
        };
        let chain = &context.table.chains[*number as usize];
        let location = context.table.location(chain);
        let is_plain = location == Location::Anywhere
            && match context.table.asks(chain.signature) {
                Asks::Rule(Rule { logic, .. }) => logic.compares.is_empty() && logic.macros.is_empty(),
                _ => true,
            };
        if is_plain {
            let mut users = users.to_vec();
            users.sort_by_key(|(user, _)| user.link);
            return users.into_iter().for_each(|user| self.plain_repeated(context, user, times, hits));
        }
        // Of a body that is placed from the end only the last starts matter.
        let last = |found: &Match| found.known.saturating_add(times - 1);
        let from = users.iter().map(|(_, found)| oldest(location, last(found)).saturating_sub(found.start)).min();
        for shift in from.unwrap_or(0)..times {
            if self.told.contains(&chain.signature) {
                return;
            }
            users.iter().for_each(|&(user, found)| self.on_user(context, user, found.shifted(shift), hits));
        }
    }

    /// A link of a chain that may be anywhere matched behind each of many bytes.
    fn plain_repeated(&mut self, context: Context<'_>, (user, found): (User, Match), times: u64, hits: &mut Vec<Hit>) {
        let chain = &context.table.chains[user.chain as usize];
        let links = context.table.links(chain);
        let last = found.start.saturating_add(times - 1);
        let before = usize::from(user.link).checked_sub(1);
        let Some(before) = before else {
            let start = Line { at: found.start, moves: true };
            let stretch = Stretch { first: found.start, last, start };
            return self.stretch_reached(context, (chain, links), user, (stretch, found), hits);
        };
        let ends = self.chains.get(&user.chain).and_then(|state| state.ends.get(before));
        let (Some(ends), Some(link)) = (ends, links.get(usize::from(user.link))) else {
            return;
        };
        let max = if link.gap.is_open() { u64::MAX } else { link.gap.max.into() };
        for stretch in ends.followed((link.gap.min.into(), max), found.start, last) {
            self.stretch_reached(context, (chain, links), user, (stretch, found), hits);
        }
    }

    /// Chains have got to this link, with parts that begin one byte after the other; `found` is one such part.
    fn stretch_reached(
        &mut self,
        context: Context<'_>,
        (chain, links): (&Chain, Links<'_>),
        user: User,
        (stretch, found): (Stretch, Match),
        hits: &mut Vec<Hit>,
    ) {
        if self.told.contains(&chain.signature) {
            return;
        }
        let found = found.shifted(stretch.first - found.start);
        let number = usize::from(user.link);
        let Some(next) = links.get(number + 1) else {
            return self.complete_stretch(context, chain, (stretch, found), hits);
        };
        let Some(ends) = self.ends_of((user.chain, number), links) else {
            return;
        };
        if next.gap.is_open() {
            return ends.keep_earliest(found.end, stretch.start.at);
        }
        ends.forget(found.known.saturating_sub(reach(next)));
        let last = found.end + (stretch.last - stretch.first);
        let lost = ends.push_stretch(found.end, last, stretch.start);
        self.lost += u64::from(lost);
    }

    /// A body matched many times.
    fn complete_stretch(
        &mut self,
        context: Context<'_>,
        chain: &Chain,
        (stretch, found): (Stretch, Match),
        hits: &mut Vec<Hit>,
    ) {
        let Chain { signature, sub, .. } = *chain;
        // Equal starts one after the other count once.
        let times = if stretch.start.moves { stretch.last - stretch.first + 1 } else { 1 };
        for shift in 0..times.min(COUNTED_SINGLY) {
            let start = stretch.start.beyond(shift);
            self.count(context, Counted { signature, sub, start, known: found.known + shift }, hits);
            if self.told.contains(&signature) {
                return;
            }
        }
        let Some(more) = times.checked_sub(COUNTED_SINGLY + 1) else {
            return;
        };
        let (start, known) = (stretch.start.beyond(times - 1), found.known + times - 1);
        if let Some(state) = self.rules.get_mut(&signature) {
            state.count_more(sub, more);
        }
        self.count(context, Counted { signature, sub, start, known }, hits);
    }
}
