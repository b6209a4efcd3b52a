//! Foundation of every reader: interfaces of decoders and of readers of archives and documents, the stages that drive
//! them, names and passwords.

pub(crate) mod archive;
pub(crate) mod chain;
pub(crate) mod codec;
pub(crate) mod compressed;
pub(crate) mod cuts;
pub(crate) mod doubt;
pub(crate) mod format;
pub(crate) mod held;
pub(crate) mod keys;
pub(crate) mod name;
pub(crate) mod password;
pub(crate) mod reader;
pub(crate) mod stall;
pub(crate) mod trial;
