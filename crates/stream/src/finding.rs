//! Findings: reports about content.

use alloc::borrow::Cow;

/// Something found in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Finding {
    /// Its class, by which policy is set.
    pub class: Class,
    /// The signature's name, or a name of our own in the form `Heuristics.Limits.Exceeded.Depth`,
    /// `Heuristics.Encrypted.Zip`, `Heuristics.Ambiguous.Mime.Boundary`, `Heuristics.Malformed.Gzip.Crc`,
    /// `Heuristics.Truncated.Zip`.
    pub name: Cow<'static, str>,
    /// Where, in bytes of the stream that the stage reads.
    pub offset: u64,
}

/// The classes of findings. Ordered by weight: the later the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Class {
    /// The content ends before its format says so.
    Truncated,
    /// The content breaks its format in a way that readers agree on.
    Malformed,
    /// Two readers could disagree about the content, and both readings were inspected.
    TwoReadings,
    /// All content was inspected; a check that needs more of one object than is kept was applied to a part of it.
    Partial,
    /// Opening the content has its reader fetch more from elsewhere, which is not inspected.
    External,
    /// The content cannot be read without a key.
    Encrypted,
    /// The content has a format without a reader: what is packed in it was not inspected.
    Unopened,
    /// Two readers could disagree about the content, and only one reading was inspected.
    Ambiguous,
    /// A bound of [`Limits`](crate::Limits) was reached: not everything was inspected.
    Limit,
    /// A rule of the operator stands against it.
    Forbidden,
    /// An intrusion rule that blocks matched.
    Intrusion,
    /// A signature matched.
    Match,
}

impl Class {
    /// Returns the class in lower case, as logs and configuration have it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Truncated => "truncated",
            Class::Malformed => "malformed",
            Class::TwoReadings => "two-readings",
            Class::Partial => "partial",
            Class::External => "external",
            Class::Encrypted => "encrypted",
            Class::Unopened => "unopened",
            Class::Ambiguous => "ambiguous",
            Class::Limit => "limit",
            Class::Forbidden => "forbidden",
            Class::Intrusion => "intrusion",
            Class::Match => "match",
        }
    }
}

impl Finding {
    /// A finding with a name of our own.
    pub const fn new(class: Class, name: &'static str, offset: u64) -> Finding {
        Finding { class, name: Cow::Borrowed(name), offset }
    }
}
