//! Blobs in the packaging of the web: a header of a stream object, and a length with the bytes behind it.

use crate::frame::codec::le64;

/// Beginning of the headers of blobs: 32 bits, of which two tell the form, one that nothing is nested, 14 the type.
pub(super) const MARK: &[u8] = b"\x12\0";

/// Kind of the first bytes.
pub(super) enum Front {
    /// More bytes are needed to say.
    Later,
    Nothing,
    Blob {
        header_bytes: usize,
        size: u64,
    },
}

/// The header of a blob, if the bytes (at least one) begin with a header.
pub(super) fn front(bytes: &[u8]) -> Front {
    const LENGTH_AT: u32 = 17;
    /// The length does not fit, and follows.
    const IS_LONG: u64 = 0x7fff;
    let looked = bytes.len().min(MARK.len());
    if bytes[..looked] != MARK[..looked] || bytes.get(2).is_some_and(|byte| byte & 1 == 1) {
        return Front::Nothing;
    }
    let Some(header) = bytes.first_chunk::<4>() else { return Front::Later };
    let mut header_bytes = header.len();
    let mut length = u64::from(u32::from_le_bytes(*header) >> LENGTH_AT);
    if length == IS_LONG {
        let Some((long, width)) = compact(&bytes[header_bytes..]) else { return Front::Later };
        (length, header_bytes) = (long, header_bytes.saturating_add(width));
    }
    let Some((size, width)) = compact(&bytes[header_bytes..]) else { return Front::Later };
    match size.checked_add(width as u64) {
        Some(sum) if sum == length => Front::Blob { header_bytes: header_bytes.saturating_add(width), size },
        _ => Front::Nothing,
    }
}

/// A number as wide as its lowest bits tell, and its width.
fn compact(bytes: &[u8]) -> Option<(u64, usize)> {
    const WIDEST: usize = 9;
    let first = *bytes.first()?;
    let width = match first.trailing_zeros() as usize {
        8 => 1,
        7 => WIDEST,
        zeros => zeros.saturating_add(1),
    };
    if bytes.len() < width {
        return None;
    }
    let value = match width {
        WIDEST => le64(bytes, 1),
        // The lowest bits, one for each byte, have told the width.
        _ => bytes[..width].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)) >> width,
    };
    Some((value, width))
}
