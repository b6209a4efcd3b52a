//! Senders of mails, by the names for which a reputation is kept: SpamAssassin's TxRep.
//!
//! [`Engine::sender`](super::run::Engine::sender) reads a mail and its path; [`Sender::names`] are the names, once it is known
//! who has signed. What is kept of a name, and what follows from it, is for whoever keeps it. Bounds: a name has at most
//! `NAME_BYTES_MAX` bytes, a mail `RECIPIENTS_MAX` recipients that are looked at.
//!
//! The origin is the first relay that is not trusted, whatever the score: what stands below it can be made up.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::authentic::{Known, Spf};
use super::eval::Context;
use super::header::{Path, Relay, parse_ip};
use super::settings::Settings;

/// The longest name.
const NAME_BYTES_MAX: usize = 512;

/// Recipients that are looked at.
const RECIPIENTS_MAX: usize = 100;

/// Sender of a mail, as the mail says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sender {
    /// The author's address, or that of the envelope; never empty.
    pub address: Box<[u8]>,
    /// Its domain.
    pub domain: Box<[u8]>,
    /// Where it came from; none where it does not say.
    pub origin: Option<IpAddr>,
    /// HELO of the first host; empty where it adds nothing.
    pub helo: Box<[u8]>,
    /// Recipients, where it is one of the site's own mails.
    pub recipients: Vec<Box<[u8]>>,
}

/// A name that a reputation is kept of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Kind: `EMAILIP`, `DOMAIN`, `HELO`, `EMAIL`, `IP`.
    pub kind: &'static str,
    /// The name, with where it sends from or who has signed.
    pub text: Box<[u8]>,
    /// How much it counts, in hundredths.
    pub weight: u32,
}

impl Sender {
    /// Sender of a mail; none where it names none.
    pub(super) fn of(context: &Context<'_>) -> Option<Sender> {
        let mut address = context.fields.get("From:addr");
        if address.is_empty() {
            address = context.fields.get("EnvelopeFrom:addr");
        }
        let address = address.trim_ascii().to_ascii_lowercase();
        if address.is_empty() {
            return None;
        }
        let domain = address.rsplit(|&byte| byte == b'@').next().unwrap_or_default().to_vec();
        let path = context.path;
        let is_own = !path.internal.is_empty() && path.external.is_empty();
        let recipients = context.recipients_of().iter().filter(|_| is_own).take(RECIPIENTS_MAX);
        Some(Sender {
            origin: origin(path),
            helo: helo(path, &address, &domain),
            recipients: recipients.map(|address| address.to_ascii_lowercase().into()).collect(),
            address: address.into(),
            domain: domain.into(),
        })
    }

    /// Its names, the weightiest first, without those that have no weight. A signature, or SPF, stands for where it came from.
    pub fn names(&self, settings: &Settings, known: Option<Known<'_>>) -> Vec<Name> {
        let signer = known.and_then(|known| signer(settings, known));
        let origin = self.origin.filter(|_| signer.is_none()).and_then(|origin| masked(settings, origin));
        let by = signer.as_deref().unwrap_or_default();
        let from = origin.as_deref().unwrap_or_default();
        let domain = signer.as_deref().filter(|signer| !signer.starts_with(b"spf-")).unwrap_or(&self.domain);
        let bare = self.origin.filter(|_| signer.is_none()).map(|_| &self.address[..]).unwrap_or_default();
        let address = self.origin.map(|origin| origin.to_string()).unwrap_or_default();
        let all: [(&'static str, &str, f64, [&[u8]; 3]); 5] = [
            ("EMAILIP", "txrep_weight_email_ip", 10.0, [&self.address, from, by]),
            ("DOMAIN", "txrep_weight_domain", 2.0, [domain, from, by]),
            ("HELO", "txrep_weight_helo", 0.5, [&self.helo, b"", b"HELO"]),
            ("EMAIL", "txrep_weight_email", 3.0, [bare, b"", b""]),
            ("IP", "txrep_weight_ip", 4.0, [address.as_bytes(), b"", b""]),
        ];
        let name = |(kind, setting, usual, parts): (_, &str, f64, [&[u8]; 3])| {
            let weight = settings.number(setting, usual).clamp(0.0, 10.0) * 100.0;
            (!parts[0].is_empty()).then(|| Name { kind, text: joined(parts), weight: weight.round() as u32 })
        };
        all.into_iter().filter_map(name).filter(|name| name.weight > 0).collect()
    }

    /// The names of the recipients of one of the site's own mails: their addresses, wherever they send from.
    pub fn recipient_names(&self) -> impl Iterator<Item = Box<[u8]>> {
        self.recipients.iter().map(|address| joined([address, b"", b""]))
    }
}

fn joined(parts: [&[u8]; 3]) -> Box<[u8]> {
    let mut text = parts.join(&0).to_ascii_lowercase();
    text.truncate(NAME_BYTES_MAX);
    text.into()
}

/// The first relay that is not trusted, or else the last of those that are; this machine, where all of them have private addresses.
fn origin(path: &Path) -> Option<IpAddr> {
    let relays = path.trusted.iter().chain(path.untrusted.first());
    let address = |relay: &Relay| Some(parse_ip(&relay.ip)?.to_canonical());
    let is_public = |relay: &&Relay| !relay.is_private;
    let public = relays.filter(is_public).filter_map(address).next_back();
    let private = path.trusted.iter().any(|relay| relay.is_private);
    public.or_else(|| private.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)))
}

