//! Ranges of sections in a message (RFC 9051, section 6.4.5), by the places of its parts.

use std::ops::Range;

use flow::Parts;
use proto::imap::{Part, Section};

/// The range that a section stands for; empty where it is beyond the end. None if there is no such part, or it is no run of
/// the message.
pub fn range(parts: &Parts, section: &Section) -> Option<Range<u64>> {
    let place = parts.place(&section.path)?;
    let whole = match (&section.part, &place.message) {
        (Part::All, _) if section.path.is_empty() => 0..parts.len,
        (Part::All, _) => place.body.clone(),
        (Part::Mime, _) => place.header.clone(),
        (Part::Header, Some((header, _))) => header.clone(),
        (Part::Text, Some((_, body))) => body.clone(),
        _ => return None,
    };
    let Some((origin, len)) = section.partial else { return Some(whole) };
    let start = whole.start.saturating_add(origin).min(whole.end);
    let end = len.map_or(whole.end, |len| start.saturating_add(len).min(whole.end));
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use flow::Place;

    use super::*;

    #[test]
    fn a_section_is_a_run_of_the_message() {
        let message = Some((0..10, 10..100));
        let root = Place { path: vec![], header: 0..0, body: 0..100, message };
        let first = Place { path: vec![1], header: 20..30, body: 30..50, message: None };
        let inner = Place { path: vec![2], header: 52..60, body: 60..90, message: Some((60..70, 70..90)) };
        let parts = Parts { places: vec![root, first, inner], len: 100 };
        for (section, wanted) in [
            ("BODY[]", Some(0..100)),
            ("BODY[TEXT]", Some(10..100)),
            ("BODY[1]", Some(30..50)),
            ("BODY[1.1]", Some(30..50)),
            ("BODY[1.MIME]", Some(20..30)),
            ("BODY[2.HEADER]", Some(60..70)),
            ("BODY[2.TEXT]", Some(70..90)),
            ("BODY[1]<1.3>", Some(31..34)),
            ("BODY[1]<30.3>", Some(50..50)),
            ("BODY[]<0.4>", Some(0..4)),
            ("BODY[5]", None),
            ("BODY[1.2]", None),
            ("BODY[1.TEXT]", None),
            ("BODY[2.HEADER.FIELDS (A)]", None),
        ] {
            let parsed = Section::parse(section.as_bytes()).unwrap().unwrap();
            assert_eq!(range(&parts, &parsed), wanted, "{section}");
        }
    }
}
