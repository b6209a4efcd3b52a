//! The PROXY protocol, versions 1 and 2 (HAProxy's `proxy-protocol.txt`): who stands behind a relay.
//!
//! A header comes once, in front of everything else on a connection, TLS too. It is believed of those alone who are
//! known to send it, and then it has to be there. Of version 2, additions (TLV) are passed over. Not here: UNIX sockets
//! and datagrams, which say nothing of use.

use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// First bytes of a header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The longest header of version 1, its line end included.
const LINE_BYTES_MAX: usize = 107;

/// The longest header of version 2: what fits a packet, additions included.
const BYTES_MAX: usize = 1_500;

/// Result of reading a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// More has to come: so many bytes are certain to be of the header.
    Unfinished(usize),
    /// The relay speaks for itself.
    Local,
    /// The relay speaks for a client.
    Proxied {
        /// Where the client is.
        source: SocketAddr,
        /// Where it thinks it has connected to.
        destination: SocketAddr,
    },
    /// Not a header.
    Malformed,
}

/// Reads a header. To be called with what has come, beginning with nothing, and with as many more bytes as
/// [`Header::Unfinished`] says: so nothing behind the header is ever read.
pub fn read(input: &[u8]) -> Header {
    if let Some(rest) = input.strip_prefix(SIGNATURE) {
        return read_binary(rest);
    }
    match input.len() {
        // No line is shorter than "PROXY UNKNOWN" and its end.
        0..12 => Header::Unfinished(12 - input.len()),
        _ if !input.starts_with(b"PROXY ") => Header::Malformed,
        LINE_BYTES_MAX.. if !input.ends_with(b"\r\n") => Header::Malformed,
        _ => match input.strip_suffix(b"\r\n") {
            None => Header::Unfinished(1),
            Some(line) => read_line(line).unwrap_or(Header::Malformed),
        },
    }
}

fn read_line(line: &[u8]) -> Option<Header> {
    let mut words = core::str::from_utf8(line).ok()?.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(Header::Local);
    }
    let (source, destination): (IpAddr, IpAddr) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (from, to) = (port(words.next()?)?, port(words.next()?)?);
    let fits = match family {
        "TCP4" => source.is_ipv4() && destination.is_ipv4(),
        "TCP6" => source.is_ipv6() && destination.is_ipv6(),
        _ => false,
    };
    let header =
        Header::Proxied { source: SocketAddr::new(source, from), destination: SocketAddr::new(destination, to) };
    (fits && words.next().is_none()).then_some(header)
}

fn port(word: &str) -> Option<u16> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

