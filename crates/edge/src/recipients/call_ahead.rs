//! Asking a mail server who its recipients are, and remembering what it said.
//!
//! ```text
//!  RCPT ── remembered? ── answer            (and asked again meanwhile, once it is old)
//!           │ no
//!           ├─ asked already ── wait for that
//!           └─ queue ── up to `connections_max` connections: MAIL FROM:<>, RCPT, RCPT, ... RSET
//! ```
//! Only what the server says to RCPT counts, and only for good: 2xx is a recipient, 5xx is none. What it says for the time being
//! (4xx), a lost connection and a refused sender make nobody unknown. 5xx with a code of policy (X.7.X) may be meant for us
//! and not for the recipient: then the real mail decides.
//!
//! Bounds: 10,000 questions that wait, `entries_max` answers. After a connection that did not come about nobody is asked for
//! two seconds.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use proto::smtp::{Path, RcptTo, Reply};
use tokio::sync::watch;
use tokio::time::timeout;

use super::answer::Answer;
use super::keys::Seed;
use super::memory::{Memory, Times};
use crate::metrics::Metrics;
use crate::settings::{Asks, CallAheadSettings, Target, Tls};
use crate::upstream::route::Route;
use crate::upstream::smtp_hop::{Leases, SmtpHop, Unasked};

/// Questions that wait for a connection to one server; beyond that the answer is not known now.
const WAITING_MAX: usize = 10_000;

/// How long a server that could not be reached is not tried again.
const AWAY: Duration = Duration::from_secs(2);

/// How much of what a server says is remembered, in characters.
const TEXT_MAX: usize = 200;

/// From where a server is asked: an event loop, for a session of this door.
#[derive(Clone)]
pub struct Way {
    /// The next hop of the listener, which may be meant.
    pub forward: Arc<Route>,
    /// Whether that is leased for the message already: RCPT asks it then.
    pub has_hop: bool,
    /// Our hostname.
    pub hostname: String,
    /// Connections that wait.
    pub leases: Leases,
    /// Where questions are counted.
    pub metrics: Arc<Metrics>,
}

/// Asks a server, or the next hops of listeners.
pub struct CallAhead {
    settings: CallAheadSettings,
    seed: Seed,
    /// The way to the server, if it is not a listener's next hop.
    route: Option<Arc<Route>>,
    /// Inquiries at each server, by the key of the way to it.
    inquiries: Mutex<HashMap<String, Arc<Mutex<Inquiry>>>>,
}

/// Inquiries at one server.
struct Inquiry {
    memory: Memory,
    /// Receivers that wait for each answer.
    under_way: HashMap<u64, watch::Sender<Option<Answer>>>,
    waiting: VecDeque<(u64, RcptTo)>,
    workers: usize,
    /// Tasks that are about to end, and check for questions once more before.
    tidying: usize,
    away_until: Option<(Instant, Reply)>,
}

impl std::fmt::Debug for CallAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallAhead")
    }
}

impl CallAhead {
    /// Nothing is known yet.
    ///
    /// # Errors
    /// When the server cannot be spoken to in TLS as it should.
    pub fn new(settings: &CallAheadSettings, tls: &Tls) -> Result<CallAhead, String> {
        let route = match &settings.server {
            Asks::Forward => None,
            Asks::Server(server) => Some(Arc::new(Route::new(&Target::new(server.clone()), tls)?)),
        };
        Ok(CallAhead { settings: settings.clone(), seed: Seed::default(), route, inquiries: Mutex::default() })
    }

    /// Whether it asks whom these settings want, in that way.
    pub fn is_for(&self, settings: &CallAheadSettings) -> bool {
        self.settings == *settings
    }

    /// Address of the server.
    pub fn server(&self, way: &Way) -> String {
        self.way_to(way).forward.to_string()
    }

