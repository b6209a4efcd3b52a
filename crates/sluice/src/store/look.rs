//! Requests of the commands that only read a store: `stat`, `ls`, `cat`, `check` and `export`.
//!
//! A request is a line of JSON, its answer is rows: objects of JSON. The rows of a store that is opened here and of one that
//! a server has open are made by the same code. Rows come from one [`State`], so what one request shows is of one moment.

use mailbox::{last_login, passkeys, second};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Error, Flags, Mailbox, Report, State, Usage};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "look", rename_all = "lowercase")]
pub enum Look {
    /// How full the store is: one row.
    Stat,
    /// All accounts, a row each.
    Accounts,
    /// The mailboxes of an account, a row each.
    Mailboxes { account: String },
    /// The messages of a mailbox, or of all mailboxes of an account: a row for each mailbox and, behind it, for each message.
    Messages { account: String, mailbox: Option<String> },
    /// One message of a mailbox.
    Message { account: String, mailbox: String, uid: u32 },
    /// The content of a message, by its number.
    Content { message: u64 },
    /// Every message is read: a row for each that is damaged, and one at the end.
    Check,
}

/// Rows, made one after the other.
pub type Rows<'s> = Box<dyn Iterator<Item = Value> + Send + 's>;

/// The rows of a listing; none for the requests that need more than the state.
///
/// # Errors
/// When there is no such account, mailbox or message.
pub fn rows<'s>(state: &'s State, look: &Look) -> Result<Option<Rows<'s>>, String> {
    Ok(Some(match look {
        Look::Stat | Look::Content { .. } | Look::Check => return Ok(None),
        Look::Accounts => Box::new(state.accounts().map(|(_, account)| {
            let last = last_login::noted(account);
            json!({
                "account": text(&account.name), "messages": account.used_messages, "bytes": account.used_bytes,
                "last_login": last.as_ref().map(|last| last.seconds), "door": last.map(|last| last.door),
                "has_second_step": second::is_set(account), "passkeys": passkeys::of(account).len(),
            })
        })),
        Look::Mailboxes { account } => Box::new(mailboxes(state, account, None)?.into_iter().map(heading)),
        Look::Messages { account, mailbox } => {
            let mailboxes = mailboxes(state, account, mailbox.as_deref())?.into_iter();
            Box::new(mailboxes.flat_map(|mailbox| std::iter::once(heading(mailbox)).chain(messages(state, mailbox, 0))))
        }
        Look::Message { account, mailbox, uid } => {
            let found = mailboxes(state, account, Some(mailbox))?;
            let mailbox = found.first().filter(|mailbox| mailbox.entry(*uid).is_some());
            let mailbox = mailbox.ok_or("there is no message with this UID")?;
            Box::new(messages(state, mailbox, *uid).take(1))
        }
    }))
}

fn mailboxes<'s>(state: &'s State, account: &str, name: Option<&str>) -> Result<Vec<&'s Mailbox>, String> {
    let (number, account) = state.account_named(account.as_bytes()).ok_or("there is no such account")?;
    if let Some(name) = name {
        let (_, mailbox) = state.mailbox_named(number, name.as_bytes()).ok_or("there is no such mailbox")?;
        return Ok(vec![mailbox]);
    }
    Ok(account.mailboxes.values().filter_map(|&mailbox| state.mailbox(mailbox).map(|mailbox| &**mailbox)).collect())
}

fn heading(mailbox: &Mailbox) -> Value {
    json!({
        "mailbox": text(&mailbox.name), "messages": mailbox.entries.len(), "unseen": mailbox.unseen,
        "bytes": mailbox.bytes, "uid_validity": mailbox.uid_validity, "uid_next": mailbox.uid_next,
        "highest_modseq": mailbox.highest_modseq,
    })
}

fn messages<'s>(state: &'s State, mailbox: &'s Mailbox, from: u32) -> impl Iterator<Item = Value> + Send + 's {
    mailbox.from(from).map(move |(uid, entry)| {
        let message = state.message(entry.message.get());
        let (size, id) = message.map_or((0, 0), |message| (message.size, message.id));
        let mut flags = flag_names(entry.flags);
        flags.extend(mailbox.keywords_of(entry.flags).map(str::to_owned));
        json!({
            "uid": uid, "message": entry.message.get(), "size": size, "date": entry.date, "id": format!("{id:032x}"),
            "bits": entry.flags.0, "flags": flags,
        })
    })
}

fn flag_names(flags: Flags) -> Vec<String> {
    let names = [
        (Flags::SEEN, "\\Seen"),
        (Flags::ANSWERED, "\\Answered"),
        (Flags::FLAGGED, "\\Flagged"),
        (Flags::DELETED, "\\Deleted"),
        (Flags::DRAFT, "\\Draft"),
    ];
    names.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, name)| (*name).to_owned()).collect()
}

/// The row of [`Look::Stat`]; `report` is what was found when the store was opened here, and none for a server.
pub fn stat(state: &State, usage: &Usage, report: Option<&Report>) -> Value {
    let links: u64 = state.accounts().map(|(_, account)| account.used_messages).sum();
    let delivered: u64 = state.accounts().map(|(_, account)| account.used_bytes).sum();
    json!({
        "total_bytes": usage.total_bytes, "free_bytes": usage.free_bytes, "live_bytes": usage.live_bytes,
        "checkpoint_bytes": usage.checkpoint_bytes, "messages": usage.messages, "links": links,
        "delivered_bytes": delivered, "accounts": state.accounts().count(), "mailboxes": state.mailboxes().count(),
        "modseq": state.commits, "is_served": report.is_none(),
        "was_closed": report.map(|report| report.was_closed), "replayed": report.map(|report| report.replayed),
    })
}

/// The row of a damaged message: the error, and the mailboxes that have the message.
pub fn damaged(state: &State, message: u64, error: &Error) -> Value {
    let place = |(mailbox, uid): (u32, u32)| {
        let mailbox = state.mailbox(mailbox)?;
        let account = state.account(mailbox.account).map(|account| text(&account.name)).unwrap_or_default();
        Some(json!({ "account": account, "mailbox": text(&mailbox.name), "uid": uid }))
    };
    let places: Vec<Value> = state.places_of(message).filter_map(place).collect();
    json!({ "damaged": error.to_string(), "places": places })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
