//! Documents and text that hold objects.

pub(crate) mod chm;
pub(crate) mod cms;
pub(crate) mod download;
pub(crate) mod html;
pub(crate) mod lines;
pub(crate) mod lnk;
pub(crate) mod makeself;
pub(crate) mod ole2;
pub(crate) mod onenote;
pub(crate) mod openpgp;
pub(crate) mod pdf;
pub(crate) mod relationships;
pub(crate) mod rtf;
pub(crate) mod runs;
pub(crate) mod script;
pub(crate) mod shar;
pub(crate) mod tnef;
pub(crate) mod utf16;
