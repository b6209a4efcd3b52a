//! Tests of the memory that inspections hold together.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use crate::harness::{Gateway, base64, free_port, mail_with, wait_for};

/// Size of the pool, of which one inspection may hold a quarter.
const POOL_BYTES: usize = 8 << 20;

/// Packed so that its reader needs a dictionary of so many bytes.
fn packed(bytes: u32) -> Vec<u8> {
    let noise: Vec<u8> = (0..bytes).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut xz = Command::new("xz").args(["-6", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = xz.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&noise).unwrap());
    let packed = xz.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    packed
}

fn gateway() -> (Gateway, SocketAddr) {
    let metrics = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let head = format!(
        "[resources]\ninspection_pool_bytes = {POOL_BYTES}\n[metrics]\naddress = \"{metrics}\"\n\
         [clamd]\naddresses = [\"127.0.0.1:0\"]"
    );
    (Gateway::start_with(&head, "smtp", "discard:", ""), metrics)
}

fn free_bytes(metrics: SocketAddr) -> usize {
    let mut page = String::new();
    let mut stream = TcpStream::connect(metrics).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("sluice_inspection_pool_free_bytes "));
    line.expect("the number is shown").parse().unwrap()
}

#[test]
fn a_mail_that_wants_too_much_memory_may_come_again_and_others_go_through() {
    let (gateway, metrics) = gateway();
    let (modest, greedy) = (packed(500_000), packed(5_000_000));
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    for (content, wanted) in
        [(&modest, "250 "), (&greedy, "451 4.3.2 No memory for the inspection now"), (&modest, "250 ")]
    {
        let reply = wire.transaction(&mail_with("base64", "a.xz", &base64(content)));
        assert!(reply.starts_with(wanted), "{reply}");
    }
    wait_for(|| (free_bytes(metrics) == POOL_BYTES).then_some(()), "everything to be given back");
}

#[test]
fn clients_of_clamd_are_told_so_in_its_words() {
    let (gateway, metrics) = gateway();
    let clamd = gateway.addresses.iter().find(|&&address| address != gateway.address && address != metrics);
    for (content, wanted) in
        [(packed(500_000), "stream: OK\0"), (packed(5_000_000), "stream: Can't allocate memory ERROR\0")]
    {
        let mut stream = TcpStream::connect(clamd.expect("the door is open")).unwrap();
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        stream.write_all(&[b"zINSTREAM\0", &length[..], &content, &[0; 4]].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, wanted);
    }
    wait_for(|| (free_bytes(metrics) == POOL_BYTES).then_some(()), "everything to be given back");
}
