//! `[store.queue]`: how mail waits that goes out, and where it goes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use edge::settings::{Forward, Network, Scheme};
use mailbox::queue::Patience;
use mailbox::queue::schedule::Limits;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// Where mail goes that goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outward {
    /// To the mail servers of its recipients.
    World,
    /// To one next hop.
    Hop(Forward),
}

/// `[store.queue]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSettings {
    /// Mails that are sent at a time.
    pub connections_max: u32,
    /// Connections to one domain at a time.
    pub connections_to_one_max: u32,
    /// How long a mail waits that was not taken, in seconds; each wait is twice the one before.
    pub retry_first_seconds: i64,
    /// The longest wait.
    pub retry_longest_seconds: i64,
    /// After so long its sender is told that it waits; 0: never.
    pub warning_seconds: i64,
    /// After so long it is given up, and its sender is told.
    pub lifetime_seconds: i64,
    /// Recipients that one login may send to in an hour; 0 is no bound.
    pub recipients_hour_max: u32,
    /// Domains that mail of anybody is relayed to: `"example.org"`, and `".example.org"` for those below it.
    pub relay_domains: Vec<String>,
    /// Next hops of domains, in place of the relay: `"example.org"`, and `".example.org"` for those below it.
    pub routes: BTreeMap<String, Forward>,
    /// Next hops of senders, in place of the relay: `"ann@example.org"`, and `"example.org"` for all of a domain.
    pub sender_routes: BTreeMap<String, Forward>,
    /// The file of logins at next hops, `HOST:PORT NAME:PASSWORD`; none: mail goes there without a login.
    pub logins: Option<PathBuf>,
    /// Whether a login may go without TLS to an address of the loopback or a UNIX socket.
    pub logins_without_tls: bool,
    /// Networks in which mail servers are asked although they are of this machine or this link alone.
    pub destinations: Vec<Network>,
    /// Whether servers are known by records of signed zones (DANE).
    pub dane: bool,
    /// Whether servers are known by the policies of domains (MTA-STS).
    pub mta_sts: bool,
    /// The sender of reports of TLS; none: nothing is reported.
    pub tls_reports: Option<String>,
    /// The sender of aggregate reports of DMARC; none: nothing is reported.
    pub dmarc_reports: Option<String>,
    /// The address at which recipients report mail from here; none: nothing is read.
    pub feedback: Option<String>,
    /// Domains whose reports count: `"example.org"`, and `".example.org"` for those below it.
    pub feedback_from: Vec<String>,
    /// The file of secrets with which senders of forwarded mail are rewritten; none: they stay.
    pub srs_secret: Option<PathBuf>,
    /// The domain of rewritten senders; none: `hostname`.
    pub srs_domain: Option<String>,
    /// The port of the mail servers of recipients.
    pub port: u16,
    /// The port of the hosts of policies.
    pub https_port: u16,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        let (limits, patience) = (Limits::default(), Patience::default());
        QueueSettings {
            connections_max: limits.jobs_max,
            connections_to_one_max: limits.window_max,
            retry_first_seconds: patience.first,
            retry_longest_seconds: patience.longest,
            warning_seconds: patience.warning,
            lifetime_seconds: patience.whole,
            recipients_hour_max: 1_000,
            relay_domains: Vec::new(),
            routes: BTreeMap::new(),
            sender_routes: BTreeMap::new(),
            logins: None,
            logins_without_tls: false,
            destinations: Vec::new(),
            dane: true,
            mta_sts: true,
            tls_reports: None,
            dmarc_reports: None,
            feedback: None,
            feedback_from: Vec::new(),
            srs_secret: None,
            srs_domain: None,
            port: 25,
            https_port: 443,
        }
    }
}

impl QueueSettings {
    /// How many mails are sent at a time, and how long a destination rests.
    pub fn limits(&self) -> Limits {
        Limits {
            jobs_max: self.connections_max,
            window_max: self.connections_to_one_max,
            rest_first: self.retry_first_seconds,
            ..Limits::default()
        }
    }

    /// How long a mail waits.
    pub const fn patience(&self) -> Patience {
        Patience {
            first: self.retry_first_seconds,
            longest: self.retry_longest_seconds,
            warning: self.warning_seconds,
            whole: self.lifetime_seconds,
        }
    }

