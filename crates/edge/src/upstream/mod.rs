//! Where mail goes: servers, Maildirs, connections to them. It knows no listener's sockets.

pub mod destination;
pub mod hop;
pub mod icap;
pub mod leases;
pub mod maildir;
pub mod origin;
pub mod origins;
pub mod route;
pub mod shared;
pub mod smtp_hop;
pub mod within;
