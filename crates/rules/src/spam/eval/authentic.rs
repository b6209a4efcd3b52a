//! Functions about who has sent and signed a mail: SPF, DKIM, ARC, DMARC, and lists of those who are welcome if it was them.
//!
//! What servers of the site say of SPF, in fields that stand above the first relay that is not theirs, counts before what was
//! found here.

use super::{Arguments, Context, Function, know, truth};
use crate::spam::authentic::{Dmarc, Known, Signature, Spf};
use crate::spam::message::ascii;
use crate::spam::settings::fits;

/// The functions, with the names that they had before version 4.
pub(super) const FUNCTIONS: &[Function] = &[
    know("check_for_spf_pass", |context, _, known| by_sender(context, known, Spf::Pass)),
    know("check_for_spf_neutral", |context, _, known| by_sender(context, known, Spf::Neutral)),
    know("check_for_spf_none", |context, _, known| by_sender(context, known, Spf::None)),
    know("check_for_spf_fail", |context, _, known| by_sender(context, known, Spf::Fail)),
    know("check_for_spf_softfail", |context, _, known| by_sender(context, known, Spf::SoftFail)),
    know("check_for_spf_permerror", |context, _, known| by_sender(context, known, Spf::PermError)),
    know("check_for_spf_temperror", |context, _, known| by_sender(context, known, Spf::TempError)),
    know("check_for_spf_helo_pass", |context, _, known| by_helo(context, known, Spf::Pass)),
    know("check_for_spf_helo_neutral", |context, _, known| by_helo(context, known, Spf::Neutral)),
    know("check_for_spf_helo_none", |context, _, known| by_helo(context, known, Spf::None)),
    know("check_for_spf_helo_fail", |context, _, known| by_helo(context, known, Spf::Fail)),
    know("check_for_spf_helo_softfail", |context, _, known| by_helo(context, known, Spf::SoftFail)),
    know("check_for_spf_helo_permerror", |context, _, known| by_helo(context, known, Spf::PermError)),
    know("check_for_spf_helo_temperror", |context, _, known| by_helo(context, known, Spf::TempError)),
    know("check_spf_skipped_noenvfrom", |_, _, known| truth(known.sender.envelope.is_none())),
    know("check_for_spf_welcomelist_from", |context, _, known| welcome_by_spf(context, known, "")),
    know("check_for_spf_whitelist_from", |context, _, known| welcome_by_spf(context, known, "")),
    know("check_for_def_spf_welcomelist_from", |context, _, known| welcome_by_spf(context, known, "def_")),
    know("check_for_def_spf_whitelist_from", |context, _, known| welcome_by_spf(context, known, "def_")),
    know("check_dkim_signed", |_, arguments, known| {
        truth(known.authentic.signatures.iter().any(|signature| is_by_one_of(signature, arguments)))
    }),
    know("check_dkim_valid", |_, arguments, known| valid(arguments, known)),
    know("check_dkim_verified", |_, arguments, known| valid(arguments, known)),
    know("check_dkim_valid_author_sig", |context, arguments, known| {
        let authors = authors(context);
        let is_by_author = |signature: &&Signature| authors.iter().any(|author| *author == lower(signature.signer()));
        let mut strong = known.authentic.valid().filter(is_by_author).filter(|signature| is_strong(context, signature));
        truth(strong.any(|signature| is_by_one_of(signature, arguments)))
    }),
    know("check_dkim_valid_envelopefrom", |context, _, known| {
        let sender = context.fields.get("EnvelopeFrom:addr");
        let Some(at) = sender.iter().rposition(|&byte| byte == b'@') else { return 0.0 };
        let domain = sender[at + 1..].to_ascii_lowercase();
        let mut strong = known.authentic.valid().filter(|signature| is_strong(context, signature));
        truth(strong.any(|signature| lower(signature.signer()) == domain))
    }),
    know("check_dkim_testing", |_, _, _| 0.0),
    know("check_dkim_signsome", |_, _, _| 0.0),
    know("check_dkim_signall", |context, _, known| practice(context, known, b"A", &[])),
    know("check_dkim_adsp", |context, arguments, known| {
        let letters = arguments.get(0).unwrap_or_default();
        let letters = if letters == b"*" { b"NAD123" } else { letters };
        let domains: Vec<&[u8]> = (1..arguments.len()).filter_map(|place| arguments.get(place)).collect();
        practice(context, known, letters, &domains)
    }),
    // Mails come whole, or have no score.
    know("check_dkim_dependable", |_, _, _| 1.0),
    know("check_for_dkim_welcomelist_from", |context, _, known| welcome_by_signature(context, known, "")),
    know("check_for_dkim_whitelist_from", |context, _, known| welcome_by_signature(context, known, "")),
    know("check_for_def_dkim_welcomelist_from", |context, _, known| welcome_by_signature(context, known, "def_")),
    know("check_for_def_dkim_whitelist_from", |context, _, known| welcome_by_signature(context, known, "def_")),
    know("check_arc_signed", |_, arguments, known| truth(known.authentic.has_chain && arguments.is_empty())),
    know("check_arc_valid", |_, arguments, known| truth(known.authentic.is_chain_valid && arguments.is_empty())),
    know("check_dmarc_pass", |_, _, known| is_policy(known, Dmarc::Pass)),
    know("check_dmarc_reject", |_, _, known| is_policy(known, Dmarc::Reject)),
    know("check_dmarc_quarantine", |_, _, known| is_policy(known, Dmarc::Quarantine)),
    know("check_dmarc_none", |_, _, known| is_policy(known, Dmarc::None)),
    know("check_dmarc_missing", |_, _, known| is_policy(known, Dmarc::Missing)),
];

