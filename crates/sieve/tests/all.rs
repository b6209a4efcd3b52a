//! All tests of the crate that look at it from outside.
mod corpus;
mod golden;
mod include;
mod peer;
