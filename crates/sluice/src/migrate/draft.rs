//! The configuration that is made, with what was not translated: TOML, in which each line says where it comes from.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::parameters::Place;

/// Notes that are kept.
const NOTES_MAX: usize = 10_000;

/// Characters of a value that are shown.
const SHOWN_MAX: usize = 300;

/// A setting that has no counterpart, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line; none of what no file says.
    pub place: Option<Place>,
    /// As it stands there.
    pub setting: String,
    /// Why it is not translated, and what there is instead.
    pub why: String,
}

/// Tables of the configuration, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Top,
    Tls,
    Certificates,
    Trust,
    Lookups,
    Recipients,
    Store,
    Queue,
    Routes,
    SenderRoutes,
    Listeners,
}

const PARTS: [(Part, &str); 11] = [
    (Part::Top, ""),
    (Part::Tls, "[tls]"),
    (Part::Certificates, ""),
    (Part::Trust, "[trust]"),
    (Part::Lookups, ""),
    (Part::Recipients, ""),
    (Part::Store, "[store]"),
    (Part::Queue, "[store.queue]"),
    (Part::Routes, "[store.queue.routes]"),
    (Part::SenderRoutes, "[store.queue.sender_routes]"),
    (Part::Listeners, ""),
];

/// A configuration in the making.
#[derive(Debug, Default)]
pub struct Draft {
    lines: Vec<(Part, String)>,
    notes: Vec<Note>,
    dropped: usize,
}

impl Draft {
    /// Adds a line as it is.
    pub fn line(&mut self, part: Part, line: impl Into<String>) {
        self.lines.push((part, line.into()));
    }

    /// Adds a key, with the place that it comes from.
    pub fn key(&mut self, part: Part, key: &str, value: &Value, from: Option<&Place>) {
        let from = from.filter(|place| !place.file.is_empty());
        let from = from.map_or(String::new(), |place| format!("  # {place}"));
        self.line(part, format!("{key} = {}{from}", toml(value)));
    }

    /// Notes that something is not translated.
    pub fn note(&mut self, place: Option<&Place>, setting: impl Into<String>, why: impl Into<String>) {
        if self.notes.len() >= NOTES_MAX {
            self.dropped += 1;
            return;
        }
        let place = place.filter(|place| !place.file.is_empty());
        let place = place.map(|place| Place { file: one_line(&place.file), line: place.line });
        let note = Note { place, setting: one_line(&setting.into()), why: one_line(&why.into()) };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// As a file.
    pub fn text(&mut self, source: &str) -> String {
        self.notes.sort_by(|one, other| one.place.cmp(&other.place));
        let mut out = format!("# Made by sluice migrate postfix {}: look at the notes at the end.\n", one_line(source));
        for (part, head) in PARTS {
            let lines: Vec<&String> = self.lines.iter().filter(|(own, _)| *own == part).map(|(_, line)| line).collect();
            if lines.is_empty() {
                continue;
            }
            out.push('\n');
            if !head.is_empty() {
                let _ = writeln!(out, "{head}");
            }
            lines.iter().for_each(|line| _ = writeln!(out, "{line}"));
        }
        if !self.notes.is_empty() {
            out.push_str("\n# Not translated, or not all of it:\n");
        }
        for Note { place, setting, why } in &self.notes {
            let place = place.as_ref().map_or(String::new(), |place| format!("{place}: "));
            let _ = writeln!(out, "#\n# {place}{setting}\n#     {why}");
        }
        if self.dropped > 0 {
            let _ = writeln!(out, "#\n# and {} more", self.dropped);
        }
        out
    }

    /// The notes, as an object.
    pub fn json(&self) -> Value {
        let note = |note: &Note| {
            let file = note.place.as_ref().map(|place| place.file.as_str());
            let line = note.place.as_ref().map(|place| place.line);
            json!({ "file": file, "line": line, "setting": note.setting, "why": note.why })
        };
        json!({ "not_translated": self.notes.iter().map(note).collect::<Vec<_>>(), "more": self.dropped })
    }
}

/// A value as TOML has it.
pub fn toml(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::String(text) => json!(whole_line(text)).to_string(),
        Value::Object(table) => {
            let pairs: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}

/// A text of which nothing ends a line.
fn whole_line(text: &str) -> String {
    let safe =
        |letter: char| if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') { ' ' } else { letter };
    text.chars().map(safe).collect()
}

/// The same as it is shown: cut after [`SHOWN_MAX`] characters.
fn one_line(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => whole_line(&text[..end]) + " ...",
        None => whole_line(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_whole_and_a_note_is_cut() {
        let (mut draft, long) = (Draft::default(), "x".repeat(2 * SHOWN_MAX));
        draft.key(Part::Top, "hostname", &json!(long), None);
        draft.note(None, long.clone(), "why");
        let text = draft.text("/etc/postfix");
        assert!(text.contains(&format!("hostname = \"{long}\"\n")), "{text}");
        assert!(text.contains(&format!("# {} ...\n", "x".repeat(SHOWN_MAX))), "{text}");
    }

    #[test]
    fn nothing_of_a_file_ends_a_comment() {
        let mut draft = Draft::default();
        let place = Place { file: "main.cf\nx = 1".into(), line: 3 };
        draft.note(Some(&place), "a = b\r\nuser = \"root\"", "why");
        draft.key(Part::Top, "hostname", &json!("a\"b\nc"), None);
        let text = draft.text("/etc\n/postfix");
        assert!(text.contains("hostname = \"a\\\"b c\"\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(lines.count(), 1, "{text}");
    }
}
