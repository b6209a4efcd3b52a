//! Infected content comes neither to a reader nor to the disk, whichever way it is written or read.
//!
//! The ways that need a process of their own, or a mapping, are programs in Python.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;

use avfs::{Mode, OnInfected};
use rustix::io::Errno;

use crate::harness::{DEADLY, EVIL, How, Mount, PANIC, holds_word, until};

const MODES: [How; 2] = [How { mode: Mode::Full, ..How::PLAIN }, How::PLAIN];

/// Content with the word in its middle.
fn evil(before: usize, after: usize) -> Vec<u8> {
    [&vec![b'a'; before][..], EVIL, &vec![b'z'; after]].concat()
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).expect("an error of the system's")
}

/// Closes a file, and says what the last close said: std does not.
fn closed(file: File) -> Result<(), Errno> {
    // Another descriptor of the same opening: its close has a result as well.
    file.sync_all().map_err(errno)
}

/// Nothing of it can be had through the mount, and nothing is below.
fn assert_nothing(mount: &Mount, way: &str) {
    assert!(!holds_word(&mount.source, EVIL), "{way}: it is on the disk");
    let names = fs::read_dir(&mount.point).expect("the folder");
    for name in names.map(|entry| entry.expect("an entry").path()) {
        let content = fs::read(&name).unwrap_or_default();
        assert!(!content.windows(EVIL.len()).any(|window| window == EVIL), "{way}: {name:?} shows it");
    }
}

fn python(way: &str, folder: &Path, program: &str) -> String {
    let preface = format!("import os, mmap, sys, errno, time\nE = {:?}\n", String::from_utf8_lossy(EVIL));
    let program = format!("{preface}E = E.encode()\nos.chdir(sys.argv[1])\n{program}");
    let output = Command::new("python3").args(["-c", &program]).arg(folder).output().expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{way}: {}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn it_cannot_be_written() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        let content = evil(100_000, 50_000);
        let split = 100_010;

        // In one piece, in two, and byte after byte around the middle.
        for cuts in [vec![], vec![split], (split - 20..split + 20).collect()] {
            let mut file = File::create(mount.at("a")).expect("a file");
            let mut last = 0;
            let ends = cuts.iter().copied().chain([content.len()]);
            let written = ends.map(|end| file.write_all(&content[std::mem::replace(&mut last, end)..end]));
            let outcome: io::Result<Vec<()>> = written.collect();
            let outcome = outcome.map_err(errno).and_then(|_| closed(file));
            assert_eq!(outcome, Err(Errno::IO), "{how:?}", how = how.mode);
            assert_nothing(&mount, "write");
            assert_eq!(fs::read(mount.at("a")).expect("what it had before"), b"");
        }

        // In any order, overlapping.
        let file = File::create(mount.at("b")).expect("a file");
        let _ = file.write_all_at(&content[split..], split as u64);
        let _ = file.write_all_at(&[b'q'; 300], split as u64 - 150);
        let _ = file.write_all_at(&content[split - 200..split + 200], split as u64 - 200);
        let _ = file.write_all_at(&content[..split], 0);
        assert_eq!(closed(file), Err(Errno::IO));
        assert_nothing(&mount, "pwrite");

        // Over a clean file: it has what it had.
        fs::write(mount.at("c"), b"clean and long enough to be seen").expect("a clean file");
        let file = OpenOptions::new().write(true).open(mount.at("c")).expect("the file");
        file.write_all_at(EVIL, 3).expect("it waits");
        assert_eq!(closed(file), Err(Errno::IO));
        assert_eq!(fs::read(mount.at("c")).expect("the file"), b"clean and long enough to be seen");

        // Two who append.
        let append = || OpenOptions::new().append(true).create(true).open(mount.at("d")).expect("the file");
        let (mut one, mut two) = (append(), append());
        one.write_all(b"before it ").expect("it waits");
        one.write_all(&EVIL[..10]).expect("it waits");
        let outcome = two.write_all(&EVIL[10..]).map_err(errno).and_then(|()| closed(two));
        assert_eq!(outcome, Err(Errno::IO));
        assert!(closed(one).is_err());
        assert_nothing(&mount, "append");
    }
}

