//! Lists as files: a manifest of the newest version, and deltas from older ones (`docs/engine/list-deltas.md`).
//!
//! This module neither signs nor hashes: the host verifies the manifest's signature before parsing, and the digest of
//! the result of [`apply`] before use. So a delta may be any bytes; at worst it makes a file of the allowed size that
//! is thrown away.

use std::collections::HashMap;
use std::fmt::Write as _;

/// How many older versions a manifest names at most.
const DELTAS_MAX: usize = 1_000;

/// The first line of a manifest.
const HEAD: &str = "sluice-list 1";

/// The newest version of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The list's name: lower-case letters, digits, dots, hyphens and underscores.
    pub name: String,
    /// Grows with each version.
    pub serial: u64,
    /// Seconds since 1970 until which this manifest counts.
    pub expires: u64,
    /// How long the file is.
    pub bytes: u64,
    /// The SHA-256 digest of the file.
    pub digest: [u8; 32],
    /// The versions from which there is a delta to this one.
    pub deltas: Vec<u64>,
}

impl Manifest {
    /// Reads a manifest, the line with its signature left out. Lines of other keywords are passed over.
    pub fn read(text: &str) -> Option<Manifest> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let words: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
        let word = |keyword: &str| words.iter().find(|(word, _)| *word == keyword).map(|(_, value)| *value);
        let number = |keyword: &str| word(keyword)?.parse().ok();
        let deltas = words.iter().filter(|(keyword, _)| *keyword == "delta").take(DELTAS_MAX);
        Some(Manifest {
            name: word("name").filter(|name| is_name(name))?.to_owned(),
            serial: number("serial")?,
            expires: number("expires")?,
            bytes: number("bytes")?,
            digest: from_hex(word("sha256")?)?.try_into().ok()?,
            deltas: deltas.map(|(_, serial)| serial.parse().ok()).collect::<Option<_>>()?,
        })
    }

    /// The manifest as text, without a signature.
    pub fn write(&self) -> String {
        let Manifest { name, serial, expires, bytes, digest, deltas } = self;
        let mut text = format!("{HEAD}\nname {name}\nserial {serial}\nexpires {expires}\nbytes {bytes}\n");
        let _ = writeln!(text, "sha256 {}", hex(digest));
        for from in deltas {
            let _ = writeln!(text, "delta {from}");
        }
        text
    }

    /// File name of the whole version, compressed.
    pub fn whole_name(&self) -> String {
        format!("{}.{}.gz", self.name, self.serial)
    }

    /// File name of the delta from an older version, compressed.
    pub fn delta_name(&self, from: u64) -> String {
        format!("{}.{from}-{}.gz", self.name, self.serial)
    }
}

/// Whether a list may be called so: it becomes part of the names of files and of URLs.
pub fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.bytes().all(fits)
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hexadecimal digits as bytes.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|two| two[0] << 4 | two[1]).collect())
}

/// Returns the delta from `old` to `new`, line by line: `=N` keeps the next N lines, `-N` leaves them out, `+N` has N
/// new ones after it.
///
/// Lines that occur once in both keep their place where their order is the same; the lines between them are written
/// anew. For lists, whose lines are unique, no delta is better.
pub fn diff(old: &[u8], new: &[u8]) -> Vec<u8> {
    let (old, new) = (lines(old), lines(new));
    let front = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[front..], &new[front..]);
    let back = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - back], &new_rest[..new_rest.len() - back]);
    let mut script = Script::default();
    script.keep(front);
    let (mut old_at, mut new_at) = (0, 0);
    for (old_index, new_index) in anchors(old_middle, new_middle) {
        script.leave_out(old_index - old_at);
        script.add(&new_middle[new_at..new_index]);
        script.keep(1);
        (old_at, new_at) = (old_index + 1, new_index + 1);
    }
    script.leave_out(old_middle.len() - old_at);
    script.add(&new_middle[new_at..]);
    script.keep(back);
    script.finish()
}

/// Makes the new version of an old one; `None` if the delta does not fit it, or more than `bytes_max` would come out.
pub fn apply(old: &[u8], delta: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let (mut old, mut rest, mut out) = (old, delta, Vec::new());
    while !rest.is_empty() {
        let (head, behind) = rest.split_at(rest.iter().position(|&byte| byte == b'\n')?);
        rest = &behind[1..];
        let (operation, count) = head.split_first()?;
        let count: usize = core::str::from_utf8(count).ok()?.parse().ok()?;
        match operation {
            b'=' => out.extend_from_slice(take(&mut old, count)?),
            b'-' => drop(take(&mut old, count)?),
            b'+' => out.extend_from_slice(take(&mut rest, count)?),
            _ => return None,
        }
        if out.len() > bytes_max {
            return None;
        }
    }
    old.is_empty().then_some(out)
}

/// Takes so many lines off the front; `None` if there are fewer.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let all = *bytes;
    let mut at = 0;
    for _ in 0..count {
        let rest = all.get(at..).filter(|rest| !rest.is_empty())?;
        at += rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
    }
    let (front, back) = all.split_at_checked(at)?;
    *bytes = back;
    Some(front)
}

