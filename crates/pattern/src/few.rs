//! A few short anchors, searched for themselves: one packed search for all of them costs less than a look at every second
//! byte.

use std::io;

use aho_corasick::packed::Searcher;

use crate::flat::{Flat, Reader, Unfit, Writer};

/// Up to this many.
pub(crate) const FEW_MAX: usize = 6;

/// Windows of one length with their values.
#[derive(Debug, Clone)]
pub(crate) struct Few {
    searcher: Searcher,
    anchors: Vec<(Vec<u8>, u32)>,
}

impl Few {
    /// Nothing for no anchors.
    pub(crate) fn new(anchors: Vec<(Vec<u8>, u32)>) -> Option<Few> {
        let searcher = Searcher::new(anchors.iter().map(|(window, _)| window))?;
        Some(Few { searcher, anchors })
    }

    /// Writes the windows; nothing for none.
    pub(crate) fn store(few: Option<&Few>, writer: &mut Writer<'_>) -> io::Result<()> {
        let anchors = few.map_or(&[][..], Few::anchors);
        let (windows, values): (Vec<_>, Vec<_>) =
            anchors.iter().map(|(window, value)| (window.as_slice(), *value)).unzip();
        writer.array(&windows.concat())?;
        writer.array(&values)
    }

    /// Stored windows of one length, at most `most` of them, with values below `all`.
    pub(crate) fn load(reader: &mut Reader, window: usize, most: usize, all: u64) -> Result<Option<Few>, Unfit> {
        let (windows, values): (Flat<u8>, Flat<u32>) = (reader.array()?, reader.array()?);
        let fit = windows.len() == values.len() * window
            && values.len() <= most
            && values.iter().all(|&value| u64::from(value) < all);
        if !fit {
            return Err(Unfit::Malformed);
        }
        let anchors = windows.chunks(window).zip(values.iter());
        Ok(Few::new(anchors.map(|(window, &value)| (window.to_vec(), value)).collect()))
    }

    pub(crate) fn anchors(&self) -> &[(Vec<u8>, u32)] {
        &self.anchors
    }

    /// Calls `hit` with the place and the value of each window that begins at `from` or behind, overlapping ones too.
    pub(crate) fn search(&self, bytes: &[u8], mut from: usize, hit: &mut impl FnMut(usize, u32)) {
        while let Some(found) = bytes.get(from..).and_then(|rest| self.searcher.find(rest)) {
            let at = from + found.start();
            // Several parts may have the same window.
            for (window, value) in &self.anchors {
                if bytes[at..].starts_with(window) {
                    hit(at, *value);
                }
            }
            from = at + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_equal_windows_are_all_found() {
        let few = Few::new(vec![(b"abab".to_vec(), 1), (b"baba".to_vec(), 2), (b"abab".to_vec(), 3)]).unwrap();
        let mut hits = Vec::new();
        few.search(b"xababab", 0, &mut |at, value| hits.push((at, value)));
        assert_eq!(hits, [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3)]);
        hits.clear();
        few.search(b"xababab", 3, &mut |at, value| hits.push((at, value)));
        assert_eq!(hits, [(3, 1), (3, 3)]);
    }

    #[test]
    fn none_are_not_searched_for() {
        assert!(Few::new(Vec::new()).is_none());
    }
}
