//! Rules: what holds for a mail, by client, sender and recipient, and which ways its attachments take.
//!
//! `[[attachment]]` names ways for objects; a listener and each of its `[[listener.rule]]` say which of them hold. The
//! first rule that means a mail decides, and only that one; what it does not say, the listener says.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use flow::{Action, Glob, Policy, Rule, Way};
use serde::Deserialize;
use serde::de::{self, Deserializer};
use stream::FileType;

use super::{Config, Listener, Network, Protocol, Refusal, some_action};

/// The longest pattern for a name or an address.
const PATTERN_BYTES_MAX: usize = 255;

/// `[[attachment]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// What rules and findings call it.
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
    /// In place of the listener's.
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
    pub message_bytes_max: Option<u64>,
    /// In place of the listener's.
    pub attachments: Option<Vec<String>>,
}

/// What holds for a mail: a listener's settings as one of its rules makes them. Made once, when the configuration is loaded.
#[derive(Debug)]
pub struct Ruling {
    /// What each class of findings asks for.
    pub policy: Policy,
    /// How attachments are treated.
    pub attachments: Arc<[Rule]>,
    /// The largest mail, in bytes; 0 means any.
    pub message_bytes_max: u64,
    /// What becomes of `tag` when the header has been sent already.
    pub on_late_tag: Action,
    /// What a client learns of why its mail is refused.
    pub refusal: Refusal,
    /// Where mails are kept aside, if some may have to be.
    pub quarantine: Option<PathBuf>,
}

/// The rulings of a listener: without a rule, and under each of its rules.
#[derive(Debug, Clone)]
pub struct Rulings(Arc<[Arc<Ruling>]>);

impl Rulings {
    /// What holds under a rule.
    pub fn under(&self, rule: Option<usize>) -> Arc<Ruling> {
        let index = rule.map_or(0, |rule| rule + 1);
        self.0.get(index).unwrap_or(&self.0[0]).clone()
    }
}

/// Who sends a mail from where to whom.
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
    fn means(&self, parties: &Parties<'_>) -> bool {
        let address = |globs: &[Glob], address: &str| {
            let address = if address.is_empty() { "<>".to_string() } else { address.to_lowercase() };
            globs.is_empty() || globs.iter().any(|glob| glob.matches(&address))
        };
        (self.client.is_empty() || self.client.iter().any(|network| network.holds(parties.client)))
            && address(&self.sender, parties.sender)
            && address(&self.recipient, parties.recipient)
    }
}

impl Listener {
    /// The number of the rule that means a mail, if one does.
    pub fn rule_for(&self, parties: &Parties<'_>) -> Option<usize> {
        self.rules.iter().position(|rule| rule.means(parties))
    }

    /// The listener as a rule makes it.
    pub fn under(&self, rule: Option<usize>) -> Listener {
        let mut listener = self.clone();
        let Some(rule) = rule.and_then(|index| self.rules.get(index)) else { return listener };
        for (own, ruled) in [
            (&mut listener.on_infected, rule.on_infected),
            (&mut listener.on_forbidden, rule.on_forbidden),
            (&mut listener.on_limit, rule.on_limit),
            (&mut listener.on_ambiguous, rule.on_ambiguous),
        ] {
            *own = ruled.or(*own);
        }
        listener.on_encrypted = rule.on_encrypted.unwrap_or(self.on_encrypted);
        listener.on_external = rule.on_external.unwrap_or(self.on_external);
        listener.on_partial = rule.on_partial.unwrap_or(self.on_partial);
        listener.on_malformed = rule.on_malformed.unwrap_or(self.on_malformed);
        listener.message_bytes_max = match (rule.message_bytes_max.unwrap_or(0), self.message_bytes_max) {
            (0, own) => own,
            (ruled, 0) => ruled,
            (ruled, own) => ruled.min(own),
        };
        if let Some(attachments) = &rule.attachments {
            listener.attachments.clone_from(attachments);
        }
        listener
    }
}

impl Config {
    /// What holds for the mails of a listener.
    pub fn rulings(&self, listener: &Listener) -> Rulings {
        let rules = std::iter::once(None).chain((0..listener.rules.len()).map(Some));
        Rulings(rules.map(|rule| Arc::new(self.ruling(&listener.under(rule)))).collect())
    }

    fn ruling(&self, listener: &Listener) -> Ruling {
        let quarantine = listener.quarantine.clone().filter(|_| listener.asks_for(Action::Quarantine));
        Ruling {
            policy: listener.policy(),
            attachments: self.ways(&listener.attachments),
            message_bytes_max: listener.message_bytes_max,
            on_late_tag: listener.on_late_tag,
            refusal: listener.refusal(),
            quarantine,
        }
    }

    /// The ways that these attachments take, in their order.
    pub fn ways(&self, names: &[String]) -> Arc<[Rule]> {
        let known = names.iter().filter_map(|name| self.attachments.iter().find(|attachment| attachment.name == *name));
        known.map(Attachment::rule).collect()
    }

