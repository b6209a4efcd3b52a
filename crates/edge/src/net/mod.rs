//! Sockets, TLS, and what is spoken before a session begins.

pub mod accept;
pub mod acme;
pub mod agent;
pub mod ahead;
pub mod dane;
pub mod guarded;
pub mod http;
pub mod http2;
pub mod identity;
pub mod intercept;
pub mod listening;
pub mod mirror;
pub mod occupant;
pub mod opener;
pub mod pem;
mod reference;
pub mod relay;
pub mod stream;
pub mod tls;
pub mod wire;
