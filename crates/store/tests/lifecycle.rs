//! Single behaviours: ids, quotas, a full disk, devices that fail, damage, the calls of the paper.

use store::memory::Memory;
use store::{Arrival, Damaged, Error, Options, Quota, Refused, SpecialUse, Uids, Volume, paper};

use crate::model::{SEGMENT, format, mail, open, volume};

/// An account with an inbox.
fn inbox(volume: &mut Volume<Memory>, name: &str) -> u32 {
    let mut transaction = volume.transaction().unwrap();
    let account = transaction.add_account(name.as_bytes(), Quota::default()).unwrap();
    let inbox = transaction.create(account, b"INBOX", SpecialUse::default()).unwrap();
    transaction.stage().unwrap();
    volume.commit().unwrap();
    inbox
}

fn deliver(volume: &mut Volume<Memory>, mailboxes: &[u32], content: &[u8]) -> Result<u64, Error> {
    let mut append = volume.append(None)?;
    volume.write(&mut append, content)?;
    let sealed = volume.seal(append, b"digest", 1)?;
    let mut transaction = volume.transaction()?;
    for &mailbox in mailboxes {
        transaction.deliver(&sealed, mailbox, &Arrival::default())?;
    }
    transaction.stage()?;
    volume.commit()?;
    Ok(sealed.number())
}

#[test]
fn a_mail_to_fifty_is_stored_once_with_one_flush() {
    let mut volume = volume(40, 1 << 20);
    let mailboxes: Vec<u32> = (0..50).map(|number| inbox(&mut volume, &format!("user{number}"))).collect();
    let before = volume.device().counts;
    let number = deliver(&mut volume, &mailboxes, &mail(1, 4000)).unwrap();
    let after = volume.device().counts;
    assert_eq!(after.flushes - before.flushes, 1);
    assert!(after.written_bytes - before.written_bytes < 6200, "{:?}", after.written_bytes - before.written_bytes);
    assert_eq!(volume.state().message(number).unwrap().links, 50);
    assert_eq!(volume.state().places_of(number).count(), 50);
    for &mailbox in &mailboxes[1..] {
        let mut transaction = volume.transaction().unwrap();
        transaction.expunge(mailbox, &Uids::all()).unwrap();
        transaction.stage().unwrap();
    }
    volume.commit().unwrap();
    assert_eq!(volume.state().message(number).unwrap().links, 1);
}

#[test]
fn a_known_id_with_other_content_is_refused_and_the_same_content_costs_nothing() {
    let mut volume = volume(40, 1 << 20);
    let inbox = inbox(&mut volume, "a");
    let content = mail(1, 3000);
    let write = |volume: &mut Volume<Memory>, content: &[u8]| -> Result<bool, Error> {
        let mut append = volume.append(Some(12345))?;
        volume.write(&mut append, content)?;
        let sealed = volume.seal(append, b"", 0)?;
        let mut transaction = volume.transaction()?;
        transaction.deliver(&sealed, inbox, &Arrival::default())?;
        transaction.stage()?;
        volume.commit()?;
        Ok(sealed.is_known())
    };
    assert_eq!(write(&mut volume, &content), Ok(false));
    let written = volume.device().counts.written_bytes;
    assert_eq!(write(&mut volume, &content), Ok(true));
    assert!(volume.device().counts.written_bytes - written <= 512);
    let mut other = content.clone();
    other[2999] ^= 1;
    for attack in [&other[..], &content[..2999], &[&content[..], b"x"].concat()] {
        assert_eq!(write(&mut volume, attack), Err(Error::Refused(Refused::KnownIdOtherContent)));
    }
    // The same after a crash; and when the mail is gone, its id is free.
    let mut volume = open(volume.abandon(), 1 << 20).unwrap();
    assert_eq!(write(&mut volume, &other), Err(Error::Refused(Refused::KnownIdOtherContent)));
    let mut transaction = volume.transaction().unwrap();
    assert_eq!(transaction.expunge(inbox, &Uids::all()).unwrap(), [1, 2]);
    transaction.stage().unwrap();
    volume.commit().unwrap();
    assert_eq!(write(&mut volume, &other), Ok(false));
}

#[test]
fn two_that_begin_with_one_new_id_do_not_both_get_it() {
    let mut volume = volume(40, 1 << 20);
    let inbox = inbox(&mut volume, "a");
    let seal = |volume: &mut Volume<Memory>, content: &[u8]| {
        let mut append = volume.append(Some(9)).unwrap();
        volume.write(&mut append, content).unwrap();
        volume.seal(append, b"", 0).unwrap()
    };
    let (first, second) = (seal(&mut volume, b"one"), seal(&mut volume, b"two"));
    for (sealed, expected) in [(second, Ok(1)), (first, Err(Error::Refused(Refused::KnownIdOtherContent)))] {
        let mut transaction = volume.transaction().unwrap();
        assert_eq!(transaction.deliver(&sealed, inbox, &Arrival::default()), expected);
        transaction.stage().unwrap();
        volume.commit().unwrap();
    }
}

