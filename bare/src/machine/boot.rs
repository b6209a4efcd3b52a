//! Entry: from the 32-bit state in which a virtual machine monitor starts a PVH image to 64-bit code with a stack.
//!
//! 64 GiB are mapped as they are, in pages of 2 MiB: memory and devices. [`paging`](super::paging) gives the image its rights.

use core::arch::global_asm;

use super::{clock, fault, memory, paging, random, restart, say};

// The note (Xen, type 18) has the address of the entry. EBX points to the start info. Intel's syntax, and a far jump by its bytes: the
// assembler makes a 16-bit one of what can be written.
global_asm!(
    r#"
    .section .note.Xen, "a", @note
    .align 4
    .long 4, 4, 18
    .asciz "Xen"
    .long pvh_start

    .section .boot, "ax"
    .code32
    .globl pvh_start
pvh_start:
    cli
    cld
    mov edi, offset page_directories
    mov eax, 0x83
    xor edx, edx
    mov ecx, 64 * 512
2:  mov [edi], eax
    mov [edi + 4], edx
    add eax, 0x200000
    adc edx, 0
    add edi, 8
    dec ecx
    jnz 2b
    mov edi, offset page_directory_pointers
    mov eax, offset page_directories
    or eax, 3
    mov ecx, 64
3:  mov [edi], eax
    add eax, 4096
    add edi, 8
    dec ecx
    jnz 3b
    mov eax, offset page_directory_pointers
    or eax, 3
    mov [page_map], eax
    mov eax, offset page_map
    mov cr3, eax
    mov eax, cr4
    or eax, 0x6a0
    mov cr4, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x900
    wrmsr
    mov eax, cr0
    and eax, 0xfffffffb
    or eax, 0x80010003
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    .byte 0xea
    .long long_start
    .word 8

    .code64
long_start:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    mov rsp, offset stack_top
    mov edi, ebx
    xor ebp, ebp
    call bare_main
    ud2

    .align 8
boot_gdt:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
boot_gdt_pointer:
    .word boot_gdt_pointer - boot_gdt - 1
    .quad boot_gdt

    .section .bss
    .align 4096
    .globl page_directories
page_map: .skip 4096
page_directory_pointers: .skip 4096
page_directories: .skip 64 * 4096
    .text
    "#
);

/// The magic number of the start info.
const MAGIC: u32 = 0x336e_c578;

/// As a monitor hands it over (Xen's `hvm_start_info`, version 1).
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

/// A range of memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Range {
    pub from: u64,
    pub bytes: u64,
    kind: u32,
    reserved: u32,
}

impl Range {
    /// Whether it may be used.
    pub fn is_memory(&self) -> bool {
        self.kind == 1
    }
}

#[unsafe(no_mangle)]
extern "C" fn bare_main(info: u64) -> ! {
    // SAFETY: the monitor's promise: EBX points to it, and the first 64 GiB are mapped.
    let info = unsafe { &*(info as *const StartInfo) };
    assert!(info.magic == MAGIC && info.version >= 1, "not started as a PVH image with a memory map");
    // SAFETY: likewise, for as many entries.
    let map = unsafe { core::slice::from_raw_parts(info.memory_map as *const Range, info.memory_map_entries as usize) };
    fault::install();
    memory::install(map);
    // From here on the start info is out of reach: it may stand in the first page.
    paging::protect();
    clock::start();
    if let Err(why) = random::check().and_then(|()| crate::start()) {
        say!("{why}");
    }
    restart()
}
