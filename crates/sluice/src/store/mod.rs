//! The mail store on Linux: its commands, its server, and the formats that mailboxes come in and go out by.

pub mod account;
pub mod command;
mod control;
pub mod doors;
pub mod gateway;
mod maildir;
mod mbox;
pub mod recall;
mod serve;
mod volume;
