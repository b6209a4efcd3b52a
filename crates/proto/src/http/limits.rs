//! The bounds of a connection.

/// The bounds of what a half keeps of a message. Bodies pass through and have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, its empty line included. Browsers stay below 16 KiB, cookies and tokens of directories go beyond
    /// it. Reported as [`Refusal::HeadTooLong`](super::Refusal::HeadTooLong).
    pub head_bytes_max: usize,
    /// Fields of a head, or of a trailer: as many as a head of usual fields can have. Reported as [`Refusal::TooManyFields`](super::Refusal::TooManyFields).
    pub fields_max: usize,
    /// Bytes of a request's target. Reported as [`Refusal::TargetTooLong`](super::Refusal::TargetTooLong).
    pub target_bytes_max: usize,
    /// Bytes of the line of a chunk's size, extensions included. Reported as
    /// [`Refusal::ChunkSize`](super::Refusal::ChunkSize).
    pub chunk_line_bytes_max: usize,
    /// Bytes of the extensions of all chunks of one body: they carry nothing, and a client that sends a megabyte of them
    /// wants the reader's time. Reported as [`Refusal::ChunkSize`](super::Refusal::ChunkSize).
    pub chunk_extension_bytes_max: usize,
    /// Interim responses (1xx) before the final one. Reported as
    /// [`Refusal::TooManyInterim`](super::Refusal::TooManyInterim).
    pub interim_max: u32,
}

const DEFAULT: Limits = Limits {
    head_bytes_max: 64 << 10,
    fields_max: 4_000,
    target_bytes_max: 16 << 10,
    chunk_line_bytes_max: 4 << 10,
    chunk_extension_bytes_max: 64 << 10,
    interim_max: 16,
};

const _: () = {
    assert!(DEFAULT.target_bytes_max < DEFAULT.head_bytes_max, "a target stands in a head");
    assert!(DEFAULT.head_bytes_max < u32::MAX as usize, "spans of fields are 32 bits");
};

impl Default for Limits {
    fn default() -> Limits {
        DEFAULT
    }
}
