//! Windows executables packed by UPX: an image in one block, whose last bytes tell where in it the original headers stand.
//!
//! The place of the block is told by the stub's first instructions, or by the mark of its header, either of which may have
//! been tampered with. Without a header the method is tried out, and the filter's mark is looked for in the stub.

use memchr::memmem;

use super::emulator::Emulator;
use super::image::{OPTIONAL_AT, Part, image_to_file};
use super::mew::Mew;
use super::nrv::Run;
use super::pespin::Pespin;
use super::source::Whole;
use super::upx::{Block, Decoder, MARK};
use super::wwpack::WwPack;
use super::yc::Yc;
use super::{TURN_BYTES, Turn, Unpacked, Unpacker};
use crate::frame::codec::le32;
use crate::program::executable::head::Head;

/// The header of a block, with its mark.
const HEADER_BYTES: u64 = 32;
/// Bytes of the stub that are looked at.
const STUB_BYTES: usize = 1024;

/// The unpacker of an executable, if it is packed.
pub(super) fn unpacker(file: &Whole, bytes_max: usize) -> Option<Box<dyn Unpacker>> {
    let head = Head::read(file.head)?;
    let Some(entry) = head.file_at(head.entry) else { return emulated(file, bytes_max) };
    let stub = file.run(entry, STUB_BYTES);
    if let Some(mew) = Mew::find(&head, file, &stub) {
        return Some(Box::new(mew));
    }
    if let Some(packed) = WwPack::find(&head, &stub) {
        return Some(Box::new(packed));
    }
    if let Some(encrypted) = Yc::find(&head, file, &stub) {
        return Some(Box::new(encrypted));
    }
    if let Some(spun) = Pespin::find(&head, file) {
        return Some(Box::new(spun));
    }
    upx(&head, file, &stub).or_else(|| emulated(file, bytes_max))
}

/// Makes the emulator of an executable that looks packed, for packers without their own unpacker.
pub(super) fn emulated(file: &Whole, bytes_max: usize) -> Option<Box<dyn Unpacker>> {
    let head = Head::read(file.head)?;
    Some(Box::new(Emulator::find(&head, file, bytes_max)?))
}

fn upx(head: &Head, file: &Whole, stub: &[u8]) -> Option<Box<dyn Unpacker>> {
    let by_stub = packed_address(head, stub).and_then(|address| head.file_at(address));
    let by_mark = || memmem::find(file.head, MARK).map(|at| at as u64 + HEADER_BYTES);
    let start = by_stub.or_else(by_mark)?;
    let header = start.checked_sub(HEADER_BYTES).map(|at| file.bytes::<{ HEADER_BYTES as usize }>(at));
    let block = header.filter(|header| header.starts_with(MARK)).map(|header| Block {
        method: header[6],
        filter: header[28],
        filter_mark: header[29],
        packed: le32(&header, 20),
        size: le32(&header, 16),
    });
    let blocks = match block {
        Some(block) => vec![block],
        None => guesses(stub),
    };
    Some(Box::new(Upx {
        dos: file.head[..head.at].to_vec(),
        first_address: head.sections.first()?.address,
        start,
        is_guess: block.is_none(),
        blocks,
        decoder: None,
    }))
}

/// Returns the address of the packed data, which the stub loads first.
fn packed_address(head: &Head, stub: &[u8]) -> Option<u32> {
    const REACH: usize = 32;
    const SAVE_ALL_AND_LOAD: &[u8] = b"\x60\xbe";
    const LOAD_RELATIVE: &[u8] = b"\x48\x8d\x35";
    let reach = &stub[..stub.len().min(REACH)];
    if let Some(at) = memmem::find(reach, SAVE_ALL_AND_LOAD) {
        return le32(stub, at + 2).checked_sub(head.base);
    }
    let at = memmem::find(reach, LOAD_RELATIVE)?;
    let behind = head.entry.wrapping_add(at as u32 + 7);
    Some(behind.wrapping_add(le32(stub, at + 3)))
}

/// Possible packings of the stub, the most usual last.
fn guesses(stub: &[u8]) -> Vec<Block> {
    const COMPARE_MARK: &[u8] = b"\x3c\x01\x77\xf7\x80\x3f";
    let marked = memmem::find(stub, COMPARE_MARK).and_then(|at| stub.get(at + COMPARE_MARK.len()));
    let filter = if marked.is_some() { 0x26 } else { 0 };
    let filter_mark = marked.copied().unwrap_or(0);
    [5, 2, 8].map(|method| Block { method, filter, filter_mark, packed: 0, size: 0 }).to_vec()
}

