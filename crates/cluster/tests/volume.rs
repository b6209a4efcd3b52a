//! The store on a shared volume: owners follow each other at any time, over a faulty database.

use cluster::{Lost, Malformed, Standing, Tail, each};
use store::memory::Memory;
use store::{Arrival, Call, Device, DeviceError, Format, Options, Quota, SpecialUse, Volume};

use super::database::{Database, Faults, Link, Shared, take};

const LENGTH: usize = 1 << 20;

/// Cache in memory before a tail, as in hosts.
#[derive(Debug)]
struct Disk {
    cache: Memory,
    tail: Tail<Link>,
}

fn failed(call: Call, _: Lost) -> DeviceError {
    DeviceError { call, at: 0, code: 0 }
}

impl Device for Disk {
    fn len(&self) -> u64 {
        self.cache.len()
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.cache.read_at(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.tail.touch(at, bytes.len());
        self.cache.write_at(at, bytes)?;
        self.tail.write(at, bytes).map_err(|lost| failed(Call::Write, lost))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.tail.flush().map(drop).map_err(|lost| failed(Call::Flush, lost))
    }

    fn discard(&mut self, _at: u64, _length: u64) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// A node takes over with an empty cache.
fn take_over(database: &Shared, patience: u32) -> Option<Disk> {
    let standing: Standing = take(database)?;
    let mut bytes = vec![0; LENGTH];
    for row in database.borrow().rows() {
        let write = |at: u64, run: &[u8]| {
            bytes[at as usize..][..run.len()].copy_from_slice(run);
            Ok::<(), Malformed>(())
        };
        each(&row, write).unwrap();
    }
    let tail = Tail::new(Link { database: database.clone(), patience }, standing);
    Some(Disk { cache: Memory::from_bytes(bytes), tail })
}

fn deliver(volume: &mut Volume<Disk>, inbox: u32, text: &[u8]) -> Result<u32, store::Error> {
    let mut append = volume.append(None)?;
    volume.write(&mut append, text)?;
    let sealed = volume.seal(append, &[], 1)?;
    let mut transaction = volume.transaction()?;
    let uid = transaction.deliver(&sealed, inbox, &Arrival::default())?;
    transaction.stage()?;
    volume.commit()?;
    Ok(uid)
}

/// Runs owners after each other; in the end every acknowledged mail is there once and whole.
fn schedule(seed: u64) -> usize {
    let faults = Faults { lost: 60, answer_lost: 60, warned: 60, late: 60, failover: 30 };
    let database = Database::new(seed, Faults::default());
    let format = Format { segment_bytes: 64 << 10, piece_bytes: 8 << 10, ..Format::new(7, 1_000) };
    let disk = Volume::format(take_over(&database, 100).unwrap(), &format).unwrap();
    let mut volume = Volume::open(disk, Options::default()).unwrap();
    let mut transaction = volume.transaction().unwrap();
    let account = transaction.add_account(b"ann", Quota::default()).unwrap();
    let inbox = transaction.create(account, b"INBOX", SpecialUse::default()).unwrap();
    transaction.stage().unwrap();
    volume.commit().unwrap();
    database.borrow_mut().faults = faults;
    let (mut acknowledged, mut former) = (Vec::new(), None::<Volume<Disk>>);
    for number in 0..24u32 {
        let text = format!("{seed} {number}");
        match deliver(&mut volume, inbox, text.as_bytes()) {
            Ok(uid) => acknowledged.push((uid, text)),
            // The write may have arrived, as after any lost answer.
            Err(_) => succeed(&database, &mut volume, &mut former),
        }
        // A paused owner continues.
        if let Some(mut late) = former.take() {
            assert!(deliver(&mut late, inbox, b"late").is_err(), "{seed}: a former owner wrote");
        }
        if database.borrow_mut().random().is_multiple_of(5) {
            succeed(&database, &mut volume, &mut former);
        }
    }
    database.borrow_mut().faults = Faults::default();
    succeed(&database, &mut volume, &mut former);
    check(seed, &volume, inbox, &acknowledged);
    acknowledged.len()
}

/// Lets another node take over while the former owner is still there.
fn succeed(database: &Shared, volume: &mut Volume<Disk>, former: &mut Option<Volume<Disk>>) {
    let opened = std::iter::from_fn(|| {
        let disk = take_over(database, 200)?;
        Some(Volume::open(disk, Options::default()).ok())
    });
    // Opening writes, and may fail like any write.
    let next = opened.take(100).flatten().next();
    let next = next.or_else(|| Some(Volume::open(take_over(database, 200)?, Options::default()).unwrap()));
    if let Some(next) = next {
        *former = Some(std::mem::replace(volume, next));
    }
}

fn check(seed: u64, volume: &Volume<Disk>, inbox: u32, acknowledged: &[(u32, String)]) {
    let state = volume.state();
    let entries = &state.mailbox(inbox).unwrap().entries;
    for (uid, text) in acknowledged {
        let entry = entries.get((*uid).into()).unwrap_or_else(|| panic!("{seed}: mail {uid} is lost"));
        let mut bytes = vec![0; 64];
        let length = volume.read(entry.message.into(), 0, &mut bytes).unwrap();
        assert_eq!(&bytes[..length], text.as_bytes(), "{seed}: mail {uid}");
    }
}

#[test]
fn no_acknowledged_mail_is_lost_however_flushes_end() {
    let schedules = std::env::var("SLUICE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let acknowledged: usize = (1..=schedules).map(schedule).sum();
    assert!(acknowledged > 10 * schedules as usize, "{acknowledged} of {schedules} schedules");
}
