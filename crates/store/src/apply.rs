//! Effects of operations on a state. The writer and the replay of the log share it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use crate::error::Refused;
use crate::operation::{Change, Delivery, Operation, Uids};
use crate::state::{Account, DELIMITER, Entry, Flags, KEYWORDS_MAX, Mailbox, Message, State, VANISHED_MAX, Vanished};

/// Effects of operations on messages, for the accounting of room.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub added: Vec<(u64, Message)>,
    pub freed: Vec<(u64, Message)>,
}

/// UIDs before and after: of copies, or the same twice where something changed.
pub(crate) type Pairs = Vec<(u32, u32)>;

impl State {
    /// A state without anything. `uid_validity` is the first one that is given.
    pub(crate) fn new(uid_validity: u32) -> Self {
        State { next_message: 1, next_mailbox: uid_validity.max(1), next_account: 1, ..State::default() }
    }

    /// Does one operation, as a part of the transaction `modseq`. After a failure the state is of no use.
    pub(crate) fn apply(
        &mut self,
        operation: &Operation,
        modseq: u64,
        effects: &mut Effects,
    ) -> Result<Pairs, Refused> {
        match operation {
            Operation::AddAccount { number, name, quota } => {
                let account = Account { name: name.clone(), quota: *quota, ..Account::default() };
                if *number < self.next_account || self.names.contains_key(name) {
                    return Err(Refused::Exists);
                }
                self.next_account = number.checked_add(1).ok_or(Refused::Inconsistent)?;
                Arc::make_mut(&mut self.names).insert(name.clone(), *number);
                self.accounts.insert(u64::from(*number), Arc::new(account));
            }
            Operation::SetQuota { account, quota } => self.account_mut(*account)?.quota = *quota,
            Operation::RemoveAccount { account } => {
                let removed = self.account(*account).ok_or(Refused::NoSuchAccount)?.clone();
                for &mailbox in removed.mailboxes.values() {
                    self.remove_mailbox(mailbox, modseq, effects)?;
                }
                Arc::make_mut(&mut self.names).remove(&removed.name);
                self.accounts.remove(u64::from(*account));
            }
            Operation::AddMailbox { number, account, name, special_use } => {
                if *number < self.next_mailbox {
                    return Err(Refused::Inconsistent);
                }
                let names = &mut self.account_mut(*account)?.mailboxes;
                if names.contains_key(name) {
                    return Err(Refused::Exists);
                }
                Arc::make_mut(names).insert(name.clone(), *number);
                self.next_mailbox = number.checked_add(1).ok_or(Refused::NoMoreUids)?;
                let mailbox = Mailbox {
                    account: *account,
                    name: name.clone(),
                    uid_validity: *number,
                    uid_next: 1,
                    highest_modseq: modseq,
                    special_use: *special_use,
                    keywords: Arc::default(),
                    entries: Default::default(),
                    bytes: 0,
                    unseen: 0,
                    deleted: 0,
                    vanished: Arc::default(),
                    vanished_floor: modseq,
                    annotations: Arc::default(),
                    notes: Default::default(),
                };
                self.mailboxes.insert(u64::from(*number), Arc::new(mailbox));
            }
            Operation::Rename { mailbox, name } => self.rename(*mailbox, name)?,
            Operation::RemoveMailbox { mailbox } => self.remove_mailbox(*mailbox, modseq, effects)?,
            Operation::Subscribe { account, name, subscribed } => {
                let names = Arc::make_mut(&mut self.account_mut(*account)?.subscriptions);
                match subscribed {
                    true => names.insert(name.clone()),
                    false => names.remove(name),
                };
            }
            Operation::SetSpecialUse { mailbox, special_use } => {
                self.mailbox_mut(*mailbox)?.special_use = *special_use;
            }
            Operation::AddMessage { number, message } => {
                if self.messages.get(*number).is_some() {
                    return Err(Refused::Inconsistent);
                }
                let next = number.checked_add(1).ok_or(Refused::Inconsistent)?;
                self.next_message = self.next_message.max(next);
                self.messages.insert(*number, message.clone());
                effects.added.push((*number, message.clone()));
            }
            Operation::Deliver(delivery) => self.deliver(delivery, modseq)?,
            Operation::Store { mailbox, uids, change, flags, keywords } => {
                return self.mailbox_mut(*mailbox)?.store(uids, *change, *flags, keywords, modseq);
            }
            Operation::Expunge { mailbox, uids } => return self.expunge(*mailbox, uids, modseq, effects),
            Operation::Copy { from, to, uids, first_uid, saved, moved } => {
                let pairs = self.copy(*from, *to, uids, *first_uid, *saved, modseq)?;
                if *moved {
                    let uids = pairs.iter().map(|pair| pair.0).collect();
                    self.expunge(*from, &uids, modseq, effects)?;
                }
                return Ok(pairs);
            }
            Operation::Relocate { number, place, digest } => {
                let message = self.messages.get_mut(*number).ok_or(Refused::NoSuchMessage)?;
                effects.freed.push((*number, message.clone()));
                message.place = place.clone();
                message.digest = *digest;
                effects.added.push((*number, message.clone()));
            }
            Operation::Annotate { account, mailbox, name, value } => {
                self.annotate(*account, *mailbox, name, value.as_deref())?;
            }
            Operation::Note { mailbox, uid, value } => self.note(*mailbox, *uid, value.as_deref())?,
            Operation::Renumber => {
                let numbers: Vec<_> = self.mailboxes.iter().map(|(number, _)| number as u32).collect();
                for number in numbers {
                    let uid_validity = self.next_mailbox;
                    self.next_mailbox = uid_validity.checked_add(1).ok_or(Refused::NoMoreUids)?;
                    let mailbox = self.mailbox_mut(number)?;
                    mailbox.uid_validity = uid_validity;
                    mailbox.highest_modseq = modseq;
                    mailbox.vanished_floor = modseq;
                }
            }
        }
        Ok(Pairs::new())
    }

