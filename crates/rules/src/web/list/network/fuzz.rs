//! The fuzz body of network rules: they decide with an index as without it.

use pattern::expression::{Progress, Want};
use stream::Fuel;

use super::Rules;
use super::line::{Line, Matcher};
use super::load::read;
use super::options::Options;
use super::subject::{Subject, names};
use crate::web::limits::Limits;
use crate::web::loading::{Loading, Source};
use crate::web::request::{Field, Request};
use crate::web::url::Url;

/// Steps of a decision.
const STEPS_MAX: u64 = 5_000_000;

/// Whether a request is blocked, by an important rule or by another, and whether it is spared.
type Ruling = (Option<bool>, bool);

/// Decides on some requests for a URL, with a page and without, by a list.
pub(crate) fn fuzz(list: &[u8], url: &[u8], page: &[u8], limits: Limits) {
    let mut nothing = |_: &str| Err("there is no such file".to_string());
    let source = Source { name: "list".into(), bytes: list.into() };
    let (_, lines) = read(&source, &mut Loading::new(&mut nothing, limits));
    let fields: [Field<'_>; 2] = [(b"Referer", page), (b"Sec-Fetch-Dest", b"script")];
    let requests: [(&[u8], &[Field<'_>]); 4] =
        [(b"GET", &fields), (b"GET", &fields[..1]), (b"GET", &fields[1..]), (b"CONNECT", &[])];
    let url = Url::read(url);
    let subjects =
        requests.map(|(method, fields)| Subject::of_request(&url, &Request { method, fields, ..Request::default() }));
    let plain = subjects.each_ref().map(|subject| plainly(&lines, subject));
    let rules = Rules::new(lines);
    for (subject, plain) in subjects.iter().zip(plain) {
        let fuel = &mut Fuel::new(STEPS_MAX);
        let ruling = (rules.block(subject, fuel).map(|hit| hit.is_important), rules.spares(subject, fuel));
        assert!(fuel.is_empty() || plain.is_none_or(|plain| plain == ruling), "{plain:?}, {ruling:?}: {subject:?}");
    }
}

/// The ruling of lines that are all tried; `None` where that takes too many steps.
fn plainly(lines: &[Line], subject: &Subject) -> Option<Ruling> {
    let fuel = &mut Fuel::new(STEPS_MAX);
    let (mut blocked, mut is_spared) = (None, false);
    for line in lines {
        if line.is_exception {
            is_spared |= spares(line, subject, fuel);
        } else if blocks(line, subject, fuel) {
            blocked = blocked.max(Some(line.options.is_important));
        }
    }
    (!fuel.is_empty()).then_some((blocked, is_spared))
}

fn blocks(line: &Line, subject: &Subject, fuel: &mut Fuel) -> bool {
    match &line.matcher {
        Matcher::Pattern(pattern) if subject.is_tunnel => {
            pattern.is_of_host() && line.options.are_none() && pattern.matches(subject, fuel)
        }
        _ => matches(line, subject, Options::block, fuel),
    }
}

fn spares(line: &Line, subject: &Subject, fuel: &mut Fuel) -> bool {
    match &line.matcher {
        Matcher::Pattern(pattern) if subject.is_tunnel => {
            pattern.host().is_some_and(|host| names(subject.host()).any(|name| name == host))
        }
        _ => {
            matches(line, subject, Options::spare, fuel)
                || subject.of_page.as_ref().is_some_and(|page| matches(line, page, Options::spare_page, fuel))
        }
    }
}

fn matches(line: &Line, subject: &Subject, holds: fn(&Options, &Subject) -> bool, fuel: &mut Fuel) -> bool {
    let is_match = match &line.matcher {
        Matcher::Pattern(pattern) => pattern.matches(subject, fuel),
        Matcher::Expression(_) if subject.is_tunnel => false,
        Matcher::Expression(expression) => match expression.search(Want::Hit).run(subject.url(), fuel) {
            Progress::Match(_) => true,
            Progress::None => false,
            Progress::Tired | Progress::Exhausted => {
                fuel.burn(usize::MAX);
                false
            }
        },
    };
    is_match && holds(&line.options, subject)
}
