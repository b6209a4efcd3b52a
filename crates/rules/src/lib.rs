//! Rules over content. One room so far: [`spam`] reads SpamAssassin's configuration and runs it over mails.
//!
//! Nothing here opens a file or asks the network: the host hands in the bytes of files and of mails.
#![forbid(unsafe_code)]

pub mod spam;
