//! Connections that are handed over to the owner: each node takes clients, and what they say goes to the node that has the store.
//!
//! ```text
//!  owner:  sluice 1 NONCE
//!  node:   DOOR CLIENT NONCE MAC      CLIENT is an address, or - ; the MAC is over both nonces, door and client
//!  owner:  + MAC                      over both nonces; or - and the end
//! ```
//!
//! The nodes prove to each other that they know the secret of the cluster. What follows is the connection as the client made it, in the
//! clear where the client speaks in the clear.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use edge::net::stream::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const GREETING: &str = "sluice 1";

const LINE_BYTES_MAX: usize = 256;

/// How long the other node may take for its lines.
const WAIT: Duration = Duration::from_secs(5);

/// The secret of a cluster.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// A connection that another node hands over.
#[derive(Debug, PartialEq, Eq)]
pub struct Handed {
    /// The name of the door that the client came to.
    pub door: String,
    /// The client, if it came by TCP.
    pub client: Option<IpAddr>,
}

impl Secret {
    /// Reads the secret of a file.
    ///
    /// # Errors
    /// When it cannot be read, or is shorter than 16 bytes.
    pub fn read(path: &std::path::Path) -> Result<Secret, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let secret = bytes.trim_ascii();
        match secret.len() {
            0..16 => Err(format!("{}: a secret has 16 bytes at least", path.display())),
            _ => Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, secret))),
        }
    }

    /// A key for another purpose, which is named.
    pub fn derived(&self, purpose: &str) -> [u8; 32] {
        hmac::sign(&self.0, purpose.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// The secret with this text.
    #[cfg(test)]
    pub fn of(text: &str) -> Secret {
        Secret(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()))
    }

    fn mac(&self, text: &str) -> String {
        text::hex::encode(hmac::sign(&self.0, text.as_bytes()).as_ref())
    }

    fn is_right(&self, text: &str, mac: &str) -> bool {
        let mac = text::hex::decode(mac.as_bytes());
        mac.is_some_and(|mac| hmac::verify(&self.0, text.as_bytes(), &mac).is_ok())
    }
}

/// Hands a connection over to the owner at `address`.
///
/// # Errors
/// When it cannot be reached, is not ready, or does not know the secret.
pub async fn hand_over(address: SocketAddr, secret: &Secret, handed: &Handed) -> io::Result<TcpStream> {
    timeout(WAIT, introduce(address, secret, handed)).await.map_err(io::Error::from)?
}

async fn introduce(address: SocketAddr, secret: &Secret, Handed { door, client }: &Handed) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let line = line(&mut stream).await?;
    let theirs = line.strip_prefix(GREETING).ok_or_else(|| io::Error::other("no node of a cluster"))?.trim();
    let ours = nonce();
    let client = client.map_or_else(|| "-".to_owned(), |client| client.to_string());
    let mac = secret.mac(&format!("node {theirs} {ours} {door} {client}"));
    stream.write_all(format!("{door} {client} {ours} {mac}\n").as_bytes()).await?;
    let answer = self::line(&mut stream).await?;
    let mac = answer.strip_prefix("+ ").ok_or_else(|| io::Error::other("the node does not have the store"))?;
    match secret.is_right(&format!("owner {theirs} {ours}"), mac) {
        true => Ok(stream),
        false => Err(io::Error::other("the node does not know the secret of the cluster")),
    }
}

/// Takes a connection that another node hands over.
///
/// # Errors
/// When it is no node, or does not know the secret.
pub async fn take(stream: &mut Stream, secret: &Secret) -> io::Result<Handed> {
    timeout(WAIT, hear(stream, secret)).await.map_err(io::Error::from)?
}

async fn hear(stream: &mut Stream, secret: &Secret) -> io::Result<Handed> {
    let ours = nonce();
    stream.write_all(format!("{GREETING} {ours}\n").as_bytes()).await?;
    let line = line(stream).await?;
    let words: Vec<&str> = line.split(' ').collect();
    let &[door, client, theirs, mac] = words.as_slice() else { return Err(io::Error::other("no node of a cluster")) };
    if !secret.is_right(&format!("node {ours} {theirs} {door} {client}"), mac) {
        return Err(io::Error::other("the node does not know the secret of the cluster"));
    }
    stream.write_all(format!("+ {}\n", secret.mac(&format!("owner {ours} {theirs}"))).as_bytes()).await?;
    Ok(Handed { door: door.to_owned(), client: client.parse().ok() })
}

/// A line, read byte by byte: what follows it is not ours.
async fn line(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => return String::from_utf8(line).map_err(io::Error::other),
            _ if line.len() == LINE_BYTES_MAX => return Err(io::Error::other("a line without end")),
            byte => line.push(byte),
        }
    }
}

fn nonce() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("Linux has randomness");
    text::hex::encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn meet(owner: &str, node: &str) -> (io::Result<Handed>, io::Result<TcpStream>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (owner, node) = (Secret::of(owner), Secret::of(node));
        let handed = Handed { door: "imap".into(), client: Some("192.0.2.7".parse().unwrap()) };
        let taking = async {
            let mut stream = Stream::Tcp(listener.accept().await.unwrap().0);
            take(&mut stream, &owner).await
        };
        tokio::join!(taking, hand_over(address, &node, &handed))
    }

    #[tokio::test]
    async fn nodes_that_know_the_secret_meet_and_no_others() {
        let (taken, handed) = meet("0123456789abcdef", "0123456789abcdef").await;
        assert_eq!(taken.unwrap(), Handed { door: "imap".into(), client: Some("192.0.2.7".parse().unwrap()) });
        handed.unwrap();
        let (taken, handed) = meet("0123456789abcdef", "fedcba9876543210").await;
        assert!(taken.is_err() && handed.is_err());
    }
}
