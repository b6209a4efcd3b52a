//! Questions to the DNS for one mail, and their answers.
//!
//! Parts of the check look up answers here ([`Inquiry::look`]). A missing answer becomes a question, once for all
//! parts, and the part is called again when the answer arrives. The number of questions and the bytes of answers are
//! bounded: beyond that every look-up is [`Outcome::Unavailable`]. A part that must not suffer from the questions of
//! another one has its own inquiry.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::{Answer, Ask, Outcome, Question, Record, RecordKind, Security};

use crate::domain;

/// An answer is missing; the caller has to ask again after further answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending;

/// Bounds of an [`Inquiry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Questions of one mail.
    pub questions_max: u32,
    /// Bytes of one answer, as it is kept.
    pub answer_bytes_max: usize,
    /// Bytes of all of them.
    pub bytes_max: usize,
}

impl Limits {
    /// For SPF, which may want 10 terms with 10 hosts each for either of two names, and explanations.
    pub const SENDERS: Limits = Limits { questions_max: 288, answer_bytes_max: 16 << 10, bytes_max: 1 << 20 };

    /// Limits for keys (16 of signatures, 51 of a chain) and policies (8 questions for each domain of the author's
    /// organization): a forger's keys cannot use up the questions of the author's policy.
    pub const CONTENT: Limits = Limits { questions_max: 256, answer_bytes_max: 16 << 10, bytes_max: 4 << 20 };
}

const _: () = assert!(
    Limits::CONTENT.questions_max as usize * Limits::CONTENT.answer_bytes_max <= Limits::CONTENT.bytes_max,
    "keys have to leave room for policies"
);

/// Questions of one mail and their answers.
#[derive(Debug, Clone)]
pub struct Inquiry {
    limits: Limits,
    /// The number of the first question.
    first_id: u32,
    /// Bytes that answers still may have.
    bytes_left: usize,
    known: BTreeMap<Question, Entry>,
    /// The questions in the order of their numbers.
    asked: Vec<Question>,
    /// How many of them have been handed out.
    handed_out: usize,
}

#[derive(Debug, Clone)]
enum Entry {
    Asked,
    Answered(Found),
}

/// Answer to a question.
#[derive(Debug, Clone)]
pub struct Found {
    /// Outcome of the question.
    pub outcome: Arc<Outcome>,
    /// DNSSEC's result.
    pub security: Security,
}

impl Found {
    fn unavailable() -> Found {
        Found { outcome: Arc::new(Outcome::Unavailable), security: Security::Unknown }
    }

    /// The records, if there are some.
    pub fn records(&self) -> &[Record] {
        match &*self.outcome {
            Outcome::Records(records) => records,
            _ => &[],
        }
    }

    /// The texts of text records.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.records().iter().filter_map(|record| match record {
            Record::Txt(text) => Some(&**text),
            _ => None,
        })
    }
}

impl Inquiry {
    /// Nothing has been asked. Questions are numbered from `first_id` on.
    pub fn new(limits: Limits, first_id: u32) -> Inquiry {
        Inquiry {
            limits,
            first_id,
            bytes_left: limits.bytes_max,
            known: BTreeMap::new(),
            asked: Vec::new(),
            handed_out: 0,
        }
    }

    /// Looks a question up. A name that cannot be asked for does not exist.
    ///
    /// # Errors
    /// Nothing is known yet, and it has become a question.
    pub fn look(&mut self, name: &str, kind: RecordKind) -> Result<Found, Pending> {
        let Some(name) = domain::normalised(name) else {
            return Ok(Found { outcome: Arc::new(Outcome::NoName), security: Security::Unknown });
        };
        let question = Question { name, kind };
        match self.known.get(&question) {
            Some(Entry::Answered(found)) => return Ok(found.clone()),
            Some(Entry::Asked) => return Err(Pending),
            None => {}
        }
        if self.asked.len() >= self.limits.questions_max as usize {
            return Ok(Found::unavailable());
        }
        self.known.insert(question.clone(), Entry::Asked);
        self.asked.push(question);
        Err(Pending)
    }

    /// The next question that has not been handed out.
    pub fn ask(&mut self) -> Option<Ask> {
        let question = self.asked.get(self.handed_out)?.clone();
        let id = self.first_id.checked_add(u32::try_from(self.handed_out).ok()?)?;
        self.handed_out += 1;
        Some(Ask { id, question, list: Box::default() })
    }

