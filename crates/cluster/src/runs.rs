//! Runs: writes since the last flush, as a row stores them.
//!
//! A run is its offset (u64), its length (u32), both little-endian, and its bytes. A run that continues the one before
//! it is added to it.

use alloc::vec::Vec;

/// Size of a row at which it is stored before the flush.
pub const RUNS_BYTES_MAX: usize = 4 << 20;

const HEAD_BYTES: usize = 12;

/// Runs in the order in which they were written.
#[derive(Debug, Default, Clone)]
pub struct Runs {
    bytes: Vec<u8>,
    /// Position of the last run's head, and the run's end in the volume.
    last: Option<(usize, u64)>,
}

/// A row that is not a sequence of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl Runs {
    /// Adds a write at `at`.
    pub fn push(&mut self, at: u64, bytes: &[u8]) {
        let length = bytes.len() as u64;
        match self.last {
            Some((head, end)) if end == at => {
                let field = &mut self.bytes[head + 8..head + HEAD_BYTES];
                let before = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
                match u32::try_from(length).ok().and_then(|length| before.checked_add(length)) {
                    Some(sum) => field.copy_from_slice(&sum.to_le_bytes()),
                    None => return self.begin(at, bytes),
                }
                self.bytes.extend_from_slice(bytes);
                self.last = Some((head, end.saturating_add(length)));
            }
            _ => self.begin(at, bytes),
        }
    }

    fn begin(&mut self, at: u64, bytes: &[u8]) {
        // Rows are far shorter than the length of a run can say.
        for piece in bytes.chunks(RUNS_BYTES_MAX) {
            let offset = at.saturating_add((piece.as_ptr() as usize - bytes.as_ptr() as usize) as u64);
            self.last = Some((self.bytes.len(), offset.saturating_add(piece.len() as u64)));
            self.bytes.extend_from_slice(&offset.to_le_bytes());
            self.bytes.extend_from_slice(&(piece.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(piece);
        }
    }

    /// Returns the row.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes the runs and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(RUNS_BYTES_MAX);
        self.last = None;
    }
}

/// Calls `write` for each run of a row, in order.
///
/// # Errors
/// [`Malformed`] after the last whole run, or the error of `write`.
pub fn each<E: From<Malformed>>(mut row: &[u8], mut write: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
    while !row.is_empty() {
        let (head, rest) = row.split_first_chunk::<HEAD_BYTES>().ok_or(Malformed)?;
        let (offset, length) = head.split_at(8);
        let offset = u64::from_le_bytes(offset.try_into().map_err(|_| Malformed)?);
        let length = u32::from_le_bytes(length.try_into().map_err(|_| Malformed)?) as usize;
        let run = rest.get(..length).ok_or(Malformed)?;
        write(offset, run)?;
        row = &rest[length..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(row: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, Malformed> {
        let mut runs = Vec::new();
        each(row, |at, bytes| {
            runs.push((at, bytes.to_vec()));
            Ok::<(), Malformed>(())
        })?;
        Ok(runs)
    }

    #[test]
    fn runs_that_touch_are_one() {
        let mut runs = Runs::default();
        runs.push(10, b"ab");
        runs.push(12, b"cd");
        runs.push(12, b"ef");
        assert_eq!(written(runs.bytes()).unwrap(), [(10, b"abcd".to_vec()), (12, b"ef".to_vec())]);
        runs.clear();
        assert!(runs.is_empty());
        // What was before is not continued.
        runs.push(14, b"gh");
        assert_eq!(written(runs.bytes()).unwrap(), [(14, b"gh".to_vec())]);
    }

    #[test]
    fn a_long_write_is_several_runs() {
        let mut runs = Runs::default();
        let bytes = vec![7; RUNS_BYTES_MAX + 5];
        runs.push(100, &bytes);
        let runs = written(runs.bytes()).unwrap();
        assert_eq!(
            runs.iter().map(|(at, run)| (*at, run.len())).collect::<Vec<_>>(),
            [(100, RUNS_BYTES_MAX), (100 + RUNS_BYTES_MAX as u64, 5)]
        );
    }

    #[test]
    fn a_row_that_is_cut_is_malformed() {
        let mut runs = Runs::default();
        runs.push(10, b"abc");
        for length in 1..runs.bytes().len() {
            assert_eq!(written(&runs.bytes()[..length]), Err(Malformed), "{length}");
        }
    }
}
