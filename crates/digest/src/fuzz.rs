//! Fuzz body: streams that come and go, from one input.

use alloc::vec::Vec;

use crate::{Batch, Sums, Ticket, Wanted, md5, sha1, sha256};

/// The most streams at a time.
const STREAMS_MAX: usize = 40;

/// All that comes of all streams.
const BYTES_MAX: usize = 4 << 20;

/// Expected values of a stream.
struct Known {
    ticket: Ticket,
    wanted: Wanted,
    content: Vec<u8>,
}

/// Fuzz body: two bytes at a time select an action and a stream. Each stream must give the digests that it has alone,
/// within the bounds.
///
/// # Panics
/// A digest differs, or a bound is exceeded.
pub fn fuzz_batch(data: &[u8]) {
    let (Some((&size, data)), mut left) = (data.split_first(), BYTES_MAX) else { return };
    let (room_bytes, stream_bytes_max) = (usize::from(size % 64) << 14, 1 << (10 + size % 10));
    let mut batch = Batch::new(room_bytes, stream_bytes_max);
    let mut streams: Vec<Known> = Vec::new();
    for &[what, which] in data.as_chunks::<2>().0 {
        let Some(place) = usize::from(which).checked_rem(streams.len()).filter(|_| what % 16 > 1) else {
            if streams.len() < STREAMS_MAX {
                let wanted = Wanted { md5: which & 1 > 0, sha1: which & 2 > 0, sha256: which & 4 > 0 };
                let ticket = batch.open(wanted);
                if which & 8 > 0 {
                    batch.be_certain(&ticket);
                }
                streams.push(Known { ticket, wanted, content: Vec::new() });
            }
            continue;
        };
        match what % 16 {
            2 => _ = batch.run(),
            3 => batch.close(&streams[place].ticket),
            4 => drop(streams.swap_remove(place)),
            5 => finish(&mut batch, streams.swap_remove(place)),
            6 if streams.len() < STREAMS_MAX => {
                let Known { ticket, wanted, content } = &streams[place];
                let ticket = batch.copy(ticket).expect("the stream is here");
                streams.push(Known { ticket, wanted: *wanted, content: content.clone() });
            }
            7 => {
                let Known { ticket, wanted, .. } = &mut streams[place];
                *wanted = Wanted { sha1: false, ..*wanted };
                batch.keep(ticket, *wanted);
            }
            8 => _ = batch.tidy(),
            size => {
                let count = (usize::from(which) + 1) << (size % 9);
                let Some(after) = left.checked_sub(count) else { break };
                left = after;
                let Known { ticket, content, .. } = &mut streams[place];
                let from = content.len();
                content.extend((from..from + count).map(|at| (at * 7 + usize::from(what) * 31 + (at >> 8)) as u8));
                batch.update(ticket, &content[from..]);
                if batch.is_due() && what & 128 > 0 {
                    batch.run();
                    assert!(!batch.is_due());
                }
            }
        }
        assert!(batch.held_bytes() <= room_bytes + (64 << 10), "{} bytes", batch.held_bytes());
    }
    streams.into_iter().for_each(|stream| finish(&mut batch, stream));
}

fn finish(batch: &mut Batch, Known { ticket, wanted, content }: Known) {
    let alone = Sums {
        size: content.len() as u64,
        md5: wanted.md5.then(|| md5::digest(&content)),
        sha1: wanted.sha1.then(|| sha1::digest(&content)),
        sha256: wanted.sha256.then(|| sha256::digest(&content)),
    };
    assert_eq!(batch.finish(ticket), Some(alone));
}
