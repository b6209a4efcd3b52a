//! Answers and changes, as values of JSON: the pages and the HTTP interface are made of these. Each checks the right of who asks.

pub mod accounts;
pub mod domains;
pub mod queue;
pub mod record;
pub mod sets;
