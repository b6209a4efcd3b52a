//! Packets of a network interface (packet(7)), both ways, as copies without the head of their link.
//!
//! The kernel keeps [`WAITING_BYTES`] of them; what does not fit is dropped and counted. On a loopback link a packet is seen once.
#![allow(unsafe_code, reason = "neither rustix nor nix has a safe address, or the counts, of such sockets")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::null_mut;

use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Packets that are read at once.
const PACKETS: usize = 64;
/// Bytes of one packet: the kernel joins segments of TCP to as many.
const PACKET_BYTES: usize = 64 << 10;
/// Bytes of packets that wait to be read.
const WAITING_BYTES: usize = 64 << 20;

/// An open interface.
pub struct Tap {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

/// Packets that the kernel has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// All of them.
    pub packets: u64,
    /// Those that it has dropped since too many waited.
    pub dropped: u64,
}

impl Tap {
    /// Opens an interface by its name. A promiscuous one takes packets for other machines, too.
    ///
    /// # Errors
    /// If there is no such interface, or the process may not (`CAP_NET_RAW`).
    pub fn open(interface: &str, is_promiscuous: bool) -> io::Result<Tap> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)?;
        let index = i32::try_from(name_to_index(&socket, interface)?).map_err(io::Error::other)?;
        // Before it is bound, nothing is received.
        set_socket_recv_buffer_size_force(&socket, WAITING_BYTES)
            .or_else(|_| set_socket_recv_buffer_size(&socket, WAITING_BYTES))?;
        let tap = Tap { socket, buffer: vec![0; PACKETS * PACKET_BYTES].into() };
        if is_promiscuous {
            let membership = libc::packet_mreq {
                mr_ifindex: index,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            tap.set(libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        }
        if tap.bind(index)? == libc::ARPHRD_LOOPBACK {
            tap.set(libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        }
        Ok(tap)
    }

    /// Hands over the packets of IP that wait; the number of all packets that waited.
    ///
    /// # Errors
    /// If the interface has gone.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        // SAFETY: addresses and heads of messages are numbers and pointers, for which zeros are values.
        let (mut senders, mut heads): ([libc::sockaddr_ll; PACKETS], [libc::mmsghdr; PACKETS]) =
            unsafe { mem::zeroed() };
        let mut parts = [libc::iovec { iov_base: null_mut(), iov_len: PACKET_BYTES }; PACKETS];
        for (at, buffer) in self.buffer.chunks_exact_mut(PACKET_BYTES).enumerate() {
            parts[at].iov_base = buffer.as_mut_ptr().cast();
            let head = &mut heads[at].msg_hdr;
            head.msg_name = (&raw mut senders[at]).cast();
            head.msg_namelen = mem::size_of::<libc::sockaddr_ll>() as u32;
            (head.msg_iov, head.msg_iovlen) = (&raw mut parts[at], 1);
        }
        let socket = self.socket.as_raw_fd();
        // SAFETY: each head names one part, one piece of the buffer, and one sender, which all outlive the call and which nothing
        // else refers to.
        let count =
            unsafe { libc::recvmmsg(socket, heads.as_mut_ptr(), PACKETS as u32, libc::MSG_DONTWAIT, null_mut()) };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        };
        let all = heads.iter().zip(&senders).zip(self.buffer.chunks_exact(PACKET_BYTES)).take(count);
        for ((head, sender), buffer) in all {
            let is_internet = matches!(i32::from(u16::from_be(sender.sll_protocol)), libc::ETH_P_IP | libc::ETH_P_IPV6);
            if is_internet {
                take(&buffer[..PACKET_BYTES.min(head.msg_len as usize)]);
            }
        }
        Ok(count)
    }

    /// The packets that the kernel has counted since the last call.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn passed(&self) -> io::Result<Passed> {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = mem::size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the kernel writes at most so many bytes of numbers to the counts.
        let done = unsafe {
            let counts = (&raw mut counts).cast();
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts,
                &raw mut length,
            )
        };
        told(done)?;
        Ok(Passed { packets: counts.tp_packets.into(), dropped: counts.tp_drops.into() })
    }

    /// Begins to receive from an interface; the type of its link.
    fn bind(&self, index: i32) -> io::Result<u16> {
        // SAFETY: an address is numbers, for which zeros are values.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let mut length = mem::size_of_val(&address) as libc::socklen_t;
        let pointer = (&raw mut address).cast::<libc::sockaddr>();
        let socket = self.socket.as_raw_fd();
        // SAFETY: the address is as long as is said.
        told(unsafe { libc::bind(socket, pointer, length) })?;
        // SAFETY: the kernel writes at most so many bytes of an address to it.
        told(unsafe { libc::getsockname(socket, pointer, &raw mut length) })?;
        Ok(address.sll_hatype)
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        let length = mem::size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads so many bytes of the value.
        let done = unsafe {
            let value = std::ptr::from_ref(value).cast();
            libc::setsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, option, value, length)
        };
        told(done)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn told(done: i32) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
