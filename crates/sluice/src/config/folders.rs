//! The folders of the quarantine.

use std::path::Path;

use super::Config;

impl Config {
    /// The folders that listeners put messages into.
    pub fn quarantines(&self) -> impl Iterator<Item = &Path> {
        self.listeners.iter().filter_map(|listener| listener.content.quarantine.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learners_are_named_by_their_paths() {
        let parse = |train: &str| Config::parse(&format!("[quarantine.train]\n{train}"), "test");
        assert!(parse("spam = ['/usr/bin/rspamc', 'learn_spam']").is_ok());
        assert!(parse("ham = ['rspamc learn_ham']").unwrap_err().to_string().contains("whole path"));
        assert!(parse("seconds_max = 0").is_err());
    }
}
