//! Certificates by ACME.

pub mod authority;
mod challenge;
mod https;
pub mod store;
