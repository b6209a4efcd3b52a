//! The door for mail that is sent: SMTP and LMTP.

pub mod admission;
pub mod client;
pub mod exchange;
pub mod intake;
pub mod login;
mod offer;
mod pace;
mod recipients;
pub mod session;
pub mod vetting;
mod wire;
