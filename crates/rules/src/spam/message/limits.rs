//! Bounds of the views of a mail.

/// Bounds of the views. What is beyond one is left out of the views, and the message says so.
#[derive(Debug, Clone, Copy)]
pub struct MessageLimits {
    /// Header fields of the mail, and of each part.
    pub fields_max: usize,
    /// MIME parts.
    pub parts_max: usize,
    /// Addresses.
    pub uris_max: usize,
    /// Bytes of decoded content that all parts together keep.
    pub decoded_bytes_max: usize,
    /// Elements of HTML that are open at once.
    pub elements_max: usize,
}

impl Default for MessageLimits {
    fn default() -> MessageLimits {
        MessageLimits {
            fields_max: 10_000,
            parts_max: 1000,
            uris_max: 10_000,
            decoded_bytes_max: 64 << 20,
            elements_max: 10_000,
        }
    }
}
