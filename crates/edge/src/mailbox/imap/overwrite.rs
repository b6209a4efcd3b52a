//! A range of a message on its way to the client, overwritten where the message is known to be dangerous.
//!
//! Nothing is held. Where a range begins within a part, nothing of it is taken for the start of a line.

use std::sync::Arc;

use flow::Filler;

use crate::message::known::Fate;

/// A range under way.
pub struct Overwriter {
    fate: Arc<Fate>,
    /// Where in the message the next byte stands.
    at: u64,
    fillers: Vec<Option<Filler>>,
}

impl Overwriter {
    /// For a range that begins at this offset of a message.
    pub fn new(fate: Arc<Fate>, at: u64) -> Overwriter {
        let fillers = fate.blanks.iter().map(|_| None).collect();
        Overwriter { fate, at, fillers }
    }

    /// Overwrites the next bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let (from, to) = (self.at, self.at + bytes.len() as u64);
        for (blank, filler) in self.fate.blanks.iter().zip(&mut self.fillers) {
            let (start, end) = (blank.part.max(from), blank.end.min(to));
            if start >= end {
                continue;
            }
            let before = if start == blank.part { *b"\r\n" } else { *b"  " };
            let filler = filler.get_or_insert_with(|| Filler::new(blank.coding, before));
            filler.fill(&mut bytes[(start - from) as usize..(end - from) as usize]);
        }
        self.at = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Blank;
    use stream::Coding;

    #[test]
    fn only_what_is_dangerous_is_overwritten_wherever_a_range_begins() {
        let mail = b"head\r\nQUJD\r\nREVG\r\ntail";
        let blank = Blank { part: 6, end: 16, coding: Coding::Base64, late: true };
        let fate = Arc::new(Fate { blanks: vec![blank], ..Fate::default() });
        for start in 0..mail.len() {
            for cut in start..mail.len() {
                let mut overwriter = Overwriter::new(fate.clone(), start as u64);
                let (mut first, mut second) = (mail[start..cut].to_vec(), mail[cut..].to_vec());
                overwriter.fill(&mut first);
                overwriter.fill(&mut second);
                assert_eq!([first, second].concat(), b"head\r\nAAAA\r\nAAAA\r\ntail"[start..]);
            }
        }
    }
}
