//! Mapping a compiled database: the one place where this program maps a file.
#![allow(unsafe_code, reason = "whoever maps a file says that nobody changes it")]

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::Mmap;
use scan::Owner;

/// The content of a file, shared with whoever else maps it.
///
/// # Errors
/// If it cannot be mapped.
pub fn map(file: &File) -> io::Result<Owner> {
    // SAFETY: nobody writes to the file while it is mapped. It is complete before it gets the name by which it is found, it
    // is only ever replaced as a whole by another, and neither it nor its folder is one that somebody else than us and root
    // has or may write to, which was looked at when it was opened or made (`cache::Place`); or it is a file in memory that has no name, and whose writer has ended.
    let map = unsafe { Mmap::map(file)? };
    Ok(Arc::new(map))
}
