//! The walk up the tree of names (RFC 9989 section 4.10).

use flow::{Outcome as Answered, RecordKind};

use super::{Record, Suffix};
use crate::domain;
use crate::inquiry::{Inquiry, Pending};

/// Names of more labels are cut to one fewer after the first question.
const LABELS_MAX: usize = 8;

/// Early end of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Questions are open.
    Pending,
    /// A question could not be answered.
    Unavailable,
}

impl From<Pending> for Stop {
    fn from(_: Pending) -> Stop {
        Stop::Pending
    }
}

/// The names that are asked for, from the domain up.
pub fn steps(domain: &str) -> Vec<&str> {
    let mut steps = vec![domain];
    let labels = domain.split('.').count();
    let cut = labels.saturating_sub(LABELS_MAX - 1).max(1);
    let mut next = (0..cut).try_fold(domain, |name, _| domain::parent(name));
    while let Some(name) = next {
        steps.push(name);
        next = domain::parent(name);
    }
    steps
}

/// The record of one name; none where there are several (step 2).
///
/// # Errors
/// It is not known, or cannot be.
pub fn record_at(name: &str, inquiry: &mut Inquiry) -> Result<Option<Record>, Stop> {
    let found = inquiry.look(&format!("_dmarc.{name}"), RecordKind::Txt)?;
    if *found.outcome == Answered::Unavailable {
        return Err(Stop::Unavailable);
    }
    let mut records = found.texts().filter(|text| is_dmarc(text));
    match (records.next(), records.next()) {
        (Some(text), None) => Ok(Record::parse(text)),
        _ => Ok(None),
    }
}

fn is_dmarc(text: &[u8]) -> bool {
    let version = text.split(|&byte| byte == b';').next().unwrap_or_default();
    let mut sides = version.splitn(2, |&byte| byte == b'=').map(<[u8]>::trim_ascii);
    (sides.next(), sides.next()) == (Some(b"v"), Some(b"DMARC1"))
}

/// All records on the way up, the domain's own first, as far as one says where the organization is.
///
/// # Errors
/// As [`record_at`].
pub fn records<'a>(domain: &'a str, inquiry: &mut Inquiry) -> Result<Vec<(&'a str, Record)>, Stop> {
    let steps = steps(domain);
    // All at once: one at a time would save questions only where a record has `psd=`.
    for name in &steps {
        let _ = record_at(name, inquiry);
    }
    let mut found = Vec::new();
    for name in steps {
        let Some(record) = record_at(name, inquiry)? else { continue };
        let is_last = record.suffix != Suffix::Unknown;
        found.push((name, record));
        if is_last {
            break;
        }
    }
    Ok(found)
}

/// The organization that a domain belongs to (section 4.10.2), by the records on the way up from it.
pub fn organization<'a>(domain: &'a str, records: &[(&'a str, Record)]) -> &'a str {
    for (name, record) in records {
        match record.suffix {
            Suffix::No => return name,
            Suffix::Yes if *name != domain => return one_below(name, domain),

            _ => {}
        }
    }
    records.last().map_or(domain, |(name, _)| name)
}

/// The name one label below `above` on the way down to `domain`.
fn one_below<'a>(above: &str, domain: &'a str) -> &'a str {
    let front = domain.strip_suffix(above).and_then(|front| front.strip_suffix('.')).unwrap_or("");
    let label = front.rfind('.').map_or(0, |dot| dot + 1);
    &domain[label..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_has_eight_steps_at_most() {
        assert_eq!(steps("a.b.example"), ["a.b.example", "b.example", "example"]);
        assert_eq!(steps("example"), ["example"]);
        let eight = "a.b.c.d.e.f.g.example";
        assert_eq!((steps(eight).len(), steps(eight)[1]), (8, "b.c.d.e.f.g.example"));
        let twelve = "l.k.j.i.a.b.c.d.e.f.g.example";
        assert_eq!((steps(twelve).len(), steps(twelve)[1]), (8, "b.c.d.e.f.g.example"));
    }

    #[test]
    fn the_tree_says_where_the_organization_is() {
        let record = |text: &str| Record::parse(format!("v=DMARC1; {text}").as_bytes()).unwrap();
        let domain = "a.b.example.com";
        for (records, wanted) in [
            (vec![], domain),
            (vec![(domain, record(""))], domain),
            (vec![(domain, record("")), ("example.com", record(""))], "example.com"),
            (vec![("b.example.com", record("psd=n"))], "b.example.com"),
            (vec![("example.com", record("")), ("com", record("psd=y"))], "example.com"),
            (vec![("com", record("psd=y"))], "example.com"),
            (vec![(domain, record("psd=y"))], domain),
        ] {
            assert_eq!(organization(domain, &records), wanted, "{records:?}");
        }
    }
}
