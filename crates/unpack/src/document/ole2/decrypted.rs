//! The plain content of encrypted streams: the package of an OOXML document, and a workbook.
//!
//! Bounds: a segment of 4 KiB.

use stream::{Kind, Object, ReadAt};

use super::crypt::Key;
use crate::codec::block_cipher::BLOCK;
use crate::codec::rc4::Rc4;
use crate::frame::codec::{Collected, le16, le64};
use crate::frame::reader::{Ended, Outbox, Reader};

fn open(name: &str, outbox: &mut Outbox) {
    outbox.open(Object { kind: Kind::Member, name: Some(name.into()), ..Object::default() });
}

/// An `EncryptedPackage` stream (MS-OFFCRYPTO 2.3.4.4): its length, and segments.
pub(super) struct Package {
    key: Key,
    /// The length, once it is known.
    left: Option<u64>,
    size: Collected<8>,
    segment: Vec<u8>,
    number: u32,
}

const SEGMENT_BYTES: usize = 4096;

impl Package {
    pub fn new(key: Key) -> Package {
        Package { key, left: None, size: Collected::new(), segment: Vec::new(), number: 0 }
    }

    fn segment(&mut self, outbox: &mut Outbox) {
        let mut segment = std::mem::take(&mut self.segment);
        segment.truncate(segment.len() / BLOCK * BLOCK);
        self.key.decrypt_segment(self.number, &mut segment);
        self.number += 1;
        let left = self.left.unwrap_or(0);
        let count = usize::try_from(left).map_or(segment.len(), |left| left.min(segment.len()));
        self.left = Some(left - count as u64);
        outbox.content(&segment[..count]);
    }
}

impl Reader for Package {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.left.is_none() {
            let taken = self.size.fill(input, 8);
            if let Some(size) = self.size.whole() {
                self.left = Some(le64(size, 0));
                open("decrypted package", outbox);
            }
            return taken;
        }
        let taken = input.len().min(SEGMENT_BYTES - self.segment.len());
        self.segment.extend_from_slice(&input[..taken]);
        if self.segment.len() == SEGMENT_BYTES {
            self.segment(outbox);
        }
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if self.left.is_some() {
            self.segment(outbox);
            outbox.close();
        }
        Ended::Done
    }
}

/// A workbook with encrypted records (MS-XLS 2.2.10): the key stream runs over all bytes, and changes every 1024; the
/// heads of the records and some records are in the clear.
pub(super) struct Workbook {
    key: Key,
    at: u64,
    stream: Option<Rc4>,
    head: Collected<4>,
    /// Bytes of the record that have not come, and how many of the next ones are in the clear.
    left: u16,
    clear: u16,
    began: bool,
}

const BLOCK_BYTES: u64 = 1024;

impl Workbook {
    pub fn new(key: Key) -> Workbook {
        Workbook { key, at: 0, stream: None, head: Collected::new(), left: 0, clear: 0, began: false }
    }

    fn byte(&mut self, byte: u8) -> u8 {
        if self.at.is_multiple_of(BLOCK_BYTES) {
            self.stream = u32::try_from(self.at / BLOCK_BYTES).ok().and_then(|block| self.key.block(block));
        }
        self.at += 1;
        let mut plain = [byte];
        if let Some(stream) = &mut self.stream {
            stream.apply(&mut plain);
        }
        if self.left == 0 {
            self.head.fill(&[byte], 4);
            if let Some(head) = self.head.whole() {
                let length = le16(head, 2);
                (self.left, self.clear) = (length, in_the_clear(le16(head, 0)).min(length));
                self.head.clear();
            }
            return byte;
        }
        self.left -= 1;
        if self.clear > 0 {
            self.clear -= 1;
            return byte;
        }
        plain[0]
    }
}

/// How many bytes of a record of this type are not encrypted.
const fn in_the_clear(kind: u16) -> u16 {
    match kind {
        // BOF, FilePass, UsrExcl, FileLock, InterfaceHdr, RRDInfo, RRDHead.
        0x809 | 0x2f | 0x194 | 0x195 | 0xe1 | 0x196 | 0x138 => u16::MAX,
        // The place that BoundSheet8 tells.
        0x85 => 4,
        _ => 0,
    }
}

impl Reader for Workbook {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !std::mem::replace(&mut self.began, true) {
            open("decrypted workbook", outbox);
        }
        let plain: Vec<u8> = input.iter().map(|&byte| self.byte(byte)).collect();
        outbox.content(&plain);
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if self.began {
            outbox.close();
        }
        Ended::Done
    }
}
