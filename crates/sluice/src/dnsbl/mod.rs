//! `sluice dnsbl`: block lists over DNS.
//!
//! `serve` answers for zones of rbldnsd's kind ([`serve`]), `check` reads them and says what they hold, `why` says what
//! lists an address, `reputation` keeps what the site itself has seen, `publish` and `fetch` carry lists as signed files;
//! [`ask`] asks lists for the gateway's doors.

pub mod ask;
pub mod command;
mod fetch;
mod folder;
mod load;
mod notify;
mod publish;
mod reputation;
mod send;
mod serve;
mod shared;
mod signature;
mod tcp;
mod tell;
mod udp;
mod wanted;
