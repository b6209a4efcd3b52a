//! `sluice mount`: the program, with its signatures and its processes that inspect. How the file system behaves otherwise is
//! tested in the crate `avfs`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The test file that every scanner knows; here in two pieces, so that this file is not one.
const EICAR: [&str; 2] = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"];

fn eicar() -> Vec<u8> {
    EICAR.concat().into_bytes()
}

/// A mount of a folder, by a process of its own.
struct Mount {
    folder: tempfile::TempDir,
    process: Child,
}

impl Mount {
    /// Nothing where nobody may mount.
    fn new(options: &[&str]) -> Option<Mount> {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root || File::options().read(true).write(true).open("/dev/fuse").is_err() {
            eprintln!("skipped: only root can mount, and /dev/fuse has to be there");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("source")).expect("a folder");
        fs::create_dir(folder.path().join("point")).expect("a folder");
        let process = start(folder.path(), options);
        Some(Mount { folder, process })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("point").join(name)
    }

    fn below(&self, name: &str) -> PathBuf {
        self.folder.path().join("source").join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log")
    }

    fn signal(&mut self, name: &str) -> ExitStatus {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().expect("kill runs").success());
        self.process.wait().expect("it ends")
    }
}

fn command(folder: &Path, options: &[&str]) -> Command {
    let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("mount").args(options).args(["source", "point"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    command
}

fn start(folder: &Path, options: &[&str]) -> Child {
    let mut process = command(folder, options).spawn().expect("it starts");
    let mut said = String::new();
    let output = process.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut said).expect("it says something");
    assert_eq!(said, "mounted\n", "{}", fs::read_to_string(folder.join("log")).unwrap_or_default());
    process
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount").arg("-l").arg(self.at("")).stderr(Stdio::null()).status();
    }
}

fn code<T>(outcome: std::io::Result<T>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

const EPERM: i32 = 1;
const EIO: i32 = 5;
const ENOTCONN: i32 = 107;
const ECONNABORTED: i32 = 103;

/// An archive of the test file.
fn zip(folder: &Path) -> Vec<u8> {
    fs::write(folder.join("eicar.com"), eicar()).expect("a file");
    let program =
        "import zipfile; z = zipfile.ZipFile('e.zip', 'w', zipfile.ZIP_DEFLATED); z.write('eicar.com'); z.close()";
    assert!(
        Command::new("python3").args(["-c", program]).current_dir(folder).status().expect("python3 runs").success()
    );
    fs::read(folder.join("e.zip")).expect("the archive")
}

#[test]
fn what_is_infected_is_neither_written_nor_read_and_the_log_says_who() {
    for mode in ["regular", "full"] {
        let Some(mut mount) = Mount::new(&["--mode", mode, "--log-format", "json"]) else { return };
        let archive = zip(mount.folder.path());
        for (name, content) in [("plain", eicar()), ("zipped", archive)] {
            fs::write(mount.below(name), &content).expect("a file below");
            assert_eq!(code(fs::read(mount.at(name))), Some(EPERM), "{mode} {name}");
            let written = format!("{name}-new");
            let file = File::create(mount.at(&written)).expect("a file");
            let outcome =
                content.chunks(20).enumerate().try_for_each(|(n, piece)| file.write_all_at(piece, 20 * n as u64));
            assert_eq!(code(outcome.and_then(|()| file.sync_all())), Some(EIO), "{mode} {name}");
            drop(file);
            // Whoever starts a process meanwhile closes the file there, and what was clean until then comes to the disk.
            assert!(fs::read(mount.below(&written)).expect("the file").len() < content.len());
        }
        fs::write(mount.at("clean"), b"clean").expect("a clean file");
        assert_eq!(fs::read(mount.below("clean")).expect("the file"), b"clean");
        assert!(mount.signal("-TERM").success());
        assert!(fs::read_dir(mount.at("")).expect("the mount point").next().is_none(), "it is unmounted");
        let log = mount.log();
        let line = log.lines().find(|line| line.contains("\"infected\"") && line.contains("plain-new"));
        let line = line.unwrap_or_else(|| panic!("no line of plain-new: {log}"));
        let facts: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(facts["signature"].as_str().is_some_and(|name| name.contains("Eicar")), "{line}");
        // This process, or one that it was starting.
        assert!(facts["process"].as_u64() >= Some(std::process::id().into()), "{line}");
        assert_eq!(facts["user"].as_u64(), Some(0), "{line}");
        assert!(facts["program"].as_str().is_some_and(|name| !name.is_empty()), "{line}");
    }
}

/// Folders of files that hide marked texts, with the signatures beside them: `corpus/wrapped`, and the pack that is made to get
/// past scanners, where it is there.
fn packs() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/wrapped");
    let pack = std::env::var_os("SLUICE_DATA").map(|data| PathBuf::from(data).join("av-evasion/evasion"));
    let pack = pack.filter(|pack| pack.is_dir());
    if pack.is_none() {
        eprintln!("no pack: av-evasion");
    }
    [own].into_iter().chain(pack).collect()
}

