//! Every way to write and to read that the system has (`ways.py` has the list), in all four modes.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use avfs::{Mode, OnInfected};

use crate::harness::{EVIL, How, Mount, holds_word, until};

/// Content of files before.
const BEFORE: &str = "as it was before, and clean";

/// Ways that bring clean parts down before the last is written, or to another file; they keep less than `BEFORE`.
const IN_PARTS: [&str; 6] =
    ["truncated", "appended_by_two", "copied_in_the_kernel", "linked", "at_the_end_of_a_hole", "opened_again"];

/// Ways that the file system does not have, in no mode.
const NOT_THERE: [&str; 3] = ["cloned", "without_a_name", "removed_and_linked"];

/// Names that are refused to what was dropped, also where its writer notices nothing else.
const NAMED: [&str; 3] = ["renamed_over", "linked_meanwhile", "exchanged"];

fn four() -> impl Iterator<Item = How> {
    [Mode::Regular, Mode::Full].into_iter().flat_map(|mode| {
        [OnInfected::Immediate, OnInfected::Deferred].map(|on_infected| How { mode, on_infected, ..How::default() })
    })
}

/// The word in the middle, over the end of a page.
fn content() -> Vec<u8> {
    let half = 3 * 4096 - EVIL.len() / 2;
    [&vec![b'a'; half][..], EVIL, &vec![b'z'; half]].concat()
}

/// Results of each way.
fn tried(what: &str, folder: &Path, content: &Path, before: Option<&str>) -> BTreeMap<String, String> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ways.py");
    let output =
        Command::new("python3").arg("-B").arg(program).arg(what).arg(folder).arg(content).args(before).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("text");
    let lines = said.lines().map(|line| line.split_once(' ').expect("a way and what came of it"));
    lines.map(|(way, outcome)| (way.to_owned(), outcome.to_owned())).collect()
}

#[test]
fn in_no_mode_is_there_a_way_to_write_it() {
    for how in four() {
        for before in [None, Some(BEFORE)] {
            let Some(mount) = Mount::new(how) else { return };
            let given = mount.folder.path().join("given");
            fs::write(&given, content()).expect("the content");
            let outcomes = tried("write", &mount.point, &given, before);
            assert!(outcomes.len() > 25, "{outcomes:?}");
            let label = format!("{:?} {:?}", how.mode, how.on_infected);
            for (way, outcome) in &outcomes {
                check(&format!("{label} {way}"), way, outcome, how.on_infected);
            }
            until("all is closed", || !is_shown(&mount.point));
            assert!(!holds_word(&mount.source, EVIL), "{label}: it is on the disk");
            let kept = |way: &str| fs::read(mount.below(way)).unwrap_or_default();
            for way in outcomes.keys().filter(|way| !IN_PARTS.contains(&way.as_str()) && *way != "removed_and_linked") {
                let (now, was) = (kept(way), before.unwrap_or_default().as_bytes());
                // It was longer before anything was written to it.
                let rest = now.strip_prefix(was);
                let is_kept = rest.is_some_and(|rest| rest.iter().all(|&byte| byte == 0));
                assert!(is_kept, "{label} {way}: {:?}", String::from_utf8_lossy(&now[..now.len().min(60)]));
            }
        }
    }
}

fn check(label: &str, way: &str, outcome: &str, on_infected: OnInfected) {
    let refused = ["EIO", "EPERM"].contains(&outcome);
    match way {
        // Its writer is gone.
        "killed" => assert_eq!(outcome, "written", "{label}"),
        _ if NOT_THERE.contains(&way) => assert_ne!(outcome, "written", "{label}"),
        _ if outcome == "absent" => eprintln!("{label}: not on this machine"),
        _ if on_infected == OnInfected::Immediate => assert!(refused, "{label}: {outcome}"),
        _ => assert!(outcome == "written" || NAMED.contains(&way) && refused, "{label}: {outcome}"),
    }
}

