//! Whole files through an inspection.

pub mod examine;