/// HELO of the farthest host that is neither its address nor the author's name.
fn helo(path: &Path, address: &[u8], domain: &[u8]) -> Box<[u8]> {
    let is_another = |relay: &&Relay| {
        let helo = &relay.helo[..];
        let bare = helo.strip_prefix(b"[").unwrap_or(helo);
        let bare = bare.strip_suffix(b"]").unwrap_or(bare);
        bare != &*relay.ip && !helo.eq_ignore_ascii_case(domain) && !helo.eq_ignore_ascii_case(address)
    };
    let last = path.trusted.iter().chain(&path.untrusted).rfind(is_another);
    last.map(|relay| relay.helo.clone()).unwrap_or_default()
}

/// Signer of a mail: the domains with valid signatures, or `spf-` and the envelope's domain.
fn signer(settings: &Settings, known: Known<'_>) -> Option<Vec<u8>> {
    const SIGNERS_MAX: usize = 8;
    if settings.number("auto_welcomelist_distinguish_signed", 1.0) != 0.0 {
        let valid: Vec<&[u8]> =
            known.authentic.valid().map(|signature| signature.domain.as_bytes()).take(SIGNERS_MAX).collect();
        if !valid.is_empty() {
            return Some(valid.join(&b' '));
        }
    }
    let passes = known.authentic.spf == Some(Spf::Pass) && settings.number("txrep_spf", 1.0) != 0.0;
    let domain = known.sender.envelope.as_deref().and_then(|sender| sender.rsplit_once('@')).map(|(_, domain)| domain);
    passes.then(|| [b"spf-", domain.unwrap_or_default().as_bytes()].concat())
}

