//! Processor time of mails with 1 MiB of program each, inspected by turns on one thread, 64 KiB of each at a time, by what
//! the signatures ask for: `cargo bench -p sluice-inspect --bench company`. Microseconds a mail, the least of seven rounds;
//! what a digest costs is the difference of two rows.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use digest::Batch;
use flow::{Context, In};
use inspect::{Engine, Inspection, Progress};
use scan::{Builder, Database};
use stream::{Fuel, Limits, Object};

const SEGMENT_BYTES: usize = 64 << 10;
const PROGRAM_BYTES: usize = 1 << 20;
const ROUNDS: usize = 7;

/// Work done on one mail before the others have their turn, as the gateway does it.
const TURN_FUEL: u64 = 256 << 10;

fn main() {
    let counts: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![1, 2, 4, 16] } else { counts };
    let programs: Vec<Vec<u8>> = programs(counts.iter().copied().max().unwrap_or(1));
    let mails: Vec<Vec<u8>> = programs.iter().map(|program| mail(program)).collect();
    print!("{:<42}", "signatures");
    counts.iter().for_each(|count| print!("{:>10}", format!("{count} mails")));
    println!();
    // That of an event loop.
    let mut batch = Batch::new(16 << 20, 2 << 20);
    for (what, digits) in [
        ("none", &[][..]),
        ("bodies", &[0]),
        ("bodies, MD5", &[0, 32]),
        ("bodies, SHA-1", &[0, 40]),
        ("bodies, SHA-256", &[0, 64]),
        ("bodies, MD5, SHA-1, SHA-256", &[0, 32, 40, 64]),
        ("bodies, all three, MD5 of each section", &[0, 32, 40, 64, 1]),
    ] {
        let engine = Arc::new(Engine { database: Arc::new(database(digits)), limits: Limits::default() });
        print!("{what:<42}");
        for &count in &counts {
            let least = (0..ROUNDS).map(|_| round(&engine, &mut batch, &mails[..count])).fold(f64::MAX, f64::min);
            print!("{:>10.0}", least / count as f64);
        }
        println!();
    }
}

/// Microseconds that all of them take.
fn round(engine: &Arc<Engine>, batch: &mut Batch, mails: &[Vec<u8>]) -> f64 {
    let begin = worked();
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    let context = || Context { object: object.clone(), ..Context::default() };
    let mut inspections: Vec<_> = mails.iter().map(|_| Inspection::new(engine.clone(), context())).collect();
    let longest = mails.iter().map(Vec::len).max().unwrap_or(0);
    for start in (0..longest).step_by(SEGMENT_BYTES) {
        for (mail, inspection) in mails.iter().zip(&mut inspections) {
            let mut segment = mail.get(start..mail.len().min(start + SEGMENT_BYTES)).unwrap_or_default();
            while !segment.is_empty() {
                segment = &segment[inspection.tell(In::Feed(segment))..];
                work(inspection, batch);
            }
        }
    }
    for inspection in &mut inspections {
        inspection.tell(In::Finish);
        assert_eq!(work(inspection, batch), Progress::Done);
    }
    (worked() - begin) * 1e6
}

/// Seconds that this thread has worked.
fn worked() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn work(inspection: &mut Inspection, batch: &mut Batch) -> Progress {
    loop {
        let progress = inspection.work_beside(batch, &mut Fuel::new(TURN_FUEL));
        if batch.is_due() {
            batch.run();
        }
        while inspection.hear().is_some() {}
        if progress != Progress::Tired {
            return progress;
        }
    }
}

/// Programs for Windows, as far as their head and their table of sections go: behind them stand pieces of this machine's
/// libraries.
fn programs(count: usize) -> Vec<Vec<u8>> {
    let mut real = Vec::new();
    let folder = fs::read_dir("/usr/lib/x86_64-linux-gnu").into_iter().flatten().flatten();
    let mut paths: Vec<_> = folder.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.to_string_lossy().contains(".so")) {
        if real.len() >= count * PROGRAM_BYTES {
            break;
        }
        real.extend(fs::read(path).unwrap_or_default());
    }
    real.resize(count * PROGRAM_BYTES, 0x90);
    real.chunks_exact(PROGRAM_BYTES).map(|real| [&head()[..], &real[..PROGRAM_BYTES - 1024]].concat()).collect()
}

