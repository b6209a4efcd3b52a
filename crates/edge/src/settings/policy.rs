//! Rules: what holds for a mail, by client, sender and recipient, and which ways its attachments take.
//!
//! `[[attachment]]` names ways for objects; a listener and each of its `[[listener.rule]]` say which of them hold. The
//! first rule that means a mail decides, and only that one; what it does not say, the listener says.

use std::net::IpAddr;
use std::sync::Arc;

use flow::{Action, Glob, Rule, SignatureRule, Way};
use serde::Deserialize;
use serde::de::{self, Deserializer};
use stream::FileType;

use super::action::{action, some_action};
use super::authentication::AuthenticationTerms;
use super::network::Network;
use super::size::some_size;
use super::spam::SpamTerms;

/// The longest pattern for a name or an address.
const PATTERN_BYTES_MAX: usize = 255;

/// `[[attachment]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Name in rules and findings.
    pub name: String,
    /// Patterns for the declared name.
    #[serde(default, deserialize_with = "globs")]
    pub names: Vec<Glob>,
    /// Endings of the declared name, without the dot.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// Patterns for the declared media type.
    #[serde(default, deserialize_with = "globs")]
    pub media_types: Vec<Glob>,
    /// True types, as `sluice explain` shows them.
    #[serde(default, deserialize_with = "types")]
    pub types: Vec<FileType>,
    /// `bypass`, `scan`, `open` or `forbid`.
    #[serde(deserialize_with = "way")]
    pub way: Way,
}

/// `[[listener.signature]]`, `[[listener.rule.signature]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureTerms {
    /// Patterns for the name of a signature.
    #[serde(deserialize_with = "globs")]
    pub names: Vec<Glob>,
    /// In place of `on_infected`.
    #[serde(deserialize_with = "action")]
    pub action: Action,
}

/// As an inspection takes them.
pub fn signatures(written: &[SignatureTerms]) -> Arc<[SignatureRule]> {
    written.iter().map(|terms| SignatureRule { names: terms.names.clone(), action: terms.action }).collect()
}

/// `[[listener.rule]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailRule {
    /// Networks of the client.
    #[serde(default)]
    pub client: Vec<Network>,
    /// Patterns for the sender; `<>` is the null one.
    #[serde(default, deserialize_with = "globs")]
    pub sender: Vec<Glob>,
    /// Patterns for the recipient.
    #[serde(default, deserialize_with = "globs")]
    pub recipient: Vec<Glob>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_infected: Option<Action>,
    /// In place of the listener's, all of them.
    #[serde(rename = "signature")]
    pub signatures: Option<Vec<SignatureTerms>>,
    /// The action in place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_forbidden: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_limit: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_ambiguous: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_unopened: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_encrypted: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_external: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_partial: Option<Action>,
    /// In place of the listener's.
    #[serde(default, deserialize_with = "some_action")]
    pub on_malformed: Option<Action>,
    /// In place of the listener's, where that is larger.
    #[serde(default, deserialize_with = "some_size")]
    pub message_bytes_max: Option<u64>,
    /// The attachment rules in place of the listener's.
    pub attachments: Option<Vec<String>>,
    /// In place of the listener's, key by key.
    pub spam: Option<SpamTerms>,
    /// In place of the listener's, key by key.
    pub authentication: Option<AuthenticationTerms>,
}

/// Client, sender and recipients of a mail.
#[derive(Debug, Clone, Copy)]
pub struct Parties<'a> {
    /// The client.
    pub client: IpAddr,
    /// The reverse-path, empty for the null one.
    pub sender: &'a str,
    /// One forward-path.
    pub recipient: &'a str,
}

impl MailRule {
    /// Whether it means this mail.
    pub fn means(&self, parties: &Parties<'_>) -> bool {
        let address = |globs: &[Glob], address: &str| {
            let address = if address.is_empty() { "<>".to_string() } else { address.to_lowercase() };
            globs.is_empty() || globs.iter().any(|glob| glob.matches(&address))
        };
        (self.client.is_empty() || self.client.iter().any(|network| network.holds(parties.client)))
            && address(&self.sender, parties.sender)
            && address(&self.recipient, parties.recipient)
    }
}

impl Attachment {
    /// As an inspection takes it.
    pub fn rule(&self) -> Rule {
        let endings = self.extensions.iter().map(|ending| Glob::new(&format!("*.{}", ending.trim_start_matches('.'))));
        Rule {
            label: self.name.as_str().into(),
            names: self.names.iter().cloned().chain(endings).collect(),
            media_types: self.media_types.clone(),
            types: self.types.clone(),
            way: self.way,
        }
    }
}

fn globs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Glob>, D::Error> {
    let glob = |text: String| match text.len() {
        1..=PATTERN_BYTES_MAX => Ok(Glob::new(&text)),
        _ => Err(de::Error::custom(format!("{text:?} is not a pattern"))),
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(glob).collect()
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FileType>, D::Error> {
    let named = |text: String| {
        let known = FileType::ALL.iter().find(|file_type| file_type.name() == text);
        known.copied().ok_or_else(|| {
            let all: Vec<&str> = FileType::ALL.iter().map(|file_type| file_type.name()).collect();
            de::Error::custom(format!("{text:?} is not a type: {}", all.join(" ")))
        })
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(named).collect()
}

fn way<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Way, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = [Way::Bypass, Way::Scan, Way::Open, Way::Forbid].into_iter().find(|way| way.name() == text);
    known.ok_or_else(|| de::Error::custom(format!("{text:?} is not a way: bypass, scan, open or forbid")))
}
