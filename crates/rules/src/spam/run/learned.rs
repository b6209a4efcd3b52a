//! Metadata to learn of a mail besides its views.

use core::cell::RefCell;

use super::engine::Engine;
use crate::spam::eval::Context;
use crate::spam::header::{Fields, Path};
use crate::spam::message::Message;
use crate::spam::search::Budget;

/// Metadata of a mail besides its fields.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// Names in lower case with their values: the relays on its way. The domains of its senders, which SpamAssassin has there
    /// when it asks and not when it learns, are left out.
    pub fields: Vec<(&'static str, Vec<u8>)>,
    /// Whether the configuration says that nothing is learned of it, and nothing asked (`bayes_ignore_from`, `bayes_ignore_to`).
    pub is_ignored: bool,
}

impl Engine {
    /// Metadata of a mail besides its fields.
    pub fn metadata(&self, mail: &Message) -> Metadata {
        let path = Path::read(mail, &self.settings.networks, self.options.limits.received_max);
        let sender_field = self.settings.text("envelope_sender_header");
        let sender_field = sender_field.and_then(|name| core::str::from_utf8(name).ok());
        let fields = Fields::new(mail, &path, &self.settings.reading, sender_field, &self.options.limits);
        let found = vec![
            ("x-spam-relays-trusted", Path::text(&path.trusted)),
            ("x-spam-relays-untrusted", Path::text(&path.untrusted)),
            ("x-spam-relays-internal", Path::text(&path.internal)),
            ("x-spam-relays-external", Path::text(&path.external)),
        ];
        let budget = RefCell::new(Budget::new(&self.options.limits));
        let context = Context::new(mail, &fields, &path, &self.settings, 0, &budget);
        let has = |list: &str, addresses: &[Box<[u8]>]| {
            self.settings.list(list).is_some_and(|list| addresses.iter().any(|address| list.has(address)))
        };
        let is_ignored = has("bayes_ignore_from", context.senders()) || has("bayes_ignore_to", context.recipients_of());
        Metadata { fields: found, is_ignored }
    }
}
