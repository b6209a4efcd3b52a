//! The kinds of text databases and what their lines have in common.

use crate::hashes::{ANY_SIZE, AnyDigest};
use crate::source::container::ContainerKind;
use crate::syntax::line::{ICONS, Reject, check_levels, number};

/// The kinds of text databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash,
    /// Hashes of the sections of executables.
    Section,
    /// Hashes of what executables import.
    Imports,
    Allow,
    Extended,
    Plain,
    Logical,
    /// Metadata that archives have of their members.
    Metadata,
    /// Passwords that may open what is encrypted.
    Password,
    /// Hosts that links may show falsely, or pairs of hosts that are no fraud.
    Links {
        allow: bool,
    },
    /// Beginnings of files of a type.
    Magic,
    /// Digests of addresses.
    Addresses,
    /// Rules on the certificates of programs.
    Certificate,
    /// Digests of programs, signed: no text.
    Catalogue,
    /// Names to ignore.
    Ignore,
    /// Read and counted line by line, and not run.
    NotRun(&'static str),
    /// Counted as a whole, and not run.
    Opaque(&'static str),
    /// Rules of YARA.
    Yara,
    /// No signatures.
    Nothing,
}

/// The kind of a file by its extension, and whether it is one of potentially unwanted applications.
pub(crate) fn kind_of(file_name: &str) -> Option<(Kind, bool)> {
    let (_, extension) = file_name.rsplit_once('.')?;
    let kind = match extension {
        "hdb" | "hsb" | "hdu" | "hsu" => Kind::Hash,
        "mdb" | "msb" | "mdu" | "msu" => Kind::Section,
        "imp" => Kind::Imports,
        "fp" | "sfp" => Kind::Allow,
        "ndb" | "sdb" | "ndu" => Kind::Extended,
        "ldb" | "ldu" => Kind::Logical,
        "db" => Kind::Plain,
        "cdb" => Kind::Metadata,
        "ign" | "ign2" => Kind::Ignore,
        "pdb" => Kind::Links { allow: false },
        "wdb" => Kind::Links { allow: true },
        "gdb" => Kind::Addresses,
        "crb" => Kind::Certificate,
        "cat" => Kind::Catalogue,
        "pwdb" => Kind::Password,
        "ftm" => Kind::Magic,
        "idb" => Kind::NotRun(ICONS),
        "zmd" | "rmd" => Kind::NotRun("archive metadata of an old form"),
        "cfg" => Kind::NotRun("a switch of ClamAV's own engine"),
        "cbc" => Kind::Opaque("bytecode is not run"),
        "ioc" => Kind::Opaque("OpenIOC documents are not read"),
        "yar" | "yara" => Kind::Yara,
        "info" => Kind::Nothing,
        _ => return None,
    };
    Some((kind, matches!(extension, "hdu" | "hsu" | "mdu" | "msu" | "ndu" | "ldu")))
}

/// Whether a file is a database, by its extension: one that [`Builder::add`](crate::Builder::add) reads.
pub fn is_database(file_name: &str) -> bool {
    kind_of(file_name).is_some() || ContainerKind::of(file_name).is_some()
}

pub(crate) fn name_of(kind: Kind, line: &str) -> Result<&str, String> {
    let name = match kind {
        Kind::Hash | Kind::Allow | Kind::Section | Kind::Imports => field(line, 2),
        Kind::Logical | Kind::Certificate => line.split(';').next(),
        Kind::Magic => field(line, 3),
        Kind::Plain => line.split('=').next().map(|name| name.strip_suffix(" (Clam)").unwrap_or(name)),
        _ => line.split([':', ';']).next(),
    };
    name.filter(|name| !name.is_empty()).ok_or_else(|| "no name".to_owned())
}

/// Splits a line at the first colon, if there is one.
fn cut(line: &str) -> (&str, Option<&str>) {
    match memchr::memchr(b':', line.as_bytes()) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    }
}