/// SPF results for the envelope's sender and for HELO.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    sender: Option<Spf>,
    helo: Option<Spf>,
}

fn told(context: &Context<'_>, known: &Known<'_>) -> Told {
    *context.spf.get_or_init(|| {
        let by_site = by_site(context);
        Told { sender: by_site.sender.or(known.authentic.spf), helo: by_site.helo.or(known.authentic.helo) }
    })
}

fn by_sender(context: &Context<'_>, known: &Known<'_>, wanted: Spf) -> f64 {
    truth(told(context, known).sender == Some(wanted))
}

fn by_helo(context: &Context<'_>, known: &Known<'_>, wanted: Spf) -> f64 {
    truth(told(context, known).helo == Some(wanted))
}

/// SPF results in fields of the site's own servers: the oldest field counts, or the newest where the configuration
/// says so.
fn by_site(context: &Context<'_>) -> Told {
    let is_set = |name: &str| context.settings.number(name, 0.0) != 0.0;
    let mut told = Told::default();
    if is_set("ignore_received_spf_header") {
        return told;
    }
    let fields = context.fields.values("ALL-INTERNAL");
    let mut fields: Vec<&[u8]> = fields.iter().map(|field| &**field).collect();
    if !is_set("use_newest_received_spf_header") {
        fields.reverse();
    }
    for field in fields {
        let Some((identity, result)) = received_spf(field).or_else(|| authentication_results(field)) else { continue };
        let place = match identity.as_deref() {
            None | Some(b"mfrom" | b"mailfrom") => &mut told.sender,
            Some(b"helo") => &mut told.helo,
            Some(_) => continue,
        };
        place.get_or_insert(result);
    }
    told
}

type Result = (Option<Box<[u8]>>, Spf);

/// `Received-SPF: pass (...) identity=mailfrom; ...`
fn received_spf(field: &[u8]) -> Option<Result> {
    let value = value_of(field, b"received-spf:")?.to_ascii_lowercase();
    let (result, rest) = result(value.trim_ascii_start())?;
    let mark = b"identity=";
    let at = memchr::memmem::rfind(rest, mark).filter(|&at| at > 0 && !rest[at - 1].is_ascii_alphanumeric());
    let identity = at.map(|at| {
        let word = &rest[at + mark.len()..];
        let end = word.iter().position(|&byte| byte == b';' || byte.is_ascii_whitespace()).unwrap_or(word.len());
        word[..end].into()
    });
    Some((identity, result))
}

