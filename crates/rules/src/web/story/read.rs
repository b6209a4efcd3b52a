//! Storyboards, read and compiled.

use std::collections::HashMap;

use super::{Action, Ending, Messages, State, Step, Story, What};
use crate::spam::Place;
use crate::web::known;
use crate::web::loading::{Loading, Source, beside, included, lines};

/// Reads the storyboards of a group.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    functions: Vec<Vec<Line>>,
    names: HashMap<Box<str>, usize>,
    open: Option<usize>,
    lines: usize,
}

/// A line before names are looked up.
#[derive(Debug)]
struct Line {
    is_negated: bool,
    state: State,
    list: Box<str>,
    messages: Messages,
    ending: Ending,
    action: Box<str>,
    place: Place,
}

impl Reader {
    /// Reads a file: its functions replace those of their names.
    pub fn file(&mut self, source: &Source, depth: usize, loading: &mut Loading<'_>) {
        for (place, line) in lines(source) {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.lines += 1;
            if self.lines > loading.limits.story_lines_max {
                return loading.error(&place, "the storyboards are too long", "the rest is not read");
            }
            if let Some(path) = included(line) {
                self.open = None;
                self.include(&beside(&place.file, &path), &place, depth, loading);
                self.open = None;
                continue;
            }
            let text = String::from_utf8_lossy(line).to_ascii_lowercase();
            let text = text.split(" #").next().unwrap_or("").trim();
            if let Some(name) = text.strip_prefix("function").and_then(|rest| inside(rest.trim_start())) {
                self.begin(name.0.trim());
            } else if text.starts_with("end(") {
                self.open = None;
            } else if let Err(reason) = self.line(text, &place) {
                loading.error(&place, reason, "the line is passed over");
            }
        }
    }

    fn include(&mut self, path: &str, place: &Place, depth: usize, loading: &mut Loading<'_>) {
        if depth >= loading.limits.include_depth_max {
            return loading.error(place, "files include each other too deep", "take the line away");
        }
        if let Some(source) = loading.file(path, place) {
            self.file(&source, depth + 1, loading);
        }
    }

    fn begin(&mut self, name: &str) {
        let next = self.functions.len();
        let place = *self.names.entry(name.into()).or_insert(next);
        if place == next {
            self.functions.push(Vec::new());
        }
        self.functions[place].clear();
        self.open = Some(place);
    }

    fn line(&mut self, text: &str, place: &Place) -> Result<(), String> {
        let (is_negated, rest) = match text.strip_prefix("ifnot") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("if").ok_or_else(|| format!("{text} is not understood"))?),
        };
        let (condition, rest) = inside(rest.trim_start()).ok_or("the condition is not closed")?;
        let mut fields = condition.split(',').map(str::trim);
        let state = fields.next().unwrap_or("");
        let state = State::of(state).ok_or_else(|| format!("there is no state {state}"))?;
        let list = fields.next().unwrap_or("").into();
        let mut number = || fields.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let messages = Messages { shown: number(), logged: number() };
        let mut words = rest.split_whitespace();
        let first = words.next().ok_or("there is no action")?;
        let ending = match first {
            "return" => Ending::Returns,
            "returnif" => Ending::ReturnsIfTrue,
            _ => Ending::GoesOn,
        };
        let action = if ending == Ending::GoesOn { first } else { words.next().ok_or("there is no action")? };
        let open = self.open.and_then(|open| self.functions.get_mut(open)).ok_or("the line is in no function")?;
        open.push(Line { is_negated, state, list, messages, ending, action: action.into(), place: place.clone() });
        Ok(())
    }

    /// Looks up the names of functions and, by `resolve`, those of lists.
    pub fn finish(self, resolve: &dyn Fn(State, &str) -> Box<[usize]>, loading: &mut Loading<'_>) -> Story {
        let compile = |line: Line| {
            let called = || self.names.get(&line.action).map(|&function| What::Call(function));
            let what = Action::of(&line.action).map(What::Do).or_else(called);
            let Some(what) = what else {
                loading.error(
                    &line.place,
                    format!("there is no action or function {}", line.action),
                    "the line is passed over",
                );
                return None;
            };
            let lists = resolve(line.state, &line.list);
            // Lists of E2Guardian's own configuration may be left out of another.
            if lists.is_empty() && !line.state.kinds().is_empty() && !known::is_stock_list(&line.list) {
                let reason = format!("no list for this state has the name {}", line.list);
                loading.note(&line.place, reason, "the condition never holds");
            }
            let Line { is_negated, state, messages, ending, .. } = line;
            Some(Step { is_negated, state, lists, messages, ending, what })
        };
        let mut compile = compile;
        let functions = self.functions.into_iter();
        let functions = functions.map(|lines| lines.into_iter().filter_map(&mut compile).collect()).collect();
        Story { functions, names: self.names }
    }
}

/// The text between the parentheses that a text begins with, and what follows.
fn inside(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('(')?.split_once(')')
}
