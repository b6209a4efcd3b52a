//! The lists of the web, as doors ask them and as processes that inspect are handed their phrases.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use edge::porch::filter::{self, ContentFacts, Decision, Pass, RequestFacts};
use flow::{PageOutcome, PageScore, Paging, wire};
use inspect::{PageFiles, PageRules};
use jiff::tz::TimeZone;
use rules::web::phrase::{Found, Outcome, Score};
use rules::web::{Filter, Group, Limits, Moment, Reason, Request, Response, Severity, Verdict};

use super::scorer::sealed;
use crate::config::web::{main_file, moment, reader};
use crate::config::{Config, Isolation};
use crate::output::Failure;

/// Errors that the log names.
const ERRORS_SHOWN: usize = 10;

/// Lists, ready to be used.
pub struct WebLists {
    /// Decides at the doors.
    pub filter: Arc<Lists>,
    /// Phrases, where this process scores pages.
    pub pages: Option<Arc<PageRules>>,
    /// The file for those that inspect.
    file: Option<OwnedFd>,
}

/// The configuration, and the zone whose time its lists mean.
pub struct Lists {
    filter: Filter,
    zone: TimeZone,
}

impl WebLists {
    /// Reads the lists of the configuration; none where it names none. Errors in them are written to the log, and without effect.
    ///
    /// # Errors
    /// When the main file cannot be read.
    pub fn load(config: &Config) -> Result<Option<WebLists>, Failure> {
        let Some((settings, path)) = config.web.as_ref().and_then(|web| Some((web, web.config.as_ref()?))) else {
            return Ok(None);
        };
        let main = main_file(path).map_err(|error| format!("web.config: {error}"))?;
        fs::File::open(&main).map_err(|error| format!("web.config: {}: {error}", main.display()))?;
        let path = main.to_string_lossy();
        let mut read = reader(&main, Limits::default());
        let filter = Filter::load(&path, settings.dialect, Limits::default(), &mut read);
        let errors = filter.problems().iter().filter(|problem| problem.severity == Severity::Error);
        errors.take(ERRORS_SHOWN).for_each(|error| tracing::warn!(%error, "lists of the web"));
        let census = filter.census();
        tracing::info!(
            groups = filter.groups().len(),
            lists = census.lists,
            entries = census.entries,
            phrases = census.phrases,
            errors = filter.errors(),
            "lists of the web"
        );
        let files = PageFiles::collect(&path, settings.dialect, &mut read);
        let is_here = config.isolation == Isolation::None;
        let pages = is_here.then(|| Arc::new(files.compile()));
        let file = if is_here { None } else { Some(sealed(&wire::write(&files, Vec::new()))?) };
        let lists = Lists { filter, zone: TimeZone::system() };
        Ok(Some(WebLists { filter: Arc::new(lists), pages, file }))
    }

    /// The file, for one more set of processes.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn file(&self) -> std::io::Result<Option<OwnedFd>> {
        self.file.as_ref().map(OwnedFd::try_clone).transpose()
    }
}

impl Lists {
    /// Has a group decide on a request.
    fn with<T>(&self, facts: &RequestFacts<'_>, decide: impl FnOnce(&Group, &Request<'_>) -> T) -> Option<T> {
        let fields: Vec<_> = facts.fields.iter().map(|(name, value)| (name.as_bytes(), value)).collect();
        let request = Request {
            method: facts.method.as_bytes(),
            url: facts.url,
            fields: &fields,
            client: facts.client,
            port: facts.port,
            user: facts.user,
            group: facts.group,
            is_tls: facts.is_tls,
            has_server_name: facts.has_server_name,
            now: moment(&self.zone),
        };
        self.filter.group_of(&request).map(|group| decide(group, &request))
    }
}

impl filter::Filter for Lists {
    fn request(&self, facts: &RequestFacts<'_>) -> Decision {
        self.with(facts, |group, request| decided(group.request(request), None))
            .unwrap_or(Decision::Pass(Pass::default()))
    }

    fn content(&self, facts: &RequestFacts<'_>, content: &ContentFacts<'_>) -> Decision {
        let response = Response { content_type: content.media_type, file_name: content.file_name.map(str::as_bytes) };
        let decide = |group: &Group, request: &Request<'_>| {
            let decision = group.response(request, &response, group.request(request));
            let Moment { day, minute } = request.now;
            let is_scored = group.scores(&response, &decision);
            let paging = is_scored.then(|| Paging { group: group.number(), day, minute });
            decided(decision, paging)
        };
        self.with(facts, decide).unwrap_or(Decision::Pass(Pass::default()))
    }

    fn scored(&self, group: u32, score: &PageScore) -> filter::Reason {
        let Some(group) = self.filter.group(group) else { return filter::Reason::default() };
        let decision = group.scored(&of_wire(score), rules::web::Decision::default());
        reason(decision.reason.unwrap_or_default(), &decision.categories)
    }
}

/// A decision of the lists, in the words of a door.
fn decided(decision: rules::web::Decision, paging: Option<Paging>) -> Decision {
    if decision.verdict == Verdict::Block {
        return Decision::Block(reason(decision.reason.unwrap_or_default(), &decision.categories));
    }
    match decision.redirect {
        Some(location) => Decision::Redirect(location.into()),
        None => Decision::Pass(Pass {
            url: decision.url,
            fields: decision.fields,
            added: decision.added,
            paging,
            opens: Some(decision.intercepts),
        }),
    }
}

fn reason(reason: Reason, categories: &[Arc<str>]) -> filter::Reason {
    filter::Reason {
        words: reason.text.into(),
        detail: reason.log.into(),
        category: categories.iter().map(|name| &**name).collect::<Vec<_>>().join(", ").into(),
    }
}

/// A score as the lists have it.
fn of_wire(score: &PageScore) -> Score {
    let outcome = match &score.outcome {
        PageOutcome::Passed => Outcome::Passed,
        PageOutcome::Exception(phrase, is_together) => {
            Outcome::Exception { phrase: phrase.to_string(), is_together: *is_together }
        }
        PageOutcome::Banned(phrase, is_together) => {
            Outcome::Banned { phrase: phrase.to_string(), is_together: *is_together }
        }
        PageOutcome::Weighted => Outcome::Weighted,
    };
    let found = score.phrases.iter().map(|phrase| Found {
        phrase: phrase.text.to_string(),
        count: phrase.count,
        weight: phrase.weight,
    });
    Score {
        points: score.points,
        outcome,
        found: found.collect(),
        categories: score.categories.iter().map(|(name, points)| (Arc::from(&**name), *points)).collect(),
        is_partial: score.is_partial,
    }
}
