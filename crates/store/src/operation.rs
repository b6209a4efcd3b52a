//! Operations, the parts of a transaction, and their form in a record.
//!
//! They are logical and give the same result whenever they are applied to the same state, so replay is what was done.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::codec::{Malformed, Source, put, put_bytes};
use crate::state::{
    ANNOTATION_BYTES_MAX, ANNOTATION_NAME_BYTES_MAX, KEYWORD_BYTES_MAX, KEYWORDS_MAX, MESSAGE_BYTES_MAX, Message,
    NAME_BYTES_MAX, NOTE_BYTES_MAX, Place, Quota, SpecialUse,
};

/// A set of UIDs: runs in ascending order that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uids(Vec<(u32, u32)>);

impl Uids {
    /// Every UID.
    pub fn all() -> Self {
        Uids(Vec::from([(1, u32::MAX)]))
    }

    /// Returns whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs: the first and the last of each.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// Whether a UID is among them.
    pub fn contains(&self, uid: u32) -> bool {
        let at = self.0.partition_point(|&(_, last)| last < uid);
        self.0.get(at).is_some_and(|&(first, _)| first <= uid)
    }
}

impl FromIterator<(u32, u32)> for Uids {
    /// From runs in any order, which may overlap.
    fn from_iter<T: IntoIterator<Item = (u32, u32)>>(runs: T) -> Self {
        let mut runs: Vec<_> = runs.into_iter().filter(|&(first, last)| first != 0 && first <= last).collect();
        runs.sort_unstable();
        runs.dedup_by(|next, run| {
            let joins = next.0 <= run.1.saturating_add(1);
            if joins {
                run.1 = run.1.max(next.1);
            }
            joins
        });
        Uids(runs)
    }
}

impl FromIterator<u32> for Uids {
    fn from_iter<T: IntoIterator<Item = u32>>(uids: T) -> Self {
        uids.into_iter().map(|uid| (uid, uid)).collect()
    }
}

/// Change of flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Change {
    Add,
    Remove,
    Replace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    AddAccount {
        number: u32,
        name: Box<[u8]>,
        quota: Quota,
    },
    SetQuota {
        account: u32,
        quota: Quota,
    },
    RemoveAccount {
        account: u32,
    },
    AddMailbox {
        number: u32,
        account: u32,
        name: Box<[u8]>,
        special_use: SpecialUse,
    },
    Rename {
        mailbox: u32,
        name: Box<[u8]>,
    },
    RemoveMailbox {
        mailbox: u32,
    },
    Subscribe {
        account: u32,
        name: Box<[u8]>,
        subscribed: bool,
    },
    SetSpecialUse {
        mailbox: u32,
        special_use: SpecialUse,
    },
    AddMessage {
        number: u64,
        message: Message,
    },
    Deliver(Delivery),
    Store {
        mailbox: u32,
        uids: Uids,
        change: Change,
        flags: u64,
        keywords: Vec<String>,
    },
    Expunge {
        mailbox: u32,
        uids: Uids,
    },
    Copy {
        from: u32,
        to: u32,
        uids: Uids,
        first_uid: u32,
        saved: i64,
        moved: bool,
    },
    Relocate {
        number: u64,
        place: Place,
        digest: u64,
    },
    /// Notes something of an account, or with a number of one of its mailboxes; without a value it is forgotten.
    Annotate {
        account: u32,
        mailbox: u32,
        name: Box<[u8]>,
        value: Option<Box<[u8]>>,
    },
    /// Notes something of a message in a mailbox; without a value it is forgotten.
    Note {
        mailbox: u32,
        uid: u32,
        value: Option<Box<[u8]>>,
    },
    /// Give all mailboxes a new UIDVALIDITY: after a salvage UIDs that clients have seen may be missing.
    Renumber,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub mailbox: u32,
    pub uid: u32,
    pub message: u64,
    pub date: i64,
    pub saved: i64,
    pub flags: u64,
    pub keywords: Vec<String>,
}

