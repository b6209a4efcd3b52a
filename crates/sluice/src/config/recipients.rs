//! Whether `[[recipients]]` and the listeners that name them go together.

use edge::settings::{Asks, Listener};

use super::Config;

impl Config {
    pub(super) fn check_lookups(&self) -> Result<(), String> {
        for (index, table) in self.lookups.iter().enumerate() {
            table.check().map_err(|reason| format!("lookup {:?}: {reason}", table.name))?;
            if self.lookups[..index].iter().any(|other| other.name == table.name) {
                return Err(format!("lookup {:?}: the name is used twice", table.name));
            }
        }
        let recipients = self.recipients.iter().flat_map(|table| &table.lookups);
        let store = self.store.iter().flat_map(|store| &store.lookups);
        let web = self.web.iter().flat_map(|web| &web.lookups);
        match recipients.chain(store).chain(web).find(|name| !self.lookups.iter().any(|table| table.name == **name)) {
            Some(name) => Err(format!("there is no [[lookup]] with the name {name:?}")),
            None => Ok(()),
        }
    }

    pub(super) fn check_recipients(&self) -> Result<(), String> {
        for (index, table) in self.recipients.iter().enumerate() {
            let place = |reason| format!("recipients {:?}: {reason}", table.name);
            table.check().map_err(place)?;
            if self.recipients[..index].iter().any(|other| other.name == table.name) {
                return Err(place("the name is used twice".into()));
            }
        }
        Ok(())
    }

    pub(super) fn check_recipients_of(&self, listener: &Listener) -> Result<(), String> {
        for name in listener.smtp().into_iter().flat_map(|own| &own.recipients) {
            let Some(table) = self.recipients.iter().find(|table| table.name == *name) else {
                return Err(format!("there are no [[recipients]] with the name {name:?}"));
            };
            let asks = table.call_ahead.as_ref().is_some_and(|call_ahead| call_ahead.server == Asks::Forward);
            if asks && !listener.hop.forward.asks_for_recipients() {
                return Err(format!("{} cannot be asked for recipients, as {name:?} would do", listener.hop.forward));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(table: &str, listener: &str) -> String {
        let door = "[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\n";
        let text = format!("[[recipients]]\n{table}\n{door}{listener}");
        Config::parse(&text, "test").map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn tables_and_listeners_have_to_fit() {
        assert_eq!(refusal("name='a'\nfiles=['x']", "recipients=['a']"), "");
        for (table, listener, wanted) in [
            ("name='a'", "", "names no table"),
            ("name='a b'\nfiles=['x']", "", "a name is"),
            ("files=['x']", "", "missing field `name`"),
            ("name='a'\nfile=['x']", "", "unknown field `file`"),
            ("name='a'\nfiles=['x']\ndomains=['a@b']", "", "no domain"),
            ("name='a'\nfiles=['x']\ndelimiter='@'", "", "cannot end"),
            ("name='a'\nfiles=['x']\n[[recipients]]\nname='a'\nfiles=['x']", "", "used twice"),
            ("name='a'\nfiles=['x']", "recipients=['b']", "no [[recipients]]"),
            ("name='a'\ncall_ahead={}", "recipients=['a']", "discard: cannot be asked"),
            ("name='a'\ncall_ahead={server='maildir:x'}", "", "cannot be asked"),
            ("name='a'\ncall_ahead={seconds_max=0}", "", "a limit of 0"),
        ] {
            let refusal = refusal(table, listener);
            assert!(refusal.contains(wanted), "{wanted}: {refusal}");
        }
    }
}
