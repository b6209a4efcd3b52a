//! Decoders that no file has bare: what archives, documents and images compress and encrypt with.

pub(crate) mod adc;
pub(crate) mod block_cipher;
pub(crate) mod deflate;
pub(crate) mod deflate64;
pub(crate) mod implode;
pub(crate) mod lzfse;
pub(crate) mod lzfu;
pub(crate) mod lzma;
pub(crate) mod lzms;
pub(crate) mod ppmd;
pub(crate) mod rc4;
pub(crate) mod reduce;
pub(crate) mod shrink;
pub(crate) mod xpress;
