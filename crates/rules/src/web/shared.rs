//! State that all groups of a configuration share.

use super::list::Bound;
use super::messages::Messages;
use super::phrase::{Dialect, Settings};
use super::request::essence;
use super::story::Story;

/// Settings, texts and lists of the main file.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub settings: Settings,
    pub messages: Messages,
    /// Lists of the main file, and the storyboard that runs on them before there is a group.
    pub lists: Vec<Bound>,
    pub preauth: Story,
    /// `searchsitelistforip = off`: addresses are not looked for in lists of sites.
    pub leaves_addresses: bool,
    /// More types that are text.
    pub types: Vec<Box<str>>,
}

impl Shared {
    /// Whether content of a type is looked through for phrases.
    pub fn is_text(&self, content_type: Option<&[u8]>) -> bool {
        let Some(kind) = content_type.map(essence).filter(|kind| !kind.is_empty()) else { return true };
        let is_more = self.settings.dialect == Dialect::Sluice && is_text_under_another_name(&kind);
        kind.starts_with(b"text/") || is_more || self.types.iter().any(|known| known.as_bytes() == kind)
    }
}

/// Types of text that E2Guardian does not look at.
fn is_text_under_another_name(kind: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] =
        [b"application/json", b"application/xml", b"application/javascript", b"application/x-javascript"];
    NAMES.contains(&kind) || kind.ends_with(b"+xml") || kind.ends_with(b"+json")
}