#[test]
fn what_is_left_by_cutting_or_lengthening_is_inspected() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        // Zeros come between the halves, and a cut brings the second where the hole was.
        let file = File::create(mount.at("a")).expect("a file");
        file.write_all_at(&EVIL[10..], 10).expect("it waits");
        file.sync_all().expect("half is clean");
        file.set_len(5000).expect("longer");
        file.set_len(EVIL.len() as u64).expect("cut");
        file.write_all_at(&EVIL[..10], 0).expect("it waits");
        assert_eq!(closed(file), Err(Errno::IO));
        assert_nothing(&mount, "truncate");
        // A hole in what is below, filled last.
        let file = File::create(mount.at("b")).expect("a file");
        file.set_len(1 << 24).expect("a long one");
        file.sync_all().expect("clean");
        file.write_all_at(EVIL, (1 << 24) - 5).expect("it waits");
        assert_eq!(closed(file), Err(Errno::IO));
        assert_nothing(&mount, "sparse");
    }
}

#[test]
fn what_came_to_be_below_cannot_be_read() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        fs::write(mount.below("a"), evil(300_000, 10)).expect("infected below");
        assert_eq!(fs::read(mount.at("a")).map_err(errno), Err(Errno::PERM));
        assert_eq!(
            OpenOptions::new().read(true).write(true).open(mount.at("a")).map_err(errno).err(),
            Some(Errno::PERM)
        );
        // Its names are there, and it can be overwritten and removed.
        assert_eq!(fs::metadata(mount.at("a")).expect("facts").len(), 300_010 + EVIL.len() as u64);
        fs::rename(mount.at("a"), mount.at("b")).expect("another name");
        fs::hard_link(mount.at("b"), mount.at("c")).expect("one more");
        assert_eq!(fs::read(mount.at("c")).map_err(errno), Err(Errno::PERM));
        fs::write(mount.at("b"), b"clean").expect("overwritten");
        assert_eq!(fs::read(mount.at("c")).expect("clean by now"), b"clean");

        // It changes below while it is open.
        let mut open = File::open(mount.at("c")).expect("clean");
        fs::write(mount.below("c"), evil(4, 4)).expect("infected below");
        let mut content = Vec::new();
        let outcome = open.seek(SeekFrom::Start(0)).and_then(|_| open.read_to_end(&mut content));
        assert!(!content.windows(EVIL.len()).any(|window| window == EVIL), "{outcome:?}");
        drop(open);
        assert_eq!(fs::read(mount.at("c")).map_err(errno), Err(Errno::PERM));
    }
}

#[test]
fn nobody_else_reads_what_has_no_verdict() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        fs::write(mount.at("a"), b"clean").expect("a clean file");
        let reader = File::open(mount.at("a")).expect("a reader");
        let writer = OpenOptions::new().read(true).write(true).open(mount.at("a")).expect("a writer");
        writer.write_all_at(&evil(10, 10), 0).expect("it waits");
        let mut content = [0; 100];
        // Who had it open before: an error, or what the file has again where the kernel has asked twice.
        match reader.read_at(&mut content, 0) {
            Ok(count) => assert!(content[..count].starts_with(b"clean") && content[5..].iter().all(|&byte| byte == 0)),
            Err(error) => assert_eq!(errno(error), Errno::IO),
        }
        // All of it is gone then.
        assert_eq!(writer.write_at(b"more", 0).map_err(errno), Err(Errno::IO));
        assert_eq!(closed(writer), Err(Errno::IO));
        assert_eq!(fs::read(mount.at("a")).expect("as before"), b"clean");
        until("as before", || reader.read_at(&mut [0; 100], 0).is_ok_and(|count| count == 5));
        drop(reader);

        // The kernel tells of a close when it has the time.
        let alone = std::cell::Cell::new(None);
        until("nobody else has it open", || {
            let writer = OpenOptions::new().read(true).write(true).open(mount.at("a")).expect("a writer");
            writer.write_all_at(&evil(10, 10), 0).expect("it waits");
            let is_alone = writer.read_at(&mut [0; 100], 0).is_ok();
            alone.set(Some(writer));
            is_alone
        });
        let writer = alone.take().expect("the last of them");
        assert_eq!(writer.read_at(&mut content, 0).expect("its own"), 20 + EVIL.len());
        assert_eq!(File::open(mount.at("a")).map_err(errno).err(), Some(Errno::PERM), "who opens it meanwhile");
        assert_nothing(&mount, "open meanwhile");
    }
}

