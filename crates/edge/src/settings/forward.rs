//! Where mail goes, or comes from: a URL for a server, a path, or nowhere.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{self, Deserializer};

/// A next hop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Forward {
    /// Back to whoever asks.
    #[default]
    Caller,
    /// To the server that the client wanted: on transparent listeners.
    Original,
    /// A server.
    Server {
        /// Protocol of the server.
        scheme: Scheme,
        /// Where it is, as `host:port`.
        address: String,
    },
    /// A server that speaks LMTP on a UNIX socket.
    LmtpSocket(PathBuf),
    /// A server that speaks SMTP on a UNIX socket.
    SmtpSocket(PathBuf),
    /// A Maildir.
    Maildir(PathBuf),
    /// The mail store of this process.
    Store,
    /// Nowhere.
    Discard,
}

/// Protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// SMTP, with STARTTLS.
    Smtp,
    /// SMTP within TLS.
    Smtps,
    /// LMTP, with STARTTLS.
    Lmtp,
    /// POP3, with STLS.
    Pop3,
    /// POP3 within TLS.
    Pop3s,
    /// IMAP, with STARTTLS.
    Imap,
    /// IMAP within TLS.
    Imaps,
}

/// A version of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Each scheme with its name and the port that needs no mention.
const SCHEMES: [(Scheme, &str, u16); 7] = [
    (Scheme::Smtp, "smtp", 25),
    (Scheme::Smtps, "smtps", 465),
    (Scheme::Lmtp, "lmtp", 24),
    (Scheme::Pop3, "pop3", 110),
    (Scheme::Pop3s, "pop3s", 995),
    (Scheme::Imap, "imap", 143),
    (Scheme::Imaps, "imaps", 993),
];

impl Scheme {
    /// Whether TLS begins with the connection.
    pub const fn is_implicit_tls(self) -> bool {
        matches!(self, Scheme::Smtps | Scheme::Pop3s | Scheme::Imaps)
    }

    fn name(self) -> &'static str {
        SCHEMES.iter().find(|(scheme, ..)| *scheme == self).map_or("", |(_, name, _)| name)
    }
}

impl Forward {
    /// Whether mail can be handed to it.
    pub const fn takes_mail(&self) -> bool {
        match self {
            Forward::Server { scheme, .. } => matches!(scheme, Scheme::Smtp | Scheme::Smtps | Scheme::Lmtp),
            Forward::Original
            | Forward::LmtpSocket(_)
            | Forward::SmtpSocket(_)
            | Forward::Maildir(_)
            | Forward::Store
            | Forward::Discard => true,
            Forward::Caller => false,
        }
    }

    /// Whether it is a server that can be asked for its recipients.
    pub const fn asks_for_recipients(&self) -> bool {
        self.takes_mail() && !matches!(self, Forward::Original | Forward::Maildir(_) | Forward::Discard)
    }

    /// Whether mail can be got from it by POP3.
    pub const fn speaks_pop3(&self) -> bool {
        matches!(self, Forward::Original | Forward::Server { scheme: Scheme::Pop3 | Scheme::Pop3s, .. })
    }

    /// Whether mail can be got from it by IMAP.
    pub const fn speaks_imap(&self) -> bool {
        matches!(self, Forward::Original | Forward::Server { scheme: Scheme::Imap | Scheme::Imaps, .. })
    }

    /// The host of a server, without the port and without brackets.
    pub fn host(&self) -> Option<&str> {
        let Forward::Server { address, .. } = self else { return None };
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        Some(host.trim_start_matches('[').trim_end_matches(']'))
    }
}

impl std::str::FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Forward, String> {
        if let Some((name, host)) = text.split_once("://")
            && let Some((scheme, _, port)) = SCHEMES.iter().find(|(_, known, _)| *known == name)
        {
            return Ok(Forward::Server { scheme: *scheme, address: host_port(host, *port)? });
        }
        match text.split_once(':') {
            Some(("lmtp", path)) if path.starts_with('/') => Ok(Forward::LmtpSocket(path.into())),
            Some(("smtp", path)) if path.starts_with('/') && !path.starts_with("//") => {
                Ok(Forward::SmtpSocket(path.into()))
            }
            Some(("maildir", path)) if !path.is_empty() => Ok(Forward::Maildir(path.into())),
            Some(("store", "")) => Ok(Forward::Store),
            Some(("discard", "")) => Ok(Forward::Discard),
            _ => {
                let servers = SCHEMES.map(|(_, name, _)| format!("{name}://HOST:PORT")).join(", ");
                Err(format!(
                    "{text:?} is not a next hop: {servers}, lmtp:/PATH, smtp:/PATH, maildir:PATH, store: or discard:"
                ))
            }
        }
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forward::Server { scheme, address } => write!(f, "{}://{address}", scheme.name()),
            Forward::LmtpSocket(path) => write!(f, "lmtp:{}", path.display()),
            Forward::SmtpSocket(path) => write!(f, "smtp:{}", path.display()),
            Forward::Maildir(path) => write!(f, "maildir:{}", path.display()),
            Forward::Store => write!(f, "store:"),
            Forward::Discard => write!(f, "discard:"),
            Forward::Caller => write!(f, "replies"),
            Forward::Original => write!(f, "whom it was meant for"),
        }
    }
}

impl<'de> Deserialize<'de> for Forward {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Forward, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

fn host_port(text: &str, default_port: u16) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    if text.is_empty() {
        return Err("the next hop has no host".into());
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    match port.map(str::parse::<u16>) {
        None => Ok(format!("{host}:{default_port}")),
        Some(Ok(port)) if port != 0 => Ok(format!("{host}:{port}")),
        Some(_) => Err(format!("{text:?} has no valid port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hops_are_read_and_written_alike() {
        for text in [
            "smtp://mail.example:2526",
            "lmtp://[::1]:24",
            "lmtp:/run/lmtp",
            "smtp:/run/smtp",
            "maildir:/var/mail/x",
            "store:",
            "discard:",
        ] {
            assert_eq!(text.parse::<Forward>().unwrap().to_string(), text);
        }
        assert_eq!("smtp://mail.example".parse::<Forward>().unwrap().to_string(), "smtp://mail.example:25");
        assert_eq!("smtps://mail.example".parse::<Forward>().unwrap().to_string(), "smtps://mail.example:465");
    }

    #[test]
    fn the_host_is_known_without_its_port() {
        assert_eq!("lmtp://[::1]:24".parse::<Forward>().unwrap().host(), Some("::1"));
        assert_eq!("smtp://mail.example".parse::<Forward>().unwrap().host(), Some("mail.example"));
    }
}