/// The network of an address that is one sender.
fn masked(settings: &Settings, address: IpAddr) -> Option<Vec<u8>> {
    let bits =
        |name: &str, usual: u32, all: u32| settings.number(name, f64::from(usual)).clamp(0.0, f64::from(all)) as u32;
    let network = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits("txrep_ipv4_mask_len", 16, 32)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits("txrep_ipv6_mask_len", 48, 128)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    };
    Some(network.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::authentic::{self, Authentic, Signature};
    use super::*;
    use crate::spam::message::{Message, MessageLimits};
    use crate::spam::run::{Engine, EngineOptions, Expressions};
    use crate::spam::{File, Limits, Loader, Options};

    fn engine(text: &str) -> Engine {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        let plugin =
            "loadplugin Mail::SpamAssassin::Plugin::TxRep\nclear_trusted_networks\ntrusted_networks 198.51.100.0/24\n";
        let file = File { name: "own.cf".into(), bytes: [plugin, text].concat().into_bytes() };
        loader.read(&file, &mut |_, _| Err(String::new()));
        let rules = loader.finish(&Expressions);
        assert_eq!(rules.errors(), 0, "{:?}", rules.problems());
        Engine::new(rules, EngineOptions::default())
    }

    fn hop(helo: &str, address: &str) -> String {
        format!("Received: from {helo} ({helo} [{address}]) by mx.test; Mon, 1 Jan 2024 00:00:00 +0000\n")
    }

    fn sender(engine: &Engine, mail: &str) -> Option<Sender> {
        engine.sender(&Message::read(mail.as_bytes(), engine.reading(), &MessageLimits::default()))
    }

    fn names(engine: &Engine, sender: &Sender, authentic: Option<&Authentic>) -> Vec<(&'static str, String, u32)> {
        let envelope = authentic::Sender { envelope: Some("bounce@list.test".into()), ..authentic::Sender::default() };
        let practices = std::collections::BTreeMap::new();
        let known = authentic.map(|authentic| Known { authentic, sender: &envelope, practices: &practices });
        let names = sender.names(engine.settings(), known).into_iter();
        names.map(|name| (name.kind, String::from_utf8_lossy(&name.text).replace('\0', "|"), name.weight)).collect()
    }

    #[test]
    fn the_origin_is_the_first_that_is_not_trusted_and_the_helo_the_farthest() {
        let engine = engine("");
        let path = [hop("inner", "198.51.100.3"), hop("relay", "192.0.2.9"), hop("pc", "203.0.113.5")].concat();
        let found = sender(&engine, &format!("{path}From: Joe <Joe@Shop.test>\n\nhi\n")).unwrap();
        assert_eq!((found.origin, &*found.helo), ("192.0.2.9".parse().ok(), &b"pc"[..]));
        assert_eq!((&*found.address, &*found.domain), (&b"joe@shop.test"[..], &b"shop.test"[..]));
        let own = sender(&engine, &format!("{}From: joe@shop.test\n\nhi\n", hop("shop.test", "10.0.0.7"))).unwrap();
        assert_eq!((own.origin, &*own.helo), (None, &b""[..]));
        assert_eq!(sender(&engine, "Subject: x\n\nhi\n"), None);
    }

    #[test]
    fn a_content_filter_on_this_host_is_no_submission_server() {
        // The first that is not trusted, or the last where all are.
        let origin = |networks: &str, first: &str| {
            let path = [hop("first", first), hop("relay", "192.0.2.9"), hop("pc", "203.0.113.5")].concat();
            let mail = format!("{path}From: joe@shop.test\n\nhi\n");
            sender(&engine(networks), &mail).and_then(|found| found.origin).map(|origin| origin.to_string())
        };
        let msa = "msa_networks 198.51.100.7\n";
        assert_eq!(
            origin(msa, "198.51.100.7").as_deref(),
            Some("203.0.113.5"),
            "what it handed in is trusted to the end"
        );
        for this in ["127.0.0.1", "::1"] {
            assert_eq!(origin(msa, this).as_deref(), Some("192.0.2.9"), "{this}");
        }
        assert_eq!(origin("msa_networks 127.0.0.1\n", "127.0.0.1").as_deref(), Some("203.0.113.5"));
    }

    #[test]
    fn a_name_has_where_it_sends_from_or_who_signs() {
        let engine = engine("txrep_weight_helo 0\n");
        let mail = format!("{}From: joe@shop.test\n\nhi\n", hop("pc", "192.0.2.9"));
        let found = sender(&engine, &mail).unwrap();
        let of = |kind, text: &str, weight| (kind, text.to_owned(), weight);
        let plain = [
            of("EMAILIP", "joe@shop.test|192.0.0.0|", 1000),
            of("DOMAIN", "shop.test|192.0.0.0|", 200),
            of("EMAIL", "joe@shop.test||", 300),
            of("IP", "192.0.2.9||", 400),
        ];
        assert_eq!(names(&engine, &found, None), plain);
        let signature = |domain: &str, is_valid| Signature {
            domain: domain.into(),
            selector: "s".into(),
            is_valid,
            ..Signature::default()
        };
        let signatures = vec![signature("x.test", false), signature("esp.test", true)];
        let signed = Authentic { signatures, spf: Some(Spf::Pass), ..Authentic::default() };
        let by = [
            of("EMAILIP", "joe@shop.test||esp.test", 1000),
            of("DOMAIN", "esp.test||esp.test", 200),
            of("IP", "192.0.2.9||", 400),
        ];
        assert_eq!(names(&engine, &found, Some(&signed)), by);
        let passed = Authentic { spf: Some(Spf::Pass), ..Authentic::default() };
        assert_eq!(names(&engine, &found, Some(&passed))[1], of("DOMAIN", "shop.test||spf-list.test", 200));
        assert_eq!(names(&engine, &found, Some(&Authentic::default())), plain);
    }

    #[test]
    fn networks_are_as_large_as_the_settings_say() {
        let mail = |address: &str| format!("{}From: a@b.test\n\nhi\n", hop("pc", address));
        for (settings, address, wanted) in [
            ("txrep_ipv4_mask_len 32\n", "192.0.2.9", "192.0.2.9"),
            ("txrep_ipv4_mask_len 20\n", "192.0.18.9", "192.0.16.0"),
            ("txrep_ipv4_mask_len 0\n", "192.0.18.9", "0.0.0.0"),
            ("", "2001:db8:1:2::3", "2001:db8:1::"),
            ("txrep_ipv6_mask_len 64\n", "2001:db8:1:2::3", "2001:db8:1:2::"),
        ] {
            let engine = engine(settings);
            let found = sender(&engine, &mail(address)).unwrap();
            assert_eq!(names(&engine, &found, None)[0].1, format!("a@b.test|{wanted}|"), "{settings}");
        }
    }
}
