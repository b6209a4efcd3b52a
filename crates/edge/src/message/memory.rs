//! Learned data as the doors use it: questions about a mail within its budget, and lessons.
//!
//! Whoever keeps it works in its own time: nothing waits for it here, and nobody waits longer than the budget. A mail that has
//! waited is scored as if nothing were learned.

use std::sync::Arc;
use std::time::Duration;

use flow::{Conduct, Key, Lesson, Recall, Recalled};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::metrics::Metrics;

/// A digest of who sends to whom, or of who has sent before.
pub type Mark = [u8; 16];

/// Greylisting question about a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Marks of client, sender and recipient, one for each recipient: all have to have waited.
    pub triplets: Vec<Mark>,
    /// Marks that may have enough deliveries to skip the wait.
    pub vouchers: Vec<Mark>,
    /// How long it has to wait.
    pub delay: Duration,
}

/// Keeper of learned data. The owner is a user, or the site: the empty name.
pub trait Memory: Send + Sync {
    /// How long a mail may wait.
    fn wait(&self) -> Duration;
    /// Asks what is known of words. Whoever has asked may have gone; where nobody can say, the channel is closed.
    fn recall(&self, owner: &str, recall: Recall, tell: oneshot::Sender<Recalled>);
    /// Marks tokens as used for a score.
    fn touch(&self, owner: &str, keys: Vec<Key>);
    /// Has a mail learned or forgotten. `tell` is told whether anything was changed; it is closed where nobody can say.
    fn learn(&self, owner: &str, what: What, lesson: Lesson, tell: Option<oneshot::Sender<bool>>);
    /// A mail counts for who has sent it.
    fn count(&self, owner: &str, conduct: Conduct);
    /// Asks whether a mail has waited, and notes that it has come. The channel is closed where nobody can say.
    fn greet(&self, greeting: Greeting, tell: oneshot::Sender<bool>);
    /// Marks senders as having delivered a mail.
    fn vouch(&self, vouchers: Vec<Mark>);
}

/// Kind of lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It is learned as spam; or as ham.
    Spam,
    /// See [`What::Spam`].
    Ham,
    /// The same, by the rules alone: what somebody has said before stands.
    Surely {
        /// Whether it is spam.
        is_spam: bool,
    },
    /// Takes a lesson back.
    Forget,
}

impl What {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            What::Spam | What::Surely { is_spam: true } => "spam",
            What::Ham | What::Surely { is_spam: false } => "ham",
            What::Forget => "forget",
        }
    }
}

/// Questions of one mail.
pub struct Remembering {
    memory: Option<Arc<dyn Memory>>,
    owner: Box<str>,
    metrics: Arc<Metrics>,
    open: Option<(oneshot::Receiver<Recalled>, Instant)>,
    /// Set if the answer needs no question.
    own: bool,
}

impl Remembering {
    /// A memory of which nothing is asked yet.
    pub fn new(memory: Option<Arc<dyn Memory>>, owner: &str, metrics: Arc<Metrics>) -> Remembering {
        Remembering { memory, owner: owner.into(), metrics, open: None, own: false }
    }

    /// Asks; the budget begins.
    pub fn ask(&mut self, recall: Recall) {
        let Some(memory) = &self.memory else {
            self.own = true;
            return;
        };
        let (tell, told) = oneshot::channel();
        self.open = Some((told, Instant::now() + memory.wait()));
        memory.recall(&self.owner, recall, tell);
    }

    /// Whether an answer is to come.
    pub fn is_open(&self) -> bool {
        self.own || self.open.is_some()
    }

    /// The answer; none within where nobody can say in time. Never, where nothing is asked.
    pub async fn next(&mut self) -> Option<Recalled> {
        self.own = false;
        let (told, deadline) = self.open.as_mut()?;
        let answer = timeout_at(*deadline, told).await.ok().and_then(Result::ok);
        self.open = None;
        self.metrics.spam_recalls_total.add(1);
        self.metrics.spam_recalls_lost_total.add(u64::from(answer.is_none()));
        answer
    }

    /// Tells what has decided, and what the rules are sure of.
    pub fn settle(&self, score: &mut flow::Score) {
        let Some(memory) = &self.memory else { return };
        let decided = std::mem::take(&mut score.decided);
        if !decided.is_empty() {
            memory.touch(&self.owner, decided);
        }
        if let Some(conduct) = score.conduct.take() {
            memory.count(&self.owner, *conduct);
        }
        if let Some(is_spam) = score.lesson.as_ref().and_then(|lesson| lesson.is_spam)
            && let Some(lesson) = score.lesson.take()
        {
            self.metrics.spam_learned_total.add(1);
            memory.learn(&self.owner, What::Surely { is_spam }, *lesson, None);
        }
    }

