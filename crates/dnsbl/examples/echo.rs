//! A server for measurements that looks at nothing: each query goes back as its own answer, one call in and one out. What
//! it needs is what the sockets of the kernel cost, so no server that uses them so can be faster.
//!
//!     echo ADDRESS:PORT

use std::net::UdpSocket;

/// QR in the third byte of a header, RFC 1035 section 4.1.1.
const IS_RESPONSE: u8 = 0x80;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("echo ADDRESS:PORT")?;
    let socket = UdpSocket::bind(address)?;
    let mut packet = [0; 2_048];
    loop {
        let (len, peer) = socket.recv_from(&mut packet)?;
        if len > 2 {
            packet[2] |= IS_RESPONSE;
            // One that the kernel does not take is lost, as on any network.
            let _ = socket.send_to(&packet[..len], peer);
        }
    }
}
