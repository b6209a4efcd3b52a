//! A request while its storyboard runs.

use std::borrow::Cow;
use std::rc::Rc;

use super::list::{Bound, Found, Kind, Subject, sorted_terms, sorted_words};
use super::messages;
use super::moment::Moment;
use super::phrase::Dialect;
use super::request::{Decision, Identity, Reason, Request, Response, Verdict, essence};
use super::story::{Action, Flag, Messages, State, World};
use super::url::{self, Url};

/// State of a group for storyboards.
#[derive(Clone, Copy)]
pub(super) struct Scene<'t> {
    pub lists: &'t [Bound],
    pub messages: &'t messages::Messages,
    pub dialect: Dialect,
    pub intercepts: bool,
    /// Addresses are looked for in lists of sites, too.
    pub searches_addresses: bool,
}

impl Scene<'_> {
    /// A URL as the dialect has it: E2Guardian leaves most dots of a path where they are.
    fn url(&self, url: Url) -> Url {
        if self.dialect == Dialect::Sluice { url.without_dots() } else { url }
    }
}

/// Facts about a request so far.
pub(super) struct Trial<'t> {
    pub scene: Scene<'t>,
    request: Request<'t>,
    pub response: Option<Response<'t>>,
    url: Rc<Url>,
    decision: Decision,
    /// The reason that the state before has found.
    found: Option<(Reason, Option<std::sync::Arc<str>>)>,
    /// The kind of the list that knew it.
    found_by: Option<Kind>,
    /// The text that the state before has made.
    made: Option<Vec<u8>>,
    /// The fields that the state before has changed, and those that have another name.
    changed: Vec<(usize, Vec<u8>)>,
    renamed: Vec<(usize, Vec<u8>)>,
    is_done: bool,
    is_grey: bool,
}

