//! A reference in plain maps, a history of random operations that is done to it and to a volume, and how the two are compared.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use store::memory::Memory;
use store::{
    Arrival, Change, Content, Device, Error, Flags, Format, Options, Quota, Refused, SpecialUse, State, Uids, Volume,
};

pub const PIECE: u32 = 1024;
pub const SEGMENT: u32 = 16 << 10;

/// An empty volume of so many segments.
pub fn volume(segments: usize, checkpoint_bytes: u64) -> Volume<Memory> {
    let device = Memory::new(8192 + segments * SEGMENT as usize);
    open(Volume::format(device, &format()).unwrap(), checkpoint_bytes).unwrap()
}

pub fn format() -> Format {
    Format { identity: 77 << 64 | 99, uid_validity: 1000, segment_bytes: SEGMENT, piece_bytes: PIECE }
}

pub fn open<D: Device>(device: D, checkpoint_bytes: u64) -> Result<Volume<D>, Error> {
    Volume::open(device, Options { checkpoint_bytes, ..Options::default() })
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn pick<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        if among.is_empty() { None } else { Some(among[self.below(among.len() as u64) as usize].clone()) }
    }
}

/// The content of a mail, made of a number.
pub fn mail(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut mail = Vec::with_capacity(length + 8);
    while mail.len() < length {
        mail.extend_from_slice(&random.next().to_le_bytes());
    }
    mail.truncate(length);
    mail
}

pub fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Everything, as it should be.
#[derive(Debug, Clone, Default, Hash, PartialEq, Eq)]
pub struct Model {
    accounts: BTreeMap<u32, ModelAccount>,
    mailboxes: BTreeMap<u32, ModelMailbox>,
}

#[derive(Debug, Clone, Default, Hash, PartialEq, Eq)]
struct ModelAccount {
    name: Vec<u8>,
    quota: (u64, u64),
    used: (u64, u64),
    subscriptions: BTreeSet<Vec<u8>>,
    annotations: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Clone, Default, Hash, PartialEq, Eq)]
struct ModelMailbox {
    account: u32,
    name: Vec<u8>,
    special_use: u16,
    uid_validity: u32,
    uid_next: u32,
    highest_modseq: u64,
    unseen: u32,
    deleted: u32,
    entries: BTreeMap<u32, ModelEntry>,
    vanished: BTreeSet<(u64, u32)>,
    annotations: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq)]
struct ModelEntry {
    content: u64,
    size: u64,
    digest: u64,
    flags: u64,
    keywords: BTreeSet<String>,
    modseq: u64,
    date: i64,
    note: Option<Vec<u8>>,
}