#[test]
fn what_has_no_verdict_is_not_read_when_its_writer_is_gone() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        fs::write(mount.at("a"), b"clean").expect("a clean file");
        let reader = File::open(mount.at("a")).expect("a reader");
        let writer = OpenOptions::new().write(true).open(mount.at("a")).expect("a writer");
        writer.write_all_at(DEADLY, 0).expect("it waits");
        assert_eq!(closed(writer), Err(Errno::IO));
        for _ in 0..20 {
            let mut content = [0; 6];
            let outcome = reader.read_at(&mut content, 0).map_err(errno);
            assert!(outcome.is_ok_and(|_| content.starts_with(b"clean")) || outcome == Err(Errno::IO), "{content:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        until("it has what it had", || fs::read(mount.at("a")).is_ok_and(|content| content == b"clean"));
    }
}

#[test]
fn an_error_is_not_lost_to_another_who_closes() {
    let Some(mount) = Mount::new(MODES[0]) else { return };
    let file = File::create(mount.at("a")).expect("a file");
    file.write_all_at(EVIL, 5).expect("it waits");
    // As a process that is started closes what it has inherited: the error is its own first.
    drop(file.try_clone().expect("the same opening"));
    assert_eq!(closed(file), Err(Errno::IO));
}

#[test]
fn it_goes_nowhere_under_another_name() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        fs::write(mount.at("target"), b"old and clean").expect("a file");
        let file = File::create(mount.at("new")).expect("a file");
        file.write_all_at(EVIL, 1).expect("it waits");
        assert_eq!(fs::rename(mount.at("new"), mount.at("target")).map_err(errno), Err(Errno::PERM));
        drop(file);
        assert_eq!(fs::rename(mount.at("new"), mount.at("target")).map_err(errno), Err(Errno::PERM), "nor afterwards");
        assert_eq!(fs::hard_link(mount.at("new"), mount.at("link")).map_err(errno), Err(Errno::PERM));
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        for (one, other) in [("new", "target"), ("target", "new")] {
            let outcome =
                rustix::fs::renameat_with(rustix::fs::CWD, mount.at(one), rustix::fs::CWD, mount.at(other), exchange);
            assert_eq!(outcome, Err(Errno::PERM), "{one} and {other}");
        }
        assert_eq!(fs::read(mount.at("target")).expect("the old"), b"old and clean");
        fs::write(mount.at("new"), b"new and clean").expect("clean this time");
        fs::rename(mount.at("new"), mount.at("target")).expect("it may");
        assert_eq!(fs::read(mount.at("target")).expect("the new"), b"new and clean");
        // By the other name of a link.
        fs::hard_link(mount.at("target"), mount.at("other")).expect("a link");
        let file = OpenOptions::new().append(true).open(mount.at("target")).expect("the file");
        (&file).write_all(EVIL).expect("it waits");
        assert_eq!(fs::read(mount.at("other")).map_err(errno), Err(Errno::PERM));
        drop(file);
        assert_nothing(&mount, "link");
    }
}

