//! The lists of the web, as doors ask them and as processes that inspect are handed their phrases.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{fmt, fs};

use edge::message::trace;
use edge::porch::filter::{self, ContentFacts, Decision, Notice, Pass, RequestFacts};
use flow::{PageOutcome, PageScore, Paging, Spared, wire};
use inspect::{PageFiles, PageRules};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rules::web::phrase::{Found, Outcome, Score};
use rules::web::{
    Cause, Entry, Field, Filter, Group, Identity, Limits, Moment, Request, Response, Severity, Suffixes, Tokens, Told,
    Verdict,
};

use super::scorer::sealed;
use crate::config::web::{main_file, moment, reader};
use crate::config::{Config, Isolation};
use crate::output::Failure;

/// Public suffixes, in the form of publicsuffix.org.
const SUFFIXES_PATH: &str = "/usr/share/publicsuffix/public_suffix_list.dat";

/// Errors that the log names.
const ERRORS_SHOWN: usize = 10;

/// Unknown groups that the log names.
const UNKNOWN_MAX: usize = 100;

/// Lists, ready to be used.
pub struct WebLists {
    /// Decides at the doors.
    pub filter: Arc<Lists>,
    /// Phrases, where this process scores pages.
    pub pages: Option<Arc<PageRules>>,
    /// The file for those that inspect.
    file: Option<OwnedFd>,
}

/// The configuration, and what it takes to ask it.
pub struct Lists {
    filter: Filter,
    means: Means,
    /// Groups of users that the lists do not have, as far as the log names them.
    unknown: Mutex<BTreeSet<Box<str>>>,
}

/// The zone whose time lists mean, and the secret of tokens, which a reload does not change.
#[derive(Clone)]
struct Means {
    zone: TimeZone,
    secret: [u8; 32],
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
        let main = main_file(path).map_err(|error| format!("web: config: {error}"))?;
        fs::File::open(&main).map_err(|error| format!("web: config: {}: {error}", main.display()))?;
        let path = main.to_string_lossy();
        let mut read = reader(&main, Limits::default());
        let filter = Filter::load(&path, settings.dialect, Limits::default(), &mut read);
        let errors = filter.problems().iter().filter(|problem| problem.severity == Severity::Error);
        errors.take(ERRORS_SHOWN).for_each(|error| tracing::warn!(%error, "line of a web list ignored"));
        let census = filter.census();
        tracing::info!(
            groups = filter.groups().len(),
            lists = census.lists,
            entries = census.entries,
            phrases = census.phrases,
            errors = filter.errors(),
            "web lists loaded"
        );
        let files = PageFiles::collect(&path, settings.dialect, &mut read);
        let is_here = config.isolation == Isolation::None;
        let pages = is_here.then(|| Arc::new(files.compile()));
        let file = if is_here { None } else { Some(sealed(&wire::write(&files, Vec::new()))?) };
        // Before the rights of the process are cut down.
        suffixes();
        let lists =
            Lists { filter, means: Means { zone: TimeZone::system(), secret: secret()? }, unknown: Mutex::default() };
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

/// The list of public suffixes that the system has (Debian's `publicsuffix`), read once.
fn suffixes() -> &'static Suffixes {
    static SUFFIXES: OnceLock<Suffixes> = OnceLock::new();
    SUFFIXES.get_or_init(|| Suffixes::read(&fs::read_to_string(SUFFIXES_PATH).unwrap_or_default()))
}

/// A secret of this process.
fn secret() -> Result<[u8; 32], Failure> {
    static SECRET: OnceLock<[u8; 32]> = OnceLock::new();
    match SECRET.get() {
        Some(secret) => Ok(*secret),
        None => {
            let new = mailbox::password::random()?;
            Ok(*SECRET.get_or_init(|| new))
        }
    }
}

impl Means {
    /// A request as the lists have it, with these fields.
    fn request<'r>(&'r self, facts: &RequestFacts<'r>, fields: &'r [Field<'r>]) -> Request<'r> {
        Request {
            method: facts.method.as_bytes(),
            url: facts.url,
            fields,
            client: facts.client,
            port: facts.port,
            user: facts.user,
            group: facts.group,
            is_tls: facts.is_tls,
            has_server_name: facts.has_server_name,
            identity: match facts.identity {
                filter::Identity::Proved => Identity::Proved,
                filter::Identity::Awaited => Identity::Awaited,
                filter::Identity::Claimed => Identity::Claimed,
            },
            entry: if facts.is_icap { Entry::Icap } else { Entry::Proxy },
            now: moment(&self.zone),
            tokens: self.tokens(facts.takes_tokens),
        }
    }

    /// The means of tokens, where a door takes them.
    fn tokens(&self, takes_tokens: bool) -> Option<Tokens<'_>> {
        let now = u64::try_from(Timestamp::now().as_second()).unwrap_or(u64::MAX);
        takes_tokens.then_some(Tokens { now, secret: &self.secret, suffixes: suffixes() })
    }
}

/// The fields of a request as the lists have them.
fn fields<'f>(facts: &RequestFacts<'f>) -> Vec<Field<'f>> {
    facts.fields.iter().map(|(name, value)| (name.as_bytes(), value)).collect()
}