/// Findings of `scan` in a folder can be neither read nor written through a mount.
#[test]
fn what_scan_finds_in_the_packs_does_not_pass() {
    packs().iter().for_each(|pack| what_scan_finds_does_not_pass(pack));
}

fn what_scan_finds_does_not_pass(pack: &Path) {
    // The signatures of what is hidden in it stand beside it.
    let signatures = ["--database", pack.to_str().expect("text")];
    let scan = [&["scan", "--json", "--alert-exceeds-max"][..], &signatures].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(scan).arg(pack).output().expect("scan runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let files = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let found: Vec<(PathBuf, bool)> = files
        .map(|facts| (PathBuf::from(facts["file"].as_str().expect("a path")), facts["status"] == "found"))
        .collect();
    assert!(found.iter().filter(|file| file.1).count() > 10, "{said}");
    let Some(mount) = Mount::new(&signatures) else { return };
    for (number, (path, is_found)) in found.iter().enumerate() {
        let content = fs::read(path).expect("a file of the pack");
        let (old, new) = (format!("old-{number}"), format!("new-{number}"));
        fs::write(mount.below(&old), &content).expect("a file below");
        let read = fs::read(mount.at(&old));
        let file = File::create(mount.at(&new)).expect("a file");
        let written = file.write_all_at(&content, 0).and_then(|()| file.sync_all());
        drop(file);
        let below = fs::read(mount.below(&new)).expect("a file");
        if *is_found {
            assert_eq!((code(read), code(written)), (Some(EPERM), Some(EIO)), "{path:?}");
            assert_eq!(below, b"", "{path:?}");
        } else {
            assert!(read.is_ok_and(|read| read == content) && written.is_ok() && below == content, "{path:?}");
        }
    }
}

#[test]
fn without_its_process_the_mount_fails_and_another_takes_its_place() {
    let Some(mut mount) = Mount::new(&["--state", "state"]) else { return };
    fs::write(mount.at("clean"), b"clean").expect("a clean file");
    let open = File::create(mount.at("waiting")).expect("a file");
    open.write_all_at(&eicar(), 3).expect("it waits");
    mount.signal("-KILL");
    // The kernel answers with the other one until it has seen that the last thread is gone.
    let is_gone = |error| matches!(error, Some(ENOTCONN | ECONNABORTED));
    assert!(is_gone(code(fs::read(mount.at("clean")))));
    assert!(is_gone(code(open.write_at(b"x", 0))));
    assert_eq!(fs::read(mount.below("waiting")).expect("nothing of it"), b"");
    assert_eq!(fs::read(mount.below("clean")).expect("it was closed"), b"clean");
    mount.process = start(mount.folder.path(), &["--state", "state"]);
    assert_eq!(fs::read(mount.at("clean")).expect("it is there again"), b"clean");
    drop(open);
    assert!(mount.signal("-INT").success());
    assert!(fs::metadata(mount.folder.path().join("state/verdicts")).is_ok_and(|facts| facts.len() > 0));
}

/// Waits until something holds, for half a minute.
fn until(mount: &Mount, what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "never: {what}: {}", mount.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A signature of a word.
fn signature(word: &str) -> String {
    let digits: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("Test.{word}:0:*:{digits}\n")
}

#[test]
fn new_signatures_are_taken_over_and_what_was_clean_is_inspected_again() {
    let signatures = tempfile::tempdir().expect("a folder");
    let signature_file = |name: &str| signatures.path().join(name);
    fs::write(signature_file("a.ndb"), signature("NeverFound")).expect("signatures");
    let options = ["--database", signatures.path().to_str().expect("text"), "--state", "state"];
    let Some(mut mount) = Mount::new(&options) else { return };
    for n in 0..50 {
        fs::write(mount.at(&format!("{n}")), if n == 7 { "FoundLater".into() } else { format!("clean {n}") })
            .expect("a file");
    }
    assert_eq!(fs::read(mount.at("7")).expect("clean by then"), b"FoundLater");
    fs::write(signature_file("b.ndb"), signature("FoundLater")).expect("signatures");
    until(&mount, "it is found", || mount.log().contains("infected=1"));
    let log = mount.log();
    assert!(log.contains("new signatures") && log.contains("clean=49"), "{log}");
    assert!(log.contains("file=\"7\"") && log.contains("operation=\"rescan\""), "{log}");
    assert_eq!(code(fs::read(mount.at("7"))), Some(EPERM));
    assert_eq!(fs::read(mount.at("8")).expect("clean still"), b"clean 8");
    // What cannot be loaded changes nothing.
    fs::write(signature_file("c.ndb"), "Test.Wrong:0:*:zz\n").expect("no signature");
    until(&mount, "it is refused", || mount.log().contains("the old ones stay in force"));
    assert_eq!(code(fs::read(mount.at("7"))), Some(EPERM));
    fs::remove_file(signature_file("c.ndb")).expect("it goes");
    // Killed, and started with others: what is left is inspected.
    mount.signal("-KILL");
    fs::write(signature_file("b.ndb"), signature("clean 9") + &signature("FoundLater")).expect("signatures");
    mount.process = start(mount.folder.path(), &options);
    assert_eq!(code(fs::read(mount.at("9"))), Some(EPERM));
    // The signal has it look, and nothing has changed.
    let id = mount.process.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill runs").success());
    // Whoever closes it hears of it, but who does not look.
    fs::write(mount.at("new"), b"clean 9").expect("it waits");
    assert_eq!(fs::read(mount.below("new")).expect("the file"), b"");
    assert!(mount.signal("-TERM").success());
}

/// Old pages of a file in the kernel's cache are not seen after a change below, be the file shorter, longer, or
/// infected.
#[test]
fn what_is_changed_below_is_read_as_it_is() {
    let Some(mount) = Mount::new(&["--no-isolation"]) else { return };
    let content =
        |number: usize, size: usize| (0..size).map(|at| (at * 7 + at / 251 + number) as u8).collect::<Vec<u8>>();
    let sizes = [3 << 20, 5_000, (1 << 20) + 77, 2_049, 131_073, 4_096, 131_072, 65_537];
    for (number, size) in sizes.into_iter().cycle().take(48).enumerate() {
        let is_evil = number % 5 == 2;
        let data = if is_evil { [eicar(), vec![b' '; 40]].concat() } else { content(number, size) };
        fs::write(mount.below("file"), &data).expect("a file below");
        for _ in 0..2 {
            match fs::read(mount.at("file")) {
                Ok(read) => assert!(!is_evil && read == data, "{number}: {} bytes, not {}", read.len(), data.len()),
                Err(error) => assert!(is_evil && error.raw_os_error() == Some(EPERM), "{number}: {error}"),
            }
        }
    }
}

/// From Linux 6.5 on.
#[test]
fn over_itself_it_is_bare_at_no_moment_while_another_takes_its_place() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's");
    let mut parts = release.split('.').map(|part| part.parse().unwrap_or(0));
    if (parts.next(), parts.next()) < (Some(6), Some(5)) {
        return eprintln!("skipped: the kernel cannot put a mount below another");
    }
    let Some(mut mount) = Mount::new(&[]) else { return };
    assert!(mount.signal("-TERM").success());
    fs::remove_dir(mount.at("")).expect("the mount point");
    std::os::unix::fs::symlink("source", mount.folder.path().join("point")).expect("a link");
    fs::create_dir(mount.below("kept")).expect("a folder");
    for name in ["evil", "kept/evil"] {
        fs::write(mount.below(name), eicar()).expect("a file");
    }
    fs::write(mount.folder.path().join("rules"), "path=/kept/ skip\n").expect("rules");
    let options = ["--rules", "rules"];
    mount.process = start(mount.folder.path(), &options);
    for _ in 0..3 {
        mount.signal("-KILL");
        let (evil, folder, over) = (mount.below("evil"), mount.folder.path(), AtomicBool::new(false));
        let read =
            || std::iter::from_fn(|| (!over.load(Relaxed)).then(|| fs::read(&evil))).filter(Result::is_ok).count();
        mount.process = std::thread::scope(|scope| {
            let reader = scope.spawn(read);
            let process = start(folder, &options);
            over.store(true, Relaxed);
            assert_eq!(reader.join().expect("it reads"), 0);
            process
        });
        assert_eq!(code(fs::read(mount.below("evil"))), Some(EPERM), "{}", mount.log());
        assert_eq!(fs::read(mount.below("kept/evil")).expect("as the rule says"), eicar());
    }
    assert!(mount.log().contains("file=\"evil\""), "{}", mount.log());
    assert!(mount.signal("-TERM").success());
    assert_eq!(fs::read(mount.below("evil")).expect("nothing is mounted there any more"), eicar());
}

/// The processes that inspect for a mount; that of the background comes and goes.
fn jails(mount: &Mount) -> Vec<String> {
    let id = mount.process.id();
    let tasks = fs::read_dir(format!("/proc/{id}/task")).expect("its threads");
    let templates = tasks.map(|task| fs::read_to_string(task.expect("a thread").path().join("children")));
    let templates: String = templates.map(Result::unwrap_or_default).collect();
    let copies = |pid: &str| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let copies: String = templates.split_whitespace().map(copies).collect();
    copies.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn processes_that_inspect_may_die_and_others_take_their_place() {
    let Some(mount) = Mount::new(&["--rescan", "off"]) else { return };
    for round in 0..3 {
        let killed = jails(&mount);
        assert!(!killed.is_empty(), "there are some");
        for id in &killed {
            assert!(Command::new("kill").args(["-KILL", id]).status().expect("kill runs").success());
        }
        let name = format!("file-{round}");
        let end = Instant::now() + Duration::from_secs(30);
        while fs::write(mount.at(&name), b"clean").and_then(|()| fs::read(mount.at(&name))).is_err() {
            assert!(Instant::now() < end, "nothing passes any more");
            std::thread::sleep(Duration::from_millis(50));
        }
        fs::write(mount.below("evil"), eicar()).expect("a file below");
        assert_eq!(code(fs::read(mount.at("evil"))), Some(EPERM));
    }
}

#[test]
fn over_itself_a_folder_is_reached_through_the_mount_alone() {
    let Some(mut mount) = Mount::new(&[]) else { return };
    assert!(mount.signal("-TERM").success());
    fs::remove_dir(mount.at("")).expect("the mount point");
    std::os::unix::fs::symlink("source", mount.folder.path().join("point")).expect("a link");
    fs::write(mount.below("evil"), eicar()).expect("a file");
    let status = command(mount.folder.path(), &["--background"]).status().expect("it runs");
    assert!(status.success(), "{}", mount.log());
    assert_eq!(code(fs::read(mount.below("evil"))), Some(EPERM));
    fs::write(mount.below("clean"), b"clean").expect("a file");
    // What the program has confined itself to is enough for all of this.
    for folder in ["one", "two"] {
        fs::create_dir(mount.below(folder)).expect("a folder");
    }
    fs::write(mount.below("one/large"), vec![b'l'; 3 << 20]).expect("a large file");
    fs::rename(mount.below("one/large"), mount.below("two/large")).expect("in another folder");
    fs::hard_link(mount.below("two/large"), mount.below("one/link")).expect("in another folder");
    assert_eq!(fs::read(mount.below("one/link")).expect("the file").len(), 3 << 20);
    let device = mount.below("device");
    assert!(Command::new("mknod").arg(&device).args(["c", "1", "3"]).status().expect("mknod runs").success());
    let mut read = String::new();
    File::open(&device).and_then(|mut file| file.read_to_string(&mut read)).expect("a device");
    assert!(Command::new("umount").arg(mount.below("")).status().expect("umount runs").success());
    let end = Instant::now() + Duration::from_secs(10);
    while !mount.log().contains("unmounted") {
        assert!(Instant::now() < end, "it does not end: {}", mount.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(fs::read(mount.below("clean")).expect("the file"), b"clean");
    assert_eq!(fs::read(mount.below("evil")).expect("without the mount"), eicar());
}

/// As mount(8) starts it, for a line of fstab.
#[test]
fn by_its_other_name_it_takes_the_words_of_mount() {
    let Some(mut mount) = Mount::new(&[]) else { return };
    assert!(mount.signal("-TERM").success());
    let helper = mount.folder.path().join("mount.sluice");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sluice"), &helper).expect("a link");
    let run = |options: &str| {
        let arguments = ["source", "point", "-n", "-o", options, "-t", "sluice"];
        Command::new(&helper).args(arguments).current_dir(mount.folder.path()).output().expect("it runs")
    };
    let refused = run("ro");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("ro: "), "{refused:?}");
    let mounted = run("rw,nofail,mode=full,x-systemd.automount");
    assert!(mounted.status.success(), "{mounted:?}");
    fs::write(mount.below("evil"), eicar()).expect("a file below");
    assert_eq!(code(fs::read(mount.at("evil"))), Some(EPERM));
    assert!(Command::new("umount").arg(mount.at("")).status().expect("umount runs").success());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("source")).expect("a folder");
    fs::create_dir(folder.path().join("point")).expect("a folder");
    fs::write(folder.path().join("wrong"), "# first\ntype=nothing skip\n").expect("rules");
    fs::write(folder.path().join("deferred"), "path=*.exe on-infected=deferred\n").expect("rules");
    for (options, reason) in [
        (&["--on-infected", "deferred"][..], "needs a --quarantine"),
        (&["--quarantine", "source/inner"], "lies in the folder"),
        (&["--state", "source"], "lies in the folder"),
        (&["--rules", "none"], "none: No such file"),
        (&["--rules", "wrong"], "wrong:2: \"type=nothing\": there is no type"),
        (&["--rules", "deferred"], "needs a --quarantine"),
    ] {
        let status = command(folder.path(), options).status().expect("it runs");
        assert_eq!(status.code(), Some(2));
        let log = fs::read_to_string(folder.path().join("log")).expect("the log");
        assert!(log.contains(reason), "{log}");
    }
}

/// Three times as many files as it may have open, in folders; most of them are known to the kernel all the time.
#[test]
fn there_may_be_more_files_than_descriptors() {
    const LIMIT: usize = 256;
    let Some(mut mount) = Mount::new(&[]) else { return };
    assert!(mount.signal("-TERM").success());
    let folder = mount.folder.path();
    let inner = command(folder, &[]);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {LIMIT}; exec \"$@\""), "sh"]).arg(inner.get_program());
    limited.args(inner.get_args()).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    limited.stderr(File::options().append(true).open(folder.join("log")).expect("a log"));
    mount.process = limited.spawn().expect("it starts");
    let mut said = String::new();
    BufReader::new(mount.process.stdout.take().expect("its output")).read_line(&mut said).expect("it says something");
    assert_eq!(said, "mounted\n", "{}", mount.log());

    let name = |n: usize| format!("d{}/f{n}", n % 7);
    (0..7).for_each(|n| fs::create_dir(mount.at(&format!("d{n}"))).expect("a folder"));
    for n in 0..3 * LIMIT {
        fs::write(mount.at(&name(n)), format!("content {n}")).expect("a file is written");
    }
    let open: Vec<File> = (0..20).map(|n| File::open(mount.at(&name(n))).expect("it is opened")).collect();
    for _ in 0..2 {
        for n in 0..3 * LIMIT {
            assert_eq!(fs::read_to_string(mount.at(&name(n))).expect("it is read"), format!("content {n}"));
        }
    }
    fs::rename(mount.at("d1"), mount.at("e1")).expect("a folder has another name");
    for n in (1..3 * LIMIT).step_by(7) {
        let moved = mount.at(&name(n).replace("d1/", "e1/"));
        fs::metadata(&moved).expect("it is there");
        fs::rename(&moved, mount.at(&format!("g{n}"))).expect("it has another name");
        fs::remove_file(mount.at(&format!("g{n}"))).expect("it goes");
    }
    for (n, file) in open.iter().enumerate() {
        let mut content = vec![0; 64];
        let count = file.read_at(&mut content, 0).expect("it is still open");
        assert_eq!(content[..count], *format!("content {n}").as_bytes());
    }
    let descriptors = fs::read_dir(format!("/proc/{}/fd", mount.process.id())).expect("its descriptors").count();
    assert!(descriptors < LIMIT, "{descriptors}");
    fs::write(mount.below("d2/evil"), eicar()).expect("a file below");
    assert_eq!(code(fs::read(mount.at("d2/evil"))), Some(EPERM));
    assert!(mount.signal("-TERM").success());
}