#[test]
fn mappings_and_calls_that_copy_are_seen() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        let ways = [
            (
                "a shared mapping",
                r#"
f = os.open("m", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 20000)
m = mmap.mmap(f, 20000); m[5000:5000 + len(E)] = E
try: m.flush(); m.close(); os.fsync(f); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "a mapping that outlives its file",
                r#"
f = os.open("n", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 20000)
m = mmap.mmap(f, 20000); os.close(f); m[5000:5000 + len(E)] = E
try: open("n", "rb").read(); m.flush(); print("read")
except OSError as e: print(errno.errorcode[e.errno])
m.close()
"#,
                "EIO",
            ),
            (
                "a mapping beside a reader",
                r#"
f = os.open("o", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 20000); os.fsync(f)
m = mmap.mmap(f, 20000)
r = os.open("o", os.O_RDONLY)
m[5000:5000 + len(E)] = E
try: print("read" if E in os.read(r, 20000) else "nothing")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "copy_file_range",
                r#"
f = os.open("p", os.O_RDWR | os.O_CREAT); os.write(f, E[:12]); os.fsync(f)
g = os.open("q", os.O_RDWR | os.O_CREAT); os.write(g, E[12:]); os.fsync(g)
h = os.open("r", os.O_RDWR | os.O_CREAT)
os.copy_file_range(g, h, 100, 0, 12)
os.copy_file_range(f, h, 100, 0, 0)
try: os.fsync(h); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "sendfile in",
                r#"
t = os.memfd_create("t"); os.write(t, b"x" * 7000 + E); os.lseek(t, 0, 0)
f = os.open("s", os.O_WRONLY | os.O_CREAT)
try:
    os.sendfile(f, t, 0, 8000); os.fsync(f); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "O_DIRECT",
                r#"
m = mmap.mmap(-1, 8192); m[4090:4090 + len(E)] = E
f = os.open("t", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
try:
    os.writev(f, [m]); os.fsync(f); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "two processes",
                r#"
f = os.open("u", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
if os.fork() == 0:
    g = os.open("u", os.O_WRONLY | os.O_APPEND); os.write(g, E[:9]); os._exit(0)
os.wait(); os.write(f, E[9:])
try: os.fsync(f); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "a close that is heard",
                r#"
f = os.open("v", os.O_WRONLY | os.O_CREAT); os.lseek(f, 77, 0)
try: os.write(f, E); os.close(f); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
            (
                "a hole moved in",
                r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
f = os.open("w", os.O_RDWR | os.O_CREAT); os.write(f, b"y" * 100 + E[:5]); os.fsync(f)
libc.fallocate(f, 3, ctypes.c_long(0), ctypes.c_long(100))
os.pwrite(f, E[5:], 105)
try: os.fsync(f); print("written")
except OSError as e: print(errno.errorcode[e.errno])
"#,
                "EIO",
            ),
        ];
        for (way, program, expected) in ways {
            assert_eq!(python(way, &mount.point, program), expected, "{way}, {:?}", how.mode);
            assert_nothing(&mount, way);
        }
        // What is below already, read in other ways.
        fs::write(mount.below("x"), evil(9000, 10)).expect("infected below");
        fs::write(mount.below("y"), evil(9000, 10)).expect("infected below");
        let readers = [
            ("mapped", "f = os.open('x', os.O_RDONLY); print(E in mmap.mmap(f, 0, prot=mmap.PROT_READ))"),
            (
                "sent",
                "f = os.open('x', os.O_RDONLY); t = os.memfd_create('t'); os.sendfile(t, f, 0, 20000); print('sent')",
            ),
            ("direct", "f = os.open('x', os.O_RDONLY | os.O_DIRECT); print(os.readv(f, [mmap.mmap(-1, 8192)]))"),
            (
                "copied",
                "f = os.open('x', os.O_RDONLY); g = os.open('z', os.O_RDWR|os.O_CREAT); print(os.copy_file_range(f, g, 9000))",
            ),
            ("run", "os.chmod('y', 0o755); os.execv('./y', ['y'])"),
        ];
        for (way, program) in readers {
            let program = format!("try: {program}\nexcept OSError as e: print(errno.errorcode[e.errno])");
            assert_eq!(python(way, &mount.point, &program), "EPERM", "{way}, {:?}", how.mode);
        }
    }
}

#[test]
fn an_inspection_that_dies_costs_an_error_and_no_more() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        for content in [DEADLY, PANIC] {
            fs::write(mount.below("a"), content).expect("a file below");
            assert_eq!(fs::read(mount.at("a")).map_err(errno), Err(Errno::IO));
            let file = File::create(mount.at("b")).expect("a file");
            file.write_all_at(content, 0).expect("it waits");
            assert_eq!(closed(file), Err(Errno::IO));
            until("it is given up", || fs::metadata(mount.at("b")).is_ok_and(|facts| facts.len() == 0));
            let longer = OpenOptions::new().write(true).open(mount.at("a")).and_then(|file| file.set_len(7));
            assert!(longer.is_ok() && fs::read(mount.below("a")).is_ok_and(|below| below == content));
            // The kernel tells of the last close when it likes.
            until("it is given up", || fs::metadata(mount.at("a")).is_ok_and(|facts| facts.len() == 6));
        }
        fs::write(mount.at("c"), b"clean").expect("others are not concerned");
        assert_eq!(fs::read(mount.at("c")).expect("the file"), b"clean");
    }
}

