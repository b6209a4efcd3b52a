//! A server of one thread over UDP, for measurements and comparisons: `serve ADDRESS NAME:TYPE:FILE...`. The program is
//! `sluice dnsbl serve`.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dnsbl::answer::{Options, Outcome, Scratch, Transport, respond};
use dnsbl::zone::dataset::Loader;
use dnsbl::zone::{Spec, Zones};

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
    eprintln!("loaded in {:?}", began.elapsed());
    let options = Options::default();
    let (mut scratch, mut out, mut packet) = (Scratch::default(), Vec::new(), [0; 4_096]);
    loop {
        let (len, peer) = socket.recv_from(&mut packet)?;
        let from = (peer.ip(), Transport::Udp);
        if let Outcome::Respond(_) = respond(&zones, &options, &packet[..len], from, now(), &mut scratch, &mut out) {
            let _ = socket.send_to(&out, peer);
        }
    }
}
