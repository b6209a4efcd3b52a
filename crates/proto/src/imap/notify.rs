//! NOTIFY (RFC 5465): of which mailboxes a client wants to be told what, without asking again.
//!
//! Bounds: those of a command, and 64 filters.

use alloc::vec::Vec;

use super::items::{FetchItem, fetch_item};
use super::name::{self, NOT_A_NAME};
use super::syntax::{Cursor, Wrong};

/// Filters of one command.
const GROUPS_MAX: usize = 64;

/// A NOTIFY SET command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// STATUS: the current state is sent first.
    pub status: bool,
    /// Event groups; the first that names a mailbox counts.
    pub groups: Vec<Group>,
}

/// Some mailboxes, and what of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Mailboxes of the group.
    pub filter: Filter,
    /// Events of the group.
    pub events: Events,
}

/// Mailboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the standard")]
pub enum Filter {
    /// The selected one; if it is `delayed`, what is gone is told where numbers may change.
    Selected {
        delayed: bool,
    },
    Inboxes,
    Personal,
    Subscribed,
    Subtree(Vec<Vec<u8>>),
    Mailboxes(Vec<Vec<u8>>),
}

/// Events to report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// New messages, and those that are gone.
    pub messages: bool,
    /// FETCH items reported of new messages.
    pub items: Vec<FetchItem>,
    /// Changes of flags.
    pub flags: bool,
    /// Mailboxes that are made, renamed or removed.
    pub names: bool,
    /// Subscriptions.
    pub subscriptions: bool,
    /// One is not known.
    pub is_foreign: bool,
}

/// `NONE`, or `SET [STATUS] (filter events) ...`.
pub(super) fn read(cursor: &mut Cursor<'_>, utf8: bool) -> Result<Option<Notify>, Wrong> {
    if cursor.eat_word("NONE") {
        return Ok(None);
    }
    if !cursor.eat_word("SET") {
        return Err("NOTIFY takes SET or NONE");
    }
    cursor.blank()?;
    let status = cursor.eat_word("STATUS");
    if status {
        cursor.blank()?;
    }
    let mut groups = Vec::from([group(cursor, utf8)?]);
    while !cursor.is_at_end() {
        cursor.blank()?;
        groups.push(group(cursor, utf8)?);
        if groups.len() > GROUPS_MAX {
            return Err("Too many filters");
        }
    }
    let selected = groups.iter().filter(|group| matches!(group.filter, Filter::Selected { .. })).count();
    if selected > 1 { Err("There is one selected mailbox") } else { Ok(Some(Notify { status, groups })) }
}

fn group(cursor: &mut Cursor<'_>, utf8: bool) -> Result<Group, Wrong> {
    cursor.expect(b'(', "Not a filter")?;
    let filter = match cursor.atom()?.as_str() {
        "SELECTED" => Filter::Selected { delayed: false },
        "SELECTED-DELAYED" => Filter::Selected { delayed: true },
        "INBOXES" => Filter::Inboxes,
        "PERSONAL" => Filter::Personal,
        "SUBSCRIBED" => Filter::Subscribed,
        "SUBTREE" => Filter::Subtree(names(cursor, utf8)?),
        "MAILBOXES" => Filter::Mailboxes(names(cursor, utf8)?),
        _ => return Err("Unknown filter"),
    };
    cursor.blank()?;
    let events = events(cursor)?;
    if !events.items.is_empty() && !matches!(filter, Filter::Selected { .. }) {
        return Err("Items are of the selected mailbox");
    }
    cursor.expect(b')', "Not a filter")?;
    Ok(Group { filter, events })
}

fn names(cursor: &mut Cursor<'_>, utf8: bool) -> Result<Vec<Vec<u8>>, Wrong> {
    cursor.blank()?;
    let one = |cursor: &mut Cursor<'_>| name::decode(&cursor.astring()?, utf8).ok_or(NOT_A_NAME);
    match cursor.peek() {
        Some(b'(') => cursor.list(false, one),
        _ => Ok(Vec::from([one(cursor)?])),
    }
}

fn events(cursor: &mut Cursor<'_>) -> Result<Events, Wrong> {
    let mut events = Events::default();
    if cursor.eat_word("NONE") {
        return Ok(events);
    }
    let (mut new, mut gone) = (false, false);
    cursor.list(false, |cursor| {
        match cursor.atom()?.as_str() {
            "MESSAGENEW" => {
                new = true;
                let mut ahead = cursor.clone();
                if ahead.eat(b' ') && ahead.peek() == Some(b'(') {
                    events.items = ahead.list(false, fetch_item)?;
                    *cursor = ahead;
                }
            }
            "MESSAGEEXPUNGE" => gone = true,
            "FLAGCHANGE" => events.flags = true,
            "MAILBOXNAME" => events.names = true,
            "SUBSCRIPTIONCHANGE" => events.subscriptions = true,
            _ => events.is_foreign = true,
        }
        Ok(())
    })?;
    events.messages = new;
    // RFC 5465, section 5.
    if new != gone || (events.flags && !new) {
        return Err("MessageNew and MessageExpunge go together, and FlagChange goes with them");
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::Piece;

    fn parse(text: &str) -> Result<Option<Notify>, Wrong> {
        let pieces = [Piece::Text(text.into())];
        read(&mut Cursor::new(&pieces), false)
    }

    #[test]
    fn filters_and_events_are_understood() {
        assert_eq!(parse("none"), Ok(None));
        let Ok(Some(Notify { status, groups })) = parse(
            "SET STATUS (selected (MessageNew (UID BODY.PEEK[HEADER.FIELDS (From)]) MessageExpunge)) \
             (subtree (inbox &AOQ-) (MailboxName)) (mailboxes x NONE)",
        ) else {
            panic!()
        };
        assert!(status && groups.len() == 3);
        assert_eq!((groups[0].events.items.len(), groups[0].events.messages), (2, true));
        assert_eq!(groups[1].filter, Filter::Subtree(Vec::from([b"INBOX".to_vec(), "ä".into()])));
        assert_eq!((groups[2].events.clone(), groups[1].events.names), (Events::default(), true));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "",
            "SET",
            "SET STATUS",
            "SET (inboxes)",
            "SET (inboxes ())",
            "SET (inboxes (MessageNew))",
            "SET (inboxes (FlagChange))",
            "SET (other (MailboxName))",
            "SET (personal (MessageNew (UID) MessageExpunge))",
            "SET (subtree (MailboxName))",
            "SET (selected NONE) (selected-delayed NONE)",
            "SET (inboxes (MailboxName)",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("SET (inboxes (AnnotationChange))").unwrap().unwrap().groups[0].events.is_foreign);
    }
}
