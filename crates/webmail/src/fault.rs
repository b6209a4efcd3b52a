//! Faults in what a user has typed: each with a sentence in the user's language.

use alloc::string::String;

use crate::language::{Words, fill};

/// A fault in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No address, as it was typed.
    Address(String),
    /// More recipients than this.
    Recipients(usize),
    NoRecipient,
    /// An address of somebody else as the sender.
    Sender,
    /// Files that are too large together.
    Files,
    /// A file of another message, which is not where it was.
    FileGone,
    /// More addresses of a contact than this.
    ContactAddresses(usize),
    /// A contact without name and address.
    ContactEmpty,
    /// More contacts, or more bytes of them, than this.
    ContactsFull {
        contacts: usize,
        bytes: usize,
    },
    /// A file without a contact.
    NoCards,
    /// A rule without a test.
    RuleEmpty,
    /// A rule that does nothing.
    RuleNothing,
    /// A rule that forwards to the account itself.
    RuleOwn,
    /// A rule with a folder that does not exist.
    RuleFolder,
    /// A rule that forwards to no single address.
    RuleForward,
    /// More rules than this.
    Rules(usize),
    /// A script of more bytes than this.
    Script(usize),
    /// No day.
    Day,
    /// A last day before the first.
    Days,
    /// An answer without a text.
    VacationEmpty,
}

impl Fault {
    /// A sentence for the user.
    pub fn text(&self, words: &Words) -> String {
        let faults = &words.faults;
        let numbered = |text, number| fill(text, &[&words.number(number)]);
        match self {
            Fault::Address(typed) => fill(faults.address, &[typed]),
            Fault::FileGone => faults.file_gone.into(),
            Fault::Recipients(most) => numbered(faults.recipients, *most),
            Fault::NoRecipient => faults.no_recipient.into(),
            Fault::Sender => faults.sender.into(),
            Fault::Files => faults.files.into(),
            Fault::ContactAddresses(most) => numbered(faults.contact_addresses, *most),
            Fault::ContactEmpty => faults.contact_empty.into(),
            Fault::ContactsFull { contacts, bytes } => {
                fill(faults.contacts_full, &[&words.number(*contacts), &words.size(*bytes as u64)])
            }
            Fault::NoCards => faults.no_cards.into(),
            Fault::RuleEmpty => faults.rule_empty.into(),
            Fault::RuleNothing => faults.rule_nothing.into(),
            Fault::RuleOwn => faults.rule_own.into(),
            Fault::RuleFolder => words.common.no_such_page.into(),
            Fault::RuleForward => faults.rule_forward.into(),
            Fault::Rules(most) => numbered(faults.rules, *most),
            Fault::Script(bytes_max) => fill(faults.script, &[&words.size(*bytes_max as u64)]),
            Fault::Day => faults.day.into(),
            Fault::Days => faults.days.into(),
            Fault::VacationEmpty => faults.vacation_empty.into(),
        }
    }
}
