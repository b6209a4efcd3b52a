//! Streams of messages through the doors of HTTP: events, and calls of gRPC, each of which goes on by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::harness::{Gateway, eicar};

/// A server of one connection, which writes what it is told and tells what it gets.
struct Server {
    address: SocketAddr,
    says: Option<Sender<Vec<u8>>>,
    hears: Receiver<Vec<u8>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (says, words) = channel::<Vec<u8>>();
        let (memory, hears) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = stream.try_clone().unwrap();
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = reader.read(&mut piece) {
                    _ = memory.send(piece[..count].to_vec());
                }
            });
            for said in words {
                // The proxy may have gone.
                _ = stream.write_all(&said);
            }
        });
        Server { address, says: Some(says), hears }
    }

    fn say(&self, bytes: &[u8]) {
        self.says.as_ref().unwrap().send(bytes.to_vec()).unwrap();
    }

    /// What it gets, until this is in it.
    fn hear(&self, until: &[u8]) -> Vec<u8> {
        let mut heard = Vec::new();
        while !holds(&heard, until) {
            let more = self.hears.recv_timeout(Duration::from_secs(30));
            heard.extend(more.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&heard))));
        }
        heard
    }

    fn gateway(&self) -> Gateway {
        Gateway::with(&format!(
            "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
             destinations = [\"127.0.0.0/8\"]\nports = [{}]\n",
            self.address.port()
        ))
    }
}

fn holds(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", content.len()).as_bytes(), content, b"\r\n"].concat()
}

/// A client, which reads with patience.
struct Client(BufReader<TcpStream>);

impl Client {
    fn begin(gateway: &Gateway, request: &str) -> Client {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        Client(BufReader::new(stream))
    }

    fn say(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// What comes, up to the end of this.
    fn hear(&mut self, until: &[u8]) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(until) {
            let mut byte = [0];
            let read = self.0.read_exact(&mut byte);
            assert!(read.is_ok(), "{read:?}: {}", String::from_utf8_lossy(&heard));
            heard.push(byte[0]);
        }
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// The rest, to the end of the connection.
    fn rest(&mut self) -> Vec<u8> {
        let mut heard = Vec::new();
        while let Ok(piece @ [_, ..]) = self.0.fill_buf() {
            let count = piece.len();
            heard.extend_from_slice(piece);
            self.0.consume(count);
        }
        heard
    }
}

fn events(server: &Server, gateway: &Gateway) -> Client {
    let url = format!("http://{}/events", server.address);
    let client = Client::begin(gateway, &format!("GET {url} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address));
    server.hear(b"\r\n\r\n");
    server.say(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    client
}

#[test]
fn each_event_goes_on_when_it_was_inspected() {
    let mut server = Server::start();
    let gateway = server.gateway();
    let mut client = events(&server, &gateway);
    // The head does not wait for the first event for long.
    assert!(client.hear(b"\r\n\r\n").contains("Content-Type: text/event-stream"));
    for _ in 0..3 {
        server.say(&chunk(b"id: 1\r\ndata: "));
        server.say(&chunk(b"first\r\n\r\ndata: sec"));
        assert!(client.hear(b"first\r\n\r\n\r\n").ends_with("\r\nid: 1\r\ndata: first\r\n\r\n\r\n"));
        server.say(&chunk(b"ond\n\n"));
        client.hear(b"data: second\n\n\r\n");
    }
    let bad = [b"data: ", &eicar()[..]].concat();
    server.say(&chunk(&bad[..40]));
    server.say(&chunk(&bad[40..]));
    server.say(&chunk(b"\n\ndata: after\n\n"));
    let rest = client.rest();
    assert!(rest.is_empty(), "broken off: {}", String::from_utf8_lossy(&rest));
    server.says = None;
    let log = gateway.wait_for_log("messages=6");
    assert!(log.contains("Eicar-Test-Signature") && log.contains("action=\"cut\""), "{log}");
}

#[test]
fn a_stream_ends_as_its_server_ends_it() {
    let server = Server::start();
    let gateway = server.gateway();
    let mut client = events(&server, &gateway);
    server.say(&chunk(b": comment\n\n"));
    assert!(client.hear(b": comment\n\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    server.say(&[chunk(b"data: without an end"), b"0\r\n\r\n".to_vec()].concat());
    assert!(client.hear(b"0\r\n\r\n").ends_with("data: without an end\r\n0\r\n\r\n"));
    gateway.wait_for_log("action=\"pass\"");
}

#[test]
fn a_page_stands_in_the_place_of_a_stream_that_begins_badly_and_of_a_file_that_is_called_one() {
    for content in [[b"data: ", &eicar()[..], b"\n\n"].concat(), [&b"MZ\n\n"[..], b"data\n\n", &eicar()].concat()] {
        let server = Server::start();
        let gateway = server.gateway();
        let mut client = events(&server, &gateway);
        content.chunks(20).for_each(|piece| server.say(&chunk(piece)));
        server.say(b"0\r\n\r\n");
        let answer = client.hear(b"\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
}

/// A message of gRPC.
fn message(flags: u8, content: &[u8]) -> Vec<u8> {
    [&[flags][..], &u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

/// A call of gRPC, whose response has begun.
fn call(server: &Server, gateway: &Gateway) -> Client {
    let url = format!("http://{}/a.B/C", server.address);
    let request = format!(
        "POST {url} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/grpc+proto\r\nGrpc-Encoding: gzip\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        server.address
    );
    let mut client = Client::begin(gateway, &request);
    server.hear(b"\r\n\r\n");
    server.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(client.hear(b"\r\n\r\n").starts_with("HTTP/1.1 200 "));
    client
}

#[test]
fn messages_of_a_call_go_both_ways_before_its_end() {
    let server = Server::start();
    let gateway = server.gateway();
    let mut client = call(&server, &gateway);
    for content in [&b"first"[..], b"", &[7; 100_000]] {
        let whole = message(0, content);
        client.say(&chunk(&whole[..3]));
        client.say(&chunk(&whole[3..]));
        let heard = server.hear(content.get(..1).unwrap_or(b"\0\0\0\0\0"));
        assert!(holds(&heard, &whole[..5]), "{heard:?}");
        server.say(&chunk(&message(0, b"answer")));
        client.hear(b"answer\r\n");
    }
    client.say(b"0\r\n\r\n");
    server.hear(b"0\r\n\r\n");
    server.say(b"0\r\nGrpc-Status: 0\r\n\r\n");
    assert!(client.hear(b"\r\n\r\n").ends_with("0\r\nGrpc-Status: 0\r\n\r\n"));
    let log = gateway.wait_for_log("messages=");
    assert!(log.contains("messages=6") && log.contains("action=\"pass\""), "{log}");
}

#[test]
fn what_is_found_in_a_message_of_a_call_ends_it() {
    let packed = |content: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    };
    for bad in [message(0, &eicar()), message(1, &packed(&eicar())), b"\x04\0\0\0\x01x".to_vec()] {
        let server = Server::start();
        let gateway = server.gateway();
        let mut client = call(&server, &gateway);
        client.say(&chunk(&message(0, b"fine")));
        server.hear(b"fine");
        client.say(&chunk(&bad[..bad.len() / 2]));
        client.say(&chunk(&bad[bad.len() / 2..]));
        assert!(client.rest().is_empty(), "broken off");
        gateway.wait_for_log("action=\"cut\"");
        let heard: Vec<u8> = server.hears.iter().flatten().collect();
        assert!(heard.len() < 5, "{heard:?}");
    }
}