impl<'t> Trial<'t> {
    pub fn new(scene: Scene<'t>, request: Request<'t>, decision: Decision) -> Trial<'t> {
        let is_grey = decision.verdict == Verdict::Grey;
        Trial {
            scene,
            request,
            response: None,
            url: Rc::new(scene.url(Url::read(request.url))),
            decision,
            found: None,
            found_by: None,
            made: None,
            changed: Vec::new(),
            renamed: Vec::new(),
            is_done: false,
            is_grey,
        }
    }

    /// Whether nothing else is to be asked.
    pub fn is_over(&self) -> bool {
        matches!(self.decision.verdict, Verdict::Block | Verdict::Exception)
    }

    /// Lets no token past a block.
    pub fn forbid_bypass(&mut self) {
        self.decision.may_bypass = false;
    }

    pub fn finish(self) -> Decision {
        self.decision
    }

    pub fn now(&self) -> Moment {
        self.request.now
    }

    /// Whether the host of the URL is an address.
    pub fn is_address(&self) -> bool {
        self.url.address.is_some()
    }

    /// Whether lists at these places know the URL. Then its entry is the reason of what is done next.
    pub fn is_listed(&mut self, lists: &[usize], messages: Messages) -> bool {
        let url = self.url.clone();
        let subject = self.has_network(lists).then(|| Subject::of_request(&url, &self.request));
        self.url_in(&url, subject.as_ref(), lists, messages)
    }

    /// Whether lists at these places know the site of the URL.
    fn is_site_listed(&mut self, lists: &[usize], messages: Messages) -> bool {
        let url = self.url.clone();
        let subject = self.has_network(lists).then(|| Subject::of_host(&url));
        self.url_in(&url, subject.as_ref(), lists, messages)
    }

    fn is_of_sites(&self, list: usize) -> bool {
        self.scene.lists.get(list).is_some_and(|bound| bound.definition.kind == Kind::Site)
    }

    fn has_network(&self, lists: &[usize]) -> bool {
        let mut known = lists.iter().filter_map(|&place| self.scene.lists.get(place));
        known.any(|bound| bound.definition.kind == Kind::Network)
    }

    /// The lists that count for a state: no list of exemptions knows a host that is only claimed.
    fn counting<'l>(&self, state: State, lists: &'l [usize]) -> Cow<'l, [usize]> {
        if !state.is_by_host() || !self.is_claimed() {
            return Cow::Borrowed(lists);
        }
        let exempts = |list: &usize| self.scene.lists.get(*list).is_some_and(|bound| exempts(&bound.definition.name));
        lists.iter().copied().filter(|list| !exempts(list)).collect()
    }

    /// Makes a text the reason of what is done next, under the name of a list.
    pub fn find(&mut self, list: &str, text: String) {
        let reason = Reason { log: text.clone(), text, list: list.into(), ..Reason::default() };
        self.found = Some((reason, None));
    }

    fn is_connect(&self) -> bool {
        self.request.method.eq_ignore_ascii_case(b"CONNECT")
    }

    fn flag(&self, flag: Flag) -> bool {
        match flag {
            Flag::Connect => self.is_connect(),
            Flag::Post => self.request.method.eq_ignore_ascii_case(b"POST"),
            Flag::Get => self.request.method.eq_ignore_ascii_case(b"GET"),
            Flag::SiteIsAddress => self.is_address(),
            Flag::Tls => self.request.is_tls,
            Flag::Exception => self.decision.verdict == Verdict::Exception,
            Flag::Grey => self.is_grey,
            Flag::Block => self.decision.verdict == Verdict::Block,
            Flag::Intercept => self.decision.intercepts,
            Flag::Done => self.is_done,
            Flag::HasServerName => self.request.has_server_name,
            Flag::Redirect => self.decision.redirect.is_some(),
            Flag::VirusCheck => !self.decision.skips_scan,
            Flag::BypassAllowed => self.decision.may_bypass,
            Flag::ScanBypassAllowed => self.decision.may_bypass_scan,
        }
    }

    /// The first of some lists that knows something.
    fn first(
        &mut self,
        lists: &[usize],
        messages: Messages,
        find: impl Fn(&Bound, &mut bool) -> Option<Found>,
    ) -> bool {
        let mut is_partial = false;
        let known = lists.iter().filter_map(|&place| self.scene.lists.get(place));
        let found = known.filter_map(|bound| Some((bound, find(bound, &mut is_partial)?))).next();
        self.found_by = found.as_ref().map(|(bound, _)| bound.definition.kind);
        let note = found.map(|(bound, found)| self.reason(bound, messages, found));
        self.decision.is_partial |= is_partial;
        let is_known = note.is_some();
        self.found = note.or(self.found.take());
        is_known
    }

    fn reason(&self, bound: &Bound, messages: Messages, found: Found) -> (Reason, Option<std::sync::Arc<str>>) {
        let is_told = |number: &u32| *number > 0 && self.scene.messages.has(*number);
        let chosen = |by_line: u32, by_list: u32| Some(by_line).filter(is_told).unwrap_or(by_list);
        let shown = chosen(messages.shown, bound.definition.message);
        let logged = match chosen(messages.logged, bound.definition.log_message) {
            0 => shown,
            logged => logged,
        };
        let text = |number| self.scene.messages.text(number, &found.entry);
        let reason = Reason {
            message: shown,
            text: text(shown),
            log: text(logged),
            list: bound.definition.name.clone(),
            entry: found.entry.clone(),
        };
        (reason, Some(found.category).filter(|category| !category.is_empty()))
    }

    /// Looks for a URL in lists of sites, URLs, extensions and expressions, and in network rules if it is of a request.
    fn url_in(&mut self, url: &Url, subject: Option<&Subject>, lists: &[usize], messages: Messages) -> bool {
        let now = self.request.now;
        let (bare, file, is_connect) = (url.bare(), self.file(url), self.is_connect());
        let searches_addresses = self.scene.searches_addresses;
        // E2Guardian asks its lists of URLs for no URL that is a bare host.
        let has_path = self.scene.dialect == Dialect::Sluice || bare.contains(&b'/');
        let is_known = self.first(lists, messages, |bound, is_partial| match bound.definition.kind {
            Kind::AddressSite => bound.list.address(url.address?, now),
            Kind::Site if url.address.is_some() && !searches_addresses => None,
            Kind::Site => bound.list.site(&url.host, bound.definition.walks, now),
            Kind::Url if has_path => bound.list.url(&bare, now),
            Kind::Network => {
                let (found, is_given_up) = bound.list.network(subject?, now);
                *is_partial |= is_given_up;
                found
            }
            Kind::Beginning => url.beginnings().find_map(|url| bound.list.beginning(&url, now)),
            Kind::UrlExpression => expression(bound, &url.plain(is_connect), now, is_partial),
            Kind::Extension => bound.list.extension(&file, now),
            Kind::Expression => expression(bound, &bare, now, is_partial),
            _ => None,
        });
        if is_known && matches!(self.found_by, Some(Kind::Expression | Kind::UrlExpression)) {
            self.hide_expression();
        }
        is_known
    }

    /// Leaves the expression that a URL matches out of what the user is told.
    fn hide_expression(&mut self) {
        if let Some((reason, _)) = &mut self.found {
            reason.text = self.scene.messages.alone(reason.message);
        }
    }

    /// Text whose end is compared with extensions. E2Guardian takes the query for a part of it, and decodes nothing.
    fn file(&self, url: &Url) -> Vec<u8> {
        match self.scene.dialect {
            Dialect::Sluice => url.file(),
            Dialect::E2guardian535 | Dialect::E2guardian558 => url.raw_path.to_ascii_lowercase(),
        }
    }

    fn text_in(&mut self, text: &[u8], lists: &[usize], messages: Messages) -> bool {
        let now = self.request.now;
        self.first(lists, messages, |bound, is_partial| expression(bound, text, now, is_partial))
    }

    /// Looks for what is searched for: its words in their order, whatever their order is.
    fn search_in(&mut self, lists: &[usize], messages: Messages) -> bool {
        let Some(terms) = self.decision.search.as_deref() else { return false };
        let key = match self.scene.dialect {
            Dialect::Sluice => sorted_words(terms),
            Dialect::E2guardian535 | Dialect::E2guardian558 => sorted_terms(terms),
        };
        if key.is_empty() {
            return false;
        }
        let now = self.request.now;
        self.first(lists, messages, |bound, _| bound.list.exact(key.as_bytes(), now))
    }

    /// Looks for fields: expressions match them, replacements change them. The line of the request is none of them.
    fn header_in(&mut self, lists: &[usize], messages: Messages) -> bool {
        let (now, fields) = (self.request.now, self.request.fields);
        let line = |name: &[u8], value: &[u8]| [name, b": ", value].concat();
        let is_known = self.first(lists, messages, |bound, is_partial| {
            fields.iter().find_map(|(name, value)| expression(bound, &line(name, value), now, is_partial))
        });
        let replacements = lists.iter().filter_map(|&place| self.scene.lists.get(place));
        let replacements: Vec<&Bound> =
            replacements.filter(|bound| bound.definition.kind == Kind::Replacement).collect();
        self.changed.clear();
        self.renamed.clear();
        for (place, (name, value)) in fields.iter().enumerate() {
            let changed = replacements.iter().find_map(|bound| bound.list.replaced(&line(name, value), now));
            let Some(changed) = changed else { continue };
            let colon = changed.iter().position(|&byte| byte == b':').unwrap_or(changed.len());
            let (new, value) = (&changed[..colon], changed.get(colon + 1..).unwrap_or_default().trim_ascii());
            // A line without a name is no field.
            let value = if new.is_empty() { &b""[..] } else { value };
            if !new.is_empty() && !new.eq_ignore_ascii_case(name) {
                if !may_be_named(new) {
                    continue;
                }
                self.renamed.push((place, new.to_vec()));
            }
            self.changed.push((place, value.iter().copied().filter(|byte| !byte.is_ascii_control()).collect()));
        }
        is_known || !self.changed.is_empty()
    }

    /// Changes the URL by replacements, or matches it by expressions.
    fn full_url_in(&mut self, lists: &[usize], messages: Messages) -> bool {
        let now = self.request.now;
        let whole = self.url.whole();
        let replacements = lists.iter().filter_map(|&place| self.scene.lists.get(place));
        let mut replacements = replacements.filter(|bound| bound.definition.kind == Kind::Replacement);
        self.made = replacements.find_map(|bound| match &*bound.definition.name {
            "addheader" if self.scene.dialect == Dialect::Sluice => bound.list.expanded(&whole, now),
            // The rest of the URL stays around the match.
            "addheader" | "searchterms" => bound.list.replaced_once(&whole, now),
            _ => bound.list.replaced(&whole, now),
        });
        if self.made.is_some() {
            return true;
        }
        self.text_in(&whole, lists, messages)
    }

    /// Puts the scheme of the client's URL before one that was made of it.
    fn changed_url(&self, made: Vec<u8>) -> Vec<u8> {
        match made.strip_prefix(b"http://") {
            Some(rest) if self.url.scheme == b"https" => [b"https://", rest].concat(),
            _ => made,
        }
    }

    fn decide(&mut self, verdict: Verdict) -> bool {
        if let Some((reason, category)) = self.found.take() {
            self.decision.reason = Some(reason);
            self.decision.categories = category.into_iter().collect();
        }
        self.decision.verdict = verdict;
        true
    }

    /// Has the content looked at, whatever was decided before.
    fn grey(&mut self) -> bool {
        self.is_grey = true;
        if self.found.is_some() || self.is_over() {
            return self.decide(Verdict::Grey);
        }
        true
    }

    /// Does something with a text that was made; false where there is none.
    fn with_made(&mut self, act: impl FnOnce(&mut Self, Vec<u8>)) -> bool {
        let made = self.made.take();
        let has_made = made.is_some();
        if let Some(made) = made {
            act(self, made);
        }
        has_made
    }
}

