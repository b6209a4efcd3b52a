//! Listeners that make a relay for everybody out of a mail server that trusts its own machine.

use std::net::ToSocketAddrs;

use edge::net::intercept::is_of_this_machine;
use edge::settings::{Forward, Listener, Scheme};

use super::Config;

impl Config {
    /// Warnings about settings that are allowed, and most probably not wanted.
    pub fn warnings(&self) -> Vec<String> {
        let exposed = self.listeners.iter().filter(|listener| may_open_a_relay(listener));
        let warning = |listener: &Listener| {
            format!(
                "listener {}: open to everybody, and {} does not learn the client's address: a mail server there takes all \
                 mail for its own, and may be an open relay. Set clients, forward_proxy or forward_xclient",
                listener.place.address, listener.hop.forward
            )
        };
        let unused = self.listeners.iter().flat_map(|listener| listener.unused.iter().map(move |key| (listener, key)));
        let unused = unused.map(|(listener, key)| {
            let Listener { place, .. } = listener;
            format!("listener {}: {:?} has no {key}, and nothing is done with it", place.address, listener.protocol())
        });
        exposed.map(warning).chain(unused).chain(self.store_warnings()).collect()
    }
}

/// Whether clients from elsewhere look to the next hop like this machine.
fn may_open_a_relay(listener: &Listener) -> bool {
    let exposed = listener.place.address.tcp().is_some_and(|address| !address.ip().to_canonical().is_loopback());
    let sends = listener.smtp().is_some() && listener.hop.transparent.is_none();
    let tells = listener.hop.forward_proxy.is_some() || listener.smtp().is_some_and(|own| own.forward_xclient);
    exposed && sends && !tells && listener.guests.clients.is_empty() && forwards_to_this_machine(listener)
}

/// Whether the next hop is spoken to over the loopback interface, or under an address of ours. LMTP delivers, and
/// relays nothing.
fn forwards_to_this_machine(listener: &Listener) -> bool {
    let Forward::Server { scheme: Scheme::Smtp | Scheme::Smtps, address } = &listener.hop.forward else {
        return matches!(listener.hop.forward, Forward::SmtpSocket(_));
    };
    address.to_socket_addrs().is_ok_and(|mut all| all.any(|address| is_of_this_machine(address.ip().to_canonical())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_relay_is_seen_and_others_are_not() {
        let warnings = |settings: &str| {
            let text = format!("[[listener]]\nprotocol='smtp'\n{settings}");
            Config::parse(&text, "test").unwrap().warnings().len()
        };
        assert_eq!(warnings("address='0.0.0.0:25'\nforward='smtp://127.0.0.1:10026'"), 1);
        assert_eq!(warnings("address='[::]:25'\nforward='smtp://[::1]:10026'"), 1);
        assert_eq!(warnings("address='127.0.0.1:25'\nforward='smtp://127.0.0.1:10026'"), 0);
        assert_eq!(warnings("address='0.0.0.0:25'\nforward='smtp://192.0.2.1:25'"), 0);
        assert_eq!(warnings("address='0.0.0.0:25'\nforward='lmtp://127.0.0.1:24'"), 0);
        assert_eq!(warnings("address='0.0.0.0:25'\nforward='discard:'"), 0);
        for set in ["forward_proxy='v2'", "forward_xclient=true", "clients=['192.0.2.0/24']"] {
            assert_eq!(warnings(&format!("address='0.0.0.0:25'\nforward='smtp://127.0.0.1:10026'\n{set}")), 0, "{set}");
        }
    }
}