/// The field with that number, between colons.
fn field(line: &str, number: usize) -> Option<&str> {
    let mut rest = line;
    for _ in 0..number {
        rest = cut(rest).1?;
    }
    Some(cut(rest).0)
}

/// The first fields, between colons, and those behind them; nothing if there are fewer.
pub(crate) fn fields<const N: usize>(line: &str) -> Option<([&str; N], Vec<&str>)> {
    let (mut first, mut rest) = ([""; N], Some(line));
    for field in &mut first {
        (*field, rest) = cut(rest?);
    }
    Some((first, rest.map_or(Vec::new(), |rest| rest.split(':').collect())))
}

/// `hash:size:name[:min[:max]]`.
pub(crate) fn hash(line: &str) -> Result<(AnyDigest, u64), Reject> {
    let Some(([digest, size, _], levels)) = fields(line) else {
        return Err(Reject::Malformed("fewer than three fields".to_owned()));
    };
    sized(digest, size, &levels)
}

/// `size:hash:name[:min[:max]]`.
pub(crate) fn section(line: &str) -> Result<(AnyDigest, u64), Reject> {
    let Some(([size, digest, _], levels)) = fields(line) else {
        return Err(Reject::Malformed("fewer than three fields".to_owned()));
    };
    sized(digest, size, &levels)
}

fn sized(digest: &str, size: &str, levels: &[&str]) -> Result<(AnyDigest, u64), Reject> {
    let size = match size {
        "*" => ANY_SIZE,
        size => {
            let size = size.trim_start();
            let size = number(size.strip_prefix('+').unwrap_or(size)).map_err(|error| format!("size: {error}"))?;
            if size == 0 {
                return Err(Reject::Malformed("size: no object is empty".to_owned()));
            }
            size
        }
    };
    let digest = AnyDigest::parse(digest)?;
    check_levels(&levels.iter().map(|level| leading_digits(level)).collect::<Vec<_>>())?;
    Ok((digest, size))
}

/// The number that a level begins with, as clamscan reads those of hash signatures; below zero it is above any.
fn leading_digits(level: &str) -> &str {
    let level = level.trim_start();
    if level.starts_with('-') {
        return "4294967295";
    }
    &level[..level.bytes().take_while(u8::is_ascii_digit).count()]
}

/// The name of a YARA rule that begins on this line.
pub(crate) fn yara_rule(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut words = words.by_ref().skip_while(|word| matches!(*word, "private" | "global"));
    let starts = line.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
    (starts && words.next() == Some("rule")).then(|| words.next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_by_the_extension_and_nothing_else() {
        assert_eq!(kind_of("a/b.ndb/main.hsb"), Some((Kind::Hash, false)));
        assert_eq!(kind_of("x.ldu"), Some((Kind::Logical, true)));
        for name in ["ndb", "x.NDB", "x.txt", "x.cvd", ""] {
            assert_eq!(kind_of(name), None, "{name}");
        }
    }

    #[test]
    fn fields_are_what_splitting_gives() {
        for line in ["", ":", "a", "a:b", "a:b:c", "a::c:", "a:b:c:d", "a:b:c:d:e", ":::::", "ä:ö:ü:ß"] {
            let all: Vec<&str> = line.split(':').collect();
            assert!((0..7).all(|number| field(line, number) == all.get(number).copied()), "{line}");
            let split = fields::<3>(line).map(|(first, rest)| [&first[..], &rest].concat());
            assert_eq!(split, (all.len() >= 3).then_some(all), "{line}");
        }
    }

    #[test]
    fn rules_of_yara_are_told_by_their_first_line() {
        assert_eq!(yara_rule("rule Some_Thing : tag {"), Some("Some_Thing"));
        assert_eq!(yara_rule("private global rule A"), Some("A"));
        for line in ["// rule A", "ruler A", "  $a = \"rule A\"", "rule"] {
            assert_eq!(yara_rule(line), None, "{line}");
        }
    }
}
