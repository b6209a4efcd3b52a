//! All tests of the crate in one program, which is linked once.

mod authenticode;
mod clamscan;
mod compiled;
mod container;
mod corpus;
mod detached;
mod executables;
mod law;
mod magic;
mod material;
mod peer;
mod pictures;
mod signature_verdicts;
mod subsignatures;
mod views;
mod yara;
mod yara_matches;
mod yara_random;
mod yara_real;
mod yara_verdicts;