    /// Sets the note of an existing message.
    pub(crate) fn note(&mut self, mailbox: u32, uid: u32, value: Option<&[u8]>) -> Result<(), Refused> {
        let mailbox = self.mailbox_mut(mailbox)?;
        mailbox.entry(uid).ok_or(Refused::NoSuchMessage)?;
        match value {
            Some(value) => mailbox.notes.insert(u64::from(uid), value.into()),
            None => mailbox.notes.remove(u64::from(uid)),
        };
        Ok(())
    }

    /// Forgets a message that no mailbox points to.
    pub(crate) fn forget_unlinked(&mut self, number: u64, effects: &mut Effects) -> bool {
        let is_unlinked = self.messages.get(number).is_some_and(|message| message.links == 0);
        if let Some(message) = is_unlinked.then(|| self.messages.remove(number)).flatten() {
            effects.freed.push((number, message));
        }
        is_unlinked
    }

    pub(crate) fn account_mut(&mut self, number: u32) -> Result<&mut Account, Refused> {
        self.accounts.get_mut(u64::from(number)).map(Arc::make_mut).ok_or(Refused::NoSuchAccount)
    }

    pub(crate) fn mailbox_mut(&mut self, number: u32) -> Result<&mut Mailbox, Refused> {
        self.mailboxes.get_mut(u64::from(number)).map(Arc::make_mut).ok_or(Refused::NoSuchMailbox)
    }

    fn deliver(&mut self, delivery: &Delivery, modseq: u64) -> Result<(), Refused> {
        let message = NonZeroU64::new(delivery.message).ok_or(Refused::NoSuchMessage)?;
        let size = self.link(message)?;
        let mailbox = self.mailbox_mut(delivery.mailbox)?;
        let account = mailbox.account;
        let keywords = mailbox.bits_of(&delivery.keywords, true)?;
        let flags = Flags(delivery.flags & Flags::SYSTEM | keywords);
        let entry = Entry { message, flags, modseq, date: delivery.date, saved: delivery.saved };
        mailbox.put(delivery.uid, entry, size)?;
        self.count(account, size)
    }

