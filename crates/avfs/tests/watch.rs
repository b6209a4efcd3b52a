//! `watch`: what processes get when they open files in a folder that is watched. Each test has a file system of its own in
//! memory, since whole file systems are marked, and others have to go on meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, mpsc};
use std::time::{Duration, Instant};

use avfs::{Judge, WatchOptions, Watching, watch};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::harness::{Counts, DEADLY, EVIL, PANIC, Word, turn, until};

/// A file system in memory, until it is dropped.
struct Memory {
    folder: tempfile::TempDir,
    counts: Arc<Counts>,
    _turn: MutexGuard<'static, ()>,
}

impl Memory {
    /// Nothing where nobody may mount or watch.
    fn new() -> Option<Memory> {
        let turn = turn();
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = mount("none", folder.path(), "tmpfs", MountFlags::empty(), None);
        let has_fanotify = Path::new("/proc/sys/fs/fanotify").exists();
        if !rustix::process::geteuid().is_root() || mounted.is_err() || !has_fanotify {
            eprintln!("skipped: only root can mount and watch, where the kernel has fanotify");
            return None;
        }
        fs::create_dir(folder.path().join("in")).expect("a folder");
        fs::create_dir(folder.path().join("out")).expect("a folder");
        Some(Memory { folder, counts: Arc::default(), _turn: turn })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self) -> WatchOptions {
        WatchOptions {
            paths: vec![self.at("in")],
            state: None,
            evidence: None,
            threads: 2,
            deadline: Duration::from_secs(20),
            allows_unjudged: false,
            only_tells: false,
            excluded: Vec::new(),
            users: Vec::new(),
            is_ours: |_| false,
        }
    }

    /// A judge that knows the other word, too, if there is one.
    fn judge(&self, other: Option<&'static [u8]>) -> Box<dyn Judge> {
        Box::new(Word { other, ..Word::counting(&self.counts) })
    }

    fn watch(&self) -> Watching {
        self.watch_with(self.options())
    }

    fn watch_with(&self, options: WatchOptions) -> Watching {
        watch(options, self.judge(None), || Ok(())).expect("it watches")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
    }
}

