//! DNS questions of an inspection: looked up by the host's resolver, within bounds.
//!
//! Nothing waits for an answer while content comes. Once it is complete the mail waits, for all that it asks together, as long
//! as its budget lasts; what is not there by then is [`Outcome::Unavailable`], which is neither a listing nor a pass.
//! Bounds: 2,000 questions of one mail, whoever inspects it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::{Answer, Ask, Hit, Outcome, Security};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout_at;

use crate::metrics::Metrics;

/// Questions of one mail that are looked up; further ones are unavailable. More than any part of an inspection asks.
const QUESTIONS_MAX: usize = 2_000;

/// A resolver of questions.
pub trait Resolver: Send + Sync {
    /// Looks something up, and waits for nothing here. The answer goes to `tell`, within the time that the resolver has for a
    /// question; whoever has asked may have gone.
    fn look_up(&self, ask: Ask, tell: &UnboundedSender<Answer>);

    /// Takes the rules that hit a mail: some mean that a list refuses queries.
    fn hear(&self, _hits: &[Hit]) {}
}

/// Questions of one mail.
pub struct Asking {
    /// Without, nothing is available.
    resolver: Option<Arc<dyn Resolver>>,
    metrics: Arc<Metrics>,
    tell: UnboundedSender<Answer>,
    told: UnboundedReceiver<Answer>,
    /// Questions without an answer.
    open: BTreeSet<u32>,
    asked: usize,
    /// Answers of our own.
    own: VecDeque<Answer>,
    budget: Duration,
    deadline: Option<Instant>,
}

impl Asking {
    /// Nothing is asked yet. `budget`: how long the mail may wait once it is complete.
    pub fn new(resolver: Option<Arc<dyn Resolver>>, metrics: Arc<Metrics>, budget: Duration) -> Asking {
        let (tell, told) = unbounded_channel();
        let (open, own) = (BTreeSet::new(), VecDeque::new());
        Asking { resolver, metrics, tell, told, open, asked: 0, own, budget, deadline: None }
    }

    /// Has something looked up.
    pub fn ask(&mut self, ask: Ask) {
        self.asked += 1;
        self.metrics.dns_questions_total.add(1);
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let resolver = self.resolver.as_ref().filter(|_| !is_over && self.asked <= QUESTIONS_MAX);
        // Two questions of one number are one.
        if !self.open.insert(ask.id) {
            return;
        }
        match resolver {
            Some(resolver) => resolver.look_up(ask, &self.tell),
            None => self.own.push_back(unavailable(ask.id)),
        }
    }

    /// Tells which rules have hit.
    pub fn hear(&self, hits: &[Hit]) {
        self.resolver.iter().for_each(|resolver| resolver.hear(hits));
    }

    /// Whether an answer is to come.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The content is complete: the budget begins.
    pub fn begin_to_wait(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + self.budget);
    }

    /// The next answer that is there.
    pub fn take(&mut self) -> Option<Answer> {
        let answer = self.own.pop_front().or_else(|| self.told.try_recv().ok());
        answer.and_then(|answer| self.heard(answer))
    }

    /// The next answer; none where nothing is asked that has none. When the budget is spent, the rest is unavailable.
    pub async fn next(&mut self) -> Option<Answer> {
        while !self.open.is_empty() {
            if let Some(answer) = self.take() {
                return Some(answer);
            }
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.budget);
            match timeout_at(deadline.into(), self.told.recv()).await {
                Ok(Some(answer)) => self.own.push_back(answer),
                Ok(None) | Err(_) => {
                    self.metrics.dns_budgets_spent_total.add(1);
                    self.own.extend(self.open.iter().map(|&id| unavailable(id)));
                }
            }
        }
        None
    }

    /// Takes note of an answer; only the first to each question counts.
    fn heard(&mut self, answer: Answer) -> Option<Answer> {
        if !self.open.remove(&answer.id) {
            return None;
        }
        self.metrics.dns_unavailable_total.add(u64::from(answer.outcome == Outcome::Unavailable));
        Some(answer)
    }
}

/// The answer where nobody can say.
pub fn unavailable(id: u32) -> Answer {
    Answer { id, outcome: Outcome::Unavailable, security: Security::Unknown }
}

#[cfg(test)]
mod tests {
    use flow::{Question, RecordKind};

    use super::*;

    /// Answers names that begin with `a` at once, and twice; nothing else, ever.
    struct Quick;

    impl Resolver for Quick {
        fn look_up(&self, ask: Ask, tell: &UnboundedSender<Answer>) {
            if ask.question.name.starts_with('a') {
                let answer = Answer { id: ask.id, outcome: Outcome::NoName, security: Security::Unknown };
                let _ = (tell.send(answer.clone()), tell.send(answer));
            }
        }
    }

    fn ask(id: u32, name: &str) -> Ask {
        Ask { id, question: Question { name: name.into(), kind: RecordKind::A }, list: Box::default() }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn each_question_has_one_answer_and_what_is_late_is_unavailable() {
        let metrics: Arc<Metrics> = Arc::default();
        let mut asking = Asking::new(Some(Arc::new(Quick)), metrics.clone(), Duration::from_millis(20));
        runtime().block_on(async {
            assert_eq!(asking.next().await, None, "nothing was asked");
            asking.ask(ask(1, "a.example"));
            asking.ask(ask(2, "b.example"));
            asking.ask(ask(2, "c.example"));
            assert_eq!(asking.next().await.map(|answer| (answer.id, answer.outcome)), Some((1, Outcome::NoName)));
            assert_eq!(asking.next().await.map(|answer| (answer.id, answer.outcome)), Some((2, Outcome::Unavailable)));
            assert_eq!(asking.next().await, None);
            asking.ask(ask(3, "a.example"));
            assert_eq!(asking.next().await, Some(unavailable(3)), "the budget is spent");
        });
        assert_eq!((metrics.dns_questions_total.get(), metrics.dns_unavailable_total.get()), (4, 2));
        assert_eq!(metrics.dns_budgets_spent_total.get(), 1);
    }

    #[test]
    fn without_a_resolver_and_beyond_the_bound_nothing_is_available() {
        let mut asking = Asking::new(None, Arc::default(), Duration::from_secs(60));
        asking.ask(ask(1, "a"));
        assert_eq!(asking.take(), Some(unavailable(1)));
        let mut asking = Asking::new(Some(Arc::new(Quick)), Arc::default(), Duration::from_secs(60));
        for id in 0..=QUESTIONS_MAX as u32 {
            asking.ask(ask(id, "b"));
        }
        assert_eq!((asking.take(), asking.take()), (Some(unavailable(QUESTIONS_MAX as u32)), None));
    }
}
