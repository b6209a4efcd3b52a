//! Rules about objects: which way each takes, by its name, its declared type and its true type.
//!
//! An object is a part of a mail, a file in a text, a member of an archive or the content of a compressed stream; never
//! the object that is fed. The first rule that matches it decides. Without one it is opened and scanned.
//!
//! All names of an object are compared: without case, without control and format characters, and without the dots, blanks,
//! quotes and separators at their end that some systems drop. A name with a NUL is also read up to it, and one with the
//! stream of a file (`a.exe:b`) without that.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use stream::{FileType, Object};

/// The ways that an object can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// It is neither opened nor scanned.
    Bypass,
    /// It is scanned as it stands, and not opened.
    Scan,
    /// It is opened as far as its type is known, and scanned.
    Open,
    /// It is opened and scanned, and told as [`Class::Forbidden`](stream::Class::Forbidden) all the same.
    Forbid,
}

impl Way {
    /// The way in lower case, as it stands in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Bypass => "bypass",
            Way::Scan => "scan",
            Way::Open => "open",
            Way::Forbid => "forbid",
        }
    }
}

/// One rule. It matches an object that fits all that it names; an empty list names nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The name of a finding behind `Policy.Forbidden.`.
    pub label: Box<str>,
    /// The object's name.
    pub names: Vec<Glob>,
    /// Its declared media type, as lower-case text. Everything declares one but members and streams.
    pub media_types: Vec<Glob>,
    /// Types by content.
    pub types: Vec<FileType>,
    /// The treatment.
    pub way: Way,
}

impl Rule {
    /// Whether it matches this object.
    pub fn matches(&self, object: &Object, file_type: FileType) -> bool {
        let matches = |name: &str| self.names.iter().any(|glob| glob.matches(name));
        let named = |name: &str| readings(name).iter().any(|name| matches(name));
        let declared = |media_type: &str| self.media_types.iter().any(|glob| glob.matches(media_type));
        (self.names.is_empty() || object.names().any(named))
            && (self.media_types.is_empty() || object.media_type.as_deref().is_some_and(declared))
            && (self.types.is_empty() || self.types.contains(&file_type))
    }
}

/// A name as systems may take it, each without what makes two names look alike.
fn readings(name: &str) -> Vec<String> {
    let mut readings = Vec::from([bare(name)]);
    let mut add = |reading: &str| {
        let reading = bare(reading);
        if !reading.is_empty() && !readings.contains(&reading) {
            readings.push(reading);
        }
    };
    let before_nul = name.split('\0').next().unwrap_or(name);
    add(before_nul);
    for reading in [name, before_nul] {
        add(file_of(reading));
    }
    readings
}

/// A path without the stream behind the name of the file. The colon of a drive stays.
fn file_of(path: &str) -> &str {
    let name_at = path.trim_end_matches(['/', '\\']).rfind(['/', '\\']).map_or(0, |separator| separator + 1);
    let colon = path[name_at..].match_indices(':').find(|&(at, _)| at != 1 || name_at > 0);
    colon.map_or(path, |(at, _)| &path[..name_at + at])
}

/// A name in lower case without what makes two names look alike.
fn bare(name: &str) -> String {
    let unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let seen: String = name.chars().filter(|&c| !unseen(c)).collect();
    let is_dropped = |c: char| matches!(c, '.' | '/' | '\\' | ':' | '"' | '\'') || c.is_whitespace();
    seen.trim_end_matches(is_dropped).to_lowercase()
}

/// A pattern for a whole text: `*` is any number of characters, `?` is one. Without case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Glob(Box<[char]>);

impl Glob {
    /// The pattern that a text stands for.
    pub fn new(text: &str) -> Glob {
        Glob(text.to_lowercase().chars().collect())
    }

