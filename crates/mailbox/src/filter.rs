//! Filtering of a mail for one account: its script runs, and the outcome is a [`Plan`].
//!
//! Without a script a mail is kept; by default spam goes to the mailbox for that. What a gateway said of it is read from the
//! fields that it adds, the first of each kind: `X-Spam-Status`, `X-Spam-Flag`, `X-Sluice-Status`. Whoever forges them makes
//! spam of his own mail. A script that fails, or whose redirects would go in a ring, keeps the mail in the INBOX (RFC 5228,
//! section 2.10.6).

use std::sync::Arc;

use keep::header::fields;
use proto::imap::name;
use sieve::{Action, Host, Limits, Mail, Program, Seen, Setting, Vacation};
use store::{Flags, SpecialUse, State};

use crate::accounts::Recipient;
use crate::remembered::{Remembered, SEEN};

/// As much of a mail is looked at by scripts, in bytes.
pub(crate) const LOOKED_AT_BYTES_MAX: usize = 2 << 20;

/// Names the address whose script has redirected a mail: there it is not redirected again.
pub(crate) const REDIRECTED: &str = "X-Sieve-Redirected-From";

/// A mail that came so far is not sent on.
const RECEIVED_MAX: usize = 50;

/// Where a mail is stored, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub target: Target,
    pub flags: u64,
    pub keywords: Vec<String>,
    /// The header, where a script has edited it.
    pub header: Option<Arc<[u8]>>,
}

/// A mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// That of the address's detail if it is there, or the INBOX.
    Usual,
    /// The one for junk if there is one, or the INBOX.
    Junk,
    Inbox,
    Named {
        name: String,
        create: bool,
        /// A mailbox with this use is taken instead, if there is one.
        special_use: Option<String>,
    },
}

/// Actions on a mail for one account.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub places: Vec<Placement>,
    pub redirects: Vec<String>,
    pub vacation: Option<Vacation>,
    /// Mails to remember for `duplicate`.
    pub seen: Vec<Seen>,
    pub reject: Option<String>,
}

impl Plan {
    /// It is stored as without a script, but for spam.
    pub fn keep(target: Target) -> Plan {
        let place = Placement { target, flags: 0, keywords: Vec::new(), header: None };
        Plan { places: vec![place], ..Plan::default() }
    }
}

/// Verdict of a gateway, read from the fields that it adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub is_spam: bool,
    /// 50 where the score is what spam has, 100 at twice that; none if nobody looked.
    pub spam_percent: Option<u8>,
    /// As RFC 5235 counts.
    pub virus: u8,
}

impl Said {
    /// Reads the header of a mail. `is_inspected`: it came from a gateway that looks for viruses.
    pub fn of(header: &[u8], is_inspected: bool) -> Said {
        let mut said = Said { virus: u8::from(is_inspected), ..Said::default() };
        let (mut has_status, mut has_flag) = (false, false);
        for field in fields(header) {
            let Some(colon) = field.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = (field[..colon].trim_ascii_end(), String::from_utf8_lossy(&field[colon + 1..]));
            let begins =
                |word: &str| value.trim_start().get(..word.len()).is_some_and(|v| v.eq_ignore_ascii_case(word));
            if name.eq_ignore_ascii_case(b"x-spam-status") && !std::mem::replace(&mut has_status, true) {
                said.is_spam |= begins("yes");
                said.spam_percent = percent(&value).or(Some(if begins("yes") { 100 } else { 0 }));
            } else if name.eq_ignore_ascii_case(b"x-spam-flag") && !std::mem::replace(&mut has_flag, true) {
                said.is_spam |= begins("yes");
            } else if name.eq_ignore_ascii_case(b"x-sluice-status") && begins("found") {
                said.virus = 5;
            }
        }
        if said.is_spam {
            said.spam_percent = Some(said.spam_percent.unwrap_or(100).max(50));
        }
        said
    }
}

/// The score of a mail, as the first field of SpamAssassin's in its header has it.
pub(crate) fn score(header: &[u8]) -> Option<f64> {
    let mut fields =
        fields(header).filter_map(|field| field.split_at_checked(field.iter().position(|&byte| byte == b':')?));
    let (_, value) = fields.find(|(name, _)| name.trim_ascii_end().eq_ignore_ascii_case(b"x-spam-status"))?;
    number(&String::from_utf8_lossy(value), "score=")
}

