//! Compiled signatures: made by a process of its own, mapped, swapped while everything goes on.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::harness::{Gateway, PATIENCE, wait_for};

const BAD: &[u8] = b"x compiled-test-marker y";

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn marker() -> String {
    format!("Test.Marker:0:*:{}\n", hex("compiled-test-marker"))
}

/// Digests that nothing has, enough of them that they are not compiled at once.
fn many_digests(seed: u64) -> String {
    let mut text = String::new();
    for number in 0..90_000u64 {
        let mixed = (number + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let _ = writeln!(text, "{:016x}{mixed:016x}:{}:Test.Digest-{seed}-{number}", mixed ^ 0x5555, 1000 + number);
    }
    text
}

fn sluice(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with signatures, a folder for compiled ones, and a file to be scanned.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("signatures")).unwrap();
        place.put("local.ndb", &marker());
        std::fs::write(place.path("bad"), BAD).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file of signatures in place as a whole.
    fn put(&self, name: &str, text: &str) {
        put(&self.path("signatures"), name, text);
    }

    fn compile(&self) -> serde_json::Value {
        let (signatures, cache) = (self.path("signatures"), self.path("cache"));
        let arguments =
            ["database", "compile", "--json", signatures.to_str().unwrap(), "--cache", cache.to_str().unwrap()];
        let output = sluice(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn scan(&self) -> Output {
        let (signatures, cache, bad) = (self.path("signatures"), self.path("cache"), self.path("bad"));
        let [signatures, cache, bad] = [&signatures, &cache, &bad].map(|path| path.to_str().unwrap());
        sluice(&["scan", "-d", signatures, "--cache", cache, "--no-summary", bad])
    }

    fn compiled(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("cache")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "sluicedb")).collect()
    }
}

fn put(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join("new"), text).unwrap();
    std::fs::rename(folder.join("new"), folder.join(name)).unwrap();
}

#[test]
fn what_is_compiled_is_used_while_it_is_fresh() {
    let place = Place::new();
    let first = place.compile();
    assert_eq!((&first["compiled"], &first["files"], &first["signatures"]), (&true.into(), &1.into(), &8.into()));
    let second = place.compile();
    assert_eq!((&second["compiled"], &second["signatures"]), (&false.into(), &8.into()));
    let file = &place.compiled()[0];
    assert_eq!(first["file"], file.to_str().unwrap());
    let before = std::fs::metadata(file).unwrap().modified().unwrap();
    let output = place.scan();
    assert!(text(&output.stdout).ends_with("bad: Test.Marker.UNOFFICIAL FOUND\n"), "{}", text(&output.stdout));
    // A small change lies over what is compiled.
    place.put("local.ndb", &marker().replace("Marker", "Renamed"));
    assert!(text(&place.scan().stdout).ends_with("bad: Test.Renamed.UNOFFICIAL FOUND\n"));
    place.put("more.ign2", "Test.Renamed\n");
    assert!(text(&place.scan().stdout).ends_with("bad: OK\n"));
    std::fs::remove_file(place.path("signatures/local.ndb")).unwrap();
    std::fs::remove_file(place.path("signatures/more.ign2")).unwrap();
    place.put("other.hdb", "900150983cd24fb0d6963f7d28e17f72:3:Abc\n");
    assert!(text(&place.scan().stdout).ends_with("bad: OK\n"));
    assert!(std::fs::metadata(file).unwrap().modified().unwrap() > before, "an ignore list asks for the whole");
}

#[test]
fn a_damaged_file_is_made_anew_and_a_bad_source_changes_nothing() {
    let place = Place::new();
    place.compile();
    let file = &place.compiled()[0];
    let good = std::fs::read(file).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    for content in [&bad[..], &good[..good.len() / 3], b""] {
        std::fs::write(file, content).unwrap();
        let output = place.scan();
        assert!(text(&output.stdout).ends_with("FOUND\n"), "{}", text(&output.stderr));
        assert!(content.is_empty() || text(&output.stderr).contains("compiling again"), "{}", text(&output.stderr));
        assert!(std::fs::read(file).unwrap().len() == good.len(), "it was made anew");
    }
    let good = std::fs::read(file).unwrap();
    place.put("bad.ndb", "rubbish\n");
    let output = place.scan();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("bad.ndb:1: "), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(file).unwrap(), good);
}

