//! The things that a stage opens: parts, members, streams.

use alloc::boxed::Box;

use crate::Coding::*;
use crate::FileType;

/// An object that begins within another one, as its container describes it before its content.
///
/// Everything here is a claim of hostile content. Text is valid UTF-8, bounded by
/// [`Limits::name_bytes_max`](crate::Limits::name_bytes_max), and may still hold control characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Object {
    /// The role of the object in its container.
    pub kind: Kind,
    /// The file name, decoded.
    pub name: Option<Box<str>>,
    /// Other names that readers may show it by, or save it under: a handful.
    pub other_names: Box<[Box<str>]>,
    /// The declared media type, lower case, without parameters: `text/plain`.
    pub media_type: Option<Box<str>>,
    /// The declared charset, lower case.
    pub charset: Option<Box<str>>,
    /// The transfer coding in which the content is emitted. The driver decodes it.
    pub coding: Coding,
    /// The content codings, in the order in which they were applied: the last one is undone first.
    pub content_codings: Box<[ContentCoding]>,
    /// The declared size of the content in bytes, as told (before the transfer coding is undone).
    pub size: Option<u64>,
    /// Where the content begins in the bytes that the stage reads, if the content is a contiguous run of them,
    /// unchanged. Compressed members have none.
    pub raw_offset: Option<u64>,
    /// Further facts from its container's record, if it has one.
    pub entry: Option<Box<Entry>>,
    /// Whether a signature within a file of another type is all that speaks for it.
    pub is_guess: bool,
}

/// Record of a member in its container, besides the name. All of it is a claim; `None` if the record leaves a value
/// open at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// Size of the member in the container, compressed and encrypted.
    pub packed: Option<u64>,
    /// The bytes of its content.
    pub size: Option<u64>,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The CRC-32 of its content.
    pub crc32: Option<u32>,
    /// How many bytes before the place where the stage stands the record begins, of formats whose members are found one by
    /// one; 0 of others.
    pub record_bytes: u16,
    /// Number of records without content (folders, links) between the last member and this one.
    pub empty_before: u32,
    /// The archive that it is in and where that begins, where an archive was found in the container and is not the container.
    pub archive: Option<(FileType, u64)>,
}

/// The role of an object in its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Kind {
    /// A body part of a mail that is not itself a container, or the text before and after such parts.
    #[default]
    Part,
    /// One header field of a mail, raw: name, colon, value, folds and line ends.
    Field,
    /// A container of body parts; it has no content of its own.
    Multipart,
    /// A mail within a mail; it has no content of its own besides fields and parts.
    Message,
    /// A file inside of a text body: uuencode, BinHex, yEnc.
    Embedded,
    /// A member of an archive.
    Member,
    /// The content of a compressed stream.
    Stream,
    /// Bytes of an archive, as they stand, that belong to no member: behind its end, or where no record can be read.
    Rest,
}

/// Transfer codings: how binary content is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Coding {
    /// As it stands (7bit, 8bit, binary).
    #[default]
    Identity,
    /// RFC 2045, section 6.8.
    Base64,
    /// RFC 2045, section 6.7.
    QuotedPrintable,
    /// POSIX uuencode.
    Uuencode,
    /// RFC 1741.
    BinHex,
    /// yEnc draft 1.3.
    Yenc,
}

/// Content codings of HTTP (RFC 9110, section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ContentCoding {
    /// RFC 1952.
    Gzip,
    /// RFC 1950; and RFC 1951, which some servers send by this name and all browsers read.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

impl Object {
    /// All names, the one that is shown first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.name.iter().chain(&self.other_names).map(|name| &**name)
    }
}

impl Coding {
    /// The coding's usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Identity => "identity",
            Base64 => "base64",
            QuotedPrintable => "quoted-printable",
            Uuencode => "uuencode",
            BinHex => "binhex",
            Yenc => "yenc",
        }
    }
}

impl Kind {
    /// The kind in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Part => "part",
            Kind::Field => "field",
            Kind::Multipart => "multipart",
            Kind::Message => "message",
            Kind::Embedded => "embedded",
            Kind::Member => "member",
            Kind::Stream => "stream",
            Kind::Rest => "rest",
        }
    }
}
