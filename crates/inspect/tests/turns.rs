//! The longest turn: no call of `work` with the fuel that doors give may hold up an event loop for long.
//!
//! Measured in processor time of the thread over all seeds of the fuzzers, bombs, pictures, expressions that backtrack, and the
//! packs below `SLUICE_DATA`, where there are any. The worst ten are printed. What is above the bound is run again, and the least of
//! several runs counts: interrupts and cold caches are no fault of a stage.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::build::{gzip, tar, zip};
use flow::{Context, In};
use inspect::{Clocks, Engine, Inspection, Progress};
use rustix::time::{ClockId, clock_gettime};
use scan::Builder;
use stream::{Fuel, Limits, Object};

/// Fuel of a turn in the doors.
const TURN_FUEL: u64 = 256 << 10;

/// The longest that a turn may take; where the program is not optimised, as much longer as that is slower.
const TURN_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 400 } else { 50 });

/// Pictures, searches that backtrack, and rules.
const SIGNATURES: &str = "Turns.Picture;Engine:150-255,Target:5;0;fuzzy_img#af2ad01ed42993c7#0\n\
    Turns.Doubling;Engine:81-255,Target:0;1;41424344;0/(?=(a+)+$)(a+)+\\2b/g\n\
    Turns.Squares;Engine:81-255,Target:0;1;41424344;0/X(?:(?=(a*)(a*)\\1c)z|a{900}b)/g\n";

fn engine() -> Arc<Engine> {
    let mut builder = Builder::new();
    builder.add("turns.ldb", SIGNATURES.as_bytes()).expect("signatures");
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn nanoseconds() -> u64 {
    worked().as_nanos() as u64
}

/// The longest turn over an input, and all of them together.
fn longest(engine: &Arc<Engine>, mail: bool, bytes: &[u8]) -> (Duration, Duration) {
    let object = Object { media_type: mail.then(|| "message/rfc822".into()), ..Object::default() };
    let context = Context { object, ..Context::default() };
    let mut inspection =
        Inspection::new(engine.clone(), context).with_clocks(Clocks { passed: nanoseconds, worked: nanoseconds });
    let (mut most, mut all) = (Duration::ZERO, Duration::ZERO);
    let mut work = |inspection: &mut Inspection| {
        loop {
            let began = worked();
            let progress = inspection.work(&mut Fuel::new(TURN_FUEL));
            let took = worked() - began;
            (most, all) = (most.max(took), all + took);
            while inspection.hear().is_some() {}
            if progress != Progress::Tired {
                return;
            }
        }
    };
    for mut piece in bytes.chunks(64 << 10) {
        while !piece.is_empty() {
            piece = &piece[inspection.tell(In::Feed(piece))..];
            work(&mut inspection);
        }
    }
    inspection.tell(In::Finish);
    work(&mut inspection);
    (most, all)
}

/// A grey PNG of equal pixels.
fn png(side: u32) -> Vec<u8> {
    use std::io::Write;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let row = vec![0; side as usize + 1];
    (0..side).for_each(|_| packed.write_all(&row).expect("memory"));
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut chunk = |kind: &[u8], data: &[u8]| {
        png.extend((data.len() as u32).to_be_bytes());
        let content = [kind, data].concat();
        let mut crc = flate2::Crc::new();
        crc.update(&content);
        png.extend(&content);
        png.extend(crc.sum().to_be_bytes());
    };
    chunk(b"IHDR", &[&side.to_be_bytes()[..], &side.to_be_bytes(), &[8, 0, 0, 0, 0]].concat());
    chunk(b"IDAT", &packed.finish().expect("memory"));
    chunk(b"IEND", b"");
    png
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

/// Bombs, by name.
fn made() -> Vec<(String, Vec<u8>)> {
    let picture = png(1448);
    let names: Vec<String> = (0..12).map(|number| format!("{number}.png")).collect();
    let pictures: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &picture[..])).collect();
    let squares = [b"ABCD", &[b"X", &[b'a'; 900][..], b"b"].concat().repeat(256)[..]].concat();
    let doubling = [b"ABCD", &[&[b'a'; 3000][..], b"\n"].concat().repeat(20)[..]].concat();
    let zeros = vec![0; 100 << 20];
    [
        ("a picture of 2 million pixels", picture.clone()),
        ("twelve of them", gzip(&tar(&pictures))),
        ("256 matches with 405,000 steps back each", squares),
        ("steps back that double", doubling),
        ("gzip of zeros", gzip(&zeros)),
        ("zip of zeros", zip("zeros", &zeros, true)),
        ("gzip of marks of zip", gzip(&b"PK\x03\x04".repeat(655_360))),
        ("gzip of headers of ARJ", gzip(&b"\x60\xea\x1e\0".repeat(1 << 18))),
    ]
    .map(|(name, bytes)| (name.to_string(), bytes))
    .into()
}

#[test]
fn no_turn_is_long() {
    let engine = engine();
    let mut paths = Vec::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    files(&here.join("tests/bombs"), &mut paths);
    files(&here.join("../../fuzz/corpus"), &mut paths);
    if let Some(data) = std::env::var_os("SLUICE_DATA") {
        files(Path::new(&data), &mut paths);
    }
    let mut worst: Vec<(Duration, Duration, String, Vec<u8>)> = Vec::new();
    let read = paths.iter().filter_map(|path| Some((path.display().to_string(), std::fs::read(path).ok()?)));
    let mut count = 0;
    for (name, bytes) in made().into_iter().chain(read) {
        for mail in [false, true] {
            if mail && name.contains("bombs/") {
                continue;
            }
            count += 1;
            let (most, all) = longest(&engine, mail, &bytes);
            worst.push((most, all, format!("{name}{}", if mail { " as a mail" } else { "" }), bytes.clone()));
        }
        worst.sort_by_key(|one| std::cmp::Reverse(one.0));
        worst.truncate(10);
    }
    println!("the longest turns of {count} inspections:");
    for (most, all, name, bytes) in &worst {
        println!("{:8.1} ms, {:9.1} ms in all, {:9} bytes, {name}", ms(*most), ms(*all), bytes.len());
    }
    for (most, _, name, bytes) in worst.iter().filter(|(most, ..)| *most > TURN_MAX) {
        let again = (0..3).map(|_| longest(&engine, name.ends_with("as a mail"), bytes).0).min().unwrap_or(*most);
        assert!(again <= TURN_MAX, "{name}: a turn of {:.1} ms", ms(again));
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
