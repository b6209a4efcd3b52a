//! The pattern of a rule: literal text, `*`, the separator `^`, and anchors.

use std::fmt;

use stream::Fuel;

use super::subject::Subject;

/// The places at which a match may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Anywhere,
    /// `|`
    Url,
    /// `||`: at the host, or at one of its labels.
    Host,
}

#[derive(Debug)]
pub(super) struct Pattern {
    start: Start,
    /// `|` at the end.
    is_to_end: bool,
    has_case: bool,
    /// In lower case, unless it has case; without stars at its ends.
    text: Box<[u8]>,
}

impl Pattern {
    /// Reads a pattern of ASCII.
    pub fn read(text: &str, has_case: bool) -> Pattern {
        let (start, text) = match (text.strip_prefix("||"), text.strip_prefix('|')) {
            (Some(rest), _) => (Start::Host, rest),
            (None, Some(rest)) => (Start::Url, rest),
            (None, None) => (Start::Anywhere, text),
        };
        let (is_to_end, text) = text.strip_suffix('|').map_or((false, text), |text| (true, text));
        let open = text.trim_start_matches('*');
        let start = if open.len() < text.len() { Start::Anywhere } else { start };
        let text = open.trim_end_matches('*');
        let is_to_end = is_to_end && text.len() == open.len();
        let text = if has_case { text.into() } else { text.to_ascii_lowercase() };
        Pattern { start, is_to_end, has_case, text: text.into_bytes().into() }
    }

    /// Whether it matches every URL.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The bytes of its text.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Whether it is for the whole of a host: `||host^`.
    pub fn is_of_host(&self) -> bool {
        self.host().is_some_and(|host| host.len() + 1 == self.text.len() && self.text.ends_with(b"^"))
    }

    /// The host behind `||`, where the pattern has all of it.
    pub fn host(&self) -> Option<Vec<u8>> {
        let end = self.text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b".-_".contains(byte)))?;
        let is_whole = self.start == Start::Host && end > 0 && b"/^:?".contains(&self.text[end]);
        is_whole.then(|| self.text[..end].to_ascii_lowercase())
    }

    /// The words that every match has, between characters of no word.
    pub fn words(&self) -> impl Iterator<Item = Vec<u8>> {
        let text = &self.text;
        let is_bounded = |at: Option<&u8>, edge: bool| at.map_or(edge, |&byte| byte != b'*');
        let mut from = 0;
        std::iter::from_fn(move || {
            let begin = from + text[from..].iter().position(u8::is_ascii_alphanumeric)?;
            let length = text[begin..].iter().position(|byte| !byte.is_ascii_alphanumeric());
            from = length.map_or(text.len(), |length| begin + length);
            Some((begin, from))
        })
        .filter(move |&(begin, end)| {
            let before = begin.checked_sub(1).and_then(|at| text.get(at));
            end - begin > 1
                && is_bounded(before, self.start != Start::Anywhere)
                && is_bounded(text.get(end), self.is_to_end)
        })
        .map(|(begin, end)| text[begin..end].to_ascii_lowercase())
    }

    /// Whether it matches the URL of a request. Without fuel it matches nothing.
    pub fn matches(&self, subject: &Subject, fuel: &mut Fuel) -> bool {
        let url = if self.has_case { subject.url() } else { subject.folded() };
        match self.start {
            Start::Url => self.matches_at(url, 0, fuel),
            Start::Host => subject.labels().any(|at| self.matches_at(url, at, fuel)),
            Start::Anywhere => self.rest_matches(url, 0, self.text.split(|&byte| byte == b'*'), fuel),
        }
    }

    /// Whether the first part matches at a place, and the others behind it.
    fn matches_at(&self, url: &[u8], at: usize, fuel: &mut Fuel) -> bool {
        let mut parts = self.text.split(|&byte| byte == b'*');
        let first = parts.next().unwrap_or_default();
        let is_only = parts.clone().next().is_none();
        part_at(first, url, at, fuel).is_some_and(|end| {
            if is_only { !self.is_to_end || end >= url.len() } else { self.rest_matches(url, end, parts, fuel) }
        })
    }

    /// Whether the parts are found one behind the other, the last of them at the end where the pattern ends there.
    fn rest_matches<'p>(
        &self,
        url: &[u8],
        mut from: usize,
        parts: impl Iterator<Item = &'p [u8]>,
        fuel: &mut Fuel,
    ) -> bool {
        let mut parts = parts.peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none() && self.is_to_end;
            let found = (from..=url.len()).find_map(|at| {
                let end = part_at(part, url, at, fuel)?;
                (!is_last || end >= url.len()).then_some(end)
            });
            let Some(end) = found else { return false };
            from = end.min(url.len());
        }
        true
    }
}

/// The end of a part that stands at a place. A separator stands for the end of the URL, too.
fn part_at(part: &[u8], url: &[u8], at: usize, fuel: &mut Fuel) -> Option<usize> {
    for (passed, &wanted) in part.iter().enumerate() {
        let is_same = match url.get(at + passed) {
            Some(&byte) if wanted == b'^' => is_separator(byte),
            Some(&byte) => byte == wanted,
            None => wanted == b'^',
        };
        if !is_same {
            fuel.burn(passed + 1);
            return None;
        }
    }
    fuel.burn(part.len() + 1);
    (!fuel.is_empty()).then_some(at + part.len())
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"_-.%".contains(&byte)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = match self.start {
            Start::Anywhere => "",
            Start::Url => "|",
            Start::Host => "||",
        };
        let end = if self.is_to_end { "|" } else { "" };
        write!(f, "{start}{}{end}", String::from_utf8_lossy(&self.text))
    }
}
