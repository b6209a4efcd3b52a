//! `[[listener]]`: a door, what it speaks, and what its clients may do.
//!
//! A listener is made of groups that all protocols share ([`Place`], [`Guests`], [`NextHop`], [`Content`]) and of what its own
//! protocol has besides ([`Speaks`]). In the file all of them stand in one table.

use std::net::IpAddr;
use std::sync::Arc;

use flow::Action;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

use super::address::{Address, SocketMode};
use super::authentication::{Authentication, AuthenticationSettings};
use super::content::Content;
use super::forward::Forward;
use super::guests::Guests;
use super::http::{HttpListener, Mode};
use super::keys::{Fault, Keys};
use super::network::Trusted;
use super::next_hop::{NextHop, Transparent};
use super::policy::{MailRule, Parties};
use super::protocol::Protocol;
use super::smtp::{Auth, SmtpListener};
use super::spam::SpamSettings;
use super::tls::ListenerTls;
use super::trust::Tested;

/// `[[listener]]`
#[derive(Debug, Clone)]
pub struct Listener {
    /// Where it listens.
    pub place: Place,
    /// Clients that may connect.
    pub guests: Guests,
    /// Where mail goes, or comes from.
    pub hop: NextHop,
    /// Treatment of mails.
    pub content: Content,
    /// Protocol, with the settings of it alone.
    pub speaks: Speaks,
    /// Keys that are there and that its protocol does not have.
    pub unused: Vec<String>,
}

/// Where a listener is, and how its clients' streams are.
#[derive(Debug, Clone, Deserialize)]
pub struct Place {
    /// `IP:PORT`, or `unix:/PATH` for a UNIX socket.
    pub address: Address,
    /// The permissions of a UNIX socket, in octal.
    #[serde(default)]
    pub socket_mode: SocketMode,
    /// The group of a UNIX socket; none: that of the program.
    pub socket_group: Option<String>,
    /// TLS with clients: `off`, `offer`, `require` or `implicit`.
    #[serde(default)]
    pub tls: ListenerTls,
}

/// Protocol of a listener, with the settings of it alone.
#[derive(Debug, Clone)]
pub enum Speaks {
    /// RFC 5321.
    Smtp(Arc<SmtpListener>),
    /// RFC 2033.
    Lmtp(Arc<SmtpListener>),
    /// RFC 1939.
    Pop3,
    /// RFC 9051 and 3501.
    Imap,
    /// Sendmail's and Postfix's mail filter protocol.
    Milter(Arc<MilterListener>),
    /// That of SpamAssassin's daemon.
    Spamd,
    /// That of Rspamd.
    Rspamd,
    /// RFC 3507.
    Icap,
    /// RFC 9112.
    Http(Arc<HttpListener>),
}

/// `protocol = "milter"`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MilterListener {
    /// Rules in place of the listener's settings; the first that applies to a mail decides.
    #[serde(rename = "rule")]
    pub rules: Vec<MailRule>,
}

#[derive(Deserialize)]
struct Named {
    protocol: Protocol,
}

/// The usual bounds for strangers: sessions at a time, new ones in a minute, infected mails in an hour.
const CONNECTIONS_PER_CLIENT: u32 = 50;
const CONNECTIONS_PER_MINUTE: u32 = 100;
const INFECTED_PER_HOUR: u32 = 20;

/// Sessions at a time of who reads mailboxes: all people of an office may come from one address.
const CONNECTIONS_PER_READER: u32 = 1_000;

impl Listener {
    /// Reads a table.
    ///
    /// # Errors
    /// When a key is not known, is missing, or has a value that it cannot have.
    pub fn read(table: Spanned<DeTable<'_>>) -> Result<Listener, Fault> {
        let mut keys = Keys::new(table);
        let Named { protocol } = keys.take()?;
        let (place, guests, mut hop): (_, _, NextHop) = (keys.take()?, keys.take()?, keys.take()?);
        let content = Content::read(&mut keys, protocol)?;
        let speaks = match protocol {
            Protocol::Smtp => Speaks::Smtp(Arc::new(keys.take()?)),
            Protocol::Lmtp => Speaks::Lmtp(Arc::new(keys.take()?)),
            Protocol::Pop3 => Speaks::Pop3,
            Protocol::Imap => Speaks::Imap,
            Protocol::Milter => Speaks::Milter(Arc::new(keys.take()?)),
            Protocol::Spamd => Speaks::Spamd,
            Protocol::Rspamd => Speaks::Rspamd,
            Protocol::Icap => Speaks::Icap,
            Protocol::Http => Speaks::Http(Arc::new(keys.take()?)),
        };
        if matches!(&speaks, Speaks::Http(own) if own.mode == Mode::Transparent) {
            hop.transparent.get_or_insert(Transparent::Redirect);
        }
        hop.aim();
        let mut unused: Vec<String> = keys.left().map(str::to_owned).collect();
        // What SMTP has may stand in a file that was written when nobody looked; it has to make sense, and is told of.
        let others: SmtpListener = keys.take()?;
        unused
            .retain(|name| keys.left().all(|left| left != name) && (name != "auth" || others.auth != Some(Auth::Off)));
        keys.end()?;
        Ok(Listener { place, guests, hop, content, speaks, unused })
    }

