//! Database containers as freshclam leaves them: CVD (signed), CLD (changed here, of a signed origin), CUD (unsigned).
//!
//! Each is a header of 512 bytes and a tar archive behind it, mostly in gzip; nothing is written to disk. The header is
//! text between colons, padded with spaces:
//! `ClamAV-VDB:time:version:signatures:level:MD5:signature:builder:seconds`.
//!
//! # What is verified
//! | | MD5 of the body | signature of the header | signature of the info file | SHA-256 of the members |
//! |---|---|---|---|---|
//! | CVD | yes | yes | if it has one | all that the info file lists |
//! | CLD | no: it is another body now | no | must have one | must list all |
//! | CUD | yes, unless the header has none | no | no | all that the info file lists |
//!
//! What fails makes the container an error: nothing of it may be used. Signatures beside it are another matter
//! ([`Authorities`](crate::Authorities)).

mod archive;
mod cdiff;
mod signature;

use std::collections::HashMap;

use archive::Piece;
pub use archive::members;
pub use cdiff::{fuzz_cdiff, patched};
use md5::{Digest, Md5};
use sha2::Sha256;

use crate::hashes::AnyDigest;
use crate::syntax::line::number;

/// The length of a header.
const HEADER_BYTES: usize = 512;
/// The longest info file.
const INFO_BYTES_MAX: usize = 1 << 20;

/// Kind of container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerKind {
    /// As the makers published it.
    Cvd,
    /// Made here out of a published one and its updates.
    Cld,
    /// Unsigned.
    Cud,
}

/// How far the origin of a container is vouched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// The makers signed the digest of the body.
    HeaderSigned,
    /// The makers signed the list of the members' digests.
    InfoSigned,
    /// Both.
    BothSigned,
    /// Nobody signed it.
    Unsigned,
}

/// Facts in a container, and the result of their verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The file.
    pub file: Box<str>,
    /// Kind, by its ending.
    pub kind: ContainerKind,
    /// When it was built, as written.
    pub time: Box<str>,
    /// Its version.
    pub version: u32,
    /// How many signatures it says it has.
    pub signatures: u64,
    /// The functionality level that it was made for.
    pub level: u32,
    /// Builder.
    pub builder: Box<str>,
    /// Authority that vouches for the container.
    pub verified: Verified,
    /// How many members have the SHA-256 that the info file lists.
    pub members: u32,
}

impl ContainerKind {
    /// The kind of a file by its extension.
    pub fn of(file_name: &str) -> Option<ContainerKind> {
        Some(match file_name.rsplit_once('.')?.1 {
            "cvd" => ContainerKind::Cvd,
            "cld" => ContainerKind::Cld,
            "cud" => ContainerKind::Cud,
            _ => return None,
        })
    }

    /// The extension.
    pub const fn name(self) -> &'static str {
        match self {
            ContainerKind::Cvd => "cvd",
            ContainerKind::Cld => "cld",
            ContainerKind::Cud => "cud",
        }
    }
}

impl Verified {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Verified::HeaderSigned => "header signed",
            Verified::InfoSigned => "member digests signed",
            Verified::BothSigned => "header and member digests signed",
            Verified::Unsigned => "not signed",
        }
    }
}

/// The version of the container that begins with `header`; a claim, nothing is verified.
pub fn container_version(header: &[u8]) -> Option<u32> {
    Header::parse(header.get(..HEADER_BYTES)?).ok().map(|header| header.version)
}

/// When the container that begins with `header` was built, in seconds since 1970; a claim, nothing is verified.
pub fn container_built(header: &[u8]) -> Option<u64> {
    Header::parse(header.get(..HEADER_BYTES)?).ok()?.built
}

/// Receiver of the members' text.
pub(crate) trait Members {
    /// A member begins.
    fn open(&mut self, name: &str) -> Result<(), String>;
    /// More bytes of the member.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), String>;
    /// The member ends.
    fn close(&mut self) -> Result<(), String>;
}

/// Reads a container and tells its members, all but the info file, as they come; what was told must not be used if an
/// error is returned.
pub(crate) fn read(
    kind: ContainerKind,
    file: &str,
    bytes: &[u8],
    members: &mut dyn Members,
) -> Result<Container, String> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES).ok_or("shorter than a header")?;
    let header = Header::parse(header)?;
    let header_signed = header.check(kind, body)?;
    let mut info = Info::default();
    let mut current = Member::default();
    let mut databases = 0u64;
    archive::unpack(body, &mut |piece| match piece {
        Piece::Open(name) => {
            databases += u64::from(name != "COPYING" && !name.ends_with(".info"));
            current.open(name, members)
        }
        Piece::Bytes(bytes) => current.bytes(bytes, members),
        Piece::Close => current.close(&mut info, members),
    })?;
    let (info_signed, checked) = info.check(kind)?;
    // No signature is over the header, so one that says more than there is could keep every later version out.
    if let Some(version) = info.version().filter(|&version| version != header.version) {
        return Err(format!("the header says version {}, and the info file {version}", header.version));
    }
    if databases == 0 {
        return Err("it holds no database".to_owned());
    }
    Ok(Container {
        file: file.into(),
        kind,
        time: header.time,
        version: header.version,
        signatures: header.signatures,
        level: header.level,
        builder: header.builder,
        verified: match (header_signed, info_signed) {
            (true, true) => Verified::BothSigned,
            (true, false) => Verified::HeaderSigned,
            (false, true) => Verified::InfoSigned,
            (false, false) => Verified::Unsigned,
        },
        members: checked,
    })
}

