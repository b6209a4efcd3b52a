//! What a stream is, by its first bytes, and what stands in it that is something of its own.

pub(crate) mod carried;
pub(crate) mod head;
pub(crate) mod stowaway;
pub(crate) mod unopened;
