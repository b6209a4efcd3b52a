//! All tests of the crate in one program, which is linked once.

mod corpus;
mod fake;
mod hostile;
#[cfg(feature = "languages")]
mod languages;
mod pages;
mod reading;