#[test]
fn unwanted_applications_are_told_only_to_those_who_ask() {
    let place = Place::new();
    place.put("local.ndb", "");
    place.put("more.ndu", &marker().replace("Test.Marker", "PUA.Tool.Test"));
    let (signatures, cache, bad) = (place.path("signatures"), place.path("cache"), place.path("bad"));
    let [signatures, cache, bad] = [&signatures, &cache, &bad].map(|path| path.to_str().unwrap());
    for (options, found) in [
        (&[][..], "bad: OK\n"),
        (&["--detect-pua"], "bad: PUA.Tool.Test.UNOFFICIAL FOUND\n"),
        (&["--detect-pua", "--exclude-pua", "Tool"], "bad: OK\n"),
    ] {
        let compile = ["database", "compile", "--json", signatures, "--cache", cache];
        let output = sluice(&[&compile, options].concat());
        assert!(text(&output.stdout).contains("\"compiled\":true"), "{options:?}");
        let scan = ["scan", "-d", signatures, "--cache", cache, "--no-summary", bad];
        let output = sluice(&[&scan, options].concat());
        assert!(text(&output.stdout).ends_with(found), "{options:?}: {}", text(&output.stdout));
    }
    assert_eq!(place.compiled().len(), 3, "each choice has its own");
    let config = place.path("sluice.toml");
    std::fs::write(&config, format!("[database]\npaths = [\"{signatures}\"]\n")).unwrap();
    for (option, count) in [("--detect-pua", 8), ("--detect-pua=no", 7)] {
        let compile = ["database", "compile", "--json", "--cache", cache, "--config", config.to_str().unwrap(), option];
        let said: serde_json::Value = serde_json::from_slice(&sluice(&compile).stdout).unwrap();
        assert_eq!(said["signatures"], count, "{option}");
    }
    // What changes later lies over it under the same choice.
    place.put("more.ndu", &marker().replace("Test.Marker", "PUA.Tool.Later"));
    let output = sluice(&["scan", "-d", signatures, "--cache", cache, "--no-summary", bad, "--detect-pua"]);
    assert!(text(&output.stdout).ends_with("PUA.Tool.Later.UNOFFICIAL FOUND\n"), "{}", text(&output.stdout));
}

