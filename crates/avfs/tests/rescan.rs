//! Files found clean by other signatures are inspected again while no process waits.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;

use avfs::Rescan;
use rustix::io::Errno;

use crate::harness::{DEADLY, EVIL, How, Mount, until};

/// Content that is detected from some time on.
const LATER: &[u8] = b"FOUND-LATER";

/// How long nobody has to wait who waits for no inspection in the background.
const LONG: Duration = Duration::from_secs(60);

/// How it is mounted at first.
const BEFORE: How = How { rescan: Rescan::Changed, ..How::PLAIN };

/// In place of that.
const CHANGED: How = How { other: Some(LATER), rescan: Rescan::Changed, ..BEFORE };

fn code<T>(outcome: std::io::Result<T>) -> Option<Errno> {
    outcome.err().and_then(|error| Errno::from_io_error(&error))
}

/// Files of a folder with folders, made through the mount, so that they are known.
fn make(mount: &Mount) -> Vec<String> {
    fs::create_dir_all(mount.at("a/b")).expect("folders");
    let names: Vec<String> = (0..30).map(|n| format!("{}{n}", ["", "a/", "a/b/"][n % 3])).collect();
    for (n, name) in names.iter().enumerate() {
        let content = if n == 17 { LATER.to_vec() } else { format!("file {n}").into_bytes() };
        fs::write(mount.at(name), content).expect("a file");
    }
    fs::write(mount.at("empty"), b"").expect("a file");
    names
}

fn begun(mount: &Mount) -> (usize, usize) {
    (mount.counts.begun.load(Relaxed), mount.aside.begun.load(Relaxed))
}

#[test]
fn what_is_known_by_other_signatures_is_inspected_after_a_start_and_nobody_waits() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    let names = make(&mount);
    mount.end();
    let before = begun(&mount).0;
    mount.mount(CHANGED);
    until("all are inspected", || begun(&mount).1 == names.len());
    until("and known", || names.iter().all(|name| name == &names[17] || fs::read(mount.at(name)).is_ok()));
    assert_eq!(code(fs::read(mount.at(&names[17]))), Some(Errno::PERM));
    // The infected one, which the kernel did not know then, and perhaps the last, which was under way.
    assert!(begun(&mount).0 <= before + 2, "nobody waited");
    // What is done is done.
    mount.end();
    mount.mount(CHANGED);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(begun(&mount).1, names.len());
}

#[test]
fn what_is_found_in_the_background_is_refused_from_then_on() {
    let Some(mount) = Mount::new(BEFORE) else { return };
    let names = make(&mount);
    let open = fs::File::open(mount.at(&names[17])).expect("it is clean by then");
    let read = || open.read_at(&mut [0; 16], 0);
    assert_eq!(read().expect("it is read"), LATER.len());
    mount.renew(CHANGED);
    until("all are inspected", || begun(&mount).1 == names.len());
    let before = begun(&mount).0;
    until("it is refused", || code(fs::read(mount.at(&names[17]))) == Some(Errno::PERM));
    // Neither has whoever had it open more of it.
    until("it is read no more", || code(read()) == Some(Errno::IO));
    assert!(names.iter().all(|name| name == &names[17] || fs::read(mount.at(name)).is_ok()));
    // But perhaps for the last, which was under way.
    assert!(begun(&mount).0 <= before + 1, "nobody waited");
}

#[test]
fn what_others_know_is_not_known_by_new_signatures() {
    let Some(mount) = Mount::new(BEFORE) else { return };
    let names = make(&mount);
    assert_eq!(fs::read(mount.at(&names[17])).expect("clean by then"), LATER);
    mount.renew(How { rescan: Rescan::Off, ..CHANGED });
    assert_eq!(code(fs::read(mount.at(&names[17]))), Some(Errno::PERM));
    assert_eq!(begun(&mount).1, 0);
    // And the other way round.
    mount.renew(BEFORE);
    assert_eq!(fs::read(mount.at(&names[17])).expect("clean again"), LATER);
}

#[test]
fn what_was_written_by_half_is_inspected_by_those_that_are_there_at_its_end() {
    let Some(mount) = Mount::new(BEFORE) else { return };
    let file = fs::File::create(mount.at("a")).expect("a file");
    file.write_all_at(LATER, 0).expect("it waits");
    mount.renew(CHANGED);
    file.write_all_at(b"and more", LATER.len() as u64).expect("it waits");
    assert_eq!(code(file.sync_all()), Some(Errno::IO));
    drop(file);
    assert_eq!(fs::read(mount.below("a")).expect("the file"), b"");
}

#[test]
fn what_was_changed_behind_the_mount_is_inspected_after_a_start_and_what_was_never_seen_if_it_is_wanted() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    make(&mount);
    mount.end();
    fs::write(mount.below("a/b/5"), b"changed").expect("a file below");
    fs::write(mount.below("a/new"), b"never seen").expect("a file below");
    mount.mount(How { rescan: Rescan::Changed, ..BEFORE });
    let heads = || mount.aside.heads.lock().expect("heads").clone();
    until("one is inspected", || !heads().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(heads(), [b"changed"]);
    mount.end();
    mount.mount(How { rescan: Rescan::All, ..BEFORE });
    until("the other is, too", || mount.aside.heads.lock().expect("heads").contains(&b"never seen".to_vec()));
}

