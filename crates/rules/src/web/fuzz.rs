//! Fuzz bodies: phrase lists over a page, item lists and network rules over a URL, storyboards and access rules over a request.
//!
//! A seed is texts with a zero byte between them.

use super::filter::Filter;
use super::limits::Limits;
use super::list::fuzz_network;
use super::moment::Moment;
use super::notice::Notice;
use super::phrase::{Dialect, Page, Score};
use super::request::{Request, Response, Verdict};
use super::template::Told;

/// Limits that mutants reach.
const LIMITS: Limits = Limits {
    file_bytes_max: 64 << 10,
    bytes_max: 128 << 10,
    files_max: 12,
    include_depth_max: 3,
    groups_max: 2,
    problems_max: 20,
    phrases_max: 300,
    expressions_max: 20,
    network_rules_max: 200,
    story_lines_max: 200,
};

const GROUP: &[u8] = b"bannedphraselist = 'list'\nweightedphraselist = 'list'\nexceptionphraselist = 'other'\n";

const LISTS: &[u8] =
    b"sitelist = 'name=banned,path=list'\nurllist = 'name=banned,path=list'\nipsitelist = 'name=grey,path=list'\n\
    regexpboollist = 'name=exception,path=other'\nregexpreplacelist = 'name=change,path=other'\n\
    regexpreplacelist = 'name=searchterms,path=other'\nregexpreplacelist = 'name=headermods,path=other'\n\
    regexpreplacelist = 'name=addheader,path=other'\nsearchlist = 'name=banned,path=list'\n\
    fileextlist = 'name=bannedextension,path=list'\nmimelist = 'name=bannedmime,path=list'\n";

/// Loads files by their names; what a file includes is the list again.
fn load(group: &[u8], story: Option<&[u8]>, list: &[u8], other: &[u8], dialect: Dialect) -> Filter {
    let mut group = group.to_vec();
    if story.is_some() {
        group.extend(b"storyboard = 'story'\n");
    }
    let mut read = |path: &str| {
        Ok(match path.rsplit('/').next() {
            Some("e.conf") => b"filtergroups = 1\n".to_vec(),
            Some("ef1.conf") => group.clone(),
            Some("other") => other.to_vec(),
            Some("story") => story.unwrap_or_default().to_vec(),
            _ => list.to_vec(),
        })
    };
    let filter = Filter::load("e.conf", dialect, LIMITS, &mut read);
    assert!(filter.problems().len() <= LIMITS.problems_max);
    assert!(filter.problems().iter().all(|problem| !problem.to_string().contains('\n')));
    filter
}

/// Some texts with zero bytes between them.
fn texts<const N: usize>(data: &[u8]) -> [&[u8]; N] {
    let mut parts = data.splitn(N, |&byte| byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Fuzz body: a phrase list, another, and a page. The score is the same however the page is cut.
pub fn fuzz_phrases(data: &[u8]) {
    let [list, other, page] = texts(data);
    for dialect in [Dialect::Sluice, Dialect::E2guardian535, Dialect::E2guardian558] {
        let filter = load(GROUP, None, list, other, dialect);
        let Some(group) = filter.group(1) else { return };
        let run = |pieces: &mut dyn Iterator<Item = &[u8]>| -> Score {
            let mut run = Page::new(group.phrases());
            pieces.for_each(|piece| run.feed(piece));
            run.finish(Moment::default())
        };
        let whole = run(&mut std::iter::once(page));
        let size = 1 + page.len() % 7;
        assert_eq!(run(&mut page.chunks(size)), whole, "in pieces of {size}");
    }
}

/// Fuzz body: an item list, a list of expressions, and a URL.
pub fn fuzz_lists(data: &[u8]) {
    let [list, other, url] = texts(data);
    let filter = load(LISTS, None, list, other, Dialect::Sluice);
    decide(&filter, url);
}

/// Fuzz body: an Adblock list, a URL, and its page.
pub fn fuzz_adblock(data: &[u8]) {
    let [list, url, page] = texts(data);
    fuzz_network(list, url, page, LIMITS);
    let filter = load(LISTS, None, &[b"[Adblock]\n", list].concat(), b"", Dialect::Sluice);
    decide(&filter, url);
}

/// Fuzz body: a storyboard, a list, and a URL.
pub fn fuzz_story(data: &[u8]) {
    let [story, list, url] = texts(data);
    let filter = load(LISTS, Some(story), list, list, Dialect::E2guardian535);
    decide(&filter, url);
}

/// Fuzz body: a configuration of squidGuard, its lists, and a URL.
pub fn fuzz_squidguard(data: &[u8]) {
    let [text, list, url] = texts(data);
    let mut read = |path: &str| Ok(if path == "squidGuard.conf" { text.to_vec() } else { list.to_vec() });
    let filter = Filter::load("squidGuard.conf", Dialect::Sluice, LIMITS, &mut read);
    assert!(filter.problems().len() <= LIMITS.problems_max);
    for group in filter.groups() {
        let request = Request { method: b"GET", url, ..Request::default() };
        let reason = group.request(&request).reason.unwrap_or_default();
        let told = Told { text: &reason.text, list: &reason.list, ..Told::default() };
        if let Notice::Redirect(url) = group.notice(&request, told, None) {
            assert!(url.bytes().all(|byte| byte.is_ascii_graphic()), "{url:?}");
        }
    }
    decide(&filter, url);
}

/// What is decided twice is the same.
fn decide(filter: &Filter, url: &[u8]) {
    let fields: [(&[u8], &[u8]); 2] = [(b"User-Agent", url), (b"Referer", url)];
    for method in [&b"GET"[..], b"CONNECT"] {
        let request = Request { method, url, fields: &fields, ..Request::default() };
        let decision = filter.request(&request);
        assert_eq!(filter.request(&request), decision);
        assert!(decision.fields.iter().all(|(place, value)| *place < 2 && !value.contains(&b'\n')));
        let Some(group) = filter.group(1) else { return };
        let response = Response { content_type: Some(url), file_names: [Some(url), None] };
        let decided = group.response(&request, &response, decision.clone());
        let is_settled = matches!(decision.verdict, Verdict::Block | Verdict::Exception);
        assert!(!is_settled || decided.verdict == decision.verdict);
    }
}
