//! The sweep in vectors.

pub(crate) mod avx2;
pub(crate) mod avx512;
