//! The links of a page: where each leads, and what it shows.
//!
//! A link leads where `href` of an `a` says, and shows the text up to its end, its `title`, and the pictures in it. In a
//! form, the links show addresses, and the form leads where its `action` says. Blanks of what is shown do not count;
//! references are resolved; comments, scripts and style sheets show nothing.
//!
//! Bounds: the first [`TAG_BYTES_MAX`] of a tag, [`SHOWN_BYTES_MAX`] of what a link shows, one finding of each name.

use std::collections::VecDeque;
use std::sync::Arc;

use stream::{Event, Finding, Fuel, ReadAt, Stage, Step, Window};

use crate::normal::resolved;
use crate::table::database::Database;

/// How much of a tag is looked at.
const TAG_BYTES_MAX: usize = 8 << 10;
/// How much of what a link shows is looked at.
const SHOWN_BYTES_MAX: usize = 2048;

/// A stage that tells links which show one address and lead to another.
#[derive(Debug, Clone)]
pub struct Links {
    database: Arc<Database>,
    state: State,
    /// The tag that is being read, or the name that may end a script.
    tag: Vec<u8>,
    /// Where the open link leads, and what it shows so far.
    link: Option<(String, Vec<u8>)>,
    /// Where the open form leads.
    form: Option<String>,
    position: u64,
    told: Vec<Finding>,
    waiting: VecDeque<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// In a tag, and in a value with this quote.
    Tag(Option<u8>),
    /// In a comment, behind so many hyphens.
    Comment(u8),
    /// In a script or a style sheet.
    Raw,
}

impl Links {
    /// If a database has hosts that may be imitated, or addresses that are told.
    pub fn new(database: Arc<Database>) -> Option<Links> {
        database.wants_links().then(|| Links {
            database,
            state: State::Text,
            tag: Vec::new(),
            link: None,
            form: None,
            position: 0,
            told: Vec::new(),
            waiting: VecDeque::new(),
        })
    }

    fn byte(&mut self, byte: u8) {
        self.position += 1;
        match self.state {
            State::Text if byte == b'<' => {
                self.tag.clear();
                self.state = State::Tag(None);
            }
            State::Text => self.show(byte),
            State::Tag(quote) => self.in_tag(quote, byte),
            State::Comment(hyphens) => {
                self.state = match byte {
                    b'>' if hyphens >= 2 => State::Text,
                    b'-' => State::Comment(hyphens.saturating_add(1)),
                    _ => State::Comment(0),
                }
            }
            State::Raw => self.in_raw(byte),
        }
    }

    fn show(&mut self, byte: u8) {
        if let Some((_, shown)) = &mut self.link
            && shown.len() < SHOWN_BYTES_MAX
            && !byte.is_ascii_whitespace()
        {
            shown.push(byte);
        }
    }

    fn in_tag(&mut self, quote: Option<u8>, byte: u8) {
        self.state = match (quote, byte) {
            (None, b'>') => return self.tag_ends(),
            (None, b'"' | b'\'') if self.tag.trim_ascii_end().ends_with(b"=") => State::Tag(Some(byte)),
            (Some(open), _) if open == byte => State::Tag(None),
            _ => self.state,
        };
        if self.tag.len() < TAG_BYTES_MAX {
            self.tag.push(byte);
        }
        if self.tag == b"!--" {
            self.state = State::Comment(2);
        }
    }

    /// Waits for the tag that ends a script or a style sheet.
    fn in_raw(&mut self, byte: u8) {
        if byte == b'<' {
            self.tag.clear();
        }
        if self.tag.len() < TAG_BYTES_MAX {
            self.tag.push(byte.to_ascii_lowercase());
        }
        if byte == b'>' && (self.tag.starts_with(b"</script") || self.tag.starts_with(b"</style")) {
            self.state = State::Text;
        }
    }

    fn tag_ends(&mut self) {
        self.state = State::Text;
        let tag = std::mem::take(&mut self.tag);
        let end = tag.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(tag.len());
        let (name, attributes) = tag.split_at(end);
        match name.to_ascii_lowercase().as_slice() {
            b"a" => self.link_begins(attributes),
            b"/a" => self.link_ends(),
            b"img" => {
                if let Some((shown, (real, _))) = value(attributes, b"src").zip(self.link.clone()) {
                    self.judge(&real, &shown);
                }
            }
            b"area" => self.look_up(value(attributes, b"href").as_deref()),
            b"form" => {
                self.form = value(attributes, b"action");
                self.look_up(self.form.clone().as_deref());
            }
            b"/form" => self.form = None,
            b"script" | b"style" => self.state = State::Raw,
            _ => {}
        }
        self.tag = tag;
        self.tag.clear();
    }

    fn link_begins(&mut self, attributes: &[u8]) {
        self.link_ends();
        let Some(real) = value(attributes, b"href") else { return };
        self.look_up(Some(&real));
        if let Some(title) = value(attributes, b"title") {
            self.judge(&real, &title);
        }
        if let Some(form) = self.form.clone() {
            self.judge(&form, &real);
        }
        self.link = Some((real, Vec::new()));
    }

    fn link_ends(&mut self) {
        if let Some((real, shown)) = self.link.take() {
            let shown = String::from_utf8_lossy(&resolved(&shown)).into_owned();
            self.judge(&real, &shown);
        }
    }

    fn judge(&mut self, real: &str, shown: &str) {
        self.tell(self.database.judge(real, shown));
    }

    fn look_up(&mut self, address: Option<&str>) {
        self.tell(address.and_then(|address| self.database.look_up(address)));
    }

    fn tell(&mut self, found: Option<Finding>) {
        if let Some(finding) = found.filter(|finding| !self.told.contains(finding)) {
            self.told.push(finding.clone());
            self.waiting.push_back(Finding { offset: self.position, ..finding });
        }
    }
}

/// The value of an attribute, references resolved.
fn value(attributes: &[u8], wanted: &[u8]) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'=').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        let after = behind.trim_ascii_start();
        let (value, next) = match after.strip_prefix(b"=") {
            None => (&[][..], behind),
            Some(after) => value_of(after.trim_ascii_start()),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(String::from_utf8_lossy(&resolved(value)).into_owned());
        }
        if next.is_empty() || (end == 0 && next.len() == rest.len()) {
            return None;
        }
        rest = next;
    }
}

/// The value that a text begins with, and what is behind it.
fn value_of(text: &[u8]) -> (&[u8], &[u8]) {
    match text.split_first() {
        Some((&quote @ (b'"' | b'\''), inside)) => {
            let end = inside.iter().position(|byte| *byte == quote).unwrap_or(inside.len());
            (&inside[..end], inside.get(end + 1..).unwrap_or(&[]))
        }
        _ => text.split_at(text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len())),
    }
}

impl Stage for Links {
    fn step(&mut self, input: &[u8], _output: &mut Window, fuel: &mut Fuel) -> Step {
        let allowed = fuel.allows(input.len());
        let mut taken = 0;
        while taken < allowed && self.waiting.is_empty() {
            self.byte(input[taken]);
            taken += 1;
        }
        fuel.burn(taken);
        match self.waiting.pop_front() {
            Some(finding) => Step::tell(taken, Event::finding(finding)),
            None => Step::idle(taken),
        }
    }

    fn finish(&mut self, _kept: &dyn ReadAt, _output: &mut Window, fuel: &mut Fuel) -> Event {
        if fuel.is_empty() {
            return Event::Idle;
        }
        fuel.burn(1);
        self.link_ends();
        match self.waiting.pop_front() {
            Some(finding) => Event::finding(finding),
            None => Event::End,
        }
    }
}
