//! The formats of tables: lists and maps of Postfix's (`postmap(5)`), aliases (`aliases(5)`), users (`passwd(5)`).
//!
//! Lists and aliases are read by one reader. A line that begins with a blank goes on with the one before; blank lines and
//! those that begin with `#` are no lines. What stands first is the key, in quotes if it holds blanks; what follows it, or
//! follows a colon behind it, is the value. There is no state but the line, which has a bound.

use super::address::quoted_end;

/// The longest line, continuation lines included.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// The longest key.
const KEY_BYTES_MAX: usize = 1_024;

/// An entry of a list or of aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// As it stands there.
    pub key: &'a str,
    /// Value after the key.
    pub value: &'a str,
}

/// Reader of entries, with the line at which each begins.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    /// The line under way.
    line: Vec<u8>,
    /// The physical line that was read last, which may belong to the next.
    ahead: Vec<u8>,
    /// Its number; and that of the line under way.
    physical: usize,
    begins: usize,
    is_at_end: bool,
}

impl<R: std::io::BufRead> Lines<R> {
    /// The lines of a file.
    pub fn new(source: R) -> Lines<R> {
        Lines { source, line: Vec::new(), ahead: Vec::new(), physical: 0, begins: 0, is_at_end: false }
    }

    /// The number of the line under way, the first is 1.
    pub const fn number(&self) -> usize {
        self.begins
    }

    /// The next line, with those that go on with it if `joins`; none at the end. Nothing of its end is left.
    ///
    /// # Errors
    /// When the file cannot be read, or the line is too long or no UTF-8.
    pub fn next(&mut self, joins: bool) -> Result<Option<&str>, String> {
        self.line.clear();
        self.begins = self.physical;
        std::mem::swap(&mut self.line, &mut self.ahead);
        while !self.is_at_end {
            self.read()?;
            let is_more = joins && self.ahead.first().is_some_and(|first| matches!(first, b' ' | b'\t'));
            if is_nothing(&self.ahead) {
                self.ahead.clear();
            } else if self.line.is_empty() {
                std::mem::swap(&mut self.line, &mut self.ahead);
                self.begins = self.physical;
                if !joins {
                    break;
                }
            } else if is_more {
                self.line.append(&mut self.ahead);
            } else {
                break;
            }
            if self.line.len() > LINE_BYTES_MAX {
                return Err("the line is too long".into());
            }
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        std::str::from_utf8(&self.line).map(Some).map_err(|_| "not UTF-8".into())
    }

    /// Reads a physical line, without its end.
    fn read(&mut self) -> Result<(), String> {
        use std::io::{BufRead as _, Read as _};
        self.ahead.clear();
        let mut bounded = self.source.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        let count = bounded.read_until(b'\n', &mut self.ahead).map_err(|error| error.to_string())?;
        self.physical = self.physical.saturating_add(1);
        self.is_at_end = count == 0;
        if count > LINE_BYTES_MAX {
            self.begins = self.physical;
            return Err("the line is too long".into());
        }
        while self.ahead.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
            self.ahead.pop();
        }
        if self.physical == 1 && self.ahead.starts_with("\u{feff}".as_bytes()) {
            self.ahead.drain(..3);
        }
        Ok(())
    }
}

/// Whether a physical line is blank, or a comment.
fn is_nothing(line: &[u8]) -> bool {
    line.iter().find(|byte| !matches!(byte, b' ' | b'\t')).is_none_or(|&first| first == b'#')
}

