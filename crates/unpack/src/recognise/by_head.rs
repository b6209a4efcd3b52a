//! A reader of files that are recognised by their beginning and not read on: it tells nothing but a finding.

use stream::{Class, ReadAt};

use crate::frame::reader::{Ended, Outbox, Reader};

/// How files are recognised, and what is found then.
pub(crate) struct Mark {
    /// Bytes that are looked at.
    pub head_bytes: usize,
    pub is_in: fn(&[u8]) -> bool,
    /// Marks behind these bytes, by their places.
    pub late: &'static [(u64, &'static [u8])],
    pub class: Class,
    pub name: &'static str,
}

/// The reader.
pub(crate) struct ByHead {
    mark: Mark,
    head: Vec<u8>,
    at: u64,
    /// Bytes of each late mark that were there.
    late: Vec<usize>,
    is_over: bool,
}

impl ByHead {
    pub fn new(mark: Mark) -> ByHead {
        let late = vec![0; mark.late.len()];
        ByHead { mark, head: Vec::new(), at: 0, late, is_over: false }
    }

    fn judge(&mut self, outbox: &mut Outbox) {
        self.is_over = true;
        let mut marks = self.mark.late.iter().zip(&self.late);
        if (self.mark.is_in)(&self.head) || marks.any(|((_, mark), &count)| count == mark.len()) {
            outbox.finding(self.mark.class, self.mark.name, 0);
        }
    }
}

impl Reader for ByHead {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let ends = self.mark.late.iter().map(|(place, mark)| place + mark.len() as u64);
        let end = ends.max().unwrap_or(0).max(self.mark.head_bytes as u64);
        let left = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let input = &input[..input.len().min(left)];
        let room = self.mark.head_bytes.saturating_sub(self.head.len());
        self.head.extend_from_slice(&input[..input.len().min(room)]);
        for ((place, mark), count) in self.mark.late.iter().zip(&mut self.late) {
            *count = advance(*count, *place, mark, self.at, input);
        }
        self.at += input.len() as u64;
        if self.at >= end {
            self.judge(outbox);
        }
        input.len()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if !self.is_over {
            self.judge(outbox);
        }
        Ended::Done
    }
}

/// How many bytes of a mark are there, with `input` at `at`; as many were before it.
fn advance(count: usize, place: u64, mark: &[u8], at: u64, input: &[u8]) -> usize {
    let next = place + count as u64;
    let Some(from) = next.checked_sub(at).and_then(|from| input.get(usize::try_from(from).ok()?..)) else {
        return count;
    };
    let same = mark[count..].iter().zip(from).take_while(|(mark, byte)| mark == byte).count();
    count + same
}

/// Whether one of these marks stands at its place.
pub(crate) fn has_magic(head: &[u8], magic: &[(usize, &[u8])]) -> bool {
    magic.iter().any(|&(at, magic)| head.get(at..).is_some_and(|from| from.starts_with(magic)))
}

#[cfg(test)]
pub(crate) mod tests {
    use stream::law;

    use super::*;
    use crate::frame::reader::Reading;

    /// Whether a reader tells of a head, however it is cut.
    pub(crate) fn is_told(reader: fn() -> ByHead, head: &[u8]) -> bool {
        law::holds(|| Reading::new(reader()), head);
        let told = law::tell(Reading::new(reader()), head);
        told.iter().any(|told| matches!(told, law::Told::Note(stream::Note::Finding(_))))
    }
}
