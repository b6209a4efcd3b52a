//! The functions of C that compiled code calls. This target brings none.
//!
//! Sixteen bytes at a time: `rep movsb` takes longer to begin than most of what is copied here takes, and emulators do a byte at a time. Loops
//! are written in assembly, or a compiler makes them calls of themselves.

use core::arch::asm;

const BLOCK: usize = 16;

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            0..BLOCK => copy_few(to, from, bytes),
            _ => copy_up(to, from, bytes),
        }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    if bytes < BLOCK || (to as usize).wrapping_sub(from as usize) >= bytes {
        // SAFETY: the caller's; few bytes are read before any is written, of more the read ones are ahead of the written ones.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: the caller's. From the end, since they overlap; the first block is read before it is written over.
    unsafe {
        asm!(
            "movups xmm1, [{from}]",
            "2: movups xmm0, [{from} + {left} - 16]",
            "movups [{to} + {left} - 16], xmm0",
            "sub {left}, 16",
            "cmp {left}, 16",
            "ja 2b",
            "movups [{to}], xmm1",
            from = in(reg) from, to = in(reg) to, left = inout(reg) bytes => _, out("xmm0") _, out("xmm1") _, options(nostack)
        );
    }
    to
}

/// Copies at least a block from the beginning. The last block is read before it may be written over.
unsafe fn copy_up(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "movups xmm4, [{from} + {bytes} - 16]",
            "lea {end}, [{to} + {bytes} - 16]",
            "sub {bytes}, 64",
            "jb 3f",
            "2: movups xmm0, [{from}]",
            "movups xmm1, [{from} + 16]",
            "movups xmm2, [{from} + 32]",
            "movups xmm3, [{from} + 48]",
            "movups [{to}], xmm0",
            "movups [{to} + 16], xmm1",
            "movups [{to} + 32], xmm2",
            "movups [{to} + 48], xmm3",
            "add {from}, 64",
            "add {to}, 64",
            "sub {bytes}, 64",
            "jae 2b",
            "3: cmp {to}, {end}",
            "jae 5f",
            "4: movups xmm0, [{from}]",
            "movups [{to}], xmm0",
            "add {from}, 16",
            "add {to}, 16",
            "cmp {to}, {end}",
            "jb 4b",
            "5: movups [{end}], xmm4",
            from = inout(reg) from => _, to = inout(reg) to => _, bytes = inout(reg) bytes => _, end = out(reg) _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, options(nostack)
        );
    }
}

/// Copies less than a block: its two ends, which may overlap, both read before either is written.
unsafe fn copy_few(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's; no end is longer than all.
    unsafe {
        match bytes {
            8.. => copy_ends::<u64>(to, from, bytes - 8),
            4.. => copy_ends::<u32>(to, from, bytes - 4),
            2.. => copy_ends::<u16>(to, from, bytes - 2),
            1 => to.write(from.read()),
            0 => {}
        }
    }
}

unsafe fn copy_ends<T>(to: *mut u8, from: *const u8, second: usize) {
    // SAFETY: the caller's.
    unsafe {
        let (one, other) = (from.cast::<T>().read_unaligned(), from.add(second).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(one);
        to.add(second).cast::<T>().write_unaligned(other);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    let pattern = u64::from(byte as u8) * 0x0101_0101_0101_0101;
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            BLOCK.. => asm!(
                "movq xmm0, {pattern}",
                "punpcklqdq xmm0, xmm0",
                "2: movups [{to}], xmm0",
                "add {to}, 16",
                "cmp {to}, {end}",
                "jb 2b",
                "movups [{end}], xmm0",
                pattern = in(reg) pattern, to = inout(reg) to => _, end = in(reg) to.wrapping_add(bytes - BLOCK), out("xmm0") _, options(nostack)
            ),
            _ => {
                let pattern = pattern.to_le_bytes();
                copy_few(to, pattern.as_ptr(), bytes.min(8));
                copy_few(to.wrapping_add(bytes.saturating_sub(8)), pattern.as_ptr(), bytes.min(8));
            }
        }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, bytes: usize) -> i32 {
    let mut at = 0;
    // SAFETY: the caller's: both have as many bytes.
    unsafe {
        while at + 8 <= bytes {
            let (left, right) =
                (one.add(at).cast::<u64>().read_unaligned(), other.add(at).cast::<u64>().read_unaligned());
            if left != right {
                return if left.swap_bytes() < right.swap_bytes() { -1 } else { 1 };
            }
            at += 8;
        }
        while at < bytes {
            // Volatile, so that this is not made a call of itself.
            let (left, right) = (one.add(at).read_volatile(), other.add(at).read_volatile());
            if left != right {
                return i32::from(left) - i32::from(right);
            }
            at += 1;
        }
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
