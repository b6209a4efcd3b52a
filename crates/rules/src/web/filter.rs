//! A whole configuration: groups, what they share, and what is wrong with it.

use std::sync::Arc;

use super::config::Options;
use super::group::Group;
use super::limits::Limits;
use super::loader::{Census, Loader, PHRASE_LISTS};
use super::loading::{Loading, Read};
use super::phrase::{Dialect, Phrases};
use super::request::{Decision, Request};
use super::squidguard::{self, Branch, Sources};
use super::who::Membership;
use crate::spam::{Problem, Severity};

/// A configuration that was loaded. Immutable, to be shared.
#[derive(Debug)]
pub struct Filter {
    groups: Vec<Arc<Group>>,
    membership: Clients,
    problems: Vec<Problem>,
    dropped: usize,
    census: Census,
}

/// The way in which clients have groups.
#[derive(Debug)]
enum Clients {
    Plugins(Membership),
    Sources(Sources),
}

impl Filter {
    /// Loads a configuration by its main file: `e2guardian.conf`, `dansguardian.conf`, or that of squidGuard under any name.
    ///
    /// What is wrong is told by [`Filter::problems`], and the rest holds.
    pub fn load(path: &str, dialect: Dialect, limits: Limits, read: &mut Read<'_>) -> Filter {
        let mut loader = Loader::new(Loading::new(read, limits), dialect);
        if squidguard::is_main(path, &mut loader.loading) {
            return Filter::of_squidguard(path, loader);
        }
        let options = loader.main(path);
        let shared = Arc::new(loader.shared(&options));
        let wanted = options_of_groups(&options, limits, &mut loader.loading);
        let membership = Membership::load(&options, wanted, &mut loader.loading);
        let stem = path.strip_suffix(".conf").unwrap_or(path);
        let groups =
            (1..=wanted).map(|number| loader.group(&format!("{stem}f{number}.conf"), number, &options, &shared));
        let groups = groups.map(Arc::new).collect();
        Filter::new(groups, Clients::Plugins(membership), loader)
    }

    /// Loads a configuration of squidGuard: a group for each branch of access rules, and one behind them for clients without a branch,
    /// whose requests pass.
    fn of_squidguard(path: &str, mut loader: Loader<'_>) -> Filter {
        let plan = loader.plan(path);
        let shared = Arc::new(loader.shared(&Options::new("")));
        let branches = (1..).zip(&plan.branches);
        let mut groups: Vec<Arc<Group>> =
            branches.map(|(number, branch)| Arc::new(loader.branch(branch, number, &plan, &shared))).collect();
        let last = u32::try_from(groups.len() + 1).unwrap_or(u32::MAX);
        let rest = Branch { words: vec!["any".into()], ..Branch::default() };
        groups.push(Arc::new(loader.branch(&rest, last, &plan, &shared)));
        Filter::new(groups, Clients::Sources(plan.sources), loader)
    }

    fn new(groups: Vec<Arc<Group>>, membership: Clients, loader: Loader<'_>) -> Filter {
        let census = loader.census();
        Filter { groups, membership, problems: loader.loading.problems, dropped: loader.loading.dropped, census }
    }

    /// Problems, in the order in which they were found.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count() + self.dropped
    }

    /// How much was loaded.
    pub fn census(&self) -> Census {
        self.census
    }

    /// The groups.
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// A group by its number, from 1.
    pub fn group(&self, number: u32) -> Option<&Arc<Group>> {
        self.groups.get(number.checked_sub(1)? as usize)
    }

    /// The group of whoever sends a request.
    pub fn group_of(&self, request: &Request<'_>) -> Option<&Arc<Group>> {
        match &self.membership {
            Clients::Plugins(membership) => {
                let told = request.group.and_then(|name| self.group_named(name));
                told.or_else(|| self.group(membership.group_of(request))).or_else(|| self.groups.first())
            }
            Clients::Sources(sources) => match sources.group_of(request) {
                Some(number) => self.group(number),
                None => self.groups.last(),
            },
        }
    }

    /// Whether there is a group that the host may name: its name or `filterN`, of squidGuard the name of a source.
    pub fn has_group(&self, name: &str) -> bool {
        match &self.membership {
            Clients::Plugins(_) => self.group_named(name).is_some(),
            Clients::Sources(sources) => sources.all.iter().any(|source| *source.name == *name),
        }
    }

    /// A group by its name, or as files of plugins name it.
    fn group_named(&self, name: &str) -> Option<&Arc<Group>> {
        let named =
            self.groups.iter().find(|group| !group.name().is_empty() && group.name().eq_ignore_ascii_case(name));
        named.or_else(|| self.group(name.to_ascii_lowercase().strip_prefix("filter")?.parse().ok()?))
    }

    /// Decides on a request by the group of whoever sends it.
    pub fn request(&self, request: &Request<'_>) -> Decision {
        self.group_of(request).map(|group| group.request(request)).unwrap_or_default()
    }
}

/// Loads nothing but the phrases of each group, in the order of the groups: for a process that scores pages and decides on no
/// request.
pub fn load_phrases(path: &str, dialect: Dialect, limits: Limits, read: &mut Read<'_>) -> Vec<Arc<Phrases>> {
    let mut loader = Loader::new(Loading::new(read, limits), dialect);
    if squidguard::is_main(path, &mut loader.loading) {
        return Vec::new();
    }
    let main = loader.main(path);
    let settings = loader.settings(&main);
    let wanted = options_of_groups(&main, limits, &mut loader.loading);
    let stem = path.strip_suffix(".conf").unwrap_or(path);
    let mut group = |number: u32| {
        let options = loader.options(&format!("{stem}f{number}.conf"), number, &main);
        let limit = options.number("naughtynesslimit", 50, &mut loader.loading);
        loader.phrases(&options, &PHRASE_LISTS, limit, settings)
    };
    (1..=wanted).map(&mut group).collect()
}

/// The number of filter groups.
fn options_of_groups(main: &Options, limits: Limits, loading: &mut Loading<'_>) -> u32 {
    main.number("filtergroups", 1, loading).clamp(1, limits.groups_max)
}
