//! `[[listener]]`: a door, and what its clients may do.

use std::net::IpAddr;
use std::path::PathBuf;

use flow::{Action, Policy};
use serde::Deserialize;

use super::action::{action, some_action};
use super::address::{Address, SocketMode};
use super::forward::{Forward, ProxyVersion};
use super::network::{Network, Trusted};
use super::policy::MailRule;
use super::refusal::Refusal;
use super::tls::{ForwardTls, ListenerTls, Verify};
use super::trust::Tested;

/// `[[listener]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// What is spoken.
    pub protocol: Protocol,
    /// Where: `IP:PORT`, or `unix:/PATH` for a UNIX socket.
    pub address: Address,
    /// The permissions of a UNIX socket, in octal.
    #[serde(default)]
    pub socket_mode: SocketMode,
    /// The group of a UNIX socket; none: that of the program.
    pub socket_group: Option<String>,
    /// Where mail goes, or comes from.
    #[serde(default)]
    pub forward: Forward,
    /// How connections come that were meant for somebody else, and go there: `redirect` or `tproxy`.
    pub transparent: Option<Transparent>,
    /// The ports whose connections are sent here; without any, those of the protocol.
    #[serde(default)]
    pub intercepts: Vec<u16>,
    /// Whether servers see the client's address in place of ours.
    #[serde(default)]
    pub keep_source: bool,
    /// TLS with clients: `off`, `offer`, `require` or `implicit`.
    #[serde(default)]
    pub tls: ListenerTls,
    /// STARTTLS towards the next hop: `off`, `opportunistic` or `require`.
    #[serde(default)]
    pub forward_tls: ForwardTls,
    /// How the next hop proves who it is.
    pub forward_verify: Option<Verify>,
    /// Whether clients may log in to the next hop: `off`, `tls` or `any`.
    pub auth: Option<Auth>,
    /// A signature matched. Without it and the next two: what is common with the protocol.
    #[serde(default, deserialize_with = "some_action")]
    pub on_infected: Option<Action>,
    /// A rule of `[[attachment]]` stands against it.
    #[serde(default, deserialize_with = "some_action")]
    pub on_forbidden: Option<Action>,
    /// A limit was reached.
    #[serde(default, deserialize_with = "some_action")]
    pub on_limit: Option<Action>,
    /// Two readers could disagree, and only one reading was inspected.
    #[serde(default, deserialize_with = "some_action")]
    pub on_ambiguous: Option<Action>,
    /// Content that needs a key.
    #[serde(default, deserialize_with = "action")]
    pub on_encrypted: Action,
    /// Content that has its reader fetch more from elsewhere.
    #[serde(default, deserialize_with = "action")]
    pub on_external: Action,
    /// All was inspected, but for signatures that ask for more of one object than is kept.
    #[serde(default, deserialize_with = "action")]
    pub on_partial: Action,
    /// Broken content.
    #[serde(default, deserialize_with = "action")]
    pub on_malformed: Action,
    /// What becomes of `tag` when the header has been sent already: `reject` or `pass`.
    #[serde(default = "reject", deserialize_with = "action")]
    pub on_late_tag: Action,
    /// The folder for `quarantine`.
    pub quarantine: Option<PathBuf>,
    /// Which of `[[attachment]]` hold, in this order.
    #[serde(default)]
    pub attachments: Vec<String>,
    /// What holds for some mails in place of this; the first that means a mail decides.
    #[serde(default, rename = "rule")]
    pub rules: Vec<MailRule>,
    /// Which of `[[recipients]]` say who is a recipient; none: the next hop alone does.
    #[serde(default)]
    pub recipients: Vec<String>,
    /// Bare CR or LF in the content: `normalise` or `refuse`.
    #[serde(default)]
    pub bare_line_ends: BareLineEnds,
    /// Whether a `Received` field is added.
    #[serde(default = "yes")]
    pub received: bool,
    /// The largest mail, in bytes; 0 means any.
    #[serde(default)]
    pub message_bytes_max: u64,
    /// Recipients in one transaction.
    #[serde(default = "recipients_max")]
    pub recipients_max: u32,
    /// Sessions at a time, on this listener.
    #[serde(default = "connections_max")]
    pub connections_max: u32,
    /// Who may come; nobody named: everybody.
    #[serde(default)]
    pub clients: Vec<Network>,
    /// Sessions at a time from one client. Without it: what is common with the protocol, for strangers.
    pub connections_per_client_max: Option<u32>,
    /// New sessions from one client within a minute; 0 means any. Without it: as above.
    pub connections_per_minute_max: Option<u32>,
    /// The bits of an IPv4 address that make a client.
    #[serde(default = "client_ipv4_bits")]
    pub client_ipv4_bits: u8,
    /// The bits of an IPv6 address that make a client.
    #[serde(default = "client_ipv6_bits")]
    pub client_ipv6_bits: u8,
    /// Infected mails of one client within an hour; then it is told to come later. 0 means any; without it: as above.
    pub infected_per_client_max: Option<u32>,
    /// Whose trust is tested: `off`, `strangers` or `all`. Without it: strangers', where mail comes from the world.
    pub trust: Option<Tested>,
    /// The bytes of content that a client has to send in a second, on average over three minutes; 0 means none.
    #[serde(default = "content_bytes_per_second_min")]
    pub content_bytes_per_second_min: u64,
    /// What a client hears of why its mail is refused: `name`, `id`, or a text. Without it: what is common with the
    /// protocol.
    pub refusal: Option<Refusal>,
    /// Seconds after which a session is ended, whatever it does. Without it: what is common with the protocol.
    pub session_seconds_max: Option<u64>,
    /// Relays that begin each connection with a header of the PROXY protocol.
    #[serde(default)]
    pub proxy_from: Vec<Trusted>,
    /// Clients that may send XFORWARD.
    #[serde(default)]
    pub xforward_from: Vec<Trusted>,
    /// Clients that may send XCLIENT.
    #[serde(default)]
    pub xclient_from: Vec<Trusted>,
    /// The header of the PROXY protocol that connections to the next hop begin with: `v1` or `v2`.
    pub forward_proxy: Option<ProxyVersion>,
    /// Whether a next hop that offers XCLIENT is told by it who the client is.
    #[serde(default)]
    pub forward_xclient: bool,
}

