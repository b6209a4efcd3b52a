//! Trust before work: who may talk, and what a connection costs until it has earned trust.
//!
//! Everything here is a plain value; what depends on the time is told it, in milliseconds. Sessions ask a [`warden::Warden`].

pub mod access;
pub mod clients;
pub mod harvest;
pub mod limit;
pub mod reputation;
pub mod score;
pub mod strangers;
pub mod table;
pub mod tarpit;
pub mod warden;