fn number(value: &str, key: &str) -> Option<f64> {
    let (_, rest) = value.split_once(key)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && !"+-.".contains(letter)).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// `score=7.3 required=5.0`.
fn percent(value: &str) -> Option<u8> {
    let (score, required) = (number(value, "score=")?, number(value, "required=")?);
    // A cast of a float stays within the type.
    (required > 0.0).then(|| (score / required * 50.0).clamp(0.0, 100.0) as u8)
}

/// A mail for one account, as its script is told.
pub(crate) struct Case<'a> {
    /// Each runs if the one before it keeps the mail.
    pub programs: &'a [Arc<Program>],
    /// The sender of the envelope, empty if there is none.
    pub from: &'a str,
    /// The address that it came for.
    pub to: &'a str,
    pub recipient: &'a Recipient,
    /// 0: it has no mail yet.
    pub number: u32,
    pub said: Said,
    pub junk: bool,
    pub state: &'a State,
    pub hostname: &'a str,
    pub now: i64,
}

impl Case<'_> {
    /// Runs the scripts. What keeps the mail leaves it to the next one; what that does is done beside what was done before.
    pub fn plan(&self, mail: &Mail<'_>) -> Plan {
        let account = &self.recipient.account;
        let mut addresses = account.aliases.clone();
        addresses.push(account.name.clone());
        let mailboxes = Mailboxes { state: self.state, account: self.number, now: self.now };
        let setting = Setting {
            from: self.from,
            to: self.to,
            addresses: &addresses,
            now: self.now,
            zone: 0,
            spam_percent: self.said.spam_percent,
            virus: self.said.virus,
            hostname: self.hostname,
            host: &mailboxes,
            limits: Limits::default(),
        };
        let mut plan = Plan::default();
        for (at, program) in self.programs.iter().enumerate() {
            let outcome = sieve::run(program, mail, &setting);
            if let Some(failure) = outcome.failure {
                tracing::warn!(account = account.name, %failure, "a script failed, and the mail is kept in INBOX");
                return Plan::keep(Target::Inbox);
            }
            let is_kept = outcome.actions.iter().any(|action| matches!(action, Action::Keep { .. }));
            plan.seen.extend(outcome.seen);
            let goes_on = is_kept && at + 1 < self.programs.len();
            for action in outcome.actions {
                if !goes_on || !matches!(action, Action::Keep { .. }) {
                    self.add(action, &mut plan);
                }
            }
            if !goes_on {
                break;
            }
        }
        if plan.reject.is_some() {
            // Who is told that it was refused must not have it all the same.
            plan = Plan { reject: plan.reject, ..Plan::default() };
        }
        if !plan.redirects.is_empty() && self.is_looping(mail) {
            tracing::warn!(account = account.name, "a mail that was redirected before is kept in INBOX");
            plan.redirects.clear();
            if plan.places.is_empty() {
                plan.places = Plan::keep(Target::Inbox).places;
            }
        }
        plan
    }

    fn add(&self, action: Action, plan: &mut Plan) {
        let place = |target, names: Vec<String>, header| {
            let (flags, keywords) = flags(names);
            Placement { target, flags, keywords, header }
        };
        match action {
            Action::Keep { flags, is_implicit, header } => {
                plan.places.push(place(self.kept(is_implicit), flags, header))
            }
            Action::FileInto { mailbox, flags, create, special_use, header } => {
                let mailbox = canonical(&mailbox);
                let target = Target::Named { name: mailbox, create, special_use };
                plan.places.push(place(target, flags, header));
            }
            Action::Redirect { address } if plan.redirects.contains(&address) => {}
            Action::Redirect { address } => plan.redirects.push(address),
            Action::Discard => {}
            Action::Reject { reason, .. } => plan.reject = Some(reason),
            Action::Vacation(vacation) => match vacation.withheld {
                Some(why) => tracing::debug!(account = self.recipient.account.name, why, "vacation answer not sent"),
                None => plan.vacation = Some(vacation),
            },
        }
    }

    /// Where a mail is kept.
    fn kept(&self, is_implicit: bool) -> Target {
        match is_implicit {
            true if self.said.is_spam && self.junk => Target::Junk,
            true => Target::Usual,
            false => Target::Inbox,
        }
    }

    fn is_looping(&self, mail: &Mail<'_>) -> bool {
        let named = |name: &'static str| {
            sieve::View::fields(mail).iter().filter(move |field| field.name.eq_ignore_ascii_case(name))
        };
        named("received").count() > RECEIVED_MAX
            || named(REDIRECTED).any(|field| field.raw.trim().eq_ignore_ascii_case(self.to))
    }
}

