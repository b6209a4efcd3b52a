//! Archives: named members, one behind the other or listed.

pub(crate) mod alz;
pub(crate) mod appledouble;
pub(crate) mod ar;
pub(crate) mod arc;
pub(crate) mod arj;
pub(crate) mod cab;
pub(crate) mod cpio;
pub(crate) mod dar;
pub(crate) mod lha;
pub(crate) mod macbinary;
pub(crate) mod mbox;
pub(crate) mod rar;
pub(crate) mod rpm;
pub(crate) mod sevenz;
pub(crate) mod tar;
pub(crate) mod xar;
pub(crate) mod zip;