    fn copy(
        &mut self,
        from: u32,
        to: u32,
        uids: &Uids,
        first_uid: u32,
        saved: i64,
        modseq: u64,
    ) -> Result<Pairs, Refused> {
        let source = self.mailbox(from).ok_or(Refused::NoSuchMailbox)?.clone();
        let mut pairs = Pairs::new();
        let mut uid = first_uid;
        for (old, &entry) in source.among(uids) {
            let keywords: Vec<String> = source.keywords_of(entry.flags).map(String::from).collect();
            let size = self.link(entry.message)?;
            let mailbox = self.mailbox_mut(to)?;
            let account = mailbox.account;
            let flags = Flags(entry.flags.0 & Flags::SYSTEM | mailbox.bits_of(&keywords, true)?);
            mailbox.put(uid, Entry { flags, modseq, saved, ..entry }, size)?;
            pairs.push((old, uid));
            uid = mailbox.uid_next;
            self.count(account, size)?;
        }
        Ok(pairs)
    }

    fn expunge(&mut self, number: u32, uids: &Uids, modseq: u64, effects: &mut Effects) -> Result<Pairs, Refused> {
        let mailbox = self.mailbox(number).ok_or(Refused::NoSuchMailbox)?;
        let found: Vec<_> = mailbox.among(uids).map(|(uid, &entry)| (uid, entry)).collect();
        let account = mailbox.account;
        let mut used = (0u64, 0u64);
        for &(uid, entry) in &found {
            let size = self.messages.get(entry.message.get()).ok_or(Refused::NoSuchMessage)?.size;
            self.mailbox_mut(number)?.take(uid, entry, size, modseq);
            self.unlink(entry.message, effects);
            used = (used.0 + size, used.1 + 1);
        }
        let account = self.account_mut(account)?;
        account.used_bytes = account.used_bytes.saturating_sub(used.0);
        account.used_messages = account.used_messages.saturating_sub(used.1);
        Ok(found.into_iter().map(|(uid, _)| (uid, uid)).collect())
    }

    fn link(&mut self, message: NonZeroU64) -> Result<u64, Refused> {
        let message = self.messages.get_mut(message.get()).ok_or(Refused::NoSuchMessage)?;
        message.links = message.links.checked_add(1).ok_or(Refused::Inconsistent)?;
        Ok(message.size)
    }

    fn unlink(&mut self, number: NonZeroU64, effects: &mut Effects) {
        if let Some(message) = self.messages.get_mut(number.get()) {
            message.links = message.links.saturating_sub(1);
        }
        self.forget_unlinked(number.get(), effects);
    }

    fn count(&mut self, account: u32, size: u64) -> Result<(), Refused> {
        let account = self.account_mut(account)?;
        account.used_bytes = account.used_bytes.checked_add(size).ok_or(Refused::OverQuota)?;
        account.used_messages = account.used_messages.checked_add(1).ok_or(Refused::OverQuota)?;
        Ok(())
    }

    fn remove_mailbox(&mut self, number: u32, modseq: u64, effects: &mut Effects) -> Result<(), Refused> {
        self.expunge(number, &Uids::all(), modseq, effects)?;
        let removed = self.mailboxes.remove(u64::from(number)).ok_or(Refused::NoSuchMailbox)?;
        Arc::make_mut(&mut self.account_mut(removed.account)?.mailboxes).remove(&removed.name);
        removed.annotations.keys().for_each(|name| self.count_annotated(number, name, false));
        Ok(())
    }

    /// Gives a mailbox, and those below it, other names.
    fn rename(&mut self, number: u32, name: &[u8]) -> Result<(), Refused> {
        let mailbox = self.mailbox(number).ok_or(Refused::NoSuchMailbox)?;
        let (account, old) = (mailbox.account, mailbox.name.clone());
        let names = &self.account(account).ok_or(Refused::NoSuchAccount)?.mailboxes;
        let is_below =
            |other: &[u8]| other.strip_prefix(&*old).is_some_and(|rest| matches!(rest, [] | [DELIMITER, ..]));
        let moved: Vec<_> =
            names.iter().filter(|(name, _)| is_below(name)).map(|(name, &at)| (name.clone(), at)).collect();
        for (former, at) in &moved {
            let below = former.get(old.len()..).unwrap_or_default();
            let renamed: alloc::boxed::Box<[u8]> = [name, below].concat().into();
            let names = Arc::make_mut(&mut self.account_mut(account)?.mailboxes);
            if names.contains_key(&renamed) {
                return Err(Refused::Exists);
            }
            names.remove(former);
            names.insert(renamed.clone(), *at);
            self.mailbox_mut(*at)?.name = renamed;
        }
        Ok(())
    }
}

