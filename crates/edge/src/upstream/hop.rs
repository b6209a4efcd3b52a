//! Where mail goes: one message at a time, to a server, into a Maildir, or nowhere.

use std::path::PathBuf;

use proto::smtp::{MailFrom, RcptTo, Reply};

use super::maildir::Delivery;
use super::route::Route;
use super::smtp_hop::{Leases, Peer, SmtpHop};
use crate::settings::Forward;

/// A next hop, leased for one message.
pub enum Hop {
    /// A server.
    Smtp(Box<SmtpHop>),
    /// A Maildir.
    Maildir(Maildir),
    /// Nowhere.
    Discard {
        /// Recipients that were taken.
        recipients: u32,
    },
}

/// A Maildir, and the mail on its way into it.
pub struct Maildir {
    folder: PathBuf,
    hostname: String,
    delivery: Option<Delivery>,
    recipients: u32,
    /// A carriage return was held back: it is written unless a line feed follows.
    carriage_return: bool,
}

impl Hop {
    /// Leases a hop, and hands it the sender and the first recipient. The reply is the hop's to that recipient, or to
    /// what it refused before.
    pub async fn lease(
        route: &Route,
        hostname: &str,
        leases: &Leases,
        mail: &MailFrom,
        rcpt: &RcptTo,
        peer: &Peer<'_>,
    ) -> (Option<Hop>, Reply) {
        let taken = Reply::new(250, (2, 1, 5), "Ok");
        let Some((address, protocol)) = route.server() else {
            let Forward::Maildir(folder) = &route.forward else { return (Some(Hop::Discard { recipients: 1 }), taken) };
            let (folder, hostname) = (folder.clone(), hostname.into());
            let maildir = Maildir { folder, hostname, delivery: None, recipients: 1, carriage_return: false };
            return (Some(Hop::Maildir(maildir)), taken);
        };
        let leased = SmtpHop::lease(&address, protocol, route, hostname, leases, mail, rcpt, peer).await;
        match leased {
            Ok((hop, reply)) => (Some(Hop::Smtp(Box::new(hop))), reply),
            Err(reply) => (None, reply),
        }
    }

    /// Learns what a hop offers, if it is a server.
    ///
    /// # Errors
    /// Why it cannot be spoken to, as a client is told.
    pub async fn probe(route: &Route, hostname: &str, leases: &Leases) -> Result<(), Reply> {
        match route.server() {
            Some((address, protocol)) => SmtpHop::probe(&address, protocol, route, hostname, leases).await,
            None => Ok(()),
        }
    }

    /// Learns what a hop offers, once: others wait for who does, and nobody waits if it was not to be learned.
    pub async fn know(route: &Route, hostname: &str, leases: &Leases) {
        route.facts.ask(Hop::probe(route, hostname, leases)).await;
    }

    /// A connection of one client's own, over which it may log in; one that waits, where they are all this client's.
    ///
    /// # Errors
    /// As [`Hop::probe`], and where the hop is no server.
    pub async fn open(route: &Route, hostname: &str, leases: &Leases, peer: &Peer<'_>) -> Result<SmtpHop, Reply> {
        if let Some(hop) = leases.take(&route.key).filter(|_| route.is_private) {
            return Ok(hop);
        }
        match route.server() {
            Some((address, protocol)) => SmtpHop::open(&address, protocol, route, hostname, peer).await,
            None => Err(Reply::new(454, (4, 7, 0), "Authentication not available")),
        }
    }

    /// Hands on another recipient.
    pub async fn recipient(&mut self, rcpt: &RcptTo) -> Reply {
        match self {
            Hop::Smtp(hop) => hop.recipient(rcpt).await,
            Hop::Maildir(Maildir { recipients, .. }) | Hop::Discard { recipients } => {
                *recipients += 1;
                Reply::new(250, (2, 1, 5), "Ok")
            }
        }
    }

    /// Makes ready for content.
    ///
    /// # Errors
    /// The hop's refusal.
    pub async fn begin(&mut self) -> Result<(), Reply> {
        match self {
            Hop::Smtp(hop) => hop.begin().await,
            Hop::Maildir(maildir) => {
                let delivery = Delivery::begin(&maildir.folder, &maildir.hostname).await;
                maildir.delivery = Some(delivery.map_err(|error| disk(&error))?);
                Ok(())
            }
            Hop::Discard { .. } => Ok(()),
        }
    }

