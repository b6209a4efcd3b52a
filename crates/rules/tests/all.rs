//! All tests of the crate in one program, which is linked once.

mod bounds;
mod corpus;
mod hits;
mod hostile;
mod ids;
mod ids_bytes;
mod ids_forms;
mod ids_http2;
mod ids_keywords;
mod ids_packets;
mod ids_windows;
mod peer;
mod plugins;
mod views;
mod web;
mod web_adblock;
mod web_agreement;
mod web_identity;
mod web_layout;
mod web_packs;
mod web_peer;
mod web_reading;
mod web_squidguard;
