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

struct Memory(UnsafeCell<Heap>);

// SAFETY: there is one task, and no interrupt.
unsafe impl Sync for Memory {}

#[global_allocator]
static MEMORY: Memory = Memory(UnsafeCell::new(Heap::empty()));

// SAFETY: of a heap that is never used from two places at once; its ranges do not overlap.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one task.
        let heap = unsafe { &mut *self.0.get() };
        heap.allocate_first_fit(layout).map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(pointer) = NonNull::new(pointer) else { return };
        // SAFETY: one task, and the caller's promise.
        unsafe { (*self.0.get()).deallocate(pointer, layout) }
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
    unsafe { (*MEMORY.0.get()).init(from as *mut u8, bytes as usize) }
}

/// How much of the heap there is, and how much of it is free, in bytes.
pub struct Free {
    pub total: usize,
    pub free: usize,
}

impl Free {
    pub fn now() -> Free {
        // SAFETY: one task.
        let heap = unsafe { &*MEMORY.0.get() };
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

/// The functions of C that compiled code calls. This target brings none.
mod functions {
    use core::arch::asm;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe {
            asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags))
        };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
        if (to as usize).wrapping_sub(from as usize) >= bytes {
            // SAFETY: the caller's; what is read is ahead of what is written.
            return unsafe { memcpy(to, from, bytes) };
        }
        // SAFETY: the caller's; from the end, since they overlap.
        unsafe {
            asm!("std", "rep movsb", "cld", inout("rcx") bytes => _,
                inout("rdi") to.wrapping_add(bytes).wrapping_sub(1) => _,
                inout("rsi") from.wrapping_add(bytes).wrapping_sub(1) => _, options(nostack))
        };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe {
            asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte as u8, options(nostack, preserves_flags))
        };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, bytes: usize) -> i32 {
        let mut at = 0;
        while at < bytes {
            // SAFETY: the caller's: both have as many bytes. Volatile, so that this is not made a call of itself.
            let (one, other) = unsafe { (one.add(at).read_volatile(), other.add(at).read_volatile()) };
            if one != other {
                return i32::from(one) - i32::from(other);
            }
            at += 1;
        }
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, bytes: usize) -> i32 {
        // SAFETY: the caller's.
        unsafe { memcmp(one, other, bytes) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn strlen(text: *const u8) -> usize {
        let mut length = 0;
        // SAFETY: the caller's: it has an end.
        while unsafe { text.add(length).read_volatile() } != 0 {
            length += 1;
        }
        length
    }

    // Nothing is unwound: a panic restarts the machine.
    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}
    #[unsafe(no_mangle)]
    extern "C" fn _Unwind_Resume() {}
}
