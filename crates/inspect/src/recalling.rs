//! Question about one mail to the learned data: its words, its sender and similar reports. It is sent once, and has an
//! answer or none.

use flow::{Alike, Fuzzy, Recall, Recalled, Standing};
use learn::{Corpus, Counts, Key, Tokens};
use rules::spam;

use crate::reputation::{Named, Sent};
use crate::study::Study;

/// A question and its answer.
#[derive(Debug)]
pub struct Recalling {
    tokens: Option<Tokens>,
    sender: Who,
    fuzzy: Option<Fuzzy>,
    is_asked: bool,
    /// None within: nobody could say.
    answer: Option<Option<Recalled>>,
}

/// Subject of the question about reputation.
#[derive(Debug)]
enum Who {
    /// No sender.
    Nobody,
    /// That of the sender, once it is known who has signed.
    Unsigned(Box<Sent>),
    /// The reputation of these names.
    Named(Named),
}

impl Recalling {
    /// Asks about words and a sender; none where there is nothing to be asked.
    pub fn new(tokens: Option<Tokens>, sent: Option<Sent>, fuzzy: Option<Fuzzy>) -> Option<Recalling> {
        let sender = sent.map_or(Who::Nobody, |sent| Who::Unsigned(Box::new(sent)));
        let is_empty = tokens.is_none() && fuzzy.is_none() && matches!(sender, Who::Nobody);
        (!is_empty).then_some(Recalling { tokens, sender, fuzzy, is_asked: false, answer: None })
    }

    /// The sender, as long as it is not known who has signed.
    pub fn unsigned(&self) -> Option<&Sent> {
        match &self.sender {
            Who::Unsigned(sent) => Some(sent),
            Who::Nobody | Who::Named(_) => None,
        }
    }

    /// Now it is.
    pub fn name(&mut self, named: Named) {
        self.sender = Who::Named(named);
    }

    /// The question, if it was not asked yet.
    pub fn ask(&mut self) -> Option<Recall> {
        let was_asked = std::mem::replace(&mut self.is_asked, true);
        let names = self.named().into_iter().flat_map(Named::asked).collect();
        let keys = self.tokens.iter().flat_map(Tokens::keys).copied().collect();
        (!was_asked).then_some(Recall { keys, names, fuzzy: self.fuzzy.clone() })
    }

    /// Takes the answer; the first counts.
    pub fn answer(&mut self, answer: Option<Recalled>) {
        self.answer.get_or_insert(answer);
    }

    /// Whether the answer has arrived.
    pub fn is_settled(&self) -> bool {
        self.answer.is_some()
    }

    /// The names that were asked about.
    pub fn named(&self) -> Option<&Named> {
        match &self.sender {
            Who::Named(named) => Some(named),
            Who::Nobody | Who::Unsigned(_) => None,
        }
    }

    /// The mail, as it is compared.
    pub fn fuzzy(&self) -> Option<&Fuzzy> {
        self.fuzzy.as_ref()
    }

    /// How much it is like a mail that was reported; none where nobody could say.
    pub fn alike(&self) -> Option<Alike> {
        self.answer.as_ref()?.as_ref()?.alike
    }

    /// Records of the names; `None` without an answer.
    pub fn standings(&self) -> Option<&[Standing]> {
        Some(&self.answer.as_ref()?.as_ref()?.standings)
    }

    /// Facts for the rules, and the words that decided; `None` if too little was learned, or without an answer.
    pub fn outcome(&self, study: &Study) -> Option<(spam::Recalled, Vec<Key>)> {
        let (tokens, found) = self.tokens.as_ref().zip(self.answer.as_ref()?.as_ref())?;
        let counts = |word: &flow::Word| Counts { key: word.key, spam: word.spam, ham: word.ham };
        let counts: Vec<Counts> = found.words.iter().map(counts).collect();
        study.recalled(tokens.keys().len(), Corpus { spam: found.spam, ham: found.ham }, &counts)
    }
}
