//! Documents of XML in a file, however they are packed: by itself, compressed, in an archive, in a mail.
//!
//! The readers of the engine open the file in memory. Bounds: [`FILE_BYTES_MAX`], [`CONTENT_BYTES_MAX`] of all that is unpacked, levels
//! and objects, and fuel for the work; what is beyond them is left out, and [`Documents::is_cut`] says so. A text between two tags is bounded
//! as it is unpacked (`Document`). Of content with two readings the first counts. UTF-16 and a declared encoding become UTF-8.

use mime::{Decoder, Parser, looks_like_mail};
use stream::{Class, Coding, Event, FileType, Fuel, Limits, Note, ReadAt, Stage, Step, Window};
use text::encoding::Encoding;
use unpack::Passwords;

/// The longest file.
pub const FILE_BYTES_MAX: u64 = 32 << 20;

/// Bytes of all that a file holds, unpacked: a report of 100,000 senders has some 60 MB.
const CONTENT_BYTES_MAX: usize = 128 << 20;

/// Containers within each other: a mail, a part of it, an archive, a file of it.
const DEPTH_MAX: usize = 5;

/// Objects of one container.
const OBJECTS_MAX: usize = 1_000;

/// Bytes of a document in UTF-16.
const WIDE_BYTES_MAX: usize = 32 << 20;

/// Bytes between two tags, of which a value takes 512.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// Bytes within which a document declares its encoding.
const DECLARATION_BYTES_MAX: usize = 256;

/// Units of work: each byte is read and written a few times.
const FUEL: u64 = 2 << 30;

const WINDOW_BYTES: usize = 64 << 10;

/// Documents that were found.
pub struct Documents {
    /// Each begins with `<`, in UTF-8 or what is taken for it.
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
    /// Bytes since the last `<` or `>`.
    text_bytes: usize,
    /// The last bytes of a text that is too long: they may end a comment.
    end: [u8; 2],
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
        documents.open(bytes.to_vec(), looks_like_mail(head), 0);
        documents
    }

    fn open(&mut self, bytes: Vec<u8>, is_mail: bool, depth: usize) {
        if let Some((encoding, document)) = wide(&bytes) {
            self.is_cut |= document.len() > WIDE_BYTES_MAX;
            let document = document.get(..WIDE_BYTES_MAX).unwrap_or(document);
            return self.found.push(encoding.decode(document).0.into_owned().into_bytes());
        }
        if begins_with_a_tag(&bytes) {
            return self.found.push(as_declared(bytes));
        }
        let Some(stage) = self.stage(&bytes, is_mail) else { return };
        if depth == DEPTH_MAX {
            self.is_cut = true;
            return;
        }
        for Content { coding, is_mail, bytes, .. } in self.contents(stage, &bytes, !is_mail) {
            if coding == Coding::Identity {
                self.open(bytes, is_mail, depth + 1);
                continue;
            }
            for Content { bytes, .. } in self.contents(Box::new(Decoder::new(coding)), &bytes, false) {
                self.open(bytes, is_mail, depth + 1);
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
        let mut open = vec![Content::new(Coding::Identity, false)];
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
                    open.push(Content::new(object.coding, is_mail));
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
            self.is_cut |= content.add(fits);
        }
    }
}

impl Content {
    fn new(coding: Coding, is_mail: bool) -> Content {
        Content { coding, is_mail, bytes: Vec::new(), text_bytes: 0, end: [0; 2] }
    }

    /// Takes more; whether a text of a document is longer than [`TEXT_BYTES_MAX`], and its rest left out.
    fn add(&mut self, bytes: &[u8]) -> bool {
        if self.bytes.is_empty() {
            self.bytes.extend(bytes.iter().take(8));
            let rest = bytes.get(8..).unwrap_or_default();
            return !rest.is_empty() && self.add(rest);
        }
        if self.coding != Coding::Identity || !begins_with_a_tag(&self.bytes) || self.bytes.get(1) == Some(&0) {
            self.bytes.extend_from_slice(bytes);
            return false;
        }
        let mut is_cut = false;
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'<' | b'>')) {
            let (text, mark) = match piece {
                [text @ .., mark @ (b'<' | b'>')] => (text, Some(*mark)),
                text => (text, None),
            };
            is_cut |= self.add_text(text);
            if let Some(mark) = mark {
                if self.text_bytes > TEXT_BYTES_MAX {
                    self.bytes.extend_from_slice(&self.end);
                }
                self.bytes.push(mark);
                self.text_bytes = 0;
            }
        }
        is_cut
    }

    fn add_text(&mut self, text: &[u8]) -> bool {
        let room = TEXT_BYTES_MAX.saturating_sub(self.text_bytes);
        let (taken, rest) = text.split_at(room.min(text.len()));
        self.bytes.extend_from_slice(taken);
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        let last = self.bytes.last().copied().unwrap_or_default();
        match rest {
            [] => return false,
            [.., one, two] => self.end = [*one, *two],
            [one] if self.text_bytes == TEXT_BYTES_MAX + 1 => self.end = [last, *one],
            [one] => self.end = [self.end[1], *one],
        }
        true
    }
}

