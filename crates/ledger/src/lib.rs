//! Where the host keeps what was learned: words and mails, for the site and for each user, behind a small trait.
//!
//! [`Ledger`] is what may be asked and told; [`Sqlite`] is one file of SQLite with a write-ahead log, which several processes
//! may have open at once. Each call is one transaction: a process that is killed leaves all of it or nothing.
//!
//! This crate knows nothing of mails: it is told ids and keys. Bounds: a word's key is five bytes, an owner's name and an id
//! [`NAME_BYTES_MAX`]; of words so many are kept as whoever calls [`Ledger::expire`] says, of mails [`MAILS_MAX`] an owner, of marks
//! [`MARKS_MAX`] in all, of senders as many as whoever calls [`Ledger::forget_senders`] says.
#![forbid(unsafe_code)]

mod error;
mod sqlite;

pub use error::Error;
pub use sqlite::Sqlite;

use learn::{Corpus, Key, Snapshot, Standing, Tokens};

/// The longest name of an owner, and the longest id of a mail.
pub const NAME_BYTES_MAX: usize = 998;

/// Mails that are remembered of an owner, the newest; of older ones it is not known any more that they were learned.
pub const MAILS_MAX: u64 = 500_000;

/// A digest of who sends to whom, or of who has sent before.
pub type Mark = [u8; 16];

/// Marks that are kept, about; beyond it those that were seen longest ago are forgotten.
pub const MARKS_MAX: u64 = 1_000_000;

/// A digest of a name of a sender, or of a mail.
pub type Name = [u8; 16];

/// What is kept of senders, where nothing else is said.
pub const SENDERS_MAX: u64 = 1_000_000;

/// A mail, as it is compared with those that were reported as spam.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fuzzy {
    /// The shingles of its text in their places; none where it is too short.
    pub shingles: Vec<u64>,
    /// Digests of what is attached.
    pub parts: Vec<Name>,
}

/// How much a mail is like one that was reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alike {
    /// Shingles that both have in the same place.
    pub places: u8,
    /// Whether something that is attached was attached to one that was reported.
    pub has_part: bool,
}

/// A mail that counts for who has sent it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conduct {
    /// The mail's own name, where it is to count once.
    pub mail: Option<Name>,
    /// The names of its sender.
    pub sender: Vec<Name>,
    /// Those it was written to, where it is one of the site's own, and what that is worth.
    pub recipients: Vec<Name>,
    /// See [`Conduct::recipients`].
    pub welcome: f64,
    /// What a mail leaves of what came before, up to 1.
    pub dilution: f64,
}

/// How a mail counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counts {
    /// By its score, before and after it was moved.
    Rated {
        /// The score by which it counts.
        score: f64,
        /// The score to which it is moved when it comes again.
        moved: f64,
    },
    /// By what somebody says: points above 0 for spam, below for ham.
    Taught(f64),
    /// No more.
    Forgotten,
}

/// A mail that may have to come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Who sends to each of its recipients: all of them have to have waited.
    pub triplets: Vec<Mark>,
    /// Who may have delivered often enough that nobody has to wait.
    pub vouchers: Vec<Mark>,
    /// How long it has to wait, in seconds.
    pub delay: i64,
}

/// A mail that is to be learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// Whether it is spam.
    pub is_spam: bool,
    /// Names that it may be known by; it is remembered by the first.
    pub ids: Vec<Box<str>>,
    /// When it came, in seconds since 1970.
    pub at: i64,
    /// Its words.
    pub tokens: Tokens,
    /// Whether it is learned anew where it was learned as the opposite.
    pub corrects: bool,
}

/// What came of a lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It was learned.
    New,
    /// It was known as the opposite, which was taken back first.
    Corrected,
    /// It was known already.
    Known,
}

/// What is kept of an owner, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Mails.
    pub corpus: Corpus,
    /// Words.
    pub words: u64,
    /// When the word was of use that was so longest ago, and last.
    pub oldest: i64,
    /// See [`Summary::oldest`].
    pub newest: i64,
    /// When words were last looked through for old ones.
    pub expired: i64,
    /// Mails that are remembered.
    pub mails: u64,
    /// Names of senders and mails that have a standing.
    pub senders: u64,
    /// Texts of mails that were reported.
    pub reports: u64,
}