/// A PE head of two sections that fill the file.
fn head() -> Vec<u8> {
    let mut head = vec![0; 1024];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x80_u32.to_le_bytes());
    put(0x80, b"PE\0\0\x4c\x01\x02\0");
    put(0x80 + 20, &[0xe0, 0, 2, 1, 0x0b, 1]);
    put(0x80 + 24 + 16, &0x1000_u32.to_le_bytes());
    put(0x80 + 24 + 28, &0x40_0000_u32.to_le_bytes());
    put(0x80 + 24 + 32, &0x1000_u32.to_le_bytes());
    put(0x80 + 24 + 36, &0x200_u32.to_le_bytes());
    put(0x80 + 24 + 56, &0x20_0000_u32.to_le_bytes());
    put(0x80 + 24 + 60, &0x400_u32.to_le_bytes());
    put(0x80 + 24 + 92, &16_u32.to_le_bytes());
    let [code, rest] = SECTION_BYTES;
    for (index, (name, address, length, raw)) in
        [(b".text\0\0\0", 0x1000, code, 1024), (b".data\0\0\0", 0x1000 + code, rest, 1024 + code)]
            .into_iter()
            .enumerate()
    {
        let at = 0x80 + 24 + 0xe0 + 40 * index;
        put(at, name);
        for (place, number) in [length, address, length, raw].into_iter().enumerate() {
            put(at + 8 + 4 * place, &(number as u32).to_le_bytes());
        }
    }
    head
}

/// Lengths of the two sections.
const SECTION_BYTES: [usize; 2] = [0xa_0000, PROGRAM_BYTES - 1024 - 0xa_0000];

fn mail(program: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut mail = b"From: a@b.test\r\nSubject: a program\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nOne line of text.\r\n--b\r\n\
        Content-Type: application/octet-stream; name=program.exe\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        .to_vec();
    for line in program.chunks(57) {
        for three in line.chunks(3) {
            let number = three.iter().chain(&[0, 0]).take(3).fold(0, |number, &byte| number << 8 | usize::from(byte));
            let digits: [u8; 4] = std::array::from_fn(|digit| DIGITS[number >> (18 - 6 * digit) & 63]);
            let count = three.len() + 1;
            mail.extend_from_slice(&digits[..count]);
            mail.resize(mail.len() + 4 - count, b'=');
        }
        mail.extend_from_slice(b"\r\n");
    }
    mail.extend_from_slice(b"--b--\r\n");
    mail
}

/// 1,024 bodies of random bytes for a 0, the MD5 of both sections for a 1, else digests of so many digits, up to 200 MB.
fn database(digits: &[usize]) -> Database {
    let mut seed = 1_u64;
    let mut hex = |count: usize| {
        let mut digit = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from_digit((seed >> 60) as u32, 16).expect("four bits")
        };
        (0..count).map(|_| digit()).collect::<String>()
    };
    let (mut ndb, mut hsb, mut mdb) = (String::new(), String::new(), String::new());
    for &digits in digits {
        let _ = match digits {
            0 => (0..1_024).try_for_each(|number| writeln!(ndb, "Bench.N.{number}:0:*:{}", hex(96))),
            1 => SECTION_BYTES.iter().try_for_each(|bytes| writeln!(mdb, "{bytes}:{}:Bench.S.{bytes}", hex(32))),
            _ => (0..100).try_for_each(|number| {
                writeln!(hsb, "{}:{}:Bench.H.{digits}.{number}", hex(digits), (1 + number) * 2_000_000)
            }),
        };
    }
    let mut builder = Builder::new();
    for (name, text) in [("bench.ndb", ndb), ("bench.hsb", hsb), ("bench.mdb", mdb)] {
        builder.add(name, text.as_bytes()).expect("a kind of database");
    }
    builder.build()
}