#[test]
fn what_was_used_last_comes_first() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    for n in 0..6 {
        fs::write(mount.at(&format!("{n}")), format!("file {n}")).expect("a file");
    }
    std::thread::sleep(Duration::from_millis(1100));
    fs::read(mount.at("3")).expect("it is used");
    std::thread::sleep(Duration::from_millis(1100));
    fs::read(mount.at("1")).expect("it is used");
    mount.end();
    mount.mount(CHANGED);
    let heads = || mount.aside.heads.lock().expect("heads").clone();
    until("all are inspected", || heads().len() == 6);
    assert_eq!(heads()[..2], [b"file 1", b"file 3"]);
}

#[test]
fn whoever_opens_what_is_inspected_in_the_background_does_not_wait_for_that() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    fs::write(mount.at("a"), b"first").expect("a file");
    mount.end();
    let (begun, has_begun) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    *mount.aside.before.lock().expect("nobody panics") = Some(Box::new(move || {
        begun.send(()).expect("it is heard");
        let _ = gate.recv();
    }));
    mount.mount(CHANGED);
    has_begun.recv_timeout(LONG).expect("an inspection");
    let (path, (done, is_done)) = (mount.at("a"), mpsc::channel());
    let reader = std::thread::spawn(move || done.send(fs::read(path)));
    let read = is_done.recv_timeout(LONG);
    drop(go);
    assert_eq!(read.expect("it is opened").expect("it is clean"), b"first");
    reader.join().expect("it ends").expect("it is heard");
}

#[test]
fn the_background_stands_still_while_somebody_waits() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    let names = make(&mount);
    mount.end();
    fs::write(mount.below("slow"), b"never inspected").expect("a file below");
    let (tell, has_begun) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    *mount.aside.before.lock().expect("nobody panics") = Some(Box::new(move || {
        tell.send(()).expect("it is heard");
        let _ = gate.recv();
    }));
    mount.mount(CHANGED);
    has_begun.recv_timeout(LONG).expect("one in the background");
    let (tell, is_waited_for) = mpsc::channel();
    let (go_on, other_gate) = mpsc::channel::<()>();
    *mount.counts.behind.lock().expect("nobody panics") = Some(Box::new(move || {
        tell.send(()).expect("it is heard");
        let _ = other_gate.recv();
    }));
    let path = mount.at("slow");
    let reader = std::thread::spawn(move || fs::read(path));
    is_waited_for.recv_timeout(LONG).expect("one that somebody waits for");
    drop(go);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(begun(&mount).1, 1, "the background stands still");
    drop(go_on);
    reader.join().expect("it ends").expect("it is clean");
    until("it goes on", || begun(&mount).1 == names.len());
}

#[test]
fn what_is_replaced_removed_or_dies_meanwhile_is_not_taken_for_clean() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    for (name, content) in [("1", &b"one"[..]), ("2", b"two"), ("3", b"three")] {
        fs::write(mount.at(name), content).expect("a file");
        std::thread::sleep(Duration::from_millis(1100));
    }
    mount.end();
    fs::write(mount.below("3"), DEADLY).expect("what dies");
    let (first, second, third) = (mount.below("1"), mount.below("2"), mount.below("3"));
    *mount.aside.before.lock().expect("nobody panics") = Some(Box::new(move || {
        // While the third is inspected.
        assert!(third.exists(), "it is there");
        fs::remove_file(first).expect("it goes");
    }));
    *mount.aside.behind.lock().expect("nobody panics") = Some(Box::new(move || {
        // Behind all that was read of the second.
        fs::write(second, EVIL).expect("another content");
    }));
    mount.mount(CHANGED);
    // The third has no verdict; the second is inspected, changed, and inspected once more.
    until("all are inspected", || begun(&mount).1 == 3);
    assert_eq!(code(fs::read(mount.at("2"))), Some(Errno::PERM));
    assert_eq!(code(fs::read(mount.at("3"))), Some(Errno::IO));
    assert_eq!(code(fs::read(mount.at("1"))), Some(Errno::NOENT));
}

#[test]
fn a_rule_says_what_is_left_out() {
    let Some(mut mount) = Mount::new(BEFORE) else { return };
    fs::create_dir(mount.at("out")).expect("a folder");
    for name in ["out/a", "b"] {
        fs::write(mount.at(name), name).expect("a file");
    }
    mount.end();
    mount.mount(How { rules: "path=/out/ skip", ..CHANGED });
    let heads = || mount.aside.heads.lock().expect("heads").clone();
    until("one is inspected", || !heads().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(heads(), [b"b"]);
}

#[test]
fn evidence_is_kept_of_what_is_found_in_the_background() {
    let Some(mut mount) = Mount::new(How { on_infected: avfs::OnInfected::Deferred, ..BEFORE }) else { return };
    make(&mount);
    mount.end();
    mount.mount(How { on_infected: avfs::OnInfected::Deferred, ..CHANGED });
    let evidence = mount.folder.path().join("evidence");
    let facts = || -> Vec<String> {
        let names = fs::read_dir(&evidence).expect("a folder").map(|entry| entry.expect("an entry").path());
        let names = names.filter(|path| path.extension().is_some_and(|end| end == "json"));
        names.map(|path| fs::read_to_string(path).expect("its facts")).collect()
    };
    until("it is found", || facts().len() == 1);
    assert!(facts()[0].contains("\"rescan\"") && facts()[0].contains("a/b/17"), "{}", facts()[0]);
}