struct Upx {
    /// Bytes before the headers.
    dos: Vec<u8>,
    first_address: u32,
    start: u64,
    is_guess: bool,
    /// Possible blocks, the next last.
    blocks: Vec<Block>,
    decoder: Option<(Block, Decoder)>,
}

impl Unpacker for Upx {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        let Some((block, decoder)) = &mut self.decoder else {
            let Some(block) = self.blocks.pop() else { return if self.is_guess { Turn::Not } else { Turn::Broken } };
            unpacked.bytes.clear();
            let decoder = Decoder::new(&block, self.start, file, unpacked.bytes_max);
            self.decoder = decoder.map(|decoder| (block, decoder));
            return Turn::More;
        };
        let until = unpacked.bytes.len() + TURN_BYTES;
        match decoder.run(file, unpacked, until) {
            Run::More => Turn::More,
            Run::End => {
                let block = *block;
                if let Some(original) = self.original(&block, unpacked) {
                    unpacked.bytes = original;
                }
                Turn::Done
            }
            Run::Broken | Run::TooLarge if self.is_guess => {
                self.decoder = None;
                Turn::More
            }
            Run::Broken => Turn::Broken,
            Run::TooLarge => Turn::TooLarge,
        }
    }
}

impl Upx {
    /// The original file, as far as the image tells it.
    fn original(&self, block: &Block, unpacked: &mut Unpacked) -> Option<Vec<u8>> {
        const HEADERS_MAX: usize = 8192;
        let image = &mut unpacked.bytes;
        let at = le32(image, image.len().checked_sub(4)?) as usize;
        let headers = image.get(at..).filter(|headers| headers.starts_with(b"PE\0\0"))?;
        let mut front = self.dos.clone();
        front.extend_from_slice(&headers[..headers.len().min(HEADERS_MAX)]);
        let head = Head::read(&front)?;
        let optional = &front[head.at + OPTIONAL_AT..];
        let code = le32(optional, 20).checked_sub(self.first_address)? as usize;
        let code_end = code.saturating_add(le32(optional, 4) as usize).min(image.len());
        if let Some(code) = image.get_mut(code..code_end) {
            block.undo_filter(code);
        }
        relocate(image, &front, &head, self.first_address);
        front.truncate(head.end);
        image_to_file(front, &head.sections_from(self.first_address), unpacked)
    }
}

/// Puts absolute addresses back, which stand in the image as distances from its beginning, highest byte first.
fn relocate(image: &mut [u8], front: &[u8], head: &Head, first_address: u32) -> Option<()> {
    const PE32: u16 = 0x10b;
    const IMPORTS: usize = 96 + 8;
    const RELOCATIONS: usize = 96 + 8 * 5;
    const IS_STRIPPED: u8 = 1;
    let optional = &front[head.at + OPTIONAL_AT..];
    let is_stripped = front.get(head.at + 22)? & IS_STRIPPED != 0;
    if crate::frame::codec::le16(optional, 0) != PE32 || is_stripped || le32(optional, RELOCATIONS + 4) == 0 {
        return None;
    }
    let imports = if le32(optional, IMPORTS) == 0 { 0 } else { 8 };
    let mut list = le32(front, head.end + imports) as usize;
    let added = head.base.wrapping_add(first_address);
    let mut place = 0usize.wrapping_sub(4);
    loop {
        let step = match *image.get(list)? {
            0 => return Some(()),
            step @ 1..0xf0 => {
                list += 1;
                usize::from(step)
            }
            long => {
                let step = usize::from(long & 15) << 16 | usize::from(crate::frame::codec::le16(image, list + 1));
                list += if step == 0 { 7 } else { 3 };
                if step == 0 { le32(image, list - 4) as usize } else { step }
            }
        };
        place = place.wrapping_add(step);
        let address = image.get_mut(place..)?.first_chunk_mut::<4>()?;
        *address = u32::from_be_bytes(*address).wrapping_add(added).to_le_bytes();
    }
}

impl Head {
    /// The sections as parts of an image that begins at this address.
    fn sections_from(&self, first_address: u32) -> Vec<Part> {
        let filled = self.sections.iter().filter(|section| !section.file.is_empty());
        let parts = filled.filter_map(|section| {
            let file = usize::try_from(section.file.start).ok()?..usize::try_from(section.file.end).ok()?;
            Some(Part { file, image: section.address.checked_sub(first_address)? as usize })
        });
        parts.collect()
    }
}