    /// Answer of the server about a recipient, new or remembered.
    pub async fn ask(self: &Arc<CallAhead>, path: &Path, way: &Way) -> Answer {
        if way.has_hop && self.route.is_none() {
            return Answer::Valid;
        }
        let to = self.way_to(way);
        let inquiry = self.inquiry(&to.key);
        let number = self.seed.number(&path.as_str().to_lowercase());
        let (remembered, answer) = {
            let mut open = lock(&inquiry);
            let remembered = open.memory.find(number, Instant::now());
            if let Some((answer, false)) = remembered {
                return answer;
            }
            let answer = open.queue(number, path);
            let is_worker_wanted = open.waiting.len() > open.tidying && open.workers < self.settings.connections_max;
            if is_worker_wanted {
                open.workers += 1;
                let (asks, inquiry, way) = (self.clone(), inquiry.clone(), way.clone());
                let worker = Worker { asks, inquiry, way, to, is_tidying: false, is_done: false };
                tokio::task::spawn_local(worker.run());
            }
            (remembered, answer)
        };
        if let Some((answer, _)) = remembered {
            return answer;
        }
        let Some(mut answer) = answer else { return Answer::unsure("too many questions wait") };
        let answered = timeout(self.settings.wait(), answer.wait_for(Option::is_some)).await;
        match answered {
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Answer::unsure("no answer")),
            Ok(Err(_)) => Answer::unsure("the question was dropped"),
            Err(_) => Answer::unsure("the server takes too long"),
        }
    }

    fn way_to(&self, way: &Way) -> Arc<Route> {
        self.route.clone().unwrap_or_else(|| way.forward.clone())
    }

    fn inquiry(&self, key: &str) -> Arc<Mutex<Inquiry>> {
        let mut all = self.inquiries.lock().expect("no holder panics");
        if let Some(inquiry) = all.get(key) {
            return inquiry.clone();
        }
        let inquiry = Arc::new(Mutex::new(Inquiry::new(&self.settings)));
        all.insert(key.to_string(), inquiry.clone());
        inquiry
    }
}

impl Inquiry {
    fn new(settings: &CallAheadSettings) -> Inquiry {
        let seconds = Duration::from_secs;
        let valid = Times { keep: seconds(settings.valid_seconds), refresh: seconds(settings.valid_refresh_seconds) };
        let unknown =
            Times { keep: seconds(settings.unknown_seconds), refresh: seconds(settings.unknown_refresh_seconds) };
        Inquiry {
            memory: Memory::new(valid, unknown, settings.entries_max),
            under_way: HashMap::new(),
            waiting: VecDeque::new(),
            workers: 0,
            tidying: 0,
            away_until: None,
        }
    }

    /// Where the answer comes; none if too many wait.
    fn queue(&mut self, number: u64, path: &Path) -> Option<watch::Receiver<Option<Answer>>> {
        if let Some(under_way) = self.under_way.get(&number) {
            return Some(under_way.subscribe());
        }
        if self.waiting.len() >= WAITING_MAX {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        self.under_way.insert(number, sender);
        self.waiting.push_back((number, RcptTo { path: path.clone(), ..RcptTo::default() }));
        Some(receiver)
    }

    fn answered(&mut self, number: u64, answer: Answer) {
        self.memory.learn(number, &answer, Instant::now());
        if let Some(sender) = self.under_way.remove(&number) {
            let _ = sender.send(Some(answer));
        }
    }
}

/// One connection's work: it asks what waits, and ends when nothing does.
struct Worker {
    asks: Arc<CallAhead>,
    inquiry: Arc<Mutex<Inquiry>>,
    way: Way,
    to: Arc<Route>,
    is_tidying: bool,
    /// It has left the count of workers already.
    is_done: bool,
}

impl Worker {
    async fn run(mut self) {
        loop {
            let mut hop = None;
            while let Some((number, rcpt)) = self.next() {
                let answer = self.put(&mut hop, &rcpt).await;
                lock(&self.inquiry).answered(number, answer);
            }
            if let Some(hop) = hop {
                hop.keep_to_ask(&self.way.leases).await;
            }
            if !self.is_wanted_still() {
                return;
            }
        }
    }

    /// The next question. Without one the worker tidies up: who asks meanwhile waits for it, and no other connection is made.
    fn next(&mut self) -> Option<(u64, RcptTo)> {
        let mut inquiry = lock(&self.inquiry);
        let next = inquiry.waiting.pop_front();
        if next.is_none() {
            inquiry.tidying += 1;
            self.is_tidying = true;
        }
        next
    }

    /// Whether somebody has asked meanwhile. If not, the worker is one no more: who asks from now on starts another.
    fn is_wanted_still(&mut self) -> bool {
        let mut inquiry = lock(&self.inquiry);
        inquiry.tidying -= 1;
        self.is_tidying = false;
        if inquiry.waiting.is_empty() {
            inquiry.workers -= 1;
            self.is_done = true;
        }
        !self.is_done
    }

