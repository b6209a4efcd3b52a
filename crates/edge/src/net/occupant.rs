//! Occupant of an address that cannot be bound: read from `/proc/net/tcp`, and, as far as we may look, from the
//! descriptors of other programs.
//!
//! It serves a message to people, and the question whether the address is our own. Nothing is decided for others by it:
//! the kernel has refused already.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket that listens where we want to.
#[derive(Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The number of its user.
    user: u32,
    /// The program that has it, where that may be seen.
    program: Option<Program>,
}

#[derive(Debug, PartialEq, Eq)]
struct Program {
    pid: u32,
    name: String,
}

impl Occupant {
    /// Whether the socket is one of ours.
    pub fn is_us(&self) -> bool {
        self.program.as_ref().is_some_and(|program| program.pid == std::process::id())
    }
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program {
            Some(Program { pid, name }) => write!(f, "{name} (process {pid})"),
            None => write!(f, "a program of user {}", self.user),
        }
    }
}

/// Listeners whose address overlaps with `wanted`; none where the system does not tell.
pub fn of(wanted: SocketAddr) -> Vec<Occupant> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(Row::parse);
    let occupied = rows.filter(|row| row.overlaps(wanted));
    occupied.map(|row| Occupant { user: row.user, program: program_with(row.inode) }).collect()
}

/// A line of `/proc/net/tcp` (proc_net_tcp) about a socket that listens.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    address: SocketAddr,
    user: u32,
    inode: u64,
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        const LISTENING: &str = "0A";
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if *fields.get(3)? != LISTENING {
            return None;
        }
        let (address, port) = fields.get(1)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let address = SocketAddr::new(ip(address)?, port);
        Some(Row { address, user: fields.get(7)?.parse().ok()?, inode: fields.get(9)?.parse().ok()? })
    }

    /// Whether the kernel keeps one from the other; a socket for all addresses of IPv6 has those of IPv4 too.
    fn overlaps(&self, wanted: SocketAddr) -> bool {
        let (ours, theirs) = (wanted.ip().to_canonical(), self.address.ip().to_canonical());
        let same = ours == theirs || ours.is_unspecified() || theirs.is_unspecified();
        self.address.port() == wanted.port() && same
    }
}

/// An address as words of 32 bits in the order of this machine's bytes.
fn ip(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// The program one of whose descriptors is this socket. Ours is looked at first.
fn program_with(inode: u64) -> Option<Program> {
    let wanted = format!("socket:[{inode}]");
    let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let pid = std::iter::once(std::process::id()).chain(pids).find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| link.as_os_str() == wanted.as_str())
    })?;
    let file = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // What was replaced by a newer one since it was started.
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    let name = name.chars().map(|char| if char.is_ascii_graphic() { char } else { '?' }).collect();
    Some(Program { pid, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_kernel_is_read() {
        let line =
            "   1: 0100007F:0019 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 4711 1 0";
        let row = Row::parse(line).unwrap();
        assert_eq!(row, Row { address: "127.0.0.1:25".parse().unwrap(), user: 101, inode: 4711 });
        let overlapping = ["127.0.0.1:25", "0.0.0.0:25", "[::]:25", "[::ffff:127.0.0.1]:25"];
        assert!(overlapping.iter().all(|wanted| row.overlaps(wanted.parse().unwrap())));
        assert!(!row.overlaps("127.0.0.1:26".parse().unwrap()) && !row.overlaps("127.0.0.2:25".parse().unwrap()));
        assert_eq!(Row::parse(&line.replace(" 0A ", " 01 ")), None);
        let sixth =
            "0: 000080FE000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 5";
        assert_eq!(Row::parse(sixth).unwrap().address, "[fe80::1]:8080".parse().unwrap());
    }

    #[test]
    fn our_own_socket_is_known() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let occupants = of(socket.local_addr().unwrap());
        assert!(occupants.len() == 1 && occupants[0].is_us(), "{occupants:?}");
        drop(socket);
    }
}