    /// The name of what is spoken.
    pub const fn protocol(&self) -> Protocol {
        match self.speaks {
            Speaks::Smtp(_) => Protocol::Smtp,
            Speaks::Lmtp(_) => Protocol::Lmtp,
            Speaks::Pop3 => Protocol::Pop3,
            Speaks::Imap => Protocol::Imap,
            Speaks::Milter(_) => Protocol::Milter,
            Speaks::Spamd => Protocol::Spamd,
            Speaks::Rspamd => Protocol::Rspamd,
            Speaks::Icap => Protocol::Icap,
            Speaks::Http(_) => Protocol::Http,
        }
    }

    /// Settings of HTTP, if the listener has it.
    pub fn http(&self) -> Option<&Arc<HttpListener>> {
        match &self.speaks {
            Speaks::Http(own) => Some(own),
            _ => None,
        }
    }

    /// Settings of SMTP and LMTP, if the listener has one of them.
    pub fn smtp(&self) -> Option<&SmtpListener> {
        match &self.speaks {
            Speaks::Smtp(own) | Speaks::Lmtp(own) => Some(own),
            _ => None,
        }
    }

    /// Rules in place of the listener's settings.
    pub fn rules(&self) -> &[MailRule] {
        match &self.speaks {
            Speaks::Smtp(own) | Speaks::Lmtp(own) => &own.rules,
            Speaks::Milter(own) => &own.rules,
            _ => &[],
        }
    }

    /// The number of the rule that means a mail, if one does.
    pub fn rule_for(&self, parties: &Parties<'_>) -> Option<usize> {
        self.rules().iter().position(|rule| rule.means(parties))
    }

    /// Treatment of mails under a rule.
    pub fn under(&self, rule: Option<usize>) -> Content {
        let rule = rule.and_then(|index| self.rules().get(index));
        rule.map_or_else(|| self.content.clone(), |rule| self.content.under(rule))
    }

    /// Whether some mail of it may have to be kept aside for its score.
    pub fn quarantines_spam(&self, spam: Option<&SpamSettings>) -> bool {
        let rules = std::iter::once(None).chain((0..self.rules().len()).map(Some));
        let mut spam = rules.filter_map(|rule| self.under(rule).scores(spam.filter(|_| self.protocol().is_scored())));
        spam.any(|spam| spam.asks_for(Action::Quarantine))
    }

    /// Whether some mail of it may have to come again.
    pub fn greylists(&self, spam: Option<&SpamSettings>) -> bool {
        let rules = std::iter::once(None).chain((0..self.rules().len()).map(Some));
        let mut spam = rules.filter_map(|rule| self.under(rule).scores(spam.filter(|_| self.protocol().is_scored())));
        spam.any(|spam| spam.greylist.is_some())
    }

    /// Settings of authentication for a mail. Mails of clients that log in, and of intercepted connections, are not
    /// authenticated unless the listener says so.
    pub fn authenticates(
        &self,
        content: &Content,
        authentication: Option<&AuthenticationSettings>,
    ) -> Option<Authentication> {
        let usual = self.auth() == Auth::Off && self.hop.transparent.is_none();
        content.authenticates(authentication.filter(|_| self.protocol().is_authenticated()), usual)
    }

    /// Whether some mail of it may have to be kept aside for who sends it.
    pub fn quarantines_forged(&self, authentication: Option<&AuthenticationSettings>) -> bool {
        let rules = std::iter::once(None).chain((0..self.rules().len()).map(Some));
        let mut all = rules.filter_map(|rule| self.authenticates(&self.under(rule), authentication));
        all.any(|authentication| authentication.asks_for(Action::Quarantine))
    }

    /// Whether some mail of it may have to be kept aside.
    pub fn quarantines(&self) -> bool {
        let rules = std::iter::once(None).chain((0..self.rules().len()).map(Some));
        rules.into_iter().any(|rule| self.under(rule).asks_for(Action::Quarantine))
    }

