//! `sluice watch`: the program, with its signatures and its processes that inspect. What is asked about and answered otherwise
//! is tested in the crate `avfs`. Each test has a file system of its own in memory.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The test file that every scanner knows; here in two pieces, so that this file is not one.
const EICAR: [&str; 2] = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"];

/// A watched folder, by a process of its own.
struct Watch {
    folder: tempfile::TempDir,
    process: Option<Child>,
}

fn command(program: &Path, folder: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("watch").args(options).arg("files").current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

impl Watch {
    /// Nothing where nobody may mount.
    fn folder() -> Option<Watch> {
        let folder = tempfile::tempdir().expect("a folder");
        let files = folder.path().join("files");
        fs::create_dir(&files).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&files).stderr(Stdio::null()).status();
        if !mounted.is_ok_and(|status| status.success()) || !Path::new("/proc/sys/fs/fanotify").exists() {
            eprintln!("skipped: only root can mount and watch, where the kernel has fanotify");
            return None;
        }
        Some(Watch { folder, process: None })
    }

    fn new(options: &[&str]) -> Option<Watch> {
        let mut watch = Watch::folder()?;
        watch.start(Path::new(env!("CARGO_BIN_EXE_sluice")), options);
        Some(watch)
    }

    fn start(&mut self, program: &Path, options: &[&str]) {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).expect("a log");
        let mut process = command(program, self.folder.path(), options).stderr(log).spawn().expect("it starts");
        let mut said = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut said).expect("it says something");
        self.process = Some(process);
        assert_eq!(said, "watching\n", "{}", self.log());
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log")
    }

    fn id(&self) -> String {
        self.process.as_ref().expect("a process").id().to_string()
    }

    fn signal(&mut self, name: &str) -> bool {
        signal(&self.id(), name);
        self.process.take().expect("a process").wait().expect("it ends").success()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = Command::new("umount").arg("-l").arg(self.at("")).stderr(Stdio::null()).status();
    }
}

fn signal(id: &str, name: &str) {
    assert!(Command::new("kill").args([name, id]).status().expect("kill runs").success());
}

fn is_read(path: &Path) -> bool {
    Command::new("cat").arg(path).output().expect("cat runs").status.success()
}

fn is_refused(path: &Path) -> bool {
    let output = Command::new("cat").arg(path).env("LC_ALL", "C").output().expect("cat runs");
    !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("Operation not permitted")
}

