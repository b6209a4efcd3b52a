//! The doors of a configuration that programs are told of before anybody has logged in: those within TLS. They are read at the start.

use edge::settings::{Address, Auth, Forward, Listener, ListenerTls};
use mailbox::discovery::{Discovery, Submission};

use crate::config::Config;

/// The doors of a configuration.
pub fn of(config: &Config) -> Discovery {
    let store = config.store.as_ref();
    Discovery {
        imaps: store.and_then(|store| port(&store.imaps)),
        pop3s: store.and_then(|store| port(&store.pop3s)),
        submission: config.listeners.iter().find_map(submission),
        policy: store.and_then(|store| store.mta_sts_policy.text(&config.hostname)),
    }
}

fn port(addresses: &[Address]) -> Option<u16> {
    addresses.iter().find_map(Address::tcp).map(|address| address.port())
}

/// The listener, if accounts send by it within TLS.
fn submission(listener: &Listener) -> Option<Submission> {
    let is_meant = listener.hop.forward == Forward::Store && listener.auth() != Auth::Off;
    let place = Some(&listener.place).filter(|place| is_meant && place.tls != ListenerTls::Off)?;
    Some(Submission { port: place.address.tcp()?.port(), is_implicit: place.tls == ListenerTls::Implicit })
}