    /// Whether a client is one of those for whom the usual bounds are: it neither is on this machine, nor speaks for
    /// others, nor is among those that may come or relay.
    fn is_stranger(&self, client: IpAddr) -> bool {
        let is_proxy = self.guests.proxy_from.iter().any(|trusted| trusted.means(Some(client)));
        let speaks_for_others = is_proxy || self.smtp().is_some_and(|own| own.speaks_for_others(client));
        let relays = self.smtp().is_some_and(|own| own.relays_for(Some(client)));
        !client.is_loopback() && !self.guests.knows(client) && !speaks_for_others && !relays
    }

    /// Whether a client has to show that it can be trusted. Who logs in shows that by a password, and a connection that was
    /// meant for somebody else is not ours to judge.
    pub fn tests(&self, client: IpAddr) -> bool {
        let Speaks::Smtp(own) = &self.speaks else { return false };
        let usual = match self.auth() == Auth::Off && self.hop.transparent.is_none() {
            true => Tested::Strangers,
            false => Tested::Off,
        };
        match own.trust.unwrap_or(usual) {
            Tested::Off => false,
            Tested::Strangers => self.is_stranger(client),
            Tested::All => true,
        }
    }

    /// A bound for a client: what is set holds for everybody, `usual` for strangers who send mail.
    fn bound(&self, set: Option<u32>, usual: u32, client: IpAddr) -> Option<u32> {
        let sends = self.smtp().is_some() && self.hop.transparent.is_none();
        set.or_else(|| (sends && self.is_stranger(client)).then_some(usual))
    }

    /// Sessions at a time from this client; none: any number.
    pub fn sessions_of(&self, client: IpAddr) -> Option<u32> {
        self.bound(self.guests.connections_per_client_max, CONNECTIONS_PER_CLIENT, client)
            .or_else(|| self.protocol().announces_sizes().then_some(CONNECTIONS_PER_READER))
    }

    /// New sessions from this client within a minute; none: any number.
    pub fn sessions_in_minute_of(&self, client: IpAddr) -> Option<u32> {
        let set = self.guests.connections_per_minute_max;
        self.bound(set, CONNECTIONS_PER_MINUTE, client).filter(|&most| most > 0)
    }

    /// Infected mails of this client within an hour; none: any number.
    pub fn infected_of(&self, client: IpAddr) -> Option<u32> {
        let set = self.smtp()?.infected_per_client_max;
        self.bound(set, INFECTED_PER_HOUR, client).filter(|&most| most > 0)
    }

    /// Seconds after which a session is ended; readers stay with a mailbox all day.
    pub fn session_seconds_max(&self) -> u64 {
        let usual = if self.protocol() == Protocol::Imap { 86_400 } else { 3_600 };
        self.guests.session_seconds_max.unwrap_or(usual)
    }

    /// Whether all of it goes together.
    ///
    /// # Errors
    /// When it does not; the message says why.
    pub fn check(&self) -> Result<(), String> {
        self.check_forward()?;
        self.check_auth()?;
        self.check_relay()?;
        self.check_unused()?;
        if self.protocol() == Protocol::Spamd && self.content.policy.actions().any(|action| action != Action::Pass) {
            return Err("the answer of this protocol is a score alone: leave out on_infected and the like".into());
        }
        if self.quarantines() && self.content.quarantine.is_none() && !self.protocol().answers() {
            return Err("an action is \"quarantine\", but no folder is set: quarantine = \"PATH\"".into());
        }
        if self.protocol().announces_sizes() && self.content.asks_for(Action::Tag) {
            return Err("sizes are announced, so that \"tag\" cannot add to a message".into());
        }
        if self.content.spam.is_some() && !self.protocol().is_scored() {
            return Err("mails are scored with smtp, lmtp, milter, spamd and rspamd".into());
        }
        if self.content.authentication.is_some() && !self.protocol().is_authenticated() {
            return Err("mails are authenticated with smtp, lmtp and milter".into());
        }
        if self.content.virus_scanned && self.protocol().announces_sizes() {
            return Err("virus_scanned: the size of a message in a mailbox cannot change".into());
        }
        if !matches!(self.content.on_late_tag, Action::Reject | Action::Pass) {
            return Err("on_late_tag is \"reject\" or \"pass\"".into());
        }
        self.check_http()?;
        self.guests.check()
    }

    /// Whether a proxy of HTTP is no open one, and knows where requests go.
    fn check_http(&self) -> Result<(), String> {
        let Speaks::Http(own) = &self.speaks else { return Ok(()) };
        if (own.mode == Mode::Transparent) != self.hop.transparent.is_some() {
            return Err("transparent goes with mode = \"transparent\"".into());
        }
        if self.hop.keep_source || self.hop.forward_proxy.is_some() {
            return Err("keep_source and forward_proxy are not for http".into());
        }
        if !matches!(self.place.tls, ListenerTls::Off | ListenerTls::Implicit) {
            return Err("tls is \"off\" or \"implicit\" with http".into());
        }
        let is_open = self.guests.clients.is_empty()
            && self.place.address.tcp().is_some_and(|address| !address.ip().is_loopback());
        if own.mode == Mode::Explicit && is_open {
            return Err("an open proxy: list its clients, clients = [\"192.0.2.0/24\"]".into());
        }
        own.check()
    }

