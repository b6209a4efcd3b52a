//! Phrases with weights, and the score of a page.
//!
//! [`Phrases`] is loaded from the lists of a group. A [`Page`] takes the bytes of a page as they come, however they are cut, and gives
//! a [`Score`]. All phrases are looked for in one pass of [`pattern`] over each view of the page: by default over the text without
//! markup, and over the bytes with it.
//!
//! In our dialect a page is read as its readers see it: in the charset that it declares, with references decoded and in lower case. If a tag stands
//! within a word, a view more has the text without tags within lines; if a page declares another charset than UTF-8, views more have its bytes.
//!
//! # Bounds
//! A page keeps a counter for each phrase and view, and a few kilobytes more, however long it is. One in whose text phrases of the list stand
//! within each other more than sixteen times for each byte of 64 KiB is given up as [`Outcome::Dense`].

mod fold;
mod lens;
mod line;
mod load;
mod page;
mod prose;
mod score;
mod view;

pub use load::{Census, Phrases};
pub(super) use load::{Lists, Role, category};
pub use page::Page;
pub use score::{Found, Outcome, Score};

/// Program whose interpretation of phrases and pages is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Ours: phrases are folded as pages are, so that phrases with accents or punctuation occur; words at both ends of a page count.
    #[default]
    Sluice,
    /// That of E2Guardian 5.3.5.
    E2guardian535,
    /// That of E2Guardian 5.5.8.
    E2guardian558,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::Sluice, Dialect::E2guardian535, Dialect::E2guardian558];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Sluice => "sluice",
            Dialect::E2guardian535 => "e2guardian-5.3.5",
            Dialect::E2guardian558 => "e2guardian-5.5.8",
        }
    }

    /// The dialect of a name.
    pub fn of_name(name: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// Settings of phrase filtering, as the main configuration has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Program whose interpretation is followed.
    pub dialect: Dialect,
    /// `weightedphrasemode`: 0 does not count, 1 counts each occurrence, 2 each phrase once.
    pub weighting: u8,
    /// `phrasefiltermode`: 0 bytes as they are, 1 text without markup, 2 both, 3 title and descriptions.
    pub views: u8,
    /// `preservecase`: 0 folds case, 1 does not, 2 does both.
    pub case: u8,
    /// `hexdecodecontent`.
    pub decodes_percent: bool,
    /// `maxcontentfiltersize`, in bytes. A longer page has no score in the dialect of 5.3.5.
    pub page_bytes_max: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            dialect: Dialect::default(),
            weighting: 2,
            views: 2,
            case: 0,
            decodes_percent: false,
            page_bytes_max: 2 << 20,
        }
    }
}