/// `Authentication-Results: mx; spf=pass smtp.mailfrom=...`
fn authentication_results(field: &[u8]) -> Option<Result> {
    let value =
        value_of(field, b"authentication-results:").or_else(|| value_of(field, b"arc-authentication-results:"))?;
    let value = value.to_ascii_lowercase();
    let methods = value.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii);
    let said =
        methods.filter_map(|method| method.strip_prefix(b"spf")?.trim_ascii_start().strip_prefix(b"=")).last()?;
    let said = said.trim_ascii_start();
    let (result, rest) = match said.strip_prefix(b"hardfail") {
        Some(rest) => (Spf::Fail, rest),
        None => result(said)?,
    };
    let property = memchr::memmem::find(rest, b"smtp.").map(|at| &rest[at + 5..]);
    let identity = property.map(|property| {
        let end =
            property.iter().position(|&byte| byte == b'=' || byte.is_ascii_whitespace()).unwrap_or(property.len());
        property[..end].into()
    });
    Some((identity, result))
}

fn value_of<'f>(field: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    field.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name)).map(|_| &field[name.len()..])
}

fn result(text: &[u8]) -> Option<(Spf, &[u8])> {
    const NAMES: [(&str, Spf); 7] = [
        ("pass", Spf::Pass),
        ("neutral", Spf::Neutral),
        ("none", Spf::None),
        ("fail", Spf::Fail),
        ("softfail", Spf::SoftFail),
        ("permerror", Spf::PermError),
        ("temperror", Spf::TempError),
    ];
    NAMES.iter().find_map(|&(name, result)| {
        let rest = text.strip_prefix(name.as_bytes())?;
        let ends = rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        ends.then_some((result, rest))
    })
}

/// Whether the sender is in a list, and SPF says that it is it.
fn welcome_by_spf(context: &Context<'_>, known: &Known<'_>, which: &str) -> f64 {
    let Some(sender) = known.sender.envelope.as_deref() else { return 0.0 };
    let is_in = |list: &str| context.settings.has(&format!("{which}{list}"), sender.as_bytes());
    let is_welcome = is_in("welcomelist_from_spf") || is_in("welcomelist_auth");
    truth(is_welcome && told(context, known).sender == Some(Spf::Pass))
}

fn valid(arguments: &Arguments<'_>, known: &Known<'_>) -> f64 {
    truth(known.authentic.valid().any(|signature| is_by_one_of(signature, arguments)))
}

/// Whether the rule names no domains, or that of the signature: `*.example` is all below it, and itself.
fn is_by_one_of(signature: &Signature, arguments: &Arguments<'_>) -> bool {
    let signer = lower(signature.signer());
    let mut domains = (0..arguments.len()).filter_map(|place| arguments.get(place));
    arguments.is_empty() || domains.any(|domain| is_within(&signer, domain))
}

fn is_within(name: &[u8], domain: &[u8]) -> bool {
    let domain = domain.to_ascii_lowercase();
    let Some(above) = domain.strip_prefix(b"*").unwrap_or(&domain).strip_prefix(b".") else { return *name == *domain };
    name.strip_suffix(above).is_some_and(|front| front.is_empty() || front.ends_with(b"."))
}

/// Whether the key is long enough.
fn is_strong(context: &Context<'_>, signature: &Signature) -> bool {
    let least = context.settings.number("dkim_minimum_key_bits", 1024.0);
    // Keys on curves are short, and strong.
    const CURVE_BITS: u32 = 256;
    signature.key_bits.is_none_or(|bits| bits == CURVE_BITS || f64::from(bits) >= least)
}

fn authors(context: &Context<'_>) -> Vec<Vec<u8>> {
    let addresses = context.fields.values("From:addr");
    addresses.iter().filter_map(|address| domain_of(address)).collect()
}

