//! All that is asked of an object, from its first byte to its verdict: the inspection of its content, then who has sent it,
//! then its score.
//!
//! An examination has no threads and no clock. What takes milliseconds and cannot be suspended is a [`Job`], which the host
//! runs wherever it likes and gives back; what others know is an [`Out::Ask`] or an [`Out::Recall`], which the host answers.
//! The verdict is held back until all of that is there.

use std::collections::VecDeque;
use std::sync::Arc;

use digest::Batch;
use flow::{Action, Answer, Context, In, Out, Recalled, Score, Scoring, Verdict};
use rules::spam::run::Scratch;
use stream::Fuel;

use crate::authenticate::Authentication;
use crate::inquest::Authenticated;
use crate::inspection::{Clocks, Engine, Inspection, Progress};
use crate::intrusion::IntrusionRules;
use crate::page::PageRules;
use crate::score::{Kept, Planned, Scorer};

/// Tools for the examination of an object.
#[derive(Debug, Clone)]
pub struct Examiner {
    /// Signatures and bounds.
    pub engine: Arc<Engine>,
    /// The rules of mails, where there are any.
    pub scorer: Option<Arc<Scorer>>,
    /// The phrases of web pages, where there are any.
    pub pages: Option<Arc<PageRules>>,
    /// The intrusion rules, where there are any.
    pub intrusion: Option<IntrusionRules>,
}

/// One object under examination.
///
/// # Calling order
/// [`feed`](Examination::feed) bytes and [`work`](Examination::work); at the end [`finish`](Examination::finish) and work
/// until [`State::Done`]. After each call [`hear`](Examination::hear) what it reports.
pub struct Examination {
    inspection: Inspection,
    scorer: Option<Arc<Scorer>>,
    /// The mail, where it is to be authenticated.
    authentication: Option<Box<Authentication>>,
    /// The mail, where it is to be scored.
    kept: Option<Box<Kept>>,
    /// Facts of the sender, for the rules.
    found: Option<Authenticated>,
    stage: Stage,
    /// Questions for the host.
    asks: VecDeque<Out>,
    /// Reports up to the verdict, while that waits for the rest.
    outs: VecDeque<Out>,
}

/// A part of the way.
enum Stage {
    /// The content comes.
    Inspecting,
    /// After the verdict, while the sender is checked.
    Authenticating,
    /// The host has a job.
    Working(Scoring),
    /// While questions of the rules are looked up.
    Inquiring(Box<(Kept, Planned)>),
    /// All is known.
    Over,
}

/// The outcome of [`Examination::work`].
#[must_use = "a job has to be run"]
pub enum State {
    /// All that was fed is inspected; it waits for more.
    Hungry,
    /// The same, and the inspection was stopped: it takes what comes without looking at it.
    Stopped,
    /// The fuel ran out, or the batch should be run; call again.
    Tired,
    /// Answers are awaited.
    Waiting,
    /// A job is to be run and given to [`Examination::done`].
    Working(Box<Job>),
    /// The verdict is there.
    Done,
}

/// Work on a whole mail that cannot be suspended.
pub enum Job {
    /// Reads what the rules ask about the mail.
    Plan(Kept, Option<Authenticated>),
    /// Runs the rules.
    Score(Kept, Planned),
}

/// The result of a job.
pub enum Done {
    /// Questions about the mail.
    Planned(Box<(Kept, Planned)>),
    /// The score; none of a mail that was too large.
    Scored(Option<Score>),
}

impl Job {
    /// Runs it. `now` is in seconds since 1970; `nanoseconds` is any clock that goes on.
    pub fn run(self, scorer: &Scorer, now: i64, nanoseconds: fn() -> u64, scratch: &mut Scratch) -> Done {
        match self {
            Job::Plan(kept, found) => {
                let planned = kept.inquire(scorer, now, found.as_ref());
                Done::Planned(Box::new((kept, planned)))
            }
            Job::Score(kept, planned) => {
                let began = nanoseconds();
                let score = kept.score(scorer, now, &planned, scratch);
                let micros = nanoseconds().saturating_sub(began) / 1_000;
                Done::Scored(score.map(|score| Score { micros, ..score }))
            }
        }
    }
}

