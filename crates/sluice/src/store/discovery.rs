//! The doors of a configuration that programs are told of before anybody has logged in: those within TLS. They are read at the start.

use edge::settings::{Address, Auth, Forward, Listener, ListenerTls};
use mailbox::discovery::Discovery;

use crate::config::Config;

/// The doors of a configuration.
pub fn of(config: &Config) -> Discovery {
    let store = config.store.as_ref();
    let sending = |is_meant: fn(ListenerTls) -> bool| {
        config.listeners.iter().filter(|listener| is_meant(listener.place.tls)).find_map(submission)
    };
    Discovery {
        imaps: store.and_then(|store| port(&store.imaps)),
        pop3s: store.and_then(|store| port(&store.pop3s)),
        submissions: sending(|tls| tls == ListenerTls::Implicit),
        submission: sending(|tls| !matches!(tls, ListenerTls::Implicit | ListenerTls::Off)),
        webmails: store.and_then(|store| port(&store.webmails)),
        policy: store.and_then(|store| store.mta_sts_policy.text(&config.hostname)),
    }
}

fn port(addresses: &[Address]) -> Option<u16> {
    addresses.iter().find_map(Address::tcp).map(|address| address.port())
}

/// The port of a listener, if accounts send by it.
fn submission(listener: &Listener) -> Option<u16> {
    let is_meant = listener.hop.forward == Forward::Store && listener.auth() != Auth::Off;
    Some(listener.place.address.tcp()?.port()).filter(|_| is_meant)
}
