//! All tests of the crate in one program, which is linked once.

mod corpus;
mod every_cut;
mod expression;
mod flat;
mod sweeps;