/// Output of `cat` for a file: this process itself is not asked about.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let output = Command::new("cat").arg(path).output().expect("cat runs");
    if output.status.success() { Ok(output.stdout) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn is_refused(path: &Path) -> bool {
    read(path).is_err_and(|why| why.contains("Operation not permitted"))
}

#[test]
fn what_is_infected_is_not_opened_and_the_rest_is() {
    let Some(memory) = Memory::new() else { return };
    fs::write(memory.at("in/old"), [b"before ", EVIL].concat()).expect("a file");
    fs::write(memory.at("in/clean"), b"clean").expect("a file");
    fs::write(memory.at("out/old"), EVIL).expect("a file");
    let watching = memory.watch();
    assert!(is_refused(&memory.at("in/old")) && is_refused(&memory.at("in/old")));
    assert_eq!(read(&memory.at("in/clean")), Ok(b"clean".to_vec()));
    assert_eq!(read(&memory.at("out/old")), Ok(EVIL.to_vec()), "outside");
    assert_eq!(memory.counts.begun.load(Relaxed), 2, "once each");
    // In a folder that is new, by another name, moved in; run; cut.
    fs::create_dir_all(memory.at("in/new/folder")).expect("folders");
    fs::write(memory.at("in/new/folder/a"), EVIL).expect("a file");
    assert!(is_refused(&memory.at("in/new/folder/a")));
    fs::hard_link(memory.at("out/old"), memory.at("in/link")).expect("a link");
    assert!(is_refused(&memory.at("in/link")));
    fs::rename(memory.at("out/old"), memory.at("in/moved")).expect("it moves");
    assert!(is_refused(&memory.at("in/moved")));
    let run = memory.at("in/run");
    fs::write(&run, [b"#!/bin/sh\n# ", EVIL, b"\necho run\n"].concat()).expect("a program");
    fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    assert!(Command::new(&run).output().is_err(), "it is not run");
    fs::write(memory.at("in/old"), b"clean again").expect("it is written");
    assert_eq!(read(&memory.at("in/old")), Ok(b"clean again".to_vec()));
    watching.end();
    assert_eq!(read(&memory.at("in/moved")), Ok(EVIL.to_vec()), "nobody watches");
}

/// A folder is not to be learned of before what is in it is opened.
#[test]
fn nothing_is_noticed_too_late() {
    let Some(memory) = Memory::new() else { return };
    let _watching = memory.watch();
    let program = r#"
import os, sys
opened = 0
for n in range(300):
    os.makedirs(f"{n}/a/b")
    with open(f"{n}/a/b/c", "wb") as file: file.write(sys.argv[1].encode())
    try: open(f"{n}/a/b/c").read(); opened += 1
    except PermissionError: pass
print(opened)
"#;
    let output = Command::new("python3")
        .args(["-c", program, &String::from_utf8_lossy(EVIL)])
        .current_dir(memory.at("in"))
        .output()
        .expect("python3 runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
}

#[test]
fn one_inspection_answers_all_and_is_ready_before_it_is_asked_for() {
    let Some(memory) = Memory::new() else { return };
    let watching = memory.watch();
    let path = memory.at("in/a");
    // Another process writes: this one is not asked about.
    let copy = |text: &str| {
        let shell = format!("printf '{text}' > a");
        assert!(Command::new("sh").args(["-c", &shell]).current_dir(memory.at("in")).status().expect("sh").success());
    };
    copy("written");
    until("it is inspected when it is closed", || memory.counts.begun.load(Relaxed) == 1);
    std::thread::scope(|scope| {
        let reads: Vec<_> = (0..8).map(|_| scope.spawn(|| read(&path))).collect();
        assert!(reads.into_iter().all(|read| read.join().expect("it reads").is_ok()));
    });
    assert_eq!(memory.counts.begun.load(Relaxed), 1);
    copy("written again");
    until("it is inspected again", || memory.counts.begun.load(Relaxed) >= 2);
    assert_eq!(read(&path), Ok(b"written again".to_vec()));
    watching.end();
}

#[test]
fn without_a_verdict_it_is_refused_or_allowed_as_set() {
    for allows_unjudged in [false, true] {
        let Some(memory) = Memory::new() else { return };
        fs::write(memory.at("in/deadly"), DEADLY).expect("a file");
        fs::write(memory.at("in/panic"), PANIC).expect("a file");
        fs::write(memory.at("in/slow"), b"slow").expect("a file");
        fs::write(memory.at("in/clean"), b"clean").expect("a file");
        let deadline = Duration::from_millis(300);
        let watching = memory.watch_with(WatchOptions { allows_unjudged, deadline, ..memory.options() });
        assert_eq!(read(&memory.at("in/deadly")).is_ok(), allows_unjudged);
        assert_eq!(read(&memory.at("in/panic")).is_ok(), allows_unjudged);
        let slow: Box<dyn FnOnce() + Send> = Box::new(|| std::thread::sleep(Duration::from_secs(5)));
        *memory.counts.before.lock().expect("nobody panics with it") = Some(slow);
        let began = Instant::now();
        assert_eq!(read(&memory.at("in/slow")).is_ok(), allows_unjudged);
        assert!(began.elapsed() < Duration::from_millis(4_900));
        // Others do not wait for it, and its verdict counts when it comes.
        assert_eq!(read(&memory.at("in/clean")), Ok(b"clean".to_vec()));
        until("the verdict comes", || read(&memory.at("in/slow")).is_ok());
        watching.end();
    }
}

#[test]
fn what_is_excluded_is_not_inspected() {
    let Some(memory) = Memory::new() else { return };
    fs::create_dir(memory.at("in/excluded")).expect("a folder");
    for name in ["in/excluded/a", "in/a", "out/a"] {
        fs::write(memory.at(name), EVIL).expect("a file");
    }
    let options = memory.options();
    let watching = memory.watch_with(WatchOptions { excluded: vec![memory.at("in/excluded")], ..options });
    assert!(read(&memory.at("in/excluded/a")).is_ok() && is_refused(&memory.at("in/a")));
    watching.end();
    let watching = memory.watch_with(WatchOptions { users: vec![0], ..memory.options() });
    assert!(read(&memory.at("in/a")).is_ok());
    watching.end();
    let watching = memory.watch_with(WatchOptions { only_tells: true, ..memory.options() });
    let begun = memory.counts.begun.load(Relaxed);
    assert!(read(&memory.at("in/a")).is_ok());
    until("it is inspected nevertheless", || memory.counts.begun.load(Relaxed) > begun);
    watching.end();
    // A path that a file system is mounted at is all of that.
    let watching = memory.watch_with(WatchOptions { paths: vec![memory.at("")], ..memory.options() });
    assert!(is_refused(&memory.at("out/a")));
    watching.end();
}

#[test]
fn a_question_is_answered_by_the_signatures_of_when_it_is_asked() {
    const LATER: &[u8] = b"FOUND-LATER";
    let Some(memory) = Memory::new() else { return };
    for name in ["in/known", "in/asked"] {
        fs::write(memory.at(name), LATER).expect("a file");
    }
    let watching = memory.watch();
    assert_eq!(read(&memory.at("in/known")), Ok(LATER.to_vec()), "clean by then");
    let (go, may_go) = mpsc::channel::<()>();
    let waits: Box<dyn FnOnce() + Send> = Box::new(move || may_go.recv().expect("it goes on"));
    *memory.counts.before.lock().expect("nobody panics with it") = Some(waits);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| read(&memory.at("in/asked")));
        until("its inspection begins", || memory.counts.begun.load(Relaxed) == 2);
        watching.renew(memory.judge(Some(LATER)));
        assert!(is_refused(&memory.at("in/known")));
        // Neither does the next wait for those of before.
        assert!(is_refused(&memory.at("in/asked")));
        go.send(()).expect("it waits");
        assert_eq!(asked.join().expect("it reads"), Ok(LATER.to_vec()), "asked before");
    });
    assert!(is_refused(&memory.at("in/asked")), "what was clean before is no longer");
    assert_eq!(memory.counts.begun.load(Relaxed), 4, "once each");
    watching.renew(memory.judge(None));
    assert_eq!(read(&memory.at("in/known")), Ok(LATER.to_vec()), "clean again");
    watching.end();
}

