//! The state of a volume as a stream of bytes, which checkpoints consist of.
//!
//! What follows from the rest (links, use of quotas, counts of a mailbox) is not in it but counted when it is read.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::codec::{Malformed, Source, put, put_bytes};
use crate::error::Error;
use crate::map::Map;
use crate::operation::{keywords, message, name, put_keywords, put_message, quota, signed, special_use, unsigned};
use crate::state::{
    ANNOTATION_BYTES_MAX, ANNOTATION_NAME_BYTES_MAX, Account, Entry, Flags, Mailbox, NOTE_BYTES_MAX, State,
    VANISHED_MAX, Vanished,
};

/// Stands among annotations where the number of an account would: a note of a message follows. No account has it.
const NOTE: u64 = 0;

/// Takes a part; `true` with the last one.
pub(crate) type Emit<'a> = dyn FnMut(&[u8], bool) -> Result<(), Error> + 'a;

/// Emits the state, and which segments are free, in parts of `part_bytes`.
pub(crate) fn encode(state: &State, free: &BTreeSet<u32>, part_bytes: usize, emit: &mut Emit<'_>) -> Result<(), Error> {
    let mut out = Vec::with_capacity(part_bytes * 2);
    let mut spill = |out: &mut Vec<u8>| {
        while out.len() > part_bytes {
            emit(&out[..part_bytes], false)?;
            out.drain(..part_bytes);
        }
        Ok::<(), Error>(())
    };
    for number in [state.commits, state.next_message, u64::from(state.next_mailbox), u64::from(state.next_account)] {
        put(&mut out, number);
    }
    put(&mut out, free.len() as u64);
    for &segment in free {
        put(&mut out, u64::from(segment));
        spill(&mut out)?;
    }
    put(&mut out, state.accounts.len() as u64);
    for (number, account) in state.accounts() {
        put(&mut out, u64::from(number));
        put_account(&mut out, account);
        spill(&mut out)?;
    }
    put(&mut out, state.messages.len() as u64);
    let mut before = 0;
    for (number, message) in state.messages.iter() {
        put(&mut out, number - before);
        put_message(&mut out, message);
        spill(&mut out)?;
        before = number;
    }
    put(&mut out, state.mailboxes.len() as u64);
    for (number, mailbox) in state.mailboxes() {
        put(&mut out, u64::from(number));
        put_mailbox(&mut out, mailbox);
        spill(&mut out)?;
        let mut before = Before::default();
        for (uid, entry) in mailbox.from(0) {
            before.put(&mut out, uid, entry, mailbox.highest_modseq);
            spill(&mut out)?;
        }
    }
    // A state without any ends here: so it did before there were annotations.
    for (account, mailbox, name, value) in annotations(state) {
        for number in [account, mailbox] {
            put(&mut out, u64::from(number));
        }
        put_bytes(&mut out, name);
        put_bytes(&mut out, value);
        spill(&mut out)?;
    }
    for (number, mailbox) in state.mailboxes() {
        for (uid, value) in mailbox.notes.iter() {
            for number in [NOTE, u64::from(number), uid] {
                put(&mut out, number);
            }
            put_bytes(&mut out, value);
            spill(&mut out)?;
        }
    }
    emit(&out, true)
}

/// The state, and which segments were free.
pub(crate) fn decode(source: &mut impl Source) -> Result<(State, BTreeSet<u32>), Malformed> {
    let mut state = State {
        commits: source.number()?,
        next_message: source.number()?,
        next_mailbox: source.u32()?,
        next_account: source.u32()?,
        ..State::default()
    };
    let mut free = BTreeSet::new();
    for _ in 0..source.number()? {
        free.insert(source.u32()?);
    }
    let mut names = BTreeMap::new();
    for _ in 0..source.number()? {
        let number = source.u32()?;
        let account = account(source)?;
        names.insert(account.name.clone(), number);
        state.accounts.insert(u64::from(number), Arc::new(account));
    }
    state.names = Arc::new(names);
    let mut number = 0u64;
    for _ in 0..source.number()? {
        number = number.checked_add(source.number()?).ok_or(Malformed)?;
        state.messages.insert(number, message(source)?);
    }
    for _ in 0..source.number()? {
        let number = source.u32()?;
        let mut mailbox = mailbox(source)?;
        let owner = mailbox.account;
        let mut before = Before::default();
        let mut used = (0u64, 0u64);
        for _ in 0..source.number()? {
            let (uid, entry) = before.read(source, mailbox.highest_modseq)?;
            let message = state.messages.get_mut(entry.message.get()).ok_or(Malformed)?;
            message.links = message.links.checked_add(1).ok_or(Malformed)?;
            used = (used.0.checked_add(message.size).ok_or(Malformed)?, used.1 + 1);
            mailbox.unseen += u32::from(!entry.flags.has(Flags::SEEN));
            mailbox.deleted += u32::from(entry.flags.has(Flags::DELETED));
            mailbox.entries.insert(u64::from(uid), entry);
        }
        mailbox.bytes = used.0;
        let account = state.account_mut(owner).map_err(|_| Malformed)?;
        account.used_bytes = account.used_bytes.checked_add(used.0).ok_or(Malformed)?;
        account.used_messages += used.1;
        Arc::make_mut(&mut account.mailboxes).insert(mailbox.name.clone(), number);
        state.mailboxes.insert(u64::from(number), Arc::new(mailbox));
    }
    while !source.is_at_end() {
        let (account, mailbox) = (source.u32()?, source.u32()?);
        if u64::from(account) == NOTE {
            let (uid, value) = (source.u32()?, source.name(NOTE_BYTES_MAX)?);
            state.note(mailbox, uid, Some(&value)).map_err(|_| Malformed)?;
            continue;
        }
        let (name, value) = (source.name(ANNOTATION_NAME_BYTES_MAX)?, source.name(ANNOTATION_BYTES_MAX)?);
        state.annotate(account, mailbox, &name, Some(&value)).map_err(|_| Malformed)?;
    }
    Ok((state, free))
}