/// Where it is kept. The owner is a user, or the site: the empty name.
pub trait Ledger: Send {
    /// How many mails were learned, and in how many each of these words was; words that nobody knows are left out.
    ///
    /// # Errors
    /// When it cannot be read.
    fn recall(&mut self, owner: &str, keys: &[Key]) -> Result<(Corpus, Vec<learn::Counts>), Error>;

    /// These words were of use at that time.
    ///
    /// # Errors
    /// When it cannot be written.
    fn touch(&mut self, owner: &str, keys: &[Key], at: i64) -> Result<(), Error>;

    /// Learns mails, all or none.
    ///
    /// # Errors
    /// When it cannot be written.
    fn learn(&mut self, owner: &str, lessons: &[Lesson]) -> Result<Vec<Learned>, Error>;

    /// Takes back what was learned of a mail that is known by one of these ids; whether there was anything.
    ///
    /// # Errors
    /// When it cannot be written.
    fn forget(&mut self, owner: &str, ids: &[Box<str>], tokens: &Tokens) -> Result<bool, Error>;

    /// Forgets words that were of no use for longest, where there are more than `words_max`, and mails beyond [`MAILS_MAX`]:
    /// how many words.
    ///
    /// # Errors
    /// When it cannot be written.
    fn expire(&mut self, owner: &str, words_max: u64, now: i64) -> Result<u64, Error>;

    /// Whether a mail has waited, or somebody vouches for it; notes that it has come.
    ///
    /// # Errors
    /// When it cannot be written.
    fn greet(&mut self, greeting: &Greeting, now: i64) -> Result<bool, Error>;

    /// These have delivered a mail.
    ///
    /// # Errors
    /// When it cannot be written.
    fn vouch(&mut self, vouchers: &[Mark], now: i64) -> Result<(), Error>;

    /// What names of senders and mails are known for, in their order.
    ///
    /// # Errors
    /// When it cannot be read.
    fn standings(&mut self, owner: &str, names: &[Name]) -> Result<Vec<Standing>, Error>;

    /// A mail counts for who has sent it.
    ///
    /// # Errors
    /// When it cannot be written.
    fn count(&mut self, owner: &str, conduct: &Conduct, counts: Counts, now: i64) -> Result<(), Error>;

    /// Forgets names that were seen last before `since`, and beyond `most` those that were so longest ago: how many.
    ///
    /// # Errors
    /// When it cannot be written.
    fn forget_senders(&mut self, most: u64, since: i64) -> Result<u64, Error>;

    /// How much a mail is like one that was reported.
    ///
    /// # Errors
    /// When it cannot be read.
    fn alike(&mut self, owner: &str, fuzzy: &Fuzzy) -> Result<Alike, Error>;

    /// A mail is reported as spam, or (`false`) is none: then all that are nearly the same are forgotten.
    ///
    /// # Errors
    /// When it cannot be written.
    fn report(&mut self, owner: &str, fuzzy: &Fuzzy, is_spam: bool, now: i64) -> Result<(), Error>;

    /// Forgets what was reported last before `since`, and beyond `most` mails what was so longest ago.
    ///
    /// # Errors
    /// When it cannot be written.
    fn forget_reports(&mut self, most: u64, since: i64) -> Result<(), Error>;

    /// The numbers.
    ///
    /// # Errors
    /// When it cannot be read.
    fn summary(&mut self, owner: &str) -> Result<Summary, Error>;

    /// All that is kept of an owner, as a snapshot.
    ///
    /// # Errors
    /// When it cannot be read, or `each` fails.
    fn export(&mut self, owner: &str, each: &mut dyn FnMut(Snapshot) -> std::io::Result<()>) -> Result<(), Error>;

    /// Puts a snapshot in the place of all that is kept of an owner, all or nothing.
    ///
    /// # Errors
    /// When it cannot be written, or a line is an error.
    fn import(
        &mut self,
        owner: &str,
        lines: &mut dyn Iterator<Item = Result<Snapshot, Error>>,
    ) -> Result<Summary, Error>;
}
