//! State that all sessions share.

use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime};

use ::jmap::Tables;
use ::webmail::session::Sessions;
use flow::Inspector;
use store::{Error, Transaction, Usage};
use tokio::sync::{Semaphore, watch};

use crate::accounts::{Account, Accounts};
use crate::behind::Behind;
use crate::clock::Clock;
use crate::discovery::Discovery;
use crate::feedback::Feedback;
use crate::file::File;
use crate::guest::Seats;
use crate::in_flight::InFlight;
use crate::learner::Learner;
use crate::login::Logins;
use crate::numbers::Numbers;
use crate::outbox::Queue;
use crate::outbox::schedule::Limits;
use crate::rates::Rates;
use crate::recent::Recents;
use crate::relay::{Patience, Relay};
use crate::remote::Remote;
use crate::rewriter::Rewriter;
use crate::scripts::{Compiled, SiteScripts};
use crate::signer::Signer;
use crate::turns::Turns;
use crate::webauthn::Challenges;
use crate::writer::Handle;

/// Mails over which scripts run at a time: each is held, up to 2 MiB of it.
const FILTERS_MAX: usize = 4;

/// Accounts of which a message is read apart, to be told of, at a time.
const READERS_MAX: usize = 32;

/// Pages of one account that are made at a time.
const PAGES_OF_ONE_MAX: usize = 4;

/// Passwords and codes of users who have logged in that are checked at a time.
const CHECKS_MAX: usize = 8;

/// Pages that wait for other servers at a time: each may hold 30 MiB of pictures.
const FETCHES_MAX: usize = 8;

/// How long a command may work.
const WORK_MAX: Duration = Duration::from_secs(60);

/// Sessions that are compressed at a time: each takes 200 KiB more.
const COMPRESSED_MAX: usize = 256;

/// A mail server: its store, its accounts, its name.
pub struct Site {
    /// The store.
    pub store: Handle,
    /// Accounts of the mail server.
    pub accounts: Arc<Accounts>,
    /// Login checks, and their throttle.
    pub logins: Logins,
    /// Hostname in greetings.
    pub hostname: String,
    /// The largest message, in bytes.
    pub message_bytes_max: u64,
    /// Whether spam goes to the mailbox for junk, where no script says otherwise.
    pub junk: bool,
    /// Learns from mail that is moved into the mailbox for junk, and out of it.
    pub learner: Option<Arc<dyn Learner>>,
    /// Sends redirected mails and answers of scripts.
    pub relay: Option<Arc<dyn Relay>>,
    /// The signer of mail that accounts here send.
    pub signer: Option<Arc<dyn Signer>>,
    /// The rewriter of senders of mail that scripts forward.
    pub rewriter: Option<Arc<dyn Rewriter>>,
    /// Time for which the queue tries to send a mail.
    pub patience: Patience,
    /// Mail that waits to go out.
    pub queue: Queue,
    /// Domains that mail of anybody is relayed to: `example.org`, and `.example.org` for those below it.
    pub relay_domains: Vec<String>,
    /// Where recipients report mail from here, and whose reports count.
    pub feedback: Option<Feedback>,
    /// Recipients that one login may send to in an hour; 0 is no bound.
    pub recipients_hour_max: u32,
    /// Recipients that logins have sent to.
    pub(crate) rates: Rates,
    /// Extracts the text of mails for the index; without it, searches read mails.
    pub inspector: Option<Arc<dyn Inspector>>,
    /// The way to servers that mails name.
    pub remote: Option<Arc<dyn Remote>>,
    /// Inspector of mails that accounts write and no door has inspected, and of pictures from other servers.
    pub guard: Option<Arc<dyn Inspector>>,
    /// Accounts whose index is not up to date.
    pub(crate) behind: Behind,
    /// Recent messages of each mailbox.
    pub(crate) recents: Recents,
    /// Scripts of the site.
    pub scripts: SiteScripts,
    /// Active scripts.
    pub(crate) compiled: Compiled,
    /// Mails over which scripts run at a time, by account.
    pub(crate) filters: Arc<Turns<String>>,
    /// Commands that search, list and sort, by account: one of each, and of all as many as there are processors.
    pub(crate) workers: Arc<Turns<u32>>,
    /// Commands that read in a message, by account.
    pub(crate) readers: Arc<Turns<u32>>,
    /// Changes of many messages, by account: one at a time, so that those of few and deliveries are not behind many.
    pub(crate) changes: Arc<Turns<u32>>,
    /// Pages that are made, by account.
    pub(crate) pages: Arc<Turns<u32>>,
    /// Passwords and codes of users who have logged in, by account: they wait as guesses do, and pages do not wait for them.
    pub(crate) checks: Arc<Turns<u32>>,
    /// Pages that wait for other servers, by account: other pages do not wait for them.
    pub(crate) fetches: Arc<Turns<u32>>,
    /// Memory of requests and answers of browsers and of clients of JMAP, by account.
    pub(crate) in_memory: Arc<InFlight>,
    /// Snapshots and uploads of clients of JMAP.
    pub(crate) jmap: Mutex<Tables>,
    /// The doors that programs are told of.
    pub discovery: Discovery,
    /// Sessions of browsers.
    pub(crate) browsers: Mutex<Sessions>,
    /// Challenges for passkeys, and second steps of logins that have begun.
    pub(crate) challenges: Challenges,
    /// How long such a command may work.
    pub work_max: Duration,
    /// The numbers of this server.
    pub numbers: Arc<Numbers>,
    /// Sessions by account.
    pub(crate) seats: Arc<Seats>,
    /// Sessions that may be compressed.
    pub(crate) compressed: Arc<Semaphore>,
    /// True when sessions are to come to an end.
    pub ending: watch::Receiver<bool>,
    clock: Clock,
    /// Content that is in no mailbox yet.
    pub(crate) in_flight: Arc<InFlight>,
}