#[test]
fn a_full_volume_on_a_larger_device_grows_and_keeps_everything() {
    let mut volume = volume(40, 64 << 10);
    let inbox = inbox(&mut volume, "a");
    let fill =
        |volume: &mut Volume<Memory>| (0..).find(|&mail| deliver(volume, &[inbox], &self::mail(mail, 3000)).is_err());
    let first = fill(&mut volume).unwrap();
    let mails = |volume: &Volume<Memory>| volume.state().mailbox(inbox).unwrap().entries.len() as u64;
    // A power failure after each write of growing.
    for writes in 0..4 {
        let mut bytes = volume.device().bytes();
        let before = bytes.len();
        bytes.resize(before * 2, 0xa5);
        let mut larger = open(Memory::from_bytes(bytes), 64 << 10).unwrap();
        if writes == 3 {
            assert_eq!(larger.grow(), Ok(40));
            assert_eq!(larger.grow(), Ok(0));
            let second = fill(&mut larger).unwrap();
            assert!(second * 10 > first * 9, "{second} of {first}");
            volume = open(larger.abandon().after_power_failure(7), 64 << 10).unwrap();
            break;
        }
        let writes_so_far = larger.device_mut().counts.writes;
        larger.device_mut().faults.writes_until_failure = Some(writes_so_far + writes);
        let _ = larger.grow();
        let again = open(larger.abandon().after_power_failure(writes), 64 << 10).unwrap();
        assert_eq!(mails(&again), first);
    }
    assert!(mails(&volume) * 10 > first * 19);
    assert_eq!(volume.scrub(0, u64::MAX, &mut |number, error| panic!("message {number}: {error}")), None);
    assert!(volume.report().damage.is_empty());
}

