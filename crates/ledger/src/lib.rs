//! Storage of what the spam filter has learned, for the site and for each user, behind a small trait.
//!
//! [`Ledger`] is the trait; [`Sqlite`] is one file of SQLite with a write-ahead log, which several processes may have
//! open at once. Each call is one transaction: a killed process leaves all of it or nothing. The ledger of a cluster, on
//! PostgreSQL, is the host's, since there is no network here; the module `law` has the tests that both pass.
//!
//! The crate knows no mails, only ids and keys. Bounds: a token's key has five bytes, an owner's name and an id
//! [`NAME_BYTES_MAX`]; tokens are bounded by calls of [`Ledger::expire`], mails by [`MAILS_MAX`] for each owner, marks
//! by [`MARKS_MAX`] in all, and senders by calls of [`Ledger::forget_senders`].
#![forbid(unsafe_code)]

mod error;
pub mod form;
#[cfg(any(test, feature = "law"))]
pub mod law;
mod sqlite;

pub use error::Error;
pub use sqlite::Sqlite;

use learn::{Corpus, Key, Snapshot, Standing, Tokens};

/// Maximum length of an owner's name, and of a mail's id.
pub const NAME_BYTES_MAX: usize = 998;

/// Mails that are remembered for each owner; the oldest are forgotten, and count as not learned.
pub const MAILS_MAX: u64 = 500_000;

/// Digest of a sender with a recipient, or of a former sender.
pub type Mark = [u8; 16];

/// Approximate maximum number of marks; those unseen for longest are forgotten.
pub const MARKS_MAX: u64 = 1_000_000;

/// Digest of the name of a sender, or of a mail.
pub type Name = [u8; 16];

/// Default number of names of senders.
pub const SENDERS_MAX: u64 = 1_000_000;

/// Sketch of a mail, for comparison with reported spam.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fuzzy {
    /// Shingles of the text, by position; empty if the text is too short.
    pub shingles: Vec<u64>,
    /// Digests of the attachments.
    pub parts: Vec<Name>,
}

/// Similarity of a mail to a reported one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alike {
    /// Number of equal shingles at equal positions.
    pub places: u8,
    /// Whether a reported mail has an equal attachment.
    pub has_part: bool,
}

/// Effect of a mail on the reputation of its sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conduct {
    /// Name of the mail, if it counts only once.
    pub mail: Option<Name>,
    /// Names of the sender.
    pub sender: Vec<Name>,
    /// Recipients of an outgoing mail, who gain [`Conduct::welcome`].
    pub recipients: Vec<Name>,
    /// Points for each of [`Conduct::recipients`].
    pub welcome: f64,
    /// Weight of earlier mails, at most 1.
    pub dilution: f64,
}

/// Kind of effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counts {
    /// A score, before and after its correction by the reputation.
    Rated {
        /// Score before the correction.
        score: f64,
        /// Score after the correction, for a repetition of the mail.
        moved: f64,
    },
    /// A lesson: points above 0 for spam, below for ham.
    Taught(f64),
    /// The end of an earlier effect.
    Forgotten,
}

/// Request of greylisting for a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Sender with each recipient: all have to have waited.
    pub triplets: Vec<Mark>,
    /// Senders that are exempt after enough deliveries.
    pub vouchers: Vec<Mark>,
    /// Minimum wait, in seconds.
    pub delay: i64,
}

/// Mail to learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// Whether it is spam.
    pub is_spam: bool,
    /// Possible ids of the mail; the first one is remembered.
    pub ids: Vec<Box<str>>,
    /// Time of arrival, in seconds since 1970.
    pub at: i64,
    /// Tokens of the mail.
    pub tokens: Tokens,
    /// Whether an earlier, opposite lesson is replaced.
    pub corrects: bool,
}

/// Result of a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// The mail was learned.
    New,
    /// The opposite lesson was undone, and the mail learned.
    Corrected,
    /// The mail was known already.
    Known,
}

/// Everything that a ledger knows about one mail.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recalled {
    /// See [`Ledger::recall`].
    pub corpus: Corpus,
    /// See [`Ledger::recall`].
    pub words: Vec<learn::Counts>,
    /// See [`Ledger::standings`].
    pub standings: Vec<Standing>,
    /// See [`Ledger::alike`]; none where nothing was to be compared.
    pub alike: Option<Alike>,
}

/// Numbers about an owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Numbers of learned mails.
    pub corpus: Corpus,
    /// Number of tokens.
    pub words: u64,
    /// Times of use of the token unused for longest, and of the one used last.
    pub oldest: i64,
    /// See [`Summary::oldest`].
    pub newest: i64,
    /// Time of the last expiry.
    pub expired: i64,
    /// Number of remembered mails.
    pub mails: u64,
    /// Number of names of senders and mails.
    pub senders: u64,
    /// Number of reported texts.
    pub reports: u64,
}

