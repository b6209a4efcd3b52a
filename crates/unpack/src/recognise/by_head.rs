//! A reader of files that are recognised by their beginning and not read on: it tells nothing but a finding.

use stream::{Class, ReadAt};

use crate::frame::reader::{Ended, Outbox, Reader};

/// How files are recognised, and what is found then.
pub(crate) struct Mark {
    /// Bytes that are looked at.
    pub head_bytes: usize,
    pub is_in: fn(&[u8]) -> bool,
    pub class: Class,
    pub name: &'static str,
}

/// The reader.
pub(crate) struct ByHead {
    mark: Mark,
    head: Vec<u8>,
    is_over: bool,
}

impl ByHead {
    pub fn new(mark: Mark) -> ByHead {
        ByHead { mark, head: Vec::new(), is_over: false }
    }

    fn judge(&mut self, outbox: &mut Outbox) {
        self.is_over = true;
        if (self.mark.is_in)(&self.head) {
            outbox.finding(self.mark.class, self.mark.name, 0);
        }
    }
}

impl Reader for ByHead {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = input.len().min(self.mark.head_bytes.saturating_sub(self.head.len()));
        self.head.extend_from_slice(&input[..taken]);
        if self.head.len() >= self.mark.head_bytes {
            self.judge(outbox);
        }
        taken
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
