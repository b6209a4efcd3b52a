//! Certificates by ACME.

pub mod authority;
pub mod challenge;
mod https;
pub mod store;
