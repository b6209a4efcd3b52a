//! Memory of the emulated stub: the image, a stack, a heap, and one region of the system's own.
//!
//! Bounds: the image and the heap together, as given; [`STACK_BYTES`]; [`SYSTEM_BYTES`]. An access anywhere else is a fault.

pub(super) const STACK_AT: u32 = 0x0010_0000;
pub(super) const STACK_BYTES: u32 = 0x0004_0000;
pub(super) const HEAP_AT: u32 = 0x6000_0000;
/// Where the thread's and the process's blocks stand, and the fake libraries.
pub(super) const SYSTEM_AT: u32 = 0x7ffd_0000;
pub(super) const SYSTEM_BYTES: u32 = 0x0001_0000;
/// Longest instruction of the processor, and one byte.
pub(super) const CODE_BYTES: usize = 16;
/// Written parts of the image are tracked in pieces of this size.
const PIECE_SHIFT: u32 = 6;
const PAGE_BYTES: usize = 4096;

/// The memory of one run.
pub(super) struct Memory {
    pub base: u32,
    pub image: Vec<u8>,
    /// As much of the image as the headers take, and as much of it as cannot be written to.
    header_bytes: usize,
    locked_bytes: usize,
    written: Vec<bool>,
    /// Pieces of the image that were written to.
    pieces_written: usize,
    heap: Vec<u8>,
    heap_written: Vec<bool>,
    /// Pieces of the heap that were written to.
    heap_pieces_written: usize,
    heap_bytes_max: usize,
    stack: Vec<u8>,
    pub system: Vec<u8>,
}

impl Memory {
    pub fn new(base: u32, image: Vec<u8>, header_bytes: usize, heap_bytes_max: usize) -> Memory {
        let written = vec![false; (image.len() >> PIECE_SHIFT) + 1];
        Memory {
            base,
            image,
            header_bytes,
            locked_bytes: header_bytes,
            written,
            pieces_written: 0,
            heap: Vec::new(),
            heap_written: Vec::new(),
            heap_pieces_written: 0,
            heap_bytes_max,
            stack: vec![0; STACK_BYTES as usize],
            system: vec![0; SYSTEM_BYTES as usize],
        }
    }

    /// Pieces of the image that were written to, in bytes.
    pub fn bytes_written(&self) -> usize {
        self.pieces_written << PIECE_SHIFT
    }

    /// Pieces that were written to, of the image and of the heap, in bytes.
    pub fn bytes_done(&self) -> usize {
        (self.pieces_written + self.heap_pieces_written) << PIECE_SHIFT
    }

    /// Whether the stub wrote to the piece of the image with this address in it.
    pub fn is_written(&self, at: u32) -> bool {
        self.written.get((at.wrapping_sub(self.base) >> PIECE_SHIFT) as usize).copied().unwrap_or(false)
    }

    /// The bytes at an address.
    #[inline(always)]
    pub fn read<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let place = at.wrapping_sub(self.base) as usize;
        if let Some(bytes) = self.image.get(place..).and_then(<[u8]>::first_chunk) {
            return Some(*bytes);
        }
        let (region, place) = self.elsewhere(at)?;
        region.get(place..)?.first_chunk().copied()
    }

    /// Puts bytes at an address; whether there is memory.
    #[inline(always)]
    pub fn write<const N: usize>(&mut self, at: u32, bytes: [u8; N]) -> bool {
        let place = at.wrapping_sub(self.base) as usize;
        if place < self.locked_bytes {
            return false;
        }
        if let Some(target) = self.image.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
            *target = bytes;
            self.mark(place);
            self.mark(place + (N - 1));
            return true;
        }
        let target = match at {
            STACK_AT.. if at < STACK_AT + STACK_BYTES => self.stack.get_mut((at - STACK_AT) as usize..),
            SYSTEM_AT.. => self.system.get_mut((at - SYSTEM_AT) as usize..),
            HEAP_AT.. => {
                self.mark_heap((at - HEAP_AT) as usize);
                self.heap.get_mut((at - HEAP_AT) as usize..)
            }
            _ => None,
        };
        match target.and_then(<[u8]>::first_chunk_mut) {
            Some(target) => {
                *target = bytes;
                true
            }
            None => false,
        }
    }

    #[inline(always)]
    fn mark(&mut self, place: usize) {
        if let Some(mark) = self.written.get_mut(place >> PIECE_SHIFT)
            && !*mark
        {
            *mark = true;
            self.pieces_written += 1;
        }
    }

    fn mark_heap(&mut self, place: usize) {
        if let Some(mark) = self.heap_written.get_mut(place >> PIECE_SHIFT)
            && !*mark
        {
            *mark = true;
            self.heap_pieces_written += 1;
        }
    }

    /// The bytes of code at an address, zeros where there are no more; nothing if there is not even one.
    #[inline(always)]
    pub fn code(&self, at: u32) -> Option<[u8; CODE_BYTES]> {
        if let Some(code) = self.read(at) {
            return Some(code);
        }
        let place = at.wrapping_sub(self.base) as usize;
        let from = match self.image.get(place..) {
            Some(from) if !from.is_empty() => from,
            _ => {
                let (region, place) = self.elsewhere(at)?;
                region.get(place..).filter(|from| !from.is_empty())?
            }
        };
        let mut code = [0; CODE_BYTES];
        let count = from.len().min(CODE_BYTES);
        code[..count].copy_from_slice(&from[..count]);
        Some(code)
    }

    fn elsewhere(&self, at: u32) -> Option<(&[u8], usize)> {
        match at {
            STACK_AT.. if at < STACK_AT + STACK_BYTES => Some((&self.stack, (at - STACK_AT) as usize)),
            SYSTEM_AT.. => Some((&self.system, (at - SYSTEM_AT) as usize)),
            HEAP_AT.. => Some((&self.heap, (at - HEAP_AT) as usize)),
            _ => None,
        }
    }

    /// Lets the headers be written to, or not, if the address is theirs: stubs count on the fault.
    pub fn protect(&mut self, at: u32, can_be_written: bool) {
        if (at.wrapping_sub(self.base) as usize) < self.header_bytes {
            self.locked_bytes = if can_be_written { 0 } else { self.header_bytes };
        }
    }

    /// A piece of the heap, of so many bytes; nothing if there is no room for it.
    pub fn allocate(&mut self, bytes: u32) -> Option<u32> {
        let bytes = (bytes.max(1) as usize).next_multiple_of(PAGE_BYTES);
        let at = u32::try_from(self.heap.len()).ok()?;
        let end = self.heap.len().checked_add(bytes).filter(|end| *end <= self.heap_bytes_max)?;
        self.heap.resize(end, 0);
        self.heap_written.resize(end >> PIECE_SHIFT, false);
        HEAP_AT.checked_add(at)
    }

    /// The text at an address, without its end, of bounded length.
    pub fn text(&self, at: u32) -> Vec<u8> {
        const TEXT_MAX: u32 = 256;
        let bytes = (0..TEXT_MAX).map_while(|index| self.read::<1>(at.wrapping_add(index)));
        bytes.map(|[byte]| byte).take_while(|byte| *byte != 0).collect()
    }
}
