//! The file of an Adblock list, read line by line.
//!
//! A part behind `!#if` is read if its condition is the absence of one feature (`!#if !ext_ublock`): here is none of them.

use std::collections::{BTreeMap, HashSet};

use super::Rules;
use super::line::{Line, Matcher};
use super::refusal::Refusal;
use crate::spam::Place;
use crate::web::list::{Body, Section};
use crate::web::loading::{Loading, Source, lines};

/// The most bytes of a line.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Reads a list. Its title is its category.
pub(in crate::web::list) fn load(source: &Source, loading: &mut Loading<'_>) -> Section {
    let (title, lines) = read(source, loading);
    Section { category: title.as_str().into(), window: None, body: Body::Network(Box::new(Rules::new(lines))) }
}

/// The title and the rules of a list.
pub(super) fn read(source: &Source, loading: &mut Loading<'_>) -> (String, Vec<Line>) {
    let mut reader = Reader::default();
    for (place, line) in lines(source) {
        reader.line(&String::from_utf8_lossy(line), &place, loading);
    }
    for (refusal, (count, place)) in &reader.left_out {
        loading.note(place, format!("{count} rules from here on {}", refusal.words()), "they have no effect");
    }
    (std::mem::take(&mut reader.title), reader.kept())
}

#[derive(Default)]
struct Reader {
    title: String,
    lines: Vec<Line>,
    expressions: usize,
    /// How many rules are left out on purpose, and the first of them.
    left_out: BTreeMap<Refusal, (usize, Place)>,
    /// Whether each of the open parts is read.
    parts: Vec<bool>,
}

impl Reader {
    fn line(&mut self, line: &str, place: &Place, loading: &mut Loading<'_>) {
        if let Some(directive) = line.strip_prefix("!#") {
            return self.directive(directive, place, loading);
        }
        if let Some(title) = line.strip_prefix("! Title:").filter(|_| self.title.is_empty()) {
            self.title = title.trim().into();
        }
        if self.parts.contains(&false) {
            return;
        }
        let read = if line.len() > LINE_BYTES_MAX { Err(Refusal::Unknown) } else { Line::read(line) };
        match read {
            Ok(Some(line)) if self.has_room_for(&line, loading) => self.lines.push(line),
            Ok(Some(_)) => loading.error(place, "there are too many rules in the list", "it is not read"),
            Ok(None) => {}
            Err(Refusal::Unknown) => {
                let shown: String = line.chars().take(60).collect();
                loading.error(place, format!("the rule {shown} is not understood"), "it has no effect");
            }
            Err(refusal) => self.left_out.entry(refusal).or_insert_with(|| (0, place.clone())).0 += 1,
        }
    }

    fn has_room_for(&mut self, line: &Line, loading: &Loading<'_>) -> bool {
        self.expressions += usize::from(matches!(line.matcher, Matcher::Expression(_)));
        self.lines.len() < loading.limits.network_rules_max && self.expressions <= loading.limits.expressions_max
    }

    fn directive(&mut self, directive: &str, place: &Place, loading: &mut Loading<'_>) {
        let (name, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        match name {
            "if" => {
                let absent = rest.trim().strip_prefix('!');
                self.parts.push(
                    absent.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')),
                );
            }
            "else" => {
                if let Some(part) = self.parts.last_mut() {
                    *part = !*part;
                }
            }
            "endif" => drop(self.parts.pop()),
            "include" => loading.note(place, format!("{rest} is not included"), "name it as a list of its own"),
            _ => {}
        }
    }

    /// The rules that no `badfilter` takes away.
    fn kept(self) -> Vec<Line> {
        let (away, kept): (Vec<Line>, Vec<Line>) = self.lines.into_iter().partition(|line| line.takes_away);
        let away: HashSet<String> = away.into_iter().map(|line| line.canonical).collect();
        kept.into_iter().filter(|line| !away.contains(&line.canonical)).collect()
    }
}