/// System flags, and keywords as far as the store takes them.
fn flags(names: Vec<String>) -> (u64, Vec<String>) {
    let (mut bits, mut keywords) = (0, Vec::new());
    for name in names {
        match name.to_ascii_lowercase().as_str() {
            "\\seen" => bits |= Flags::SEEN,
            "\\answered" => bits |= Flags::ANSWERED,
            "\\flagged" => bits |= Flags::FLAGGED,
            "\\deleted" => bits |= Flags::DELETED,
            "\\draft" => bits |= Flags::DRAFT,
            _ if name.len() <= store::KEYWORD_BYTES_MAX && !name.starts_with('\\') => keywords.push(name),
            _ => {}
        }
    }
    (bits, keywords)
}

/// The bit of a special use; none if it is not known.
pub(crate) fn special_use(name: &str) -> Option<SpecialUse> {
    let at = SpecialUse::NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    Some(SpecialUse(1 << at))
}

/// The mailbox of an account that is for something.
pub(crate) fn with_use(state: &State, account: u32, special_use: SpecialUse) -> Option<u32> {
    let mut numbers = state.account(account)?.mailboxes.values().copied();
    numbers.find(|&number| state.mailbox(number).is_some_and(|mailbox| mailbox.special_use.0 & special_use.0 != 0))
}

/// The name of a mailbox as the store has it.
fn canonical(name: &str) -> String {
    String::from_utf8_lossy(&name::canonical(name.into())).into_owned()
}

/// A mailbox by its name, in which INBOX has any case.
pub(crate) fn named(state: &State, account: u32, name: &str) -> Option<u32> {
    state.mailbox_named(account, &name::canonical(name.into())).map(|(number, _)| number)
}

struct Mailboxes<'a> {
    state: &'a State,
    account: u32,
    now: i64,
}

impl Host for Mailboxes<'_> {
    fn has_mailbox(&self, name: &str) -> bool {
        named(self.state, self.account, name).is_some()
    }

    fn has_seen(&self, handle: &str, id: &str) -> bool {
        let account = self.state.account(self.account);
        account.is_some_and(|account| Remembered::of(account, SEEN, self.now).has(handle, id))
    }

    fn has_special_use(&self, mailbox: Option<&str>, name: &str) -> bool {
        let Some(wanted) = special_use(name) else { return false };
        match mailbox {
            None => with_use(self.state, self.account, wanted).is_some(),
            Some(mailbox) => named(self.state, self.account, mailbox)
                .and_then(|number| self.state.mailbox(number))
                .is_some_and(|mailbox| mailbox.special_use.0 & wanted.0 != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gateway_said_is_read_from_its_fields() {
        let said = |header: &str| {
            let Said { is_spam, spam_percent, virus } = Said::of(header.as_bytes(), false);
            (is_spam, spam_percent, virus)
        };
        assert_eq!(said("Subject: x\r\n\r\n"), (false, None, 0));
        assert_eq!(said("X-Spam-Status: No, score=-1.0 required=5.0\r\n\r\n"), (false, Some(0), 0));
        assert_eq!(said("X-Spam-Status: No, score=2.5 required=5.0\r\n\ttests=A\r\n\r\n"), (false, Some(25), 0));
        assert_eq!(said("X-Spam-Status: Yes, score=5.0 required=5.0\r\n\r\n"), (true, Some(50), 0));
        assert_eq!(said("X-Spam-Status: Yes, score=1e99 required=5.0\r\n\r\n"), (true, Some(50), 0));
        assert_eq!(said("x-spam-status: yes\r\n\r\n"), (true, Some(100), 0));
        assert_eq!(said("X-Spam-Flag: YES\r\n\r\n"), (true, Some(100), 0));
        // The gateway's own stands first.
        assert_eq!(said("X-Spam-Status: Yes, score=50 required=5\r\nX-Spam-Status: No\r\n\r\n"), (true, Some(100), 0));
        assert_eq!(said("X-Sluice-Status: found;\r\n\tEicar (virus)\r\n\r\n"), (false, None, 5));
        assert_eq!(Said::of(b"\r\n", true).virus, 1);
    }
}
