//! All tests of the crate in one program, which is linked once.

mod signed;
mod spf;
mod yaml;
mod zone;