struct Header {
    time: Box<str>,
    version: u32,
    signatures: u64,
    level: u32,
    md5: Box<str>,
    signature: Box<str>,
    builder: Box<str>,
    built: Option<u64>,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Header, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the header is no text")?;
        let mut fields = text.trim_end_matches([' ', '\0', '\n']).split(':');
        let mut next = || fields.next().ok_or("the header has too few fields");
        if next()? != "ClamAV-VDB" {
            return Err("not a ClamAV database".to_owned());
        }
        Ok(Header {
            time: next()?.into(),
            version: number(next()?).map_err(|error| format!("version: {error}"))?,
            signatures: number(next()?).map_err(|error| format!("count: {error}"))?,
            level: number(next()?).map_err(|error| format!("level: {error}"))?,
            md5: next()?.into(),
            signature: next()?.into(),
            builder: next()?.into(),
            built: next().ok().and_then(|seconds| seconds.parse().ok()),
        })
    }

    /// Whether the header is signed for this body.
    fn check(&self, kind: ContainerKind, body: &[u8]) -> Result<bool, String> {
        if kind == ContainerKind::Cld || (kind == ContainerKind::Cud && self.md5.len() != 32) {
            return Ok(false);
        }
        let md5: [u8; 16] = Md5::digest(body).into();
        if AnyDigest::parse(&self.md5)? != AnyDigest::Md5(md5) {
            return Err("the body is not the one of the header: the MD5 differs".to_owned());
        }
        if kind == ContainerKind::Cud {
            return Ok(false);
        }
        if !signature::signs_header(&self.signature, &md5) {
            return Err("the signature of the header is wrong".to_owned());
        }
        Ok(true)
    }
}

/// The member that is being read.
#[derive(Default)]
struct Member {
    name: String,
    size: u64,
    digest: Sha256,
    /// The text of an info file.
    info: Option<Vec<u8>>,
}

impl Member {
    fn open(&mut self, name: &str, members: &mut dyn Members) -> Result<(), String> {
        if name.is_empty() {
            return Err("damaged: bytes that belong to no member".to_owned());
        }
        let info = name.ends_with(".info").then(Vec::new);
        *self = Member { name: name.to_owned(), info, ..Member::default() };
        if self.info.is_some() { Ok(()) } else { members.open(name) }
    }

    fn bytes(&mut self, bytes: &[u8], members: &mut dyn Members) -> Result<(), String> {
        self.size += bytes.len() as u64;
        match &mut self.info {
            None => {
                self.digest.update(bytes);
                members.bytes(bytes)
            }
            Some(info) if info.len() + bytes.len() > INFO_BYTES_MAX => Err("the info file is too long".to_owned()),
            Some(info) => {
                info.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn close(&mut self, info: &mut Info, members: &mut dyn Members) -> Result<(), String> {
        let Member { name, size, digest, info: text } = std::mem::take(self);
        match text {
            Some(_) if info.text.is_some() => Err("two info files".to_owned()),
            Some(text) => {
                info.text = Some(String::from_utf8(text).map_err(|_| "the info file is no text")?);
                Ok(())
            }
            None => {
                let digest = digest.finalize().into();
                if info.seen.insert(name.clone(), (size, digest)).is_some() {
                    return Err(format!("two members {name}"));
                }
                members.close()
            }
        }
    }
}

/// The info file, and what the members turned out to be.
#[derive(Default)]
struct Info {
    text: Option<String>,
    seen: HashMap<String, (u64, [u8; 32])>,
}

impl Info {
    /// Whether the info file is signed, and the number of members that match it.
    fn check(&self, kind: ContainerKind) -> Result<(bool, u32), String> {
        let Some(text) = &self.text else {
            return if kind == ContainerKind::Cld { Err("no info file".to_owned()) } else { Ok((false, 0)) };
        };
        let (listed, signature) = match text.split_once("DSIG:") {
            Some((listed, signature)) => (listed, Some(signature.trim_end())),
            None => (text.as_str(), None),
        };
        let signed = match signature {
            _ if kind == ContainerKind::Cud => false,
            Some(signature) if signature::signs_info(signature, &Sha256::digest(listed).into()) => true,
            Some(_) => return Err("the signature of the info file is wrong".to_owned()),
            None if kind == ContainerKind::Cld => return Err("the info file is not signed".to_owned()),
            None => false,
        };
        let checked = self.compare(listed)?;
        let unlisted = self.seen.len() - checked as usize;
        // COPYING alone is never listed.
        if kind == ContainerKind::Cld && unlisted > usize::from(self.seen.contains_key("COPYING")) {
            return Err("a member that the info file does not list".to_owned());
        }
        Ok((signed, checked))
    }

    /// The version that its first line says, which is the one of the header once more.
    fn version(&self) -> Option<u32> {
        self.text.as_ref()?.strip_prefix("ClamAV-VDB:")?.lines().next()?.split(':').nth(1)?.parse().ok()
    }

    /// Compares the members with what is listed: `name:size:SHA-256`.
    fn compare(&self, listed: &str) -> Result<u32, String> {
        let mut checked = 0;
        for line in listed.lines().filter(|line| !line.is_empty() && !line.starts_with("ClamAV-VDB:")) {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, size, digest] = fields.as_slice() else {
                return Err(format!("the info file has a line {line:?}"));
            };
            let Some((seen_size, seen)) = self.seen.get(*name) else {
                return Err(format!("{name} is missing"));
            };
            if number::<u64>(size)? != *seen_size || AnyDigest::parse(digest)? != AnyDigest::Sha256(*seen) {
                return Err(format!("{name} is not what the info file lists"));
            }
            checked += 1;
        }
        Ok(checked)
    }
}
