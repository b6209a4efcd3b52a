//! "OS X ABI Mach-O File Format Reference", Apple: header, load commands with segments, their sections, and the state
//! that the first thread starts with.
//!
//! As ClamAV has it, the length of a section is rounded up to its alignment. Of the threads' states those of x86, x86-64,
//! PowerPC and ARM are known; a `LC_MAIN` command tells the offset itself.

use super::{Head, Layout, Missing, Order, Section, Sections, raw_of};

/// The most load commands that are read.
const COMMANDS_MAX: u32 = 1024;
/// The most sections that are read.
const SECTIONS_MAX: usize = 256;

const LC_SEGMENT: u32 = 1;
const LC_UNIXTHREAD: u32 = 5;
const LC_SEGMENT_64: u32 = 0x19;
const LC_MAIN: u32 = 0x8000_0028;

pub(super) fn read(head: Head<'_>) -> Result<Layout, Missing> {
    let (wide, big) = match head.array(0)? {
        [0xfe, 0xed, 0xfa, 0xce] => (false, true),
        [0xfe, 0xed, 0xfa, 0xcf] => (true, true),
        [0xce, 0xfa, 0xed, 0xfe] => (false, false),
        [0xcf, 0xfa, 0xed, 0xfe] => (true, false),
        _ => return Err(Missing::Nothing),
    };
    let order = Order { big };
    let count = order.u32(head, 16)?.min(COMMANDS_MAX);
    let mut at = if wide { 32 } else { 28 };
    let mut sections = Vec::new();
    let (mut entry, mut main) = (None, None);
    for _ in 0..count {
        let (command, size) = (order.u32(head, at)?, order.u32(head, at + 4)? as usize);
        if size < 8 {
            return Err(Missing::Nothing);
        }
        match command {
            LC_SEGMENT => segment(head, order, false, at, &mut sections)?,
            LC_SEGMENT_64 => segment(head, order, true, at, &mut sections)?,
            LC_UNIXTHREAD => entry = thread(head, order, at)?,
            LC_MAIN => main = Some(order.u64(head, at + 8)?),
            _ => {}
        }
        at = at.checked_add(size).ok_or(Missing::Nothing)?;
    }
    Ok(Layout {
        entry: entry.and_then(|address| raw_of(&sections, address)).or(main),
        sections: Sections::Known(sections),
        ..Layout::default()
    })
}

fn segment(head: Head<'_>, order: Order, wide: bool, at: usize, all: &mut Vec<Section>) -> Result<(), Missing> {
    let count = order.u32(head, at + if wide { 64 } else { 48 })? as usize;
    let (first, size) = if wide { (at + 72, 80) } else { (at + 56, 68) };
    for index in 0..count.min(SECTIONS_MAX - all.len()) {
        let at = first + index * size;
        let (address, length) =
            (order.word(head, wide, at + 32)?, order.word(head, wide, at + if wide { 40 } else { 36 })?);
        let offset = u64::from(order.u32(head, at + if wide { 48 } else { 40 })?);
        let alignment = order.u32(head, at + if wide { 52 } else { 44 })?;
        let alignment = 1u64.checked_shl(alignment).unwrap_or(1);
        let rounded = length.checked_next_multiple_of(alignment).unwrap_or(length);
        all.push(Section {
            raw: offset..offset.saturating_add(rounded),
            declared: length,
            address,
            address_length: rounded,
        });
    }
    Ok(())
}

/// The address at which the first thread starts.
fn thread(head: Head<'_>, order: Order, at: usize) -> Result<Option<u64>, Missing> {
    const X86: u32 = 7;
    const X86_64: u32 = 0x0100_0007;
    const ARM: u32 = 12;
    const POWERPC: u32 = 18;
    const POWERPC_64: u32 = 0x0100_0012;
    let state = at + 16;
    Ok(Some(match order.u32(head, 4)? {
        X86 => u64::from(order.u32(head, state + 10 * 4)?),
        X86_64 => order.u64(head, state + 16 * 8)?,
        ARM => u64::from(order.u32(head, state + 15 * 4)?),
        POWERPC => u64::from(order.u32(head, state)?),
        POWERPC_64 => order.u64(head, state)?,
        _ => return Ok(None),
    }))
}
