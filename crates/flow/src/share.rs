//! Whom the share of a client is counted for.

use core::net::IpAddr;

/// Bits of an IPv6 address that make a client: a network of this size is what one subscriber has (RFC 6177).
const IPV6_PREFIX: u32 = 64;

/// Returns the address that a client's share is counted under, of IPv6 its network; of this machine it stands for many
/// clients, and there is none.
pub fn share_of(client: IpAddr) -> Option<IpAddr> {
    match client.to_canonical() {
        client if client.is_loopback() => None,
        IpAddr::V6(client) => Some(IpAddr::V6((client.to_bits() & !(u128::MAX >> IPV6_PREFIX)).into())),
        client => Some(client),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_client_and_this_machine_is_none() {
        let share = |client: &str| share_of(client.parse().expect("it is an address")).map(|share| format!("{share}"));
        for (client, expected) in [
            ("2001:db8:1:2:3:4:5:6", Some("2001:db8:1:2::")),
            ("::ffff:192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("127.0.0.9", None),
            ("::ffff:127.0.0.1", None),
            ("::1", None),
        ] {
            assert_eq!(share(client).as_deref(), expected, "{client}");
        }
    }
}
