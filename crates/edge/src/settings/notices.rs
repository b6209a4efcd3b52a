//! `[notices]`: who is told what was done with a mail, in which language, and how often.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flow::Action;
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::network::Network;

/// `[notices]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoticeSettings {
    /// At which actions recipients are told.
    #[serde(deserialize_with = "actions")]
    pub recipient: Vec<Action>,
    /// At which actions senders are told, as far as they are surely those.
    #[serde(deserialize_with = "actions")]
    pub sender: Vec<Action>,
    /// At which actions the postmaster is told.
    #[serde(deserialize_with = "actions")]
    pub postmaster: Vec<Action>,
    /// Address of the postmaster. Default: `postmaster@` and the gateway's name.
    pub postmaster_address: Option<String>,
    /// Clients that have made sure who the sender is.
    pub sender_networks: Vec<Network>,
    /// Domains whose senders are told.
    pub sender_domains: Vec<String>,
    /// The language of those whose domain has none of its own.
    pub language: String,
    /// The language of a domain's addresses.
    pub languages: BTreeMap<String, String>,
    /// A folder of texts, in place of and besides the built-in ones.
    pub templates: Option<PathBuf>,
    /// Notices to one address within an hour; 0 means none.
    pub per_address_per_hour: u32,
    /// Notices to all addresses within an hour; 0 means none.
    pub per_hour: u32,
}

impl Default for NoticeSettings {
    fn default() -> NoticeSettings {
        NoticeSettings {
            recipient: vec![Action::Blank],
            sender: Vec::new(),
            postmaster: Vec::new(),
            postmaster_address: None,
            sender_networks: Vec::new(),
            sender_domains: Vec::new(),
            language: "en".into(),
            languages: BTreeMap::new(),
            templates: None,
            per_address_per_hour: 20,
            per_hour: 1_000,
        }
    }
}

impl NoticeSettings {
    /// Whether it goes together.
    ///
    /// # Errors
    /// When it does not; the message says why.
    pub fn check(&self) -> Result<(), String> {
        if self.sender.contains(&Action::Reject) {
            return Err("notices: a sender whose mail is rejected is told by the reply to it; sender is one of \
                        \"blank\" and \"quarantine\""
                .into());
        }
        if !self.sender.is_empty() && (self.sender_networks.is_empty() || self.sender_domains.is_empty()) {
            return Err(
                "notices: sender needs sender_networks and sender_domains, or forged senders would get notices".into(),
            );
        }
        Ok(())
    }
}

fn actions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Action>, D::Error> {
    let known = [Action::Blank, Action::Quarantine, Action::Reject];
    let named = |text: String| {
        let action = known.into_iter().find(|action| action.name() == text);
        action.ok_or_else(|| de::Error::custom(format!("{text:?} is none of blank, quarantine and reject")))
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(named).collect()
}
