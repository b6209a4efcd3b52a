//! Resolver for the questions of inspections: a thread with sockets, a cache and a clock of its own.
//!
//! One question that several mails ask at a time is asked once ([`lookup`] says how); answers are kept as long as they say,
//! within bounds ([`cache`]). What nobody can answer in the time of a question is unavailable, and is asked again soon; a list
//! that answers nothing for a while is left alone ([`rest`]), so that not each mail waits for it.
//! A command asks once: by a thread of its own, or from a file ([`source`]).
//! Bounds: `ORDERS_MAX` questions that wait, `LOOKUPS_MAX` under way; what is beyond is unavailable at once.

pub mod blocks;
mod cache;
pub mod lookup;
mod rest;
pub mod signed;
pub mod source;
mod zone;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::message::asking;
use edge::metrics::Metrics;
use flow::{Answer, Ask, Outcome, Question};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel};
use tokio::task::{JoinSet, LocalSet};

use crate::config::dns::DnsSettings;

use self::cache::Cache;
use self::lookup::{Found, look_up};
use self::rest::Rests;

/// Questions that wait for the thread, and in it.
const ORDERS_MAX: usize = 10_000;

/// Questions under way, each with a socket.
const LOOKUPS_MAX: usize = 500;

/// The thread that looks things up; it ends with the last who may ask.
pub struct Resolver {
    orders: Sender<Order>,
    /// Servers that it was started with.
    servers: Vec<SocketAddr>,
    settings: DnsSettings,
}

/// Somebody wants to know something.
struct Order {
    ask: Ask,
    tell: UnboundedSender<Answer>,
}

impl Resolver {
    /// Starts it; the `old` one goes on where nothing has changed.
    ///
    /// # Errors
    /// When there is nobody to ask, or no thread to be had.
    pub fn start(
        settings: &DnsSettings,
        metrics: &Arc<Metrics>,
        old: Option<&Arc<Resolver>>,
    ) -> Result<Arc<Resolver>, String> {
        let servers = settings.servers()?;
        if let Some(old) = old.filter(|old| old.servers == servers && old.settings == *settings) {
            return Ok(old.clone());
        }
        let (orders, received) = channel(ORDERS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("dns: {error}"))?;
        let desk = Desk {
            servers: servers.clone().into(),
            wait: Duration::from_millis(settings.query_ms),
            cache: Cache::new(settings.cache_bytes),
            rests: Rests::default(),
            metrics: metrics.clone(),
            open: HashMap::new(),
            waiting: VecDeque::new(),
            started: Instant::now(),
        };
        let work = move || LocalSet::new().block_on(&runtime, desk.serve(received));
        std::thread::Builder::new().name("resolver".into()).spawn(work).map_err(|error| format!("dns: {error}"))?;
        Ok(Arc::new(Resolver { orders, servers, settings: settings.clone() }))
    }
}

impl asking::Resolver for Resolver {
    fn look_up(&self, ask: Ask, tell: &UnboundedSender<Answer>) {
        let id = ask.id;
        if self.orders.try_send(Order { ask, tell: tell.clone() }).is_err() {
            give(id, tell, &Found::unavailable());
        }
    }
}

/// Sends the answer; the receiver may be gone.
fn give(id: u32, tell: &UnboundedSender<Answer>, found: &Found) {
    let _ = tell.send(Answer { id, outcome: found.outcome.clone(), security: found.security });
}

/// A question without an answer.
struct Open {
    /// The list that it asks; empty where it asks none.
    list: Box<str>,
    waiting: Vec<(u32, UnboundedSender<Answer>)>,
}

/// State of the thread.
struct Desk {
    servers: Arc<[SocketAddr]>,
    wait: Duration,
    cache: Cache,
    rests: Rests,
    metrics: Arc<Metrics>,
    /// Receivers that wait, by question.
    open: HashMap<Question, Open>,
    /// Questions that have not been sent yet.
    waiting: VecDeque<Question>,
    started: Instant,
}

impl Desk {
    /// Answers until nobody can ask any more.
    async fn serve(mut self, mut orders: Receiver<Order>) {
        let mut under_way = JoinSet::new();
        let mut questions = HashMap::new();
        loop {
            while under_way.len() < LOOKUPS_MAX
                && let Some(question) = self.waiting.pop_front()
            {
                let (servers, wait) = (self.servers.clone(), self.wait);
                let wanted = question.clone();
                let task = under_way.spawn_local(async move { look_up(&wanted, &servers, wait).await });
                questions.insert(task.id(), question);
            }
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.take(order),
                    None => return,
                },
                Some(done) = under_way.join_next_with_id(), if !under_way.is_empty() => {
                    // A look-up that has died knows nothing.
                    let (task, found) = done.unwrap_or_else(|error| (error.id(), Found::unavailable()));
                    if let Some(question) = questions.remove(&task) {
                        self.settle(question, found);
                    }
                }
            }
        }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, order: Order) {
        let Order { ask: Ask { id, question, list }, tell } = order;
        let now = self.milliseconds();
        if let Some(found) = self.cache.get(&question, now) {
            self.metrics.dns_cached_total.add(1);
            return give(id, &tell, found);
        }
        if let Some(others) = self.open.get_mut(&question) {
            return others.waiting.push((id, tell));
        }
        if self.waiting.len() >= ORDERS_MAX || self.rests.is_resting(&list, now) {
            return give(id, &tell, &Found::unavailable());
        }
        self.open.insert(question.clone(), Open { list, waiting: vec![(id, tell)] });
        self.waiting.push_back(question);
    }

    fn settle(&mut self, question: Question, found: Found) {
        let now = self.milliseconds();
        if let Some(Open { list, waiting }) = self.open.remove(&question) {
            waiting.iter().for_each(|(id, tell)| give(*id, tell, &found));
            self.rests.hear(list, found.outcome != Outcome::Unavailable, now);
        }
        self.cache.insert(question, found, now);
    }
}
