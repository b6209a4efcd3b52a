//! Type of a stream by its first bytes, and objects within it.

pub(crate) mod by_head;
pub(crate) mod carried;
pub(crate) mod head;
pub(crate) mod sealed;
pub(crate) mod stowaway;
pub(crate) mod unopened;
