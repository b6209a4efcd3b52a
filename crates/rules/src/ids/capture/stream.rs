//! One direction of a TCP connection, put in order.
//!
//! Where segments overlap, the bytes of the one that begins first are taken, as BSD, Linux and Windows do; of two that begin at one place
//! the first to come. Gaps are waited for until too many bytes or runs wait behind them; then the first is passed over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes that wait behind a gap.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Runs of bytes that wait, each behind a gap of its own.
const RUNS_MAX: usize = 4096;
/// Urgent bytes ahead.
const URGENT_MAX: usize = 64;

/// A direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    next: Option<u32>,
    /// Runs of bytes by their place in the stream. Segments that touch are one run.
    waiting: BTreeMap<u64, VecDeque<u8>>,
    waiting_bytes: usize,
    position: u64,
    /// The number behind its last byte, once its side has said that there are no more.
    end: Option<u32>,
    /// Places of urgent bytes, which are no part of what the application reads (RFC 6093, section 2).
    urgent: BTreeSet<u64>,
    /// A gap was passed over since this was last asked.
    pub has_gap: bool,
}

impl Stream {
    /// Bytes that wait behind a gap.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The connection begins with this number.
    pub fn open(&mut self, sequence: u32) {
        if self.position == 0 && self.waiting.is_empty() {
            self.next = Some(sequence.wrapping_add(1));
        }
    }

    /// Its side ends it at this number.
    pub fn end_at(&mut self, sequence: u32) {
        self.end.get_or_insert(sequence);
    }

    /// Whether all of it has come.
    pub fn is_whole(&self) -> bool {
        self.end.is_some() && self.end == self.next
    }

    /// Notes how many bytes of a segment are urgent; the last of them is read apart from the others.
    pub fn note_urgent(&mut self, sequence: u32, count: u16) {
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_add(u32::from(count)).wrapping_sub(next).wrapping_sub(1);
        if count > 0 && ahead < 1 << 31 && self.urgent.len() < URGENT_MAX {
            self.urgent.insert(self.position.saturating_add(u64::from(ahead)));
        }
    }

    /// Takes a segment, and hands on what is in order now. One that leaves a gap and begins beyond the limit is not taken.
    pub fn segment(&mut self, sequence: u32, bytes: &[u8], limit: Option<u32>, out: &mut Vec<u8>) {
        let next = *self.next.get_or_insert(sequence);
        let is_beyond = limit.is_some_and(|limit| sequence.wrapping_sub(limit).wrapping_sub(1) < 1 << 31);
        let distance = sequence.wrapping_sub(next);
        let distance = i64::from(i32::from_ne_bytes(distance.to_ne_bytes()));
        let (at, bytes) = match u64::try_from(distance) {
            Ok(1..) if is_beyond => return,
            Ok(ahead) => (self.position.saturating_add(ahead), bytes),
            // Part of it has come before.
            Err(_) => {
                let skip = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX);
                (self.position, bytes.get(skip..).unwrap_or_default())
            }
        };
        if bytes.is_empty() {
            return;
        }
        if at > self.position {
            self.wait(at, bytes);
            while self.waiting_bytes > WAITING_BYTES_MAX || self.waiting.len() > RUNS_MAX {
                self.pass_gap();
                self.drain(out);
            }
            return;
        }
        self.take(bytes, out);
        self.drain(out);
    }

    /// Passes over a gap at the end.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        while !self.waiting.is_empty() {
            self.pass_gap();
            self.drain(out);
        }
    }

    /// Keeps bytes that are ahead, joined with the runs that they touch.
    fn wait(&mut self, at: u64, bytes: &[u8]) {
        let end = at.saturating_add(bytes.len() as u64);
        let before = self.waiting.range(..=at).next_back().map(|(start, run)| (*start, start + run.len() as u64));
        let (start, known) = before.filter(|(_, reached)| *reached >= at).unwrap_or((at, at));
        if known >= end {
            return;
        }
        let new = bytes.get(usize::try_from(known - at).unwrap_or(usize::MAX)..).unwrap_or_default();
        let mut run = self.waiting.remove(&start).unwrap_or_default();
        run.extend(new);
        self.waiting_bytes += new.len();
        while let Some(&behind) = self.waiting.range(at..=end).next().map(|(place, _)| place) {
            let Some(mut rest) = self.waiting.remove(&behind) else { break };
            let covered = usize::try_from(end - behind).unwrap_or(usize::MAX).min(rest.len());
            rest.drain(..covered);
            self.waiting_bytes = self.waiting_bytes.saturating_sub(covered);
            run = joined(run, rest);
        }
        self.waiting.insert(start, run);
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let end = self.position.saturating_add(bytes.len() as u64);
        let mut rest = bytes;
        while let Some(place) = self.urgent.first().copied().filter(|place| *place < end) {
            self.urgent.pop_first();
            let taken = end - rest.len() as u64;
            let ahead = place.checked_sub(taken).and_then(|ahead| usize::try_from(ahead).ok());
            let Some((before, [_, behind @ ..])) = ahead.and_then(|ahead| rest.split_at_checked(ahead)) else {
                continue;
            };
            out.extend_from_slice(before);
            rest = behind;
        }
        out.extend_from_slice(rest);
        self.position = end;
        let by = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.next = self.next.map(|next| next.wrapping_add(by));
    }

    fn pass_gap(&mut self) {
        let Some((&at, _)) = self.waiting.first_key_value() else { return };
        let gap = at.saturating_sub(self.position);
        self.has_gap |= gap > 0;
        self.position = at.max(self.position);
        let by = u32::try_from(gap & u64::from(u32::MAX)).unwrap_or(0);
        self.next = self.next.map(|next| next.wrapping_add(by));
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() <= self.position) {
            let (at, mut run) = entry.remove_entry();
            self.waiting_bytes = self.waiting_bytes.saturating_sub(run.len());
            let skip = usize::try_from(self.position.saturating_sub(at)).unwrap_or(usize::MAX);
            let rest = run.make_contiguous().get(skip..).unwrap_or_default();
            self.take(rest, out);
        }
    }
}

