//! The pages: forms and links, without script.

pub mod accounts;
pub mod domains;
pub mod frame;
pub mod kept;
pub mod overview;
mod plot;
pub mod queue;
pub mod record;
pub mod sets;
pub mod settings;
pub mod you;
