//! Bits, codes, checks and windows, as the decoders share them.

pub(crate) mod crc;
pub(crate) mod history;
pub(crate) mod huffman;
pub(crate) mod pushed;
pub(crate) mod tokens;
