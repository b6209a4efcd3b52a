//! Stores mails for N recipients in several ways, each durable before the next mail comes, and prints deliveries a second and
//! bytes written per byte delivered.
//!
//! The ways take turns within each round, so that they meet the same load. One writer, one thread; the ways differ in what they do
//! to the disk, not in how they get the mail. `write_bytes` of the process says what went to the disk: whole pages.

mod ways;

#[path = "../../../crates/mailbox/src/file.rs"]
mod file;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ways::Way;

type Failure = Box<dyn std::error::Error>;

struct Options {
    recipients: Vec<usize>,
    bytes: usize,
    rounds: usize,
    seconds: f64,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if let (Some("--recover"), Some(mib)) = (arguments.next().as_deref(), arguments.next()) {
        return match mib.parse().map_err(Failure::from).and_then(recover) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench/store: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match options().and_then(|options| measure(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench/store: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        recipients: vec![1, 2, 3, 5, 8, 10, 15, 50],
        bytes: 4096,
        rounds: 5,
        seconds: 1.0,
        folder: PathBuf::from("/var/tmp"),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--quick" {
            (options.recipients, options.rounds, options.seconds) = (vec![1, 5, 15], 3, 0.4);
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--recipients" => {
                options.recipients = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--bytes" => options.bytes = value.parse()?,
            "--rounds" => options.rounds = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--folder" => options.folder = value.into(),
            _ => return Err(format!("{argument}: no such option").into()),
        }
    }
    Ok(options)
}

/// What one way did in one round.
#[derive(Clone, Copy)]
struct Figures {
    deliveries: f64,
    written: f64,
}

/// How long it takes to open a volume that was not closed, where so many MiB of log lie behind the last checkpoint.
fn recover(mib: u64) -> Result<(), Failure> {
    let folder = PathBuf::from("/var/tmp").join(format!("sluice-bench-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let outcome = recover_in(&folder, mib);
    fs::remove_dir_all(&folder)?;
    outcome
}

fn recover_in(folder: &Path, mib: u64) -> Result<(), Failure> {
    use store::{Arrival, Format, Quota, SpecialUse, Volume};
    let path = folder.join("volume");
    let none = store::Options { checkpoint_bytes: u64::MAX, ..store::Options::default() };
    let volume = Volume::format(file::File::create(&path, (mib * 2 << 20).max(1 << 30))?, &Format::new(1, 1))?;
    let mut volume = Volume::open(volume, none)?;
    let mut transaction = volume.transaction()?;
    let account = transaction.add_account(b"bench", Quota::default())?;
    let mailbox = transaction.create(account, b"INBOX", SpecialUse::default())?;
    transaction.stage()?;
    volume.commit()?;
    let mail = vec![b'x'; 4096];
    let mails = (mib << 20) / 4300;
    for number in 0..mails {
        let mut append = volume.append(None)?;
        volume.write(&mut append, &mail)?;
        let sealed = volume.seal(append, &[], 0)?;
        let mut transaction = volume.transaction()?;
        transaction.deliver(&sealed, mailbox, &Arrival::default())?;
        transaction.stage()?;
        if number % 16 == 15 {
            volume.commit()?;
        }
    }
    volume.commit()?;
    drop(volume);
    for _ in 0..5 {
        let (start, before) = (Instant::now(), processor()?);
        let volume = Volume::open(file::File::open(&path, true)?, none)?;
        let (seconds, busy) = (start.elapsed().as_secs_f64(), processor()? - before);
        let count = volume.state().messages().count();
        println!("{mib} MiB of log with {count} mails: open after {seconds:.2} s, {busy:.2} s of processor");
    }
    Ok(())
}

/// Seconds that this thread has run.
fn processor() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: u64 = text.split(' ').next().ok_or("no time in /proc/self/schedstat")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

fn measure(options: &Options) -> Result<(), Failure> {
    let folder = options.folder.join(format!("sluice-bench-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let outcome = tables(options, &folder);
    fs::remove_dir_all(&folder)?;
    outcome
}

fn tables(options: &Options, folder: &Path) -> Result<(), Failure> {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "mails of {} bytes, one writer; median [least..most] of {} rounds of {} s; load {}\n",
        options.bytes,
        options.rounds,
        options.seconds,
        load.split(' ').next().unwrap_or_default()
    );
    ways::prepare(folder)?;
    let mut rows = Vec::new();
    for &recipients in &options.recipients {
        let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); ways::NAMES.len()];
        for round in 0..options.rounds {
            for (at, name) in ways::NAMES.iter().enumerate() {
                let home = folder.join(format!("{name}, {recipients}, {round}"));
                fs::create_dir(&home)?;
                let mut way = ways::open(name, &home, recipients)?;
                figures[at].push(run(&mut *way, options, recipients)?);
                drop(way);
                fs::remove_dir_all(&home)?;
            }
        }
        rows.push((recipients, figures));
        eprint!(".");
    }
    eprintln!();
    table("deliveries a second", &rows, |figures| figures.deliveries);
    table("bytes written per byte delivered", &rows, |figures| figures.written);
    Ok(())
}

fn run(way: &mut dyn Way, options: &Options, recipients: usize) -> Result<Figures, Failure> {
    let mut mail: Vec<u8> = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: bench\r\n\r\n".to_vec();
    let line = b"The quick brown fox jumps over the lazy dog and runs away from it again.\r\n";
    mail.extend(line.iter().cycle().take(options.bytes.saturating_sub(mail.len())));
    way.deliver(&mail)?;
    let (before, start) = (written()?, Instant::now());
    let mut mails = 0u64;
    while start.elapsed() < Duration::from_secs_f64(options.seconds) {
        mails += way.deliver(&mail)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let deliveries = (mails * recipients as u64) as f64;
    let written = (written()? - before) as f64;
    Ok(Figures { deliveries: deliveries / seconds, written: written / (deliveries * mail.len() as f64) })
}

/// Bytes that this process has caused to be written.
fn written() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.ok_or("no write_bytes in /proc/self/io")?.parse()?)
}

fn table(title: &str, rows: &[(usize, Vec<Vec<Figures>>)], figure: impl Fn(&Figures) -> f64) {
    println!("{title}\n\n| recipients | {} |\n|{}", ways::NAMES.join(" | "), "---|".repeat(ways::NAMES.len() + 1));
    for (recipients, figures) in rows {
        let cells = figures.iter().map(|rounds| {
            let mut values: Vec<f64> = rounds.iter().map(&figure).collect();
            values.sort_by(f64::total_cmp);
            let (least, most) = (values[0], values[values.len() - 1]);
            format!("{} [{}..{}]", digits(values[values.len() / 2]), digits(least), digits(most))
        });
        println!("| {recipients} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    println!();
}

/// Three digits that mean something.
fn digits(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
