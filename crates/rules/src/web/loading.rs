//! State of loading: the host's way to files, the bounds, and the problems found so far.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::limits::Limits;
use super::moment::Window;
use crate::spam::{Place, Problem, Severity};

/// How the host reads a file, by the path that the configuration says.
pub type Read<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// A file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub name: Arc<str>,
    pub bytes: Arc<[u8]>,
}

/// A configuration on its way in.
pub(crate) struct Loading<'a> {
    read: &'a mut Read<'a>,
    pub limits: Limits,
    pub problems: Vec<Problem>,
    /// How many problems were not kept.
    pub dropped: usize,
    bytes: usize,
    files: usize,
    known: HashMap<Box<str>, Result<Source, String>>,
}

impl fmt::Debug for Loading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loading").field("problems", &self.problems).field("files", &self.files).finish_non_exhaustive()
    }
}

impl<'a> Loading<'a> {
    pub fn new(read: &'a mut Read<'a>, limits: Limits) -> Loading<'a> {
        Loading { read, limits, problems: Vec::new(), dropped: 0, bytes: 0, files: 0, known: HashMap::new() }
    }

    /// Reads a file that `place` names. A file is read once, however often it is named.
    pub fn file(&mut self, path: &str, place: &Place) -> Option<Source> {
        if let Some(Ok(known)) = self.known.get(path) {
            return Some(known.clone());
        }
        let read = self.fetch(path);
        if let Err(reason) = &read {
            self.error(place, format!("{path}: {reason}"), "check the path");
        }
        self.known.insert(path.into(), read.clone());
        read.ok()
    }

    /// Reads a file, or where `path` is a folder the file of that name in it.
    pub fn file_or_within(&mut self, path: &str, name: Option<&str>, place: &Place) -> Option<Source> {
        if let Some(name) = name.filter(|_| !matches!(self.known.get(path), Some(Ok(_)))) {
            let within = format!("{}/{name}", path.trim_end_matches('/'));
            if let Some(source) = self.optional(&within) {
                return Some(source);
            }
        }
        self.file(path, place)
    }

    /// Whether there is such a file: it is read for that, and then known.
    pub fn has(&mut self, path: &str) -> bool {
        if let Some(Ok(_)) = self.known.get(path) {
            return true;
        }
        let Ok(source) = self.fetch(path) else { return false };
        self.known.insert(path.into(), Ok(source));
        true
    }

    /// Reads a file that may be missing.
    pub fn optional(&mut self, path: &str) -> Option<Source> {
        self.fetch(path).ok()
    }

    fn fetch(&mut self, path: &str) -> Result<Source, String> {
        if self.files >= self.limits.files_max {
            return Err("too many files".into());
        }
        self.files += 1;
        let bytes = (self.read)(path)?;
        self.bytes = self.bytes.saturating_add(bytes.len());
        if bytes.len() > self.limits.file_bytes_max || self.bytes > self.limits.bytes_max {
            return Err("the file is too large".into());
        }
        Ok(Source { name: path.into(), bytes: bytes.into() })
    }

    /// Notes a line that has no effect, or not the one that was meant.
    pub fn error(&mut self, place: &Place, reason: impl Into<String>, advice: &str) {
        self.tell(Severity::Error, place, reason.into(), advice);
    }

    /// Notes a line that has no effect on purpose.
    pub fn note(&mut self, place: &Place, reason: impl Into<String>, advice: &str) {
        self.tell(Severity::Note, place, reason.into(), advice);
    }

    /// Reads the text behind `#time:`. One that is not understood never holds.
    pub(super) fn window(&mut self, text: &[u8], place: &Place) -> Window {
        let Some(window) = Window::read(text) else {
            let advice = "write hour, minute, hour, minute and days from 0, Monday";
            self.error(place, "the time is not understood, and the list has no effect", advice);
            return Window::NEVER;
        };
        if window.is_empty() {
            self.error(place, "the time ends before it begins", "write two lists, up to 23 59 and from 0 0");
        } else if text.contains(&b'-') {
            self.note(place, "a range of days counts as its two ends", "write each day: 01234");
        }
        window
    }

    fn tell(&mut self, severity: Severity, place: &Place, reason: String, advice: &str) {
        if self.problems.len() >= self.limits.problems_max {
            self.dropped += 1;
            return;
        }
        let reason = reason.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.problems.push(Problem { severity, place: place.clone(), rule: None, reason, advice: advice.into() });
    }
}

/// The lines of a file with their places: without line ends, the blanks around them, and a mark of UTF-8 at the start.
pub(super) fn lines(source: &Source) -> impl Iterator<Item = (Place, &[u8])> {
    let text = source.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&source.bytes);
    let line_of = |(number, line)| {
        let line: &[u8] = line;
        let place = Place { file: source.name.clone(), line: u32::try_from(number + 1).unwrap_or(u32::MAX) };
        (place, line.trim_ascii())
    };
    text.split(|&byte| byte == b'\n').enumerate().map(line_of)
}

/// The path in `.Include<path>`, in any case of the letters.
pub(super) fn included(line: &[u8]) -> Option<String> {
    let (head, rest) = line.split_at_checked(b".include<".len())?;
    if !head.eq_ignore_ascii_case(b".include<") {
        return None;
    }
    let end = rest.iter().position(|&byte| byte == b'>')?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// The path of `name` as `from` means it: from where that file lies, unless it is absolute.
pub(super) fn beside(from: &str, name: &str) -> String {
    match from.rsplit_once('/') {
        Some((folder, _)) if !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_one_that_is_missing_is_told_with_its_place() {
        let mut reads = 0;
        let mut read = |path: &str| {
            reads += 1;
            if path == "a" { Ok(b"x".to_vec()) } else { Err("there is none".to_string()) }
        };
        let mut loading = Loading::new(&mut read, Limits::default());
        let place = Place { file: "f".into(), line: 3 };
        assert!(loading.file("a", &place).is_some() && loading.file("a", &place).is_some());
        assert!(loading.file("b", &place).is_none());
        assert_eq!(loading.problems[0].to_string(), "f:3: error: b: there is none; check the path");
        assert_eq!(reads, 2);
    }

    #[test]
    fn included_paths_are_found_in_any_case_and_lie_beside_their_file() {
        assert_eq!(included(b".Include</a/b>").as_deref(), Some("/a/b"));
        assert_eq!(included(b".include<x> # y").as_deref(), Some("x"));
        assert_eq!(included(b".include<x"), None);
        assert_eq!(included(b"include<x>"), None);
        assert_eq!(
            (beside("/a/b", "c"), beside("/a/b", "/c"), beside("b", "c")),
            ("/a/c".into(), "/c".into(), "c".into())
        );
    }
}
