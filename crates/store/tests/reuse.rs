//! Ends without a close: a segment that a killed process has begun is written again by a later one.

use std::cell::RefCell;
use std::rc::Rc;

use store::memory::Memory;
use store::{Arrival, Device, DeviceError, Error, Quota, SpecialUse, Uids, Volume};

use crate::model::{SEGMENT, mail, open, volume};

/// A device that outlives the volume on it.
struct Shared(Rc<RefCell<Memory>>);

impl Device for Shared {
    fn len(&self) -> u64 {
        self.0.borrow().len()
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.0.borrow().read_at(at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.borrow_mut().write_at(at, bytes)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.0.borrow_mut().flush()
    }

    fn discard(&mut self, at: u64, length: u64) -> Result<(), DeviceError> {
        let rubbish = mail(at, length as usize);
        self.0.borrow_mut().write_at(at, &rubbish)
    }
}

fn inbox<D: Device>(volume: &mut Volume<D>) -> u32 {
    let mut transaction = volume.transaction().unwrap();
    let account = transaction.add_account(b"a", Quota::default()).unwrap();
    let inbox = transaction.create(account, b"INBOX", SpecialUse::default()).unwrap();
    transaction.stage().unwrap();
    volume.commit().unwrap();
    inbox
}

fn deliver<D: Device>(volume: &mut Volume<D>, inbox: u32, content: &[u8]) -> Result<(), Error> {
    let mut append = volume.append(None)?;
    volume.write(&mut append, content)?;
    let sealed = volume.seal(append, b"digest", 1)?;
    let mut transaction = volume.transaction()?;
    transaction.deliver(&sealed, inbox, &Arrival::default())?;
    transaction.stage()?;
    volume.commit()
}

fn expunge<D: Device>(volume: &mut Volume<D>, inbox: u32) -> Result<(), Error> {
    let mut transaction = volume.transaction()?;
    transaction.expunge(inbox, &Uids::all())?;
    transaction.stage()?;
    volume.commit()
}

fn flag(volume: &mut Volume<Memory>, inbox: u32) -> Result<(), Error> {
    let mut transaction = volume.transaction()?;
    transaction.store(inbox, &Uids::all(), store::Change::Replace, (1, &[]), u64::MAX)?;
    transaction.store(inbox, &Uids::all(), store::Change::Replace, (2, &[]), u64::MAX)?;
    transaction.stage()?;
    volume.commit()
}

/// A message that is never finished.
fn begin(volume: &mut Volume<Memory>) -> Result<(), Error> {
    let mut append = volume.append(None)?;
    volume.write(&mut append, &mail(1, 3_000))
}

type Life = fn(&mut Volume<Memory>, u32, u64) -> Result<(), Error>;

/// Runs of a server, each of which ends by a kill.
const LIVES: [(&str, Life); 6] = [
    ("a mail comes and goes", |volume, inbox, life| {
        deliver(volume, inbox, &mail(life, 3_000))?;
        expunge(volume, inbox)
    }),
    ("a mail comes and another goes", |volume, inbox, life| {
        expunge(volume, inbox)?;
        deliver(volume, inbox, &mail(life, 3_000))
    }),
    ("a mail comes, or all go", |volume, inbox, life| match life % 4 {
        3 => expunge(volume, inbox),
        _ => deliver(volume, inbox, &mail(life, 3_000)),
    }),
    ("flags change", |volume, inbox, life| match life {
        0 => deliver(volume, inbox, b"kept"),
        _ => flag(volume, inbox),
    }),
    ("mail begins and does not end", |volume, _, _| begin(volume)),
    ("nothing happens", |_, _, _| Ok(())),
];

#[test]
fn a_thousand_kills_cost_no_segment() {
    for (name, life) in LIVES {
        for segments in [12, 15, 40] {
            let mut volume = volume(segments, 64 << 20);
            let inbox = inbox(&mut volume);
            let few = 3 * u64::from(SEGMENT);
            let free_bytes = volume.usage().free_bytes;
            let mut device = volume.close().unwrap();
            for number in 0..1_000u64 {
                let mut volume = open(device, 64 << 20).unwrap();
                let left = volume.usage().free_bytes;
                assert!(
                    left + few >= free_bytes,
                    "{name}, {segments} segments, life {number}: {left} of {free_bytes} bytes free"
                );
                let outcome = life(&mut volume, inbox, number);
                outcome.unwrap_or_else(|error| {
                    panic!("{name}, {segments} segments, life {number}: {error}, {:?}", volume.usage())
                });
                device = volume.abandon();
                if number % 2 == 0 {
                    device = device.after_power_failure(number);
                }
            }
        }
    }
}

/// Mails of this size until the volume is full.
fn fill<D: Device>(volume: &mut Volume<D>, inbox: u32) -> u32 {
    let mut count = 0;
    loop {
        match deliver(volume, inbox, &mail(count, 3_000)) {
            Ok(()) => count += 1,
            Err(Error::Full) => return count as u32,
            Err(error) => panic!("{error}"),
        }
    }
}

/// One life on a device that fails at some write: a mail comes, the older ones go. The mails that have to be there, and the
/// most that may.
fn live(shared: &Rc<RefCell<Memory>>, number: u64, known: &mut (usize, usize)) -> Result<(), Error> {
    let mut volume = open(Shared(shared.clone()), 48 << 10)?;
    let (inbox, mailbox) = volume.state().mailboxes().next().unwrap();
    let count = mailbox.entries.len();
    assert!((known.0..=known.1).contains(&count), "life {number}: {count} mails, {known:?}");
    volume.scrub(0, u64::MAX, &mut |message, error| panic!("life {number}, message {message}: {error}"));
    *known = (count, count);
    let goes = number % 3 == 2;
    if goes {
        known.0 = 0;
        expunge(&mut volume, inbox)?;
        *known = (0, 0);
    }
    known.1 += 1;
    deliver(&mut volume, inbox, &mail(number, 1_000))?;
    known.0 = known.1;
    Ok(())
}

#[test]
fn two_thousand_lives_that_end_at_any_write_cost_no_segment() {
    for (segments, failing) in [(12, 0..2), (13, 0..9), (16, 0..25), (14, 4..6), (14, 6..8)] {
        let mut fresh = volume(segments, 48 << 10);
        let inbox = inbox(&mut fresh);
        let shared = Rc::new(RefCell::new(fresh.close().unwrap()));
        let room = fill(&mut open(shared.borrow().clone(), 48 << 10).unwrap(), inbox);
        let mut known = (0, 0);
        for number in 0..2_000u64 {
            let until = shared.borrow().counts.writes + failing.start + number % (failing.end - failing.start);
            // Now and then one life goes well.
            shared.borrow_mut().faults.writes_until_failure = (number % 50 != 0).then_some(until);
            match live(&shared, number, &mut known) {
                Ok(()) | Err(Error::Device(_) | Error::Failed) => {}
                Err(error) => panic!("{segments} segments, failing at {failing:?}, life {number}: {error}"),
            }
            let seed = [0, number + 1, u64::MAX][number as usize % 3];
            let device = shared.borrow().after_power_failure(seed);
            *shared.borrow_mut() = device;
        }
        let mut volume = open(Shared(shared), 48 << 10).unwrap();
        expunge(&mut volume, inbox).unwrap();
        let again = fill(&mut volume, inbox);
        assert!(again + SEGMENT / 3_000 + 1 >= room, "{segments} segments, {failing:?}: {again} of {room}");
    }
}
