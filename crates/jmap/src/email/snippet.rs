//! `SearchSnippet/get` (RFC 8621, section 5): subject and text with `<mark>` around the words of a filter.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use text::normal::composed;

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::Error;
use crate::header::Property;
use crate::limits::{CONDITIONS_MAX, GET_MAX};
use crate::part::{Part, decoded};
use crate::source::Source;
use crate::{Value, json};

/// Bytes of a text in which words are looked for.
const TEXT_BYTES: usize = 256 << 10;
/// The size of a snippet.
struct Room {
    /// Characters before the first word that is found, which take a third of the bytes.
    before: usize,
    /// Characters behind.
    behind: usize,
    /// Bytes of all, with marks and escapes.
    bytes: usize,
}

const OF_SUBJECT: Room = Room { before: usize::MAX, behind: 2_000, bytes: usize::MAX };
/// RFC 8621, section 5: at most 255 bytes.
const OF_PREVIEW: Room = Room { before: 60, behind: 160, bytes: 255 };

pub(crate) fn snippets(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let ids = arguments.strings("emailIds")?.ok_or_else(|| Error::arguments("emailIds"))?;
    let filter = arguments.take("filter");
    arguments.end()?;
    if ids.len() > GET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut subjects, mut bodies) = (Vec::new(), Vec::new());
    if let Some(filter) = filter.as_ref().filter(|filter| !filter.is_null()) {
        words(filter, &mut subjects, &mut bodies, &mut { CONDITIONS_MAX })?;
    }
    let index = engine.index();
    let (mut list, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        let message = index.message_of(&id);
        let Some((message, layout)) = message.and_then(|message| Some((message, engine.host.layout(message)?))) else {
            missing.push(id);
            continue;
        };
        let source = Source::Stored(message);
        let root = Part::read(engine.host, &source, &layout);
        let subject = Property::convenience("subject").map(|subject| root.header.property(&subject));
        let subject =
            subject.as_ref().and_then(Value::as_str).and_then(|subject| marked(subject, &subjects, &OF_SUBJECT));
        let mut preview = None;
        for part in root.bodies().text.iter().filter(|part| part.kind.starts_with("text/") && !bodies.is_empty()) {
            let (bytes, _) = part.content(&source).bytes(engine.host, TEXT_BYTES);
            let (text, _) = decoded(&bytes, part);
            let text = if part.kind == "text/html" { crate::part::text_of_html(&text) } else { text };
            let flat: Vec<&str> = text.split_whitespace().collect();
            preview = preview.or_else(|| marked(&flat.join(" "), &bodies, &OF_PREVIEW));
        }
        engine.spend(2_000)?;
        list.push(json!({ "emailId": id, "subject": subject, "preview": preview }));
    }
    Ok(
        json!({ "accountId": account, "list": list, "notFound": if missing.is_empty() { Value::Null } else { json!(missing) } }),
    )
}

/// The words of a filter for subjects and for texts.
fn words(filter: &Value, subjects: &mut Vec<String>, bodies: &mut Vec<String>, left: &mut usize) -> Result<(), Error> {
    *left = left.checked_sub(1).ok_or_else(|| Error::new("unsupportedFilter"))?;
    let Value::Object(named) = filter else { return Err(Error::arguments("filter")) };
    if let Some(operator) = named.get("operator") {
        let Some(Value::Array(conditions)) = named.get("conditions") else {
            return Err(Error::arguments("conditions"));
        };
        // Words that are not in a mail are checked, and marked nowhere.
        let (mut no_subjects, mut no_bodies) = (Vec::new(), Vec::new());
        let (subjects, bodies) = match operator.as_str() {
            Some("AND" | "OR") => (subjects, bodies),
            Some("NOT") => (&mut no_subjects, &mut no_bodies),
            _ => return Err(Error::arguments("operator")),
        };
        return conditions.iter().try_for_each(|condition| words(condition, subjects, bodies, left));
    }
    if named.keys().any(|name| !super::query::CONDITIONS.contains(&name.as_str())) {
        return Err(Error::new("unsupportedFilter"));
    }
    for (name, to_subjects, to_bodies) in [("text", true, true), ("subject", true, false), ("body", false, true)] {
        let all = filter.get(name).and_then(Value::as_str).unwrap_or_default();
        for word in super::query::terms(all) {
            subjects.extend(to_subjects.then(|| composed(&word).to_lowercase()));
            bodies.extend(to_bodies.then(|| word.to_lowercase()));
        }
    }
    Ok(())
}

