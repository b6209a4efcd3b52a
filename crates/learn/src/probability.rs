//! How likely a mail is spam, by the words in it: Robinson's f(w) of each, combined by Fisher's method (chi-square).
//!
//! See G. Robinson, "A Statistical Approach to the Spam Problem", Linux Journal 107 (2003). The constants are SpamAssassin's.

use crate::tokens::{Key, Terms};

/// The probability of a word that was never seen.
const UNSEEN: f64 = 0.538;

/// How many mails that assumption is worth.
const STRENGTH: f64 = 0.030;

/// Words that are no further from 0.5 say nothing.
const DISTANCE_MIN: f64 = 0.346;

/// Maximum number of words that count, the most significant ones.
const WORDS_MAX: usize = 150;

/// Numbers of learned mails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Mails that are spam.
    pub spam: u64,
    /// Mails that are not.
    pub ham: u64,
}

/// In how many mails a word was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The word's key.
    pub key: Key,
    /// Mails that are spam.
    pub spam: u64,
    /// Mails that are not.
    pub ham: u64,
}

/// Result for a mail.
#[derive(Debug, Clone, PartialEq)]
pub struct Opinion {
    /// From 0, ham, to 1, spam.
    pub probability: f64,
    /// The words that decided: their age begins anew.
    pub words: Vec<Key>,
}

impl Corpus {
    /// Whether enough was learned to be asked.
    pub fn is_enough(self, terms: &Terms) -> bool {
        self.spam >= terms.spam_min && self.ham >= terms.ham_min
    }
}

/// How likely a mail with this word is spam; none where nothing is known of the word.
pub fn probability(counts: Counts, corpus: Corpus, hapaxes: bool) -> Option<f64> {
    let (spam, ham) = (counts.spam as f64, counts.ham as f64);
    let seen = spam + ham;
    if seen < if hapaxes { 1.0 } else { 2.0 } || corpus.spam == 0 || corpus.ham == 0 {
        return None;
    }
    let (spam_weight, ham_weight) = (spam * corpus.ham as f64, ham * corpus.spam as f64);
    let raw = spam_weight / (ham_weight + spam_weight);
    Some((UNSEEN * STRENGTH + seen * raw) / (STRENGTH + seen))
}

/// Combines the words of a mail; `None` if no word says anything.
pub fn opinion(counts: impl Iterator<Item = Counts>, corpus: Corpus, hapaxes: bool) -> Option<Opinion> {
    let known = counts.filter_map(|counts| Some((counts.key, probability(counts, corpus, hapaxes)?)));
    let mut known: Vec<(Key, f64)> = known.collect();
    let distance = |probability: f64| (probability - 0.5).abs();
    known
        .sort_by(|(key, one), (other_key, other)| distance(*other).total_cmp(&distance(*one)).then(key.cmp(other_key)));
    known.truncate(WORDS_MAX);
    known.retain(|(_, probability)| distance(*probability) >= DISTANCE_MIN);
    let probabilities: Vec<f64> = known.iter().map(|(_, probability)| *probability).collect();
    let probability = combined(&probabilities, corpus)?;
    Some(Opinion { probability, words: known.into_iter().map(|(key, _)| key).collect() })
}

/// Combines probabilities by Fisher's method in both directions; the result lies between them.
fn combined(probabilities: &[f64], corpus: Corpus) -> Option<f64> {
    let total = corpus.spam.saturating_add(corpus.ham) as f64;
    if probabilities.is_empty() || total == 0.0 {
        return None;
    }
    let (mut spam, mut ham) = (Product::new(corpus.spam as f64 / total), Product::new(corpus.ham as f64 / total));
    for probability in probabilities {
        spam.multiply(1.0 - probability);
        ham.multiply(*probability);
    }
    let spam = 1.0 - chi_square(-2.0 * spam.logarithm(), probabilities.len());
    let ham = 1.0 - chi_square(-2.0 * ham.logarithm(), probabilities.len());
    Some((spam - ham + 1.0) / 2.0)
}

/// A product that may be too small for a number.
struct Product {
    fraction: f64,
    exponent: f64,
}

impl Product {
    /// Where a fraction is made larger, before digits are lost.
    const SMALL: f64 = 1e-200;
    /// By this power of two.
    const SHIFT: i32 = 600;

    fn new(fraction: f64) -> Product {
        Product { fraction, exponent: 0.0 }
    }

    fn multiply(&mut self, factor: f64) {
        self.fraction *= factor;
        if self.fraction < Product::SMALL {
            self.fraction *= 2.0_f64.powi(Product::SHIFT);
            self.exponent -= f64::from(Product::SHIFT);
        }
    }

    fn logarithm(&self) -> f64 {
        self.fraction.ln() + self.exponent * std::f64::consts::LN_2
    }
}

/// How likely a sum of squares of twice so many degrees of freedom is at least `value`.
fn chi_square(value: f64, half_degrees: usize) -> f64 {
    let half = value / 2.0;
    let mut term = (-half).exp();
    let mut sum = term;
    for degree in 1..half_degrees {
        term *= half / degree as f64;
        sum += term;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORPUS: Corpus = Corpus { spam: 100, ham: 300 };

    fn counts(key: u8, spam: u64, ham: u64) -> Counts {
        Counts { key: [key; 5], spam, ham }
    }

    #[test]
    fn a_word_counts_by_how_often_it_was_seen() {
        let of = |spam, ham| probability(counts(0, spam, ham), CORPUS, true).map(|one| (one * 1e4).round() / 1e4);
        assert_eq!([of(0, 0), of(1, 0), of(0, 1), of(10, 30)], [None, Some(0.9865), Some(0.0157), Some(0.5)]);
        assert_eq!(probability(counts(0, 1, 0), CORPUS, false), None);
        assert_eq!(probability(counts(0, 1, 0), Corpus { spam: 1, ham: 0 }, true), None);
    }

    #[test]
    fn words_together_say_more_than_each() {
        let of = |all: &[Counts]| opinion(all.iter().copied(), CORPUS, true);
        assert_eq!(of(&[counts(1, 10, 30)]), None, "it says nothing");
        let spam: Vec<Counts> = (0..20).map(|key| counts(key, 5, 0)).collect();
        let opinion = of(&spam).unwrap();
        assert!(opinion.probability > 0.9999 && opinion.words.len() == 20);
        let ham: Vec<Counts> = (20..40).map(|key| counts(key, 0, 15)).collect();
        assert!(of(&ham).unwrap().probability < 0.0001);
        let both = of(&[spam, ham].concat()).unwrap().probability;
        assert!((0.3..0.7).contains(&both), "{both}");
    }

    #[test]
    fn a_mail_of_many_certain_words_has_a_probability() {
        let many = (0..=255).map(|key| counts(key, 1_000_000, 0));
        let opinion = opinion(many, Corpus { spam: 2_000_000, ham: 2_000_000 }, true).unwrap();
        assert!(opinion.probability > 0.999_999 && opinion.words.len() == WORDS_MAX, "{opinion:?}");
    }
}