#[test]
fn the_compiler_may_open_nothing() {
    let place = Place::new();
    let confined = place.compile()["confined"].as_str().unwrap().to_owned();
    if Path::new("/sys/kernel/security/lsm").exists() {
        let modules = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap();
        assert!(confined != "not" || !modules.contains("landlock"), "{confined}");
    }
    // Without a word from the one who starts it, it does nothing.
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["database", "worker"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

/// A gateway with the clamd door on a UNIX socket.
fn door(place: &Place) -> Gateway {
    let [signatures, cache] = ["signatures", "cache"].map(|name| place.path(name).display().to_string());
    Gateway::with(&format!(
        "threads = 2\n[database]\npaths = [\"{signatures}\"]\ncache = \"{cache}\"\n\
         [clamd]\naddresses = [\"127.0.0.1:0\", \"unix:FOLDER/clamd.sock\"]\n"
    ))
}

fn connect(door: &Gateway) -> UnixStream {
    let stream = UnixStream::connect(door.folder.path().join("clamd.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes(), content].concat()
}

fn answer(mut stream: UnixStream) -> String {
    stream.write_all(&[0; 4]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask(door: &Gateway, content: &[u8]) -> String {
    let mut stream = connect(door);
    stream.write_all(&[b"zINSTREAM\0".to_vec(), chunk(content)].concat()).unwrap();
    answer(stream)
}

#[test]
fn a_changed_file_comes_into_force() {
    let place = Place::new();
    place.put("many.hdb", &many_digests(1));
    let door = door(&place);
    assert_eq!(ask(&door, BAD), "stream: Test.Marker.UNOFFICIAL FOUND\0");
    for name in ["Second", "Third"] {
        let wanted = format!("stream: Test.{name}.UNOFFICIAL FOUND\0");
        place.put("local.ndb", &marker().replace("Marker", name));
        wait_for(|| (ask(&door, BAD) == wanted).then_some(()), name);
    }
    std::fs::remove_file(place.path("signatures/local.ndb")).unwrap();
    wait_for(|| (ask(&door, BAD) == "stream: OK\0").then_some(()), "the file to be forgotten");
}

/// How many compiled databases a process has mapped, and over how many small ones.
fn mapped(door: &Gateway) -> (usize, usize) {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", door.pid())).unwrap();
    let count = |what: &str| maps.lines().filter(|line| line.contains(what)).count();
    (count(".sluicedb") + count(".part"), count("memfd:overlay"))
}

/// Memory of a process that is its own and no file's, in kB.
fn own_kb(door: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", door.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn no_stream_is_stopped_and_no_verdict_lost_while_signatures_are_replaced() {
    replace_under_load(Duration::from_secs(6), Duration::from_millis(250));
}

#[test]
#[ignore = "a minute: cargo test -p sluice --test all -- --ignored --nocapture a_minute"]
fn nor_is_any_in_a_minute_of_replacing_them_every_second() {
    replace_under_load(Duration::from_secs(60), Duration::from_secs(1));
}

/// Streams for as long as `flight` while signatures are replaced `every` so often, all of them every eighth time.
fn replace_under_load(flight: Duration, every: Duration) {
    const STREAMS: usize = 200;
    let place = Place::new();
    place.put("many.hdb", &many_digests(1));
    let door = door(&place);
    let (stop, folder) = (AtomicBool::new(false), place.path("signatures"));
    assert_eq!(ask(&door, BAD), "stream: Test.Marker.UNOFFICIAL FOUND\0");
    let before = own_kb(&door);
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            let mut round = 0;
            while round <= 10 || !stop.load(Ordering::Relaxed) {
                round += 1;
                put(
                    &folder,
                    "local.ndb",
                    &format!("{}Test.Round{round}:0:*:{}\n", marker(), hex(&format!("round-{round}!"))),
                );
                if round % 8 == 0 {
                    put(&folder, "many.hdb", &many_digests(round));
                }
                std::thread::sleep(every);
            }
            round
        });
        let streams: Vec<_> = (0..STREAMS)
            .map(|number| {
                let door = &door;
                scope.spawn(move || {
                    let mut stream = connect(door);
                    stream.write_all(b"zINSTREAM\0").unwrap();
                    let content = if number % 2 == 0 { BAD } else { b"x nothing that is known y" };
                    let pieces = content.chunks(3);
                    let pause = flight / pieces.len() as u32;
                    for piece in pieces {
                        stream.write_all(&chunk(piece)).unwrap();
                        std::thread::sleep(pause);
                    }
                    answer(stream)
                })
            })
            .collect();
        let answers: Vec<String> = streams.into_iter().map(|stream| stream.join().unwrap()).collect();
        let found = answers.iter().filter(|answer| *answer == "stream: Test.Marker.UNOFFICIAL FOUND\0").count();
        let clean = answers.iter().filter(|answer| *answer == "stream: OK\0").count();
        assert_eq!((found, clean), (STREAMS / 2, STREAMS / 2), "{answers:?}");
        stop.store(true, Ordering::Relaxed);
        let rounds = replacing.join().unwrap();
        let last = format!("round-{rounds}!");
        let wanted = format!("stream: Test.Round{rounds}.UNOFFICIAL FOUND\0");
        wait_for(|| (ask(&door, last.as_bytes()) == wanted).then_some(()), "the last round to be in force");
    });
    let reloads = door.log().matches("reloaded").count();
    assert!(reloads > 2, "{reloads} reloads");
    wait_for(|| (mapped(&door).0 == 1 && mapped(&door).1 <= 1).then_some(()), "old databases to be unmapped");
    let after = own_kb(&door);
    println!("{STREAMS} streams, {reloads} reloads: {before} kB of its own before, {after} kB after");
    // What an allocator keeps for a time of what each reload took; what is never given back would be far more.
    assert!(after < before + (64 << 10), "{before} kB before, {after} kB after");
}
