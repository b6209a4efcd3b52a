//! Mails as they go over the wire: read from files, or made on the fly.
//!
//! A file is brought into wire form once (CRLF, doubled dots, final dot) and shared by all sessions; only its first two
//! header fields differ from mail to mail. A generated mail has one gzip attachment of stored blocks of random bytes:
//! valid, of any size, and impossible to compress, so that a gateway has to decode and unpack all of it.

use std::path::Path;

/// Where the mails of a run come from.
pub enum Source {
    /// Mails from files, in wire form.
    Files(Vec<Mail>),
    /// One mail of about this size, made anew each time.
    Generated {
        /// The size on the wire, within some hundred bytes.
        bytes: u64,
    },
}

/// One mail from a file.
pub struct Mail {
    wire: Box<[u8]>,
    /// What counts as payload: the attachment, or the whole text.
    pub payload_bytes: u64,
}

impl Source {
    /// Reads a manifest and the mails it names, relative to its folder.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read(manifest: &Path) -> Result<Source, String> {
        let text = std::fs::read_to_string(manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
        let folder = manifest.parent().unwrap_or(Path::new("."));
        let mail = |line: &str| {
            let (path, payload) = line.split_once(' ').ok_or("a line is not PATH PAYLOAD_BYTES")?;
            let content = std::fs::read(folder.join(path)).map_err(|error| format!("{path}: {error}"))?;
            let payload_bytes = payload.parse().map_err(|_| format!("{path}: payload is not a number"))?;
            Ok(Mail { wire: wire_form(&content), payload_bytes })
        };
        let mails = text.lines().map(mail).collect::<Result<Vec<_>, String>>()?;
        if mails.is_empty() { Err("the manifest is empty".into()) } else { Ok(Source::Files(mails)) }
    }

    /// The content of mail `index` of run `run`, from its first header field to the final dot.
    pub fn body(&self, run: u32, index: usize) -> Body<'_> {
        let fields = format!("X-Bench-Id: {run}.{index}\r\nMessage-ID: <{run}.{index}@client.test>\r\n").into_bytes();
        let rest = match self {
            Source::Files(mails) => Rest::File(&mails[index % mails.len()].wire),
            Source::Generated { bytes } => Rest::Generated(Generator::new(*bytes)),
        };
        Body { front: fields, at: 0, rest }
    }

    /// The size on the wire of mail `index`, within some hundred bytes.
    pub fn wire_bytes(&self, index: usize) -> u64 {
        match self {
            Source::Files(mails) => mails[index % mails.len()].wire.len() as u64,
            Source::Generated { bytes } => *bytes,
        }
    }

    /// Payload of mail `index`.
    pub fn payload_bytes(&self, index: usize) -> u64 {
        match self {
            Source::Files(mails) => mails[index % mails.len()].payload_bytes,
            Source::Generated { bytes } => *bytes,
        }
    }
}

/// A mail's content on its way out.
pub struct Body<'a> {
    front: Vec<u8>,
    at: usize,
    rest: Rest<'a>,
}

enum Rest<'a> {
    File(&'a [u8]),
    Generated(Generator),
}

impl Body<'_> {
    /// What goes out next; empty when everything has.
    pub fn next(&mut self) -> &[u8] {
        if self.at < self.front.len() {
            return &self.front[self.at..];
        }
        match &mut self.rest {
            Rest::File(wire) => wire,
            Rest::Generated(generator) => {
                self.front.clear();
                self.at = 0;
                generator.fill(&mut self.front);
                &self.front
            }
        }
    }

    /// Takes note that the first `count` bytes of [`Body::next`] went out.
    pub fn went(&mut self, count: usize) {
        if self.at < self.front.len() {
            self.at += count;
        } else if let Rest::File(wire) = &mut self.rest {
            *wire = &wire[count..];
        }
    }
}

/// CRLF line ends, doubled leading dots, the final dot.
fn wire_form(content: &[u8]) -> Box<[u8]> {
    let mut wire = Vec::with_capacity(content.len() + content.len() / 32 + 8);
    let lines = content.strip_suffix(b"\n").unwrap_or(content).split(|&byte| byte == b'\n');
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first() == Some(&b'.') {
            wire.push(b'.');
        }
        wire.extend_from_slice(line);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b".\r\n");
    wire.into()
}

const HEAD: &[u8] = b"Date: Fri, 20 Nov 2026 12:00:00 +0000\r\nFrom: Alice Example <sender@client.test>\r\n\
    To: Bob Example <user@sink.test>\r\nSubject: generated\r\nMIME-Version: 1.0\r\n\
    Content-Type: application/gzip; name=\"random.gz\"\r\nContent-Transfer-Encoding: base64\r\n\r\n";
