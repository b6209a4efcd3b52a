//! PDF (ISO 32000-2), forward as it streams: each stream is a member with its filters undone, and so is each script.
//!
//! Objects are read where they stand, without the cross-reference table: what an update replaces, or no table lists, is
//! read too. An object is where `N G obj` is, in a comment or a string also; a stream ends with its first filter, or at
//! its `Length`, or where `endstream` is ([`extent`]). Object streams are told as members of the type [`OBJECTS`], and
//! read like a document. Names of embedded files are known if the file specification comes first.
//!
//! What cannot be known in passing is read again at the end, from what the driver has kept: everything if the document
//! is encrypted and the empty password or a candidate opens it; streams whose filters stand in an object that came later;
//! what a `Length` that was a lie, or a string, had swallowed. The first [`HEAD_BYTES`] are always kept, and all that
//! follows the first sign of such a thing.
//!
//! What is wrong with streams is told at the end, for in an encrypted document it would be no fault.
//!
//! Bounds: one object's facts, one chain of filters, what is kept, small objects and names of files ([`known`]).
//!
//! Left out: contents of pages, fonts and pictures are told as the bytes that they are. Documents that want
//! another password or another security handler are told raw with `Heuristics.Encrypted.Pdf`.
//!
//! ```text
//! Words ──stream──▶ LineEnd ──▶ Data ──end──▶ Rest ─┐
//!   ▲ └──string──▶ (told)                           │
//!   └───────────────────────────────────────────────┘
//! ```

mod again;
mod ascii;
pub(crate) mod cipher;
mod conclusion;
mod data;
mod extent;
mod filter;
mod key;
mod known;
mod layer;
mod lexer;
mod lzw;
mod mark;
mod object;
mod objects;
mod predictor;
mod run_length;
mod security;

use stream::{Class, Kind, Limits, ReadAt};

use crate::frame::format::{Format, Reads};
use crate::frame::keys::Keys;
use crate::frame::password::Passwords;
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader};
use again::Again;
use cipher::Cipher;
use data::{Data, Sink};
use filter::{Chain, Turn};
use known::Known;
use lexer::{Lexer, Token};
use mark::{Mark, Marked};
use object::{Object, STRING_BYTES, Wanted};
use security::{FileKey, Locked};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "PDF",
    methods: "Flate, LZW, ASCII85, ASCIIHex, RunLength, predictors, chains of 12; object streams, embedded files, scripts; \
              RC4, AESV2, AESV3 with the empty password and candidates",
    not_read: "pictures (JBIG2, DCT, JPX, CCITT); documents that want another password",
    reads: Reads::Spool("streams; 64 KiB are kept, and up to `spool_bytes_max` where something has to be read again"),
    memory: "one chain of filters (57 KiB for each Flate), rows of `codec_bytes_max` / 4",
    decoder: "own; zlib-rs, aes, md-5, sha2",
    fuzz: "unpack_pdf",
    compared_with: "pikepdf, over documents made by it",
};

/// The media type by which an object stream is told: it is read as a document without header.
pub(crate) const OBJECTS: &str = "application/x-pdf-objects";

/// Kept bytes of every document.
const HEAD_BYTES: u64 = 64 << 10;

/// Content that one byte of a string may add when it ends a block of a cipher.
const STRING_ROOM: usize = 64;

/// A reader of PDF documents.
pub(crate) struct Pdf {
    limits: Limits,
    /// Whether it is a document, and not an object stream.
    is_document: bool,
    /// Bytes taken of the input, or of what is read again.
    at: u64,
    /// Where the byte stands that is being read.
    here: u64,
    lexer: Lexer,
    mark: Mark,
    /// The two whole numbers read last, for objects with a comment in their head.
    numbers: [u64; 2],
    state: State,
    object: Option<Box<Object>>,
    string: Sink,
    keys: Keys<Locked>,
    key: Option<FileKey>,
    /// Whether it is decided that the document is encrypted, and can be opened or not.
    is_decided: bool,
    known: Known,
    again: Again,
    /// First faults, one of each name.
    faults: Vec<(Class, &'static str, u64)>,
}

enum State {
    Words,
    /// Between `stream` and its data; whether a carriage return has been read.
    LineEnd(bool),
    Data(Box<Data>),
    /// All bytes of the data have been read, not all has been told.
    Rest(Box<Data>),
}

impl Pdf {
    /// A reader of a document.
    pub fn new(limits: &Limits, passwords: &Passwords) -> Pdf {
        Pdf {
            limits: limits.clone(),
            is_document: true,
            at: 0,
            here: 0,
            lexer: Lexer::new(),
            mark: Mark::default(),
            numbers: [0; 2],
            state: State::Words,
            object: None,
            string: Sink::None,
            keys: Keys::new(&passwords.behind(b"")),
            key: None,
            is_decided: false,
            known: Known::default(),
            again: Again::new(limits),
            faults: Vec::new(),
        }
    }

    /// A reader of an object stream.
    pub fn objects(limits: &Limits) -> Pdf {
        Pdf { is_document: false, ..Pdf::new(limits, &Passwords::default()) }
    }

    fn piece(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        self.here = self.at;
        let taken = match std::mem::replace(&mut self.state, State::Words) {
            State::Words => self.words(input, outbox),
            State::LineEnd(returned) => self.line_end(returned, input, outbox),
            State::Data(data) => self.data(data, input, outbox),
            State::Rest(data) => self.rest(data, outbox),
        };
        self.at += taken as u64;
        taken
    }

