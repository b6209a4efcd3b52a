//! RAR, versions 1.5 to 7: headers forward, members as they come.
//!
//! Read: stored members, the compressions of versions 1.5, 2.0, 2.9 to 4, 5 and 7 with their filters, solid archives; members and
//! headers encrypted by version 3 and later that a candidate for the password opens.
//! Recognised and emitted raw: other encrypted members and archives (`Heuristics.Encrypted.Rar`), members that began in another
//! volume, compression versions that are not known. A member that goes on in another volume is emitted as far as it is here.
//! Recovery records and quick-open data hold nothing of their own and are passed.
//!
//! Bounds: a header, a dictionary that grows with the data up to `codec_bytes_max` (what refers further back is a Limit
//! finding and ends the member), a filter's block of 4 MiB twice.
//!
//! Source: the RAR 5.0 archive format note; for older versions the format as public readers describe it.

mod crypt;
mod filter;
mod lz;
mod lz15;
mod lz20;
mod lz29;
mod lz50;
mod ppm;
mod predictor;
mod program;
mod slots;
mod table15;
mod v4;
mod v5;

use stream::{Class, Limits};

use crate::frame::archive::{Archive, Faults, Record, Records};
use crate::frame::codec::{Fault, Progress};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::keys::{Judgement, Keys, Tried};
use crate::frame::password::{Passwords, TOO_COSTLY};
use crypt::{Decrypting, Scheme};
use lz::{Model, Unpack};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Rar.Header");
const ENCRYPTED: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Rar");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.RarMethod");
const SPLIT: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.RarVolume");

const MARK_4: &[u8] = b"Rar!\x1a\x07\0";
const MARK_5: &[u8] = b"Rar!\x1a\x07\x01\0";

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "rar",
    methods: "stored, the compressions of 1.5, 2.0, 2.9 to 4 (LZ, PPMd), 5 and 7; filters of 3 and 5; solid; AES of 3 to 7, of headers too, with password candidates",
    not_read: "other encryption, members that began in another volume, filters of 3 that archivers do not write",
    reads: Reads::Stream,
    memory: "dictionary up to `codec_bytes_max`, growing with the data; PPMd as much; two filter blocks of 4 MiB",
    decoder: "own; aes, hmac, sha1, sha2",
    fuzz: "unpack_rar",
    compared_with: "unar and bsdtar, over the public archives; unar, over archives of 1.5 made at random",
};

/// A reader of RAR archives.
pub(crate) struct Rar {
    name_bytes_max: usize,
    version: Version,
    solid: Solid,
}

enum Version {
    /// The mark has not been read.
    Unknown,
    Four(v4::Headers),
    Five(v5::Headers),
}

/// The decoder, which solid archives use for one member behind the other.
struct Solid {
    codec_bytes_max: usize,
    /// The decoder, and the compression that it knows.
    unpack: Option<(Compression, Box<Unpack>)>,
    /// In front of it, where the member is encrypted.
    decrypting: Option<Box<Decrypting>>,
    /// Whether nothing but the content of the member says that its key is right.
    is_key_unproved: bool,
    keys: Keys<Scheme>,
    /// Work done that has not been burned.
    work: usize,
}

/// State before encrypted data.
enum Lock {
    /// Passwords are being tried.
    Busy,
    Closed,
    Open(crypt::Key),
}

/// Compression of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    V15,
    V20,
    V29,
    V50,
    V70,
}

impl Rar {
    pub fn new(limits: &Limits, passwords: &Passwords) -> Rar {
        Rar {
            name_bytes_max: limits.name_bytes_max as usize,
            version: Version::Unknown,
            solid: Solid {
                codec_bytes_max: limits.codec_bytes_max as usize,
                unpack: None,
                decrypting: None,
                is_key_unproved: false,
                keys: Keys::new(passwords),
                work: 0,
            },
        }
    }

    fn mark(&mut self, head: &[u8]) -> Record {
        if head.len() < MARK_4.len() {
            return Record::Need(MARK_4.len());
        }
        if head.starts_with(MARK_4) {
            self.version = Version::Four(v4::Headers::new(self.name_bytes_max));
            return Record::pass(MARK_4.len(), 0);
        }
        if head.len() < MARK_5.len() {
            return Record::Need(MARK_5.len());
        }
        if head.starts_with(MARK_5) {
            self.version = Version::Five(v5::Headers::new(self.name_bytes_max));
            return Record::pass(MARK_5.len(), 0);
        }
        Record::Rest
    }
}

impl Solid {
    /// Tries the next password; a finding reports failure.
    fn unlock(&mut self, scheme: &Scheme, faults: &mut Vec<Fault>, judge: impl Fn(&crypt::Key) -> Judgement) -> Lock {
        match self.keys.attempt(scheme, &mut self.work, judge) {
            Tried::More => return Lock::Busy,
            Tried::Found(key) => return Lock::Open(key),
            Tried::Refused => faults.push(TOO_COSTLY),
            Tried::Closed => {}
        }
        faults.push(ENCRYPTED);
        Lock::Closed
    }

