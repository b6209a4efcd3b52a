//! A sender for measurements: keeps a number of queries under way at a server and counts the answers.
//!
//!     flood ADDRESS:PORT FILE [SECONDS [SOCKETS [WINDOW]]]
//!
//! Each line of FILE is a name and A or TXT, as for dnsperf. A query that gets no answer in a second counts as lost.

use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};
use proto::dns::{Request, class, kind};

const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, file, numbers @ ..] = &arguments[..] else {
        return Err("flood ADDRESS:PORT FILE [SECONDS [SOCKETS [WINDOW]]]".into());
    };
    let address: SocketAddr = address.parse()?;
    let number = |at: usize, default: u64| numbers.get(at).map_or(Ok(default), |text| text.parse());
    let (seconds, count, window) = (number(0, 5)?, number(1, 8)?, usize::try_from(number(2, 256)?)?);
    let text = std::fs::read_to_string(file)?;
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for line in text.lines() {
        let (name, asked) = line.split_once(' ').ok_or("a line without a type")?;
        let asked = if asked == "TXT" { kind::TXT } else { kind::A };
        let id = u16::try_from(packets.len() % 65_536)?;
        let mut packet = Request::new(id, name.parse()?, asked, class::IN).packet();
        // Without EDNS, as older resolvers ask.
        packet.truncate(packet.len() - 11);
        packet[11] = 0;
        packets.push(packet);
    }
    let mut sockets = Vec::new();
    for _ in 0..count {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(address)?;
        sockets.push((socket, 0_usize, Instant::now()));
    }
    let mut buffers = vec![[0_u8; 2_048]; BATCH];
    let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    let (mut next, mut sent, mut answered, mut lost) = (0, 0_u64, 0_u64, 0_u64);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        for (socket, open, heard) in &mut sockets {
            let batch = BATCH.min(window.saturating_sub(*open));
            if batch > 0 {
                let slices: Vec<[IoSlice<'_>; 1]> =
                    (0..batch).map(|at| [IoSlice::new(&packets[(next + at) % packets.len()])]).collect();
                let peers = vec![None; batch];
                let done =
                    sendmmsg(socket.as_raw_fd(), &mut headers, slices.iter(), &peers, [], MsgFlags::MSG_DONTWAIT)
                        .map_or(0, Iterator::count);
                next += done;
                *open += done;
                sent += u64::try_from(done)?;
            }
            let mut slices: Vec<[IoSliceMut<'_>; 1]> =
                buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
            let flags = MsgFlags::MSG_DONTWAIT;
            let count =
                recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None).map_or(0, Iterator::count);
            answered += u64::try_from(count)?;
            *open = open.saturating_sub(count);
            if count > 0 {
                *heard = Instant::now();
            } else if *open > 0 && heard.elapsed() > Duration::from_secs(1) {
                lost += u64::try_from(*open)?;
                *open = 0;
            }
        }
    }
    let rate = answered * 1_000 / u64::try_from(began.elapsed().as_millis())?.max(1);
    println!("{sent} sent, {answered} answered, {lost} lost, {rate} a second");
    Ok(())
}
