//! The texts of notices: a file for each audience and language, `AUDIENCE.LANGUAGE.txt`.
//!
//! Before the first empty line stand a subject and a sentence for each action, behind it the text. Placeholders in
//! braces are filled in: `{id}`, `{hostname}`, `{client}`, `{sender}`, `{recipients}`, `{found}` and `{done}`, which is
//! the sentence of the action. What is wrong in a file is an error when the configuration is read.

use std::collections::BTreeMap;
use std::path::Path;

use flow::Action;

use super::Audience;

/// The texts that need no file.
const BUILT_IN: [(Audience, &str, &str); 6] = [
    (Audience::Recipient, "en", include_str!("texts/recipient.en.txt")),
    (Audience::Recipient, "de", include_str!("texts/recipient.de.txt")),
    (Audience::Sender, "en", include_str!("texts/sender.en.txt")),
    (Audience::Sender, "de", include_str!("texts/sender.de.txt")),
    (Audience::Postmaster, "en", include_str!("texts/postmaster.en.txt")),
    (Audience::Postmaster, "de", include_str!("texts/postmaster.de.txt")),
];

const PLACEHOLDERS: [&str; 7] = ["id", "hostname", "client", "sender", "recipients", "found", "done"];

/// A language is the name of a file's middle part: letters, digits and hyphens.
const LANGUAGE_BYTES_MAX: usize = 35;

/// One text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    subject: String,
    done: BTreeMap<String, String>,
    body: String,
}

/// All texts, by audience and language.
#[derive(Debug)]
pub struct Templates(BTreeMap<(Audience, String), Template>);

impl Templates {
    /// The built-in ones, and those in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be read, or a file in it is no text of ours; the message names it.
    pub fn load(folder: Option<&Path>) -> Result<Templates, String> {
        let mut all = BTreeMap::new();
        for (audience, language, text) in BUILT_IN {
            all.insert((audience, language.to_string()), Template::parse(text)?);
        }
        let Some(folder) = folder else { return Ok(Templates(all)) };
        let unreadable = |error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let Some(key) = key(&path) else { continue };
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let template = Template::parse(&text).map_err(|reason| format!("{}: {reason}", path.display()))?;
            all.insert(key, template);
        }
        Ok(Templates(all))
    }

    /// Whether there is a text in this language for everybody.
    pub fn speaks(&self, language: &str) -> bool {
        Audience::ALL.iter().all(|audience| self.0.contains_key(&(*audience, language.to_string())))
    }

    /// The text for somebody, in a language that is spoken.
    pub fn get(&self, audience: Audience, language: &str) -> &Template {
        let wanted = self.0.get(&(audience, language.to_string()));
        wanted.unwrap_or_else(|| &self.0[&(audience, "en".to_string())])
    }
}

/// Audience and language of a name such as `recipient.en.txt`; `None` for other files.
fn key(path: &Path) -> Option<(Audience, String)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".txt")?;
    let (audience, language) = name.split_once('.')?;
    let audience = Audience::ALL.into_iter().find(|known| known.name() == audience)?;
    let is_language = (1..=LANGUAGE_BYTES_MAX).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_language.then(|| (audience, language.to_string()))
}

impl Template {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Template, String> {
        let text = text.replace("\r\n", "\n");
        let (head, body) = text.split_once("\n\n").ok_or("no empty line behind the subject")?;
        let mut subject = None;
        let mut done = BTreeMap::new();
        for line in head.lines() {
            let (key, value) = line.split_once(':').ok_or_else(|| format!("{line:?} has no colon"))?;
            let value = value.trim().to_string();
            match key {
                "subject" => subject = Some(value),
                "blank" | "quarantine" | "reject" => drop(done.insert(key.to_string(), value)),
                _ => return Err(format!("{key:?} is none of subject, blank, quarantine and reject")),
            }
        }
        let template = Template { subject: subject.ok_or("no subject")?, done, body: body.to_string() };
        let parts = template.done.values().chain([&template.subject, &template.body]);
        parts.into_iter().try_for_each(|part| fill(part, &|_| String::new()).map(drop))?;
        Ok(template)
    }

    /// Subject and text for an action; `value` says what stands for a placeholder.
    pub fn render(&self, action: Action, value: &dyn Fn(&str) -> String) -> (String, String) {
        let filled = |text: &str, value: &dyn Fn(&str) -> String| fill(text, value).unwrap_or_default();
        let done = filled(self.done.get(action.name()).map_or("", String::as_str), value);
        let all = |name: &str| if name == "done" { done.clone() } else { value(name) };
        (filled(&self.subject, &all), filled(&self.body, &all))
    }
}

/// Fills in placeholders; what is filled in is not looked at again.
fn fill(text: &str, value: &dyn Fn(&str) -> String) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('{') {
        let (name, after) = from.split_once('}').ok_or("a brace is not closed")?;
        if !PLACEHOLDERS.contains(&name) {
            return Err(format!("{{{name}}} is none of {}", PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(" ")));
        }
        out.push_str(before);
        out.push_str(&value(name));
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_text_is_one_and_both_languages_are_whole() {
        let templates = Templates::load(None).unwrap();
        assert!(templates.speaks("en") && templates.speaks("de") && !templates.speaks("fr"));
    }

    #[test]
    fn what_is_filled_in_is_not_filled_in_again() {
        let template = Template::parse("subject: {id}\nblank: gone\n\n{done} {sender}").unwrap();
        let (subject, body) = template.render(Action::Blank, &|name| format!("{{{name}}}"));
        assert_eq!((subject.as_str(), body.as_str()), ("{id}", "gone {sender}"));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for (text, wanted) in [
            ("subject: a", "no empty line"),
            ("blank: a\n\nb", "no subject"),
            ("subject: a\nsent: b\n\nc", "none of subject"),
            ("subject: a\n\n{nobody}", "none of {id}"),
            ("subject: a\n\n{id", "not closed"),
        ] {
            let refusal = Template::parse(text).unwrap_err();
            assert!(refusal.contains(wanted), "{refusal}");
        }
    }

    #[test]
    fn files_come_before_what_is_built_in() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("recipient.en.txt"), "subject: mine\n\ntext").unwrap();
        std::fs::write(folder.path().join("recipient.fr.txt"), "subject: le mien\n\ntexte").unwrap();
        std::fs::write(folder.path().join("README"), "nothing").unwrap();
        let templates = Templates::load(Some(folder.path())).unwrap();
        assert_eq!(templates.get(Audience::Recipient, "en").subject, "mine");
        assert_eq!(templates.get(Audience::Recipient, "fr").subject, "le mien");
        assert!(!templates.speaks("fr"), "a language is for everybody or not at all");
        std::fs::write(folder.path().join("sender.fr.txt"), "nonsense").unwrap();
        assert!(Templates::load(Some(folder.path())).unwrap_err().contains("sender.fr.txt"));
    }
}
