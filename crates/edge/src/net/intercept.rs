//! Where a connection was meant to go that the packet filter has sent to us.
//!
//! What was meant for a door of ours is refused: to go on there would come back here. Connections by our own hand are not
//! intercepted as long as the rules leave the OUTPUT hook alone, as those of `sluice intercept` do.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::SockRef;
use tokio::net::TcpStream;

use crate::settings::Transparent;

/// Where the client of `stream` wanted to go.
///
/// # Errors
/// When the kernel does not know, or it is one of `doors`.
pub fn destination(
    how: Transparent,
    stream: &TcpStream,
    doors: impl Iterator<Item = SocketAddr>,
) -> io::Result<SocketAddr> {
    let local = canonical(stream.local_addr()?);
    let meant = match how {
        Transparent::Tproxy => local,
        Transparent::Redirect => original(stream, local)?,
    };
    if doors.into_iter().any(|door| is_at(door, meant)) {
        return Err(io::Error::other(format!("it was meant for us, {meant}, and not for a server")));
    }
    Ok(meant)
}

/// The destination before it was rewritten. Without a rewriting, the kernel says the one that is.
fn original(stream: &TcpStream, local: SocketAddr) -> io::Result<SocketAddr> {
    let socket = SockRef::from(stream);
    let address = if local.is_ipv4() { socket.original_dst_v4() } else { socket.original_dst_v6() };
    let address = address.map_err(|error| io::Error::other(format!("it was not redirected: {error}")))?;
    address.as_socket().map(canonical).ok_or_else(|| io::Error::other("it was meant for no address of TCP"))
}

/// Whether who connects to `meant` arrives at the door at `door`.
pub fn is_at(door: SocketAddr, meant: SocketAddr) -> bool {
    let here = || door.ip().is_unspecified() && is_of_this_machine(meant.ip());
    door.port() == meant.port() && (canonical(door) == meant || here())
}

/// Whether an address is one of this machine: then the kernel would use it as the source of what goes there.
pub fn is_of_this_machine(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let route = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        // Nothing is sent by this.
        socket.connect((address, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    address.is_loopback() || address.is_unspecified() || route().is_ok_and(|source| source == address)
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_at_a_door_is_known() {
        let is_at = |door: &str, meant: &str| is_at(door.parse().unwrap(), meant.parse().unwrap());
        assert!(is_at("192.0.2.1:25", "192.0.2.1:25"));
        assert!(!is_at("192.0.2.1:25", "192.0.2.2:25"));
        assert!(
            is_at("0.0.0.0:25", "127.0.0.1:25") && is_at("[::]:25", "[::1]:25") && is_at("[::]:25", "127.0.0.2:25")
        );
        assert!(!is_at("0.0.0.0:25", "127.0.0.1:26"));
        // TEST-NET-3 is on no machine.
        assert!(!is_at("0.0.0.0:25", "203.0.113.9:25"));
    }
}