    /// Puts one question. A connection that waited and turns out to be dead is replaced, once.
    async fn put(&self, hop: &mut Option<SmtpHop>, rcpt: &RcptTo) -> Answer {
        loop {
            let (mut open, is_new) = match hop.take() {
                Some(open) => (open, false),
                None => match self.connect().await {
                    Ok(connected) => connected,
                    Err(reply) => return Answer::Unsure { reason: reply.text.to_string(), reply },
                },
            };
            self.way.metrics.recipients_asked_total.add(1);
            let asked = timeout(self.asks.settings.wait(), open.ask(rcpt)).await;
            let answer = match asked {
                Ok(Ok(reply)) => judge(reply),
                Ok(Err(Unasked::Gone)) if !is_new => continue,
                Ok(Err(Unasked::Gone)) => return Answer::unsure("the connection was lost"),
                Ok(Err(Unasked::Sender(reply))) => refused_sender(&self.to, reply),
                Err(_) => return Answer::unsure("the server takes too long"),
            };
            if !open.is_worn() {
                *hop = Some(open);
            }
            return answer;
        }
    }

    async fn connect(&self) -> Result<(SmtpHop, bool), Reply> {
        if let Some((until, reply)) = &lock(&self.inquiry).away_until
            && Instant::now() < *until
        {
            return Err(reply.clone());
        }
        let route = &self.to;
        let Some((address, protocol)) = route.server() else {
            return Err(Reply::new(451, (4, 4, 3), "No server to ask about the recipient"));
        };
        let leased = SmtpHop::lease_to_ask((&address, protocol), route, &self.way.hostname, &self.way.leases);
        let connected = match timeout(self.asks.settings.wait(), leased).await {
            Ok(connected) => connected,
            Err(_) => Err(Reply::new(451, (4, 4, 1), "The next hop cannot be reached now")),
        };
        let away = connected.as_ref().err().map(|reply| (Instant::now() + AWAY, reply.clone()));
        lock(&self.inquiry).away_until = away;
        connected
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut inquiry = lock(&self.inquiry);
        inquiry.tidying -= usize::from(self.is_tidying);
        inquiry.workers -= usize::from(!self.is_done);
    }
}

fn lock(inquiry: &Mutex<Inquiry>) -> MutexGuard<'_, Inquiry> {
    inquiry.lock().expect("no holder panics")
}

/// Answer that a server's reply to RCPT stands for.
fn judge(mut reply: Reply) -> Answer {
    if reply.is_positive() {
        return Answer::Valid;
    }
    if let Some((end, _)) = reply.text.char_indices().nth(TEXT_MAX) {
        reply.text = reply.text.get(..end).unwrap_or_default().to_string().into();
    }
    let subject = reply.enhanced.map(|(_, subject, detail)| (subject, detail));
    match (reply.is_permanent(), subject) {
        (true, Some((2, 2))) => Answer::Full(reply),
        (false, _) => Answer::Unsure { reason: "the server says so".into(), reply },
        (true, Some((7, _))) => Answer::Valid,
        (true, Some((1 | 4, _))) => Answer::Unknown(reply),
        (true, Some(_)) => Answer::Refused(reply),
        (true, None) if reply.code == 552 => Answer::Full(reply),
        (true, None) => Answer::Unknown(reply),
    }
}

/// A server that takes nothing from nobody cannot be asked: the real mail decides, or comes again.
fn refused_sender(to: &Route, reply: Reply) -> Answer {
    tracing::warn!(hop = %to.forward, %reply, "call-ahead impossible: the server refuses MAIL FROM:<>");
    if reply.is_permanent() { Answer::Valid } else { Answer::Unsure { reason: "it refuses the sender".into(), reply } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(code: u16, enhanced: Option<(u8, u16, u16)>) -> &'static str {
        judge(Reply { code, enhanced, text: "x".repeat(1_000).into() }).name()
    }

    #[test]
    fn only_what_is_said_for_good_and_of_the_recipient_makes_it_unknown() {
        assert_eq!(judged(250, None), "valid");
        assert_eq!(judged(251, Some((2, 1, 5))), "valid");
        assert_eq!(judged(550, Some((5, 1, 1))), "unknown");
        assert_eq!(judged(550, Some((5, 4, 1))), "unknown");
        assert_eq!(judged(550, None), "unknown");
        assert_eq!(judged(550, Some((5, 2, 1))), "refused");
        assert_eq!(judged(552, Some((5, 2, 2))), "full");
        assert_eq!(judged(552, None), "full");
        for temporary in
            [(450, None), (450, Some((4, 1, 1))), (452, Some((4, 2, 2))), (421, None), (400, Some((4, 7, 1)))]
        {
            assert_eq!(judged(temporary.0, temporary.1), "unsure", "{temporary:?}");
        }
        assert_eq!(judged(554, Some((5, 7, 1))), "valid", "the real mail decides");
        let reply = judge(Reply { code: 550, enhanced: None, text: "ü".repeat(1_000).into() }).reply().unwrap();
        assert_eq!(reply.text.chars().count(), TEXT_MAX);
    }
}