    /// Reads words until there is something to tell, or a stream begins.
    fn words(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        for (at, &byte) in input.iter().enumerate() {
            let full = outbox.content_bytes() + STRING_ROOM > CONTENT_BYTES;
            if full || !matches!(self.state, State::Words) || self.again.is_over() {
                return at;
            }
            self.here = self.at + at as u64;
            if let Some(marked) = self.mark.push(byte)
                && self.marked(marked, outbox)
            {
                continue;
            }
            // `stream` ends with the byte behind it, which the line end is to see.
            while matches!(self.state, State::Words) {
                let (taken, token) = self.lexer.push(byte);
                if let Some(token) = token {
                    self.token(token, outbox);
                }
                if taken {
                    break;
                }
            }
            if !matches!(self.state, State::Words) {
                return at;
            }
            if self.again.keep(self.here + 1, outbox) {
                return at + 1;
            }
        }
        input.len()
    }

    /// An object or a trailer begins here, or seems to. Returns whether it is one that its last byte begins.
    fn marked(&mut self, marked: Marked, outbox: &mut Outbox) -> bool {
        let is_enclosed = self.lexer.is_in_string() || self.lexer.is_in_comment();
        match marked {
            _ if is_enclosed && self.object.is_some() => {
                self.again.hides(marked, self.here + 1);
                return false;
            }
            // The lexer reads the word.
            Marked::Trailer if !is_enclosed => return false,
            marked => self.begin(marked.id(), outbox),
        }
        true
    }

    fn begin(&mut self, id: Option<(u64, u64)>, outbox: &mut Outbox) {
        self.end_string(outbox);
        self.end_object();
        self.lexer.reset();
        self.object = Some(Box::new(Object::new(id)));
    }

    fn token(&mut self, token: Token, outbox: &mut Outbox) {
        match token {
            Token::StringByte(byte) => return self.string_byte(byte, outbox),
            Token::StringClose => return self.string_close(outbox),
            Token::DictionaryOpen if self.object.as_ref().is_none_or(|object| object.is_complete()) => {
                self.end_object();
                self.object = Some(Box::new(Object::new(None)));
            }
            Token::Word => return self.word(outbox),
            Token::Integer(value) => self.numbers = [self.numbers[1], value],
            _ => {}
        }
        let Some(object) = &mut self.object else { return };
        match token {
            Token::DictionaryOpen => object.open(true),
            Token::ArrayOpen => object.open(false),
            Token::DictionaryClose | Token::ArrayClose => {
                object.close();
                if let Some((name, streams)) = object.file.take() {
                    streams.into_iter().for_each(|number| self.known.name(number, &name, object.id));
                }
            }
            Token::Name => object.name(self.lexer.word()),
            Token::Integer(value) => object.integer(value),
            Token::StringOpen => self.string_open(),
            _ => {}
        }
    }

    fn word(&mut self, outbox: &mut Outbox) {
        match self.lexer.word() {
            b"obj" => self.begin(Some((self.numbers[0], self.numbers[1])), outbox),
            b"trailer" => self.begin(None, outbox),
            b"endobj" => self.end_object(),
            b"stream" if self.object.as_ref().is_some_and(|object| object.is_complete()) => {
                self.state = State::LineEnd(false);
            }
            word => {
                if let Some(object) = &mut self.object {
                    object.word(word);
                }
            }
        }
    }

    /// The object is complete: what is worth knowing of it is written down.
    fn end_object(&mut self) {
        if let Some(object) = self.object.take() {
            self.known.object(*object);
        }
        self.again.shown(self.here);
        self.again.object_ended(self.here);
    }

    fn fault(&mut self, class: Class, name: &'static str, offset: u64) {
        if self.faults.iter().all(|(_, known, _)| *known != name) {
            self.faults.push((class, name, offset));
        }
    }
}

/// Strings.
impl Pdf {
    fn string_open(&mut self) {
        let Some(object) = &mut self.object else { return };
        self.string = match object.string_begins() {
            Wanted::Ignored => Sink::None,
            Wanted::Kept => Sink::Kept(Vec::new()),
            Wanted::Told => {
                let key = self.key.as_ref().zip(object.id);
                let cipher = key.and_then(|(key, id)| Cipher::new(key, key.strings, id));
                Sink::Told { chain: Box::new(Chain::new(cipher, &[], &[], &self.limits)), opened: false }
            }
        };
    }

    fn string_byte(&mut self, byte: u8, outbox: &mut Outbox) {
        match &mut self.string {
            Sink::None => {}
            Sink::Kept(text) if text.len() >= STRING_BYTES => {}
            Sink::Kept(text) => text.push(byte),
            Sink::Told { chain, opened } => {
                if !std::mem::replace(opened, true) {
                    let name = Some("JavaScript".into());
                    outbox.open(stream::Object { kind: Kind::Member, name, ..stream::Object::default() });
                }
                while chain.turn(&[byte], false, outbox) == Turn::Took(0) {}
            }
        }
    }

    fn string_close(&mut self, outbox: &mut Outbox) {
        self.again.shown(self.here);
        let text = match &mut self.string {
            Sink::Kept(text) => std::mem::take(text),
            _ => Vec::new(),
        };
        if let Some(object) = &mut self.object {
            object.string(&text);
        }
        self.end_string(outbox);
    }

    fn end_string(&mut self, outbox: &mut Outbox) {
        if let Sink::Told { mut chain, opened: true } = std::mem::replace(&mut self.string, Sink::None) {
            while chain.turn(b"", true, outbox) != Turn::Over {}
            outbox.close();
        }
    }
}

impl Reader for Pdf {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.is_document && self.again.begin(HEAD_BYTES, outbox) {
            return 0;
        }
        self.piece(input, outbox)
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.reread(kept, outbox)
    }
}
