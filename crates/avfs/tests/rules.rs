//! Rules: what is skipped is not inspected, and nobody else trusts it for that.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;

use crate::harness::{EVIL, How, Mount};

fn errno<T>(outcome: std::io::Result<T>) -> Option<Errno> {
    outcome.err().map(|error| Errno::from_io_error(&error).expect("an error of the system's"))
}

#[test]
fn what_is_skipped_passes_and_is_trusted_nowhere_else() {
    let Some(mount) = Mount::new(How { rules: "path=/free/ skip\n", ..How::default() }) else { return };
    fs::create_dir(mount.at("free")).expect("a folder");
    fs::write(mount.at("free/a"), EVIL).expect("nobody looks");
    assert_eq!(fs::read(mount.at("free/a")).expect("nobody looks"), EVIL);
    assert_eq!(fs::read(mount.below("free/a")).expect("it is there"), EVIL);
    assert_eq!(mount.counts.begun.load(Relaxed), 0);
    // By another name nobody trusts it, nor by this one while it has two.
    fs::hard_link(mount.at("free/a"), mount.at("link")).expect("a link");
    assert_eq!(errno(fs::read(mount.at("link"))), Some(Errno::PERM));
    assert_eq!(errno(fs::read(mount.at("free/a"))), Some(Errno::PERM));
    fs::remove_file(mount.at("link")).expect("it goes");
    assert_eq!(fs::read(mount.at("free/a")).expect("nobody looks"), EVIL);
    fs::rename(mount.at("free/a"), mount.at("a")).expect("another place");
    assert_eq!(errno(fs::read(mount.at("a"))), Some(Errno::PERM));
}

#[test]
fn who_is_not_inspected_changes_nothing_that_others_trust() {
    let Some(mount) = Mount::new(How { rules: "path=/free/ skip\n", ..How::default() }) else { return };
    fs::create_dir(mount.at("free")).expect("a folder");
    fs::write(mount.at("free/a"), b"clean and as long as it is, so").expect("a file");
    let writer = OpenOptions::new().write(true).open(mount.at("free/a")).expect("nobody looks");
    fs::rename(mount.at("free/a"), mount.at("a")).expect("another place");
    for _ in 0..20 {
        let mut reader = File::open(mount.at("a")).expect("clean");
        assert_eq!(std::io::read_to_string(&mut reader).expect("clean"), "clean and as long as it is, so");
        // Of the same size, and in the same moment.
        writer.write_all_at(EVIL, 2).expect("nobody looks");
        let mut content = [0; 64];
        assert_eq!(errno(reader.read_at(&mut content, 0)), Some(Errno::IO), "{content:?}");
        assert_eq!(errno(fs::read(mount.at("a"))), Some(Errno::PERM));
        writer.write_all_at(b"clean and as long as it is, so", 0).expect("nobody looks");
    }
}

#[test]
fn types_sizes_and_modes_are_asked() {
    let rules = "type=large size>100 skip\npath=*.late on-infected=deferred mode=full\n";
    let Some(mount) = Mount::new(How { rules, ..How::default() }) else { return };
    let content = |count: usize| [b"LARGE".to_vec(), vec![b'x'; count], EVIL.to_vec()].concat();
    fs::write(mount.below("large"), content(100)).expect("a file below");
    fs::write(mount.below("small"), content(10)).expect("a file below");
    assert_eq!(fs::read(mount.at("large")).expect("nobody looks"), content(100));
    assert_eq!(errno(fs::read(mount.at("small"))), Some(Errno::PERM));
    let write = |name: &str| {
        let file = File::create(mount.at(name)).expect("a file");
        file.write_all_at(EVIL, 0).and_then(|()| file.sync_all())
    };
    assert_eq!(errno(write("now")), Some(Errno::IO));
    assert_eq!(errno(write("a.late")), None);
    assert_eq!(fs::read(mount.at("a.late")).expect("it has what it had"), b"");
}
