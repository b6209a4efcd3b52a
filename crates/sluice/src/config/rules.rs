//! Whether rules and attachments go together: `[[attachment]]`, and what listeners and their rules name of it.

use edge::settings::{Attachment, Listener};
use flow::Way;

use super::Config;

impl Config {
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
                    "attachment {name:?}: a bypass needs types, since the sender chooses names and media types"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn check_rules(&self, listener: &Listener) -> Result<(), String> {
        let ruled = listener.rules().iter().filter_map(|rule| rule.attachments.as_ref());
        let named = ruled.chain([&listener.content.attachments]);
        for name in named.flatten() {
            if !self.attachments.iter().any(|attachment| attachment.name == *name) {
                return Err(format!("there is no [[attachment]] with the name {name:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use edge::settings::{Listener, Parties};
    use flow::Action;

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
        assert_eq!(listener.under(Some(0)).policy.on_encrypted, Action::Reject);
        assert_eq!(listener.under(Some(1)).message_bytes_max, 10);
        let third = listener.under(Some(2));
        assert_eq!((third.policy.on_infected, third.message_bytes_max), (Action::Quarantine, 1000));
        assert_eq!(third.ways(&config.attachments)[0].names.len(), 2);
        assert!(listener.under(None).ways(&config.attachments).is_empty());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (head, settings, wanted) in [
            ("", "attachments=['exe']", "no [[attachment]]"),
            ("", "[[listener.rule]]\nattachments=['exe']", "no [[attachment]]"),
            ("", "[[listener.rule]]\non_infected='quarantine'", "no folder is set"),
            ("", "[[listener.rule]]\nclient=['10.0.0.0/99']", "not a network"),
            ("[[attachment]]\nname='a'\nnames=['*.jpg']\nway='bypass'\n", "", "needs types"),
            ("[[attachment]]\nname='a'\ntypes=['jpg']\nway='scan'\n", "", "is not a type"),
            ("[[attachment]]\nname='a'\nway='eat'\n", "", "is not a way"),
            ("[[attachment]]\nname='a b'\nway='scan'\n", "", "a name is"),
        ] {
            let refusal = parse(head, settings).unwrap_err();
            assert!(refusal.contains(wanted), "{refusal}");
        }
    }
}
