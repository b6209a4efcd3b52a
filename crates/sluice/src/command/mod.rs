//! The commands that have no room of their own, a file each.

pub mod auth;
pub mod check;
pub mod config;
pub mod database;
pub mod explain;
pub mod ids;
pub mod learn;
pub mod log;
pub mod lookup;
pub mod manual;
pub mod recipients;
pub mod rules;
pub mod scan;
pub mod sieve;
pub mod spam;
pub mod top;
pub mod web;