    /// Whether a mail has to come again; not where nobody can say in time.
    pub async fn is_to_come_again(&self, greeting: Greeting) -> bool {
        let Some(memory) = &self.memory else { return false };
        let (tell, told) = oneshot::channel();
        memory.greet(greeting, tell);
        let has_waited = tokio::time::timeout(memory.wait(), told).await.ok().and_then(Result::ok);
        self.metrics.spam_greylisted_total.add(u64::from(has_waited == Some(false)));
        has_waited == Some(false)
    }

    /// Tells who has delivered a mail.
    pub fn vouch(&self, vouchers: Vec<Mark>) {
        if let Some(memory) = self.memory.as_ref().filter(|_| !vouchers.is_empty()) {
            memory.vouch(vouchers);
        }
    }

    /// Has a mail learned or forgotten; whether anything was changed. None where nobody can say in time.
    pub async fn learn(&self, what: What, lesson: Lesson) -> Option<bool> {
        /// A person waits, and writing waits for others that write.
        const LEARN_WAIT: Duration = Duration::from_secs(20);
        let (tell, told) = oneshot::channel();
        self.memory.as_ref()?.learn(&self.owner, what, lesson, Some(tell));
        tokio::time::timeout(LEARN_WAIT, told).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Answers who asks for one word, drops what has none, and never answers more.
    #[derive(Default)]
    struct Fake {
        kept: Mutex<Vec<oneshot::Sender<Recalled>>>,
        told: Mutex<Vec<What>>,
        counted: AtomicU32,
    }

    impl Memory for Fake {
        fn wait(&self) -> Duration {
            Duration::from_millis(20)
        }

        fn recall(&self, _: &str, recall: Recall, tell: oneshot::Sender<Recalled>) {
            match recall.keys.len() {
                0 => drop(tell),
                1 => drop(tell.send(Recalled { spam: 7, ..Recalled::default() })),
                _ => self.kept.lock().unwrap().push(tell),
            }
        }

        fn touch(&self, _: &str, _: Vec<Key>) {}

        fn count(&self, _: &str, _: Conduct) {
            self.counted.fetch_add(1, Ordering::Relaxed);
        }

        fn greet(&self, greeting: Greeting, tell: oneshot::Sender<bool>) {
            match greeting.triplets.len() {
                0 => drop(tell),
                count => _ = tell.send(count == 1),
            }
        }

        fn vouch(&self, _: Vec<Mark>) {}

        fn learn(&self, _: &str, what: What, _: Lesson, tell: Option<oneshot::Sender<bool>>) {
            self.told.lock().unwrap().push(what);
            tell.into_iter().for_each(|tell| _ = tell.send(true));
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    #[test]
    fn an_answer_comes_in_time_or_not_at_all() {
        let metrics: Arc<Metrics> = Arc::default();
        let fake: Arc<Fake> = Arc::default();
        let mut remembering = Remembering::new(Some(fake.clone()), "", metrics.clone());
        let recall = |count| Recall { keys: vec![[0; 5]; count], ..Recall::default() };
        runtime().block_on(async {
            for (count, wanted) in [(1, Some(7)), (0, None), (2, None)] {
                remembering.ask(recall(count));
                assert!(remembering.is_open());
                assert_eq!(remembering.next().await.map(|recalled| recalled.spam), wanted, "{count}");
                assert!(!remembering.is_open());
            }
            let mut without = Remembering::new(None, "", metrics.clone());
            without.ask(recall(1));
            assert!(without.is_open() && without.next().await.is_none() && !without.is_open());
            assert_eq!(remembering.learn(What::Forget, Lesson::default()).await, Some(true));
            assert_eq!(without.learn(What::Forget, Lesson::default()).await, None);
        });
        let greeting = |count| Greeting { triplets: vec![[0; 16]; count], vouchers: Vec::new(), delay: Duration::ZERO };
        let again = |count| runtime().block_on(remembering.is_to_come_again(greeting(count)));
        assert_eq!([0, 1, 2].map(again), [false, false, true], "where nobody can say it goes on");
        assert_eq!(metrics.spam_greylisted_total.get(), 1);
        assert_eq!((metrics.spam_recalls_total.get(), metrics.spam_recalls_lost_total.get()), (3, 2));
        let sure = Lesson { is_spam: Some(false), ..Lesson::default() };
        let mut score =
            flow::Score { lesson: Some(Box::new(sure)), conduct: Some(Box::default()), ..flow::Score::default() };
        remembering.settle(&mut score);
        assert_eq!(fake.counted.load(Ordering::Relaxed), 1);
        assert_eq!(*fake.told.lock().unwrap(), [What::Forget, What::Surely { is_spam: false }]);
    }
}
