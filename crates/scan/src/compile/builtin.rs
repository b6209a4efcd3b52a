//! The small database that comes with the program: the EICAR test file and harmless markers.
//!
//! The files are hexadecimal text, so that no scanner takes them for what they find.

/// The files by name. Their signatures are official: no suffix is appended to the names.
pub const BUILTIN: &[(&str, &[u8])] = &[
    ("sluice.hdb", include_bytes!("../../database/sluice.hdb")),
    ("sluice.ndb", include_bytes!("../../database/sluice.ndb")),
    ("sluice.ldb", include_bytes!("../../database/sluice.ldb")),
];
