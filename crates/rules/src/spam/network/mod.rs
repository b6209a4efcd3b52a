//! DNS queries of rules about a mail: lists of hosts in the header (`check_rbl` and its family), of hosts in
//! addresses (`uridnsbl` and its), of digests (`check_hashbl_...`), names made of tags (`askdns`), and an author's
//! practices about signatures (ADSP).
//!
//! [`Lists`] is what a configuration has of that. `Lists::inquire` makes an [`Inquiry`] of a mail: its questions
//! ([`Inquiry::ask`]) are handed out, their answers come back in any order (`Lists::answer`), and there may be further
//! questions then. What needs to know who has signed the mail waits for `Lists::learn`. In the end the inquiry says which
//! rules hit. Nothing here opens a socket or looks at a clock.
//!
//! Which hosts are asked about is what SpamAssassin 4.0.1 asks about, but for three things. Where more hosts stand in a mail
//! than are asked about, it takes any of them, and here it is the first in the order of their names. `check_rbl_ns_from` asks
//! about the name servers of the sender, and not about what stands in the authority section. An answer that says that one may
//! not ask is a hit for nobody but a rule that names it.
//!
//! `check_dns_sender` never hits, as in SpamAssassin 4.0.1: what it waits for cannot come; so nothing is asked for it.
//! Bounds: [`Limits`]; a question is asked once.

mod hashed;
mod hosts;
mod inquiry;
mod list;
mod lists;
mod relays;
mod scope;
mod subtest;
mod template;

pub use inquiry::{Inquiry, Limits, Listed};
pub use lists::Lists;