    /// Whether it matches a lower-case text. Takes at most the product of their lengths.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut pattern) = (0, 0);
        // Where the last star stands, and how far it reaches.
        let mut star: Option<(usize, usize)> = None;
        while at < text.len() {
            match (self.0.get(pattern), star) {
                (Some('*'), _) => {
                    star = Some((pattern, at));
                    pattern += 1;
                }
                (Some(&c), _) if c == '?' || c == text[at] => (at, pattern) = (at + 1, pattern + 1),
                (_, Some((from, reach))) => {
                    star = Some((from, reach + 1));
                    (at, pattern) = (reach + 1, from + 1);
                }
                (_, None) => return false,
            }
        }
        self.0[pattern..].iter().all(|&c| c == '*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| f.write_char(*c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(names: &[&str], media_types: &[&str], types: &[FileType]) -> Rule {
        let globs = |texts: &[&str]| texts.iter().map(|text| Glob::new(text)).collect();
        Rule {
            label: "test".into(),
            names: globs(names),
            media_types: globs(media_types),
            types: types.to_vec(),
            way: Way::Forbid,
        }
    }

    fn object(name: Option<&str>, media_type: Option<&str>) -> Object {
        Object { name: name.map(Into::into), media_type: media_type.map(Into::into), ..Object::default() }
    }

    #[test]
    fn globs_fit_whole_texts() {
        for (glob, text) in
            [("*.exe", "a.exe"), ("*.EXE", ".exe"), ("a?c", "aéc"), ("*a*b*", "xaxbx"), ("", ""), ("*", "")]
        {
            assert!(Glob::new(glob).matches(text), "{glob} {text}");
        }
        for (glob, text) in [("*.exe", "a.exe.txt"), ("a?c", "ac"), ("*a*b", "xbxa"), ("", "a"), ("?", "")] {
            assert!(!Glob::new(glob).matches(text), "{glob} {text}");
        }
    }

    #[test]
    fn a_rule_matches_what_fits_all_that_it_names() {
        let object = object(Some("photo.jpg"), Some("image/jpeg"));
        assert!(rule(&[], &[], &[]).matches(&object, FileType::Pe));
        assert!(rule(&["*.png", "*.jpg"], &["image/*"], &[FileType::Image]).matches(&object, FileType::Image));
        assert!(
            !rule(&["*.jpg"], &["image/*"], &[FileType::Image]).matches(&object, FileType::Pe),
            "it lies about its type"
        );
        assert!(!rule(&["*.png"], &[], &[]).matches(&object, FileType::Image));
        assert!(!rule(&["*"], &[], &[]).matches(&Object::default(), FileType::Image), "no name at all");
    }

    #[test]
    fn all_names_of_an_object_are_compared() {
        let other_names = ["b.txt".into(), "c.exe".into()].into();
        let object = Object { other_names, ..object(Some("a.txt"), None) };
        assert!(rule(&["*.exe"], &[], &[]).matches(&object, FileType::Text));
        assert!(!rule(&["*.js"], &[], &[]).matches(&object, FileType::Text));
        assert!(rule(&["*.exe"], &[], &[]).matches(&Object { name: None, ..object }, FileType::Text));
    }

    #[test]
    fn names_are_read_as_systems_read_them() {
        let exe = rule(&["*.exe"], &[], &[]);
        for name in [
            "a.exe::$DATA",
            "a.exe:Zone",
            "a.exe/",
            "a.exe\\",
            "a.exe\"",
            "a.exe:",
            "a.exe\0.txt",
            "c:a.exe:b",
            "c:\\a.exe:b",
            "x/a.exe:b",
            "a.exe:b\0.txt",
            "c:\\x\\a.exe. ::$DATA",
            "'a.exe'",
        ] {
            assert!(exe.matches(&object(Some(name), None), FileType::Pe), "{name:?}");
        }
        for name in ["a.exe.txt", "c:\\a.txt", "a.exe/b.txt", "a:exe", ":", "/", ""] {
            assert!(!exe.matches(&object(Some(name), None), FileType::Pe), "{name:?}");
        }
        assert!(rule(&["c:\\a.txt"], &[], &[]).matches(&object(Some("C:\\a.txt"), None), FileType::Text));
    }

    #[test]
    fn names_that_look_alike_are_alike() {
        let exe = rule(&["*.exe"], &[], &[]);
        for name in ["A.EXE", "a.exe. . ", "a.e\u{200b}xe", "gpj.\u{202e}.exe", "a.exe\0", "folder/a.exe"] {
            assert!(exe.matches(&object(Some(name), None), FileType::Pe), "{name:?}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_more_than_the_product() {
        let glob = Glob::new(&"*a".repeat(100));
        assert!(!glob.matches(&("a".repeat(4_000) + "b")));
    }
}
