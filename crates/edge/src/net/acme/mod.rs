//! Certificates by ACME.

mod authority;
pub mod caretaker;
mod challenge;
mod https;
pub mod store;