fn noted(annotations: &store::Annotations) -> BTreeMap<Vec<u8>, Vec<u8>> {
    annotations.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Content of a volume, contents and digests read from the device.
pub fn dump<D: Device>(volume: &Volume<D>) -> Result<Model, Error> {
    let state = volume.state();
    let mut contents: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (number, message) in state.messages() {
        let mut content = vec![0; message.size as usize];
        assert_eq!(volume.read(number, 0, &mut content)?, content.len());
        contents.insert(number, (hash(&content), hash(volume.digest(number)?)));
    }
    let accounts = state.accounts().map(|(number, account)| {
        let account = ModelAccount {
            name: account.name.to_vec(),
            quota: (account.quota.bytes, account.quota.messages),
            used: (account.used_bytes, account.used_messages),
            subscriptions: account.subscriptions.iter().map(|name| name.to_vec()).collect(),
            annotations: noted(&account.annotations),
        };
        (number, account)
    });
    let mut links: BTreeMap<u64, u32> = BTreeMap::new();
    let mut mailboxes = BTreeMap::new();
    for (number, mailbox) in state.mailboxes() {
        let entries = mailbox.from(0).map(|(uid, entry)| {
            let message = entry.message.get();
            *links.entry(message).or_default() += 1;
            let (content, digest) = contents[&message];
            let entry = ModelEntry {
                content,
                digest,
                size: state.message(message).unwrap().size,
                flags: entry.flags.0 & Flags::SYSTEM,
                keywords: mailbox.keywords_of(entry.flags).map(str::to_string).collect(),
                modseq: entry.modseq,
                date: entry.date,
                note: mailbox.note(uid).map(|note| note.to_vec()),
            };
            (uid, entry)
        });
        let entries: BTreeMap<_, _> = entries.collect();
        assert_eq!(mailbox.bytes, entries.values().map(|entry| entry.size).sum::<u64>());
        let vanished = mailbox.vanished_since(mailbox.vanished_floor).unwrap();
        let known = state.account(mailbox.account).unwrap().mailboxes.get(&mailbox.name);
        assert_eq!(known, Some(&number), "names lead to mailboxes");
        mailboxes.insert(
            number,
            ModelMailbox {
                account: mailbox.account,
                name: mailbox.name.to_vec(),
                special_use: mailbox.special_use.0,
                uid_validity: mailbox.uid_validity,
                uid_next: mailbox.uid_next,
                highest_modseq: mailbox.highest_modseq,
                unseen: mailbox.unseen,
                deleted: mailbox.deleted,
                entries,
                annotations: noted(&mailbox.annotations),
                vanished: {
                    let runs = mailbox.vanished.iter();
                    let all = runs.flat_map(|run| (run.first..=run.last).map(|uid| (run.modseq, uid)));
                    assert_eq!(
                        vanished.map(|(first, last)| last - first + 1).sum::<u32>() as usize,
                        all.clone().count()
                    );
                    all.collect()
                },
            },
        );
    }
    let mut annotated: BTreeSet<(Vec<u8>, u32)> = BTreeSet::new();
    for (number, mailbox) in state.mailboxes() {
        annotated.extend(mailbox.annotations.keys().map(|name| (name.to_vec(), number)));
    }
    for name in annotated.iter().map(|(name, _)| name).collect::<BTreeSet<_>>() {
        let found: Vec<u32> = state.mailboxes_annotated(name).map(|(number, _)| number).collect();
        let wanted = annotated.iter().filter(|(known, _)| known == name).map(|(_, number)| *number);
        assert_eq!(found, wanted.collect::<Vec<_>>(), "names lead to the mailboxes that bear them");
    }
    for (number, message) in state.messages() {
        assert_eq!(links.get(&number), Some(&message.links), "links of message {number}");
    }
    Ok(Model { accounts: accounts.collect(), mailboxes })
}

/// Random operations on a volume, and the expected state after each.
pub struct History {
    pub random: Random,
    pub model: Model,
    /// The hash of the model after each transaction, by its number.
    pub after: BTreeMap<u64, u64>,
    /// Bytes that are kept in mailboxes at most, about.
    pub target_bytes: u64,
    pub mail_bytes_max: u64,
    pub operations: u64,
    pub refused: u64,
    pub full: u64,
}

impl History {
    pub fn new(seed: u64, target_bytes: u64) -> Self {
        History {
            random: Random(seed),
            model: Model::default(),
            after: BTreeMap::from([(0, hash(Model::default()))]),
            target_bytes,
            mail_bytes_max: 4000,
            operations: 0,
            refused: 0,
            full: 0,
        }
    }

    /// The expected state after a transaction. Those of compaction change nothing that anyone sees.
    pub fn after_commit(&self, commit: u64) -> u64 {
        *self.after.range(..=commit).next_back().unwrap().1
    }

    /// Stages one transaction of a few operations; whether something was staged.
    pub fn step<D: Device>(&mut self, volume: &mut Volume<D>) -> Result<bool, Error> {
        let commit = volume.state().commits;
        let before = self.model.clone();
        match self.try_step(volume) {
            Ok(None) => Ok(false),
            Ok(Some(number)) => {
                assert!(number > commit);
                self.after.insert(number, hash(&self.model));
                Ok(true)
            }
            Err(Error::Full) => {
                (self.model, self.full) = (before, self.full + 1);
                Ok(false)
            }
            Err(error) => {
                self.model = before;
                Err(error)
            }
        }
    }

    fn try_step<D: Device>(&mut self, volume: &mut Volume<D>) -> Result<Option<u64>, Error> {
        let used: u64 =
            self.model.mailboxes.values().flat_map(|mailbox| mailbox.entries.values()).map(|e| e.size).sum();
        let mailboxes: Vec<u32> = self.model.mailboxes.keys().copied().collect();
        let accounts: Vec<u32> = self.model.accounts.keys().copied().collect();
        let kind = match self.random.below(100) {
            _ if accounts.len() < 2 => 0,
            _ if mailboxes.len() < 3 => 1,
            0 if accounts.len() < 5 => 0,
            1..4 if mailboxes.len() < 12 => 1,
            4 => 2,
            5 => 3,
            6 | 7 => 4,
            8..20 => 6,
            20..28 => 7,
            28..34 => 8,
            34..38 => 9,
            38 => 10,
            39 => 11,
            40..43 => 12,
            43..46 => 13,
            _ if used > self.target_bytes => 7,
            _ => 5,
        };
        // Delivered before the transaction begins: messages come in as they like.
        let mut sealed = None;
        if kind == 5 {
            let length = self.random.below(self.mail_bytes_max) as usize;
            let length = if self.random.below(4) == 0 { length } else { length / 8 };
            let seed = self.random.next();
            let content = mail(seed, length);
            let mut append = volume.append(None)?;
            for piece in content.chunks(700) {
                volume.write(&mut append, piece)?;
            }
            let digest = mail(seed, (seed % 90) as usize);
            sealed = Some((volume.seal(append, &digest, seed)?, hash(&content), hash(&digest)));
        }
        let mut transaction = volume.transaction()?;
        let commit = transaction.state().commits;
        let date = self.random.below(1 << 30) as i64;
        for _ in 0..1 + self.random.below(3) {
            self.operations += 1;
            match kind {
                0 => {
                    let quota = Quota { bytes: self.random.below(3) * self.target_bytes / 4, messages: 0 };
                    let name = format!("user{}", commit).into_bytes();
                    let number = transaction.add_account(&name, quota)?;
                    let account = ModelAccount { name, quota: (quota.bytes, 0), ..ModelAccount::default() };
                    self.model.accounts.insert(number, account);
                    break;
                }
                1 => {
                    let Some(account) = self.random.pick(&accounts) else { break };
                    let above = self.random.pick(&mailboxes).map(|number| self.model.mailboxes[&number].name.clone());
                    let mut name = above.filter(|_| self.random.below(3) == 0).unwrap_or_default();
                    if !name.is_empty() {
                        name.push(b'/');
                    }
                    name.extend_from_slice(format!("box{}", self.random.below(9)).as_bytes());
                    let known =
                        self.model.mailboxes.values().any(|known| known.account == account && known.name == name);
                    let special_use = SpecialUse(self.random.below(256) as u16);
                    match transaction.create(account, &name, special_use) {
                        Err(Error::Refused(Refused::Exists)) if known => self.refused += 1,
                        outcome => {
                            let number = outcome?;
                            assert!(!known);
                            let mailbox = ModelMailbox {
                                account,
                                name,
                                special_use: special_use.0,
                                uid_validity: number,
                                uid_next: 1,
                                highest_modseq: commit,
                                ..ModelMailbox::default()
                            };
                            assert!(self.model.mailboxes.insert(number, mailbox).is_none(), "a number given twice");
                        }
                    }
                }
                2 => {
                    let Some(number) = self.random.pick(&mailboxes) else { break };
                    let name = format!("new{}", self.random.below(30)).into_bytes();
                    let account = self.model.mailboxes[&number].account;
                    let old = self.model.mailboxes[&number].name.clone();
                    let below = [&old[..], b"/"].concat();
                    let renamed: Vec<(u32, Vec<u8>)> = self
                        .model
                        .mailboxes
                        .iter()
                        .filter(|(_, mailbox)| mailbox.account == account)
                        .filter(|(_, mailbox)| mailbox.name == old || mailbox.name.starts_with(&below))
                        .map(|(&number, mailbox)| (number, [&name, &mailbox.name[old.len()..]].concat()))
                        .collect();
                    let all: Vec<_> = self
                        .model
                        .mailboxes
                        .values()
                        .filter(|m| m.account == account)
                        .map(|m| m.name.clone())
                        .collect();
                    match transaction.rename(number, &name) {
                        Err(Error::Refused(Refused::Exists)) => {
                            assert!(renamed.iter().any(|(_, name)| all.contains(name)));
                            self.refused += 1;
                        }
                        outcome => {
                            outcome?;
                            for (number, name) in renamed {
                                self.model.mailboxes.get_mut(&number).unwrap().name = name;
                            }
                        }
                    }
                }
                3 => {
                    let Some(number) = self.random.pick(&mailboxes) else { break };
                    if !self.model.mailboxes.contains_key(&number) {
                        break;
                    }
                    transaction.remove(number)?;
                    let gone = self.model.mailboxes.remove(&number).unwrap();
                    let used = &mut self.model.accounts.get_mut(&gone.account).unwrap().used;
                    used.0 -= gone.entries.values().map(|entry| entry.size).sum::<u64>();
                    used.1 -= gone.entries.len() as u64;
                    break;
                }
                4 => {
                    let Some(account) = self.random.pick(&accounts) else { break };
                    let name = format!("sub{}", self.random.below(5)).into_bytes();
                    let subscribed = self.random.below(2) == 0;
                    transaction.subscribe(account, &name, subscribed)?;
                    let names = &mut self.model.accounts.get_mut(&account).unwrap().subscriptions;
                    let _ = if subscribed { names.insert(name) } else { names.remove(&name) };
                }
                5 => {
                    let Some(number) = self.random.pick(&mailboxes) else { break };
                    let (message, content, digest) = sealed.as_ref().unwrap();
                    let flags = self.random.below(32);
                    let keywords = self.keywords();
                    let names: Vec<&str> = keywords.iter().map(String::as_str).collect();
                    let arrival = Arrival { flags, keywords: &names, date, now: date };
                    let owner = self.model.mailboxes[&number].account;
                    let account = self.model.accounts.get_mut(&owner).unwrap();
                    let exceeds = account.quota.0 != 0 && account.used.0 + message.size() > account.quota.0;
                    match transaction.deliver(message, number, &arrival) {
                        Err(Error::Refused(Refused::OverQuota)) if exceeds => self.refused += 1,
                        outcome => {
                            let uid = outcome?;
                            assert!(!exceeds);
                            account.used = (account.used.0 + message.size(), account.used.1 + 1);
                            let entry = ModelEntry {
                                content: *content,
                                size: message.size(),
                                digest: *digest,
                                flags,
                                keywords: keywords.into_iter().collect(),
                                modseq: commit,
                                date,
                                note: None,
                            };
                            self.model.mailboxes.get_mut(&number).unwrap().put(uid, entry, commit);
                        }
                    }
                }
                6 => {
                    let Some(number) = self.random.pick(&mailboxes) else { break };
                    let uids = self.uids(number);
                    let change = self.random.pick(&[Change::Add, Change::Remove, Change::Replace]).unwrap();
                    let (flags, keywords) = (self.random.below(32), self.keywords());
                    let names: Vec<&str> = keywords.iter().map(String::as_str).collect();
                    let since = if self.random.below(4) == 0 { self.random.below(commit + 1) } else { u64::MAX };
                    let (changed, late) = transaction.store(number, &uids, change, (flags, &names), since)?;
                    let mailbox = self.model.mailboxes.get_mut(&number).unwrap();
                    let mut expected = (Vec::new(), Vec::new());
                    for (&uid, entry) in mailbox.entries.iter_mut().filter(|(uid, _)| uids.contains(**uid)) {
                        if entry.modseq > since {
                            expected.1.push(uid);
                            continue;
                        }
                        let before = entry.clone();
                        match change {
                            Change::Add => {
                                entry.flags |= flags;
                                entry.keywords.extend(keywords.iter().cloned());
                            }
                            Change::Remove => {
                                entry.flags &= !flags;
                                entry.keywords.retain(|keyword| !keywords.contains(keyword));
                            }
                            Change::Replace => {
                                (entry.flags, entry.keywords) = (flags, keywords.iter().cloned().collect());
                            }
                        }
                        if *entry != before {
                            entry.modseq = commit;
                            mailbox.highest_modseq = commit;
                            expected.0.push(uid);
                        }
                    }
                    mailbox.recount();
                    assert_eq!((changed, late), expected);
                }
                7 => {
                    let Some(number) = self.random.pick(&mailboxes) else { break };
                    let uids = self.uids(number);
                    let gone = transaction.expunge(number, &uids)?;
                    assert_eq!(gone, self.expunge(number, &uids, commit));
                }
                8 | 9 => {
                    let (Some(from), Some(to)) = (self.random.pick(&mailboxes), self.random.pick(&mailboxes)) else {
                        break;
                    };
                    if used > self.target_bytes && kind == 8 {
                        break;
                    }
                    let uids = self.uids(from);
                    let found: Vec<_> = self.model.mailboxes[&from]
                        .entries
                        .iter()
                        .filter(|(uid, _)| uids.contains(**uid))
                        .map(|(&uid, entry)| (uid, entry.clone()))
                        .collect();
                    let outcome = match kind {
                        8 => transaction.copy(from, to, &uids, date),
                        _ => transaction.move_to(from, to, &uids, date),
                    };
                    let size: u64 = found.iter().map(|(_, entry)| entry.size).sum();
                    let owner = self.model.mailboxes[&to].account;
                    let account = self.model.accounts.get_mut(&owner).unwrap();
                    if let Err(Error::Refused(Refused::OverQuota)) = outcome {
                        assert!(account.quota.0 != 0 && account.used.0 + size > account.quota.0);
                        self.refused += 1;
                        continue;
                    }
                    account.used = (account.used.0 + size, account.used.1 + found.len() as u64);
                    let mailbox = self.model.mailboxes.get_mut(&to).unwrap();
                    let mut pairs = Vec::new();
                    for (uid, entry) in found {
                        pairs.push((uid, mailbox.uid_next));
                        mailbox.put(mailbox.uid_next, ModelEntry { modseq: commit, note: None, ..entry }, commit);
                    }
                    assert_eq!(outcome?, pairs);
                    if kind == 9 {
                        let uids = pairs.iter().map(|pair| pair.0).collect();
                        self.expunge(from, &uids, commit);
                    }
                }
                10 => {
                    let Some(account) = self.random.pick(&accounts) else { break };
                    let quota = Quota { bytes: self.random.below(4) * self.target_bytes / 4, messages: 0 };
                    transaction.set_quota(account, quota)?;
                    self.model.accounts.get_mut(&account).unwrap().quota = (quota.bytes, 0);
                }
                12 => {
                    let (Some(account), number) = (self.random.pick(&accounts), self.random.pick(&mailboxes)) else {
                        break;
                    };
                    let number = number.filter(|_| self.random.below(2) == 0);
                    let account = number.map_or(account, |number| self.model.mailboxes[&number].account);
                    let name = format!("note{}", self.random.below(4)).into_bytes();
                    let (seed, length) = (self.random.next(), self.random.below(900) as usize);
                    let value = (self.random.below(3) > 0).then(|| mail(seed, length));
                    transaction.annotate(account, number, &name, value.as_deref())?;
                    let annotations = match number {
                        Some(number) => &mut self.model.mailboxes.get_mut(&number).unwrap().annotations,
                        None => &mut self.model.accounts.get_mut(&account).unwrap().annotations,
                    };
                    match value {
                        Some(value) => annotations.insert(name, value),
                        None => annotations.remove(&name),
                    };
                }
                13 => {
                    let Some(number) = self.random.pick(&mailboxes) else { break };
                    let uids: Vec<u32> = self.model.mailboxes[&number].entries.keys().copied().collect();
                    let Some(uid) = self.random.pick(&uids) else { break };
                    let (seed, length) = (self.random.next(), self.random.below(900) as usize);
                    let value = (self.random.below(3) > 0).then(|| mail(seed, length));
                    transaction.note(number, uid, value.as_deref())?;
                    let mailbox = self.model.mailboxes.get_mut(&number).unwrap();
                    mailbox.entries.get_mut(&uid).unwrap().note = value;
                }
                _ => {
                    // One that is dropped has not been.
                    if let Some(number) = self.random.pick(&mailboxes) {
                        transaction.expunge(number, &Uids::all())?;
                    }
                    return Ok(None);
                }
            }
        }
        let staged = transaction.stage()?;
        Ok((staged == commit).then_some(staged))
    }

    fn keywords(&mut self) -> Vec<String> {
        (0..self.random.below(3)).map(|_| format!("$Word{}", self.random.below(6))).collect()
    }

    fn uids(&mut self, mailbox: u32) -> Uids {
        let next = u64::from(self.model.mailboxes[&mailbox].uid_next);
        let run = |random: &mut Random| {
            let first = random.below(next + 1) as u32;
            (first, first + random.below(5) as u32)
        };
        (0..1 + self.random.below(3)).map(|_| run(&mut self.random)).collect()
    }

    fn expunge(&mut self, number: u32, uids: &Uids, commit: u64) -> Vec<u32> {
        let mailbox = self.model.mailboxes.get_mut(&number).unwrap();
        let gone: Vec<u32> = mailbox.entries.keys().copied().filter(|&uid| uids.contains(uid)).collect();
        let used = &mut self.model.accounts.get_mut(&mailbox.account).unwrap().used;
        for uid in &gone {
            let entry = mailbox.entries.remove(uid).unwrap();
            *used = (used.0 - entry.size, used.1 - 1);
            mailbox.highest_modseq = commit;
            mailbox.vanished.insert((commit, *uid));
        }
        mailbox.recount();
        gone
    }
}

impl ModelMailbox {
    fn put(&mut self, uid: u32, entry: ModelEntry, commit: u64) {
        assert_eq!(uid, self.uid_next, "UIDs ascend");
        self.entries.insert(uid, entry);
        (self.uid_next, self.highest_modseq) = (uid + 1, commit);
        self.recount();
    }

    fn recount(&mut self) {
        self.unseen = self.entries.values().filter(|entry| entry.flags & Flags::SEEN == 0).count() as u32;
        self.deleted = self.entries.values().filter(|entry| entry.flags & Flags::DELETED != 0).count() as u32;
    }
}

#[test]
fn a_volume_does_what_the_reference_does() {
    for seed in 0..6 {
        let mut volume = volume(40, 100_000);
        let mut history = History::new(seed, 200_000);
        let mut snapshots: Vec<(State, Model)> = Vec::new();
        for step in 0..1_500 {
            history.step(&mut volume).unwrap();
            if history.random.below(3) == 0 {
                volume.commit().unwrap();
                if step % 100 < 3 {
                    assert_eq!(dump(&volume).unwrap(), history.model, "seed {seed}, step {step}");
                    snapshots.push((volume.state().clone(), history.model.clone()));
                }
            }
            if history.random.below(400) == 0 {
                volume.commit().unwrap();
                let device = match history.random.below(2) {
                    0 => volume.close().unwrap(),
                    _ => volume.abandon().after_power_failure(0),
                };
                volume = open(device, 100_000).unwrap();
                assert!(volume.report().damage.is_empty(), "{:?}", volume.report());
                assert_eq!(dump(&volume).unwrap(), history.model, "seed {seed}, step {step}, reopened");
            }
        }
        volume.commit().unwrap();
        assert_eq!(dump(&volume).unwrap(), history.model);
        // Snapshots stay unchanged whatever happens to the volume.
        for (state, model) in snapshots {
            assert_eq!(state.mailboxes().count(), model.mailboxes.len());
            for (number, mailbox) in state.mailboxes() {
                assert!(mailbox.from(0).map(|(uid, _)| uid).eq(model.mailboxes[&number].entries.keys().copied()));
            }
        }
        assert!(history.refused > 1, "{} refused", history.refused);
    }
}

#[test]
fn years_of_use_leave_no_garbage_and_lose_nothing() {
    // Two years of a mailbox that gets a few mails a day, most of which are deleted later; longer on demand.
    let days = std::env::var("SLUICE_STORE_DAYS").ok().and_then(|days| days.parse().ok()).unwrap_or(730u64);
    let mut volume = volume(256, 64 << 10);
    let mut history = History::new(3, 250_000);
    for day in 0..days {
        for _ in 0..30 {
            history.step(&mut volume).unwrap();
            if history.random.below(2) == 0 {
                volume.commit().unwrap();
            }
        }
        volume.commit().unwrap();
        if day % 30 == 0 {
            let device = if day % 60 == 0 { volume.close().unwrap() } else { volume.abandon().after_power_failure(0) };
            volume = open(device, 64 << 10).unwrap();
            assert_eq!(dump(&volume).unwrap(), history.model, "day {day}");
        }
    }
    assert_eq!(dump(&volume).unwrap(), history.model);
    assert_eq!(history.full, 0, "there was room all the time: {:?}", volume.usage());
    assert!(volume.usage().live_bytes < 400_000);
    // And a scrub reads all of it.
    let mut from = Some(0);
    while let Some(at) = from {
        from = volume.scrub(at, 50_000, &mut |number, error| panic!("message {number}: {error}"));
    }
}

#[test]
fn annotations_are_bounded_and_go_with_what_they_are_about() {
    let device = Volume::format(Memory::new(40 << 20), &Format { segment_bytes: 1 << 20, ..format() }).unwrap();
    let mut volume = open(device, 1 << 20).unwrap();
    let mut transaction = volume.transaction().unwrap();
    let account = transaction.add_account(b"a", Quota::default()).unwrap();
    let other = transaction.add_account(b"b", Quota::default()).unwrap();
    let inbox = transaction.create(account, b"INBOX", SpecialUse::default()).unwrap();
    let refused = |outcome: Result<(), Error>| matches!(outcome, Err(Error::Refused(_)));
    transaction.annotate(account, None, b"one", Some(b"value")).unwrap();
    transaction.annotate(account, Some(inbox), b"one", Some(b"of the mailbox")).unwrap();
    assert!(refused(transaction.annotate(other, Some(inbox), b"one", Some(b"not its mailbox"))));
    assert!(refused(transaction.annotate(account, None, b"", Some(b""))));
    let long = vec![b'x'; store::ANNOTATION_BYTES_MAX + 1];
    assert!(refused(transaction.annotate(account, None, b"long", Some(&long))));
    transaction.stage().unwrap();
    // All of the account together.
    for at in 0..9 {
        let mut transaction = volume.transaction().unwrap();
        let place = (at % 2 == 0).then_some(inbox);
        let outcome = transaction.annotate(account, place, format!("n{at}").as_bytes(), Some(&long[1..]));
        assert_eq!(refused(outcome), at >= 7, "{at}");
        transaction.stage().unwrap();
    }
    let mut transaction = volume.transaction().unwrap();
    transaction.remove(inbox).unwrap();
    transaction.annotate(account, None, b"after", Some(&long[1..])).unwrap();
    transaction.stage().unwrap();
    volume.commit().unwrap();
    let volume = open(volume.close().unwrap(), 1 << 20).unwrap();
    let found = volume.state().account(account).unwrap();
    assert_eq!(found.annotations.get(&b"one"[..]).map(|value| &value[..]), Some(&b"value"[..]));
    assert_eq!(found.annotations.len(), 5);
}

#[test]
fn content_is_read_from_any_offset() {
    let mut volume = volume(40, 1 << 20);
    let mut append = volume.append(None).unwrap();
    let content = mail(5, 5_000);
    content.chunks(333).for_each(|piece| volume.write(&mut append, piece).unwrap());
    let sealed = volume.seal(append, b"", 0).unwrap();
    let mut whole = vec![0; 6_000];
    assert_eq!(volume.read_sealed(&sealed, 0, &mut whole).unwrap(), content.len(), "whoever brought it can read it");
    assert_eq!(whole[..content.len()], content);
    let mut transaction = volume.transaction().unwrap();
    let account = transaction.add_account(b"a", Quota::default()).unwrap();
    let inbox = transaction.create(account, b"INBOX", SpecialUse::default()).unwrap();
    transaction.deliver(&sealed, inbox, &Arrival::default()).unwrap();
    transaction.stage().unwrap();
    assert!(volume.state().message(sealed.number()).is_none(), "nothing is visible before it is durable");
    volume.commit().unwrap();
    for offset in [0, 1, 1023, 1024, 1025, 4095, 4999, 5000, 9000] {
        let mut buffer = [0; 1500];
        let length = volume.read(sealed.number(), offset, &mut buffer).unwrap();
        assert_eq!(
            &buffer[..length],
            content.get(offset as usize..).map_or(&[][..], |rest| &rest[..rest.len().min(1500)])
        );
    }
    let mut reader = Content::new(sealed.number(), volume.state().message(sealed.number()).unwrap());
    let mut all = Vec::new();
    let mut buffer = [0; 100];
    while let length @ 1.. = volume.read_piece(&mut reader, all.len() as u64, &mut buffer).unwrap() {
        all.extend_from_slice(&buffer[..length]);
    }
    assert_eq!(all, content);
}