/// All annotations: the account, the mailbox or 0, name and value.
fn annotations(state: &State) -> impl Iterator<Item = (u32, u32, &[u8], &[u8])> {
    let of_accounts = state.accounts().map(|(number, account)| (number, 0, &account.annotations));
    let of_mailboxes = state.mailboxes().map(|(number, mailbox)| (mailbox.account, number, &mailbox.annotations));
    of_accounts.chain(of_mailboxes).flat_map(|(account, mailbox, annotations)| {
        annotations.iter().map(move |(name, value)| (account, mailbox, &**name, &**value))
    })
}

fn put_account(out: &mut Vec<u8>, account: &Account) {
    put_bytes(out, &account.name);
    put(out, account.quota.bytes);
    put(out, account.quota.messages);
    put(out, account.subscriptions.len() as u64);
    account.subscriptions.iter().for_each(|name| put_bytes(out, name));
}

fn account(source: &mut impl Source) -> Result<Account, Malformed> {
    let (named, quota, count) = (name(source)?, quota(source)?, source.number()?);
    let mut subscriptions: BTreeSet<Box<[u8]>> = BTreeSet::new();
    for _ in 0..count {
        subscriptions.insert(name(source)?);
    }
    Ok(Account { name: named, quota, subscriptions: Arc::new(subscriptions), ..Account::default() })
}

/// The mailbox without its entries, and how many follow.
fn put_mailbox(out: &mut Vec<u8>, mailbox: &Mailbox) {
    put(out, u64::from(mailbox.account));
    put_bytes(out, &mailbox.name);
    put(out, u64::from(mailbox.uid_validity));
    put(out, u64::from(mailbox.uid_next));
    put(out, mailbox.highest_modseq);
    put(out, u64::from(mailbox.special_use.0));
    put_keywords(out, &mailbox.keywords);
    put(out, mailbox.vanished_floor);
    put(out, mailbox.vanished.len() as u64);
    for run in mailbox.vanished.iter() {
        put(out, run.modseq);
        put(out, u64::from(run.first));
        put(out, u64::from(run.last - run.first));
    }
    put(out, mailbox.entries.len() as u64);
}

fn mailbox(source: &mut impl Source) -> Result<Mailbox, Malformed> {
    let mut mailbox = Mailbox {
        account: source.u32()?,
        name: name(source)?,
        uid_validity: source.u32()?,
        uid_next: source.u32()?,
        highest_modseq: source.number()?,
        special_use: special_use(source)?,
        keywords: Arc::new(keywords(source)?),
        entries: Map::default(),
        bytes: 0,
        unseen: 0,
        deleted: 0,
        vanished: Arc::default(),
        vanished_floor: source.number()?,
        annotations: Arc::default(),
        notes: Map::default(),
    };
    let count = source.number()?;
    if count > VANISHED_MAX as u64 {
        return Err(Malformed);
    }
    let mut vanished = Vec::new();
    for _ in 0..count {
        let (modseq, first, more) = (source.number()?, source.u32()?, source.u32()?);
        vanished.push(Vanished { modseq, first, last: first.checked_add(more).ok_or(Malformed)? });
    }
    mailbox.vanished = Arc::new(vanished);
    Ok(mailbox)
}

/// The previous entry: the next one differs little.
#[derive(Default)]
struct Before {
    uid: u32,
    message: u64,
    date: i64,
}

impl Before {
    fn put(&mut self, out: &mut Vec<u8>, uid: u32, entry: &Entry, highest_modseq: u64) {
        put(out, u64::from(uid - self.uid));
        put(out, signed(entry.message.get().wrapping_sub(self.message) as i64));
        put(out, entry.flags.0);
        put(out, highest_modseq.saturating_sub(entry.modseq));
        put(out, signed(entry.date.wrapping_sub(self.date)));
        put(out, signed(entry.saved.wrapping_sub(entry.date)));
        *self = Before { uid, message: entry.message.get(), date: entry.date };
    }

    fn read(&mut self, source: &mut impl Source, highest_modseq: u64) -> Result<(u32, Entry), Malformed> {
        let more = source.u32()?;
        let uid = self.uid.checked_add(more).filter(|_| more != 0).ok_or(Malformed)?;
        let message = self.message.wrapping_add(unsigned(source.number()?) as u64);
        let flags = Flags(source.number()?);
        let modseq = highest_modseq.checked_sub(source.number()?).ok_or(Malformed)?;
        let date = self.date.wrapping_add(unsigned(source.number()?));
        let saved = date.wrapping_add(unsigned(source.number()?));
        *self = Before { uid, message, date };
        let message = NonZeroU64::new(message).ok_or(Malformed)?;
        Ok((uid, Entry { message, flags, modseq, date, saved }))
    }
}