impl Mailbox {
    /// Its messages among these, in order.
    pub(crate) fn among<'a>(&'a self, uids: &'a Uids) -> impl Iterator<Item = (u32, &'a Entry)> {
        uids.runs().flat_map(|(first, last)| self.from(first).take_while(move |&(uid, _)| uid <= last))
    }

    /// Returns the bits of keywords; with `adds` new keywords get a bit, otherwise they are left out.
    fn bits_of(&mut self, keywords: &[String], adds: bool) -> Result<u64, Refused> {
        let mut bits = 0;
        for keyword in keywords {
            let at = match self.keywords.iter().position(|known| known.eq_ignore_ascii_case(keyword)) {
                Some(at) => at,
                None if !adds => continue,
                None if self.keywords.len() >= KEYWORDS_MAX => return Err(Refused::TooManyKeywords),
                None => {
                    Arc::make_mut(&mut self.keywords).push(keyword.clone());
                    self.keywords.len() - 1
                }
            };
            bits |= 1 << (Flags::KEYWORDS_AT as usize + at);
        }
        Ok(bits)
    }

    fn put(&mut self, uid: u32, entry: Entry, size: u64) -> Result<(), Refused> {
        if self.uid_next == 0 {
            return Err(Refused::NoMoreUids);
        }
        if uid < self.uid_next {
            return Err(Refused::Inconsistent);
        }
        self.uid_next = uid.checked_add(1).unwrap_or(0);
        self.highest_modseq = entry.modseq;
        self.bytes = self.bytes.checked_add(size).ok_or(Refused::Inconsistent)?;
        self.unseen += u32::from(!entry.flags.has(Flags::SEEN));
        self.deleted += u32::from(entry.flags.has(Flags::DELETED));
        self.entries.insert(u64::from(uid), entry);
        Ok(())
    }

    fn take(&mut self, uid: u32, entry: Entry, size: u64, modseq: u64) {
        self.entries.remove(u64::from(uid));
        self.notes.remove(u64::from(uid));
        self.highest_modseq = modseq;
        self.bytes = self.bytes.saturating_sub(size);
        self.unseen -= u32::from(!entry.flags.has(Flags::SEEN));
        self.deleted -= u32::from(entry.flags.has(Flags::DELETED));
        let vanished = Arc::make_mut(&mut self.vanished);
        match vanished.last_mut() {
            Some(run) if run.modseq == modseq && run.last.checked_add(1) == Some(uid) => run.last = uid,
            _ => vanished.push(Vanished { modseq, first: uid, last: uid }),
        }
        if vanished.len() > VANISHED_MAX {
            let forgotten = vanished.drain(..VANISHED_MAX / 4).next_back();
            self.vanished_floor = forgotten.map_or(self.vanished_floor, |run| self.vanished_floor.max(run.modseq));
        }
    }

    fn store(
        &mut self,
        uids: &Uids,
        change: Change,
        flags: u64,
        keywords: &[String],
        modseq: u64,
    ) -> Result<Pairs, Refused> {
        let bits = flags & Flags::SYSTEM | self.bits_of(keywords, change != Change::Remove)?;
        let changed = |flags: Flags| match change {
            Change::Add => Flags(flags.0 | bits),
            Change::Remove => Flags(flags.0 & !bits),
            Change::Replace => Flags(bits),
        };
        let found: Vec<_> =
            self.among(uids).filter(|(_, entry)| changed(entry.flags) != entry.flags).map(|(uid, _)| uid).collect();
        for &uid in &found {
            let Some(entry) = self.entries.get_mut(u64::from(uid)) else { continue };
            let (before, after) = (entry.flags, changed(entry.flags));
            (entry.flags, entry.modseq) = (after, modseq);
            self.highest_modseq = modseq;
            self.unseen = self.unseen + u32::from(!after.has(Flags::SEEN)) - u32::from(!before.has(Flags::SEEN));
            self.deleted = self.deleted + u32::from(after.has(Flags::DELETED)) - u32::from(before.has(Flags::DELETED));
        }
        Ok(found.into_iter().map(|uid| (uid, uid)).collect())
    }
}