fn domain_of(address: &[u8]) -> Option<Vec<u8>> {
    let at = address.iter().rposition(|&byte| byte == b'@')?;
    Some(ascii(address[at + 1..].trim_ascii_end()))
}

fn lower(text: &str) -> Vec<u8> {
    text.as_bytes().to_ascii_lowercase()
}

/// Whether some author's practice is one of these, and the author one of those that the rule names.
fn practice(context: &Context<'_>, known: &Known<'_>, letters: &[u8], domains: &[&[u8]]) -> f64 {
    if !known.practices.values().any(|letter| letters.contains(letter)) {
        return 0.0;
    }
    let authors = authors(context);
    let is_named = |domain: &&[u8]| authors.iter().any(|author| is_within(author, domain));
    truth(domains.is_empty() || domains.iter().any(is_named))
}

/// Whether the author is in a list, and who the list says has signed.
fn welcome_by_signature(context: &Context<'_>, known: &Known<'_>, which: &str) -> f64 {
    let authors = context.fields.values("From:addr");
    let mut strong = known.authentic.valid().filter(|signature| is_strong(context, signature));
    let is_welcome = |signature: &Signature| {
        let signer = lower(signature.signer());
        authors.iter().any(|author| {
            let author = author.to_ascii_lowercase();
            let own = domain_of(&author).unwrap_or_default();
            let is_author_welcome = context.settings.has(&format!("{which}welcomelist_auth"), &author) && own == signer;
            let mut entries = context.settings.sent(&format!("{which}welcomelist_from_dkim")).iter();
            is_author_welcome
                || entries.any(|entry| fits(&entry.address, &author) && is_signed_by(&entry.relay, &own, &signer))
        })
    };
    truth(strong.any(is_welcome))
}

/// Whether the signer is who an entry says: the author's own domain, a domain, or all that are below one.
fn is_signed_by(wanted: &[u8], own: &[u8], signer: &[u8]) -> bool {
    let wanted = wanted.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    match wanted.strip_prefix(b"*").unwrap_or(wanted).strip_prefix(b".") {
        _ if wanted.is_empty() => signer == own,
        Some(above) => signer.strip_suffix(above).is_some_and(|front| front.ends_with(b".")),
        None => signer == wanted,
    }
}

fn is_policy(known: &Known<'_>, wanted: Dmarc) -> f64 {
    truth(known.authentic.dmarc == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_site_say_what_spf_has_found() {
        let identity = |text: &str| Some(Box::from(text.as_bytes()));
        for (field, expected) in [
            ("Received-SPF: pass (mx: domain of a@b) client-ip=1", Some((None, Spf::Pass))),
            ("received-spf: SoftFail (x) identity=mailfrom; x=y", Some((identity("mailfrom"), Spf::SoftFail))),
            ("Received-SPF: none identity=helo", Some((identity("helo"), Spf::None))),
            ("Received-SPF: passing", None),
            (
                "Authentication-Results: mx; dkim=none; spf=hardfail smtp.mailfrom=a@b",
                Some((identity("mailfrom"), Spf::Fail)),
            ),
            ("Authentication-Results: mx; dkim=pass", None),
            ("Subject: spf=pass", None),
        ] {
            let told = received_spf(field.as_bytes()).or_else(|| authentication_results(field.as_bytes()));
            assert_eq!(told, expected, "{field}");
        }
    }

    #[test]
    fn domains_of_rules_are_themselves_or_what_is_below() {
        assert!(is_within(b"a.example", b"*.Example") && is_within(b"example", b".example"));
        assert!(!is_within(b"a.example", b"example") && is_within(b"example", b"Example"));
        assert!(is_signed_by(b"", b"x.test", b"x.test") && !is_signed_by(b"", b"x.test", b"a.x.test"));
        assert!(is_signed_by(b"*.x.test", b"", b"a.x.test") && !is_signed_by(b"*.x.test", b"", b"x.test"));
        assert!(is_signed_by(b"me@x.test", b"", b"x.test"));
    }
}
