//! Bodies of headers that speak of other headers.

use super::pax::Pax;

/// The body of a metadata header while it arrives.
pub(super) enum Meta {
    Pax(Pax),
    Global(Pax),
    LongName(Vec<u8>),
    /// An ignored header: the target of a link.
    Ignored,
}

impl Meta {
    /// The body of a header of this type, if it is one.
    pub const fn of(kind: u8, name_bytes_max: usize, regions_max: usize) -> Option<Meta> {
        Some(match kind {
            b'x' | b'X' => Meta::Pax(Pax::new(name_bytes_max, regions_max)),
            b'g' => Meta::Global(Pax::new(name_bytes_max, 0)),
            b'L' => Meta::LongName(Vec::new()),
            b'K' => Meta::Ignored,
            _ => return None,
        })
    }

    /// Reads a piece of it.
    pub fn read(&mut self, bytes: &[u8], name_bytes_max: usize) {
        match self {
            Meta::Pax(pax) | Meta::Global(pax) => pax.read(bytes),
            Meta::LongName(name) => {
                let keep = name_bytes_max.saturating_sub(name.len()).min(bytes.len());
                name.extend_from_slice(&bytes[..keep]);
            }
            Meta::Ignored => {}
        }
    }
}
