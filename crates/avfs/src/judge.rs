//! Judges of contents. This crate finds nothing by itself.

use std::fmt;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

/// Begins inspections.
pub trait Judge: Send + Sync {
    /// The inspection of one content, which is fed from its beginning.
    fn begin(&self) -> Box<dyn Judging>;

    /// Identity of the current signatures and settings: a verdict counts as long as this is the same.
    fn generation(&self) -> Vec<u8>;

    /// Type of a content with this beginning, as rules call it.
    fn kind(&self, _head: &[u8]) -> &'static str {
        ""
    }
}

/// Signatures and settings, told from others by a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation([u8; 16]);

impl Generation {
    /// That which this text stands for.
    pub fn of(text: &[u8]) -> Generation {
        let whole = digest::sha256::digest(text);
        Generation(*whole.first_chunk().unwrap_or(&[0; 16]))
    }

    /// The bytes of the generation, for a digest together with other data.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A judge, with its signatures.
pub struct Current {
    /// The judge.
    pub judge: Box<dyn Judge>,
    /// The generation of it.
    pub generation: Generation,
}

impl Current {
    /// As it says itself.
    pub fn new(judge: Box<dyn Judge>) -> Current {
        let generation = Generation::of(&judge.generation());
        Current { judge, generation }
    }
}

/// The judge in force. Inspections in progress keep the one that they began with.
pub struct InForce(RwLock<Arc<Current>>);

impl InForce {
    /// Starts with this judge.
    pub fn new(judge: Box<dyn Judge>) -> InForce {
        InForce(RwLock::new(Arc::new(Current::new(judge))))
    }

    /// The current one.
    pub fn now(&self) -> Arc<Current> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Their generation.
    pub fn generation(&self) -> Generation {
        self.0.read().unwrap_or_else(PoisonError::into_inner).generation
    }

    /// Replaces the judge for all later inspections.
    pub fn renew(&self, judge: Box<dyn Judge>) {
        let new = Arc::new(Current::new(judge));
        let old = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), new);
        // Nobody waits while they end.
        drop(old);
    }
}

/// One inspection.
pub trait Judging: Send {
    /// Takes more of the content. What was found already, if that is certain.
    ///
    /// # Errors
    /// When there will be no verdict.
    fn feed(&mut self, piece: &[u8]) -> Result<Option<Hit>, Unjudged>;

    /// The same, but what it takes may be inspected later, while more is read: what is said is what was found by now.
    ///
    /// # Errors
    /// When there will be no verdict.
    fn feed_ahead(&mut self, piece: &[u8]) -> Result<Option<Hit>, Unjudged> {
        self.feed(piece)
    }

    /// Ends the content.
    ///
    /// # Errors
    /// When there is no verdict.
    fn finish(self: Box<Self>) -> Result<Option<Hit>, Unjudged>;
}

/// A hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The name of the signature.
    pub name: String,
    /// The names of the objects that it is in, outermost first.
    pub within: Vec<String>,
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let clean = |name: &str| name.chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>();
        self.within.iter().try_for_each(|name| write!(f, " » {}", clean(name)))
    }
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged(pub String);

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs a piece of an inspection; a panic means no verdict.
///
/// # Errors
/// The errors of `work`, and a panic.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Unjudged>) -> Result<T, Unjudged> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Unjudged("the inspection panicked".into())))
}

/// Bytes read at a time.
const PIECE_BYTES: usize = 128 << 10;

/// A whole content, from its beginning to its end.
///
/// # Errors
/// The inner ones when there is no verdict, the outer ones when the content cannot be read.
pub fn whole(judge: &dyn Judge, mut content: impl Read) -> io::Result<Result<Option<Hit>, Unjudged>> {
    let mut judging = match guarded(|| Ok(judge.begin())) {
        Ok(judging) => judging,
        Err(why) => return Ok(Err(why)),
    };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match content.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => outcome?,
        };
        if count == 0 {
            return Ok(guarded(|| judging.finish()));
        }
        match guarded(|| judging.feed_ahead(&piece[..count])) {
            Ok(None) => {}
            decided => return Ok(decided),
        }
    }
}
