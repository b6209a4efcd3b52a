//! Files that are one compressed stream.

pub(crate) mod activemime;
pub(crate) mod brotli;
pub(crate) mod bzip2;
pub(crate) mod coded;
pub(crate) mod gzip;
pub(crate) mod lz4;
pub(crate) mod lzip;
pub(crate) mod lzma_alone;
pub(crate) mod lzop;
pub(crate) mod lzw;
pub(crate) mod snappy;
pub(crate) mod swf;
pub(crate) mod szdd;
pub(crate) mod xz;
pub(crate) mod zisofs;
pub(crate) mod zlib;
pub(crate) mod zstd;
