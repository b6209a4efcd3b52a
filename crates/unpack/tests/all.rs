//! Most tests of the crate in one program, which is linked once; those that count every allocation have their own.

mod corpus;
mod cuts;
mod damage;
mod disks;
mod driver;
mod encrypted;
mod evasion;
mod formats;
mod golden;
mod hidden;
mod law;
mod layers;
mod limits;
mod openers;
mod packed;
mod pdf;
mod prefixes;
mod rows;
mod seeds;
