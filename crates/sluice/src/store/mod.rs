//! The mail store on Linux: its commands, its server, and the formats that mailboxes come in and go out by.

pub mod account;
mod acl;
pub mod command;
mod control;
pub mod dkim;
pub mod domain;
pub mod doors;
mod export;
mod filters;
pub mod gateway;
mod look;
pub mod maildir;
pub mod mbox;
mod moves;
mod names;
mod numbers;
mod outgoing;
pub mod queue;
pub mod reach;
pub mod recall;
mod relay;
mod rights;
pub mod scripts;
mod serve;
mod show;
mod source;
mod volume;
