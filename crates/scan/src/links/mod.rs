//! Lists of hosts and addresses that links are compared with.

pub(crate) mod address;
pub(crate) mod digests;
pub(crate) mod entry;
