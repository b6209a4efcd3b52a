//! Reads the files of a data set, line by line, as rbldnsd(8) describes them. A line that is wrong is passed over, and counted.

mod builder;

use std::sync::Arc;

use super::dataset::{Body, Dataset, Kind, Section};
use super::names;
use super::reader::{Head, Line, Lines, line, words};
use builder::{Builder, Parts, Scope};

/// How many warnings about a data set are kept.
const WARNINGS_MAX: usize = 20;

/// How many `$DATASET` sections a combined data set has at most.
const SECTIONS_MAX: usize = 4_096;

/// Why a data set cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// A combined data set whose sections make no sense: file, line, why.
    Section(String, u64, &'static str),
    /// The data was made at a time that has not come yet.
    Future,
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LoadError::Section(file, number, why) => write!(f, "{file}:{number}: {why}"),
            LoadError::Future => f.write_str("its $TIMESTAMP is in the future"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads the files of a data set: [`begin`](Loader::begin), [`feed`](Loader::feed) and [`end`](Loader::end) for each, then
/// [`finish`](Loader::finish).
#[derive(Debug)]
pub struct Loader {
    state: State,
    lines: Lines,
}

#[derive(Debug)]
struct State {
    kind: Kind,
    /// Data set in progress: the set itself, or the section of a combined one.
    builder: Builder,
    /// The common part and the sections that are read.
    combined: Option<Combined>,
    file: String,
    number: u64,
    changed: u64,
    warnings: Vec<String>,
    warning_count: usize,
    failed: Option<LoadError>,
}

#[derive(Debug, Default)]
struct Combined {
    head: Head,
    sections: Vec<Section>,
    /// Subzones of the section under way; `None` before the first.
    open: Option<Vec<Vec<u8>>>,
    /// Whether the section under way takes no more entries: it began in an earlier file. Special entries are still its.
    is_stale: bool,
}

impl Loader {
    /// For files of a kind.
    pub fn new(kind: Kind) -> Loader {
        let combined = (kind == Kind::Combined).then(Combined::default);
        let state = State {
            kind,
            builder: Builder::new(kind, Head::default()),
            combined,
            file: String::new(),
            number: 0,
            changed: 0,
            warnings: Vec::new(),
            warning_count: 0,
            failed: None,
        };
        Loader { state, lines: Lines::default() }
    }

    /// Begins a file that was changed at `changed`, in seconds since 1970.
    pub fn begin(&mut self, file: &str, changed: u64) {
        self.state.file = file.to_owned();
        self.state.number = 0;
        self.state.changed = self.state.changed.max(changed);
        self.state.builder.default = Scope::default();
        if let Some(combined) = &mut self.state.combined {
            combined.is_stale = !matches!(self.state.builder.parts, Parts::Generic(_));
        }
    }

    /// Takes bytes of the file.
    pub fn feed(&mut self, input: &[u8]) {
        let state = &mut self.state;
        let mut rest = input;
        while !rest.is_empty() {
            if self.lines.is_at_start() {
                rest = &rest[state.plain_lines(rest)..];
            }
            rest = self.lines.feed(rest, |line| state.line(line));
        }
    }

    /// Ends the file. A last line without an end counts.
    pub fn end(&mut self) {
        let state = &mut self.state;
        self.lines.end(|line| state.line(line));
    }

    /// The data set, and what is wrong with its files: the first warnings, and how many there are.
    ///
    /// # Errors
    /// A fault that makes the whole of it unusable at `now`, in seconds since 1970.
    pub fn finish(mut self, now: u64) -> Result<(Dataset, Vec<String>, usize), LoadError> {
        self.state.end_section();
        let state = self.state;
        if let Some(error) = state.failed {
            return Err(error);
        }
        let mut dataset = match state.combined {
            None => state.builder.finish(),
            Some(combined) => {
                Dataset { head: combined.head, body: Body::Combined(combined.sections), ..Dataset::default() }
            }
        };
        dataset.changed = state.changed;
        if dataset.head.made.is_some_and(|made| made > now) {
            return Err(LoadError::Future);
        }
        Ok((dataset, state.warnings, state.warning_count))
    }
}

impl State {
    /// Takes the lines that are nothing but an IPv4 address, up to the first that is not: most lines of most lists. Returns
    /// how many bytes they are.
    fn plain_lines(&mut self, input: &[u8]) -> usize {
        if self.failed.is_some() || self.is_before_sections() {
            return 0;
        }
        let (taken, count) = self.builder.plain_lines(input);
        self.number += count;
        taken
    }

    fn line(&mut self, bytes: &[u8]) {
        self.number += 1;
        if self.failed.is_some() {
            return;
        }
        match line(bytes) {
            Line::Empty => {}
            Line::Special(entry) => self.special(entry),
            Line::Entry(_) if self.is_before_sections() => self.fail("an entry before the first $DATASET"),
            Line::Entry(entry) => {
                if let Err(why) = self.builder.entry(entry) {
                    self.warn(why);
                }
            }
        }
    }

    const fn is_before_sections(&self) -> bool {
        matches!(&self.combined, Some(combined) if combined.open.is_none() || combined.is_stale)
    }

    fn special(&mut self, entry: &[u8]) {
        const DATASET: &[u8] = b"DATASET";
        let is_dataset = entry.len() > DATASET.len() && entry[..DATASET.len()].eq_ignore_ascii_case(DATASET);
        if is_dataset && self.combined.is_some() {
            return self.begin_section(&entry[DATASET.len()..]);
        }
        let read = match &mut self.combined {
            None => self.builder.special(self.kind, entry),
            Some(combined) if combined.open.is_none() => combined.head.read(entry),
            Some(combined) => read_in_section(&mut self.builder.dataset.head, &mut combined.head, entry),
        };
        if !read {
            self.warn("a special entry that is malformed or unknown");
        }
    }

    fn begin_section(&mut self, text: &[u8]) {
        self.end_section();
        let mut words = words(text);
        let kind_name = words.next().unwrap_or_default();
        let kind_name = kind_name.split(|&byte| byte == b':').next().unwrap_or_default();
        let kind = Kind::from_name(kind_name).filter(|kind| !matches!(kind, Kind::Combined | Kind::Acl));
        let Some(kind) = kind else {
            return self.fail("no data set of this kind can be part of a combined one");
        };
        let mut subzones = Vec::new();
        for word in words {
            match (word, names::read(word)) {
                (b"@", _) => subzones.push(Vec::new()),
                (_, Some(name)) => subzones.push(name),
                _ => return self.fail("a subzone that is no name"),
            }
        }
        if subzones.is_empty() {
            self.warn("a data set without subzones");
        }
        let Some(combined) = &mut self.combined else { return };
        if combined.sections.len() >= SECTIONS_MAX {
            return self.fail("too many data sets in one");
        }
        let head = Head { soa: None, servers: None, ..combined.head.clone() };
        combined.open = Some(subzones);
        combined.is_stale = false;
        self.builder = Builder::new(kind, head);
    }

    fn end_section(&mut self) {
        let Some(combined) = &mut self.combined else { return };
        if let Some(subzones) = combined.open.take() {
            let empty = Builder::new(Kind::Ip4Set, Head::default());
            let mut dataset = core::mem::replace(&mut self.builder, empty).finish();
            dataset.changed = self.changed;
            combined.sections.push(Section { subzones, dataset: Arc::new(dataset) });
        }
    }

    fn fail(&mut self, why: &'static str) {
        self.failed.get_or_insert(LoadError::Section(self.file.clone(), self.number, why));
    }

    fn warn(&mut self, why: &str) {
        self.warning_count += 1;
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(format!("{}:{}: {why}", self.file, self.number));
        }
    }
}

/// Within a section, SOA, name servers and times of the data are those of the zone; the rest is the section's.
fn read_in_section(own: &mut Head, common: &mut Head, entry: &[u8]) -> bool {
    let keyword_len = entry.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
    match &entry[..keyword_len].to_ascii_uppercase()[..] {
        b"SOA" | b"NS" | b"TIMESTAMP" => common.read(entry),
        // Counts for the section, and for those behind it.
        b"MAXRANGE4" => own.read(entry) && common.read(entry),
        _ => own.read(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_have_the_value_in_scope_and_a_number_however_they_are_cut() {
        let text = "1.2.3.4\nwrong\n5.6.7.8\n:3:x\n!1.2.3.4\n1.2.3.5\n1.2.3.6 :4:y\n1.2.3.7\n1.2.3.999\n9.9.9.9";
        for piece in 1..text.len() {
            let mut loader = Loader::new(Kind::Ip4Set);
            loader.begin("list", 1);
            text.as_bytes().chunks(piece).for_each(|piece| loader.feed(piece));
            loader.end();
            let (dataset, warnings, _) = loader.finish(1).unwrap();
            assert_eq!(warnings, ["list:2: not an address", "list:9: not an address"]);
            let Body::Ip4(table) = &dataset.body else { panic!("another kind") };
            let value = |last: u8| {
                let id = table.find(u32::from_be_bytes([1, 2, 3, last])).next()?;
                dataset.values.get(id).map(|value| value.address[3])
            };
            assert_eq!([4, 5, 6, 7, 8].map(value), [None, Some(3), Some(4), Some(3), None], "in pieces of {piece}");
            assert_eq!(dataset.len(), 6);
        }
    }
}
