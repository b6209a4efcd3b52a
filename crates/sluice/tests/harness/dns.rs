//! A server of the DNS on this machine, which answers as it is told, well or badly.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::dns::{Data, Message, Name, Record, class, flag, frame, kind, rcode};

/// Answer to a question.
#[derive(Clone)]
pub enum Told {
    /// A text.
    Text(String),
    /// Addresses.
    Addresses(Vec<[u8; 4]>),
    /// Name servers, or mail exchangers, the best first.
    Hosts(Vec<String>),
    /// The name does not exist.
    NoName,
    /// SERVFAIL.
    Failure,
    /// Nothing at all.
    Silence,
    /// Two names that are aliases of each other.
    Circle,
    /// The text under another id, as who guesses would send it.
    WrongId(String),
    /// The text, for another name.
    WrongName(String),
    /// The text, after a while.
    Slow(Duration, String),
    /// Not a DNS message.
    Garbage,
    /// A record of a type of its own, as on the wire.
    Raw(Vec<u8>),
    /// The same as a resolver says that has validated it.
    Validated(Box<Told>),
}

/// The server, as long as the test runs.
pub struct Dns {
    /// Where it is, by UDP and TCP.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

type Answer = dyn Fn(&str, u16) -> Told + Send + Sync;

impl Dns {
    /// Answers questions by their names, in lower case, and types.
    pub fn start(answer: impl Fn(&str, u16) -> Told + Send + Sync + 'static) -> Dns {
        Dns::with(sockets(), answer)
    }

    /// The same at an address of the loopback, of which a test has one to itself.
    pub fn at(address: SocketAddr, answer: impl Fn(&str, u16) -> Told + Send + Sync + 'static) -> Dns {
        Dns::with((UdpSocket::bind(address).unwrap(), TcpListener::bind(address).unwrap()), answer)
    }

    fn with((udp, tcp): (UdpSocket, TcpListener), answer: impl Fn(&str, u16) -> Told + Send + Sync + 'static) -> Dns {
        let address = udp.local_addr().unwrap();
        let (asked, answer): (Arc<Mutex<Vec<String>>>, Arc<Answer>) = (Arc::default(), Arc::new(answer));
        let (log, told) = (asked.clone(), answer.clone());
        std::thread::spawn(move || {
            let mut packet = [0; 4_096];
            while let Ok((len, client)) = udp.recv_from(&mut packet) {
                let (packet, udp) = (packet[..len].to_vec(), udp.try_clone().unwrap());
                let (log, told) = (log.clone(), told.clone());
                std::thread::spawn(move || {
                    if let Some(response) = respond(&packet, 1_232, &log, &*told) {
                        let _ = udp.send_to(&response, client);
                    }
                });
            }
        });
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in tcp.incoming().map_while(Result::ok) {
                let (log, told) = (log.clone(), answer.clone());
                std::thread::spawn(move || by_tcp(stream, &log, &*told));
            }
        });
        Dns { address, asked }
    }

    /// The lines that name it in a configuration.
    pub fn settings(&self) -> String {
        format!("[dns]\nservers = [\"{}\"]\n", self.address)
    }

    /// Questions received, `NAME TYPE` by UDP or TCP.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A port that is free in both protocols.
fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        // A peer may ask hundreds of questions at once, and each once only.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&udp, 4 << 20);
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
            return (udp, tcp);
        }
    }
}

fn by_tcp(mut stream: TcpStream, log: &Mutex<Vec<String>>, answer: &Answer) -> Option<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut packet).ok()?;
    let response = respond(&packet, 65_535, log, answer)?;
    stream.write_all(&frame(&response)?).ok()
}

fn respond(packet: &[u8], bytes_max: usize, log: &Mutex<Vec<String>>, answer: &Answer) -> Option<Vec<u8>> {
    let query = Message::parse(packet).ok()?;
    let (name, wanted, _) = query.questions.first()?.clone();
    let labels: Vec<String> = name.labels().map(|label| String::from_utf8_lossy(label).to_lowercase()).collect();
    let shown = labels.join(".");
    log.lock().unwrap().push(format!("{shown} {wanted}"));
    let (told, validated) = match answer(&shown, wanted) {
        Told::Validated(told) => (*told, flag::AD),
        told => (told, 0),
    };
    let flags = flag::QR | flag::RD | validated;
    let mut message = Message { id: query.id, flags, questions: query.questions, ..Message::default() };
    match told {
        Told::Silence => return None,
        Told::Garbage => return Some([&packet[..2], &[0x80; 40]].concat()),
        Told::NoName => message.flags |= rcode::NXDOMAIN,
        Told::Failure => message.flags |= rcode::SERVFAIL,
        Told::Circle => {
            let other: Name = "other.circle.test".parse().unwrap();
            message.answers = vec![record(&name, Data::Cname(other.clone())), record(&other, Data::Cname(name))];
        }
        Told::WrongName(text) => message.answers = vec![record(&"else.test".parse().unwrap(), txt(&text))],
        Told::Validated(_) => {}
        Told::Raw(bytes) => {
            message.answers = vec![Record { kind: wanted, ..record(&name, Data::Other(bytes)) }];
        }
        Told::Text(text) => message.answers = vec![record(&name, txt(&text))],
        Told::Addresses(addresses) => {
            message.answers = addresses.iter().map(|&address| record(&name, Data::A(address.into()))).collect();
        }
        Told::Hosts(hosts) => {
            let data = |at: usize, host: Name| match wanted == kind::MX {
                true => Data::Mx(10 * (at as u16 + 1), host),
                false => Data::Ns(host),
            };
            let hosts = hosts.iter().enumerate();
            message.answers = hosts.map(|(at, host)| record(&name, data(at, host.parse().unwrap()))).collect();
        }
        Told::WrongId(text) => {
            message.id = !query.id;
            message.answers = vec![record(&name, txt(&text))];
        }
        Told::Slow(time, text) => {
            std::thread::sleep(time);
            message.answers = vec![record(&name, txt(&text))];
        }
    }
    let mut out = Vec::new();
    if !message.write(&mut out, bytes_max) {
        message.answers.clear();
        message.flags |= flag::TC;
        message.write(&mut out, bytes_max);
    }
    Some(out)
}

fn record(name: &Name, data: Data) -> Record {
    let kind = match &data {
        Data::Cname(_) => kind::CNAME,
        Data::A(_) => kind::A,
        Data::Ns(_) => kind::NS,
        Data::Mx(..) => kind::MX,
        _ => kind::TXT,
    };
    Record { name: name.clone(), kind, class: class::IN, ttl: 300, data }
}

/// A text in pieces of at most 255 bytes.
fn txt(text: &str) -> Data {
    Data::Txt(text.as_bytes().chunks(255).flat_map(|piece| [&[piece.len() as u8], piece].concat()).collect())
}
