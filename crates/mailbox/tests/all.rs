//! All tests of the crate in one program, which is linked once.

mod conversations;
mod corpus;
mod extensions;
mod fair;
mod golden;
mod handover;
mod harness;
mod imaptest;
mod in_flight;
mod index;
mod load;
mod managesieve;
mod notify;
mod queue;
mod rights;
mod search;
mod shared;
mod sieve;
mod uptime;
mod webmail;
