//! `[authentication]`: whether mails are authenticated, and what follows from it; and what a listener or a rule says in its
//! place.

use std::time::Duration;

use flow::Action;
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::size::{size, some_size};

/// The longest name of ours, in bytes: that of a host.
const NAME_BYTES_MAX: usize = 253;

/// The longest wait for the DNS, in seconds: sooner than a verdict is overdue.
const WAIT_SECONDS_MAX: u64 = 60;

/// `[authentication]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthenticationSettings {
    /// Whether mails are authenticated, where a listener does not say otherwise.
    pub enabled: bool,
    /// Our name in `Authentication-Results`; empty: that of the host.
    #[serde(deserialize_with = "name")]
    pub authserv_id: Box<str>,
    /// Whether the field is added.
    pub header: bool,
    /// Mails up to this many bytes are held whole for the field.
    #[serde(deserialize_with = "size")]
    pub size_max: u64,
    /// Action for SPF's `fail`.
    #[serde(deserialize_with = "consequence")]
    pub on_spf_fail: Action,
    /// Action for an author's policy `reject` where DMARC has failed.
    #[serde(deserialize_with = "consequence")]
    pub on_dmarc_reject: Action,
    /// The same of `quarantine`.
    #[serde(deserialize_with = "consequence")]
    pub on_dmarc_quarantine: Action,
    /// How long a mail that is complete waits for the DNS, in seconds.
    pub wait_seconds: u64,
}

/// `[listener.authentication]`, and `authentication` of a rule: in place of `[authentication]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthenticationTerms {
    /// In place of the global one.
    pub enabled: Option<bool>,
    /// The header setting in place of the global one.
    pub header: Option<bool>,
    /// In place of the global one.
    #[serde(deserialize_with = "some_size")]
    pub size_max: Option<u64>,
    /// In place of the global one.
    #[serde(deserialize_with = "some_consequence")]
    pub on_spf_fail: Option<Action>,
    /// In place of the global one.
    #[serde(deserialize_with = "some_consequence")]
    pub on_dmarc_reject: Option<Action>,
    /// In place of the global one.
    #[serde(deserialize_with = "some_consequence")]
    pub on_dmarc_quarantine: Option<Action>,
}

/// Authentication settings of a mail.
#[derive(Debug, Clone, PartialEq)]
pub struct Authentication {
    /// Our name in `Authentication-Results`.
    pub authserv_id: Box<str>,
    /// Whether the field is added.
    pub header: bool,
    /// Mails up to this many bytes are held whole for the field.
    pub size_max: u64,
    /// Action for SPF's `fail`.
    pub on_spf_fail: Action,
    /// Action for an author's policy `reject` where DMARC has failed.
    pub on_dmarc_reject: Action,
    /// The same of `quarantine`.
    pub on_dmarc_quarantine: Action,
    /// How long a mail that is complete waits for the DNS.
    pub wait: Duration,
}

impl Default for AuthenticationSettings {
    fn default() -> AuthenticationSettings {
        AuthenticationSettings {
            enabled: true,
            authserv_id: Box::default(),
            header: true,
            size_max: 512 << 10,
            on_spf_fail: Action::Pass,
            on_dmarc_reject: Action::Pass,
            on_dmarc_quarantine: Action::Pass,
            wait_seconds: 10,
        }
    }
}

impl AuthenticationSettings {
    /// Settings under these terms, the weightier first; none where mails are not authenticated. `usual`: whether they
    /// are
    /// where nobody says so of this listener.
    pub fn under(&self, terms: [Option<&AuthenticationTerms>; 2], usual: bool) -> Option<Authentication> {
        let terms = terms.into_iter().flatten();
        let pick = |of: &dyn Fn(&AuthenticationTerms) -> Option<Action>| terms.clone().find_map(of);
        if !terms.clone().find_map(|terms| terms.enabled).unwrap_or(self.enabled && usual) {
            return None;
        }
        Some(Authentication {
            authserv_id: self.authserv_id.clone(),
            header: terms.clone().find_map(|terms| terms.header).unwrap_or(self.header),
            size_max: terms.clone().find_map(|terms| terms.size_max).unwrap_or(self.size_max),
            on_spf_fail: pick(&|terms| terms.on_spf_fail).unwrap_or(self.on_spf_fail),
            on_dmarc_reject: pick(&|terms| terms.on_dmarc_reject).unwrap_or(self.on_dmarc_reject),
            on_dmarc_quarantine: pick(&|terms| terms.on_dmarc_quarantine).unwrap_or(self.on_dmarc_quarantine),
            wait: Duration::from_secs(self.wait_seconds),
        })
    }

    /// Whether it can be followed.
    ///
    /// # Errors
    /// When it cannot; the message says why.
    pub fn check(&self) -> Result<(), String> {
        match (1..=WAIT_SECONDS_MAX).contains(&self.wait_seconds) {
            true => Ok(()),
            false => Err(format!("authentication: wait_seconds is from 1 to {WAIT_SECONDS_MAX}")),
        }
    }
}

impl Authentication {
    /// Whether some result asks for this.
    pub fn asks_for(&self, action: Action) -> bool {
        [self.on_spf_fail, self.on_dmarc_reject, self.on_dmarc_quarantine].contains(&action)
    }
}

fn consequence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Action, D::Error> {
    let text = String::deserialize(deserializer)?;
    match &*text {
        "tell" => Ok(Action::Pass),
        "quarantine" => Ok(Action::Quarantine),
        "reject" => Ok(Action::Reject),
        _ => Err(de::Error::custom(format!("{text:?} does not follow from that: tell, quarantine or reject"))),
    }
}

fn some_consequence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Action>, D::Error> {
    consequence(deserializer).map(Some)
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    match (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_of_host) {
        true => Ok(text.into()),
        false => Err(de::Error::custom(format!("{text:?} is not the name of a host"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_outweighs_its_listener_and_that_the_global_table() {
        let global: AuthenticationSettings =
            toml::from_str("authserv_id = 'mx.test'\non_dmarc_reject = 'reject'").unwrap();
        let listener: AuthenticationTerms = toml::from_str("on_spf_fail = 'quarantine'\nsize_max = '1M'").unwrap();
        let rule: AuthenticationTerms = toml::from_str("on_dmarc_reject = 'tell'\nheader = false").unwrap();
        let all = global.under([Some(&rule), Some(&listener)], true).unwrap();
        assert_eq!((all.on_spf_fail, all.on_dmarc_reject), (Action::Quarantine, Action::Pass));
        assert_eq!((all.size_max, all.header, all.wait), (1 << 20, false, Duration::from_secs(10)));
        assert!(all.asks_for(Action::Quarantine) && !all.asks_for(Action::Reject));
        assert_eq!(global.under([None, Some(&listener)], false), None, "not usual here");
        let on = AuthenticationTerms { enabled: Some(true), ..AuthenticationTerms::default() };
        assert!(global.under([None, Some(&on)], false).is_some());
    }

    #[test]
    fn what_cannot_be_followed_is_refused_where_it_stands() {
        for (text, wanted) in [
            ("on_spf_fail = 'destroy'", "tell, quarantine or reject"),
            ("authserv_id = 'a; b'", "is not the name of a host"),
            ("on_dkim_fail = 'reject'", "unknown field"),
        ] {
            let error = toml::from_str::<AuthenticationSettings>(text).unwrap_err();
            assert!(error.message().contains(wanted), "{text}: {error}");
        }
        let settings: AuthenticationSettings = toml::from_str("wait_seconds = 61").unwrap();
        assert!(settings.check().unwrap_err().contains("from 1 to 60"));
    }
}
