//! Documents of XML in a file, however they are packed: by itself, compressed, in an archive, in a mail.
//!
//! The readers of the engine open the file in memory. Bounds: [`FILE_BYTES_MAX`], [`CONTENT_BYTES_MAX`] of all that is unpacked, levels
//! and objects, and fuel for the work; what is beyond them is left out, and [`Documents::is_cut`] says so. Of content with two readings the
//! first counts.

use mime::{Decoder, Parser, looks_like_mail};
use stream::{Class, Coding, Event, FileType, Fuel, Limits, Note, ReadAt, Stage, Step, Window};
use unpack::Passwords;

/// The longest file.
pub const FILE_BYTES_MAX: u64 = 32 << 20;

/// Bytes of all that a file holds, unpacked: a report of 100,000 senders has some 60 MB.
const CONTENT_BYTES_MAX: usize = 128 << 20;

/// Containers within each other: a mail, a part of it, an archive, a file of it.
const DEPTH_MAX: usize = 5;

/// Objects of one container.
const OBJECTS_MAX: usize = 1_000;

/// Units of work: each byte is read and written a few times.
const FUEL: u64 = 2 << 30;

const WINDOW_BYTES: usize = 64 << 10;

/// Documents that were found.
pub struct Documents {
    /// Each begins with `<`.
    pub found: Vec<Vec<u8>>,
    /// More may be there than was read, or it is torn.
    pub is_cut: bool,
    left: usize,
    fuel: Fuel,
    limits: Limits,
}

/// Content of an object, as its container has it.
struct Content {
    coding: Coding,
    /// Its container says that it is a mail: what looks like one may be the header of one.
    is_mail: bool,
    bytes: Vec<u8>,
}

impl Documents {
    /// Looks for documents in the bytes of a file.
    pub fn of(bytes: &[u8]) -> Documents {
        Documents::within(bytes, CONTENT_BYTES_MAX)
    }

    /// The same where so many bytes are unpacked at the most.
    pub fn within(bytes: &[u8], left: usize) -> Documents {
        let (found, fuel, limits) = (Vec::new(), Fuel::new(FUEL), Limits::default());
        let mut documents = Documents { found, is_cut: false, left, fuel, limits };
        let head = bytes.get(..unpack::HEAD_BYTES_MAX).unwrap_or(bytes);
        documents.open(bytes, looks_like_mail(head), 0);
        documents
    }

    fn open(&mut self, bytes: &[u8], is_mail: bool, depth: usize) {
        if begins_with_a_tag(bytes) {
            return self.found.push(bytes.to_vec());
        }
        let Some(stage) = self.stage(bytes, is_mail) else { return };
        if depth == DEPTH_MAX {
            self.is_cut = true;
            return;
        }
        for Content { coding, is_mail, bytes } in self.contents(stage, bytes, !is_mail) {
            if coding == Coding::Identity {
                self.open(&bytes, is_mail, depth + 1);
                continue;
            }
            for Content { bytes, .. } in self.contents(Box::new(Decoder::new(coding)), &bytes, false) {
                self.open(&bytes, is_mail, depth + 1);
            }
        }
    }

    /// The reader of a container; none if it is none.
    fn stage(&self, bytes: &[u8], is_mail: bool) -> Option<Box<dyn Stage>> {
        let head = bytes.get(..unpack::HEAD_BYTES_MAX).unwrap_or(bytes);
        match unpack::recognise(head) {
            FileType::Empty => None,
            FileType::Mail | FileType::Text | FileType::Html | FileType::Binary if is_mail => {
                Some(Box::new(Parser::new(&self.limits)))
            }
            FileType::Mail | FileType::Text | FileType::Binary => None,
            file_type => unpack::reader(file_type, &self.limits, &Passwords::default()),
        }
    }

    /// All that a container holds. One that is packed says itself whether it is whole; a mail without its last boundary is one that is.
    fn contents(&mut self, mut stage: Box<dyn Stage>, bytes: &[u8], is_packed: bool) -> Vec<Content> {
        let mut window = Window::with_capacity(WINDOW_BYTES);
        // Content outside of objects is that of the container itself.
        let mut open = vec![Content { coding: Coding::Identity, is_mail: false, bytes: Vec::new() }];
        let (mut done, mut at) = (Vec::new(), 0);
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Step { taken, event } = match rest.is_empty() {
                true => Step::tell(0, stage.finish(&Whole(bytes), &mut window, &mut self.fuel)),
                false => stage.step(rest, &mut window, &mut self.fuel),
            };
            at += taken;
            match event {
                Event::End => break,
                Event::Idle if taken == 0 => {
                    self.is_cut = true;
                    break;
                }
                Event::Verbatim => self.add(open.last_mut(), rest.get(..taken).unwrap_or_default()),
                Event::Wrote => {
                    self.add(open.last_mut(), window.filled());
                    window.clear();
                }
                Event::Open(_) if done.len() + open.len() >= OBJECTS_MAX => {
                    self.is_cut = true;
                    break;
                }
                Event::Open(object) => {
                    let is_mail = object.media_type.as_deref() == Some("message/rfc822");
                    open.push(Content { coding: object.coding, is_mail, bytes: Vec::new() });
                }
                Event::Close => done.extend(open.pop()),
                Event::Note(Note::Finding(finding)) if is_packed => {
                    self.is_cut |= matches!(finding.class, Class::Truncated | Class::Malformed | Class::Limit);
                }
                Event::Idle | Event::Note(_) | Event::Keep(_) => {}
            }
        }
        done.append(&mut open);
        done
    }

    fn add(&mut self, content: Option<&mut Content>, bytes: &[u8]) {
        let fits = bytes.get(..self.left).unwrap_or(bytes);
        self.left -= fits.len();
        self.is_cut |= fits.len() < bytes.len();
        if let Some(content) = content {
            content.bytes.extend_from_slice(fits);
        }
    }
}

/// Whether text is XML or HTML, behind a byte order mark and blanks.
fn begins_with_a_tag(bytes: &[u8]) -> bool {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start().starts_with(b"<")
}

/// A container that is in memory as a whole.
struct Whole<'a>(&'a [u8]);

impl ReadAt for Whole<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        count
    }
}
