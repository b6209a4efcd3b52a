//! Checks `[spam]` and its overrides in listeners and rules for contradictions.

use std::path::PathBuf;

use edge::settings::{FuzzySettings, Listener};
use inspect::RuleFile;

use super::Config;
use crate::config::rule_files::{self, Purpose};

impl Config {
    pub(super) fn check_spam(&self, listener: &Listener) -> Result<(), String> {
        let is_set = listener.content.spam.is_some() || listener.rules().iter().any(|rule| rule.spam.is_some());
        if is_set && self.spam.is_none() {
            return Err("mails are scored where there is a table [spam]".into());
        }
        let keeps = listener.quarantines_spam(self.spam.as_ref());
        if listener.protocol().tells_scores() && self.spam.is_none() {
            return Err("mails are scored where there is a table [spam]".into());
        }
        let has_ledger = self.spam.as_ref().is_some_and(|spam| spam.bayes.is_some());
        if listener.greylists(self.spam.as_ref()) && !has_ledger {
            return Err("spam.greylist needs spam.bayes.ledger, the folder that its keys are kept in".into());
        }
        if self.spam.as_ref().is_some_and(|spam| spam.reputation.is_some()) && !has_ledger {
            return Err("spam.reputation needs spam.bayes.ledger, the folder that it is kept in".into());
        }
        if self.spam.as_ref().is_some_and(|spam| spam.fuzzy.is_some()) && !has_ledger {
            return Err("spam.fuzzy needs spam.bayes.ledger, the folder that reports are kept in".into());
        }
        if keeps && listener.content.quarantine.is_none() && !listener.protocol().answers() {
            return Err("spam is to be quarantined, but no folder is set: quarantine = \"PATH\"".into());
        }
        Ok(())
    }

    /// Whether rules that mails are scored with ask the DNS.
    pub fn asks_network(&self) -> bool {
        self.spam.as_ref().is_some_and(|spam| spam.network) && self.rule_folders().is_some()
    }

    /// Whether inspections ask the DNS.
    pub fn asks_dns(&self) -> bool {
        self.authentication.is_some() || self.asks_network()
    }

    /// Rules from the configuration, in addition to files.
    pub fn more_rules(&self) -> Vec<RuleFile> {
        let spam = self.spam.as_ref();
        let file = |name: &str, text: String| RuleFile { name: name.into(), bytes: text.into_bytes() };
        let reputation = spam.and_then(|spam| spam.reputation).map(|_| file("[spam.reputation]", REPUTATION.into()));
        let fuzzy = spam.and_then(|spam| spam.fuzzy).map(|fuzzy| file("[spam.fuzzy]", fuzzy_rules(&fuzzy)));
        reputation.into_iter().chain(fuzzy).collect()
    }

    /// Purpose for which rules are read.
    pub fn rule_purpose(&self) -> Purpose<'_> {
        let spam = self.spam.as_ref();
        Purpose {
            network: self.asks_network(),
            bayes: spam.is_some_and(|spam| spam.bayes.is_some()),
            more: self.more_rules(),
            host: &self.hostname,
        }
    }

    /// The folders of the rules that mails are scored with; none where no mail is scored, and no folder where none is named and
    /// SpamAssassin's are not here.
    pub fn rule_folders(&self) -> Option<Vec<PathBuf>> {
        let is_scored = |listener: &Listener| listener.protocol().is_scored();
        let spam = self.spam.as_ref().filter(|_| self.listeners.iter().any(is_scored))?;
        Some(spam.rules.clone().unwrap_or_else(|| {
            let mut folders = rule_files::standard();
            if !folders.first().is_some_and(|rules| rules.is_dir()) {
                folders.clear();
            }
            folders.retain(|folder| folder.is_dir());
            folders
        }))
    }
}

/// The rule that moves scores.
const REPUTATION: &str = "loadplugin Mail::SpamAssassin::Plugin::TxRep\nuse_txrep 1\n\
                          header TXREP eval:check_senders_reputation()\n\
                          describe TXREP Score normalizing based on sender's reputation\n\
                          tflags TXREP userconf noautolearn\npriority TXREP 1000\n";

