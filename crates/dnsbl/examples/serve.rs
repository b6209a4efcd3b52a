//! A server of one thread over UDP, for measurements and comparisons: `serve ADDRESS NAME:TYPE:FILE...`. The program is
//! `sluice dnsbl serve`.

use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dnsbl::answer::{Options, Outcome, Scratch, Transport, respond};
use dnsbl::zone::loader::Loader;
use dnsbl::zone::{Spec, Zones};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg, setsockopt, sockopt};

/// How many packets are read at once.
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("serve ADDRESS NAME:TYPE:FILE...")?;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let began = Instant::now();
    let mut read = HashMap::new();
    let mut parts = Vec::new();
    for argument in arguments {
        let spec: Spec = argument.parse()?;
        let key = (spec.kind, spec.files.clone());
        if !read.contains_key(&key) {
            let mut loader = Loader::new(spec.kind);
            for file in &spec.files {
                let changed = std::fs::metadata(file)?.modified()?.duration_since(UNIX_EPOCH)?.as_secs();
                loader.begin(file, changed);
                let mut bytes = std::fs::File::open(file)?;
                let mut buffer = vec![0; 1 << 16];
                loop {
                    match std::io::Read::read(&mut bytes, &mut buffer)? {
                        0 => break,
                        count => loader.feed(&buffer[..count]),
                    }
                }
                loader.end();
            }
            let (dataset, warnings, count) = loader.finish(now())?;
            eprintln!("{argument}: {} listings, {} bytes, {count} warnings", dataset.len(), dataset.memory_bytes());
            warnings.iter().for_each(|warning| eprintln!("{warning}"));
            read.insert(key.clone(), Arc::new(dataset));
        }
        parts.push((spec.zone, read.get(&key).cloned()));
    }
    drop(read);
    let zones = Zones::new(parts);
    let socket = UdpSocket::bind(address)?;
    // As the program has them.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &(4 << 20));
    let _ = setsockopt(&socket, sockopt::SndBuf, &(4 << 20));
    eprintln!("loaded in {:?}", began.elapsed());
    let options = Options::default();
    let mut scratch = Scratch::default();
    let mut packets = vec![[0_u8; 1_024]; BATCH];
    let mut responses = vec![Vec::new(); BATCH];
    let mut incoming = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    let mut outgoing = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    loop {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = packets.iter_mut().map(|packet| [IoSliceMut::new(packet)]).collect();
        let flags = MsgFlags::MSG_WAITFORONE;
        let received = recvmmsg(socket.as_raw_fd(), &mut incoming, slices.iter_mut(), flags, None)?;
        let read: Vec<(usize, Option<SockaddrStorage>)> =
            received.map(|message| (message.bytes, message.address)).collect();
        let mut peers = Vec::with_capacity(BATCH);
        let seconds = now();
        for (packet, (len, peer)) in packets.iter().zip(read) {
            let Some(client) = peer.and_then(|peer| peer.as_sockaddr_in().map(|peer| peer.ip())) else { continue };
            let (from, out) = ((client.into(), Transport::Udp), &mut responses[peers.len()]);
            let outcome = respond(&zones, &options, &packet[..len], from, seconds, &mut scratch, out);
            if let Outcome::Respond(_) = outcome {
                peers.push(peer);
            }
        }
        let slices: Vec<[IoSlice<'_>; 1]> = responses[..peers.len()].iter().map(|out| [IoSlice::new(out)]).collect();
        let _ = sendmmsg(socket.as_raw_fd(), &mut outgoing, slices.iter(), &peers, [], MsgFlags::empty());
    }
}
