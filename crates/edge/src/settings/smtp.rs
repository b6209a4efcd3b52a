//! Settings of SMTP and LMTP alone.

use std::net::IpAddr;

use serde::Deserialize;

use super::network::Trusted;
use super::policy::MailRule;
use super::trust::Tested;

/// `protocol = "smtp"` or `"lmtp"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct SmtpListener {
    /// Whether clients may log in to the next hop: `off`, `tls` or `any`.
    pub auth: Option<Auth>,
    /// Rules in place of the listener's settings; the first that applies to a mail decides.
    #[serde(rename = "rule")]
    pub rules: Vec<MailRule>,
    /// Names of `[[recipients]]` tables that apply; none: the next hop alone decides.
    pub recipients: Vec<String>,
    /// Bare CR or LF in the content: `normalise` or `refuse`.
    pub bare_line_ends: BareLineEnds,
    /// Whether a `Received` field is added.
    pub received: bool,
    /// Recipients in one transaction.
    pub recipients_max: u32,
    /// Infected mails of one client within an hour; then it is told to come later. 0 means any; without it: 20 of strangers.
    pub infected_per_client_max: Option<u32>,
    /// Clients whose trust is tested: `off`, `strangers` or `all`. Default: strangers, where mail comes from the
    /// world.
    pub trust: Option<Tested>,
    /// The bytes of content that a client has to send in a second, on average over three minutes; 0 means none.
    pub content_bytes_per_second_min: u64,
    /// Clients that may send XFORWARD.
    pub xforward_from: Vec<Trusted>,
    /// Clients that may send XCLIENT.
    pub xclient_from: Vec<Trusted>,
    /// Whether a next hop that offers XCLIENT is told by it who the client is.
    pub forward_xclient: bool,
    /// Clients whose mail the store relays to any recipient.
    pub relay_clients: Vec<Trusted>,
}

/// Whether clients may log in to the next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// No.
    Off,
    /// In TLS, to a hop that has proved in TLS who it is, or is on this machine.
    Tls,
    /// However the streams are.
    Any,
}

/// Treatment of a bare CR or LF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BareLineEnds {
    /// It becomes CRLF.
    #[default]
    Normalise,
    /// The mail is refused.
    Refuse,
}

impl Default for SmtpListener {
    fn default() -> SmtpListener {
        SmtpListener {
            auth: None,
            rules: Vec::new(),
            recipients: Vec::new(),
            bare_line_ends: BareLineEnds::default(),
            received: true,
            recipients_max: 1_000,
            infected_per_client_max: None,
            trust: None,
            content_bytes_per_second_min: 100,
            xforward_from: Vec::new(),
            xclient_from: Vec::new(),
            forward_xclient: false,
            relay_clients: Vec::new(),
        }
    }
}

impl SmtpListener {
    /// Whether a client's mail is relayed to any recipient; one without an address is on a UNIX socket.
    pub fn relays_for(&self, client: Option<IpAddr>) -> bool {
        self.relay_clients.iter().any(|trusted| trusted.means(client))
    }

    /// Whether a client may say that it speaks for others.
    pub fn speaks_for_others(&self, client: IpAddr) -> bool {
        self.xforward_from.iter().chain(&self.xclient_from).any(|trusted| trusted.means(Some(client)))
    }
}
