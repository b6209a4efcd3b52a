//! Responses by UDP on their way out.
//!
//! Most of what a query costs is the way of its response through the kernel. Those of a batch that go to one address and port,
//! as forwarders and spam filters ask from, make that way together: the first lengths are equal, the last may be less, and the
//! kernel or the network card cuts them into packets (`UDP_SEGMENT`, udp(7)). The others are sent in one call. Where the
//! kernel or the card refuses, each goes by itself from then on.

use std::hash::{BuildHasher as _, RandomState};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg};

/// The longest response that goes together with others: it has to pass any network unfragmented.
const SEGMENT_BYTES_MAX: usize = 1_200;

/// How many bytes go together at most; the kernel's bound is 65,507.
const TOGETHER_BYTES_MAX: usize = 60_000;

/// Sends batches of responses.
pub struct Sender {
    headers: MultiHeaders<SockaddrStorage>,
    /// Responses by client, the longest first: the client's hash above the length's complement, and which one.
    order: Vec<(u64, usize)>,
    /// Responses sent one by one.
    single: Vec<usize>,
    hash: RandomState,
    can_segment: bool,
}

impl Sender {
    /// For batches of so many.
    pub fn new(batch: usize) -> Sender {
        Sender {
            headers: MultiHeaders::preallocate(batch, None),
            order: Vec::with_capacity(batch),
            single: Vec::with_capacity(batch),
            hash: RandomState::new(),
            can_segment: true,
        }
    }

    /// Sends responses to their clients. One that the kernel does not take is passed over: the client will ask again.
    pub fn send(&mut self, socket: &OwnedFd, responses: &[Vec<u8>], clients: &[SocketAddr]) {
        self.single.clear();
        if self.can_segment && responses.len() > 1 {
            self.send_together(socket, responses, clients);
        } else {
            self.single.extend(0..responses.len());
        }
        self.send_single(socket, responses, clients);
    }

    /// Sends what goes together, and leaves the rest in `single`.
    fn send_together(&mut self, socket: &OwnedFd, responses: &[Vec<u8>], clients: &[SocketAddr]) {
        self.order.clear();
        let keys = clients.iter().zip(responses).map(|(client, response)| self.key(client, response.len()));
        let keyed: Vec<u64> = keys.collect();
        self.order.extend(keyed.into_iter().zip(0..));
        self.order.sort_unstable();
        let order = core::mem::take(&mut self.order);
        let mut rest = &order[..];
        while let Some(&(_, first)) = rest.first() {
            let count = together(rest, responses, clients);
            let (group, behind) = rest.split_at(count);
            rest = behind;
            if count == 1 || !self.can_segment || !self.send_group(socket, group, responses, clients[first]) {
                self.single.extend(group.iter().map(|&(_, at)| at));
            }
        }
        self.order = order;
    }

    /// Sends responses to one client; `false` if they have to go by themselves.
    fn send_group(
        &mut self,
        socket: &OwnedFd,
        group: &[(u64, usize)],
        responses: &[Vec<u8>],
        client: SocketAddr,
    ) -> bool {
        let slices: Vec<IoSlice<'_>> = group.iter().map(|&(_, at)| IoSlice::new(&responses[at])).collect();
        let Ok(len) = u16::try_from(slices[0].len()) else { return false };
        let segments = [ControlMessage::UdpGsoSegments(&len)];
        let client = SockaddrStorage::from(client);
        let sent = sendmsg(socket.as_raw_fd(), &slices, &segments, MsgFlags::empty(), Some(&client));
        // EINVAL: an older kernel or a smaller network; EIO: the card does not make checksums.
        self.can_segment &= !matches!(sent, Err(nix::Error::EINVAL | nix::Error::EIO | nix::Error::EOPNOTSUPP));
        self.can_segment
    }

    fn send_single(&mut self, socket: &OwnedFd, responses: &[Vec<u8>], clients: &[SocketAddr]) {
        let mut rest = &self.single[..];
        while !rest.is_empty() {
            let slices: Vec<[IoSlice<'_>; 1]> = rest.iter().map(|&at| [IoSlice::new(&responses[at])]).collect();
            let peers: Vec<_> = rest.iter().map(|&at| Some(SockaddrStorage::from(clients[at]))).collect();
            let done = sendmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter(), &peers, [], MsgFlags::empty());
            rest = &rest[done.map_or(1, |results| results.count().max(1)).min(rest.len())..];
        }
    }

    fn key(&self, client: &SocketAddr, len: usize) -> u64 {
        let len = u64::try_from(len).unwrap_or(0).min(0xffff);
        self.hash.hash_one(client) & !0xffff | (0xffff - len)
    }
}

/// How many of the first of `rest` go together.
fn together(rest: &[(u64, usize)], responses: &[Vec<u8>], clients: &[SocketAddr]) -> usize {
    let (first, len) = (rest[0].1, responses[rest[0].1].len());
    if len > SEGMENT_BYTES_MAX {
        return 1;
    }
    let most = (TOGETHER_BYTES_MAX / len.max(1)).clamp(1, 64);
    let alike = rest[1..].iter().take(most - 1).map(|&(_, at)| at).take_while(|&at| clients[at] == clients[first]);
    let same = 1 + alike.clone().take_while(|&at| responses[at].len() == len).count();
    // What is shorter ends the row.
    same + usize::from(alike.count() >= same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn every_response_reaches_its_client_whole_and_once() {
        for can_segment in [true, false] {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let peers: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
            let mut sender = Sender { can_segment, ..Sender::new(64) };
            let socket = OwnedFd::from(server);
            // Lengths that are equal, in any order, too long to go together, and of one byte.
            let lens = [40, 40, 60, 40, 1, 1_500, 60, 60, 33, 33, 1_200, 2_000, 40, 40, 7, 40];
            let responses: Vec<Vec<u8>> = (0..48_u8).map(|at| vec![at; lens[usize::from(at) % lens.len()]]).collect();
            let clients: Vec<SocketAddr> =
                (0..48).map(|at| peers[if at < 30 { at % 2 } else { 2 }].local_addr().unwrap()).collect();
            sender.send(&socket, &responses, &clients);
            for (index, peer) in peers.iter().enumerate() {
                peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                let own = clients.iter().zip(&responses).filter(|(client, _)| **client == peer.local_addr().unwrap());
                let mut expected: Vec<Vec<u8>> = own.map(|(_, response)| response.clone()).collect();
                let mut bytes = [0; 4_096];
                let mut got: Vec<Vec<u8>> =
                    expected.iter().map(|_| peer.recv(&mut bytes).map(|len| bytes[..len].to_vec()).unwrap()).collect();
                expected.sort();
                got.sort();
                assert_eq!(got, expected, "client {index}");
                peer.set_nonblocking(true).unwrap();
                assert!(peer.recv(&mut bytes).is_err(), "more than was sent");
            }
        }
    }
}
