//! The kinds of text databases and what their lines have in common.

use crate::body;
use crate::hashes::{ANY_SIZE, AnyDigest};
use crate::signature::{Reject, check_levels};

/// The kinds of text databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash,
    Allow,
    Extended,
    Plain,
    Logical,
    /// Names to ignore, at that field.
    Ignore(usize),
}

/// The kind of a file by its extension, and whether it is one of potentially unwanted applications.
pub(crate) fn kind_of(file_name: &str) -> Option<(Kind, bool)> {
    let (_, extension) = file_name.rsplit_once('.')?;
    Some(match extension {
        "hdb" | "hsb" => (Kind::Hash, false),
        "hdu" | "hsu" => (Kind::Hash, true),
        "fp" | "sfp" => (Kind::Allow, false),
        "ndb" | "sdb" => (Kind::Extended, false),
        "ndu" => (Kind::Extended, true),
        "ldb" => (Kind::Logical, false),
        "ldu" => (Kind::Logical, true),
        "db" => (Kind::Plain, false),
        "ign" => (Kind::Ignore(2), false),
        "ign2" => (Kind::Ignore(0), false),
        _ => return None,
    })
}

pub(crate) fn name_of(kind: Kind, line: &str) -> Result<&str, String> {
    let name = match kind {
        Kind::Hash | Kind::Allow => line.split(':').nth(2),
        Kind::Logical => line.split(';').next(),
        Kind::Plain => line.split('=').next(),
        Kind::Extended | Kind::Ignore(_) => line.split(':').next(),
    };
    name.filter(|name| !name.is_empty()).ok_or_else(|| "no name".to_owned())
}

/// `hash:size:name[:min[:max]]`.
pub(crate) fn hash(line: &str) -> Result<(AnyDigest, u64), Reject> {
    let fields: Vec<&str> = line.split(':').collect();
    let [digest, size, _, levels @ ..] = fields.as_slice() else {
        return Err(Reject::Malformed("fewer than three fields".to_owned()));
    };
    let size = if *size == "*" { ANY_SIZE } else { body::number(size).map_err(|error| format!("size: {error}"))? };
    let digest = AnyDigest::parse(digest)?;
    check_levels(levels)?;
    Ok((digest, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_by_the_extension_and_nothing_else() {
        assert_eq!(kind_of("a/b.ndb/main.hsb"), Some((Kind::Hash, false)));
        assert_eq!(kind_of("x.ldu"), Some((Kind::Logical, true)));
        for name in ["ndb", "x.NDB", "x.mdb", "x.cvd", ""] {
            assert_eq!(kind_of(name), None, "{name}");
        }
    }
}
