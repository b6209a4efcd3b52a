//! One direction of a TCP connection, put in order.
//!
//! Bytes that came first stay where segments overlap. Gaps are waited for until so many bytes wait behind one; then it is passed over.

use std::collections::BTreeMap;

/// Bytes that wait behind a gap.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Segments that wait behind a gap.
const WAITING_MAX: usize = 4096;

/// A direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    next: Option<u32>,
    /// Segments by their distance from the sequence number that comes next when they arrived, made absolute.
    waiting: BTreeMap<u64, Vec<u8>>,
    waiting_bytes: usize,
    position: u64,
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

    /// Takes a segment, and hands on what is in order now.
    pub fn segment(&mut self, sequence: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let next = *self.next.get_or_insert(sequence);
        let distance = sequence.wrapping_sub(next);
        let distance = i64::from(i32::from_ne_bytes(distance.to_ne_bytes()));
        let (at, bytes) = match u64::try_from(distance) {
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
            if self.waiting.len() < WAITING_MAX
                && self.waiting_bytes.saturating_add(bytes.len()) <= 2 * WAITING_BYTES_MAX
            {
                self.waiting_bytes += bytes.len();
                if let Some(before) = self.waiting.insert(at, bytes.to_vec()) {
                    self.waiting_bytes = self.waiting_bytes.saturating_sub(before.len());
                }
            }
            if self.waiting_bytes > WAITING_BYTES_MAX {
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

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(bytes);
        self.position = self.position.saturating_add(bytes.len() as u64);
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
            let (at, bytes) = entry.remove_entry();
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes.len());
            let skip = usize::try_from(self.position.saturating_sub(at)).unwrap_or(usize::MAX);
            let rest = bytes.get(skip..).unwrap_or_default();
            self.take(rest, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_put_in_order_and_what_comes_twice_is_taken_once() {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.open(u32::MAX - 2);
        let first = u32::MAX - 1;
        stream.segment(first.wrapping_add(4), b"ef", &mut out);
        stream.segment(first.wrapping_add(2), b"cde", &mut out);
        assert!(out.is_empty());
        stream.segment(first, b"abX", &mut out);
        stream.segment(first, b"abX", &mut out);
        assert_eq!(out, b"abXdef");
        stream.segment(first.wrapping_add(9), b"z", &mut out);
        stream.close(&mut out);
        assert_eq!(out, b"abXdefz");
    }
}