/// Lines with their ends.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Returns the kept lines: those that occur once in both, as many as keep their order.
fn anchors(old: &[&[u8]], new: &[&[u8]]) -> Vec<(usize, usize)> {
    let (old_once, new_once) = (once(old), once(new));
    let both = new.iter().enumerate().filter_map(|(index, line)| {
        let at = (*old_once.get(line)?)?;
        new_once.get(line)?.map(|_| (at, index))
    });
    longest_rise(&both.collect::<Vec<_>>())
}

/// Returns the positions of lines that occur once; `None` for others.
fn once<'a>(lines: &[&'a [u8]]) -> HashMap<&'a [u8], Option<usize>> {
    let mut places = HashMap::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        places.entry(*line).and_modify(|place| *place = None).or_insert(Some(index));
    }
    places
}

/// The longest part of the pairs whose first numbers rise; the second ones do.
fn longest_rise(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]` is the pair with the smallest first number at which a rise of n + 1 pairs ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; pairs.len()];
    for (index, (first, _)) in pairs.iter().enumerate() {
        let len = ends.partition_point(|&end| pairs[end].0 < *first);
        before[index] = len.checked_sub(1).map_or(usize::MAX, |len| ends[len]);
        if len == ends.len() {
            ends.push(index);
        } else {
            ends[len] = index;
        }
    }
    let mut rise = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied().unwrap_or(usize::MAX);
    while let Some(&pair) = pairs.get(at) {
        rise.push(pair);
        at = before[at];
    }
    rise.reverse();
    rise
}

/// A delta under way.
#[derive(Debug, Default)]
struct Script {
    out: Vec<u8>,
    kept: usize,
}

impl Script {
    fn keep(&mut self, count: usize) {
        self.kept += count;
    }

    fn leave_out(&mut self, count: usize) {
        if count > 0 {
            self.write_kept();
            self.out.extend(format!("-{count}\n").bytes());
        }
    }

    fn add(&mut self, lines: &[&[u8]]) {
        if !lines.is_empty() {
            self.write_kept();
            self.out.extend(format!("+{}\n", lines.len()).bytes());
            self.out.extend(lines.concat());
        }
    }

    fn write_kept(&mut self) {
        if self.kept > 0 {
            self.out.extend(format!("={}\n", self.kept).bytes());
            self.kept = 0;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.write_kept();
        self.out
    }
}

/// Fuzz body: any two files, and any bytes as a delta.
pub fn fuzz_delta(data: &[u8]) {
    let (old, new) = data.split_at(data.len() / 2);
    assert_eq!(apply(old, &diff(old, new), new.len()).as_deref(), Some(new));
    let _ = apply(old, new, 1_000);
    let _ = Manifest::read(&String::from_utf8_lossy(data));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_delta_makes_the_new_of_the_old(
            old in proptest::collection::vec(0_u8..12, 0..60),
            new in proptest::collection::vec(0_u8..12, 0..60),
            ends in any::<(bool, bool)>(),
            noise in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let text = |lines: &[u8], end: bool| {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                if end { text } else { text.trim_end().to_owned() }
            };
            let (old, new) = (text(&old, ends.0), text(&new, ends.1));
            let delta = diff(old.as_bytes(), new.as_bytes());
            let made = apply(old.as_bytes(), &delta, new.len());
            prop_assert_eq!(made.as_deref(), Some(new.as_bytes()));
            fuzz_delta(&noise);
        }
    }

    #[test]
    fn a_delta_of_a_large_list_is_small() {
        let list = |without: u32, with: u32| -> String {
            let lines = (0..20_000_u32).filter(|&host| host % 97 != without).chain(with..with + 200);
            lines.map(|host| format!("10.{}.{}.{}\n", host >> 16, host >> 8 & 255, host & 255)).collect()
        };
        let (old, new) = (list(5, 1_000_000), list(6, 1_000_100));
        let delta = diff(old.as_bytes(), new.as_bytes());
        assert!(delta.len() < 12_000, "{}", delta.len());
        assert_eq!(apply(old.as_bytes(), &delta, new.len()).unwrap(), new.as_bytes());
        assert_eq!(apply(old.as_bytes(), &delta, new.len() - 1), None, "too long");
        assert_eq!(apply(b"other\n", &delta, 1 << 20), None);
    }

    #[test]
    fn a_manifest_comes_back_and_odd_ones_do_not() {
        let manifest = Manifest {
            name: "bl.example".into(),
            serial: 7,
            expires: 9,
            bytes: 3,
            digest: [0xab; 32],
            deltas: vec![5, 6],
        };
        let text = manifest.write();
        assert_eq!(Manifest::read(&text).as_ref(), Some(&manifest));
        assert_eq!(Manifest::read(&(text.clone() + "later more\n")), Some(manifest));
        for (from, to) in [
            ("name bl.example", "name ../etc/passwd"),
            ("name bl.example", "name .hidden"),
            ("sluice-list 1", "sluice-list 2"),
            ("sha256 ab", "sha256 zz"),
            ("sha256 abab", "sha256 ab"),
            ("serial 7", "serial -7"),
            ("delta 5", "delta x"),
        ] {
            assert_eq!(Manifest::read(&text.replace(from, to)), None, "{to}");
        }
    }
}