/// Reads the part after the signature: version and command, family, length, addresses.
fn read_binary(rest: &[u8]) -> Header {
    let Some((&[command, family, high, low], rest)) = rest.split_first_chunk() else {
        return Header::Unfinished(4 - rest.len());
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if command >> 4 != 2 || length > BYTES_MAX {
        return Header::Malformed;
    }
    if rest.len() < length {
        return Header::Unfinished(length - rest.len());
    }
    match (command & 15, family) {
        (0, _) => Header::Local,
        (1, 0x11) => addresses::<4>(rest, |bytes| Ipv4Addr::from(bytes).into()),
        (1, 0x21) => addresses::<16>(rest, |bytes| Ipv6Addr::from(bytes).into()),
        // Known to the protocol, and no address of use.
        (1, _) => Header::Local,
        _ => Header::Malformed,
    }
}

fn addresses<const LENGTH: usize>(bytes: &[u8], address: impl Fn([u8; LENGTH]) -> IpAddr) -> Header {
    let read = || {
        let (source, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let (destination, rest) = rest.split_first_chunk::<LENGTH>()?;
        let (&[a, b, c, d], _) = rest.split_first_chunk()?;
        let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Some(Header::Proxied {
            source: SocketAddr::new(address(*source), from),
            destination: SocketAddr::new(address(*destination), to),
        })
    };
    read().unwrap_or(Header::Malformed)
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// The header for a client with the address that it has connected to, or for ourselves. Where the families of the two
/// differ, addresses of version 4 are written as of version 6.
pub fn write(version: Version, client: Option<(SocketAddr, SocketAddr)>) -> Vec<u8> {
    match (version, client) {
        (Version::V1, None) => Vec::from(&b"PROXY UNKNOWN\r\n"[..]),
        (Version::V1, Some((source, destination))) => write_line(source, destination),
        (Version::V2, None) => [&SIGNATURE[..], &[0x20, 0, 0, 0]].concat(),
        (Version::V2, Some((source, destination))) => write_binary(source, destination),
    }
}

fn write_line(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (from, to) = (source.port(), destination.port());
    let line = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => format!("PROXY TCP4 {source} {destination} {from} {to}\r\n"),
        (source, destination) => format!("PROXY TCP6 {} {} {from} {to}\r\n", wide(source), wide(destination)),
    };
    line.into_bytes()
}

fn write_binary(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let mut out = Vec::from(&SIGNATURE[..]);
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            out.extend_from_slice(&[0x21, 0x11, 0, 12]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
        (source, destination) => {
            out.extend_from_slice(&[0x21, 0x21, 0, 36]);
            out.extend_from_slice(&wide(source).octets());
            out.extend_from_slice(&wide(destination).octets());
        }
    }
    out.extend_from_slice(&ports);
    out
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// Fuzz body: any header. Reading ends, asks for no byte behind the header, and what was understood is written alike.
pub fn fuzz_read(data: &[u8]) {
    let mut len = 0;
    loop {
        match read(&data[..len]) {
            Header::Unfinished(more) => {
                assert!(more > 0);
                len += more;
                if len > data.len() {
                    return;
                }
            }
            Header::Proxied { source, destination } => {
                for version in [Version::V1, Version::V2] {
                    let again = write(version, Some((source, destination)));
                    assert_eq!(read(&again), Header::Proxied { source, destination });
                }
                return;
            }
            Header::Local | Header::Malformed => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a header as a host does, and returns how much of the input it took.
    fn read_from(input: &[u8]) -> (Header, usize) {
        let mut len = 0;
        loop {
            match read(&input[..len]) {
                Header::Unfinished(more) if len + more <= input.len() => len += more,
                header => return (header, len),
            }
        }
    }

    fn proxied(source: &str, destination: &str) -> Header {
        Header::Proxied { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    #[test]
    fn lines_are_read_and_nothing_behind_them() {
        for (line, header) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 56324 25\r\n", proxied("192.0.2.1:56324", "192.0.2.2:25")),
            ("PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", proxied("[2001:db8::1]:1", "[::1]:65535")),
            ("PROXY UNKNOWN\r\n", Header::Local),
            ("PROXY UNKNOWN ffff::1 whatever 1 2\r\n", Header::Local),
        ] {
            let input = alloc::format!("{line}EHLO x\r\n");
            assert_eq!(read_from(input.as_bytes()), (header, line.len()), "{line}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for line in [
            "EHLO client.test\r\n",
            "PROXY TCP4 192.0.2.1 ::1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",
            "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
        ] {
            assert_eq!(read_from(line.as_bytes()).0, Header::Malformed, "{line}");
        }
        let endless = [b"PROXY ", &[b'x'; 200][..]].concat();
        assert_eq!(read_from(&endless), (Header::Malformed, LINE_BYTES_MAX));
        let binary = |bytes: &[u8]| read_from(&[SIGNATURE, bytes].concat()).0;
        assert_eq!(binary(&[0x11, 0x11, 0, 12]), Header::Malformed, "another version");
        assert_eq!(binary(&[0x21, 0x11, 0xff, 0xff]), Header::Malformed, "too long");
        assert_eq!(binary(&[0x21, 0x11, 0, 4, 1, 2, 3, 4]), Header::Malformed, "addresses are missing");
        assert_eq!(binary(&[0x22, 0x11, 0, 0]), Header::Malformed, "an unknown command");
    }

    #[test]
    fn what_is_written_is_read_with_its_additions() {
        for (source, destination) in [("192.0.2.1:1", "192.0.2.2:25"), ("[2001:db8::1]:9", "[::1]:25")] {
            let client = Some((source.parse().unwrap(), destination.parse().unwrap()));
            let line = write(Version::V1, client);
            assert_eq!(read_from(&line), (proxied(source, destination), line.len()));
            let mut header = write(Version::V2, client);
            assert_eq!(read_from(&header), (proxied(source, destination), header.len()));
            // An addition of five bytes.
            let length = u16::from_be_bytes([header[14], header[15]]) + 5;
            header[14..16].copy_from_slice(&length.to_be_bytes());
            header.extend_from_slice(&[4, 0, 2, 0, 0]);
            assert_eq!(read_from(&[&header[..], b"EHLO"].concat()), (proxied(source, destination), header.len()));
        }
        let mixed = Some(("192.0.2.1:1".parse().unwrap(), "[::1]:25".parse().unwrap()));
        for version in [Version::V1, Version::V2] {
            assert_eq!(read_from(&write(version, mixed)).0, proxied("[::ffff:192.0.2.1]:1", "[::1]:25"));
            assert_eq!(read_from(&write(version, None)).0, Header::Local);
        }
    }
}
