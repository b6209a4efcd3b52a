//! Faults of the processor: each is said and restarts the machine. They have a stack of their own, since that of the program may be what
//! has failed.

use core::arch::{asm, naked_asm};
use core::cell::UnsafeCell;
use core::mem::size_of;

use super::{interrupt, restart, say};

/// Faults that the processor knows.
const FAULTS: usize = 32;
/// Faults, and behind them the interrupts of devices.
const VECTORS: usize = FAULTS + interrupt::LINES;

/// Faults that come with an error code.
const WITH_CODE: u32 = 0x6022_7d00;

unsafe extern "C" {
    /// The end of the stack for faults, which has a page without memory below it.
    static fault_stack_top: u8;
}

/// The state segment: of it only the first stack for faults is used.
#[repr(C, packed(4))]
struct State {
    reserved: u32,
    stacks: [u64; 3],
    reserved_more: u64,
    fault_stacks: [u64; 7],
    rest: [u32; 3],
}

#[repr(C, align(16))]
struct Tables {
    gates: UnsafeCell<[[u64; 2]; VECTORS]>,
    segments: UnsafeCell<[u64; 5]>,
    state: UnsafeCell<State>,
}

// SAFETY: written once, by one task.
unsafe impl Sync for Tables {}

static TABLES: Tables = Tables {
    gates: UnsafeCell::new([[0; 2]; VECTORS]),
    segments: UnsafeCell::new([0, 0x00af_9a00_0000_ffff, 0x00cf_9200_0000_ffff, 0, 0]),
    state: UnsafeCell::new(State { reserved: 0, stacks: [0; 3], reserved_more: 0, fault_stacks: [0; 7], rest: [0; 3] }),
};

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// The state of a fault, as the processor has pushed it.
#[repr(C)]
struct Frame {
    vector: u64,
    code: u64,
    at: u64,
}

/// Installs handlers for all faults, and for interrupts.
pub fn install() {
    // SAFETY: one task; the tables are static, and whole before the processor is told of them.
    unsafe {
        let state = TABLES.state.get();
        (*state).fault_stacks[0] = &raw const fault_stack_top as u64;
        let (base, limit) = (state as u64, size_of::<State>() as u64 - 1);
        let segments = &mut *TABLES.segments.get();
        segments[3] = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
        segments[4] = base >> 32;
        let gates = &mut *TABLES.gates.get();
        for (vector, gate) in gates.iter_mut().enumerate() {
            let entry = match vector {
                0..FAULTS => entries as *const () as u64 + vector as u64 * ENTRY_BYTES,
                _ => interrupt::taken as *const () as u64,
            };
            // Code segment 8, the first fault stack, an interrupt gate.
            *gate = [entry & 0xffff | 8 << 16 | 1 << 32 | 0x8e << 40 | (entry >> 16 & 0xffff) << 48, entry >> 32];
        }
        let segments = Pointer { limit: size_of::<[u64; 5]>() as u16 - 1, base: TABLES.segments.get() as u64 };
        let gates = Pointer { limit: size_of::<[[u64; 2]; VECTORS]>() as u16 - 1, base: TABLES.gates.get() as u64 };
        asm!("lgdt [{}]", in(reg) &segments);
        asm!("ltr {:x}", in(reg) 24);
        asm!("lidt [{}]", in(reg) &gates);
    }
}

/// Bytes of one of the [`entries`].
const ENTRY_BYTES: u64 = 16;

/// For each fault a few instructions that push its number, behind an error code if the processor has pushed none.
#[unsafe(naked)]
extern "C" fn entries() {
    naked_asm!(
        ".set vector, 0",
        ".rept 32",
        ".balign 16",
        ".if (({codes} >> vector) & 1) == 0",
        "push 0",
        ".endif",
        "push vector",
        "jmp {common}",
        ".set vector, vector + 1",
        ".endr",
        codes = const WITH_CODE,
        common = sym common,
    )
}

#[unsafe(naked)]
extern "C" fn common() {
    naked_asm!("mov rdi, rsp", "and rsp, -16", "call {}", "ud2", sym failed)
}

extern "C" fn failed(frame: &Frame) -> ! {
    let address: u64;
    // SAFETY: no effect: the address of a page fault.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) };
    say!("fault {} (code {:#x}) at {:#x}, address {address:#x}", frame.vector, frame.code, frame.at);
    restart()
}