/// The verdict is of what the file below was; nobody may put something else there meanwhile.
#[test]
fn what_changes_below_while_it_is_inspected_is_inspected_again() {
    for how in MODES {
        let Some(mount) = Mount::new(how) else { return };
        let below = mount.below("a");
        fs::write(&below, [b'x'; EVIL.len()]).expect("a file below");
        let file = OpenOptions::new().write(true).open(mount.at("a")).expect("the file");
        file.set_len(EVIL.len() as u64).expect("it waits");
        let (cut, written) = (below.clone(), below);
        let before: Box<dyn FnOnce() + Send> = Box::new(move || drop(File::create(cut).expect("it is cut")));
        let behind: Box<dyn FnOnce() + Send> = Box::new(move || fs::write(written, EVIL).expect("it is written"));
        *mount.counts.before.lock().expect("nobody panics with it") = Some(before);
        *mount.counts.behind.lock().expect("nobody panics with it") = Some(behind);
        let _ = closed(file);
        assert_eq!(fs::read(mount.at("a")).map_err(errno), Err(Errno::PERM), "{:?}", how.mode);
        assert!(mount.counts.behind.lock().expect("nobody panics with it").is_none());
    }
}

#[test]
fn a_clean_file_is_inspected_once_even_over_a_restart() {
    let Some(mut mount) = Mount::new(MODES[0]) else { return };
    fs::write(mount.below("a"), vec![b'a'; 300_000]).expect("a file below");
    let inspected = |mount: &Mount| mount.counts.begun.load(Relaxed);
    for _ in 0..5 {
        assert_eq!(fs::read(mount.at("a")).expect("clean").len(), 300_000);
    }
    assert_eq!(inspected(&mount), 1);
    // What does not change its content does not change the verdict.
    fs::rename(mount.at("a"), mount.at("b")).expect("another name");
    fs::set_permissions(mount.at("b"), std::os::unix::fs::PermissionsExt::from_mode(0o640)).expect("a mode");
    fs::hard_link(mount.at("b"), mount.at("c")).expect("a link");
    fs::remove_file(mount.at("b")).expect("it goes");
    assert_eq!(fs::read(mount.at("c")).expect("clean").len(), 300_000);
    assert_eq!(inspected(&mount), 1);
    // What was written through the mount is known.
    fs::write(mount.at("d"), vec![b'd'; 100_000]).expect("a file");
    let before = inspected(&mount);
    fs::read(mount.at("d")).expect("clean");
    assert_eq!(inspected(&mount), before);
    mount.end();
    mount.mount(MODES[0]);
    fs::read(mount.at("c")).expect("clean");
    fs::read(mount.at("d")).expect("clean");
    assert_eq!(inspected(&mount), before, "after a restart");
    fs::write(mount.below("c"), vec![b'x'; 300_000]).expect("it changes below");
    fs::read(mount.at("c")).expect("clean");
    assert_eq!(inspected(&mount), before + 1);
}

#[test]
fn what_is_written_in_order_is_inspected_once() {
    let Some(mount) = Mount::new(MODES[1]) else { return };
    let mut file = File::create(mount.at("a")).expect("a file");
    for _ in 0..100 {
        file.write_all(&[b'a'; 10_000]).expect("it waits");
    }
    drop(file);
    fs::read(mount.at("a")).expect("clean");
    assert_eq!((mount.counts.begun.load(Relaxed), mount.counts.bytes.load(Relaxed)), (1, 1_000_000));
    // The error comes with the write that completes it.
    let mut file = File::create(mount.at("b")).expect("a file");
    file.write_all(&EVIL[..20]).expect("it waits");
    assert_eq!(file.write_all(&EVIL[20..]).map_err(errno), Err(Errno::IO));
    assert_nothing(&mount, "in order");
}

