//! Rights of the image's pages: code is not written, constants neither, data is not run; below the stacks and at address 0 there is
//! nothing. Each function with a large frame touches its pages in order, so that none gets past what is missing there.

use core::arch::asm;
use core::cell::UnsafeCell;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const NOT_RUN: u64 = 1 << 63;
const PAGE_BYTES: u64 = 4096;
const LARGE_BYTES: u64 = 2 << 20;

/// Large pages that the image is on.
const LARGE_MAX: usize = 8;

unsafe extern "C" {
    static text_start: u8;
    static constants_end: u8;
    static stack_guard: u8;
    static fault_guard: u8;
    static image_end: u8;
    static mut page_directories: [u64; 64 * 512];
    /// The first byte behind the code.
    static __etext: u8;
}

#[repr(C, align(4096))]
struct Tables(UnsafeCell<[[u64; 512]; LARGE_MAX + 1]>);

// SAFETY: written once, by one task.
unsafe impl Sync for Tables {}

static TABLES: Tables = Tables(UnsafeCell::new([[0; 512]; LARGE_MAX + 1]));

/// Maps the image in pages of 4 KiB with the rights of what is on each; all that is not the image cannot be run.
pub fn protect() {
    let (code, constants) = (&raw const text_start as u64, &raw const __etext as u64);
    let (data, end) = (&raw const constants_end as u64, &raw const image_end as u64);
    let guards = [&raw const stack_guard as u64, &raw const fault_guard as u64, 0];
    let rights = |address: u64| match address {
        _ if (code..constants).contains(&address) => PRESENT,
        _ if (constants..data).contains(&address) => PRESENT | NOT_RUN,
        _ if guards.contains(&address) => 0,
        _ => PRESENT | WRITABLE | NOT_RUN,
    };
    let first = (code / LARGE_BYTES) as usize;
    let last = ((end - 1) / LARGE_BYTES) as usize;
    assert!(last - first < LARGE_MAX, "the image is larger than its page tables");
    // SAFETY: one task; the tables are the image's own, and each is whole before it is used. No page that is in use changes but in rights
    // that its use keeps.
    unsafe {
        let tables = &mut *TABLES.0.get();
        let directories = &raw mut page_directories;
        let directories = &mut *directories;
        for (large, entry) in directories.iter_mut().enumerate() {
            // The first table is of the page at address 0, the others are the image's.
            let table = match large {
                0 => Some(0),
                _ if (first..=last).contains(&large) => Some(large - first + 1),
                _ => None,
            };
            let Some(table) = table.and_then(|at| tables.get_mut(at)) else {
                *entry |= NOT_RUN;
                continue;
            };
            for (page, small) in table.iter_mut().enumerate() {
                let address = large as u64 * LARGE_BYTES + page as u64 * PAGE_BYTES;
                *small = address | rights(address);
            }
            *entry = table.as_ptr() as u64 | PRESENT | WRITABLE;
        }
        asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack));
    }
}