/// What a listener speaks.
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
}

impl Protocol {
    /// Whether a reader is told the size of a message before it comes, so that it cannot change.
    pub const fn announces_sizes(self) -> bool {
        matches!(self, Protocol::Pop3 | Protocol::Imap)
    }
}

/// What becomes of a bare CR or LF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BareLineEnds {
    /// It becomes CRLF.
    #[default]
    Normalise,
    /// The mail is refused.
    Refuse,
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

/// How connections come that were meant for somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transparent {
    /// Their destination was rewritten; the kernel remembers what it was.
    Redirect,
    /// As they are: the socket takes the place of the server.
    Tproxy,
}

impl Listener {
    /// The actions, as the inspection takes them.
    pub fn policy(&self) -> Policy {
        let usual = if self.protocol.announces_sizes() { Action::Blank } else { Action::Reject };
        Policy {
            on_infected: self.on_infected.unwrap_or(usual),
            on_forbidden: self.on_forbidden.unwrap_or(usual),
            on_limit: self.on_limit.unwrap_or(usual),
            on_ambiguous: self.on_ambiguous.unwrap_or(usual),
            on_encrypted: self.on_encrypted,
            on_external: self.on_external,
            on_partial: self.on_partial,
            on_malformed: self.on_malformed,
        }
    }

    /// Whether a client is one of those for whom the usual bounds are: it neither is on this machine, nor speaks for
    /// others, nor is among those that may come.
    fn is_stranger(&self, client: IpAddr) -> bool {
        let trusted = self.proxy_from.iter().chain(&self.xforward_from).chain(&self.xclient_from);
        let known = self.clients.iter().any(|network| network.holds(client));
        !client.is_loopback() && !known && !trusted.into_iter().any(|trusted| trusted.means(Some(client)))
    }

    /// Whether a client has to show that it can be trusted. Who logs in shows that by a password, and a connection that was
    /// meant for somebody else is not ours to judge.
    pub fn tests(&self, client: IpAddr) -> bool {
        let usual = match self.auth() == Auth::Off && self.transparent.is_none() {
            true => Tested::Strangers,
            false => Tested::Off,
        };
        self.protocol == Protocol::Smtp
            && match self.trust.unwrap_or(usual) {
                Tested::Off => false,
                Tested::Strangers => self.is_stranger(client),
                Tested::All => true,
            }
    }