/// Processes that inspect are stopped: whoever waits gets an error, nobody else notices, and later all is as before.
#[test]
fn an_inspection_that_stands_still_costs_an_error() {
    let Some(mount) = Mount::new(&["--stall", "1", "--rescan", "off"]) else { return };
    fs::write(mount.at("clean"), b"clean").expect("a clean file");
    let signal_all = |name: &str| {
        let ids = jails(&mount);
        assert!(!ids.is_empty(), "there are some");
        assert!(Command::new("kill").arg(name).args(&ids).status().expect("kill runs").success());
    };
    fs::write(mount.below("unknown"), b"never inspected").expect("a file below");
    signal_all("-STOP");
    let waits = std::thread::spawn({
        let path = mount.at("unknown");
        move || code(fs::read(path))
    });
    assert_eq!(fs::read(mount.at("clean")).expect("known to be clean"), b"clean");
    fs::metadata(mount.at("unknown")).expect("its facts");
    assert_eq!(waits.join().expect("it ends"), Some(EIO));
    signal_all("-CONT");
    let end = Instant::now() + Duration::from_secs(60);
    while fs::read(mount.at("unknown")).is_err() {
        assert!(Instant::now() < end, "nothing passes any more: {}", mount.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(mount.log().contains("no progress for 1 s"), "{}", mount.log());
}

#[test]
fn rules_say_what_is_skipped() {
    let rules = tempfile::tempdir().expect("a folder");
    let path = rules.path().join("rules");
    fs::write(&path, "path=/trusted/ user=root skip\ntype=zip size>1K mode=full\n").expect("rules");
    let Some(mount) = Mount::new(&["--rules", path.to_str().expect("text")]) else { return };
    fs::create_dir(mount.at("trusted")).expect("a folder");
    fs::write(mount.at("trusted/evil"), eicar()).expect("nobody looks");
    assert_eq!(fs::read(mount.at("trusted/evil")).expect("nobody looks"), eicar());
    fs::rename(mount.at("trusted/evil"), mount.at("evil")).expect("another place");
    assert_eq!(code(fs::read(mount.at("evil"))), Some(EPERM));
}

/// Results of all ways to write or read (`ways.py` of the crate `avfs`).
fn tried(what: &str, folder: &Path, content: &Path) -> Vec<(String, String)> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../avfs/tests/ways.py");
    let output = Command::new("python3").args(["-B", program, what]).arg(folder).arg(content).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("text");
    said.lines().filter_map(|line| line.split_once(' ')).map(|(way, how)| (way.to_owned(), how.to_owned())).collect()
}

const MODES: [&[&str]; 4] = [
    &["--mode", "regular"],
    &["--mode", "full"],
    &["--mode", "regular", "--on-infected", "deferred", "--quarantine", "quarantine"],
    &["--mode", "full", "--on-infected", "deferred", "--quarantine", "quarantine"],
];

/// Writes and reads a content that is found, in every way; nothing of it comes through.
fn assert_nothing_comes_through(mount: &Mount, content: &[u8], label: &str) {
    let given = mount.folder.path().join("given");
    fs::write(&given, content).expect("the content");
    for (way, outcome) in tried("write", &mount.at(""), &given) {
        // In the middle of zeros it is another content.
        let below = fs::read(mount.below(&way)).unwrap_or_default();
        assert!(below != content || way == "at_the_end_of_a_hole", "{label}, {way}: {outcome}");
        let _ = fs::remove_file(mount.below(&way));
    }
    // All of them, by a folder that is not there.
    let ways = tried("read", &mount.folder.path().join("none"), &given);
    // What differs in its last byte may be another content, too.
    let others = ["appended", "written_first", "cut"];
    // In a folder of their own, since the kernel knows the names of what was written for a while, and a part may be clean.
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let folder = format!("read{}", FOLDERS.fetch_add(1, Ordering::Relaxed));
    fs::create_dir(mount.below(&folder)).expect("a folder");
    let below = |way: &str| mount.below(&folder).join(way);
    ways.iter().for_each(|(way, _)| fs::write(below(way), content).expect("infected below"));
    for (way, outcome) in tried("read", &mount.at(&folder), &given) {
        assert!(!outcome.ends_with("shows") || others.contains(&way.as_str()), "{label}, {way}: {outcome}");
    }
    fs::remove_dir_all(mount.below(&folder)).expect("the folder goes");
}

#[test]
fn the_test_file_comes_through_by_no_way_in_no_mode() {
    for options in MODES {
        let Some(mount) = Mount::new(options) else { return };
        assert_nothing_comes_through(&mount, &eicar(), &options.join(" "));
        assert_nothing_comes_through(&mount, &zip(mount.folder.path()), &format!("zipped, {}", options.join(" ")));
    }
}

/// Each file of the pack by every way, in one mode after the other.
#[test]
fn no_file_of_the_packs_comes_through_by_any_way() {
    packs().iter().for_each(|pack| no_file_comes_through_by_any_way(pack));
}

fn no_file_comes_through_by_any_way(pack: &Path) {
    let signatures = ["--database", pack.to_str().expect("text")];
    let scan = [&["scan", "--json", "--alert-exceeds-max"][..], &signatures].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(scan).arg(pack).output().expect("scan runs");
    let said = String::from_utf8(output.stdout).expect("text");
    let facts = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let found: Vec<PathBuf> = facts
        .filter(|facts| facts["status"] == "found")
        .map(|facts| PathBuf::from(facts["file"].as_str().expect("a path")))
        .collect();
    assert!(found.len() > 10, "{said}");
    for (number, options) in MODES.iter().enumerate() {
        let Some(mount) = Mount::new(&[&signatures[..], options].concat()) else { return };
        for path in found.iter().skip(number).step_by(MODES.len()) {
            let content = fs::read(path).expect("a file of the pack");
            assert_nothing_comes_through(&mount, &content, &format!("{path:?}, {}", options.join(" ")));
        }
    }
}

/// Content that says which version it is, in each of its lines.
fn version(writer: usize, number: usize) -> Vec<u8> {
    let lines = 1000 + 97 * (number % 40);
    format!("writer {writer} version {number}\n").repeat(lines).into_bytes()
}

/// Writes until an error: the last complete version, and the error.
fn write_on(folder: &Path, writer: usize, replaces: bool) -> (usize, Option<i32>) {
    let (target, part) = (folder.join(format!("file{writer}")), folder.join(format!("part{writer}")));
    for number in 1.. {
        let path = if replaces { &part } else { &target };
        let written = File::create(path).and_then(|mut file| {
            std::io::Write::write_all(&mut file, &version(writer, number))?;
            file.sync_all()
        });
        let done = written.and_then(|()| if replaces { fs::rename(&part, &target) } else { Ok(()) });
        if let Err(error) = done {
            return (number - 1, error.raw_os_error());
        }
    }
    unreachable!("it writes until it may not")
}

/// Killed in the middle of what eight processes write and read, some of it infected: everybody gets errors at once, nothing
/// infected is below, what was complete is whole, and the next process takes the place. `SLUICE_KILLS` is how often.
#[test]
fn killed_under_load_it_fails_closed_and_no_file_is_broken() {
    let rounds = std::env::var("SLUICE_KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    let Some(mut mount) = Mount::new(&["--state", "state"]) else { return };
    for round in 0..rounds {
        let folder = mount.at("");
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let folder = folder.clone();
                std::thread::spawn(move || write_on(&folder, writer, writer % 2 == 0))
            })
            .collect();
        let others = std::thread::spawn({
            let folder = folder.clone();
            move || loop {
                if code(fs::write(folder.join("evil"), eicar())) == Some(ENOTCONN)
                    || code(fs::read(folder.join("file1"))) == Some(ENOTCONN)
                {
                    return;
                }
            }
        });
        std::thread::sleep(Duration::from_millis(300 + 37 * (round % 20)));
        mount.signal("-KILL");
        let last: Vec<_> = writers.into_iter().map(|writer| writer.join().expect("it ends")).collect();
        others.join().expect("it ends");
        assert_eq!(code(fs::read_dir(&folder)), Some(ENOTCONN), "closed");
        assert_ne!(fs::read(mount.below("evil")).unwrap_or_default(), eicar());
        for (writer, (number, error)) in last.iter().enumerate() {
            // What was in the kernel's hands when the process went, or began behind it.
            assert!(matches!(error, Some(ENOTCONN | ECONNABORTED | EIO)), "{error:?}");
            let below = fs::read(mount.below(&format!("file{writer}"))).unwrap_or_default();
            let (done, next) = (version(writer, *number), version(writer, number + 1));
            let is_whole = below == done || below == next || *number == 0;
            // One that is written in its place may be cut at the time of the crash, as in any file system.
            let is_cut = writer % 2 == 1 && next.starts_with(&below);
            assert!(is_whole || is_cut, "writer {writer}: {} of {} bytes", below.len(), next.len());
        }
        mount.process = start(mount.folder.path(), &["--state", "state"]);
        for writer in (0..6).step_by(2).filter(|&writer| last[writer].0 > 0) {
            let read = fs::read(mount.at(&format!("file{writer}"))).expect("it is there again");
            assert!(read == version(writer, last[writer].0) || read == version(writer, last[writer].0 + 1));
        }
    }
}

/// Stopped while they have nothing to do: others take their place, without anybody's help.
#[test]
fn processes_that_are_stopped_while_idle_are_replaced() {
    let Some(mount) = Mount::new(&["--stall", "1", "--rescan", "off"]) else { return };
    let stopped = jails(&mount);
    assert!(Command::new("kill").arg("-STOP").args(&stopped).status().expect("kill runs").success());
    fs::write(mount.below("unknown"), b"never inspected").expect("a file below");
    let end = Instant::now() + Duration::from_secs(120);
    while jails(&mount).iter().any(|id| stopped.contains(id)) {
        let _ = fs::read(mount.at("unknown"));
        assert!(Instant::now() < end, "they are not replaced: {}", mount.log());
    }
    while fs::read(mount.at("unknown")).is_err() {
        assert!(Instant::now() < end, "nothing passes any more: {}", mount.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}
