//! A process that waits for an inspection keeps no other waiting.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::mpsc;
use std::time::Duration;

use crate::harness::{How, Mount};

/// More than there are threads that answer the kernel.
const MANY: usize = 24;

/// How long nobody has to wait who waits for no inspection.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn others_are_answered_while_many_wait() {
    let Some(mount) = Mount::new(How::default()) else { return };
    fs::write(mount.at("known"), b"clean").expect("a clean file");
    fs::write(mount.below("slow"), b"never inspected").expect("a file below");
    let (begun, has_begun) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    *mount.counts.before.lock().expect("nobody panics") = Some(Box::new(move || {
        begun.send(()).expect("it is heard");
        let _ = gate.recv();
    }));
    let readers: Vec<_> = (0..MANY)
        .map(|_| {
            let path = mount.at("slow");
            std::thread::spawn(move || fs::read(path))
        })
        .collect();
    has_begun.recv_timeout(LONG).expect("an inspection");
    // A thread of its own, which may be given up.
    let (done, is_done) = mpsc::channel();
    let point = mount.point.clone();
    let others = std::thread::spawn(move || {
        let at = |name: &str| point.join(name);
        for n in 0..MANY {
            assert_eq!(fs::read(at("known")).expect("it is read"), b"clean");
            fs::metadata(at("slow")).expect("its facts");
            fs::create_dir(at(&format!("folder{n}"))).expect("a folder");
            fs::read_dir(&point).expect("the folder").for_each(|entry| _ = entry.expect("an entry").metadata());
            fs::rename(at("known"), at("other")).and_then(|()| fs::rename(at("other"), at("known"))).expect("names");
        }
        done.send(()).expect("it is heard");
    });
    let outcome = is_done.recv_timeout(LONG);
    drop(go);
    assert_eq!(outcome, Ok(()), "others are answered");
    others.join().expect("all was as it should be");
    for reader in readers {
        assert_eq!(reader.join().expect("it ends").expect("it is clean"), b"never inspected");
    }
}

#[test]
fn a_file_can_be_looked_at_while_what_is_written_is_inspected() {
    let Some(mount) = Mount::new(How::default()) else { return };
    let (begun, has_begun) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    *mount.counts.behind.lock().expect("nobody panics") = Some(Box::new(move || {
        begun.send(()).expect("it is heard");
        let _ = gate.recv();
    }));
    let path = mount.at("a");
    let writer = std::thread::spawn(move || {
        let mut file = File::create(path)?;
        file.write_all(&[b'a'; 10_000])?;
        file.sync_all()
    });
    has_begun.recv_timeout(LONG).expect("an inspection");
    let (done, is_done) = mpsc::channel();
    let path = mount.at("a");
    let looks = std::thread::spawn(move || {
        let sizes: Vec<u64> = (0..MANY).map(|_| fs::metadata(&path).expect("its facts").len()).collect();
        done.send(sizes).expect("it is heard");
    });
    let sizes = is_done.recv_timeout(LONG);
    drop(go);
    assert_eq!(sizes.expect("answered"), vec![10_000; MANY]);
    looks.join().expect("it ends");
    writer.join().expect("it ends").expect("it is clean");
    assert_eq!(fs::read(mount.below("a")).expect("the file"), vec![b'a'; 10_000]);
}
