//! The options of a rule, and the requests for which they hold.

use super::refusal::Refusal;
use super::subject::{Subject, Types, names};
use crate::web::url::in_ascii;

/// Hosts of pages, and whether a rule holds there.
type Pages = Box<[(Box<str>, bool)]>;

/// The conditions of a rule beside its pattern.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// [`Types::NONE`] where the rule names no type, until [`Options::default_to`].
    types: Types,
    /// It names pages as such.
    is_of_documents: bool,
    pub is_foreign: Option<bool>,
    /// The pages on which the rule holds.
    pub pages: Pages,
    /// Hosts that the rule does not hold for.
    pub spared: Box<[Box<str>]>,
    pub is_important: bool,
    pub has_case: bool,
}

impl Options {
    /// Reads options, without `badfilter`.
    pub fn read(texts: &[&str]) -> Result<Options, Refusal> {
        let mut options = Options::default();
        let (mut with, mut without) = (Types::NONE, Types::NONE);
        let mut is_about_windows = false;
        for text in texts {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let name = name.to_ascii_lowercase();
            let (is_negated, name) = name.strip_prefix('~').map_or((false, &*name), |name| (true, name));
            match name {
                "third-party" | "3p" => options.is_foreign = Some(!is_negated),
                "first-party" | "1p" => options.is_foreign = Some(is_negated),
                "domain" | "from" => options.pages = pages(value)?,
                "denyallow" => options.spared = value.split('|').map(|host| in_ascii(host).into()).collect(),
                "important" => options.is_important = true,
                "match-case" => options.has_case = true,
                // The resource in the place of the blocked one is not known here.
                "redirect" | "empty" | "mp4" => {}
                name if CHANGING.contains(&name) => return Err(Refusal::Changes),
                name if OF_WINDOWS.contains(&name) => is_about_windows = true,
                name => {
                    let types = Types::named(name).ok_or(Refusal::Unknown)?;
                    let of = if is_negated { &mut without } else { &mut with };
                    *of = of.and(types);
                }
            }
        }
        options.is_of_documents = with.have(Types::DOCUMENT);
        options.types = match (with, without) {
            (Types::NONE, Types::NONE) if is_about_windows => return Err(Refusal::Windows),
            (Types::NONE, Types::NONE) => Types::NONE,
            (Types::NONE, without) => Types::ALL.without(without.and(Types::DOCUMENT)),
            (with, without) => with.without(without),
        };
        Ok(options)
    }

    /// Whether a text is the name of an option.
    pub fn is_name(text: &str) -> bool {
        let name = text.strip_prefix('~').unwrap_or(text).to_ascii_lowercase();
        let name = name.as_str();
        PLAIN.contains(&name) || CHANGING.contains(&name) || OF_WINDOWS.contains(&name) || Types::named(name).is_some()
    }

    /// Gives a rule without types all of them, but documents only to a rule for the whole of a host.
    pub fn default_to(&mut self, is_of_host: bool) {
        if self.types == Types::NONE {
            self.types = if is_of_host { Types::ALL } else { Types::ALL.without(Types::DOCUMENT) };
        }
    }

    /// Whether they hold for every request.
    pub fn are_none(&self) -> bool {
        self.types == Types::ALL && self.is_foreign.is_none() && self.pages.is_empty() && self.spared.is_empty()
    }

    /// Whether a rule with them blocks a request: each type that it may have is one of the rule's.
    pub fn block(&self, subject: &Subject) -> bool {
        self.types.have_all(subject.types) && self.hold(subject)
    }

    /// Whether an exception with them is for a request. One of the types that it may have is enough.
    pub fn spare(&self, subject: &Subject) -> bool {
        self.types.have(subject.types) && self.hold(subject)
    }

    /// Whether an exception spares all requests of a page.
    pub fn spare_page(&self, page: &Subject) -> bool {
        self.is_of_documents && self.hold(page)
    }

    fn hold(&self, subject: &Subject) -> bool {
        self.is_foreign.is_none_or(|is_foreign| subject.is_foreign == Some(is_foreign))
            && self.hold_on(&subject.page)
            && !names(subject.host()).any(|name| self.spared.iter().any(|spared| spared.as_bytes() == name))
    }

    /// Whether they hold on a page with these names. The first of them that is listed decides.
    fn hold_on(&self, names: &[Box<[u8]>]) -> bool {
        let listed = |name: &[u8]| self.pages.iter().find(|(page, _)| page.as_bytes() == name);
        match names.iter().find_map(|name| listed(name)) {
            Some((_, holds)) => *holds,
            None => !self.pages.iter().any(|(_, holds)| *holds),
        }
    }
}

/// Options that are neither types nor left out.
const PLAIN: [&str; 14] = [
    "third-party",
    "3p",
    "first-party",
    "1p",
    "domain",
    "from",
    "denyallow",
    "important",
    "match-case",
    "redirect",
    "empty",
    "mp4",
    "badfilter",
    "method",
];

/// Options that change pages or requests.
const CHANGING: [&str; 22] = [
    "csp",
    "removeparam",
    "queryprune",
    "replace",
    "redirect-rule",
    "rewrite",
    "header",
    "permissions",
    "urlskip",
    "uritransform",
    "urltransform",
    "removeheader",
    "cookie",
    "jsonprune",
    "hls",
    "stealth",
    "inline-script",
    "inline-font",
    "network",
    "app",
    "dnsrewrite",
    "referrerpolicy",
];

/// Options about windows, and about elements of pages.
const OF_WINDOWS: [&str; 14] = [
    "popup",
    "popunder",
    "elemhide",
    "ehide",
    "generichide",
    "ghide",
    "specifichide",
    "shide",
    "genericblock",
    "content",
    "urlblock",
    "jsinject",
    "extension",
    "webrtc",
];

/// Reads `a.test|~b.a.test|c.*`.
fn pages(text: &str) -> Result<Pages, Refusal> {
    let page = |text: &str| {
        let (holds, host) = text.strip_prefix('~').map_or((true, text), |host| (false, host));
        let host = in_ascii(host);
        if host.is_empty() || !host.is_ascii() || host.strip_suffix(".*").unwrap_or(&host).contains(['*', '/']) {
            return Err(Refusal::Unknown);
        }
        Ok((host.into(), holds))
    };
    text.split('|').map(page).collect()
}