/// Rules about mails that are like those that were reported.
fn fuzzy_rules(fuzzy: &FuzzySettings) -> String {
    let FuzzySettings { denied, probable, attachment, .. } = fuzzy;
    format!(
        "loadplugin Mail::SpamAssassin::Plugin::FuzzyReports\n\
         body SLUICE_FUZZY_DENIED eval:check_fuzzy('0.75')\nscore SLUICE_FUZZY_DENIED {denied}\n\
         describe SLUICE_FUZZY_DENIED Nearly the same as a mail that was reported\n\
         body SLUICE_FUZZY_PROB eval:check_fuzzy('0.4', '0.75')\nscore SLUICE_FUZZY_PROB {probable}\n\
         describe SLUICE_FUZZY_PROB Much like a mail that was reported\n\
         body SLUICE_FUZZY_ATTACHMENT eval:check_fuzzy_attachment()\nscore SLUICE_FUZZY_ATTACHMENT {attachment}\n\
         describe SLUICE_FUZZY_ATTACHMENT An attachment that was reported\n\
         tflags SLUICE_FUZZY_DENIED noautolearn\ntflags SLUICE_FUZZY_PROB noautolearn\n\
         tflags SLUICE_FUZZY_ATTACHMENT noautolearn\n"
    )
}

#[cfg(test)]
mod tests {
    use flow::Points;

    use super::*;

    const LISTENER: &str = "[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:1'\nforward = 'discard:'\n";

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn a_listener_and_its_rules_say_what_holds_for_them() {
        let rule = "[[listener.rule]]\nrecipient = ['a@*']\nspam = { required = 3 }\n";
        let text = format!("[spam]\nrequired = 6\nrules = ['/r']\n{LISTENER}spam = {{ reject = 20 }}\n{rule}");
        let config = parse(&text).unwrap();
        let of = |rule| config.listeners[0].under(rule).scores(config.spam.as_ref()).unwrap().scoring;
        assert_eq!((of(None).required, of(None).reject), (Some(Points(6_000)), Some(Points(20_000))));
        assert_eq!((of(Some(0)).required, of(Some(0)).reject), (Some(Points(3_000)), Some(Points(20_000))));
        assert_eq!(config.rule_folders(), Some(vec!["/r".into()]));
        assert_eq!(parse(LISTENER).unwrap().rule_folders(), None);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let imap = LISTENER.replace("smtp", "imap").replace("discard:", "imap://a");
        for (text, wanted) in [
            (format!("{LISTENER}[listener.spam]\nreject = 20"), "where there is a table [spam]"),
            (format!("[spam]\nquarantine = 8\n{LISTENER}"), "no folder is set"),
            (format!("[spam]\n{LISTENER}[[listener.rule]]\nspam = {{ quarantine = 8 }}"), "no folder is set"),
            (format!("[spam]\n{imap}[listener.spam]\nreject = 8"), "mails are scored with smtp"),
            (format!("[spam]\nreject = 1e6\n{LISTENER}"), "test:2:10: 1000000 is not a score"),
            (format!("[spam]\n{LISTENER}spam = {{ rules = [] }}"), "unknown field `rules`"),
            (format!("[spam]\ngreylist = 3\n{LISTENER}"), "spam.bayes.ledger"),
            (format!("[spam]\n{LISTENER}[[listener.rule]]\nspam = {{ greylist = 3 }}"), "spam.bayes.ledger"),
            (format!("[spam.reputation]\n{LISTENER}"), "spam.bayes.ledger"),
            (format!("[spam.bayes]\nledger = '/l'\n[spam.reputation]\nkeep_days = 0\n{LISTENER}"), "at least 1"),
            (format!("[spam.fuzzy]\n{LISTENER}"), "spam.bayes.ledger"),
            (format!("[spam.bayes]\nledger = '/l'\n[spam.fuzzy]\ndenied = -1\n{LISTENER}"), "from 0 to 10000"),
            (format!("[spam]\ngreylist_seconds = 86401\n{LISTENER}"), "at most 86400"),
            (format!("[spam]\nwait_seconds = 0\n{LISTENER}"), "from 1 to 60"),
            (format!("[dns]\nquery_ms = 1\n[spam]\nnetwork = true\n{LISTENER}"), "from 100 to 30000"),
        ] {
            let refusal = parse(&text).unwrap_err();
            assert!(refusal.contains(wanted), "{refusal}");
        }
        assert!(parse(&format!("[spam]\nquarantine = 8\n{imap}")).is_ok(), "nothing is scored there");
    }
}
