//! Trials of bare decoders, for tests and fuzz bodies: what comes out must not depend on how the input is cut.

use crate::frame::codec::{Decoder, Told};

/// Result of a decoder for an input.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub content: Vec<u8>,
    /// The names of the faults found.
    pub faults: Vec<&'static str>,
    /// Where the stream was over, or broken.
    pub at: usize,
}

/// The most content that is looked at; bombs are the driver's business.
const CONTENT_BYTES_MAX: usize = 4 << 20;

/// Calls in a row that may neither take nor write.
const STANDING_MAX: u32 = 10_000;

/// Runs a decoder over `input` in pieces of so many bytes, into a window of so many.
///
/// # Panics
/// If the decoder makes no progress, or claims more than there was.
pub(crate) fn run(decoder: &mut dyn Decoder, input: &[u8], piece: usize, window: usize) -> Outcome {
    let mut output = vec![0; window];
    let mut outcome = Outcome { content: Vec::new(), faults: Vec::new(), at: 0 };
    let mut standing = 0;
    while outcome.content.len() < CONTENT_BYTES_MAX {
        let rest = &input[outcome.at..];
        let offered = &rest[..piece.min(rest.len())];
        let progress = decoder.decode(offered, &mut output);
        assert!(progress.taken <= offered.len() && progress.wrote <= window, "claimed too much");
        outcome.at += progress.taken;
        outcome.content.extend_from_slice(&output[..progress.wrote]);
        let idle = progress.taken == 0 && progress.wrote == 0;
        standing = if idle { standing + 1 } else { 0 };
        assert!(standing <= STANDING_MAX, "stands still at {}", outcome.at);
        let told = match progress.told {
            Told::Nothing if idle => {
                assert!(offered.is_empty(), "no progress at {}", outcome.at);
                decoder.missing().map_or(Told::Over, Told::Fault)
            }
            told => told,
        };
        match told {
            Told::Nothing | Told::Begin(_) => {}
            Told::Fault(fault) => {
                outcome.faults.push(fault.name);
                if fault.fatal {
                    break;
                }
            }
            Told::Over => break,
        }
    }
    outcome.content.truncate(CONTENT_BYTES_MAX);
    outcome.at -= decoder.surplus().len();
    outcome
}

/// Checks that the cut of the input and the size of the window do not matter.
///
/// # Panics
/// With the cut, if they do.
#[cfg(test)]
pub(crate) fn holds<D: Decoder>(make: impl Fn() -> D, input: &[u8]) {
    let whole = run(&mut make(), input, usize::MAX, 65536);
    for (piece, window) in [(1, 65536), (usize::MAX, 1), (1, 1), (7, 333), (100, 300), (300, 13), (4096, 100)] {
        let pieces = run(&mut make(), input, piece, window);
        let same = pieces.content == whole.content && pieces.faults == whole.faults && pieces.at == whole.at;
        assert!(
            same,
            "pieces of {piece}, window of {window}: {} bytes, {:?}, {} instead of {} bytes, {:?}, {}",
            pieces.content.len(),
            pieces.faults,
            pieces.at,
            whole.content.len(),
            whole.faults,
            whole.at
        );
    }
}