    /// Whether it can be followed.
    ///
    /// # Errors
    /// When it cannot; the message says why.
    pub fn check(&self) -> Result<(), String> {
        let is_address = |text: &String| text.contains('@') && text.parse::<proto::smtp::Path>().is_ok();
        for (key, address) in
            [("tls_reports", &self.tls_reports), ("dmarc_reports", &self.dmarc_reports), ("feedback", &self.feedback)]
        {
            if address.as_ref().is_some_and(|address| !is_address(address)) {
                return Err(format!("{key} is an address"));
            }
        }
        if self.feedback.is_some() == self.feedback_from.is_empty() {
            return Err("feedback is the address of reports, and feedback_from has the domains whose count".into());
        }
        if self.connections_max == 0 || self.connections_to_one_max == 0 || self.port == 0 || self.https_port == 0 {
            return Err("a limit or a port of 0 would send nothing".into());
        }
        if self.retry_first_seconds < 1 || self.retry_longest_seconds < self.retry_first_seconds {
            return Err("retry_longest_seconds is at least retry_first_seconds, and that at least 1".into());
        }
        if self.lifetime_seconds < 1 || self.warning_seconds < 0 {
            return Err("lifetime_seconds is at least 1, and warning_seconds at least 0".into());
        }
        let is_domain = |text: &String| {
            let name = text.strip_prefix('.').unwrap_or(text);
            name.split('.').all(|label| !label.is_empty()) && !name.contains(['@', '*', '/', ' '])
        };
        if let Some(wrong) = self.relay_domains.iter().find(|text| !is_domain(text)) {
            return Err(format!("relay_domains: {wrong:?} is not a domain, or a dot and a domain for those below it"));
        }
        let is_sender = |text: &&String| {
            text.rsplit_once('@').map_or(!text.is_empty(), |(local, domain)| !local.is_empty() && !domain.is_empty())
        };
        if let Some(wrong) = self.sender_routes.keys().find(|text| !is_sender(text)) {
            return Err(format!("sender_routes: {wrong:?} is not an address or a domain"));
        }
        match self.routes.iter().chain(&self.sender_routes).find(|(_, hop)| !takes_mail(hop)) {
            Some((name, hop)) => {
                Err(format!("routes: {name}: {hop} is not smtp://HOST:PORT, smtps://HOST:PORT or smtp:/PATH"))
            }
            None => Ok(()),
        }
    }
}

fn takes_mail(hop: &Forward) -> bool {
    match hop {
        Forward::Server { scheme, .. } => matches!(scheme, Scheme::Smtp | Scheme::Smtps),
        hop => matches!(hop, Forward::SmtpSocket(_)),
    }
}

impl std::str::FromStr for Outward {
    type Err = String;

    fn from_str(text: &str) -> Result<Outward, String> {
        if text == "mx" {
            return Ok(Outward::World);
        }
        let hop = text.parse::<Forward>().ok().filter(takes_mail);
        hop.map(Outward::Hop).ok_or_else(|| "mx, smtp://HOST:PORT, smtps://HOST:PORT or smtp:/PATH".into())
    }
}

impl<'de> Deserialize<'de> for Outward {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Outward, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(|reason| de::Error::custom(format!("relay is {reason}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_goes_out_to_the_world_or_to_a_next_hop() {
        assert_eq!("mx".parse(), Ok(Outward::World));
        assert!(matches!("smtp://mail.example:25".parse(), Ok(Outward::Hop(_))));
        for wrong in ["", "lmtp://a:24", "store:", "discard:", "mx:25"] {
            assert!(wrong.parse::<Outward>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_would_send_nothing_is_refused() {
        let settings = |text: &str| toml::from_str::<QueueSettings>(text).map_err(|error| error.to_string());
        assert_eq!(settings("").unwrap().check(), Ok(()));
        for wrong in [
            "connections_max = 0",
            "port = 0",
            "retry_longest_seconds = 1",
            "routes = { 'a' = 'discard:' }",
            "sender_routes = { 'a' = 'discard:' }",
            "sender_routes = { '@a' = 'smtp://b:25' }",
            "tls_reports = 'x'",
            "dmarc_reports = 'x'",
            "feedback = 'a@b.test'",
            "feedback_from = ['b.test']",
            "relay_domains = ['*']",
            "relay_domains = ['.']",
            "relay_domains = ['a@b.test']",
        ] {
            assert!(settings(wrong).unwrap().check().is_err(), "{wrong}");
        }
        assert!(settings("unknown = 1").is_err());
    }
}
