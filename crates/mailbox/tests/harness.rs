//! A mail server in memory but for its volume, and clients that talk with it by a script of `C:` and `S:` lines.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mailbox::accounts::{self, Accounts};
use mailbox::queue::{self, Patience};
use mailbox::scripts::SiteScripts;
use mailbox::{File, Handle, Relay, Site, Writer};
use store::{Format, Options, Volume};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy)]
pub enum Door {
    Lmtp,
    /// The gateway of the same process, by LMTP.
    Gateway,
    Pop3,
    Imap,
    Sieve,
    Web,
}

pub struct Server {
    folder: tempfile::TempDir,
    site: Option<Arc<Site>>,
    writer: Option<Writer>,
    end: watch::Sender<bool>,
    pub relay: Option<Arc<dyn Relay>>,
    pub patience: Patience,
    pub recipients_hour_max: u32,
    pub scripts: SiteScripts,
    /// How long a command may work; as usual, if that is none.
    pub work_max: Option<Duration>,
    inspector: Option<Arc<dyn flow::Inspector>>,
    /// How long a server that ends waits for answers that it leaves to the next one.
    pub leaves: Option<Duration>,
    /// How long the server has been running when it starts.
    age: Duration,
}

impl Server {
    /// Accounts `ann` and `bob`, both with the password `secret`; `eve` has a quota of 4,000 bytes. `team` is all of them.
    pub fn start() -> Server {
        Server::start_with(None)
    }

    /// The same, which has been running for so long.
    pub fn start_aged(age: Duration) -> Server {
        Server::start_by(None, None, age)
    }

    /// The same, with somebody who sends what goes out.
    pub fn start_with(relay: Option<Arc<dyn Relay>>) -> Server {
        Server::start_for(relay, None)
    }

    /// The same, with somebody who reads mails for the index.
    pub fn start_with_index(inspector: Arc<dyn flow::Inspector>) -> Server {
        Server::start_for(None, Some(inspector))
    }

    fn start_for(relay: Option<Arc<dyn Relay>>, inspector: Option<Arc<dyn flow::Inspector>>) -> Server {
        Server::start_by(relay, inspector, Duration::ZERO)
    }