#[test]
fn deferred_the_writer_notices_nothing_and_evidence_is_kept() {
    let how = How { on_infected: OnInfected::Deferred, mode: Mode::Full, ..How::default() };
    let Some(mount) = Mount::new(how) else { return };
    fs::write(mount.at("a"), b"as it was before").expect("a clean file");
    let file = OpenOptions::new().write(true).open(mount.at("a")).expect("the file");
    file.write_all_at(&evil(3, 3), 0).expect("it waits");
    assert_eq!(closed(file), Ok(()));
    assert_eq!(fs::read(mount.at("a")).expect("as before"), b"as it was before");
    assert_nothing(&mount, "deferred");
    let folder = mount.folder.path().join("evidence");
    let kept = |suffix: &str| {
        let entries = fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let found: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
        assert_eq!(found.len(), 1, "{suffix}");
        fs::read(&found[0]).expect("a file")
    };
    assert_eq!(kept(".before"), b"as it was before");
    assert!(kept(".data").starts_with(&evil(3, 3)));
    let facts: serde_json::Value = serde_json::from_slice(&kept(".json")).expect("JSON");
    assert_eq!(facts["signature"], "Test.Evil");
    assert_eq!(facts["file"], "a");
    assert_eq!((facts["process"].as_u64(), facts["user"].as_u64()), (Some(std::process::id().into()), Some(0)));
    let program = std::env::current_exe().expect("a program");
    assert_eq!(facts["program"].as_str(), program.to_str(), "{facts}");
}

#[test]
fn what_is_made_belongs_to_who_made_it() {
    let Some(mount) = Mount::new(MODES[1]) else { return };
    let script =
        "umask 027; mkdir d; echo x > d/f; mkfifo d/p; ln -s f d/l; stat -c '%n %u:%g %a' d d/f d/p d/l; cat d/f";
    fs::set_permissions(&mount.point, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("a mode");
    // The way there is closed to others.
    fs::set_permissions(mount.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let output = Command::new("setpriv")
        .args(["--reuid=1001", "--regid=1002", "--clear-groups", "sh", "-c", script])
        .current_dir(&mount.point)
        .output()
        .expect("setpriv runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "d 1001:1002 750\nd/f 1001:1002 640\nd/p 1001:1002 640\nd/l 1001:1002 777\nx\n", "{output:?}");
    let output = Command::new("setpriv")
        .args(["--reuid=1003", "--regid=1003", "--clear-groups", "cat", "d/f"])
        .current_dir(&mount.point)
        .output()
        .expect("setpriv runs");
    assert!(!output.status.success(), "it is another's");
}

#[test]
fn a_link_leads_nowhere_below() {
    let Some(mount) = Mount::new(MODES[1]) else { return };
    let outside = mount.folder.path().join("outside");
    fs::write(&outside, b"outside").expect("a file");
    std::os::unix::fs::symlink(&outside, mount.below("out")).expect("a link");
    // Links are followed by who asks, in their own tree.
    assert_eq!(fs::read(mount.at("out")).expect("outside"), b"outside");
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(mount.at("out"));
    assert_eq!(opened.map_err(errno).err(), Some(Errno::LOOP));
    // One that takes a folder's place under the eyes of the mount.
    fs::create_dir(mount.at("d")).expect("a folder");
    fs::write(mount.at("d/f"), b"inside").expect("a file");
    let open = File::open(mount.at("d")).expect("the folder");
    fs::rename(mount.below("d"), mount.below("e")).expect("moved below");
    std::os::unix::fs::symlink(mount.folder.path(), mount.below("d")).expect("a link");
    let inner = rustix::fs::openat(&open, "outside", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    assert_eq!(inner.err(), Some(Errno::NOENT));
}