impl Operation {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Operation::AddAccount { number, name, quota } => {
                numbers(out, &[0, u64::from(*number)]);
                put_bytes(out, name);
                numbers(out, &[quota.bytes, quota.messages]);
            }
            Operation::SetQuota { account, quota } => {
                numbers(out, &[1, u64::from(*account), quota.bytes, quota.messages]);
            }
            Operation::RemoveAccount { account } => numbers(out, &[2, u64::from(*account)]),
            Operation::AddMailbox { number, account, name, special_use } => {
                numbers(out, &[3, u64::from(*number), u64::from(*account), u64::from(special_use.0)]);
                put_bytes(out, name);
            }
            Operation::Rename { mailbox, name } => {
                numbers(out, &[4, u64::from(*mailbox)]);
                put_bytes(out, name);
            }
            Operation::RemoveMailbox { mailbox } => numbers(out, &[5, u64::from(*mailbox)]),
            Operation::Subscribe { account, name, subscribed } => {
                numbers(out, &[6, u64::from(*account), u64::from(*subscribed)]);
                put_bytes(out, name);
            }
            Operation::SetSpecialUse { mailbox, special_use } => {
                numbers(out, &[7, u64::from(*mailbox), u64::from(special_use.0)]);
            }
            Operation::AddMessage { number, message } => {
                numbers(out, &[8, *number]);
                put_message(out, message);
            }
            Operation::Deliver(delivery) => {
                numbers(out, &[9, u64::from(delivery.mailbox), u64::from(delivery.uid), delivery.message]);
                numbers(out, &[signed(delivery.date), signed(delivery.saved), delivery.flags]);
                put_keywords(out, &delivery.keywords);
            }
            Operation::Store { mailbox, uids, change, flags, keywords } => {
                numbers(out, &[10, u64::from(*mailbox), *change as u64, *flags]);
                put_uids(out, uids);
                put_keywords(out, keywords);
            }
            Operation::Expunge { mailbox, uids } => {
                numbers(out, &[11, u64::from(*mailbox)]);
                put_uids(out, uids);
            }
            Operation::Copy { from, to, uids, first_uid, saved, moved } => {
                numbers(out, &[12, u64::from(*from), u64::from(*to), u64::from(*first_uid)]);
                numbers(out, &[signed(*saved), u64::from(*moved)]);
                put_uids(out, uids);
            }
            Operation::Relocate { number, place, digest } => {
                numbers(out, &[13, *number, *digest]);
                put_place(out, place);
            }
            Operation::Renumber => put(out, 14),
            Operation::Annotate { account, mailbox, name, value } => {
                numbers(out, &[15, u64::from(*account), u64::from(*mailbox), u64::from(value.is_some())]);
                put_bytes(out, name);
                value.iter().for_each(|value| put_bytes(out, value));
            }
            Operation::Note { mailbox, uid, value } => {
                numbers(out, &[16, u64::from(*mailbox), u64::from(*uid), u64::from(value.is_some())]);
                value.iter().for_each(|value| put_bytes(out, value));
            }
        }
    }

    pub fn decode(source: &mut impl Source) -> Result<Self, Malformed> {
        Ok(match source.number()? {
            0 => Operation::AddAccount { number: source.u32()?, name: name(source)?, quota: quota(source)? },
            1 => Operation::SetQuota { account: source.u32()?, quota: quota(source)? },
            2 => Operation::RemoveAccount { account: source.u32()? },
            3 => {
                let (number, account, special_use) = (source.u32()?, source.u32()?, special_use(source)?);
                Operation::AddMailbox { number, account, name: name(source)?, special_use }
            }
            4 => Operation::Rename { mailbox: source.u32()?, name: name(source)? },
            5 => Operation::RemoveMailbox { mailbox: source.u32()? },
            6 => {
                let (account, subscribed) = (source.u32()?, flag(source)?);
                Operation::Subscribe { account, name: name(source)?, subscribed }
            }
            7 => Operation::SetSpecialUse { mailbox: source.u32()?, special_use: special_use(source)? },
            8 => Operation::AddMessage { number: source.number()?, message: message(source)? },
            9 => Operation::Deliver(Delivery {
                mailbox: source.u32()?,
                uid: source.u32()?,
                message: source.number()?,
                date: unsigned(source.number()?),
                saved: unsigned(source.number()?),
                flags: source.number()?,
                keywords: keywords(source)?,
            }),
            10 => {
                let (mailbox, change, flags) = (source.u32()?, source.number()?, source.number()?);
                let change = match change {
                    0 => Change::Add,
                    1 => Change::Remove,
                    2 => Change::Replace,
                    _ => return Err(Malformed),
                };
                Operation::Store { mailbox, change, flags, uids: uids(source)?, keywords: keywords(source)? }
            }
            11 => Operation::Expunge { mailbox: source.u32()?, uids: uids(source)? },
            12 => Operation::Copy {
                from: source.u32()?,
                to: source.u32()?,
                first_uid: source.u32()?,
                saved: unsigned(source.number()?),
                moved: flag(source)?,
                uids: uids(source)?,
            },
            13 => {
                let (number, digest) = (source.number()?, source.number()?);
                Operation::Relocate { number, digest, place: place(source)? }
            }
            14 => Operation::Renumber,
            15 => {
                let (account, mailbox, has_value) = (source.u32()?, source.u32()?, flag(source)?);
                let name = source.name(ANNOTATION_NAME_BYTES_MAX)?.into_boxed_slice();
                let value = has_value.then(|| source.name(ANNOTATION_BYTES_MAX).map(Vec::into_boxed_slice));
                Operation::Annotate { account, mailbox, name, value: value.transpose()? }
            }
            16 => {
                let (mailbox, uid, has_value) = (source.u32()?, source.u32()?, flag(source)?);
                let value = has_value.then(|| source.name(NOTE_BYTES_MAX).map(Vec::into_boxed_slice));
                Operation::Note { mailbox, uid, value: value.transpose()? }
            }
            _ => return Err(Malformed),
        })
    }
}

