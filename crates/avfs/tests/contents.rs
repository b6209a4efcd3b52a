//! Content that took long to be inspected is known wherever it is.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::io::Errno;

use crate::harness::{DEADLY, EVIL, How, Mount};

const SIZE: usize = 5000;

fn content(word: &[u8]) -> Vec<u8> {
    [word, &vec![b'.'; SIZE - word.len()]].concat()
}

/// The next inspection takes some time.
fn slow(mount: &Mount) {
    let wait = || std::thread::sleep(Duration::from_millis(50));
    *mount.counts.behind.lock().expect("nobody panics") = Some(Box::new(wait));
}

#[test]
fn a_copy_of_what_took_long_is_not_inspected_until_there_are_other_signatures() {
    let Some(mut mount) = Mount::new(How::PLAIN) else { return };
    let begun = |mount: &Mount| mount.counts.begun.load(Relaxed);
    let put = |mount: &Mount, name: &str, word: &[u8]| fs::write(mount.below(name), content(word)).expect("below");
    put(&mount, "first", b"first");
    // On a busy machine one may take long.
    let is_inspected_twice = (0..50).any(|_| {
        let before = begun(&mount);
        put(&mount, "quick", b"quick");
        put(&mount, "quick copy", b"quick");
        fs::read(mount.at("quick")).and_then(|_| fs::read(mount.at("quick copy"))).expect("clean");
        mount.renew(How::PLAIN);
        begun(&mount) == before + 2
    });
    assert!(is_inspected_twice, "what is quick is inspected each time");
    let before = begun(&mount);
    slow(&mount);
    fs::read(mount.at("first")).expect("clean");
    assert_eq!(begun(&mount), before + 1);
    for (name, word, errno) in [("copy", &b"first"[..], None), ("evil", EVIL, Some(Errno::PERM))] {
        put(&mount, name, word);
        let read = fs::read(mount.at(name));
        assert_eq!(read.as_ref().err().and_then(Errno::from_io_error), errno, "{name}");
        assert!(read.is_err() || read.is_ok_and(|read| read == content(word)), "{name}");
    }
    assert_eq!(begun(&mount), before + 2, "the copy is known");
    // The other of its size has cost it its place.
    slow(&mount);
    put(&mount, "another copy", b"first");
    fs::read(mount.at("another copy")).expect("clean");
    assert_eq!(begun(&mount), before + 3);
    // It is known after a restart, also where it is put behind the mount, in the place of others.
    mount.end();
    put(&mount, "quick", b"first");
    mount.mount(How::PLAIN);
    fs::read(mount.at("quick")).expect("clean");
    assert_eq!(begun(&mount), before + 3);
    // And when it is written otherwise than in order.
    fs::write(mount.at("quick copy"), b"first").expect("a part");
    let file = fs::File::options().write(true).open(mount.at("quick copy")).expect("a file");
    std::os::unix::fs::FileExt::write_all_at(&file, &content(b"first")[5..], 5).expect("the rest");
    let before = begun(&mount);
    file.sync_all().expect("clean");
    assert_eq!(begun(&mount), before);
    assert_eq!(fs::read(mount.below("quick copy")).expect("the file"), content(b"first"));
    // Other signatures know nothing of it.
    mount.renew(How { other: Some(b"first"), ..How::PLAIN });
    put(&mount, "copy", b"first");
    assert_eq!(fs::read(mount.at("copy")).err().and_then(|error| Errno::from_io_error(&error)), Some(Errno::PERM));
}

#[test]
fn what_had_no_verdict_is_not_known() {
    let Some(mount) = Mount::new(How::PLAIN) else { return };
    for name in ["a", "b"] {
        fs::write(mount.below(name), content(DEADLY)).expect("below");
        slow(&mount);
        fs::read(mount.at(name)).expect_err("it dies");
    }
}
