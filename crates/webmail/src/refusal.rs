//! Reasons why a request or a login is refused, each with a sentence in the language that the browser asks for.

use crate::language::Words;

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its body is larger than may be.
    TooLarge,
    /// Its files are larger than may be.
    FilesTooLarge,
    /// The account has too many connections.
    Connections,
    /// There is no memory for it now.
    Busy,
    /// The store cannot be opened now.
    Closed,
    /// Its form is of another session.
    OtherSession,
    /// Its form is of another site.
    OtherSite,
    /// Its method is not known.
    Method,
    /// It asks for the settings of no address.
    NoAddress,
    /// There is no such page.
    Missing,
}

/// The reason why a login is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The name or the password is wrong.
    Wrong,
    /// The code is wrong.
    WrongCode,
    /// The passkey is not known, or its answer does not count.
    WrongPasskey,
    /// The second step came too late, or a second time.
    Late,
    /// The directory of accounts cannot be asked now.
    Away,
    /// Too many log in.
    Busy,
}

impl Refusal {
    /// The status of HTTP.
    pub(crate) fn status(self) -> u16 {
        match self {
            Refusal::NoAddress => 400,
            Refusal::OtherSession | Refusal::OtherSite => 403,
            Refusal::Missing => 404,
            Refusal::Method => 405,
            Refusal::TooLarge | Refusal::FilesTooLarge => 413,
            Refusal::Connections => 429,
            Refusal::Busy | Refusal::Closed => 503,
        }
    }

    /// A sentence for the user.
    pub(crate) fn text(self, words: &Words) -> &'static str {
        let failures = &words.failures;
        match self {
            Refusal::TooLarge => failures.form_too_large,
            Refusal::FilesTooLarge => failures.files_too_large,
            Refusal::Connections => failures.connections,
            Refusal::Busy => failures.busy,
            Refusal::Closed => failures.closed,
            Refusal::OtherSession => failures.other_session,
            Refusal::OtherSite => failures.other_site,
            Refusal::Method => failures.method,
            Refusal::NoAddress => failures.no_address,
            Refusal::Missing => words.common.no_such_page,
        }
    }
}

impl Denial {
    /// A sentence for the user.
    pub(crate) fn text(self, words: &Words) -> &'static str {
        match self {
            Denial::Wrong => words.login.wrong,
            Denial::WrongCode => words.failures.code,
            Denial::WrongPasskey => words.login.wrong_passkey,
            Denial::Late => words.login.late,
            Denial::Away => words.login.away,
            Denial::Busy => words.login.busy,
        }
    }
}
