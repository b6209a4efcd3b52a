//! `SearchSnippet/get` (RFC 8621, section 5): subject and text with `<mark>` around the words of a filter.

use alloc::string::String;
use alloc::vec::Vec;

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
/// Characters before and behind the first word that is found.
const BEFORE: usize = 60;
const BEHIND: usize = 160;

pub(crate) fn snippets(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let ids = arguments.strings("emailIds")?.ok_or_else(|| Error::arguments("emailIds"))?;
    let filter = arguments.take("filter");
    arguments.end()?;
    if ids.len() > GET_MAX {
        return Err(Error::new("requestTooLarge"));
    }
    let (mut subjects, mut bodies) = (Vec::new(), Vec::new());
    if let Some(filter) = &filter {
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
            subject.as_ref().and_then(Value::as_str).and_then(|subject| marked(subject, &subjects, usize::MAX));
        let mut preview = None;
        for part in root.bodies().text.iter().filter(|part| part.kind.starts_with("text/") && !bodies.is_empty()) {
            let (bytes, _) = part.content(&source).bytes(engine.host, TEXT_BYTES);
            let (text, _) = decoded(&bytes, part.charset.as_deref());
            let text = if part.kind == "text/html" { crate::part::text_of_html(&text) } else { text };
            let flat: Vec<&str> = text.split_whitespace().collect();
            preview = preview.or_else(|| marked(&flat.join(" "), &bodies, BEFORE));
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
    if let Some(Value::Array(conditions)) = filter.get("conditions") {
        if filter["operator"] == "NOT" {
            return Ok(());
        }
        return conditions.iter().try_for_each(|condition| words(condition, subjects, bodies, left));
    }
    for (name, to_subjects, to_bodies) in [("text", true, true), ("subject", true, false), ("body", false, true)] {
        let all = filter.get(name).and_then(Value::as_str).unwrap_or_default();
        for word in super::query::terms(all) {
            subjects.extend(to_subjects.then(|| word.to_lowercase()));
            bodies.extend(to_bodies.then(|| word.to_lowercase()));
        }
    }
    Ok(())
}

/// A text around the first word that is in it, escaped, with each word marked; `None` if there is none.
fn marked(text: &str, words: &[String], before: usize) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let lowered: Vec<char> = characters.iter().map(|c| c.to_lowercase().next().unwrap_or(*c)).collect();
    let words: Vec<Vec<char>> =
        words.iter().map(|word| word.chars().collect()).filter(|word: &Vec<char>| !word.is_empty()).collect();
    let at = |start: usize| words.iter().find(|word| lowered.get(start..).is_some_and(|rest| rest.starts_with(word)));
    let first = (0..lowered.len()).find(|&start| at(start).is_some())?;
    let start = first.saturating_sub(before);
    let end = first.saturating_add(if before == usize::MAX { 2_000 } else { BEHIND }).min(characters.len());
    let (mut out, mut position) = (String::new(), start);
    while position < end {
        match at(position) {
            Some(word) => {
                out.push_str("<mark>");
                let behind = position.saturating_add(word.len());
                characters.get(position..behind).unwrap_or_default().iter().for_each(|c| escape(*c, &mut out));
                out.push_str("</mark>");
                position = behind;
            }
            None => {
                characters.get(position).iter().for_each(|c| escape(**c, &mut out));
                position = position.saturating_add(1);
            }
        }
    }
    Some(out)
}

fn escape(character: char, out: &mut String) {
    match character {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        other => out.push(other),
    }
}