/// Storage. The owner is a user, or the site: the empty name.
pub trait Ledger: Send {
    /// Returns how many mails were learned, and in how many of them each token occurred; unknown tokens are left out.
    ///
    /// # Errors
    /// The file cannot be read.
    fn recall(&mut self, owner: &str, keys: &[Key]) -> Result<(Corpus, Vec<learn::Counts>), Error>;

    /// Notes that these tokens were used at that time.
    ///
    /// # Errors
    /// The file cannot be written.
    fn touch(&mut self, owner: &str, keys: &[Key], at: i64) -> Result<(), Error>;

    /// Learns all of the mails, or none.
    ///
    /// # Errors
    /// The file cannot be written.
    fn learn(&mut self, owner: &str, lessons: &[Lesson]) -> Result<Vec<Learned>, Error>;

    /// Undoes the lesson of a mail with one of these ids. Returns whether there was one.
    ///
    /// # Errors
    /// The file cannot be written.
    fn forget(&mut self, owner: &str, ids: &[Box<str>], tokens: &Tokens) -> Result<bool, Error>;

    /// Forgets the tokens unused for longest beyond `words_max`, and mails beyond [`MAILS_MAX`]. Returns the number of
    /// tokens.
    ///
    /// # Errors
    /// The file cannot be written.
    fn expire(&mut self, owner: &str, words_max: u64, now: i64) -> Result<u64, Error>;

    /// Notes the arrival of a mail. Returns whether it has waited, or a sender is exempt.
    ///
    /// # Errors
    /// The file cannot be written.
    fn greet(&mut self, greeting: &Greeting, now: i64) -> Result<bool, Error>;

    /// Counts a delivery for these senders.
    ///
    /// # Errors
    /// The file cannot be written.
    fn vouch(&mut self, vouchers: &[Mark], now: i64) -> Result<(), Error>;

    /// Returns the standings of names of senders and mails, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    fn standings(&mut self, owner: &str, names: &[Name]) -> Result<Vec<Standing>, Error>;

    /// Counts a mail for its sender.
    ///
    /// # Errors
    /// The file cannot be written.
    fn count(&mut self, owner: &str, conduct: &Conduct, counts: Counts, now: i64) -> Result<(), Error>;

    /// Forgets names unseen since `since`, and those unseen for longest beyond `most`. Returns their number.
    ///
    /// # Errors
    /// The file cannot be written.
    fn forget_senders(&mut self, most: u64, since: i64) -> Result<u64, Error>;

    /// Compares a mail with the reported ones.
    ///
    /// # Errors
    /// The file cannot be read.
    fn alike(&mut self, owner: &str, fuzzy: &Fuzzy) -> Result<Alike, Error>;

    /// Answers [`Ledger::recall`], [`Ledger::standings`] and [`Ledger::alike`] together.
    ///
    /// # Errors
    /// The file cannot be read.
    fn ask(&mut self, owner: &str, keys: &[Key], names: &[Name], fuzzy: Option<&Fuzzy>) -> Result<Recalled, Error> {
        let (corpus, words) = self.recall(owner, keys)?;
        let standings = self.standings(owner, names)?;
        let alike = fuzzy.map(|fuzzy| self.alike(owner, fuzzy)).transpose()?;
        Ok(Recalled { corpus, words, standings, alike })
    }

    /// Reports a mail as spam, or with `false` forgets all nearly equal reports.
    ///
    /// # Errors
    /// The file cannot be written.
    fn report(&mut self, owner: &str, fuzzy: &Fuzzy, is_spam: bool, now: i64) -> Result<(), Error>;

    /// Forgets reports older than `since`, and the oldest beyond `most` mails.
    ///
    /// # Errors
    /// The file cannot be written.
    fn forget_reports(&mut self, most: u64, since: i64) -> Result<(), Error>;

    /// Returns the numbers of an owner.
    ///
    /// # Errors
    /// The file cannot be read.
    fn summary(&mut self, owner: &str) -> Result<Summary, Error>;

    /// Exports everything about an owner as a snapshot.
    ///
    /// # Errors
    /// The file cannot be read, or `each` fails.
    fn export(&mut self, owner: &str, each: &mut dyn FnMut(Snapshot) -> std::io::Result<()>) -> Result<(), Error>;

    /// Replaces everything about an owner by a snapshot, or changes nothing.
    ///
    /// # Errors
    /// The file cannot be written, or a line is an error.
    fn import(
        &mut self,
        owner: &str,
        lines: &mut dyn Iterator<Item = Result<Snapshot, Error>>,
    ) -> Result<Summary, Error>;
}