/// Waits until something holds, for half a minute.
fn until(what: &str, watch: &Watch, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "never: {what}: {}", watch.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_infected_is_not_opened_and_the_log_says_who() {
    let Some(mut watch) = Watch::new(&["--log-format", "json", "--quarantine", "kept", "--state", "state"]) else {
        return;
    };
    fs::write(watch.at("evil"), EICAR.concat()).expect("a file");
    fs::write(watch.at("clean"), b"clean").expect("a file");
    assert!(!is_read(&watch.at("evil")) && is_read(&watch.at("clean")));
    let log = watch.log();
    let line = log.lines().find(|line| line.contains("\"infected\"")).expect("a line");
    let facts: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert!(facts["signature"].as_str().is_some_and(|name| name.contains("Eicar")), "{line}");
    assert_eq!(facts["file"].as_str(), watch.at("evil").to_str(), "{line}");
    let kept = fs::read_dir(watch.folder.path().join("kept")).expect("the folder").count();
    assert_eq!(kept, 2, "the content and the facts");
    assert!(watch.signal("-TERM"));
    assert!(is_read(&watch.at("evil")), "nobody watches");
    assert!(fs::metadata(watch.folder.path().join("state/verdicts")).is_ok_and(|facts| facts.len() > 0));
}

/// A process that inspects can be started while others wait for it, though its program lies in what is watched.
#[test]
fn processes_that_inspect_may_die_and_others_take_their_place() {
    let Some(mut watch) = Watch::folder() else { return };
    let program = watch.at("sluice");
    // By a process of its own: while this one writes it, a child that another test starts holds it open.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_sluice")).arg(&program).status();
    assert!(copied.expect("cp").success());
    watch.start(&program, &["--deadline", "60"]);
    fs::write(watch.at("evil"), EICAR.concat()).expect("a file");
    for round in 0..3 {
        let look = || {
            let tasks = fs::read_dir(format!("/proc/{}/task", watch.id())).expect("its threads");
            let children = tasks.flatten().map(|task| fs::read_to_string(task.path().join("children")));
            let children: String = children.map(Result::unwrap_or_default).collect();
            Some(children).filter(|children| !children.trim().is_empty())
        };
        let children = crate::harness::wait_for(look, "processes that inspect");
        children.split_whitespace().for_each(|id| signal(id, "-KILL"));
        let file = watch.at(&format!("file-{round}"));
        fs::write(&file, b"clean").expect("a file");
        let end = Instant::now() + Duration::from_secs(30);
        while !is_read(&file) {
            assert!(Instant::now() < end, "nothing is opened any more: {}", watch.log());
        }
        assert!(!is_read(&watch.at("evil")));
    }
}

/// A signature of a word.
fn signature(word: &str) -> String {
    let digits: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("Test.{word}:0:*:{digits}\n")
}

#[test]
fn new_signatures_are_taken_over_and_what_cannot_be_loaded_changes_nothing() {
    let signatures = tempfile::tempdir().expect("a folder");
    let signature_file = |name: &str| signatures.path().join(name);
    fs::write(signature_file("a.ndb"), signature("NeverFound")).expect("signatures");
    let Some(mut watch) = Watch::new(&["--database", signatures.path().to_str().expect("text"), "--state", "state"])
    else {
        return;
    };
    let count = |line: &str| watch.log().matches(line).count();
    fs::write(watch.at("later"), "FoundLater").expect("a file");
    fs::write(watch.at("clean"), "clean").expect("a file");
    assert!(is_read(&watch.at("later")) && is_read(&watch.at("clean")));
    fs::write(signature_file("b.ndb"), signature("FoundLater")).expect("signatures");
    until("they are taken over", &watch, || count("new signatures signatures=") > 0);
    assert!(is_refused(&watch.at("later")) && is_read(&watch.at("clean")));
    // What cannot be loaded, when it comes and when the signal has it looked for again.
    fs::write(signature_file("c.ndb"), "Test.Wrong:0:*:zz\n").expect("no signature");
    until("it is an error", &watch, || count("the old ones stay in force") > 0);
    let before = count("the old ones stay in force");
    signal(&watch.id(), "-HUP");
    until("it is once more", &watch, || count("the old ones stay in force") > before);
    assert!(is_refused(&watch.at("later")) && is_read(&watch.at("clean")));
    // All gone, as from a folder that is not mounted now.
    fs::remove_file(signature_file("c.ndb")).expect("it goes");
    let away = tempfile::tempdir().expect("a folder");
    for name in ["a.ndb", "b.ndb"] {
        fs::rename(signature_file(name), away.path().join(name))
            .or_else(|_| fs::remove_file(signature_file(name)))
            .expect("it goes");
    }
    until("it is no wish", &watch, || count("no signature files are there any more") > 0);
    assert!(is_refused(&watch.at("later")) && is_read(&watch.at("clean")));
    // And taken back.
    fs::write(signature_file("b.ndb"), signature("Other")).expect("signatures");
    until("it is allowed", &watch, || is_read(&watch.at("later")));
    assert!(watch.signal("-TERM"));
}

/// A pipe behind it ends when it returns.
#[test]
fn in_the_background_it_keeps_nothing_open() {
    let Some(watch) = Watch::folder() else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_sluice"));
    let mut begun =
        command(program, watch.folder.path(), &["--background"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = String::new();
    begun.stdout.take().expect("its output").read_to_string(&mut said).expect("it ends");
    begun.stderr.take().expect("its errors").read_to_string(&mut said).expect("it ends");
    assert!(begun.wait().expect("it returns").success(), "{said}");
    fs::write(watch.at("evil"), EICAR.concat()).expect("a file");
    assert!(!is_read(&watch.at("evil")));
    let processes =
        fs::read_dir("/proc").expect("processes").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_it = |id: &String| {
        fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == watch.folder.path())
            && fs::read(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.windows(10).any(|part| part == b"--detached"))
    };
    let id = processes.into_iter().find(is_it).expect("it goes on");
    signal(&id, "-TERM");
    let end = Instant::now() + Duration::from_secs(20);
    while !is_read(&watch.at("evil")) {
        assert!(Instant::now() < end, "it does not end");
    }
    // What is wrong at the start is told where it is expected.
    fs::remove_file(watch.at("evil")).expect("it goes");
    let wrong = command(program, watch.folder.path(), &["--background", "nowhere"]).output().expect("it runs");
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("nowhere"), "{wrong:?}");
}