fn numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|&number| put(out, number));
}

/// Small where the number is near zero, on either side.
pub(crate) fn signed(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

pub(crate) fn unsigned(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn flag(source: &mut impl Source) -> Result<bool, Malformed> {
    source.number().and_then(|number| if number > 1 { Err(Malformed) } else { Ok(number == 1) })
}

pub(crate) fn name(source: &mut impl Source) -> Result<Box<[u8]>, Malformed> {
    source.name(NAME_BYTES_MAX).map(Vec::into_boxed_slice)
}

pub(crate) fn quota(source: &mut impl Source) -> Result<Quota, Malformed> {
    Ok(Quota { bytes: source.number()?, messages: source.number()? })
}

pub(crate) fn special_use(source: &mut impl Source) -> Result<SpecialUse, Malformed> {
    u16::try_from(source.number()?).map(SpecialUse).map_err(|_| Malformed)
}

pub(crate) fn put_keywords(out: &mut Vec<u8>, keywords: &[String]) {
    put(out, keywords.len() as u64);
    keywords.iter().for_each(|keyword| put_bytes(out, keyword.as_bytes()));
}

pub(crate) fn keywords(source: &mut impl Source) -> Result<Vec<String>, Malformed> {
    let count = source.number()?;
    if count > KEYWORDS_MAX as u64 {
        return Err(Malformed);
    }
    let one = |_| String::from_utf8(source.name(KEYWORD_BYTES_MAX)?).map_err(|_| Malformed);
    (0..count).map(one).collect()
}

fn put_uids(out: &mut Vec<u8>, uids: &Uids) {
    put(out, uids.0.len() as u64);
    let mut before = 0;
    for &(first, last) in &uids.0 {
        numbers(out, &[u64::from(first - before), u64::from(last - first)]);
        before = last;
    }
}

fn uids(source: &mut impl Source) -> Result<Uids, Malformed> {
    let count = source.number()?;
    let mut runs = Vec::new();
    let mut before = 0u32;
    for _ in 0..count {
        let first = before.checked_add(source.u32()?).ok_or(Malformed)?;
        let last = first.checked_add(source.u32()?).ok_or(Malformed)?;
        if first == 0 || (first <= before && before != 0) {
            return Err(Malformed);
        }
        runs.push((first, last));
        before = last;
    }
    Ok(Uids(runs))
}

pub(crate) fn put_message(out: &mut Vec<u8>, message: &Message) {
    out.extend_from_slice(&message.id.to_le_bytes());
    numbers(out, &[message.size, message.thread, message.digest, u64::from(message.digest_bytes)]);
    put_place(out, &message.place);
}

pub(crate) fn message(source: &mut impl Source) -> Result<Message, Malformed> {
    let id = source.take(16)?.try_into().map_err(|_| Malformed)?;
    let message = Message {
        id: u128::from_le_bytes(id),
        size: source.number()?,
        thread: source.number()?,
        links: 0,
        digest: source.number()?,
        digest_bytes: source.u32()?,
        place: place(source)?,
    };
    if message.size > MESSAGE_BYTES_MAX { Err(Malformed) } else { Ok(message) }
}

fn put_place(out: &mut Vec<u8>, place: &Place) {
    match place {
        Place::Run(first) => numbers(out, &[0, *first]),
        Place::Runs(runs) => {
            put(out, runs.len() as u64);
            runs.iter().for_each(|&(first, count)| numbers(out, &[first, u64::from(count)]));
        }
    }
}

fn place(source: &mut impl Source) -> Result<Place, Malformed> {
    let count = source.number()?;
    if count == 0 {
        return source.number().map(Place::Run);
    }
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push((source.number()?, source.u32()?));
    }
    Ok(Place::Runs(runs.into()))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn operations_come_back_and_none_of_them_cut_short() {
        let message = Message {
            id: 1 << 100,
            size: 70_000,
            thread: u64::MAX,
            links: 0,
            digest: 9000,
            digest_bytes: 17,
            place: Place::Runs([(8192, 1), (77, 1)].into()),
        };
        let uids: Uids = [(7, 9), (1, 3), (8, 20), (4, 4)].into_iter().collect();
        assert_eq!(uids.runs().collect::<Vec<_>>(), [(1, 4), (7, 20)]);
        assert_eq!([0, 1, 4, 5, 20, 21].map(|uid| uids.contains(uid)), [false, true, true, false, true, false]);
        let keywords = vec!["$Forwarded".to_string()];
        let delivery = Delivery {
            mailbox: 3,
            uid: 1,
            message: 5,
            date: -1,
            saved: i64::MAX,
            flags: 17,
            keywords: keywords.clone(),
        };
        let all = [
            Operation::AddAccount { number: 1, name: (*b"a").into(), quota: Quota { bytes: 1, messages: 2 } },
            Operation::AddMailbox { number: 2, account: 1, name: (*b"INBOX").into(), special_use: SpecialUse(4) },
            Operation::AddMessage { number: 5, message },
            Operation::Deliver(delivery),
            Operation::Store { mailbox: 2, uids: Uids::all(), change: Change::Remove, flags: 1, keywords },
            Operation::Copy { from: 1, to: 2, uids, first_uid: 7, saved: 5, moved: true },
            Operation::Relocate { number: 1, place: Place::Run(5), digest: 8 },
            Operation::Renumber,
            Operation::Annotate { account: 1, mailbox: 0, name: (*b"n").into(), value: Some((*b"value").into()) },
            Operation::Annotate { account: 1, mailbox: 7, name: (*b"n").into(), value: None },
            Operation::Note { mailbox: 7, uid: 9, value: Some((*b"value").into()) },
            Operation::Note { mailbox: 7, uid: 9, value: None },
        ];
        for operation in all {
            let mut out = Vec::new();
            operation.encode(&mut out);
            assert_eq!(Operation::decode(&mut out.as_slice()), Ok(operation));
            for cut in 0..out.len() {
                assert_eq!(Operation::decode(&mut &out[..cut]), Err(Malformed));
            }
        }
    }
}
