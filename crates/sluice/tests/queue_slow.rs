//! Servers that are slow, or close connections at a bad time, and a gateway that hands over to another process meanwhile.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::harness::{Gateway, wait_for};

/// A server, and the subjects of mails that it has taken.
struct Hop {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Hop {
    /// It answers a final dot after a while, and has no room for a mail called "full". If it `closes`, the second mail on a connection finds that closed.
    fn start(wait: Duration, closes: bool) -> Hop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hop = Hop { address: listener.local_addr().unwrap(), taken: Arc::default() };
        let taken = hop.taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let taken = taken.clone();
                std::thread::spawn(move || _ = session(&stream, wait, closes, &taken));
            }
        });
        hop
    }

    fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }
}

fn session(mut stream: &TcpStream, wait: Duration, closes: bool, taken: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let (mut lines, mut mails) = (BufReader::new(stream).lines().map_while(Result::ok), 0);
    stream.write_all(b"220 hop.test\r\n")?;
    while let Some(line) = lines.next() {
        let verb = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        match &*verb {
            "MAIL" if closes && mails == 1 => return Ok(()),
            "DATA" => {
                stream.write_all(b"354 go\r\n")?;
                let mail: Vec<String> = lines.by_ref().take_while(|line| line != ".").collect();
                let subject = mail.iter().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
                taken.lock().unwrap().push(subject.into());
                mails += 1;
                std::thread::sleep(wait);
                let reply: &[u8] = if subject == "full" { b"452 4.3.1 full\r\n" } else { b"250 2.0.0 taken\r\n" };
                stream.write_all(reply)?;
            }
            "QUIT" => return stream.write_all(b"221 bye\r\n"),
            _ => stream.write_all(b"250 ok\r\n")?,
        }
    }
    Ok(())
}

fn gateway(hop: &Hop) -> Gateway {
    Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nrelay = \"smtp://{}\"\n\
         [store.queue]\nrelay_domains = [\"out.test\"]\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\ntrust = \"off\"\n",
        hop.address
    ))
}

fn send(gateway: &Gateway, subject: &str) {
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    wire.talk("C: RCPT TO:<b@out.test>\nS: 250 *\nC: DATA\nS: 354 *");
    wire.talk(&format!("C: Subject: {subject}\nC: \nC: body\nC: .\nS: 250 *"));
}

#[test]
fn a_process_that_follows_leaves_mails_alone_that_wait_for_an_answer() {
    let hop = Hop::start(Duration::from_secs(6), false);
    let gateway = gateway(&hop);
    send(&gateway, "slow");
    wait_for(|| (hop.taken().len() == 1).then_some(()), "the final dot");
    let before = gateway.pid();
    gateway.signal("USR2");
    wait_for(|| (gateway.pid() != before).then_some(()), "another edge");
    send(&gateway, "after");
    wait_for(|| (hop.taken().len() == 2).then_some(()), "a mail of the new process");
    wait_for(|| gateway.log().contains("mails that the process before has sent").then_some(()), "the answer");
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(hop.taken(), ["slow", "after"], "{}", gateway.log());
}

#[test]
fn a_connection_that_was_closed_as_a_mail_began_says_nothing_of_the_host() {
    let hop = Hop::start(Duration::ZERO, true);
    let gateway = gateway(&hop);
    send(&gateway, "first");
    wait_for(|| (hop.taken().len() == 1).then_some(()), "the first mail");
    send(&gateway, "second");
    wait_for(|| (hop.taken() == ["first", "second"]).then_some(()), &format!("the second mail: {}", gateway.log()));
}

#[test]
fn a_host_that_has_no_room_for_a_mail_gets_it_once_in_an_attempt() {
    let hop = Hop::start(Duration::ZERO, false);
    let gateway = gateway(&hop);
    send(&gateway, "full");
    wait_for(|| (!hop.taken().is_empty()).then_some(()), "the final dot");
    send(&gateway, "after");
    wait_for(|| hop.taken().contains(&"after".into()).then_some(()), "another mail");
    assert_eq!(hop.taken(), ["full", "after"], "{}", gateway.log());
}
