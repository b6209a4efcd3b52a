//! `sluice scan` with clamscan's options, and clamscan itself beside it where there is one.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const BAD: &str = "x clamd-test-marker y";
const FOUND: &str = "Test.Marker.UNOFFICIAL FOUND";

/// A folder with signatures and files.
struct Tree {
    folder: TempDir,
}

/// How a run ended, and what it said.
#[derive(Debug)]
struct Run {
    status: i32,
    output: String,
    errors: String,
}

impl Run {
    fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.output.lines().collect();
        lines.sort_unstable();
        lines
    }
}

impl Tree {
    fn new() -> Tree {
        let tree = Tree { folder: tempfile::tempdir().unwrap() };
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let signatures =
            format!("Test.Marker:0:*:{}\nTest.Other:0:*:{}\n", hex("clamd-test-marker"), hex("other-marker-here"));
        std::fs::create_dir(tree.path("database")).unwrap();
        std::fs::write(tree.path("database/test.ndb"), signatures).unwrap();
        for folder in ["files", "files/sub", "files/sub/deep", "files/other"] {
            std::fs::create_dir(tree.path(folder)).unwrap();
        }
        for name in ["a", "sub/b", "sub/deep/c", "other/d"] {
            std::fs::write(tree.path(&format!("files/{name}.txt")), BAD).unwrap();
            std::fs::write(tree.path(&format!("files/{name}.ok")), "clean").unwrap();
        }
        std::fs::write(tree.path("database/test.ndu"), format!("PUA.Tool.Test:0:*:{}\n", hex("pua-test-marker")))
            .unwrap();
        let named = format!("PUA.Tool.Named:0:*:{}\n", hex("pua-named-marker"));
        std::fs::write(tree.path("database/named.ndb"), named).unwrap();
        std::fs::write(tree.path("unwanted"), "a pua-test-marker here").unwrap();
        std::fs::write(tree.path("named"), "a pua-named-marker here").unwrap();
        std::fs::write(tree.path("files/zero"), "").unwrap();
        symlink("a.txt", tree.path("files/link")).unwrap();
        symlink("sub", tree.path("files/folder")).unwrap();
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, mut command: Command, options: &[&str]) -> Run {
        let command = command.args(options).current_dir(self.folder.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        Run {
            status: output.status.code().unwrap(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn scan(&self, options: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["scan", "-d", "database"]);
        self.run(command, options)
    }

    fn clamscan(&self, options: &[&str]) -> Run {
        let mut command = Command::new("clamscan");
        command.args(["-d", "database"]);
        self.run(command, options)
    }
}

#[test]
fn by_the_name_of_clamscan_it_is_clamscan() {
    let tree = Tree::new();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sluice"), tree.path("clamscan")).unwrap();
    let run = tree.run(Command::new(tree.path("clamscan")), &["-d", "database", "--no-summary", "-ri", "files"]);
    let same = tree.scan(&["--no-summary", "-ri", "files"]);
    assert!(run.status == 1 && run.output.contains(" FOUND"), "{}{}", run.output, run.errors);
    assert_eq!(run.output, same.output);
}

#[test]
fn clamscan_says_the_same() {
    if !Path::new("/usr/bin/clamscan").exists() {
        return eprintln!("skipped: clamscan is not installed");
    }
    let tree = Tree::new();
    let lines: [&[&str]; 39] = [
        &["-r", "files"],
        &["-r", "-i", "files"],
        &["-r", "--infected", "--suppress-ok-results", "files"],
        &["-r", "-o", "files"],
        &["-r", "--quiet", "files"],
        &["-r", r"--exclude=\.ok$", "files"],
        &["-r", r"--exclude=\.ok$", "--exclude=zero", "files"],
        &["-r", "--include=a", "files"],
        &["-r", "--exclude-dir=sub", "files"],
        &["-r", "--exclude-dir=files", "files"],
        &["-r", "--include-dir=sub", "files"],
        &["-r", "--include-dir=files", "files/"],
        &["files/nowhere", "files/a.ok"],
        &["-r", "files/link", "files/folder"],
        &["--follow-file-symlinks=0", "--follow-dir-symlinks=0", "files/link", "files/folder"],
        &["-r", "--follow-file-symlinks=2", "--follow-dir-symlinks=2", "files"],
        &["-r", "--follow-file-symlinks=2", "files"],
        &["-r", "--follow-dir-symlinks=2", "files"],
        &["--max-filesize=6", "--alert-exceeds-max", "files/a.txt", "files/a.ok"],
        &["-r", "-f", "list"],
        &["-r", "--file-list=list"],
        &["-r", "--scan-pe=yes", "--tempdir", "/tmp", "--bytecode=no", "--cross-fs=yes", "files/sub"],
        &["-r", "files/zero", "files/sub/", "files//sub"],
        &["files/other/d.ok"],
        &["-r", "--recursive=yes", "-r", "-i", "-i", "files/sub"],
        &["--infect", "files/a.txt", "files/a.ok"],
        &["--allmatch=no", "files/a.txt"],
        &["--max-files=0", "--max-recursion=0", "files/a.txt"],
        &["--fail-if-cvd-older-than=7", "files/a.txt"],
        &["--detect-pua", "unwanted", "named"],
        &["--detect-pua=no", "unwanted", "named"],
        &["--detect-pua=yes", "--exclude-pua=Tool", "unwanted", "named"],
        &["--detect-pua", "--include-pua=Tool", "unwanted", "named"],
        &["--detect-pua", "--include-pua=Win", "unwanted", "named"],
        &["-r", "--max-dir-recursion=0", "files", "files/a.ok"],
        &["-r", "--max-dir-recursion=1", "files"],
        &["-r", "--max-dir-recursion=2", "files"],
        &["--detect-broken", "files/a.ok"],
        &["--include-pua=Tool", "unwanted", "named"],
    ];
    assert!(Command::new("mkfifo").arg(tree.path("files/pipe")).status().unwrap().success());
    std::fs::write(tree.path("list"), "files/a.txt\nfiles/sub\nfiles/a.ok\n").unwrap();
    for options in lines {
        let options = [&["--no-summary"], options].concat();
        let (theirs, ours) = (tree.clamscan(&options), tree.scan(&options));
        assert_eq!(ours.lines(), theirs.lines(), "{options:?}\n{theirs:?}\n{ours:?}");
        assert_eq!(ours.status, theirs.status, "{options:?}\n{theirs:?}\n{ours:?}");
    }
    let summary = |run: Run| -> Vec<String> {
        let lines = run.output.lines().skip_while(|line| !line.starts_with("---"));
        lines.map(|line| line.split(':').next().unwrap().to_string()).collect()
    };
    assert_eq!(summary(tree.scan(&["files"])), summary(tree.clamscan(&["-r", "files"])));
}

#[test]
fn folders_are_entered_unless_told_otherwise() {
    let tree = Tree::new();
    assert_eq!(tree.scan(&["-i", "--no-summary", "files"]).lines().len(), 4);
    let flat = tree.scan(&["-i", "--no-summary", "--recursive=no", "files"]);
    assert_eq!(flat.lines(), [format!("files/a.txt: {FOUND}")]);
    let shallow = tree.scan(&["-i", "--no-summary", "--max-dir-recursion=2", "files"]);
    assert_eq!(shallow.lines().len(), 3);
    assert_eq!(tree.scan(&["-i", "--no-summary"]).lines().len(), 5, "the current folder");
}

#[test]
fn lines_come_in_the_order_of_the_files() {
    let tree = Tree::new();
    std::fs::create_dir(tree.path("many")).unwrap();
    for number in 0..300 {
        // The first ones take longest.
        let content = vec![b'.'; if number % 50 == 0 { 3 << 20 } else { 10 }];
        std::fs::write(tree.path(&format!("many/{number:03}")), content).unwrap();
    }
    let expected: Vec<String> = (0..300).map(|number| format!("many/{number:03}: OK")).collect();
    for jobs in ["1", "8"] {
        let run = tree.scan(&["--no-summary", "-j", jobs, "many"]);
        assert!(run.output.lines().eq(expected.iter().map(String::as_str)), "{}", run.output);
    }
}

#[test]
fn infected_files_are_moved_copied_and_removed() {
    let tree = Tree::new();
    let kept = tree.path("kept");
    let option = |name: &str| format!("--{name}={}", kept.display());
    let missing = tree.scan(&[&option("move"), "files"]);
    assert_eq!(missing.status, 2);
    assert!(missing.errors.contains("the folder for infected files"), "{missing:?}");
    std::fs::create_dir(&kept).unwrap();

    let run = tree.scan(&["-i", "--no-summary", &option("copy"), "files/a.txt"]);
    assert_eq!(run.output, format!("files/a.txt: {FOUND}\nfiles/a.txt: copied to '{}/a.txt'\n", kept.display()));
    assert!(tree.path("files/a.txt").exists());
    let run = tree.scan(&["-i", "--no-summary", &option("move"), "files/a.txt", "files/a.ok"]);
    assert!(run.output.ends_with(&format!("moved to '{}/a.txt.001'\n", kept.display())), "{run:?}");
    assert!(!tree.path("files/a.txt").exists() && tree.path("files/a.ok").exists());
    assert_eq!(std::fs::read_to_string(kept.join("a.txt.001")).unwrap(), BAD);
    let run = tree.scan(&["-i", "--no-summary", "--remove", "files/sub"]);
    assert_eq!((run.status, run.lines().len()), (1, 4), "{run:?}");
    assert!(!tree.path("files/sub/b.txt").exists() && tree.path("files/sub/b.ok").exists());
    tree.scan(&["--remove=no", "files/other"]);
    assert!(tree.path("files/other/d.txt").exists());
    assert_eq!(tree.scan(&["--remove", &option("move"), "files"]).status, 2, "one or the other");
}

#[test]
fn what_is_reached_by_a_link_is_found_and_left_as_it_is() {
    let tree = Tree::new();
    let run = tree.scan(&["--no-summary", "--remove", "files/link"]);
    assert_eq!(run.status, 1);
    assert!(run.output.contains(FOUND) && run.errors.contains("or is a link: left as it is ERROR"), "{run:?}");
    assert!(tree.path("files/a.txt").exists() && tree.path("files/link").exists());
}

#[test]
fn limits_are_told_whatever_they_count_as() {
    let tree = Tree::new();
    std::fs::write(tree.path("large"), [&[b'.'; 5_000][..], BAD.as_bytes()].concat()).unwrap();
    for (option, name) in [("--max-filesize=1K", "MaxFileSize"), ("--max-scansize=1K", "MaxScanSize")] {
        let name = format!("Heuristics.Limits.Exceeded.{name}");
        let run = tree.scan(&["-i", option, "large"]);
        assert_eq!(run.status, 0);
        assert!(run.errors.contains(&format!("WARNING: large: not wholly inspected: {name}")), "{run:?}");
        assert!(run.output.contains("Not wholly inspected: 1"), "{run:?}");
        let run = tree.scan(&["-i", "--no-summary", option, "--alert-exceeds-max", "large"]);
        assert_eq!((run.status, run.output), (1, format!("large: {name} FOUND\n")));
    }
    for option in ["--max-filesize=6K", "--max-scansize=5019", "--max-scantime=60000"] {
        assert_eq!(tree.scan(&[option, "large"]).status, 1, "{option}");
    }
    assert_eq!(tree.scan(&["--max-scansize=5018", "large"]).status, 0, "one byte too few");
}

#[test]
fn the_time_for_a_file_holds_behind_its_last_byte_too() {
    let tree = Tree::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", "head -c 1G /dev/zero | gzip -1 | gzip > zeros.gz.gz"]);
    assert!(shell.current_dir(tree.folder.path()).status().unwrap().success());
    assert!(std::fs::metadata(tree.path("zeros.gz.gz")).unwrap().len() < 64 << 10, "read at once");
    let started = Instant::now();
    let run = tree.scan(&["-i", "--no-summary", "--max-scantime=5", "--alert-exceeds-max", "zeros.gz.gz"]);
    let name = "Heuristics.Limits.Exceeded.MaxScanTime";
    assert_eq!((run.status, run.output), (1, format!("zeros.gz.gz: {name} FOUND\n")));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn what_is_printed_is_as_asked_for() {
    let tree = Tree::new();
    let log = tree.path("log");
    let log_option = format!("--log={}", log.display());
    let run = tree.scan(&["--bell", &log_option, "files/a.txt", "files/a.ok", "files/nowhere"]);
    assert!(run.errors.contains('\x07'));
    let text = std::fs::read_to_string(&log).unwrap();
    for line in [&format!("files/a.txt: {FOUND}"), "files/a.ok: OK", "files/nowhere: ", "Infected files: 1"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    tree.scan(&[&log_option, "files/a.ok"]);
    assert!(std::fs::read_to_string(&log).unwrap().starts_with(&text), "it is appended to");
    let run = tree.scan(&["--stdout", "--quiet", "files"]);
    assert_eq!((run.status, run.output.as_str()), (1, ""));
    assert!(
        tree.scan(&["--stdout", "--no-summary", "files/nowhere"]).output.contains("No such file or directory ERROR")
    );
    std::fs::write(tree.path("both"), "other-marker-here clamd-test-marker").unwrap();
    assert_eq!(tree.scan(&["--no-summary", "both"]).lines(), ["both: Test.Other.UNOFFICIAL FOUND"]);
    let all = tree.scan(&["--no-summary", "-z", "both"]);
    assert_eq!(all.lines(), [format!("both: {FOUND}"), "both: Test.Other.UNOFFICIAL FOUND".into()]);
    let words: Vec<String> = (0..1_100).map(|number| format!("signature-{number:04}")).collect();
    let hex = |word: &String| word.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let signatures: String = words.iter().map(|word| format!("{word}:0:*:{}\n", hex(word))).collect();
    std::fs::write(tree.path("many.ndb"), signatures).unwrap();
    std::fs::write(tree.path("many"), words.join(" ")).unwrap();
    let many = tree.scan(&["--no-summary", "-d", "many.ndb", "-z", "many"]);
    assert_eq!(many.lines().len(), 1_000);
    assert!(many.errors.contains("WARNING: many: 100 more findings"), "{}", many.errors);
    let not_done = tree.scan(&["--gen-json=yes", "--scan-pe=no", "--scan-elf=yes", "--no-summary", "files/a.ok"]);
    let told = "sluice: --gen-json=yes: not supported\nsluice: --scan-pe=no: not supported\n";
    assert_eq!((not_done.status, not_done.errors.as_str()), (0, told));
    let json = tree.scan(&["--json", "files/a.txt", "files/folder"]);
    assert!(json.output.lines().all(|line| line.starts_with('{')) && json.output.lines().count() == 5, "{json:?}");
}

#[test]
fn pipes_and_devices_are_not_waited_for() {
    let tree = Tree::new();
    assert!(Command::new("mkfifo").arg(tree.path("files/pipe")).status().unwrap().success());
    let run = tree.scan(&["--no-summary", "files/pipe", "/dev/zero", "files/a.ok"]);
    assert_eq!((run.status, run.output.as_str()), (2, "files/a.ok: OK\n"));
    assert_eq!(run.errors.matches("Not supported file type ERROR").count(), 2, "{run:?}");
    assert_eq!(tree.scan(&["--no-summary", "files/other", "files"]).status, 1);
}

/// Brotli has no magic: a file is opened by its name.
#[test]
fn a_file_is_opened_by_its_name_too() {
    const BROTLI: &[u8] = b"\xa1\x80\x04\x00\x21\x50\x73\x4b\xf5\xd7\xa1\x86\x9b\xb0\x19\x04\x8a\x41\x75\x72\x40\x07\
        \x95\x7f\x0f\x92\xc4\xc3\x38\xa1\x50\x73\x1b\xbb\x82\xa3\x67\xdd\x5a\x51\xf8\xa3\x75\xa8\xd0\xdd\x5c\x1d\x9c\
        \xa4\x89\x90\x9e\x9e\x14\x02\xee\x60\x2b\xc8\x9a\xd6\xab\x4f\x4f\x82\x8f\x6f\xa2\xc3\x6f\x25\x87\x36\x15\
        \x0b\x59\x3c\x4c\xdf\x1e\x34\x59\xd3";
    let tree = Tree::new();
    for name in ["files/packed.br", "files/packed.bin"] {
        std::fs::write(tree.path(name), BROTLI).unwrap();
    }
    let run = tree.scan(&["--no-summary", "--archive-verbose", "files/packed.br", "files/packed.bin"]);
    assert_eq!(run.lines(), ["files/packed.bin: OK", &format!("files/packed.br: {FOUND}")]);
}

#[test]
fn a_path_is_printed_byte_for_byte_and_cannot_pass_for_another_line() {
    let tree = Tree::new();
    let name = std::ffi::OsStr::from_bytes(b"names/caf\xe9\nother: X\x1b[2J");
    std::fs::create_dir(tree.path("names")).unwrap();
    std::fs::create_dir(tree.path("kept")).unwrap();
    std::fs::write(tree.folder.path().join(name), BAD).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["scan", "-d", "database", "--no-summary", "--copy=kept", "--log=log", "names"]);
    let output = command.current_dir(tree.folder.path()).output().unwrap();
    let shown = b"caf\xe9?other: X?[2J".as_slice();
    let found = [b"names/", shown, b": ", FOUND.as_bytes(), b"\nnames/", shown, b": copied to 'kept/", shown, b"'\n"];
    assert_eq!(output.stdout.escape_ascii().to_string(), found.concat().escape_ascii().to_string());
    assert!(std::fs::read(tree.path("log")).unwrap().starts_with(&found.concat()));
}

#[test]
fn what_encrypts_counts_under_the_older_name_of_the_option_too() {
    let tree = Tree::new();
    // A member of an archive that says that it is encrypted, by flag bit 0.
    let head = b"PK\x03\x04\x14\0\x01\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\x04\0\0\0\x01\0\0\0a0123456789abcdef";
    std::fs::write(tree.path("locked.zip"), head).unwrap();
    assert_eq!(tree.scan(&["locked.zip"]).status, 0);
    for option in ["--alert-encrypted", "--alert-encrypted-archive=yes", "--block-encrypted"] {
        assert_eq!(tree.scan(&[option, "locked.zip"]).status, 1, "{option}");
    }
}

#[test]
fn signatures_that_are_too_old_are_not_scanned_with() {
    let tree = Tree::new();
    let run = tree.scan(&["--fail-if-cvd-older-than=7", "files/a.txt"]);
    assert!(run.status == 2 && run.errors.contains("the signatures are older than 7 days"), "{run:?}");
    let Some(data) = std::env::var_os("SLUICE_DATA") else { return };
    let signed = Path::new(&data).join("av-clamav/clamav-scanfiles/freshclam_testfiles/test-3.cvd");
    let Ok(bytes) = std::fs::read(signed) else {
        return eprintln!("no pack: av-clamav");
    };
    std::fs::write(tree.path("database/test.cvd"), bytes).unwrap();
    assert_eq!(tree.scan(&["--fail-if-cvd-older-than=7", "files/a.txt"]).status, 2);
    assert_eq!(tree.scan(&["--fail-if-cvd-older-than=36500", "files/a.txt"]).status, 1);
}

/// With `--state` a second scan says the same, and reads only what has changed or was not clean.
#[test]
fn what_was_clean_is_not_read_again_until_it_or_the_signatures_change() {
    let tree = Tree::new();
    let scan = |options: &[&str]| tree.scan(&[&["--state", "state"], options, &["files"]].concat());
    let facts = |run: &Run| -> Vec<String> {
        let is_of_a_file = |line: &&&str| line.starts_with("files/");
        run.lines().iter().filter(is_of_a_file).map(|line| (*line).to_owned()).collect()
    };
    let first = scan(&[]);
    assert!(!first.output.contains("Unchanged files"), "{first:?}");
    let second = scan(&[]);
    assert_eq!(facts(&first), facts(&second));
    assert!(second.output.contains("Unchanged files: 4\n") && second.status == 1, "{second:?}");
    // Some text before it, so that it is as long as before.
    std::fs::write(tree.path("files/sub/b.ok"), BAD).unwrap();
    let third = scan(&[]);
    assert!(third.output.contains("files/sub/b.ok: Test.Marker") && third.output.contains("Unchanged files: 3\n"));
    // Other signatures, or options that change what counts.
    assert!(!scan(&["--strict"]).output.contains("Unchanged files"));
    std::fs::write(tree.path("database/more.ndb"), "Test.Clean:0:*:636c65616e\n").unwrap();
    assert!(scan(&[]).output.contains("files/a.ok: Test.Clean"));
}

#[test]
fn values_are_separated_by_commas_where_that_is_asked_for() {
    let tree = Tree::new();
    std::fs::write(tree.path("files/a, \"b\"\n.txt"), BAD).unwrap();
    let run = tree.scan(&["--csv", "files"]);
    let lines: Vec<&str> = run.output.lines().collect();
    assert_eq!(lines[0], "file,status,signature,within,bytes");
    let found = "\"files/a, \"\"b\"\"?.txt\",found,Test.Marker.UNOFFICIAL,,21";
    assert!(lines.contains(&found) && lines.contains(&"files/a.ok,ok,,,5"), "{run:?}");
    assert!(lines.iter().all(|line| !line.contains("SUMMARY")));
}
