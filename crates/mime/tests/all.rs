//! Most tests of the crate in one program, which is linked once; those that count every allocation have their own.

mod corpus;
mod law;
mod mails;
mod mime4j;
mod packs;
