//! Facts about one format, beside its reader. `docs/engine/formats.md` shows the first four; the others are for
//! developers.

/// One format that is opened.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The format's usual name.
    pub name: &'static str,
    /// Its variants, methods and filters that are read.
    pub methods: &'static str,
    /// Methods that are recognised and emitted raw, with a finding; may be empty.
    pub not_read: &'static str,
    /// Whether its content is emitted while it arrives.
    pub reads: Reads,
    /// The most memory taken, and the field of [`Limits`](::stream::Limits) that bounds it.
    pub memory: &'static str,
    /// Author of the decoder: a library, or our own.
    pub decoder: &'static str,
    /// The fuzz target, whose corpus plain tests replay.
    pub fuzz: &'static str,
    /// The reader for comparison, and the material.
    pub compared_with: &'static str,
}

/// How the input of a format has to be at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Forward: content is emitted while it arrives, and nothing of the input is kept for the end.
    Stream,
    /// Forward as far as the format allows; so much of the input may be kept for the end.
    Spool(&'static str),
}

impl Reads {
    /// As it stands in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Reads::Stream => "streams",
            Reads::Spool(bound) => bound,
        }
    }
}
