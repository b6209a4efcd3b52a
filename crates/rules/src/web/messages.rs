//! Texts by number, in the language that the configuration names: `"500","Blocked site: "`.

use std::collections::BTreeMap;

use super::loading::{Loading, Source, lines};

/// Texts for those who are blocked and for the log.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages(BTreeMap<u32, Box<str>>);

impl Messages {
    /// Reads a file.
    pub fn read(source: &Source, loading: &mut Loading<'_>) -> Messages {
        let mut all = BTreeMap::new();
        for (place, line) in lines(source) {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let line = String::from_utf8_lossy(line);
            let mut quoted = line.split('"').skip(1).step_by(2);
            match quoted.next().and_then(|number| Some((number.trim().parse().ok()?, quoted.next()?))) {
                // They are written for a page of HTML.
                Some((number, text)) => drop(all.insert(number, text::references::decode(text, false).into())),
                None => loading.error(&place, "this is no message", "write \"number\",\"text\""),
            }
        }
        Messages(all)
    }

    /// Whether there is a text of a number.
    pub fn has(&self, number: u32) -> bool {
        self.0.contains_key(&number) || default(number).is_some()
    }

    /// The text of a number without what it is about.
    pub fn alone(&self, number: u32) -> String {
        let text =
            self.0.get(&number).map(|text| &**text).or_else(|| default_alone(number)).or_else(|| default(number));
        text.unwrap_or("").to_owned()
    }

    /// The text of a number with what it is about behind it.
    pub fn text(&self, number: u32, about: &str) -> String {
        let text = self.0.get(&number).map(|text| &**text).or_else(|| default(number)).unwrap_or("");
        format!("{text}{about}")
    }
}

/// Texts for a configuration without a file of them.
fn default(number: u32) -> Option<&'static str> {
    Some(match number {
        100 | 103 => "The address may not browse: ",
        300 | 301 => "A banned phrase: ",
        400 | 401 => "Phrases that are banned together: ",
        402 | 403 => "The points of phrases are above the limit: ",
        500 | 560 | 510 | 520 => "The site is blocked: ",
        501 | 561 => "The URL is blocked: ",
        502 => "Sites that are not in a list are blocked: ",
        503 => "The URL matches: ",
        505 => "Sites that are addresses are blocked: ",
        506 | 507 | 511 | 512 => "TLS to sites that are not in a list is blocked: ",
        521 | 581 => "Search terms are blocked: ",
        600 => "The address is trusted: ",
        602 | 662 => "The site is trusted: ",
        603 | 663 => "The URL is trusted: ",
        604 => "A phrase makes the page trusted: ",
        605 => "Phrases together make the page trusted: ",
        609 => "The URL is trusted, for it matches: ",
        800 => "The type is blocked: ",
        900 => "The extension is blocked: ",
        _ => return None,
    })
}

/// Texts of our own that stand alone.
fn default_alone(number: u32) -> Option<&'static str> {
    Some(match number {
        301 => "A banned phrase was found.",
        401 => "Phrases that are banned together were found.",
        403 => "The points of phrases are above the limit.",
        503 => "The URL matches a banned expression.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::*;

    #[test]
    fn texts_are_found_by_number_and_others_are_ours() {
        let mut nothing = |_: &str| Err(String::new());
        let mut loading = Loading::new(&mut nothing, Limits::default());
        let bytes = b"# texts\n\"500\",\"No \"\n\"110\",\"x\"    \nwrong\n";
        let messages = Messages::read(&Source { name: "m".into(), bytes: bytes[..].into() }, &mut loading);
        assert_eq!(messages.text(500, "a.test"), "No a.test");
        assert_eq!(messages.text(501, "a.test"), "The URL is blocked: a.test");
        assert_eq!((&*messages.alone(500), &*messages.alone(301)), ("No ", "A banned phrase was found."));
        assert_eq!((messages.text(1, "a"), loading.problems.len()), ("a".into(), 1));
    }
}