#[test]
fn evidence_says_who_and_verdicts_are_kept() {
    let Some(memory) = Memory::new() else { return };
    let kept = tempfile::tempdir().expect("a folder");
    let open = || Some(fs::File::open(kept.path()).expect("the folder").into());
    fs::write(memory.at("in/a"), EVIL).expect("a file");
    fs::write(memory.at("in/clean"), b"clean").expect("a file");
    let options = WatchOptions { state: open(), evidence: open(), ..memory.options() };
    let watching = memory.watch_with(options);
    assert!(is_refused(&memory.at("in/a")) && read(&memory.at("in/clean")).is_ok());
    watching.end();
    let names: Vec<PathBuf> =
        fs::read_dir(kept.path()).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    let facts = names.iter().find(|path| path.extension().is_some_and(|kind| kind == "json")).expect("facts");
    let facts: serde_json::Value = serde_json::from_slice(&fs::read(facts).expect("facts")).expect("JSON");
    assert_eq!((facts["operation"].as_str(), facts["signature"].as_str()), (Some("open"), Some("Test.Evil")));
    assert!(facts["command"].as_str().is_some_and(|command| command.starts_with("cat ")), "{facts}");
    let begun = memory.counts.begun.load(Relaxed);
    let watching = memory.watch_with(WatchOptions { state: open(), ..memory.options() });
    assert!(read(&memory.at("in/clean")).is_ok());
    assert_eq!(memory.counts.begun.load(Relaxed), begun, "known from before");
    watching.end();
}
