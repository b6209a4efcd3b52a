//! A relay that looks at nothing: what a proxy costs whatever it does.
//!
//! The order `relay=HOST:PORT target=HOST:PORT` opens the first and connects whoever comes there to the second, until the
//! program ends. Bounds: two threads and 128 KiB a connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::report::refusal;

/// Opens a relay.
pub fn answer(line: &str) -> String {
    let value = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let address = |key: &str| crate::address(value(key).ok_or(format!("{key} is missing"))?);
    let opened = address("relay").and_then(|listen| {
        let target = address("target")?;
        let listener = TcpListener::bind(listen).map_err(|error| format!("{listen}: {error}"))?;
        thread::spawn(move || listener.incoming().flatten().for_each(|client| connect(client, target)));
        Ok(listen)
    });
    match opened {
        Ok(listen) => format!("{{\"relay\": \"{listen}\"}}"),
        Err(reason) => refusal(&reason),
    }
}

/// Whoever cannot be connected is hung up on.
fn connect(client: TcpStream, target: SocketAddr) {
    let Ok(server) = TcpStream::connect(target) else { return };
    let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    for (from, to) in [(client, to_server), (server, to_client)] {
        thread::spawn(move || {
            let _ = copy(&from, &to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    to.set_nodelay(true)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_out_at_the_other_end_and_back() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let target = server.local_addr().unwrap();
        assert_eq!(answer(&format!("relay={free} target={target}")), format!("{{\"relay\": \"{free}\"}}"));
        let mut client = TcpStream::connect(free).unwrap();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let (mut heard, mut stream) = (String::new(), server.accept().unwrap().0);
        stream.read_to_string(&mut heard).unwrap();
        stream.write_all(b"answer").unwrap();
        drop(stream);
        let mut answered = String::new();
        client.read_to_string(&mut answered).unwrap();
        assert_eq!((heard.as_str(), answered.as_str()), ("question", "answer"));
        assert!(answer("relay=127.0.0.1:0").contains("target is missing"));
    }
}