    /// Takes an answer. One to a question that was not asked, or has been answered, is passed over.
    pub fn answer(&mut self, answer: Answer) {
        let index = answer.id.checked_sub(self.first_id);
        let question = index.and_then(|index| self.asked.get(index as usize));
        let Some(entry) = question.and_then(|question| self.known.get_mut(question)) else { return };
        if !matches!(entry, Entry::Asked) {
            return;
        }
        let bytes = bytes_of(&answer.outcome);
        let left = self.bytes_left.checked_sub(bytes).filter(|_| bytes <= self.limits.answer_bytes_max);
        *entry = Entry::Answered(match left {
            None => Found::unavailable(),
            Some(left) => {
                self.bytes_left = left;
                Found { outcome: Arc::new(answer.outcome), security: answer.security }
            }
        });
    }

    /// Ends the wait: missing answers, and all later look-ups, are unavailable.
    pub fn give_up(&mut self) {
        self.limits.questions_max = 0;
        self.handed_out = self.asked.len();
        for entry in self.known.values_mut().filter(|entry| matches!(entry, Entry::Asked)) {
            *entry = Entry::Answered(Found::unavailable());
        }
    }

    /// Questions that have been asked, in all.
    pub fn questions(&self) -> usize {
        self.asked.len()
    }
}

/// Bytes that an answer costs to keep.
fn bytes_of(outcome: &Outcome) -> usize {
    let Outcome::Records(records) = outcome else { return 0 };
    let text = |record: &Record| match record {
        Record::Mx(_, name) | Record::Srv(_, name) | Record::Ns(name) | Record::Ptr(name) => name.len(),
        Record::Txt(bytes) | Record::Tlsa(bytes) => bytes.len(),
        Record::A(_) | Record::Aaaa(_) => 0,
    };
    records.iter().map(|record| size_of::<Record>() + text(record)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_once_and_answered_once() {
        let mut inquiry = Inquiry::new(Limits::SENDERS, 7);
        assert_eq!(inquiry.look("A.example.", RecordKind::A).unwrap_err(), Pending);
        assert_eq!(inquiry.look("a.example", RecordKind::A).unwrap_err(), Pending);
        let ask = inquiry.ask().unwrap();
        assert_eq!((&*ask.question.name, ask.id, inquiry.ask()), ("a.example", 7, None));
        inquiry.answer(Answer { id: 7, outcome: Outcome::NoData, security: Security::Secure });
        inquiry.answer(Answer { id: 7, outcome: Outcome::NoName, security: Security::Unknown });
        inquiry.answer(Answer { id: 9, outcome: Outcome::NoName, security: Security::Unknown });
        inquiry.answer(Answer { id: 0, outcome: Outcome::NoName, security: Security::Unknown });
        assert_eq!(*inquiry.look("a.example", RecordKind::A).unwrap().outcome, Outcome::NoData);
    }

    #[test]
    fn beyond_its_bounds_nothing_is_available() {
        let mut inquiry = Inquiry::new(Limits { questions_max: 1, answer_bytes_max: 100, bytes_max: 1_000 }, 0);
        assert!(inquiry.look("a", RecordKind::Txt).is_err());
        assert_eq!(*inquiry.look("b", RecordKind::Txt).unwrap().outcome, Outcome::Unavailable);
        let huge = Outcome::Records(vec![Record::Txt(vec![b'x'; 100].into())]);
        inquiry.answer(Answer { id: 0, outcome: huge, security: Security::Unknown });
        assert_eq!(*inquiry.look("a", RecordKind::Txt).unwrap().outcome, Outcome::Unavailable);
        assert_eq!(*inquiry.look("a..b", RecordKind::Txt).unwrap().outcome, Outcome::NoName);
    }

    #[test]
    fn when_time_is_up_everything_is_decided() {
        let mut inquiry = Inquiry::new(Limits::SENDERS, 7);
        assert!(inquiry.look("a", RecordKind::Txt).is_err());
        inquiry.give_up();
        assert_eq!(*inquiry.look("a", RecordKind::Txt).unwrap().outcome, Outcome::Unavailable);
        assert_eq!(*inquiry.look("b", RecordKind::Txt).unwrap().outcome, Outcome::Unavailable);
        assert_eq!(inquiry.ask(), None);
    }
}
