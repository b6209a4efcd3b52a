//! Reasons that a client is given when its mail is refused.
//!
//! A name tells whoever tries out samples which signature to get around, try by try; an id tells nothing, and leads whoever
//! may read the log to all of it.

use serde::Deserialize;
use serde::de::{self, Deserializer};

/// The longest text of an operator's, in bytes: with its code it fits a line of a reply.
const TEXT_BYTES_MAX: usize = 400;

/// Reason given to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Name and place of the finding.
    Name,
    /// The message's id, and nothing else.
    Id,
    /// A text, in which `{id}` stands for the id.
    Text(Box<str>),
}

impl Refusal {
    /// The words for a message, in which this was found; they hold its id if they do not end in it anyway.
    pub fn words(&self, found: &str, id: &str) -> String {
        match self {
            Refusal::Name => format!("Message refused: {found} (id {id})"),
            Refusal::Id => format!("Message refused (id {id})"),
            Refusal::Text(text) => text.replace("{id}", id),
        }
    }
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Refusal, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "name" => Ok(Refusal::Name),
            "id" => Ok(Refusal::Id),
            _ if !text.contains("{id}") => Err(de::Error::custom(format!(
                "{text:?} is not a refusal: \"name\", \"id\", or a text with {{id}} in it"
            ))),
            _ if text.len() > TEXT_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => {
                Err(de::Error::custom(format!("a refusal is one line of ASCII of at most {TEXT_BYTES_MAX} bytes")))
            }
            _ => Ok(Refusal::Text(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Refusal, String> {
        toml::Value::String(text.into()).try_into().map_err(|error: toml::de::Error| error.to_string())
    }

    #[test]
    fn a_text_leads_to_the_log() {
        assert_eq!(parse("name").unwrap().words("X in y", "abc"), "Message refused: X in y (id abc)");
        assert_eq!(parse("id").unwrap().words("X in y", "abc"), "Message refused (id abc)");
        assert_eq!(parse("Call 4711, {id}").unwrap().words("X in y", "abc"), "Call 4711, abc");
        for wrong in ["", "no", "two\r\nlines {id}", "\u{e9} {id}", &format!("{{id}}{}", "x".repeat(400))] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
