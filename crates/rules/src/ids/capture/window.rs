//! The window of one side: how far the other may send (RFC 9293, section 3.10.7.4). It is known where the opening of the side was seen.

use super::packet::Segment;

/// A window.
#[derive(Debug, Default)]
pub(super) struct Window {
    is_opened: bool,
    pub scale: Option<u8>,
    /// The number behind the last byte that it has ever taken.
    edge: Option<u32>,
}

impl Window {
    /// Its side opens the connection.
    pub fn open(&mut self, segment: Segment<'_>) {
        *self = Window { is_opened: true, scale: segment.scale, edge: None };
    }

    /// Its side acknowledges bytes and says how many more it takes. A window never shrinks here.
    pub fn widen(&mut self, segment: Segment<'_>, is_scaled: bool) {
        let scale = self.scale.filter(|_| is_scaled).unwrap_or(0);
        let edge = segment.acknowledged.wrapping_add(u32::from(segment.window) << scale);
        if self.edge.is_none_or(|known| edge.wrapping_sub(known) < 1 << 31) {
            self.edge = Some(edge);
        }
    }

    /// The number from which on bytes are not taken; none where it is not known.
    pub fn limit(&self) -> Option<u32> {
        self.edge.filter(|_| self.is_opened)
    }
}
