//! What was learned, asked about the words of one mail: a question that goes out once, and an answer or none.

use flow::{Recall, Recalled};
use learn::{Corpus, Counts, Key, Tokens};
use rules::spam;

use crate::study::Study;

/// A question and its answer.
#[derive(Debug)]
pub struct Recalling {
    tokens: Tokens,
    is_asked: bool,
    /// None within: nobody could say.
    answer: Option<Option<Recalled>>,
}

impl Recalling {
    /// Asks about these words.
    pub fn new(tokens: Tokens) -> Recalling {
        Recalling { tokens, is_asked: false, answer: None }
    }

    /// The question, if it was not asked yet.
    pub fn ask(&mut self) -> Option<Recall> {
        let was_asked = std::mem::replace(&mut self.is_asked, true);
        (!was_asked).then(|| Recall { keys: self.tokens.keys().to_vec() })
    }

    /// Takes the answer; the first counts.
    pub fn answer(&mut self, answer: Option<Recalled>) {
        self.answer.get_or_insert(answer);
    }

    /// Whether there is one.
    pub fn is_settled(&self) -> bool {
        self.answer.is_some()
    }

    /// What the rules are told, and the words that decided; none where too little was learned, or nobody could say.
    pub fn outcome(&self, study: &Study) -> Option<(spam::Recalled, Vec<Key>)> {
        let found = self.answer.as_ref()?.as_ref()?;
        let counts = |word: &flow::Word| Counts { key: word.key, spam: word.spam, ham: word.ham };
        let counts: Vec<Counts> = found.words.iter().map(counts).collect();
        study.recalled(self.tokens.keys().len(), Corpus { spam: found.spam, ham: found.ham }, &counts)
    }
}