    /// Makes ready for a member; whether it can be decoded.
    fn start(&mut self, compression: Compression, dictionary_bytes: u64, solid: bool) -> bool {
        let ready = self.unpack.as_mut().filter(|(known, _)| *known == compression);
        match ready {
            Some((_, unpack)) if solid => unpack.go_on(),
            None if solid => false,
            _ => {
                let (_, unpack) =
                    self.unpack.insert((compression, Box::new(Unpack::new(compression.model(self.codec_bytes_max)))));
                unpack.start(dictionary_bytes, self.codec_bytes_max);
                true
            }
        }
    }
}

impl Compression {
    fn model(self, codec_bytes_max: usize) -> Box<dyn Model> {
        match self {
            Compression::V15 => Box::new(lz15::Lz15::new()),
            Compression::V20 => Box::new(lz20::Lz20::new()),
            Compression::V29 => Box::new(lz29::Lz29::new(codec_bytes_max)),
            Compression::V50 => Box::new(lz50::Lz50::new(false)),
            Compression::V70 => Box::new(lz50::Lz50::new(true)),
        }
    }
}

impl Records for Rar {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Rar"),
        check: Fault::passing(Class::Malformed, "Heuristics.Malformed.Rar.Crc"),
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Rar.Size"),
    };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        self.solid.is_key_unproved = false;
        match &mut self.version {
            Version::Unknown => self.mark(head),
            Version::Four(headers) => headers.record(head, &mut self.solid, faults),
            Version::Five(headers) => headers.record(head, &mut self.solid, faults),
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let unpack = self.solid.unpack.as_mut().map(|(_, unpack)| &mut **unpack);
        match (&mut self.solid.decrypting, unpack) {
            (Some(decrypting), unpack) => decrypting.decode(unpack, input, output),
            (None, Some(unpack)) => unpack.decode(input, output),
            (None, None) => Progress::fault(0, lz::DATA),
        }
    }

    fn reads_on(&self) -> bool {
        self.solid.unpack.as_ref().is_some_and(|(_, unpack)| unpack.reads_on())
    }

    /// A member that cannot be decoded, or whose checksum is wrong, may have been decrypted with a wrong key.
    fn cause(&mut self, fault: &Fault) -> Option<Fault> {
        let is_cause = fault.class != Class::Truncated && std::mem::take(&mut self.solid.is_key_unproved);
        is_cause.then_some(ENCRYPTED)
    }

    fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.solid.work)
    }

    fn surplus(&self) -> &[u8] {
        if let Some(decrypting) = &self.solid.decrypting {
            return decrypting.surplus();
        }
        self.solid.unpack.as_ref().map_or(&[], |(_, unpack)| unpack.surplus())
    }
}

/// Fuzz body: reads a RAR archive.
pub fn fuzz_rar(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Rar::new(limits, &cuts::passwords(limits)), limits)));
}

#[cfg(test)]
mod tests {
    use stream::{Note, law};

    use super::*;

    /// A stored member of version 3 in the archive, encrypted with an unknown password unless `flags` say otherwise.
    fn archive(flags: u16) -> Vec<u8> {
        let name = b"a.exe";
        let mut header = Vec::from([0x74]);
        header.extend((flags | 0x8000).to_le_bytes());
        header.extend((32 + name.len() as u16 + if flags & 0x400 != 0 { 8 } else { 0 }).to_le_bytes());
        let content: Vec<u8> = (0..2048_u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        header.extend((content.len() as u32).to_le_bytes());
        header.extend((content.len() as u32).to_le_bytes());
        header.extend([0, 1, 2, 3, 4, 0, 0, 0, 0, 29, 0x30]);
        header.extend((name.len() as u16).to_le_bytes());
        header.extend([0; 4]);
        header.extend(name);
        if flags & 0x400 != 0 {
            header.extend(b"saltsalt");
        }
        let main = [0x73, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0];
        let block = |header: &[u8]| [&(zlib_rs::crc32::crc32(0, header) as u16).to_le_bytes()[..], header].concat();
        [MARK_4, &block(&main), &block(&header), &content].concat()
    }

    fn findings(bytes: &[u8], passwords: &Passwords) -> Vec<String> {
        let limits = Limits::default();
        let told = law::tell(Archive::new(Rar::new(&limits, passwords), &limits), bytes);
        let findings = told.iter().filter_map(|event| match event {
            law::Told::Note(Note::Finding(finding)) => Some(finding.name.to_string()),
            _ => None,
        });
        findings.collect()
    }

    #[test]
    fn a_member_whose_key_was_only_possible_is_encrypted_when_its_checksum_is_wrong() {
        let limits = Limits::default();
        let passwords = Passwords::new([b"sluice"[..].into()], &limits);
        for flags in [4, 0x404] {
            let found = findings(&archive(flags), &passwords);
            assert_eq!(found, ["Heuristics.Malformed.Rar.Crc", "Heuristics.Encrypted.Rar"], "{flags:x}");
        }
        assert_eq!(findings(&archive(0), &passwords), ["Heuristics.Malformed.Rar.Crc"], "not encrypted");
        assert_eq!(findings(&archive(4), &Passwords::new([], &limits)), ["Heuristics.Encrypted.Rar"]);
    }
}
