//! A stage over hostile bytes, for fuzz bodies: what it tells must not depend on how its input is cut.
//!
//! Bounds: so much content, so much kept, so many turns that come to nothing.

use stream::{Event, Finding, Fuel, Limits, Note, Spool, Stage, Window};

use crate::frame::password::Passwords;

/// The most content that is looked at; bombs are the driver's business.
const CONTENT_BYTES_MAX: u64 = 4 << 20;

/// A stream from which on its pieces grow with its length.
const LONG_BYTES: usize = 64 << 10;

/// Maximum number of calls in a row without bytes taken or written: more than a stalled reader gets before its end.
const STANDING_MAX: u32 = 200_000;

/// The most that is kept for a stage.
const SPOOL_BYTES_MAX: u64 = 4 << 20;

/// Candidates that open the encrypted seeds, with their budget.
pub(crate) fn passwords(limits: &Limits) -> Passwords {
    let words = ["wrong", "sluice"].map(|word| word.as_bytes().into());
    Passwords::new(words, &Limits { key_bytes_max: 64 << 20, ..limits.clone() })
}

/// Tells `data` but for its first byte to two stages that are made alike, whole and cut as that byte says; both must tell the same.
pub(crate) fn compare(data: &[u8], make: impl Fn(&Limits) -> Box<dyn Stage>) {
    let Some((&cut, stream)) = data.split_first() else {
        return;
    };
    let limits =
        Limits { codec_bytes_max: 1 << 20, directory_entries_max: 20, name_bytes_max: 64, ..Limits::default() };
    let whole = tell(make(&limits).as_mut(), stream, usize::MAX, 65536);
    // A disc image is mostly raw content: its pieces and windows may be longer.
    let piece = (1 + usize::from(cut) % 61) * (1 + stream.len() / LONG_BYTES);
    let window = (1 + usize::from(cut) * 7) * (1 + stream.len() / LONG_BYTES);
    let pieces = tell(make(&limits).as_mut(), stream, piece, window);
    assert_eq!(whole, pieces, "pieces of {piece}");
}

/// Expands the short form of a disc image in seeds: blocks of 512 bytes, in front of each the number of blocks of NULs
/// that come first, in two bytes. The first byte, of the cut, stays.
pub fn blocks(data: &[u8]) -> Vec<u8> {
    const IMAGE_BYTES_MAX: usize = 2 << 20;
    let (cut, mut left) = data.split_at(data.len().min(1));
    let mut image = cut.to_vec();
    while let Some((&gap, rest)) = left.split_first_chunk() {
        let (block, rest) = rest.split_at(rest.len().min(512));
        left = rest;
        let end = image.len() + 512 * usize::from(u16::from_le_bytes(gap));
        image.resize(end.min(IMAGE_BYTES_MAX), 0);
        image.extend_from_slice(block);
        if end > IMAGE_BYTES_MAX {
            break;
        }
    }
    image
}

/// Event of a stage, content reduced to its length and a sum.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Content(u64, u64),
    Open(stream::Object),
    Close,
    Finding(Finding),
    /// A second reading, with its events if it was run.
    Fork(Finding, Vec<Told>),
    End(usize),
    /// The content exceeds the bound of the search.
    Enough,
}

/// Runs a stage, and the second reading that it offers first.
pub(crate) fn tell(stage: &mut dyn Stage, input: &[u8], piece: usize, window: usize) -> Vec<Told> {
    read(stage, input, piece, window, &mut 1)
}

fn read(stage: &mut dyn Stage, input: &[u8], piece: usize, window: usize, forks_left: &mut u32) -> Vec<Told> {
    let mut told = Vec::new();
    let mut spool = Spool::default();
    let (mut at, mut depth, mut standing) = (0, 0u32, 0u32);
    let mut output = Window::with_capacity(window);
    loop {
        output.clear();
        let mut fuel = Fuel::new(1 << 16);
        let offered = &input[at..at + piece.min(input.len() - at)];
        let (taken, event) = if offered.is_empty() {
            (0, stage.finish(&spool, &mut output, &mut fuel))
        } else {
            let step = stage.step(offered, &mut output, &mut fuel);
            assert!(step.taken > 0 || step.event != Event::Idle || fuel.is_empty(), "no progress");
            (step.taken, step.event)
        };
        spool.pass(at as u64, &offered[..taken], SPOOL_BYTES_MAX.saturating_sub(spool.len()));
        at += taken;
        standing = if taken > 0 || !output.is_empty() { 0 } else { standing + 1 };
        assert!(standing <= STANDING_MAX, "stands still at {at}");
        let content = match event {
            Event::Verbatim => &offered[..taken],
            _ => output.filled(),
        };
        match event {
            Event::Idle => {}
            Event::Verbatim | Event::Wrote => {
                assert!(depth > 0, "content outside of an object");
                if add(&mut told, content) {
                    return told;
                }
            }
            Event::Open(object) => {
                depth += 1;
                told.push(Told::Open(object));
            }
            Event::Close => {
                depth = depth.checked_sub(1).expect("each close has its open");
                told.push(Told::Close);
            }
            Event::Note(Note::Finding(finding)) => told.push(Told::Finding(finding)),
            Event::Note(Note::Fork(finding)) => {
                let second = forks_left.checked_sub(1).and_then(|left| {
                    *forks_left = left;
                    stage.alternative()
                });
                let other = second.map(|mut second| read(second.as_mut(), &input[at..], piece, window, forks_left));
                told.push(Told::Fork(finding, other.unwrap_or_default()));
            }
            Event::Keep(range) => assert!(spool.ask(range, at as u64), "ranges are asked for in order"),
            Event::End => {
                assert_eq!(depth, 0, "ended with an object open");
                told.push(Told::End(at));
                return told;
            }
        }
    }
}

/// Adds content to the events. Returns whether it is enough.
fn add(told: &mut Vec<Told>, content: &[u8]) -> bool {
    if !matches!(told.last(), Some(Told::Content(..))) {
        told.push(Told::Content(0, 0));
    }
    let Some(Told::Content(length, sum)) = told.last_mut() else {
        return true;
    };
    for &byte in content {
        *sum = sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        *length += 1;
        if *length >= CONTENT_BYTES_MAX {
            told.push(Told::Enough);
            return true;
        }
    }
    false
}