/// Whether any file of a folder can be read and shows it.
fn is_shown(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => is_shown(&path),
        false => fs::read(path).is_ok_and(|content| content.windows(EVIL.len()).any(|window| window == EVIL)),
    })
}

#[test]
fn in_no_mode_is_there_a_way_to_read_it() {
    for how in four() {
        let Some(mount) = Mount::new(how) else { return };
        let given = mount.folder.path().join("given");
        fs::write(&given, content()).expect("the content");
        // The names of all ways, by an empty folder.
        let ways = tried("read", &mount.folder.path().join("state"), &given, None);
        ways.keys().for_each(|way| fs::write(mount.below(way), content()).expect("infected below"));
        let outcomes = tried("read", &mount.point, &given, None);
        assert!(outcomes.len() > 15, "{outcomes:?}");
        for (way, outcome) in outcomes {
            let is_refused = ["EPERM", "EIO", "absent"].contains(&outcome.as_str());
            // Where a writer notices nothing, it reads what was clean before: nothing.
            assert!(is_refused, "{:?} {:?} {way}: {outcome}", how.mode, how.on_infected);
        }
    }
}

/// Evidence has the pending changes when the word comes, those after it, and the file's content before.
#[test]
fn deferred_all_of_it_is_evidence_and_its_writer_goes_on_as_if_nothing_were() {
    for mode in [Mode::Regular, Mode::Full] {
        let how = How { mode, on_infected: OnInfected::Deferred, ..How::default() };
        let Some(mount) = Mount::new(how) else { return };
        let (before, all) = (vec![b'b'; 50_000], [content(), vec![b'!'; 40_000]].concat());
        fs::write(mount.at("a"), &before).expect("a clean file");
        fs::write(mount.at("a"), &all).expect("its writer notices nothing");
        until("it has what it had", || fs::read(mount.at("a")).is_ok_and(|content| content == before));
        let kept = evidence(&mount);
        assert_eq!(kept.len(), 2, "{mode:?}");
        assert!(kept["data"] == all && kept["before"] == before, "{mode:?}");
    }
}

/// Complete and clean changes come to the file; from the word on, nothing more that its writer does through that
/// opening.
#[test]
fn deferred_nothing_is_put_over_what_the_file_has_again() {
    for mode in [Mode::Regular, Mode::Full] {
        let how = How { mode, on_infected: OnInfected::Deferred, ..How::default() };
        let Some(mount) = Mount::new(how) else { return };
        let other = OpenOptions::new().append(true).create(true).open(mount.at("a")).expect("a file");
        let mut file = fs::File::create(mount.at("a")).expect("a file");
        for piece in [content(), vec![b'!'; 40_000]].concat().chunks(10_000) {
            file.write_all(piece).and_then(|()| file.sync_all()).expect("its writer notices nothing");
        }
        file.set_len(20).expect("its writer notices nothing");
        drop(file);
        assert_eq!(fs::read(mount.at("a")).expect("the first piece"), [b'a'; 10_000], "{mode:?}");
        // Others have nothing to do with it.
        (&other).write_all(b"clean").and_then(|()| other.sync_all()).expect("clean");
        assert_eq!(fs::read(mount.at("a")).expect("both").len(), 10_005, "{mode:?}");
    }
}

/// The contents of the only item in the quarantine, by what they are; its facts were read.
fn evidence(mount: &Mount) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(mount.folder.path().join("evidence")).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let suffix = |path: &Path| path.extension().expect("a suffix").to_string_lossy().into_owned();
    let mut kept: BTreeMap<_, _> = paths.map(|path| (suffix(&path), fs::read(&path).expect("a file"))).collect();
    let facts: serde_json::Value = serde_json::from_slice(&kept.remove("json").expect("facts")).expect("JSON");
    assert_eq!((&facts["file"], &facts["signature"]), (&"a".into(), &"Test.Evil".into()));
    kept
}
