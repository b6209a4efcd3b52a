//! A request as network rules see it.
//!
//! A proxy does not see which element of a page makes a request. The type is that of `Upgrade: websocket` or `Sec-Fetch-Dest`, which
//! browsers send over HTTPS; else of the first type in `Accept`; else of the path's extension. The page is `Referer` or `Origin`, and
//! whether it is of another site says `Sec-Fetch-Site`, or a comparison of the names below public suffixes.
//!
//! Of a tunnel only its host is known.

use crate::web::list::keys::Hash;
use crate::web::request::Request;
use crate::web::suffix::Suffixes;
use crate::web::url::Url;

/// Types of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Types(u16);

impl Types {
    pub const NONE: Types = Types(0);
    pub const DOCUMENT: Types = Types(1);
    const SUBDOCUMENT: Types = Types(2);
    const SCRIPT: Types = Types(4);
    const STYLESHEET: Types = Types(8);
    const IMAGE: Types = Types(16);
    const FONT: Types = Types(32);
    const MEDIA: Types = Types(64);
    const OBJECT: Types = Types(128);
    const FETCH: Types = Types(256);
    const PING: Types = Types(512);
    const SOCKET: Types = Types(1024);
    const OTHER: Types = Types(2048);
    pub const ALL: Types = Types(4095);
    const PAGES: Types = Types(3);

    /// The types that an option names.
    pub fn named(name: &str) -> Option<Types> {
        Some(match name {
            "document" | "doc" => Types::DOCUMENT,
            "subdocument" | "frame" => Types::SUBDOCUMENT,
            "script" => Types::SCRIPT,
            "stylesheet" | "css" => Types::STYLESHEET,
            "image" => Types::IMAGE,
            "font" => Types::FONT,
            "media" => Types::MEDIA,
            "object" | "object-subrequest" => Types::OBJECT,
            "xmlhttprequest" | "xhr" => Types::FETCH,
            "ping" | "beacon" => Types::PING,
            "websocket" => Types::SOCKET,
            "other" => Types::OTHER,
            "all" => Types::ALL,
            _ => return None,
        })
    }

    pub fn and(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    /// Whether one or more of the others are among them.
    pub fn have(self, others: Types) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether all others are among them.
    pub fn have_all(self, others: Types) -> bool {
        others.without(self) == Types::NONE
    }
}

/// A request: its URL, its types, and its page.
#[derive(Debug)]
pub(crate) struct Subject {
    url: Vec<u8>,
    folded: Vec<u8>,
    /// The host in the URL.
    host: std::ops::Range<usize>,
    /// The types that it may have.
    pub(super) types: Types,
    /// The names of the page's host, from the most particular to the most general, then those like `a.*`. Empty: the page is not known.
    pub(super) page: Box<[Box<[u8]>]>,
    /// Whether the page is of another site.
    pub(super) is_foreign: Option<bool>,
    /// The page as a request of its own.
    pub(super) of_page: Option<Box<Subject>>,
    pub(super) is_tunnel: bool,
    /// The keys of rules that may match.
    pub(super) keys: Box<[u32]>,
}

impl Subject {
    /// A connection of which only the host is known.
    pub fn of_host(url: &Url) -> Subject {
        let host = Url { raw_path: b"/".to_vec(), scheme: b"https".to_vec(), ..url.clone() };
        let mut subject = Subject::of_url(&host);
        subject.is_tunnel = true;
        subject.seal()
    }

    /// A request; a tunnel if it is `CONNECT`.
    pub fn of_request(url: &Url, request: &Request<'_>) -> Subject {
        if request.method.eq_ignore_ascii_case(b"CONNECT") {
            return Subject::of_host(url);
        }
        let default = Suffixes::default();
        let suffixes = request.tokens.as_ref().map_or(&default, |tokens| tokens.suffixes);
        let mut subject = Subject::of_url(url);
        subject.types = types(url, request);
        if subject.types == Types::DOCUMENT {
            subject.page = names_of_page(url, suffixes);
            subject.is_foreign = Some(false);
            return subject.seal();
        }
        let page = ["referer", "origin"].iter().find_map(|name| request.header(name.as_bytes()));
        let page = page.map(Url::read).filter(|page| !page.host.is_empty());
        subject.is_foreign = match (request.header(b"sec-fetch-site"), &page) {
            (Some(b"cross-site"), _) => Some(true),
            (Some(b"same-site" | b"same-origin" | b"none"), _) => Some(false),
            (_, Some(page)) => Some(site(url, suffixes) != site(page, suffixes)),
            _ => None,
        };
        if let Some(page) = page {
            subject.page = names_of_page(&page, suffixes);
            let mut of_page = Subject::of_url(&page);
            of_page.types = Types::DOCUMENT;
            of_page.page = subject.page.clone();
            of_page.is_foreign = Some(false);
            subject.of_page = Some(Box::new(of_page.seal()));
        }
        subject.seal()
    }

    fn of_url(url: &Url) -> Subject {
        let is_long = url.host.contains(&b':');
        let mut whole = [&url.scheme[..], b"://"].concat();
        whole.extend_from_slice(if is_long { b"[" } else { b"" });
        let begin = whole.len();
        whole.extend_from_slice(&url.host);
        let host = begin..whole.len();
        whole.extend_from_slice(if is_long { b"]" } else { b"" });
        let default: &[u8] = if url.scheme == b"https" { b"443" } else { b"80" };
        if let Some(port) = url.port().filter(|port| *port != default) {
            whole.push(b':');
            whole.extend_from_slice(port);
        }
        whole.extend_from_slice(&url.raw_path);
        let folded = whole.to_ascii_lowercase();
        Subject {
            url: whole,
            folded,
            host,
            types: Types::ALL,
            page: Box::default(),
            is_foreign: None,
            of_page: None,
            is_tunnel: false,
            keys: Box::default(),
        }
    }

