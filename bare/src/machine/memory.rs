//! Memory: the largest range behind the image is the heap; devices get pages of it.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use linked_list_allocator::Heap;
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use super::boot::Range;

/// Size of the mapped address range.
const MAPPED_BYTES: u64 = 64 << 30;

unsafe extern "C" {
    static image_end: u8;
}

/// Sizes of small blocks: powers of two from 16 to 4,096 bytes.
const CLASSES: usize = 9;
const SMALLEST: usize = 16;

/// The heap, and small blocks that were given back: the next of the same size takes one of them, and nobody has to search. A block that is free
/// begins with the address of the next.
struct Blocks {
    heap: Heap,
    free: [*mut u8; CLASSES],
}

struct Memory(UnsafeCell<Blocks>);

// SAFETY: there is one task, and interrupts use no memory but their stack.
unsafe impl Sync for Memory {}

#[global_allocator]
static MEMORY: Memory = Memory(UnsafeCell::new(Blocks { heap: Heap::empty(), free: [core::ptr::null_mut(); CLASSES] }));

impl Blocks {
    fn take(&mut self, layout: Layout) -> *mut u8 {
        let Some(class) = class(layout) else { return self.search(layout) };
        match self.free.get_mut(class) {
            Some(first) if !first.is_null() => {
                let block = *first;
                // SAFETY: a free block begins with the address of the next.
                *first = unsafe { block.cast::<*mut u8>().read() };
                block
            }
            _ => self.search(of_class(class)),
        }
    }

    /// A piece of the heap. If there is none, small blocks are put together.
    fn search(&mut self, layout: Layout) -> *mut u8 {
        if let Ok(found) = self.heap.allocate_first_fit(layout) {
            return found.as_ptr();
        }
        for class in 0..CLASSES {
            let mut next = self
                .free
                .get_mut(class)
                .map_or(core::ptr::null_mut(), |first| core::mem::replace(first, core::ptr::null_mut()));
            while let Some(block) = NonNull::new(next) {
                // SAFETY: as in `take`; the heap has given it with this layout.
                unsafe {
                    next = block.cast::<*mut u8>().read();
                    self.heap.deallocate(block, of_class(class));
                }
            }
        }
        self.heap.allocate_first_fit(layout).map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    /// # Safety
    /// It was given by [`take`](Blocks::take) with the same layout.
    unsafe fn give(&mut self, block: NonNull<u8>, layout: Layout) {
        match class(layout).and_then(|class| self.free.get_mut(class)) {
            // SAFETY: the caller's: nobody has the block, and it has room for an address.
            Some(first) => unsafe { block.cast().write(core::mem::replace(first, block.as_ptr())) },
            // SAFETY: the caller's.
            None => unsafe { self.heap.deallocate(block, layout) },
        }
    }
}

#[inline(always)]
fn class(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(SMALLEST).next_power_of_two();
    let class = (bytes / SMALLEST).trailing_zeros() as usize;
    (class < CLASSES && layout.align() <= SMALLEST).then_some(class)
}

fn of_class(class: usize) -> Layout {
    Layout::from_size_align(SMALLEST << class, SMALLEST).unwrap_or(Layout::new::<[u64; 2]>())
}

// SAFETY: of a heap that is never used from two places at once; its ranges do not overlap.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one task.
        unsafe { &mut *self.0.get() }.take(layout)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(pointer) = NonNull::new(pointer) else { return };
        // SAFETY: one task, and the caller's promise.
        unsafe { (*self.0.get()).give(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(bytes, layout.align()) else { return core::ptr::null_mut() };
        if class(layout).is_some_and(|class_now| class(new) == Some(class_now)) {
            return pointer;
        }
        // SAFETY: the caller's: the block has as many bytes as its layout says, and nobody else has the new one.
        unsafe {
            let moved = self.alloc(new);
            if !moved.is_null() {
                core::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(bytes));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

/// Gives the heap its range.
pub fn install(map: &[Range]) {
    let end = &raw const image_end as u64;
    let usable = map.iter().filter(|range| range.is_memory()).filter_map(|range| {
        let until = range.from.checked_add(range.bytes)?.min(MAPPED_BYTES);
        let from = range.from.max(end).next_multiple_of(PAGE_SIZE as u64);
        Some((from, until.checked_sub(from)?))
    });
    let (from, bytes) = usable.max_by_key(|(_, bytes)| *bytes).unwrap_or_default();
    assert!(bytes >= 16 << 20, "too little memory: 32 MiB are needed");
    // SAFETY: memory that the monitor says is there, behind the image, mapped, and used by nobody else.
    unsafe { (*MEMORY.0.get()).heap.init(from as *mut u8, bytes as usize) }
}

/// How much of the heap there is, and how much of it is free, in bytes.
pub struct Free {
    pub total: usize,
    pub free: usize,
}

impl Free {
    pub fn now() -> Free {
        // SAFETY: one task.
        let Blocks { heap, .. } = unsafe { &*MEMORY.0.get() };
        Free { total: heap.size(), free: heap.free() }
    }
}

/// Memory as virtio devices see it: each address is itself.
pub struct Identity;

// SAFETY: pages are of the heap, aligned, zeroed and nobody else's; addresses are the same for devices and for us.
unsafe impl Hal for Identity {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let layout = pages_of(pages);
        // SAFETY: the layout has a size.
        let pointer = unsafe { alloc::alloc::alloc_zeroed(layout) };
        let pointer = NonNull::new(pointer).unwrap_or_else(|| alloc::alloc::handle_alloc_error(layout));
        (pointer.as_ptr() as PhysAddr, pointer)
    }

    unsafe fn dma_dealloc(_: PhysAddr, pointer: NonNull<u8>, pages: usize) -> i32 {
        // SAFETY: the caller's: it is of `dma_alloc`.
        unsafe { alloc::alloc::dealloc(pointer.as_ptr(), pages_of(pages)) };
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, bytes: usize) -> NonNull<u8> {
        assert!(address.saturating_add(bytes as u64) <= MAPPED_BYTES, "a device is not mapped");
        NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling())
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr() as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

fn pages_of(pages: usize) -> Layout {
    let bytes = pages.max(1).saturating_mul(PAGE_SIZE);
    Layout::from_size_align(bytes, PAGE_SIZE).unwrap_or(Layout::new::<[u8; PAGE_SIZE]>())
}