    /// Whether what is spoken here and there fits together.
    fn check_forward(&self) -> Result<(), String> {
        let forward = &self.hop.forward;
        let fits = match self.speaks {
            Speaks::Smtp(_) | Speaks::Lmtp(_) => forward.takes_mail(),
            Speaks::Pop3 => forward.speaks_pop3(),
            Speaks::Imap => forward.speaks_imap(),
            Speaks::Milter(_) | Speaks::Spamd | Speaks::Rspamd | Speaks::Icap => {
                *forward == Forward::Caller && self.place.tls == ListenerTls::Off
            }
            Speaks::Http(_) => matches!(forward, Forward::Caller | Forward::Original),
        };
        if *forward == Forward::Caller && !self.protocol().answers() {
            return Err("forward is missing".into());
        }
        if fits { Ok(()) } else { Err(format!("{forward} is not a next hop for {:?}", self.protocol()).to_lowercase()) }
    }

    /// Whether there is a queue for clients that may relay, and not everybody is one of them.
    fn check_relay(&self) -> Result<(), String> {
        let clients = self.smtp().map(|own| &*own.relay_clients).unwrap_or_default();
        if clients.is_empty() {
            return Ok(());
        }
        if self.protocol() != Protocol::Smtp || self.hop.forward != Forward::Store {
            return Err(
                "relay_clients: mail is relayed by the queue of the store: protocol = \"smtp\", forward = \"store:\""
                    .into(),
            );
        }
        match clients.iter().any(|trusted| matches!(trusted, Trusted::Network(network) if network.bits() == 0)) {
            true => Err("relay_clients: a network of all addresses is an open relay".into()),
            false => Ok(()),
        }
    }

    /// Whether nothing that somebody counts on is without effect.
    fn check_unused(&self) -> Result<(), String> {
        let is_unused = |key: &str| self.unused.iter().any(|name| name == key);
        if is_unused("rule") {
            return Err("rules go by envelopes, which only smtp, lmtp and milter have".into());
        }
        if is_unused("recipients") {
            return Err("recipients have a meaning with smtp and lmtp only".into());
        }
        if is_unused("auth") {
            return Err("auth is for protocol = \"smtp\"".into());
        }
        Ok(())
    }
}

impl std::str::FromStr for Listener {
    type Err = Fault;

    /// Reads what stands below `[[listener]]`.
    fn from_str(text: &str) -> Result<Listener, Fault> {
        Listener::read(DeTable::parse(text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_protocol_is_told_of_and_one_of_none_is_refused() {
        let head = "protocol='imap'\naddress='127.0.0.1:1'\nforward='imap://a'\n";
        let listener: Listener = format!("{head}received=false\nconnections_max=3").parse().unwrap();
        assert_eq!((listener.unused.as_slice(), listener.guests.connections_max), (&["received".to_string()][..], 3));
        for (key, wanted) in [
            ("recieved=false", "unknown field `recieved`"),
            ("received=3", "invalid type"),
            ("connections_max=-1", "invalid value"),
        ] {
            let fault = format!("{head}{key}").parse::<Listener>().unwrap_err();
            assert!(fault.message.contains(wanted), "{fault}");
            assert!(fault.span.is_some_and(|span| span.start >= head.len()), "{key}");
        }
    }

    #[test]
    fn a_proxy_that_anybody_may_use_is_refused() {
        let check = |text: &str| format!("protocol='http'\n{text}").parse::<Listener>().unwrap().check();
        for good in [
            "address='127.0.0.1:3128'",
            "address='unix:/run/proxy'",
            "address='0.0.0.0:3128'\nclients=['192.0.2.0/24']",
            "address='0.0.0.0:80'\nmode='reverse'\nupstream='127.0.0.1:8080'\ntls='implicit'",
            "address='0.0.0.0:8000'\nmode='transparent'",
            "address='0.0.0.0:8000'\nmode='transparent'\ntransparent='tproxy'",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "address='0.0.0.0:3128'",
            "address='[::]:3128'",
            "address='127.0.0.1:3128'\nforward='discard:'",
            "address='127.0.0.1:3128'\ntransparent='redirect'",
            "address='127.0.0.1:3128'\ntls='offer'",
            "address='0.0.0.0:8000'\nmode='transparent'\ntransparent='tproxy'\nkeep_source=true",
            "address='0.0.0.0:80'\nmode='reverse'",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