impl Lists {
    /// Says once that the lists do not have the group of a user.
    fn tell_unknown(&self, group: &str, user: Option<&str>) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.len() < UNKNOWN_MAX && unknown.insert(group.into()) {
            let (group, user) = (trace::printable(group), user.map(trace::printable));
            tracing::warn!(group, user, "the web lists have no such group: users of it have that of the lists");
        }
    }
}

impl filter::Filter for Lists {
    fn request(&self, facts: &RequestFacts<'_>) -> Decision {
        if let Some(group) = facts.group.filter(|group| !self.filter.has_group(group)) {
            self.tell_unknown(group, facts.user);
        }
        let fields = fields(facts);
        let request = self.means.request(facts, &fields);
        let Some(group) = self.filter.group_of(&request) else { return Decision::Pass(Pass::default()) };
        let decision = group.request(&request);
        let course = Course {
            means: self.means.clone(),
            group: group.clone(),
            url: decision.url.as_deref().filter(|_| facts.takes_tokens).unwrap_or(facts.url).into(),
            client: facts.client,
            user: facts.user.map(Into::into),
            takes_tokens: facts.takes_tokens,
            decision,
        };
        course.decided(None)
    }
}

/// A request that the lists have decided on.
#[derive(Clone)]
struct Course {
    means: Means,
    group: Arc<Group>,
    url: Box<[u8]>,
    client: Option<IpAddr>,
    user: Option<Box<str>>,
    takes_tokens: bool,
    decision: rules::web::Decision,
}

impl fmt::Debug for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Course").field("decision", &self.decision).finish_non_exhaustive()
    }
}

impl filter::Course for Course {
    fn content(&self, facts: &RequestFacts<'_>, content: &ContentFacts<'_>) -> Decision {
        let file_names = content.file_names.map(|name| name.map(str::as_bytes));
        let response = Response { content_type: content.media_type, file_names };
        let fields = fields(facts);
        let request = self.means.request(facts, &fields);
        let decision = self.group.response(&request, &response, self.decision.clone());
        let Moment { day, minute, .. } = request.now;
        let paging = self.group.scores(&response, &decision).then(|| Paging {
            group: self.group.number(),
            day,
            minute,
            blocks: !self.group.is_stealthy(),
        });
        Course { decision, ..self.clone() }.decided(paging)
    }

    fn scored(&self, score: &PageScore) -> filter::Reason {
        let decision = self.group.scored(&of_wire(score), self.decision.clone());
        Course { decision, ..self.clone() }.reason()
    }

    fn notice(&self, words: &str, cause: filter::Cause) -> Notice {
        let cause = match cause {
            filter::Cause::Page => Cause::Lists,
            filter::Cause::Malware => Cause::Malware,
            filter::Cause::Fault => Cause::Fault,
        };
        self.told(Told { text: words, log: words, ..Told::default() }, cause)
    }
}

impl Course {
    /// The decision in the words of a door.
    fn decided(self, paging: Option<Paging>) -> Decision {
        if self.decision.verdict == Verdict::Block && !self.group.is_stealthy() {
            return Decision::Block(self.reason());
        }
        if self.decision.verdict == Verdict::Block {
            let (url, reason) = (String::from_utf8_lossy(&self.url), self.reason());
            let client = self.client.map(|client| client.to_string());
            tracing::info!(client, %url, reason = &*reason.detail, action = "pass", "would be blocked by web lists");
        }
        if let Some(location) = &self.decision.redirect {
            let cookie = self.decision.cookie.as_deref().map(Into::into);
            return Decision::Redirect { location: location.as_slice().into(), cookie };
        }
        let decision = &self.decision;
        Decision::Pass(Pass {
            url: decision.url.clone(),
            fields: decision.fields.clone(),
            renamed: decision.renamed.clone(),
            added: decision.added.clone(),
            paging,
            opens: Some(decision.intercepts),
            spared: match (decision.skips_scan, decision.skips_faults) {
                (true, _) => Spared::Malware,
                (false, true) => Spared::Faults,
                (false, false) => Spared::Nothing,
            },
            is_bypassed: decision.is_bypassed,
            cookie: decision.cookie.clone(),
            course: Some(Arc::new(self)),
        })
    }

    /// The reason of a block by lists.
    fn reason(&self) -> filter::Reason {
        let reason = self.decision.reason.clone().unwrap_or_default();
        let categories = self.decision.categories.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        let told = Told { text: &reason.text, log: &reason.log, categories: &categories, list: &reason.list };
        filter::Reason {
            words: self.group.shown(told).into(),
            notice: self.told(told, Cause::Lists),
            may_bypass: self.decision.may_bypass,
            detail: reason.log.into(),
            category: categories.into(),
        }
    }

    /// Notice in place of blocked content.
    fn told(&self, told: Told<'_>, cause: Cause) -> Notice {
        let request = Request {
            url: &self.url,
            client: self.client,
            user: self.user.as_deref(),
            tokens: self.means.tokens(self.takes_tokens),
            ..Request::default()
        };
        let link = self.group.link(&request, &self.decision, cause);
        match self.group.notice(&request, told, link.as_deref()) {
            rules::web::Notice::Own => Notice::Own(link.map(Into::into)),
            rules::web::Notice::Bare => Notice::Bare,
            rules::web::Notice::Page(page) => Notice::Page(page.into()),
            rules::web::Notice::Redirect(location) => Notice::Redirect(location.into_bytes().into()),
        }
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
        PageOutcome::Dense => Outcome::Dense,
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
    }
}