impl Examination {
    /// An examination of the object that `context` announces. `now` is in seconds since 1970.
    pub fn new(examiner: &Examiner, mut context: Context, now: i64, clocks: Clocks) -> Examination {
        let scorer = examiner.scorer.clone();
        let kept = context.scoring.take().filter(|_| scorer.is_some()).map(|scoring| Box::new(Kept::new(scoring)));
        let authenticating = context.authenticating.take();
        let authentication = authenticating.map(|terms| Box::new(Authentication::new(terms, &context.flow, now)));
        Examination {
            inspection: Inspection::new(examiner.engine.clone(), context)
                .with_pages(examiner.pages.clone())
                .with_clocks(clocks)
                .with_intrusion(examiner.intrusion.as_ref()),
            scorer,
            authentication,
            kept,
            found: None,
            stage: Stage::Inspecting,
            asks: VecDeque::new(),
            outs: VecDeque::new(),
        }
    }

    /// Measures what each stage takes, by this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> u64) -> Examination {
        self.inspection = self.inspection.with_clock(clock);
        self
    }

    /// Takes more of the object; as much of it as there is room for.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let taken = self.inspection.tell(In::Feed(bytes));
        self.authentication.iter_mut().for_each(|mail| mail.take(&bytes[..taken]));
        self.kept.iter_mut().for_each(|kept| kept.take(&bytes[..taken]));
        taken
    }

    /// The object is over.
    pub fn finish(&mut self) {
        self.inspection.tell(In::Finish);
        self.authentication.iter_mut().for_each(|mail| mail.finish());
    }

    /// Ends the inspection before the content, with a finding of this name.
    pub fn stop(&mut self, name: &'static str) {
        self.inspection.stop(name);
    }

    /// Gives up: there will be no verdict.
    pub fn abandon(&mut self) {
        self.inspection.abandon();
    }

    /// Whether the content still comes.
    pub const fn is_inspecting(&self) -> bool {
        matches!(self.stage, Stage::Inspecting)
    }

    /// Takes an answer to an [`Out::Ask`].
    pub fn answer(&mut self, answer: Answer) {
        match (&mut self.stage, &self.scorer) {
            (Stage::Inquiring(mail), Some(scorer)) => {
                mail.1.inquest.iter_mut().for_each(|inquest| scorer.answer(inquest, answer.clone()));
            }
            _ => self.authentication.iter_mut().for_each(|mail| mail.answer(answer.clone())),
        }
    }

    /// Takes the answer to an [`Out::Recall`].
    pub fn recalled(&mut self, recalled: Option<Recalled>) {
        let Stage::Inquiring(mail) = &mut self.stage else { return };
        mail.1.recalling.iter_mut().for_each(|recalling| recalling.answer(recalled.clone()));
    }

    /// Takes the result of the job; none where it has died, which costs the mail its score.
    pub fn done(&mut self, done: Option<Done>) -> State {
        let Stage::Working(scoring) = std::mem::replace(&mut self.stage, Stage::Over) else { return State::Done };
        match done {
            Some(Done::Planned(mail)) => {
                self.stage = Stage::Inquiring(mail);
                self.look_up()
            }
            Some(Done::Scored(score)) => {
                self.settle(&scoring, score);
                State::Done
            }
            None => State::Done,
        }
    }

    /// A report, oldest first.
    pub fn hear(&mut self) -> Option<Out> {
        if let Some(ask) = self.asks.pop_front() {
            return Some(ask);
        }
        match self.stage {
            Stage::Inspecting | Stage::Over => self.outs.pop_front().or_else(|| self.inspection.hear()),
            Stage::Authenticating | Stage::Working(_) | Stage::Inquiring(_) => None,
        }
    }

    /// Goes on as far as the fuel reaches. `batch`: where content waits to be hashed beside that of others
    /// ([`Inspection::work_beside`]).
    pub fn work(&mut self, batch: Option<&mut Batch>, fuel: &mut Fuel) -> State {
        match self.stage {
            Stage::Inspecting => self.inspect(batch, fuel),
            Stage::Authenticating => self.authenticate(),
            Stage::Inquiring(_) => self.look_up(),
            Stage::Working(_) => State::Waiting,
            Stage::Over => State::Done,
        }
    }

    fn inspect(&mut self, batch: Option<&mut Batch>, fuel: &mut Fuel) -> State {
        let progress = match batch {
            None => self.inspection.work(fuel),
            Some(batch) => self.inspection.work_beside(batch, fuel),
        };
        self.inquire();
        match progress {
            Progress::Tired => State::Tired,
            Progress::Hungry if self.inspection.is_stopped() => State::Stopped,
            Progress::Hungry => State::Hungry,
            Progress::Done => {
                self.outs.extend(std::iter::from_fn(|| self.inspection.hear()));
                self.authenticate()
            }
        }
    }

    /// Hands out what is to be looked up of the sender.
    fn inquire(&mut self) {
        let Some(mail) = &mut self.authentication else { return };
        self.asks.extend(std::iter::from_fn(|| mail.ask()).map(Out::Ask));
    }

    /// Goes on with the sender after the verdict of the content, where that is wanted; not if the mail is refused
    /// anyway.
    fn authenticate(&mut self) -> State {
        if self.is_refused() {
            self.authentication = None;
        }
        if let Some(mail) = &mut self.authentication {
            let Some(outcome) = mail.outcome() else {
                self.stage = Stage::Authenticating;
                self.inquire();
                return State::Waiting;
            };
            self.found = mail.found();
            self.authentication = None;
            let outcome = Box::new(outcome);
            for verdict in self.verdict() {
                verdict.action = verdict.action.max(outcome.action);
                verdict.authenticity = Some(outcome.clone());
            }
        }
        self.score()
    }

    /// Now the score, where one is wanted.
    fn score(&mut self) -> State {
        self.stage = Stage::Over;
        let is_unwanted = self.is_refused() || self.inspection.is_stopped();
        let kept = self.kept.take().filter(|_| !is_unwanted);
        let Some((kept, asks)) = kept.zip(self.scorer.as_ref().map(|scorer| scorer.asks())) else { return State::Done };
        self.stage = Stage::Working(kept.scoring().clone());
        State::Working(Box::new(match asks {
            true => Job::Plan(*kept, self.found.take()),
            false => Job::Score(*kept, Planned::default()),
        }))
    }

    /// Hands out what the rules ask, until all of it is known.
    fn look_up(&mut self) -> State {
        let (Stage::Inquiring(mail), Some(scorer)) = (&mut self.stage, &self.scorer) else { return State::Done };
        let asks = mail.1.inquest.iter_mut().flat_map(|inquest| std::iter::from_fn(move || inquest.ask()));
        self.asks.extend(asks.map(Out::Ask));
        self.asks.extend(mail.1.recall(scorer).map(Out::Recall));
        if !mail.1.is_settled() {
            return State::Waiting;
        }
        let working = Stage::Working(mail.0.scoring().clone());
        match std::mem::replace(&mut self.stage, working) {
            Stage::Inquiring(mail) => State::Working(Box::new(Job::Score(mail.0, mail.1))),
            _ => State::Done,
        }
    }

    /// Puts a score into the verdict, with what it asks for.
    fn settle(&mut self, scoring: &Scoring, score: Option<Score>) {
        let asks = score.as_ref().map_or(Action::Pass, |score| scoring.action(score.points));
        for verdict in self.verdict() {
            verdict.action = verdict.action.max(asks);
            verdict.score = score.clone();
        }
    }

    /// The verdict that is held back.
    fn verdict(&mut self) -> impl Iterator<Item = &mut Verdict> {
        self.outs.iter_mut().filter_map(|out| match out {
            Out::Verdict(verdict) => Some(verdict),
            _ => None,
        })
    }

    fn is_refused(&mut self) -> bool {
        self.verdict().any(|verdict| verdict.action == Action::Reject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_few_mails_have_are_apart() {
        let beside = size_of::<Examination>() - size_of::<Inspection>();
        assert!(beside <= 640, "{beside} bytes besides the inspection");
    }
}
