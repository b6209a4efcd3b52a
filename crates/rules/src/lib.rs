//! Rules over content, in three rooms: [`spam`] reads SpamAssassin's configuration and runs it over mails, [`web`] reads E2Guardian's and
//! runs it over requests and pages.
//!
//! Nothing here opens a file or asks the network: the host hands in the bytes of files and of mails.
#![forbid(unsafe_code)]

pub mod ids;
pub mod spam;
pub mod web;
