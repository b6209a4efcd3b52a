//! All tests of the crate in one program, which is linked once.

mod corpus;
mod dmarc;
mod peers;
mod signed;
mod spf;
mod whole;
mod yaml;
mod zone;
