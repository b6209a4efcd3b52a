//! Whether what is said of who sends mails goes together: `[authentication]`, and what listeners and their rules say in its place.

use edge::settings::Listener;

use super::Config;

impl Config {
    pub(super) fn check_authentication(&self, listener: &Listener) -> Result<(), String> {
        let global = self.authentication.as_ref();
        let is_ruled = listener.rules().iter().any(|rule| rule.authentication.is_some());
        if (is_ruled || listener.content.authentication.is_some()) && global.is_none() {
            return Err("mails are authenticated where there is a table [authentication]".into());
        }
        let needs_folder = listener.content.quarantine.is_none() && !listener.protocol().answers();
        match needs_folder && listener.quarantines_forged(global) {
            true => Err("forged mail is to be quarantined, but no folder is set: quarantine = \"PATH\"".into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: &str = "[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:1'\nforward = 'discard:'\n";
    const DNS: &str = "hostname = 'mx.test'\n[dns]\nservers = ['192.0.2.53']\n";

    #[test]
    fn a_listener_says_what_holds_for_it_and_the_host_lends_its_name() {
        let text = format!("{DNS}[authentication]\n{LISTENER}authentication = {{ on_dmarc_reject = 'reject' }}\n");
        let config = Config::parse(&text, "test").unwrap();
        let listener = &config.listeners[0];
        let own = listener.authenticates(&listener.content, config.authentication.as_ref()).unwrap();
        assert_eq!((&*own.authserv_id, own.on_dmarc_reject), ("mx.test", flow::Action::Reject));
        assert!(listener.authenticates(&listener.content, None).is_none());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let imap = LISTENER.replace("smtp", "imap").replace("discard:", "imap://a");
        for (text, wanted) in [
            (format!("{LISTENER}[listener.authentication]\nheader = false"), "where there is a table [authentication]"),
            (format!("{DNS}[authentication]\non_spf_fail = 'quarantine'\n{LISTENER}"), "no folder is set"),
            (format!("{DNS}[authentication]\nwait_seconds = 0\n{LISTENER}"), "from 1 to 60"),
            (format!("{DNS}query_ms = 1\n[authentication]\n{LISTENER}"), "from 100 to 30000"),
            (
                format!("{DNS}[authentication]\n{imap}[listener.authentication]\nheader = false"),
                "authenticated with smtp",
            ),
            (format!("[dns]\nservers = ['x']\n{LISTENER}"), "test:2:11: \"x\" is not ADDRESS"),
        ] {
            let refusal = Config::parse(&text, "test").unwrap_err().to_string();
            assert!(refusal.contains(wanted), "{refusal}");
        }
    }
}