impl<'a> Entry<'a> {
    /// Reads a line of a list, a map or a file of aliases.
    ///
    /// # Errors
    /// When it is none; the message says why.
    pub fn read(line: &'a str) -> Result<Entry<'a>, String> {
        let line = line.trim_matches([' ', '\t']);
        if line.starts_with('/') || line.starts_with("if ") || line == "endif" {
            return Err("a pattern; lists of addresses and maps without patterns are read here".into());
        }
        let end = key_end(line)?;
        let (key, rest) = line.split_at(end);
        if key.is_empty() || key == "@" || key.len() > KEY_BYTES_MAX || key.contains(char::is_control) {
            return Err(format!("{:?} is no address", key.chars().take(80).collect::<String>()));
        }
        let rest = rest.trim_start_matches([' ', '\t']);
        let value = rest.strip_prefix(':').unwrap_or(rest).trim_matches([' ', '\t']);
        Ok(Entry { key, value })
    }

    /// Reply of a map of access that refuses: its code, and the words if there are any. Other values
    /// say nothing here.
    pub fn refusal(&self) -> Option<(u16, &'a str)> {
        let (word, text) = self.value.split_once([' ', '\t']).unwrap_or((self.value, ""));
        let text = text.trim_start_matches([' ', '\t']);
        if word.eq_ignore_ascii_case("REJECT") {
            return Some((550, text));
        }
        if word.eq_ignore_ascii_case("DEFER") {
            return Some((450, text));
        }
        let is_code = word.len() == 3 && word.starts_with(['4', '5']);
        is_code.then(|| word.parse().ok().map(|code| (code, text)))?
    }
}

/// Where the key of a line ends: before a blank or a colon that is neither in quotes nor in the brackets of an address of
/// a network.
fn key_end(line: &str) -> Result<usize, String> {
    let quoted = match line.starts_with('"') {
        true => quoted_end(line).ok_or("a quote is not closed")?,
        false => 0,
    };
    let rest = line.get(quoted..).unwrap_or_default();
    let mut is_literal = false;
    let end = rest.bytes().position(|byte| {
        match byte {
            b'[' => is_literal = true,
            b']' => is_literal = false,
            _ => {}
        }
        matches!(byte, b' ' | b'\t') || byte == b':' && !is_literal
    });
    Ok(quoted + end.unwrap_or(rest.len()))
}

/// The user of a line of `passwd(5)`; none where the line is one of NIS.
///
/// # Errors
/// When it is no such line.
pub fn user(line: &str) -> Result<Option<&str>, String> {
    if line.starts_with(['+', '-']) {
        return Ok(None);
    }
    match line.split_once(':') {
        Some((name, _)) if !name.is_empty() && name.len() <= KEY_BYTES_MAX && !name.contains(char::is_control) => {
            Ok(Some(name))
        }
        _ => Err("no line of passwd(5): NAME:...".into()),
    }
}

/// The entries of some bytes, for fuzzing: nothing is missed by cutting lines elsewhere, and nothing panics.
pub fn fuzz_entries(data: &[u8]) {
    for joins in [false, true] {
        let mut lines = Lines::new(data);
        let mut last = 0;
        // Each line is read at least once and no line twice, so that it comes to an end.
        for _ in 0..=data.len() + 1 {
            let Ok(Some(line)) = lines.next(joins) else { break };
            assert!(!line.is_empty() && !line.ends_with('\n'), "a line has an end");
            if let Ok(entry) = Entry::read(line) {
                assert!(!entry.key.is_empty() && line.contains(entry.key) && line.contains(entry.value));
                let address = super::address::Address::new(entry.key, "");
                let asked = address.keys().next();
                let (_, normal) = (entry.refusal(), super::address::normal(entry.key));
                // Who is listed is found, but for a domain that stands for all of it.
                assert!(normal.starts_with('@') || asked.is_some_and(|asked| asked == normal), "{normal:?}");
            }
            let _ = user(line);
            assert!(lines.number() > last, "lines come in their order");
            last = lines.number();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(usize, String, String)> {
        let mut lines = Lines::new(text.as_bytes());
        let mut all = Vec::new();
        while let Some(line) = lines.next(true).unwrap() {
            let entry = Entry::read(line).unwrap();
            let (key, value) = (entry.key.to_string(), entry.value.to_string());
            all.push((lines.number(), key, value));
        }
        all
    }

    #[test]
    fn a_list_a_map_and_aliases_are_read_alike() {
        let text = "\u{feff}# comment\ntim@a.test\r\n\n  # indented\n@b.test  catch-all\n\"john doe\"@c.test x y\n\
                    root: tim,\n\tanna@d.test\n# between\n \"|/bin/x\"\n\"a b\" : c\nu@[IPv6:::1] ok\nlast";
        let wanted = [
            (2, "tim@a.test", ""),
            (5, "@b.test", "catch-all"),
            (6, "\"john doe\"@c.test", "x y"),
            (7, "root", "tim,\tanna@d.test \"|/bin/x\""),
            (11, "\"a b\"", "c"),
            (12, "u@[IPv6:::1]", "ok"),
            (13, "last", ""),
        ];
        let wanted: Vec<_> = wanted.map(|(line, key, value)| (line, key.to_string(), value.to_string())).into();
        assert_eq!(entries(text), wanted);
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for wrong in ["/^a/ OK", "@ x", "\"a b", ": x", "a\u{1}b", "if /x/", "endif"] {
            assert!(Entry::read(wrong).is_err(), "{wrong:?}");
        }
        assert!(Entry::read(&"a".repeat(2_000)).is_err());
        assert!(Lines::new(&b"a\xff\n"[..]).next(true).is_err());
        assert!(Lines::new(vec![b'a'; 2 * LINE_BYTES_MAX].as_slice()).next(true).is_err());
    }

    #[test]
    fn maps_of_access_refuse_some() {
        let refusal = |line| Entry::read(line).unwrap().refusal();
        assert_eq!(refusal("a@b REJECT no such user"), Some((550, "no such user")));
        assert_eq!(refusal("a@b 554 5.7.1 Go away"), Some((554, "5.7.1 Go away")));
        assert_eq!(refusal("a@b defer"), Some((450, "")));
        for taken in ["a@b OK", "a@b", "a@b 1", "a@b x@y", "a@b 5550", "a@b 5x"] {
            assert_eq!(refusal(taken), None, "{taken}");
        }
    }

    #[test]
    fn users_are_named_by_passwd() {
        assert_eq!(user("tim:x:1000:1000:Tim:/home/tim:/bin/sh"), Ok(Some("tim")));
        assert_eq!(user("tim@a.test:{PLAIN}x::::::"), Ok(Some("tim@a.test")));
        assert_eq!(user("+::::::"), Ok(None));
        assert!(user("tim").is_err() && user(":x:").is_err());
    }

    #[test]
    fn the_corpus_passes() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/edge_recipients");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(seeds.len() > 5, "the corpus is there");
        for seed in seeds {
            fuzz_entries(&std::fs::read(seed).unwrap());
        }
    }
}
