//! Embedded files: the stream `\x01Ole10Native` (MS-OLEDS 2.3.6) and the `Package` of the packager in it.
//!
//! Bounds: the names in front of the content, [`HEAD_BYTES`].

use stream::{Kind, Limits, Object, ReadAt};

use crate::frame::codec::{le16, le32};
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader};

const HEAD_BYTES: usize = 4096;
/// Type with a file's label, its path, and the path of a copy.
const PACKAGE: u16 = 2;

/// Emits the file in such a stream.
pub(crate) struct Native {
    state: State,
    name_bytes_max: usize,
}

enum State {
    Head(Vec<u8>),
    Content(u64),
    Over,
}

/// Head before the content.
struct Head {
    bytes: usize,
    name: Option<Box<str>>,
    size: u64,
}

impl Native {
    /// A reader of the stream, with its length in front.
    pub fn new(limits: &Limits) -> Native {
        Native { state: State::Head(Vec::new()), name_bytes_max: limits.name_bytes_max as usize }
    }

    fn begin(&mut self, head: Vec<u8>, outbox: &mut Outbox) {
        let Head { bytes, name, size } =
            package(&head, self.name_bytes_max).unwrap_or(Head { bytes: 4, name: None, size: le32(&head, 0).into() });
        outbox.open(Object { kind: Kind::Member, name, size: Some(size), ..Object::default() });
        let content = head.get(bytes..).unwrap_or_default();
        let content = &content[..content.len().min(usize::try_from(size).unwrap_or(usize::MAX))];
        outbox.content(content);
        self.state = State::Content(size - content.len() as u64);
    }
}

impl Reader for Native {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Head(mut head) => {
                let count = (HEAD_BYTES - head.len()).min(input.len());
                head.extend_from_slice(&input[..count]);
                if head.len() == HEAD_BYTES {
                    self.begin(head, outbox);
                } else {
                    self.state = State::Head(head);
                }
                count
            }
            State::Content(left) => {
                let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                outbox.content(&input[..count]);
                self.state = State::Content(left - count as u64);
                if count == 0 { input.len() } else { count }
            }
            State::Over => input.len(),
        }
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Head(head) if head.len() > 4 => self.begin(head, outbox),
            State::Content(_) => {
                outbox.close();
                return Ended::Done;
            }
            _ => return Ended::Done,
        }
        Ended::More
    }
}

/// The head of a package, if it is one.
fn package(head: &[u8], name_bytes_max: usize) -> Option<Head> {
    if le16(head, 4) != PACKAGE {
        return None;
    }
    let mut at = 6;
    let mut text = || {
        let rest = head.get(at..)?;
        let text = &rest[..rest.iter().position(|&byte| byte == 0)?];
        at += text.len() + 1;
        Some(text)
    };
    let (label, path) = (text()?, text()?);
    // Two reserved numbers, then the path of the copy with its length.
    let copy_bytes = le32(head.get(at + 4..)?, 0) as usize;
    let at = (at + 8).checked_add(copy_bytes)?;
    let size = le32(head.get(at..at.checked_add(4)?)?, 0).into();
    let name = if path.is_empty() { label } else { path };
    let file = name.rsplit(|&byte| matches!(byte, b'\\' | b'/')).next().unwrap_or(name);
    Some(Head { bytes: at + 4, name: Some(name::utf8_or_latin1(&file[..file.len().min(name_bytes_max)])), size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_names_in_front_of_its_content() {
        let head = b"\x99\0\0\0\x02\0label\0C:\\dir\\file.exe\0\0\0\x03\0\x05\0\0\0copy\0\x04\0\0\0MZab";
        let package = package(head, 5).expect("it is one");
        assert_eq!((&head[package.bytes..], package.name.as_deref(), package.size), (&b"MZab"[..], Some("file."), 4));
        assert!(super::package(&head[..30], 99).is_none());
        assert!(super::package(b"\x04\0\0\0MZab", 99).is_none());
    }
}