/// A document in UTF-16 (XML 1.0, 4.3.3), behind its mark.
fn wide(bytes: &[u8]) -> Option<(Encoding, &[u8])> {
    let (label, document): (&[u8], _) = match bytes {
        [0xff, 0xfe, document @ ..] => (&b"utf-16le"[..], document),
        [0xfe, 0xff, document @ ..] => (b"utf-16be", document),
        [b'<', 0, b'?', 0, ..] => (b"utf-16le", bytes),
        [0, b'<', 0, b'?', ..] => (b"utf-16be", bytes),
        _ => return None,
    };
    Encoding::find(label).map(|encoding| (encoding, document))
}

/// A document in UTF-8, by the encoding that it declares.
fn as_declared(document: Vec<u8>) -> Vec<u8> {
    let Some(encoding) = declared(&document).filter(|encoding| encoding.is_ascii_compatible()) else { return document };
    match encoding.decode(&document).0 {
        std::borrow::Cow::Owned(text) => text.into_bytes(),
        std::borrow::Cow::Borrowed(_) => document,
    }
}

/// The encoding of `<?xml version="1.0" encoding="ISO-8859-1"?>`.
fn declared(document: &[u8]) -> Option<Encoding> {
    let head = document.get(..DECLARATION_BYTES_MAX).unwrap_or(document).strip_prefix(b"<?xml")?;
    let head = head.split(|&byte| byte == b'>').next()?;
    let (_, behind) = str::from_utf8(head).ok()?.split_once("encoding")?;
    let value = behind.trim_start().strip_prefix('=')?.trim_start();
    let label = value.strip_prefix('"').map(|value| value.split('"').next());
    let label = label.or_else(|| value.strip_prefix('\'').map(|value| value.split('\'').next()))??;
    Encoding::find(label.as_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<?xml version='1.0'?><a><b>\u{d6}</b></a>";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_text_is_bounded_as_it_is_unpacked() {
        let long = "x".repeat(20_000_000);
        let document = format!("<a><!-- {long}--><b>{long}</b><![CDATA[{long}]]><c>1</c></a>");
        let Documents { found, is_cut, .. } = Documents::of(&gzip(document.as_bytes()));
        assert!(is_cut && found.len() == 1 && found[0].capacity() < 100_000, "{}", found[0].len());
        let text = String::from_utf8_lossy(&found[0]).into_owned();
        assert!(text.contains("xx--><b>x") && text.contains("xx]]><c>1</c></a>"), "{}", text.len());
        let exact = format!("<a>{}</a>", "x".repeat(TEXT_BYTES_MAX));
        let Documents { found, is_cut, .. } = Documents::of(&gzip(exact.as_bytes()));
        assert!(!is_cut && found[0] == exact.as_bytes());
    }

    #[test]
    fn a_long_text_is_cut_alike_however_it_comes() {
        let document = format!("<a><!--{}-->{}]]>", "y".repeat(9_000), "z".repeat(TEXT_BYTES_MAX + 10));
        for piece in [1, 7, 4_096, 100_000] {
            let mut content = Content::new(Coding::Identity, false);
            let cuts = document.as_bytes().chunks(piece).filter(|bytes| content.add(bytes)).count();
            assert!(cuts > 0 && content.bytes.ends_with(b"z]]>"), "{piece}");
            assert!(content.bytes.windows(6).any(|six| six == b"yy-->z"), "{piece}");
        }
    }

    #[test]
    fn a_document_becomes_utf_8() {
        let latin: Vec<u8> =
            XML.replace("?>", " encoding = \"ISO-8859-1\"?>").chars().map(|letter| letter as u8).collect();
        let little: Vec<u8> = XML.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = XML.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = [&[0xff, 0xfe][..], &little].concat();
        for bytes in [XML.as_bytes().to_vec(), latin, little, [&[0xfe, 0xff][..], &big].concat(), big, marked] {
            for bytes in [gzip(&bytes), bytes] {
                let Documents { found, is_cut, .. } = Documents::of(&bytes);
                assert!(!is_cut && found.len() == 1, "{bytes:?}");
                assert!(String::from_utf8_lossy(&found[0]).ends_with("<a><b>\u{d6}</b></a>"), "{found:?}");
            }
        }
    }
}
