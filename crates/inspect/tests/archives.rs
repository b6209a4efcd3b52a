//! Archives by a grammar of oddities: what any reader opens is found, or refused.
//!
//! `archives/archives.py` makes them and lets Python, bsdtar, 7-Zip, Info-ZIP and unar extract them. Whenever one of them comes
//! to the marker, the default verdict is not to pass. The gate takes a few with a fixed seed; `fuzz/archives.sh` takes as many
//! as wanted. `SLUICE_ARCHIVES="SEED COUNT"` names others.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::build::{eicar, zip};
use flow::{Action, Policy};
use inspect::Engine;
use scan::Builder;
use stream::Limits;

/// Content of the archives, and of those of the table of formats; written so that this source holds neither.
const MARKS: [[&str; 2]; 2] = [["marker-that-a-reader-", "comes-to-0123456789"], ["-STANDARD-", "ANTIVIRUS-TEST-FILE"]];

fn engine() -> Arc<Engine> {
    let mut builder = Builder::new();
    for (number, mark) in MARKS.iter().enumerate() {
        let hex: String = mark.concat().bytes().map(|byte| format!("{byte:02x}")).collect();
        builder.add("marks.ndb", format!("Mark.{number}:0:*:{hex}\n").as_bytes()).unwrap();
    }
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

#[test]
fn no_archive_that_a_reader_opens_passes() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("sluice-archives-{}", std::process::id()));
    let wanted = std::env::var("SLUICE_ARCHIVES").unwrap_or_else(|_| "1 160".into());
    let (seed, count) = wanted.split_once(' ').expect("a seed and a count");
    let made = Command::new("python3")
        .arg(here.join("tests/archives/archives.py"))
        .args([seed, count])
        .arg(&folder)
        .arg(here.join("../sluice/tests/eicar/formats.tsv"))
        .output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        assert!(std::env::var_os("CI").is_none(), "no Python to make archives with");
        eprintln!("skipped: no Python to make archives with");
        return;
    };
    let (engine, mut opened, mut passed) = (engine(), 0, Vec::new());
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [path, seed, odd, readers] = fields[..] else {
            println!("readers: {line}");
            continue;
        };
        if readers.is_empty() {
            continue;
        }
        opened += 1;
        let seen = crate::pipeline::inspect(&engine, Policy::default(), &std::fs::read(path).unwrap());
        if seen.verdict.action == Action::Pass {
            passed.push(format!("{seed} ({odd}), opened by {readers}: {:?}", seen.names()));
        }
    }
    if std::env::var_os("SLUICE_ARCHIVES").is_none() || passed.is_empty() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    println!("{opened} of {count} archives were opened by somebody");
    assert!(passed.is_empty(), "{} that pass, in {}:\n{}", passed.len(), folder.display(), passed.join("\n"));
}

fn is_found(what: &str, archive: &[u8]) {
    let seen = crate::pipeline::inspect(&engine(), Policy::default(), archive);
    assert!(seen.verdict.action == Action::Reject, "{what}: {:?}", seen.names());
}

#[test]
fn a_zip_member_is_encrypted_only_where_its_first_flag_says_so() {
    const STRONG: u16 = 1 << 6;
    const MASKED: u16 = 1 << 13;
    let plain = zip("e.com", &eicar(), true);
    let central = plain.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("a directory");
    for flags in [STRONG, MASKED, STRONG | MASKED] {
        for places in [&[6, central + 8][..], &[6], &[central + 8]] {
            let mut odd = plain.clone();
            places.iter().for_each(|&at| odd[at..at + 2].copy_from_slice(&flags.to_le_bytes()));
            is_found(&format!("flags {flags:#x} at {places:?}"), &odd);
        }
    }
}

#[test]
fn a_7z_header_that_reaches_beyond_the_end_is_read_as_far_as_it_is_there() {
    // The test virus, packed by 7-Zip with LZMA; its header is not packed.
    let hex = "377abcaf271c000474ad482d4700000000000000360000000000000020696366002c0d45e2234b3809fe242c5b4b369031dc4b2435b632\
               dfaf314c3cdfcf3a4b7573e58bc87e89b3805ef7941f8da9c31efa496c05fc84055a71fc39ba92658b9743a7dcc8b84301040600010947\
               00070b01000123030101055d001000000c4400080a013ccf5168000005011906000000000000110500650000000000";
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    let plain: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
    is_found("whole", &plain);
    for more in [1, 20, 5_000, 1 << 20] {
        let mut odd = plain.clone();
        let size = u64::from_le_bytes(odd[20..28].try_into().expect("eight bytes")) + more;
        odd[20..28].copy_from_slice(&size.to_le_bytes());
        let mut crc = flate2::Crc::new();
        crc.update(&odd[12..32]);
        let crc = crc.sum();
        odd[8..12].copy_from_slice(&crc.to_le_bytes());
        is_found(&format!("{more} more"), &odd);
    }
}
