//! The names of what listeners speak.

use serde::Deserialize;

/// The name of what is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// RFC 5321.
    Smtp,
    /// RFC 2033.
    Lmtp,
    /// RFC 1939.
    Pop3,
    /// RFC 9051 and 3501.
    Imap,
    /// Sendmail's and Postfix's mail filter protocol.
    Milter,
    /// That of SpamAssassin's daemon.
    Spamd,
    /// That of Rspamd.
    Rspamd,
    /// RFC 3507.
    Icap,
    /// RFC 9112.
    Http,
}

impl Protocol {
    /// The name, as it stands in a configuration and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Smtp => "smtp",
            Protocol::Lmtp => "lmtp",
            Protocol::Pop3 => "pop3",
            Protocol::Imap => "imap",
            Protocol::Milter => "milter",
            Protocol::Spamd => "spamd",
            Protocol::Rspamd => "rspamd",
            Protocol::Icap => "icap",
            Protocol::Http => "http",
        }
    }

    /// Whether mails may be scored: those that are on their way, and not in a mailbox.
    pub const fn is_scored(self) -> bool {
        matches!(self, Protocol::Smtp | Protocol::Lmtp | Protocol::Milter) || self.tells_scores()
    }

    /// Whether who asks hands over a mail and is told its score.
    pub const fn tells_scores(self) -> bool {
        matches!(self, Protocol::Spamd | Protocol::Rspamd)
    }

    /// Whether mails may be authenticated: those of which the envelope is known.
    pub const fn is_authenticated(self) -> bool {
        matches!(self, Protocol::Smtp | Protocol::Lmtp | Protocol::Milter)
    }

    /// Whether the content stays with who asks, or goes where each request says, so that there is no next hop.
    pub const fn answers(self) -> bool {
        self.is_web() || matches!(self, Protocol::Milter | Protocol::Spamd | Protocol::Rspamd)
    }

    /// Whether it carries objects of the web, and no mails.
    pub const fn is_web(self) -> bool {
        matches!(self, Protocol::Icap | Protocol::Http)
    }

    /// Whether a reader is told the size of a message before it comes, so that it cannot change.
    pub const fn announces_sizes(self) -> bool {
        matches!(self, Protocol::Pop3 | Protocol::Imap)
    }
}
