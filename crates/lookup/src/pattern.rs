//! Texts with the placeholders `%s`, `%u` and `%d`, and the keys that fill them.

use std::fmt;

/// Maximum length of a key, in bytes; longer ones are not looked up.
pub const KEY_BYTES_MAX: usize = 512;

/// Key of a look-up: an address, or a name without a domain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    local: String,
    domain: Option<String>,
}

impl Key {
    /// Makes a key of a local part and a domain. `None` if it is empty, too long, or has control characters.
    pub fn new(local: &str, domain: Option<&str>) -> Option<Key> {
        let bytes = local.len().saturating_add(domain.map_or(0, str::len));
        let is_odd = |text: &str| text.is_empty() || text.contains(char::is_control);
        if bytes > KEY_BYTES_MAX || is_odd(local) || domain.is_some_and(is_odd) {
            return None;
        }
        Some(Key { local: local.to_owned(), domain: domain.map(str::to_owned) })
    }

    /// Makes a key of an address; its last `@` counts.
    pub fn of(address: &str) -> Option<Key> {
        match address.rsplit_once('@') {
            Some((local, domain)) => Key::new(local, Some(domain)),
            None => Key::new(address, None),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.domain {
            Some(domain) => write!(f, "{}@{domain}", self.local),
            None => f.write_str(&self.local),
        }
    }
}

/// Text with placeholders for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Whole,
    Local,
    Domain,
}

impl Pattern {
    /// Parses a text; `%%` is a percent sign.
    ///
    /// # Errors
    /// The character after another percent sign.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let mut pieces = vec![Piece::Text(String::new())];
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let piece = match (character, character == '%') {
                (_, true) => place(characters.next())?,
                (character, false) => Piece::Text(character.into()),
            };
            match (pieces.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                (_, piece) => pieces.push(piece),
            }
        }
        Ok(Pattern(pieces))
    }

    /// Makes a pattern of one placeholder, `%` and this letter.
    pub fn of(letter: Option<char>) -> Result<Pattern, String> {
        Ok(Pattern(vec![place(letter)?]))
    }

    /// Returns whether the text is the same for all keys.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Fills the placeholders with the parts of a key, each changed by `escape`. `None` if the key has no domain and
    /// the text needs one.
    pub fn fill(&self, key: &Key, escape: impl Fn(&str) -> String) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(constant) => text.push_str(constant),
                Piece::Whole => text.push_str(&escape(&key.to_string())),
                Piece::Local => text.push_str(&escape(&key.local)),
                Piece::Domain => text.push_str(&escape(key.domain.as_deref()?)),
            }
        }
        Some(text)
    }
}

fn place(letter: Option<char>) -> Result<Piece, String> {
    match letter {
        Some('s') => Ok(Piece::Whole),
        Some('u') => Ok(Piece::Local),
        Some('d') => Ok(Piece::Domain),
        Some('%') => Ok(Piece::Text('%'.into())),
        other => Err(format!("%{} is not %s, %u or %d; a percent sign is %%", other.unwrap_or(' '))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_put_in_its_places() {
        let fill = |text: &str, key| {
            Pattern::parse(text).unwrap().fill(&Key::of(key).unwrap(), |part| part.replace('*', "\\2a"))
        };
        assert_eq!(fill("(|(mail=%s)(uid=%u)(d=%d%%))", "a*b@c").unwrap(), "(|(mail=a\\2ab@c)(uid=a\\2ab)(d=c%))");
        assert_eq!(fill("%s", "tim").unwrap(), "tim");
        assert_eq!(fill("%u at %d", "tim"), None, "there is no domain");
        assert!(Pattern::parse("100%%").unwrap().is_constant());
        for wrong in ["%x", "%", "% s"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_nobody_is_called_is_no_key() {
        for odd in ["", "@", "a@", "@b", "a\0@b", "a@b\nc", &"x".repeat(513)] {
            assert_eq!(Key::of(odd), None, "{odd:?}");
        }
        assert_eq!(Key::of("\"a@b\"@c").unwrap(), Key::new("\"a@b\"", Some("c")).unwrap());
    }
}
