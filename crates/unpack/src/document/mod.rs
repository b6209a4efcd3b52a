//! Documents and text that hold objects.

pub(crate) mod chm;
pub(crate) mod cms;
pub(crate) mod html;
pub(crate) mod lnk;
pub(crate) mod ole2;
pub(crate) mod onenote;
pub(crate) mod pdf;
pub(crate) mod relationships;
pub(crate) mod rtf;
pub(crate) mod runs;
pub(crate) mod script;
pub(crate) mod tnef;