    fn seal(mut self) -> Subject {
        let hosts = names(self.host()).map(|name| key(Stand::Host, name));
        let words = self.folded.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| word.len() > 1);
        let pages = self.page.iter().map(|name| key(Stand::Page, name));
        let mut keys: Vec<u32> = hosts.chain(words.map(|word| key(Stand::Word, word))).chain(pages).collect();
        keys.sort_unstable();
        keys.dedup();
        self.keys = keys.into();
        self
    }

    pub(super) fn url(&self) -> &[u8] {
        &self.url
    }

    pub(super) fn folded(&self) -> &[u8] {
        &self.folded
    }

    pub(super) fn host(&self) -> &[u8] {
        &self.folded[self.host.clone()]
    }

    /// The places of the host's labels in the URL; of an address of IPv6 that of its bracket.
    pub(super) fn labels(&self) -> impl Iterator<Item = usize> {
        let begin = self.host.start - usize::from(self.url[..self.host.start].ends_with(b"["));
        let dots = self.host().iter().enumerate().filter(|(_, byte)| **byte == b'.');
        std::iter::once(begin).chain(dots.map(|(at, _)| self.host.start + at + 1))
    }
}

/// The part of a request that a key is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stand {
    Host,
    Word,
    Page,
}

/// The key of a text in lower case.
pub(super) fn key(stand: Stand, text: &[u8]) -> u32 {
    let mut hash = Hash::new();
    hash.add(stand as u8);
    text.iter().for_each(|&byte| hash.add(byte));
    hash.key()
}

/// A host and the names above it.
pub(super) fn names(host: &[u8]) -> impl Iterator<Item = &[u8]> {
    let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| &host[at + 1..]);
    std::iter::once(host).chain(dots).filter(|name| !name.is_empty())
}

/// The name of the site that a host belongs to.
fn site<'u>(url: &'u Url, suffixes: &Suffixes) -> &'u [u8] {
    match url.address {
        Some(_) => &url.host,
        None => names(&url.host).take_while(|name| !suffixes.has(name)).last().unwrap_or(&url.host),
    }
}

/// The names of a host: `www.a.co.uk`, `a.co.uk`, `co.uk`, `uk`, `www.a.*`, `a.*`.
fn names_of_page(url: &Url, suffixes: &Suffixes) -> Box<[Box<[u8]>]> {
    let site = site(url, suffixes);
    let suffix = site.iter().position(|&byte| byte == b'.').map_or(0, |dot| site.len() - dot);
    let bare = &url.host[..url.host.len() - suffix];
    let has_entities = suffix > 0 && url.address.is_none();
    let entities = names(bare).filter(|_| has_entities).map(|name| [name, b".*"].concat().into_boxed_slice());
    names(&url.host).map(Box::from).chain(entities).collect()
}

/// The types that a request may have.
fn types(url: &Url, request: &Request<'_>) -> Types {
    if request.header(b"upgrade").is_some_and(|value| value.eq_ignore_ascii_case(b"websocket")) {
        return Types::SOCKET;
    }
    if let Some(destination) = request.header(b"sec-fetch-dest") {
        return of_destination(destination);
    }
    let accept = request.header(b"accept").unwrap_or_default();
    let known = of_accept(accept).or_else(|| of_extension(&url.file()));
    known.unwrap_or(Types::ALL.without(Types::PAGES))
}

fn of_destination(destination: &[u8]) -> Types {
    match destination {
        b"document" => Types::DOCUMENT,
        b"iframe" | b"frame" | b"fencedframe" => Types::SUBDOCUMENT,
        b"script" | b"worker" | b"sharedworker" | b"serviceworker" | b"audioworklet" | b"paintworklet" => Types::SCRIPT,
        b"style" | b"xslt" => Types::STYLESHEET,
        b"image" => Types::IMAGE,
        b"font" => Types::FONT,
        b"audio" | b"video" | b"track" => Types::MEDIA,
        b"object" | b"embed" => Types::OBJECT,
        b"empty" => Types::FETCH.and(Types::PING),
        b"json" => Types::FETCH,
        b"websocket" => Types::SOCKET,
        _ => Types::OTHER,
    }
}

fn of_accept(accept: &[u8]) -> Option<Types> {
    let first = accept.split(|byte| b",;".contains(byte)).next().unwrap_or_default().trim_ascii();
    match first {
        b"text/html" => Some(Types::PAGES),
        b"text/css" => Some(Types::STYLESHEET),
        b"application/json" => Some(Types::FETCH),
        _ if first.starts_with(b"image/") => Some(Types::IMAGE),
        _ if first.starts_with(b"font/") => Some(Types::FONT),
        _ if first.starts_with(b"audio/") || first.starts_with(b"video/") => Some(Types::MEDIA),
        _ => None,
    }
}

fn of_extension(path: &[u8]) -> Option<Types> {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    Some(match &name[dot + 1..] {
        b"js" | b"mjs" => Types::SCRIPT,
        b"css" => Types::STYLESHEET,
        b"png" | b"gif" | b"jpg" | b"jpeg" | b"webp" | b"avif" | b"svg" | b"ico" => Types::IMAGE,
        b"woff" | b"woff2" | b"ttf" | b"otf" | b"eot" => Types::FONT,
        b"mp4" | b"webm" | b"mp3" | b"ogg" | b"m4a" | b"m3u8" | b"mpd" => Types::MEDIA,
        _ => return None,
    })
}
