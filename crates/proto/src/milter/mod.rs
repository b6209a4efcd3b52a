//! The mail filter protocol of Sendmail and Postfix (milter), versions 2 to 6, the filter's half.
//!
//! The mail server opens a connection for each of its own, tells what its client says, and asks before it answers. The
//! format is that of libmilter's `mfdef.h`: packets of a length (32 bits, big-endian), a letter, and data. [`Server`]
//! agrees on what is told and what may be changed, hands on the message as it comes, and writes down the decision.
//!
//! Where the server lets it, nothing is answered before the end of the message, so a message costs one round trip.
//! Not here: changing senders and recipients, asking for macros, early decisions.

mod fuzz;
mod packet;
mod server;

pub use fuzz::fuzz_server;
pub use packet::{Changes, Packet, PacketReader};
pub use server::{Decision, Server, ServerEvent};
