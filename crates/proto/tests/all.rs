//! All tests of the crate in one program, which is linked once.

mod clamd;
mod corpus;
mod dns;
mod http;
mod icap;
mod icap_client;
mod imap;
mod managesieve;
mod milter;
mod pair;
mod pop3;
mod rspamd;
mod smtp;
mod spamd;
mod states;