    fn start_by(relay: Option<Arc<dyn Relay>>, inspector: Option<Arc<dyn flow::Inspector>>, age: Duration) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let hash = accounts::hash(b"secret").unwrap();
        let text =
            format!("ann:{hash}:aliases=team,a.nn@example.org\nbob:{hash}:aliases=team\neve:{hash}:quota=4000\n");
        std::fs::write(folder.path().join("accounts"), text).unwrap();
        let file = File::create(&folder.path().join("volume"), 64 << 20).unwrap();
        let format = Format { segment_bytes: 1 << 20, ..Format::new(7, 1_000) };
        drop(Volume::format(file, &format).unwrap());
        let (end, ending) = watch::channel(false);
        let patience = Patience { first: 0, longest: 1, ..Patience::default() };
        let mut server = Server {
            folder,
            site: None,
            writer: None,
            end,
            relay,
            patience,
            recipients_hour_max: 0,
            scripts: SiteScripts::default(),
            work_max: None,
            inspector,
            leaves: None,
            age,
        };
        server.open(ending);
        server
    }

    fn open(&mut self, ending: watch::Receiver<bool>) {
        let volume = Volume::open(File::open(&self.path(), true).unwrap(), Options::default()).unwrap();
        let (writer, handle) = Writer::start(volume).unwrap();
        let accounts = Arc::new(Accounts::open(&self.folder.path().join("accounts")).unwrap());
        let mut site = Site::new(handle, accounts, "mail.test".into(), 30 << 20, ending);
        site.relay = self.relay.clone();
        site.patience = self.patience;
        site.recipients_hour_max = self.recipients_hour_max;
        site.scripts = self.scripts.clone();
        site.inspector = self.inspector.clone();
        site.work_max = self.work_max.unwrap_or(site.work_max);
        site.age(self.age);
        if let Some(wait) = self.leaves {
            let leavings = queue::Leavings::beside(&self.path(), wait);
            leavings.hand_over();
            site.queue.leavings = Some(leavings);
        }
        let site = Arc::new(site);
        tokio::spawn(queue::run(site.clone()));
        tokio::spawn(mailbox::indexing::run(site.clone()));
        self.site = Some(site);
        self.writer = Some(writer);
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("volume")
    }

    pub fn site(&self) -> &Site {
        self.site.as_ref().unwrap()
    }

    /// From the next start on there is nobody to read mails for the index.
    pub fn lend_no_inspector(&mut self) {
        self.inspector = None;
    }

    /// Sessions that are under way, and tasks that go on as long as the server does.
    pub fn tasks(&self) -> usize {
        Arc::strong_count(self.site.as_ref().unwrap())
    }

    /// Whether an index is being brought up to date.
    pub fn is_behind(&self) -> bool {
        !self.site().is_index_idle()
    }

    pub fn store(&self) -> &Handle {
        &self.site.as_ref().unwrap().store
    }

    /// Ends all sessions and opens the volume anew.
    pub async fn restart(&mut self) {
        self.end.send_replace(true);
        let site = self.site.take().unwrap();
        while Arc::strong_count(&site) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(site);
        self.writer.take().unwrap().join().unwrap();
        let (end, ending) = watch::channel(false);
        self.end = end;
        self.open(ending);
    }

    pub fn connect(&self, door: Door) -> Client {
        let (ours, theirs) = tokio::io::duplex(16 << 10);
        let site = self.site.clone().unwrap();
        tokio::spawn(async move {
            let client = Some("192.0.2.1".parse().unwrap());
            let _ = match door {
                Door::Lmtp => mailbox::lmtp::serve(theirs, client, mailbox::lmtp::Peer::Stranger, &site).await,
                Door::Gateway => mailbox::lmtp::serve(theirs, None, mailbox::lmtp::Peer::Lmtp, &site).await,
                Door::Pop3 => mailbox::pop3::serve(theirs, client, &site).await,
                Door::Imap => mailbox::imap::serve(theirs, client, &site).await,
                Door::Web => mailbox::webmail::serve(theirs, client, true, &site).await,
                Door::Sieve => {
                    let missing = mailbox::managesieve::Tls::Missing;
                    mailbox::managesieve::serve(theirs, client, missing, &site).await.map(drop)
                }
            };
        });
        let (read, write) = tokio::io::split(ours);
        Client { read: BufReader::new(read), write }
    }

    /// A client that has logged in.
    pub async fn imap(&self, name: &str) -> Client {
        let mut client = self.connect(Door::Imap);
        client.talk(&format!("S: * OK ...\nC: a LOGIN {name} secret\nS: a OK ...")).await;
        client
    }

    /// Delivers a mail; line ends are made CRLF.
    pub async fn deliver(&self, to: &[&str], mail: &str) {
        let mut client = self.connect(Door::Lmtp);
        client.talk("S: 220 ...\nC: LHLO client.test").await;
        client.skip_to("250 ").await;
        client.talk("C: MAIL FROM:<from@example.org>\nS: 250 ...").await;
        for to in to {
            client.talk(&format!("C: RCPT TO:<{to}>\nS: 250 ...")).await;
        }
        client.talk("C: DATA\nS: 354 ...").await;
        client.send(format!("{}\r\n.\r\n", mail.replace('\n', "\r\n")).as_bytes()).await;
        for _ in to {
            client.talk("S: 250 ...").await;
        }
        client.talk("C: QUIT\nS: 221 ...").await;
    }
}

pub struct Client {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

impl Client {
    /// Sends bytes. A closed connection shows in the next reply that is read.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.write.write_all(bytes).await;
    }

    /// A line without its end; empty at the end of the stream.
    pub async fn line(&mut self) -> String {
        let mut line = Vec::new();
        let read = self.read.read_until(b'\n', &mut line);
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("an answer").unwrap();
        String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()
    }

    pub async fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.read.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// All that comes until the other side hangs up.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = self.read.read_to_end(&mut bytes);
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("an end").unwrap();
        bytes
    }

    /// Passes over lines up to one that begins so, and returns all of them.
    pub async fn skip_to(&mut self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line().await);
            let last = lines.last().unwrap();
            assert!(!last.is_empty() || lines.len() < 10_000, "{start} does not come: {lines:?}");
            if last.starts_with(start) {
                return lines;
            }
        }
    }

    /// `C:` lines are sent, `S:` lines are expected; one that ends in `...` is the beginning of a line.
    pub async fn talk(&mut self, script: &str) {
        for line in script.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
            if let Some(line) = line.strip_prefix("C:").map(|line| line.strip_prefix(' ').unwrap_or(line)) {
                self.send(format!("{line}\r\n").as_bytes()).await;
                continue;
            }
            let wanted = line.strip_prefix("S:").expect("C: or S:").strip_prefix(' ').unwrap_or_default();
            let said = self.line().await;
            match wanted.strip_suffix("...") {
                Some(start) => assert!(said.starts_with(start.trim_end()), "wanted {wanted:?}, got {said:?}"),
                None => assert_eq!(said, wanted),
            }
        }
    }
}