const LINE_BYTES: usize = 57;
const BLOCK_BYTES: u64 = 1000 * LINE_BYTES as u64;
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Makes one mail piece by piece; see RFC 1951 section 3.2.4 for stored blocks and RFC 1952 for what is around them.
struct Generator {
    left: u64,
    total: u64,
    crc: u32,
    random: u64,
    stage: Stage,
    raw: Vec<u8>,
}

enum Stage {
    Head,
    Blocks,
    Done,
}

impl Generator {
    fn new(mail_bytes: u64) -> Generator {
        let attachment = (mail_bytes.saturating_sub(HEAD.len() as u64) * LINE_BYTES as u64 / 78).max(1);
        Generator {
            left: attachment,
            total: attachment,
            crc: !0,
            random: 0x9e37_79b9_7f4a_7c15,
            stage: Stage::Head,
            raw: Vec::new(),
        }
    }

    /// Appends the next piece; nothing when the mail is over.
    fn fill(&mut self, wire: &mut Vec<u8>) {
        match self.stage {
            Stage::Head => {
                wire.extend_from_slice(HEAD);
                self.raw.extend_from_slice(&GZIP_HEADER);
                self.stage = Stage::Blocks;
            }
            Stage::Blocks => {
                self.block();
                let whole = if self.left == 0 { self.raw.len() } else { self.raw.len() / LINE_BYTES * LINE_BYTES };
                base64_lines(&self.raw[..whole], wire);
                self.raw.drain(..whole);
                if self.left == 0 {
                    wire.extend_from_slice(b".\r\n");
                    self.stage = Stage::Done;
                }
            }
            Stage::Done => {}
        }
    }

    fn block(&mut self) {
        let length = self.left.min(BLOCK_BYTES);
        self.left -= length;
        let stored = length as u16;
        self.raw.push(u8::from(self.left == 0));
        self.raw.extend_from_slice(&stored.to_le_bytes());
        self.raw.extend_from_slice(&(!stored).to_le_bytes());
        let start = self.raw.len();
        while self.raw.len() - start < usize::from(stored) {
            let random = self.next_random();
            self.raw.extend_from_slice(&random);
        }
        self.raw.truncate(start + usize::from(stored));
        for &byte in &self.raw[start..] {
            self.crc = CRC_TABLE[usize::from(self.crc as u8 ^ byte)] ^ (self.crc >> 8);
        }
        if self.left == 0 {
            self.raw.extend_from_slice(&(!self.crc).to_le_bytes());
            self.raw.extend_from_slice(&(self.total as u32).to_le_bytes());
        }
    }

    fn next_random(&mut self) -> [u8; 8] {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.to_le_bytes()
    }
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

fn base64_lines(raw: &[u8], wire: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for line in raw.chunks(LINE_BYTES) {
        for group in line.chunks(3) {
            let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let letter = |shift: u32| ALPHABET[(bits >> shift & 63) as usize];
            let mut quantum = [letter(18), letter(12), letter(6), letter(0)];
            quantum[group.len() + 1..].fill(b'=');
            wire.extend_from_slice(&quantum);
        }
        wire.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(source: &Source) -> Vec<u8> {
        let mut body = source.body(1, 0);
        let mut all = Vec::new();
        loop {
            let piece = body.next().to_vec();
            if piece.is_empty() {
                return all;
            }
            // Two steps, as a socket that takes less than it is offered.
            let some = piece.len().div_ceil(2);
            all.extend_from_slice(&piece[..some]);
            body.went(some);
        }
    }

    #[test]
    fn line_ends_and_dots_are_brought_into_wire_form() {
        assert_eq!(&*wire_form(b"a\n.b\r\n..c"), b"a\r\n..b\r\n...c\r\n.\r\n");
    }

    #[test]
    fn a_body_is_its_own_fields_and_then_the_file() {
        let source = Source::Files(vec![Mail { wire: wire_form(b"x\n"), payload_bytes: 2 }]);
        let all = whole(&source);
        assert!(all.starts_with(b"X-Bench-Id: 1.0\r\nMessage-ID: "));
        assert!(all.ends_with(b"\r\nx\r\n.\r\n"));
    }

    #[test]
    fn a_generated_mail_has_the_size_asked_for_and_ends_with_a_dot() {
        for bytes in [1_000, 300_000, 2_000_000] {
            let all = whole(&Source::Generated { bytes });
            assert!(all.ends_with(b"\r\n.\r\n"));
            assert!(all.len().abs_diff(bytes as usize) < 1_000, "{} for {bytes}", all.len());
        }
    }

    #[test]
    fn padding_fills_the_last_quantum() {
        let mut wire = Vec::new();
        base64_lines(b"a", &mut wire);
        base64_lines(b"ab", &mut wire);
        assert_eq!(wire, b"YQ==\r\nYWI=\r\n");
    }
}
