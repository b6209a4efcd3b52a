//! `sluice quarantine`: what people do with what `serve` has kept. The folder's format is [`edge::quarantine`].

pub mod command;
pub mod place;
pub mod release;
pub mod select;
pub mod train;
