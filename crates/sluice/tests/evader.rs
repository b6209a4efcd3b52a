//! The responses of http-evader, played by an origin through the proxy: each is refused, or what is hidden in it is found.
//!
//! They are captures of suricata-verify (`SLUICE_DATA`, the pack `ids-suricata-verify`); all files below it are taken whose folder
//! says so.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::{Gateway, Wire, files};

/// One direction of a connection: the number of its first byte, whether it is the server's, and its segments.
type Half = (Option<u32>, bool, Vec<(u32, Vec<u8>)>);

/// Ends of a connection in a capture: address and port of each.
type Way = ([u8; 4], u16, [u8; 4], u16);

/// The bytes that servers have sent in a capture (pcap of Ethernet, raw IP or Linux cooked frames), each connection's in order.
fn server_streams(capture: &[u8]) -> Vec<Vec<u8>> {
    let is_little = capture[0] == 0xd4 || capture[0] == 0x4d;
    let word = |at: usize| {
        let bytes = capture[at..at + 4].try_into().unwrap();
        if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    let link_bytes = match word(20) {
        1 => 14,
        113 => 16,
        0 => 4,
        12 | 101 => 0,
        other => panic!("frames of kind {other}"),
    };
    let mut ways: BTreeMap<Way, Half> = BTreeMap::new();
    let mut at = 24;
    while at + 16 <= capture.len() {
        let length = word(at + 8) as usize;
        let packet = &capture[at + 16 + link_bytes..at + 16 + length];
        at += 16 + length;
        let (header, total) =
            (usize::from(packet[0] & 15) * 4, usize::from(u16::from_be_bytes([packet[2], packet[3]])));
        if packet[0] >> 4 != 4 || packet[9] != 6 {
            continue;
        }
        let segment = &packet[header..total];
        let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        let address = |at: usize| packet[at..at + 4].try_into().unwrap();
        let number = u32::from_be_bytes(segment[4..8].try_into().unwrap());
        let way = ways.entry((address(12), port(0), address(16), port(2))).or_default();
        if segment[13] & 2 != 0 {
            *way = (Some(number.wrapping_add(1)), segment[13] & 16 != 0, Vec::new());
        }
        let content = &segment[usize::from(segment[12] >> 4) * 4..];
        if !content.is_empty() {
            way.2.push((number, content.to_vec()));
        }
    }
    let server = ways.into_values().filter(|(_, is_server, _)| *is_server);
    server.map(|(first, _, segments)| in_order(first.unwrap_or_default(), segments)).collect()
}

fn in_order(first: u32, mut segments: Vec<(u32, Vec<u8>)>) -> Vec<u8> {
    segments.sort_by_key(|(number, _)| number.wrapping_sub(first));
    let mut stream: Vec<u8> = Vec::new();
    for (number, content) in segments {
        let known = stream.len().saturating_sub(number.wrapping_sub(first) as usize);
        stream.extend_from_slice(content.get(known..).unwrap_or_default());
    }
    stream
}

/// An origin that says what it is told to, whatever it is asked, and closes.
fn origin(said: Arc<Mutex<Vec<u8>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut asked) = (stream.unwrap(), [0; 4096]);
            _ = stream.read(&mut asked);
            _ = stream.write_all(&said.lock().unwrap());
            _ = stream.shutdown(std::net::Shutdown::Write);
            while stream.read(&mut asked).is_ok_and(|count| count > 0) {}
        }
    });
    port
}

fn captures() -> Vec<PathBuf> {
    let Ok(data) = std::env::var("SLUICE_DATA") else {
        println!("no pack: ids-suricata-verify");
        return Vec::new();
    };
    let all = files(&Path::new(&data).join("ids-suricata-verify"));
    let is_one = |path: &PathBuf| {
        path.to_string_lossy().contains("http-evader") && path.extension().is_some_and(|end| end == "pcap")
    };
    all.into_iter().filter(is_one).collect()
}

#[test]
fn no_response_of_http_evader_passes() {
    let captures = captures();
    let said: Arc<Mutex<Vec<u8>>> = Arc::default();
    let port = origin(said.clone());
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
         destinations = [\"127.0.0.0/8\"]\nports = [{port}]\n"
    ));
    let (mut found, mut refused, mut empty) = (0, 0, 0);
    let mut passed = Vec::new();
    for (number, path) in captures.iter().enumerate() {
        for stream in server_streams(&fs::read(path).unwrap()) {
            *said.lock().unwrap() = stream;
            let mut wire = Wire::connect(gateway.address);
            let host = format!("127.0.0.1:{port}");
            wire.send(
                format!("GET http://{host}/eicar.txt?{number} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            );
            let answer = wire.rest();
            let status = String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).into_owned();
            let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
            match status.as_str() {
                "403" if answer[end..].windows(9).any(|part| part == b"<!DOCTYPE") => found += 1,
                "502" => refused += 1,
                _ if answer.len() == end => empty += 1,
                status => passed.push(format!("{} {status}", path.display())),
            }
        }
    }
    println!("{} captures: {found} found, {refused} refused, {empty} without content", captures.len());
    assert!(passed.is_empty(), "{} passed: {passed:#?}", passed.len());
}