/// Two runs as one; the shorter is moved, so that many small ones are joined in short time from either end.
fn joined(mut run: VecDeque<u8>, mut behind: VecDeque<u8>) -> VecDeque<u8> {
    if run.len() < behind.len() {
        run.into_iter().rev().for_each(|byte| behind.push_front(byte));
        return behind;
    }
    run.append(&mut behind);
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_put_in_order_and_what_comes_twice_is_taken_once() {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.open(u32::MAX - 2);
        let first = u32::MAX - 1;
        stream.segment(first.wrapping_add(4), b"ef", None, &mut out);
        stream.segment(first.wrapping_add(2), b"cde", None, &mut out);
        assert!(out.is_empty());
        stream.segment(first, b"abX", None, &mut out);
        stream.segment(first, b"abX", None, &mut out);
        assert_eq!(out, b"abXdef");
        stream.segment(first.wrapping_add(9), b"z", None, &mut out);
        stream.close(&mut out);
        assert_eq!(out, b"abXdefz");
    }

    /// The stream of segments of a place and a text each.
    fn put(segments: &[(u32, &[u8])]) -> (Stream, Vec<u8>) {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.open(u32::MAX);
        segments.iter().for_each(|(at, bytes)| stream.segment(*at, bytes, None, &mut out));
        (stream, out)
    }

    #[test]
    fn copies_of_segments_that_wait_add_what_is_new() {
        let is = |segments: &[(u32, &[u8])], text: &[u8]| {
            let (stream, out) = put(segments);
            assert_eq!((&out[..], stream.waiting_bytes, stream.waiting.len()), (text, 0, 0), "{segments:?}");
        };
        is(&[(1, b"bcdef"), (1, b"b"), (0, b"a")], b"abcdef");
        is(&[(1, b"bcdef"), (1, b"\0"), (0, b"a")], b"abcdef");
        is(&[(1, b"bcd"), (1, b"xxxef"), (0, b"a")], b"abcdef");
        is(&[(1, b"EVIL"), (1, b"GOOD"), (0, b"a")], b"aEVIL");
        is(&[(4, b"ef"), (2, b"cDE"), (0, b"ab")], b"abcDEf");
        is(&[(6, b"gh"), (2, b"cd"), (1, b"bxxefxxi"), (0, b"a")], b"abxxefxxi");
        is(&[(1, b"bcd"), (2, b"xxe"), (0, b"a")], b"abcde");
    }

    #[test]
    fn segments_that_touch_wait_as_one_and_too_many_gaps_are_passed() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let byte = |at: usize| (at as u32, &text[at..=at]);
        let places = 1..text.len();
        for segments in [places.clone().map(byte).collect::<Vec<_>>(), places.rev().map(byte).collect()] {
            let (mut stream, mut out) = put(&segments);
            assert!((stream.waiting.len(), out.is_empty(), stream.has_gap) == (1, true, false));
            stream.segment(0, &text[..1], None, &mut out);
            assert!(out == text && stream.waiting_bytes == 0);
        }
        let apart: Vec<_> = (1..=RUNS_MAX + 1).map(|at| byte(at * 2)).collect();
        let (stream, out) = put(&apart);
        assert_eq!((stream.waiting.len(), stream.has_gap, &out[..]), (RUNS_MAX, true, &[2][..]));
        let large = vec![b'x'; 60_000];
        let apart: Vec<_> = (1..40).map(|at| (at * 60_001, &large[..])).collect();
        let (stream, out) = put(&apart);
        assert!(stream.waiting_bytes <= WAITING_BYTES_MAX && stream.has_gap && out.len() >= 60_000);
    }

    #[test]
    fn urgent_bytes_are_no_part_of_the_stream() {
        for order in [[0, 1, 2], [2, 1, 0], [0, 2, 1]] {
            let (mut stream, mut out) = (Stream::default(), Vec::new());
            stream.open(9);
            let segments: [(u32, &[u8], u16); 3] = [(10, b"/malicX", 7), (17, b"ious!", 0), (22, b"yz", 1)];
            for (sequence, bytes, urgent) in order.map(|at| segments[at]) {
                stream.note_urgent(sequence, urgent);
                stream.segment(sequence, bytes, None, &mut out);
            }
            assert_eq!(out, b"/malicious!z", "{order:?}");
        }
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        (0..1000).for_each(|at| stream.note_urgent(at * 2, 9));
        stream.segment(0, b"abcdefghijkl", None, &mut out);
        assert!(stream.urgent.len() <= URGENT_MAX && out == b"abcdefghjl");
    }

    #[test]
    fn bytes_beyond_the_window_do_not_end_a_gap() {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.open(9);
        stream.segment(100_010, b"ZZ", Some(65_546), &mut out);
        stream.segment(65_546, b"b", Some(65_546), &mut out);
        stream.segment(10, b"a", Some(65_546), &mut out);
        stream.close(&mut out);
        assert_eq!(out, b"ab");
        // What leaves no gap is taken whatever the window.
        stream.segment(65_547, b"c", Some(9), &mut out);
        assert_eq!(out, b"abc");
    }
}