    /// A bound for a client: what is set holds for everybody, `usual` for strangers who send mail.
    fn bound(&self, set: Option<u32>, usual: u32, client: IpAddr) -> Option<u32> {
        let sends = matches!(self.protocol, Protocol::Smtp | Protocol::Lmtp) && self.transparent.is_none();
        set.or_else(|| (sends && self.is_stranger(client)).then_some(usual))
    }

    /// Sessions at a time from this client; none: any number.
    pub fn sessions_of(&self, client: IpAddr) -> Option<u32> {
        self.bound(self.connections_per_client_max, CONNECTIONS_PER_CLIENT, client)
            .or_else(|| self.protocol.announces_sizes().then_some(CONNECTIONS_PER_READER))
    }

    /// New sessions from this client within a minute; none: any number.
    pub fn sessions_in_minute_of(&self, client: IpAddr) -> Option<u32> {
        self.bound(self.connections_per_minute_max, CONNECTIONS_PER_MINUTE, client).filter(|&most| most > 0)
    }

    /// Infected mails of this client within an hour; none: any number.
    pub fn infected_of(&self, client: IpAddr) -> Option<u32> {
        self.bound(self.infected_per_client_max, INFECTED_PER_HOUR, client).filter(|&most| most > 0)
    }

    /// Whether a client may come; one without an address is on a UNIX socket, whose permissions say that.
    pub fn lets_in(&self, client: Option<IpAddr>) -> bool {
        let may = |client| self.clients.iter().any(|network| network.holds(client));
        self.clients.is_empty() || client.is_none_or(may)
    }

    /// What is said of why a mail is refused. Who reads a mailbox has not sent what is in it, and has to know.
    pub fn refusal(&self) -> Refusal {
        let usual = if self.protocol.announces_sizes() { Refusal::Name } else { Refusal::Id };
        self.refusal.clone().unwrap_or(usual)
    }

    /// Seconds after which a session is ended; readers stay with a mailbox all day.
    pub fn session_seconds_max(&self) -> u64 {
        let usual = if self.protocol == Protocol::Imap { 86_400 } else { 3_600 };
        self.session_seconds_max.unwrap_or(usual)
    }

    /// Whether what is spoken here and there fits together.
    ///
    /// # Errors
    /// When it does not; the message says why.
    pub fn check_forward(&self) -> Result<(), String> {
        let fits = match self.protocol {
            Protocol::Smtp | Protocol::Lmtp => self.forward.takes_mail(),
            Protocol::Pop3 => self.forward.speaks_pop3(),
            Protocol::Imap => self.forward.speaks_imap(),
            Protocol::Milter => self.forward == Forward::Caller && self.tls == ListenerTls::Off,
        };
        if self.forward == Forward::Caller && self.protocol != Protocol::Milter {
            return Err("forward is missing".into());
        }
        if fits {
            Ok(())
        } else {
            Err(format!("{} is not a next hop for {:?}", self.forward, self.protocol).to_lowercase())
        }
    }

    /// Whether some finding asks for this.
    pub fn asks_for(&self, action: Action) -> bool {
        self.policy().actions().contains(&action)
    }
}

fn reject() -> Action {
    Action::Reject
}

fn yes() -> bool {
    true
}

fn recipients_max() -> u32 {
    1_000
}

fn connections_max() -> u32 {
    10_000
}

/// The usual bounds for strangers: sessions at a time, new ones in a minute, infected mails in an hour.
const CONNECTIONS_PER_CLIENT: u32 = 50;
const CONNECTIONS_PER_MINUTE: u32 = 100;
const INFECTED_PER_HOUR: u32 = 20;

/// Sessions at a time of who reads mailboxes: all people of an office may come from one address.
const CONNECTIONS_PER_READER: u32 = 1_000;

fn client_ipv4_bits() -> u8 {
    32
}

fn client_ipv6_bits() -> u8 {
    64
}

fn content_bytes_per_second_min() -> u64 {
    100
}
