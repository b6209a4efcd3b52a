//! Lines without effect.

/// The reason for which a line has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// It hides elements of pages.
    Hides,
    /// It changes pages or requests.
    Changes,
    /// It is about windows.
    Windows,
    /// Its options or its pattern are not known.
    Unknown,
}

impl Refusal {
    /// Words for rules that are left out.
    pub fn words(self) -> &'static str {
        match self {
            Refusal::Hides => "hide elements of pages",
            Refusal::Changes => "change pages or requests",
            Refusal::Windows => "are about windows and pages",
            Refusal::Unknown => "are not understood",
        }
    }
}
