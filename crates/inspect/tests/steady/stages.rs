//! Every stage that reads content, and a driver that counts what it costs.

use std::time::{Duration, Instant};

use mime::{Decoder, Embedded, Parser, Utf16};
use stream::{Coding, Event, FileType, Fuel, Limits, Note, Spool, Stage, Window};
use unpack::{Claim, Passwords};

/// The most content that is looked at; bombs are the business of the pipeline.
const CONTENT_BYTES_MAX: u64 = 4 << 20;
const SPOOL_BYTES_MAX: u64 = 4 << 20;
const FUEL: u64 = 1 << 14;
const WINDOW: usize = 8192;
/// A turn of the clock that is measured more exactly.
const SLOW: Duration = Duration::from_millis(20);
/// How many turns are: asking for processor time costs more than most turns.
const ASKED_MAX: u32 = 10_000;

/// A stage, and how it is made.
pub enum Made {
    Opener(FileType),
    Part(&'static str),
    Named(&'static str, FileType),
    Searcher,
    Image,
    Mailbox,
    Relationships,
    Beside(&'static str, FileType),
    Stowaway,
    Unpacker,
    Carried,
    Mail,
    Coding(Coding),
    Embedded,
    Utf16(&'static str),
}

/// All of them. Types without a reader of their own have the searcher, which is among them once.
pub static STAGES: &[Made] = &{
    use FileType::*;
    [
        Made::Opener(Gzip),
        Made::Opener(Zlib),
        Made::Opener(Bzip2),
        Made::Opener(Xz),
        Made::Opener(Lzma),
        Made::Opener(Lzip),
        Made::Opener(Compress),
        Made::Opener(Zstd),
        Made::Opener(Lz4),
        Made::Opener(Snappy),
        Made::Opener(Lzop),
        Made::Opener(Zisofs),
        Made::Opener(Szdd),
        Made::Opener(ActiveMime),
        Made::Opener(FlashPacked),
        Made::Opener(Tar),
        Made::Opener(SevenZip),
        Made::Opener(Ar),
        Made::Opener(Arc),
        Made::Opener(Arj),
        Made::Opener(Cab),
        Made::Opener(Cpio),
        Made::Opener(Rar),
        Made::Opener(Lha),
        Made::Opener(Rpm),
        Made::Opener(Xar),
        Made::Opener(Alz),
        Made::Opener(Nsis),
        Made::Opener(Sis),
        Made::Opener(InstallShield),
        Made::Opener(InstallShieldCab),
        Made::Opener(AppleDouble),
        Made::Opener(MacBinary),
        Made::Opener(Chm),
        Made::Opener(Lnk),
        Made::Opener(Hfs),
        Made::Opener(VirtualDisk),
        Made::Opener(Squashfs),
        Made::Opener(Wim),
        Made::Opener(Cramfs),
        Made::Opener(Jffs2),
        Made::Opener(Iso),
        Made::Opener(Zip),
        Made::Opener(Ole2),
        Made::Opener(Pdf),
        Made::Opener(Pe),
        Made::Opener(OneNote),
        Made::Opener(Cms),
        Made::Opener(Html),
        Made::Opener(Rtf),
        Made::Opener(Tnef),
        Made::Part("application/x-brotli"),
        Made::Part("application/x-pdf-objects"),
        Made::Part("application/x-nsis-solid"),
        Made::Part("application/x-ole1-object"),
        Made::Part("application/x-openpgp-compressed"),
        Made::Named("image.dmg", Binary),
        Made::Searcher,
        Made::Image,
        Made::Mailbox,
        Made::Relationships,
        Made::Beside("openpgp", Binary),
        Made::Beside("shar", Text),
        Made::Beside("makeself", Text),
        Made::Beside("dar", Binary),
        Made::Beside("pyinstaller", Elf),
        Made::Stowaway,
        Made::Unpacker,
        Made::Carried,
        Made::Mail,
        Made::Coding(Coding::Base64),
        Made::Coding(Coding::QuotedPrintable),
        Made::Coding(Coding::Uuencode),
        Made::Coding(Coding::BinHex),
        Made::Coding(Coding::Yenc),
        Made::Embedded,
        Made::Utf16("utf-16"),
        Made::Utf16("utf-16be"),
    ]
};

fn limits() -> Limits {
    Limits {
        codec_bytes_max: 4 << 20,
        spool_bytes_max: SPOOL_BYTES_MAX as u32,
        directory_entries_max: 1000,
        key_bytes_max: 16 << 20,
        ..Limits::default()
    }
}

impl Made {
    pub fn name(&self) -> String {
        match self {
            Made::Opener(file_type) => format!("opener {}", file_type.name()),
            Made::Part(media_type) => format!("part {media_type}"),
            Made::Named(name, _) => format!("named {name}"),
            Made::Searcher => "searcher".into(),
            Made::Image => "image watcher".into(),
            Made::Mailbox => "mailbox".into(),
            Made::Relationships => "relationships".into(),
            Made::Beside(name, _) => (*name).into(),
            Made::Stowaway => "stowaway searcher".into(),
            Made::Unpacker => "unpacker".into(),
            Made::Carried => "carried searcher".into(),
            Made::Mail => "mail parser".into(),
            Made::Coding(coding) => format!("decoder {coding:?}"),
            Made::Embedded => "embedded".into(),
            Made::Utf16(label) => format!("converter {label}"),
        }
    }

    pub fn make(&self) -> Option<Box<dyn Stage>> {
        let limits = limits();
        let words = ["wrong", "sluice"].map(|word| word.as_bytes().into());
        let passwords = Passwords::new(words, &limits);
        let due = |name: &str, claim: &Claim<'_>| {
            let openers = unpack::open(claim, &limits, &passwords);
            openers.into_iter().find(|opener| opener.name == name).map(|opener| opener.stage)
        };
        match self {
            Made::Opener(file_type) => unpack::reader(*file_type, &limits, &passwords),
            Made::Part(media_type) => {
                due("part", &Claim { media_type: Some(media_type), ..Claim::of(FileType::Binary) })
            }
            Made::Named(name, file_type) => due("named", &Claim { name: Some(name), ..Claim::of(*file_type) }),
            Made::Searcher => due("search", &Claim::of(FileType::Pdf)),
            Made::Image => due("image", &Claim::of(FileType::Binary)),
            Made::Mailbox => due("mbox", &Claim { head: b"From somebody", ..Claim::of(FileType::Mail) }),
            Made::Relationships => due("relationships", &Claim::of(FileType::Xml)),
            Made::Beside(name, file_type) => due(name, &Claim::of(*file_type)),
            Made::Stowaway => due("stowaway", &Claim::of(FileType::Pe)),
            Made::Unpacker => due("packed", &Claim::of(FileType::Pe)),
            Made::Carried => due("carried", &Claim::of(FileType::Pe)),
            Made::Mail => Some(Box::new(Parser::new(&limits))),
            Made::Coding(coding) => Some(Box::new(Decoder::new(*coding))),
            Made::Embedded => Some(Box::new(Embedded::new(&limits))),
            Made::Utf16(label) => Some(Box::new(Utf16::new(label))),
        }
    }
}

/// Cost of a run.
#[derive(Default)]
pub struct Cost {
    pub turns: u64,
    /// Processor time of the longest turn.
    pub longest: Duration,
    pub opened: bool,
    pub stalled: bool,
}

/// Runs a stage, and the second readings that it offers, to its end, up to so many turns.
pub fn drive(stage: &mut dyn Stage, input: &[u8], turns_max: u64, now: fn() -> Duration) -> Cost {
    let mut cost = Cost::default();
    let mut content_left = CONTENT_BYTES_MAX;
    run(stage, input, turns_max, now, &mut cost, &mut content_left, 1);
    cost
}

fn run(
    stage: &mut dyn Stage,
    input: &[u8],
    turns_max: u64,
    now: fn() -> Duration,
    cost: &mut Cost,
    content_left: &mut u64,
    forks_left: u32,
) {
    let mut spool = Spool::default();
    let mut output = Window::with_capacity(WINDOW);
    let mut at = 0;
    let (mut longest, mut asked) = (Duration::ZERO, 0);
    while cost.turns < turns_max && *content_left > 0 {
        output.clear();
        cost.turns += 1;
        let mut fuel = Fuel::new(FUEL);
        let started = Instant::now();
        let before = (longest >= SLOW && asked < ASKED_MAX).then(now);
        asked += u32::from(before.is_some());
        let offered = &input[at..];
        let (taken, event) = if offered.is_empty() {
            (0, stage.finish(&spool, &mut output, &mut fuel))
        } else {
            let step = stage.step(offered, &mut output, &mut fuel);
            (step.taken, step.event)
        };
        // By the clock, until it shows a slow turn: that may have been another program's.
        let elapsed = started.elapsed();
        let spent = before.map_or(elapsed, |before| elapsed.min(now() - before));
        longest = longest.max(elapsed);
        cost.longest = cost.longest.max(spent);
        assert!(taken > 0 || event != Event::Idle || fuel.is_empty(), "no progress at {at}");
        spool.pass(at as u64, &offered[..taken], SPOOL_BYTES_MAX.saturating_sub(spool.len()));
        at += taken;
        match event {
            Event::Verbatim => *content_left = content_left.saturating_sub(taken as u64),
            Event::Wrote => *content_left = content_left.saturating_sub(output.len() as u64),
            Event::Open(_) => cost.opened = true,
            Event::Keep(range) => assert!(spool.ask(range, at as u64), "ranges are asked for in order"),
            Event::Note(Note::Finding(finding)) => {
                cost.stalled |= finding.name == "Heuristics.Limits.Exceeded.Stall";
            }
            Event::Note(Note::Fork(_)) => {
                if let Some(mut second) = forks_left.checked_sub(1).and_then(|_| stage.alternative()) {
                    run(second.as_mut(), &input[at..], turns_max, now, cost, content_left, forks_left - 1);
                }
            }
            Event::End => return,
            Event::Idle | Event::Close => {}
        }
    }
}