    pub(super) fn check_attachments(&self) -> Result<(), String> {
        for (index, attachment) in self.attachments.iter().enumerate() {
            let Attachment { name, .. } = attachment;
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            {
                return Err(format!("attachment {name:?}: a name is letters, digits and hyphens"));
            }
            if self.attachments[..index].iter().any(|other| other.name == *name) {
                return Err(format!("attachment {name:?}: the name is used twice"));
            }
            if attachment.way == Way::Bypass && attachment.types.is_empty() {
                return Err(format!(
                    "attachment {name:?}: a bypass needs types; names and media types are what the sender says"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn check_rules(&self, listener: &Listener) -> Result<(), String> {
        let has_envelopes = matches!(listener.protocol, Protocol::Smtp | Protocol::Lmtp | Protocol::Milter);
        if !listener.rules.is_empty() && !has_envelopes {
            return Err("rules go by envelopes, which only smtp, lmtp and milter have".into());
        }
        let named = listener.rules.iter().filter_map(|rule| rule.attachments.as_ref()).chain([&listener.attachments]);
        for name in named.flatten() {
            if !self.attachments.iter().any(|attachment| attachment.name == *name) {
                return Err(format!("there is no [[attachment]] with the name {name:?}"));
            }
        }
        Ok(())
    }
}

impl Attachment {
    fn rule(&self) -> Rule {
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
        _ => Err(de::Error::custom(format!("{text:?} is no pattern"))),
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(glob).collect()
}

fn types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FileType>, D::Error> {
    let named = |text: String| {
        let known = FileType::ALL.iter().find(|file_type| file_type.name() == text);
        known.copied().ok_or_else(|| {
            let all: Vec<&str> = FileType::ALL.iter().map(|file_type| file_type.name()).collect();
            de::Error::custom(format!("{text:?} is no type: {}", all.join(" ")))
        })
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(named).collect()
}

fn way<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Way, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = [Way::Bypass, Way::Scan, Way::Open, Way::Forbid].into_iter().find(|way| way.name() == text);
    known.ok_or_else(|| de::Error::custom(format!("{text:?} is no way: bypass, scan, open or forbid")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[[attachment]]\nname='exe'\nextensions=['exe','.com']\nway='forbid'\n";

    fn parse(head: &str, settings: &str) -> Result<Config, String> {
        let listener = "[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\n";
        Config::parse(&format!("{head}{listener}{settings}"), "test").map_err(|error| error.to_string())
    }

    fn rule_for(listener: &Listener, client: &str, sender: &str, recipient: &str) -> Option<usize> {
        listener.rule_for(&Parties { client: client.parse().unwrap(), sender, recipient })
    }

    #[test]
    fn the_first_rule_that_means_a_mail_decides() {
        let rules = "message_bytes_max=1000\n\
            [[listener.rule]]\nclient=['10.0.0.0/8']\nsender=['*@own.test']\non_encrypted='reject'\n\
            [[listener.rule]]\nsender=['<>']\nmessage_bytes_max=10\n\
            [[listener.rule]]\nrecipient=['boss@*','*@*.vip.test']\non_infected='quarantine'\nattachments=['exe']\n\
            message_bytes_max=5000";
        let config = parse(HEAD, &format!("quarantine='q'\n{rules}")).unwrap();
        let listener = &config.listeners[0];
        assert_eq!(rule_for(listener, "10.1.1.1", "A@OWN.test", "b@c"), Some(0));
        assert_eq!(rule_for(listener, "192.0.2.1", "a@own.test", "b@c"), None);
        assert_eq!(rule_for(listener, "192.0.2.1", "", "boss@c"), Some(1));
        assert_eq!(rule_for(listener, "192.0.2.1", "x@y", "Boss@c"), Some(2));
        assert_eq!(rule_for(listener, "192.0.2.1", "x@y", "b@a.vip.test"), Some(2));
        assert_eq!(listener.under(Some(0)).on_encrypted, Action::Reject);
        assert_eq!(listener.under(Some(1)).message_bytes_max, 10);
        let third = listener.under(Some(2));
        assert_eq!((third.policy().on_infected, third.message_bytes_max), (Action::Quarantine, 1000));
        assert_eq!(config.ways(&third.attachments)[0].names.len(), 2);
        assert!(config.ways(&listener.under(None).attachments).is_empty());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (head, settings, wanted) in [
            ("", "attachments=['exe']", "no [[attachment]]"),
            ("", "[[listener.rule]]\nattachments=['exe']", "no [[attachment]]"),
            ("", "[[listener.rule]]\non_infected='quarantine'", "no folder is set"),
            ("", "[[listener.rule]]\nclient=['10.0.0.0/99']", "no network"),
            ("[[attachment]]\nname='a'\nnames=['*.jpg']\nway='bypass'\n", "", "needs types"),
            ("[[attachment]]\nname='a'\ntypes=['jpg']\nway='scan'\n", "", "is no type"),
            ("[[attachment]]\nname='a'\nway='eat'\n", "", "is no way"),
            ("[[attachment]]\nname='a b'\nway='scan'\n", "", "a name is"),
        ] {
            let refusal = parse(head, settings).unwrap_err();
            assert!(refusal.contains(wanted), "{refusal}");
        }
    }
}
