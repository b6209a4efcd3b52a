//! An OLE 1.0 object (MS-OLEDS 2.2): a class name, and the data of the class: a compound file, or a package with a file.
//!
//! If the header makes no sense, or does not end where a compound file begins, the file is taken from where it begins.
//!
//! Bounds: the header, [`HEAD_BYTES`].

use stream::{Kind, Limits, Object, ReadAt};

use crate::document::ole2::native::Native;
use crate::frame::codec::le32;
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader};

const HEAD_BYTES: usize = 4096;
const EMBEDDED: u32 = 2;
const OLE2: &[u8] = b"\xd0\xcf\x11\xe0";

/// Reader of the content of an object.
pub(crate) struct Ole1 {
    limits: Limits,
    state: State,
}

enum State {
    Head(Vec<u8>),
    /// A member is open.
    Content,
    Package(Box<Native>),
    Over,
}

/// The header's facts: the class, and where its data begin.
struct Head {
    class: Box<str>,
    data_at: usize,
}

impl Ole1 {
    pub fn new(limits: &Limits) -> Ole1 {
        Ole1 { limits: limits.clone(), state: State::Head(Vec::new()) }
    }

    fn begin(&mut self, head: Vec<u8>, outbox: &mut Outbox) {
        let compound = memchr::memmem::find(&head, OLE2);
        let parsed = parse(&head, self.limits.name_bytes_max as usize);
        match (compound, parsed) {
            (None, Some(Head { class, data_at })) if &*class == "Package" => {
                let mut package = Box::new(Native::new(&self.limits));
                // As in a compound file, but for the length in front.
                let _ = package.read(&head[data_at - 4..], outbox);
                self.state = State::Package(package);
            }
            (None, None) => self.state = State::Over,
            (compound, parsed) => {
                let at = compound.or(parsed.as_ref().map(|parsed| parsed.data_at)).unwrap_or(0);
                let name = parsed.map(|parsed| parsed.class);
                outbox.open(Object { kind: Kind::Member, name, ..Object::default() });
                outbox.content(&head[at..]);
                self.state = State::Content;
            }
        }
    }
}

fn parse(head: &[u8], name_bytes_max: usize) -> Option<Head> {
    if le32(head, 4) != EMBEDDED {
        return None;
    }
    let mut at = 8;
    let mut text = || {
        let length = le32(head.get(at..at + 4)?, 0) as usize;
        let text = head.get(at + 4..)?.get(..length)?;
        at += 4 + length;
        Some(text)
    };
    let (class, _, _) = (text()?, text()?, text()?);
    let class = class.split(|&byte| byte == 0).next().unwrap_or_default();
    let class = name::utf8_or_latin1(&class[..class.len().min(name_bytes_max)]);
    // The length of the data.
    (at + 4 <= head.len()).then_some(Head { class, data_at: at + 4 })
}

impl Reader for Ole1 {
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
            State::Content => {
                outbox.content(input);
                self.state = State::Content;
                input.len()
            }
            State::Package(mut package) => {
                let taken = package.read(input, outbox);
                self.state = State::Package(package);
                taken
            }
            State::Over => input.len(),
        }
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Head(head) => self.begin(head, outbox),
            State::Content => outbox.close(),
            State::Package(mut package) => {
                if package.end(kept, outbox) == Ended::Done {
                    return Ended::Done;
                }
                self.state = State::Package(package);
            }
            State::Over => return Ended::Done,
        }
        Ended::More
    }
}