/// A text around the first word that is in it, escaped, with each word marked; `None` if there is none, or no room for it.
fn marked(text: &str, words: &[String], room: &Room) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let lowered: Vec<char> = characters.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
    let words: Vec<Vec<char>> =
        words.iter().map(|word| word.chars().collect()).filter(|word: &Vec<char>| !word.is_empty()).collect();
    let at = |start: usize| words.iter().find(|word| lowered.get(start..).is_some_and(|rest| rest.starts_with(word)));
    let first = (0..lowered.len()).find(|&start| at(start).is_some())?;
    let mut left = room.bytes / 3;
    let fits = |c: &&char| {
        let rest = left.checked_sub(escaped(**c).len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let before = characters.get(..first)?.iter().rev().take(room.before).take_while(fits).count();
    let end = first.saturating_add(room.behind).min(characters.len());
    let (mut out, mut position, mut is_marked) = (String::new(), first.saturating_sub(before), false);
    while position < end {
        let word = at(position);
        let behind = position.saturating_add(word.map_or(1, Vec::len));
        let mut piece: String = characters.get(position..behind)?.iter().map(|c| escaped(*c)).collect();
        if word.is_some() {
            piece = format!("<mark>{piece}</mark>");
        }
        if out.len().saturating_add(piece.len()) > room.bytes {
            break;
        }
        out.push_str(&piece);
        is_marked |= word.is_some();
        position = behind;
    }
    is_marked.then_some(out)
}

fn escaped(character: char) -> String {
    match character {
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '&' => "&amp;".into(),
        '"' => "&quot;".into(),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_conditions_of_queries() {
        let read = |filter: Value| {
            let (mut subjects, mut bodies) = (Vec::new(), Vec::new());
            let read = words(&filter, &mut subjects, &mut bodies, &mut { CONDITIONS_MAX });
            read.map(|()| (subjects.join(" "), bodies.join(" "))).map_err(|error| error.kind)
        };
        let both = |subjects: &str, bodies: &str| Ok((subjects.into(), bodies.into()));
        assert_eq!(read(json!({ "text": "A b", "hasKeyword": "x" })), both("a b", "a b"));
        let not = json!({ "operator": "NOT", "conditions": [{ "text": "x" }] });
        assert_eq!(read(json!({ "operator": "OR", "conditions": [not, { "subject": "y" }] })), both("y", ""));
        for (filter, wanted) in [
            (json!({ "foo": "x" }), "unsupportedFilter"),
            (json!({ "operator": "NOT", "conditions": [{ "foo": 1 }] }), "unsupportedFilter"),
            (json!({ "operator": "XOR", "conditions": [] }), "invalidArguments"),
            (json!({ "operator": "AND" }), "invalidArguments"),
            (json!([]), "invalidArguments"),
        ] {
            assert_eq!(read(filter.clone()), Err(wanted), "{filter:?}");
        }
    }

    #[test]
    fn a_preview_has_its_word_within_255_bytes() {
        let words = ["needle".into(), "x".repeat(300)];
        for around in ["&\"", "\u{6f22}", "ab "] {
            let text = format!("{} Needle {}", around.repeat(200), around.repeat(200));
            let preview = marked(&text, &words, &OF_PREVIEW).unwrap();
            assert!(preview.len() <= 255 && preview.len() > 150, "{preview}");
            assert!(preview.contains("<mark>Needle</mark>"), "{preview}");
        }
        assert_eq!(marked(&"x".repeat(300), &words, &OF_PREVIEW), None);
        assert_eq!(marked("a <needle>", &words, &OF_PREVIEW).unwrap(), "a &lt;<mark>needle</mark>&gt;");
        let subject = format!("{}needle{}", "&".repeat(500), "&".repeat(500));
        assert_eq!(marked(&subject, &words, &OF_SUBJECT).unwrap().len(), 5_019);
    }
}