impl Site {
    /// A server that begins.
    pub fn new(
        store: Handle,
        accounts: Arc<Accounts>,
        hostname: String,
        message_bytes_max: u64,
        ending: watch::Receiver<bool>,
    ) -> Site {
        let in_flight = InFlight::new(store.geometry(), message_bytes_max);
        let logins = Logins::new(accounts.clone());
        logins.look_in(store.clone());
        Site {
            store,
            accounts,
            logins,
            hostname,
            message_bytes_max,
            junk: true,
            learner: None,
            relay: None,
            signer: None,
            rewriter: None,
            patience: Patience::default(),
            queue: Queue::new(Limits::default()),
            relay_domains: Vec::new(),
            feedback: None,
            recipients_hour_max: 0,
            rates: Rates::default(),
            inspector: None,
            remote: None,
            guard: None,
            behind: Behind::default(),
            recents: Recents::default(),
            scripts: SiteScripts::default(),
            compiled: Compiled::default(),
            filters: Turns::new(FILTERS_MAX),
            workers: Turns::new(available_parallelism().map_or(2, NonZero::get).max(2)),
            readers: Turns::new(READERS_MAX),
            changes: Turns::new(1),
            pages: Turns::with(READERS_MAX, PAGES_OF_ONE_MAX),
            checks: Turns::new(CHECKS_MAX),
            fetches: Turns::new(FETCHES_MAX),
            in_memory: InFlight::in_memory(),
            jmap: Mutex::default(),
            discovery: Discovery::default(),
            browsers: Mutex::default(),
            challenges: Challenges::default(),
            work_max: WORK_MAX,
            numbers: Arc::default(),
            seats: Arc::default(),
            compressed: Arc::new(Semaphore::new(COMPRESSED_MAX)),
            ending,
            clock: Clock::start(),
            in_flight,
        }
    }

    /// Notes the counts of recipients for the process that serves the store next.
    pub async fn keep_rates(&self) {
        self.rates.keep(&self.store, seconds()).await;
    }

    /// Whether an account may send to so many more recipients within this hour, which are counted then.
    pub(crate) fn may_send(&self, account: &str, recipients: u32, most: u32) -> bool {
        self.rates.take(&self.store.state(), account, recipients, most, seconds())
    }

    /// How full the store is.
    ///
    /// # Errors
    /// When the writer is gone.
    pub async fn usage(&self) -> Result<Usage, Error> {
        self.store.usage().await
    }

    /// Whether a domain, in lower case, is this host, or one of the addresses of accounts in the file.
    pub(crate) fn is_home(&self, domain: &str) -> bool {
        domain.eq_ignore_ascii_case(&self.hostname) || self.accounts.directory().has_domain(domain)
    }

    /// Turns that sessions have had so far, to work and to read.
    pub fn turns(&self) -> u64 {
        self.workers.count() + self.readers.count()
    }

    /// Accounts whose index waits to be brought up to date.
    pub fn behind_count(&self) -> usize {
        self.behind.count()
    }

    /// Whether no index is being made, and none waits for it.
    pub fn is_index_idle(&self) -> bool {
        self.behind.is_idle()
    }

    /// The time that protocol halves are told, in milliseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// When a time of theirs is.
    pub(crate) fn at(&self, deadline: u64) -> tokio::time::Instant {
        self.clock.at(deadline).into()
    }

    /// Pretends that the server began so much earlier: for tests of one that runs for years.
    pub fn age(&mut self, by: Duration) {
        self.clock = self.clock.aged(by);
    }

    /// Resolves when the server ends.
    pub(crate) async fn ended(&self) {
        let mut ending = self.ending.clone();
        // Who has dropped the sender ends, too.
        let _ = ending.wait_for(|&ending| ending).await;
    }
}

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}

/// The number of an account in the store, which is made if it is not there. To one that lacks nothing the writer is not asked.
///
/// # Errors
/// When it cannot be made durable.
pub async fn open_account(store: &Handle, account: &Account) -> Result<u32, Error> {
    if let Some(number) = keep::standing(&store.state(), &account.name, account.quota_bytes) {
        return Ok(number);
    }
    let account = account.clone();
    store.transact(move |transaction| ensure(transaction, &account)).await
}

/// The number of an account in the store. It is made, with its first mailboxes, if it is not there, and has its quota.
pub(crate) fn ensure(transaction: &mut Transaction<'_, File>, account: &Account) -> Result<u32, Error> {
    keep::ensure(transaction, &account.name, account.quota_bytes)
}
