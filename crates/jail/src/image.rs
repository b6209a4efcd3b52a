//! The pages of the program itself that a process has in memory.
//!
//! Most of the code that a process runs at its start it never runs again, but it stays mapped, and counts as the memory of the
//! process. Pages that the process has written to, relocated data among them, are left alone.
#![allow(unsafe_code, reason = "pages are taken from a mapping that is in use")]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

/// Takes the pages of the program's code and constants from this process. Those that it uses again come back from the page cache.
pub fn shed() {
    for segment in segments() {
        let start = with_exposed_provenance_mut(segment.start);
        // SAFETY: the segment is mapped from the program's file, and nothing is ever written to it: whoever reads it next reads
        // the same bytes. Where it cannot be done the pages stay.
        let _ = unsafe { libc::madvise(start, segment.len(), libc::MADV_DONTNEED) };
    }
}

/// Addresses of the program's segments that cannot be written to, in whole pages.
fn segments() -> Vec<Range<usize>> {
    let mut segments = Vec::<Range<usize>>::new();
    // SAFETY: the callback gets this vector, and keeps nothing of what it is shown.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut segments).cast()) };
    segments
}

/// Collects the segments of the first object, which is the program (dl_iterate_phdr(3)).
unsafe extern "C" fn collect(object: *mut libc::dl_phdr_info, _: usize, segments: *mut c_void) -> c_int {
    // SAFETY: `segments` passes its vector, and the C library an object and its headers.
    let (object, segments, headers) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
        (object, &mut *segments.cast::<Vec<Range<usize>>>(), headers)
    };
    let page = rustix::param::page_size();
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0) {
        let start = object.dlpi_addr as usize + header.p_vaddr as usize;
        let end = (start + header.p_memsz as usize) / page * page;
        segments.push(start.next_multiple_of(page)..end);
    }
    segments.retain(|segment| !segment.is_empty());
    1
}

#[cfg(test)]
mod tests {
    use std::ptr::with_exposed_provenance;

    use super::*;
    use crate::statm::resident_bytes;

    /// Sum of all bytes of the segments.
    fn read() -> u64 {
        let bytes = segments().into_iter().flatten();
        // SAFETY: the segments are mapped and can be read.
        bytes.map(|address| u64::from(unsafe { *with_exposed_provenance::<u8>(address) })).sum()
    }

    #[test]
    fn code_that_was_shed_leaves_memory_and_comes_back() {
        let resident = || resident_bytes(std::fs::File::open("/proc/self/statm").unwrap());
        let bytes: usize = segments().iter().map(Range::len).sum();
        assert!(bytes > 1 << 20, "{:?}", segments());
        let sum = read();
        let before = resident();
        shed();
        let after = resident();
        assert!(after + bytes as u64 / 2 < before, "{after} bytes after {before}, {bytes} of them the program's");
        assert_eq!(read(), sum);
    }
}