/// Whether the lists of a name exempt what they know, as those of E2Guardian's storyboards do.
fn exempts(name: &str) -> bool {
    let name = name.strip_prefix("local").unwrap_or(name);
    ["exception", "grey", "nomitm"].iter().any(|kind| name.starts_with(kind))
}

/// Whether a field may get a name: a token, and none that says how a message is framed and whom it is for.
fn may_be_named(name: &[u8]) -> bool {
    const FRAMING: [&[u8]; 11] = [
        b"host",
        b"content-length",
        b"content-encoding",
        b"transfer-encoding",
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
        b"expect",
    ];
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    name.iter().all(is_of_token) && !FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing))
}

fn expression(bound: &Bound, text: &[u8], now: Moment, is_partial: &mut bool) -> Option<Found> {
    let (found, given_up) = bound.list.expression(text, now);
    *is_partial |= given_up;
    found
}

impl World for Trial<'_> {
    fn holds(&mut self, state: State, lists: &[usize], messages: Messages) -> bool {
        if !matches!(state, State::Flag(_)) {
            self.found = None;
        }
        let lists = &*self.counting(state, lists);
        match state {
            State::True | State::Returned => true,
            State::Foreign => false,
            State::Flag(flag) => self.flag(flag),
            _ if lists.is_empty() => false,
            State::Url => self.is_listed(lists, messages),
            State::Site => self.is_site_listed(lists, messages),
            State::Embedded => {
                let embedded = self.url.embedded(self.scene.dialect == Dialect::Sluice);
                embedded.into_iter().any(|url| self.url_in(&self.scene.url(url), None, lists, messages))
            }
            State::Referer => {
                let referer = self.request.header(b"referer").map(|url| self.scene.url(Url::read(url)));
                // Sites alone, as in E2Guardian: any client may send any URL here.
                let sites: Vec<usize> = lists.iter().copied().filter(|&list| self.is_of_sites(list)).collect();
                referer.is_some_and(|url| self.url_in(&url, None, &sites, messages))
            }
            State::Search => self.search_in(lists, messages),
            State::Header => self.header_in(lists, messages),
            State::FullUrl => self.full_url_in(lists, messages),
            State::UserAgent => {
                let agent = self.request.header(b"user-agent").unwrap_or(b"");
                self.text_in(agent, lists, messages)
            }
            State::Extension => {
                let names = self.response.map_or([None; 2], |response| response.file_names);
                let names: Vec<_> = names.into_iter().flatten().map(<[u8]>::to_ascii_lowercase).collect();
                let now = self.request.now;
                self.first(lists, messages, |bound, _| {
                    let mut found = names.iter().map(|name| bound.list.extension(name, now));
                    // Which of its names a client takes is not known: an exception has to hold for both.
                    let is_spared = bound.definition.name.starts_with("exception");
                    if is_spared { found.collect::<Option<Vec<_>>>()?.pop() } else { found.find_map(|found| found) }
                })
            }
            State::Type => {
                let Some(kind) = self.response.and_then(|response| response.content_type) else { return false };
                let kind = essence(kind);
                let now = self.request.now;
                self.first(lists, messages, |bound, _| bound.list.exact(&kind, now))
            }
            State::Client => {
                let (Some(client), now) = (self.request.client, self.request.now) else { return false };
                self.first(lists, messages, |bound, _| bound.list.address(client, now))
            }
        }
    }

    fn is_claimed(&self) -> bool {
        self.request.identity == Identity::Claimed
    }

    fn say(&mut self, messages: Messages) {
        let mut text = self.scene.messages.text(messages.shown, "");
        if text.ends_with(' ') {
            text.push_str(&String::from_utf8_lossy(&self.url.host));
        }
        let reason = Reason { message: messages.shown, log: text.clone(), text, ..Reason::default() };
        self.found = Some((reason, None));
    }

    fn act(&mut self, action: Action) -> bool {
        match action {
            Action::True => return true,
            Action::False | Action::Foreign => return false,
            Action::Exception => return self.decide(Verdict::Exception),
            Action::Block => return self.decide(Verdict::Block),
            Action::Grey => return self.grey(),
            Action::ChangeUrl => {
                return self.with_made(|trial, made| trial.decision.url = Some(trial.changed_url(made)));
            }
            Action::Redirect => return self.with_made(|trial, made| trial.decision.redirect = Some(made)),
            Action::ConnectSite => return self.with_made(|trial, made| trial.decision.connect = Some(made)),
            Action::AddHeader => return self.with_made(Trial::add_header),
            Action::SearchTerm => return self.with_made(Trial::search_for),
            Action::ChangeHeader => {
                self.decision.fields = std::mem::take(&mut self.changed);
                self.decision.renamed = std::mem::take(&mut self.renamed);
                return !self.decision.fields.is_empty();
            }
            Action::Done => self.is_done = true,
            Action::Intercept => {
                self.decision.intercepts = self.scene.intercepts && self.is_connect();
                return self.decision.intercepts;
            }
            Action::DoNotIntercept => self.decision.intercepts = false,
            Action::LogCategory => {
                self.decision.categories = self.found.take().and_then(|found| found.1).into_iter().collect()
            }
            Action::NoCertificateCheck => self.decision.trusts_certificate = true,
            Action::Direct => self.decision.is_direct = true,
            Action::NoLog => self.decision.is_silent = true,
            Action::NoVirusCheck => self.decision.skips_scan = true,
            Action::NoBypass => self.decision.may_bypass = false,
            Action::NoScanBypass => self.decision.may_bypass_scan = false,
        }
        true
    }
}

impl Trial<'_> {
    fn add_header(&mut self, made: Vec<u8>) {
        let Some(colon) = made.iter().position(|&byte| byte == b':') else { return };
        let is_clean = !made.iter().any(u8::is_ascii_control);
        if is_clean && colon > 0 {
            self.decision.added = Some((made[..colon].to_vec(), made[colon + 1..].trim_ascii().to_vec()));
        }
    }

    fn search_for(&mut self, made: Vec<u8>) {
        let spaced: Vec<u8> = made.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        let decoded = url::decoded(&spaced);
        let mut terms = String::from_utf8_lossy(&decoded).into_owned();
        if self.scene.dialect == Dialect::Sluice {
            terms = terms.to_lowercase();
        }
        self.decision.search = Some(terms);
    }
}
