//! The doors of mailboxes: POP3 and IMAP.

pub mod imap;
pub mod pop3;
pub mod retrieval;
