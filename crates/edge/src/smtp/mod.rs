//! The door for mail that is sent: SMTP and LMTP.

pub mod client;
pub mod exchange;
pub mod intake;
pub mod login;
mod recipients;
pub mod session;
pub mod vetting;