#[test]
fn deleting_works_on_a_full_volume_and_makes_room() {
    let mut volume = volume(40, 64 << 10);
    let inbox = inbox(&mut volume, "a");
    let fill = |volume: &mut Volume<Memory>| -> u32 {
        let mut count = 0;
        loop {
            match deliver(volume, &[inbox], &mail(count, 3000)) {
                Ok(_) => count += 1,
                Err(Error::Full) => return count as u32,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let first = fill(&mut volume);
    assert!(first > 100, "{first} mails");
    for round in 0..20 {
        // Every other one: nothing is empty, so room is made by compaction alone.
        let mailbox = volume.state().mailbox(inbox).unwrap();
        let uids: Vec<u32> = mailbox.from(0).map(|(uid, _)| uid).step_by(2).collect();
        for uid in uids {
            let mut transaction = volume.transaction().unwrap();
            assert_eq!(transaction.expunge(inbox, &Uids::from_iter([uid])).unwrap(), [uid]);
            transaction.stage().unwrap();
            volume.commit().unwrap();
        }
        let again = fill(&mut volume);
        assert!(again * 10 > first * 3, "round {round}: {again} of {first}");
        if round % 5 == 0 {
            volume = open(volume.abandon().after_power_failure(0), 64 << 10).unwrap();
        }
        assert_eq!(volume.scrub(0, u64::MAX, &mut |number, error| panic!("message {number}: {error}")), None);
    }
}

#[test]
fn notes_can_be_changed_for_ever_on_a_full_volume_as_long_as_they_do_not_grow() {
    let mut volume = volume(40, 64 << 10);
    let inbox = inbox(&mut volume, "a");
    deliver(&mut volume, &[inbox], &mail(0, 3000)).unwrap();
    let note = |volume: &mut Volume<Memory>, value: &[u8]| {
        let mut transaction = volume.transaction()?;
        transaction.note(inbox, 1, Some(value))?;
        transaction.stage()?;
        volume.commit()
    };
    note(&mut volume, &[b'x'; 400]).unwrap();
    let mut count = 1;
    while deliver(&mut volume, &[inbox], &mail(count, 3000)).is_ok() {
        count += 1;
    }
    // What is left of the segment that is being written is had by all.
    while note(&mut volume, &vec![b'x'; 400 + count as usize]).is_ok() {
        count += 1;
    }
    for round in 0..2_000u32 {
        let value = [b'a' + (round % 20) as u8; 100];
        note(&mut volume, &value).unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}

#[test]
fn flags_can_be_changed_for_ever_on_a_full_volume() {
    let mut volume = volume(40, 64 << 10);
    let inbox = inbox(&mut volume, "a");
    while deliver(&mut volume, &[inbox], &mail(1, 3000)).is_ok() {}
    for step in 0..3000u64 {
        let mut transaction = volume.transaction().unwrap();
        let change = if step % 2 == 0 { store::Change::Add } else { store::Change::Remove };
        transaction.store(inbox, &Uids::all(), change, (1, &["$Junk"]), u64::MAX).unwrap();
        transaction.stage().unwrap_or_else(|error| panic!("step {step}: {error}"));
        volume.commit().unwrap();
    }
}

#[test]
fn a_message_is_streamed_in_the_memory_of_a_piece_and_garbage_if_nobody_gets_it() {
    let mut volume = volume(400, 64 << 10);
    let inbox = inbox(&mut volume, "a");
    for round in 0..30 {
        // Two that come in at the same time, interleaved with others, over several checkpoints.
        let contents = [mail(round, 300_000), mail(round + 100, 200_000)];
        let mut appends = [volume.append(None).unwrap(), volume.append(None).unwrap()];
        for at in (0..300_000).step_by(1000) {
            for (append, content) in appends.iter_mut().zip(&contents) {
                volume.write(append, content.get(at..at + 1000).unwrap_or_default()).unwrap();
            }
            if at % 20_000 == 0 {
                deliver(&mut volume, &[inbox], &mail(at as u64, 100)).unwrap();
            }
        }
        let [kept, dropped] = appends;
        let kept = volume.seal(kept, b"kept", 0).unwrap();
        drop(dropped);
        let mut transaction = volume.transaction().unwrap();
        let uid = transaction.deliver(&kept, inbox, &Arrival::default()).unwrap();
        transaction.stage().unwrap();
        volume.commit().unwrap();
        let mut read = vec![0; 300_000];
        volume.read(kept.number(), 0, &mut read).unwrap();
        assert!(read == contents[0], "round {round}");
        let mut transaction = volume.transaction().unwrap();
        transaction.expunge(inbox, &[(1, uid)].into_iter().collect()).unwrap();
        transaction.stage().unwrap();
        volume.commit().unwrap();
    }
    assert!(volume.usage().live_bytes < 100_000);
}

#[test]
fn a_device_that_fails_ends_the_writing_and_nothing_acknowledged_is_lost() {
    for failure in 0..60u64 {
        let mut volume = volume(40, 16 << 10);
        let inbox = inbox(&mut volume, "a");
        let counts = volume.device().counts;
        let faults = &mut volume.device_mut().faults;
        match failure % 2 {
            0 => faults.writes_until_failure = Some(counts.writes + failure / 2),
            _ => faults.flushes_until_failure = Some(counts.flushes + failure / 2),
        }
        let mut acknowledged = Vec::new();
        let error = loop {
            let content = mail(acknowledged.len() as u64, 1500);
            match deliver(&mut volume, &[inbox], &content) {
                Ok(number) => acknowledged.push((number, content)),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Device(_) | Error::Failed), "{error}");
        assert_eq!(deliver(&mut volume, &[inbox], b"more"), Err(Error::Failed));
        // Readers continue with acknowledged data.
        assert_eq!(volume.state().mailbox(inbox).unwrap().entries.len(), acknowledged.len());
        for seed in [0, 1, 2, u64::MAX] {
            let reopened = open(volume.device().after_power_failure(seed), 16 << 10).unwrap();
            for (number, content) in &acknowledged {
                let mut read = vec![0; 1500];
                reopened.read(*number, 0, &mut read).unwrap();
                assert!(read == *content);
            }
            let count = reopened.state().mailbox(inbox).unwrap().entries.len();
            assert!((acknowledged.len()..=acknowledged.len() + 1).contains(&count));
        }
    }
}

#[test]
fn a_message_that_rots_is_reported_and_the_rest_is_there() {
    let mut volume = volume(40, 1 << 20);
    let inbox = inbox(&mut volume, "a");
    let content = [&mail(1, 2000)[..], b"find me"].concat();
    let rotten = deliver(&mut volume, &[inbox], &content).unwrap();
    let sound = deliver(&mut volume, &[inbox], b"sound").unwrap();
    let mut bytes = volume.abandon().bytes();
    let at = bytes.windows(7).position(|window| window == b"find me").unwrap();
    bytes[at] ^= 4;
    let mut volume = open(Memory::from_bytes(bytes), 1 << 20).unwrap();
    assert_eq!(volume.report().damage.iter().map(|damage| damage.what).collect::<Vec<_>>(), [Damaged::Message(rotten)]);
    let mut damaged = Vec::new();
    assert_eq!(volume.scrub(0, u64::MAX, &mut |number, _| damaged.push(number)), None);
    assert_eq!(damaged, [rotten]);
    assert_eq!(volume.read(rotten, 0, &mut [0; 1000]), Ok(1000), "pieces that are whole are read");
    assert!(matches!(volume.read(rotten, 1900, &mut [0; 1000]), Err(Error::Damaged(_))));
    assert_eq!(volume.read(sound, 0, &mut [0; 9]), Ok(5));
    // Compaction leaves it where it is, and does not come back to it for ever.
    while volume.compact(100).unwrap() {}
    assert!(matches!(volume.verify(rotten), Err(Error::Damaged(_))));
}

#[test]
fn damaged_transactions_are_refused_and_the_rest_can_be_salvaged() {
    let mut volume = volume(40, 1 << 20);
    let inbox = inbox(&mut volume, "a");
    deliver(&mut volume, &[inbox], b"first").unwrap();
    let mut transaction = volume.transaction().unwrap();
    let keyword = ["$RotsAway"];
    transaction.store(inbox, &Uids::all(), store::Change::Add, (1, &keyword), u64::MAX).unwrap();
    transaction.stage().unwrap();
    volume.commit().unwrap();
    deliver(&mut volume, &[inbox], b"second").unwrap();
    let before = volume.state().mailbox(inbox).unwrap().uid_validity;
    let mut bytes = volume.abandon().bytes();
    let at = bytes.windows(9).position(|window| window == b"$RotsAway").unwrap();
    bytes[at] ^= 1;
    let refused = open(Memory::from_bytes(bytes.clone()), 1 << 20).err();
    assert!(matches!(refused, Some(Error::Damaged(damage)) if damage.what == Damaged::Transaction), "{refused:?}");
    let salvage = Options { salvage: true, ..Options::default() };
    let volume = Volume::open(Memory::from_bytes(bytes), salvage).unwrap();
    assert!(volume.report().lost_transactions);
    let mailbox = volume.state().mailbox(inbox).unwrap();
    assert_eq!(mailbox.entries.len(), 2);
    assert_ne!(mailbox.uid_validity, before, "clients have to look again");
    let volume = open(volume.close().unwrap(), 1 << 20).unwrap();
    assert_eq!(volume.state().mailbox(inbox).unwrap().entries.len(), 2);
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(matches!(Volume::format(Memory::new(8192 + 11 * SEGMENT as usize), &format()), Err(Error::Geometry(_))));
    assert!(matches!(open(Memory::new(1 << 20), 1 << 20), Err(Error::NotAVolume)));
    assert!(matches!(open(Memory::new(100), 1 << 20), Err(Error::NotAVolume)));
    let device = volume(20, 1 << 20).close().unwrap();
    let mut bytes = device.bytes();
    bytes.truncate(bytes.len() - 1);
    assert!(matches!(open(Memory::from_bytes(bytes), 1 << 20), Err(Error::Geometry(_))));
    let mut reader = Volume::open(device, Options { read_only: true, ..Options::default() }).unwrap();
    assert!(reader.report().was_closed);
    assert_eq!(reader.append(None).err(), Some(Error::ReadOnly));
    assert_eq!(reader.device().counts, volume(20, 1 << 20).close().unwrap().counts);
}

#[test]
fn the_calls_of_the_paper_do_what_it_says() {
    let mut volume = volume(40, 1 << 20);
    let mut files: Vec<_> =
        ["one", "two", "three"].map(|name| paper::mail_open(&mut volume, name.as_bytes()).unwrap()).into();
    paper::mail_nwrite(&mut volume, &files, b"to all", Some(7)).unwrap();
    paper::mail_nwrite(&mut volume, &files[..1], b"to one", None).unwrap();
    let attack = paper::mail_nwrite(&mut volume, &files[1..2], b"forged", Some(7));
    assert_eq!(attack, Err(Error::Refused(Refused::KnownIdOtherContent)));
    let first = &mut files[0];
    assert_eq!(paper::mail_read(&volume, first).unwrap().as_deref(), Some(&b"to all"[..]));
    assert_eq!(paper::mail_read(&volume, first).unwrap().as_deref(), Some(&b"to one"[..]));
    assert_eq!(paper::mail_read(&volume, first).unwrap(), None);
    paper::mail_seek(&volume, first, 0).unwrap();
    assert!(paper::mail_delete(&mut volume, first).unwrap());
    assert_eq!(paper::mail_read(&volume, first).unwrap().as_deref(), Some(&b"to one"[..]));
    let mut two = paper::mail_open(&mut volume, b"two").unwrap();
    assert_eq!(paper::mail_read(&volume, &mut two).unwrap().as_deref(), Some(&b"to all"[..]), "others have it still");
    files.into_iter().for_each(paper::mail_close);
}