    /// Hands on content, whose line ends are CRLF.
    ///
    /// # Errors
    /// When the hop has gone; nothing of the message is delivered then.
    pub async fn write(&mut self, content: &[u8]) -> Result<(), Reply> {
        match self {
            Hop::Smtp(hop) => hop.write(content).await,
            Hop::Maildir(maildir) => maildir.write(content).await.map_err(|error| disk(&error)),
            Hop::Discard { .. } => Ok(()),
        }
    }

    /// Sends what `write` has collected.
    ///
    /// # Errors
    /// As [`Hop::write`].
    pub async fn flush(&mut self) -> Result<(), Reply> {
        match self {
            Hop::Smtp(hop) => hop.push().await,
            Hop::Maildir(_) | Hop::Discard { .. } => Ok(()),
        }
    }

    /// Ends the content; from here on the message may be delivered. Returns the hop's reply: for all recipients, or for the
    /// first where there is [`another`](Hop::another).
    pub async fn commit(&mut self) -> Reply {
        match self {
            Hop::Smtp(hop) => hop.commit().await,
            Hop::Maildir(maildir) => {
                let delivery = maildir.delivery.take().expect("the content has begun");
                match delivery.commit().await {
                    Ok(()) => Reply::new(250, (2, 0, 0), "Delivered"),
                    Err(error) => disk(&error),
                }
            }
            Hop::Discard { .. } => Reply::new(250, (2, 0, 0), "Discarded"),
        }
    }

    /// The hop's reply for the next recipient, where it gives one for each.
    pub async fn another(&mut self) -> Option<Reply> {
        match self {
            Hop::Smtp(hop) => hop.another().await,
            Hop::Maildir(_) | Hop::Discard { .. } => None,
        }
    }

    /// Whether it will have to be waited for.
    pub fn is_late(&self) -> bool {
        matches!(self, Hop::Smtp(hop) if hop.is_late())
    }

    /// Drops the message before its end, so that nothing of it is delivered, and gives back the lease if it can be
    /// used again.
    pub async fn abandon(self, leases: &Leases) {
        if let Hop::Smtp(hop) = self {
            hop.abandon(leases).await;
        }
    }

    /// Gives back the lease after the message.
    pub fn release(self, leases: &Leases) {
        if let Hop::Smtp(hop) = self {
            hop.release(leases);
        }
    }
}

impl Maildir {
    async fn write(&mut self, content: &[u8]) -> std::io::Result<()> {
        let mut lines = Vec::with_capacity(content.len() + 1);
        for &byte in content {
            if std::mem::take(&mut self.carriage_return) && byte != b'\n' {
                lines.push(b'\r');
            }
            match byte {
                b'\r' => self.carriage_return = true,
                byte => lines.push(byte),
            }
        }
        self.delivery.as_mut().expect("the content has begun").write(&lines).await
    }
}

fn disk(error: &std::io::Error) -> Reply {
    tracing::error!(%error, "cannot write to the Maildir");
    Reply::new(451, (4, 3, 0), "Cannot store the message now")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::TcpListener;

    use super::*;
    use crate::settings::{Target, Tls};

    /// Greets after a while; how many connections it has had.
    async fn serve(listener: TcpListener) -> u32 {
        let mut count = 0;
        while let Ok(Ok((stream, _))) = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await {
            count += 1;
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let mut stream = BufReader::new(stream);
                stream.write_all(b"220 hop.test\r\n").await.unwrap();
                stream.read_line(&mut String::new()).await.unwrap();
                stream.write_all(b"250-hop.test\r\n250-DSN\r\n250 SMTPUTF8\r\n").await.unwrap();
                let _ = stream.read_line(&mut String::new()).await;
            });
        }
        count
    }

    #[tokio::test]
    async fn clients_wait_for_the_one_who_asks_what_a_hop_offers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let forward = format!("smtp://{}", listener.local_addr().unwrap()).parse().unwrap();
        let route = Route::new(&Target::new(forward), &Tls::default()).unwrap();
        let served = tokio::spawn(serve(listener));
        let leases = Leases::default();
        let client = || async {
            Hop::know(&route, "mx.test", &leases).await;
            route.facts.extensions().is_some_and(|hop| hop.smtputf8 && hop.dsn)
        };
        assert_eq!(tokio::join!(client(), client(), client()), (true, true, true));
        assert_eq!(served.await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_hop_that_is_not_there_is_asked_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let route = Route::new(&Target::new(format!("smtp://{address}").parse().unwrap()), &Tls::default()).unwrap();
        let leases = Leases::default();
        Hop::know(&route, "mx.test", &leases).await;
        let _listener = TcpListener::bind(address).await.unwrap();
        let again = Hop::know(&route, "mx.test", &leases);
        tokio::time::timeout(Duration::from_millis(200), again).await.expect("nobody waits again");
    }
}
