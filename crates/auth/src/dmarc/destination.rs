//! Addresses that aggregate reports go to (RFC 9989 section 4.7, RFC 9990 section 3).
//!
//! Only addresses of mail count. A size limit, `!10m` behind an address, is that of the mail. Bounds: [`DESTINATIONS_MAX`].

use super::record::tags;
use crate::domain;

/// The most addresses of a record.
const DESTINATIONS_MAX: usize = 5;

/// An address that wants reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The address.
    pub address: Box<str>,
    /// Its domain, normalised.
    pub host: Box<str>,
    /// The largest mail that it takes, in bytes.
    pub bytes_max: Option<u64>,
}

/// The addresses of a record, in its order; none where the text is no record.
pub fn destinations(text: &[u8]) -> Option<Vec<Destination>> {
    let tags = tags(text)?;
    let uris = tags.iter().find(|(name, _)| name.eq_ignore_ascii_case("rua")).map_or("", |(_, uris)| *uris);
    Some(uris.split(',').filter_map(destination).take(DESTINATIONS_MAX).collect())
}

/// The addresses of these at another organization that take reports about a domain (RFC 9990 section 4): `texts` are the records that
/// `DOMAIN._report._dmarc.HOST` has. One with addresses of its own names those in their place, at the same host.
pub fn accepts(wanted: &[Destination], texts: &[&[u8]]) -> Vec<Destination> {
    let records: Vec<Vec<Destination>> = texts.iter().filter_map(|text| destinations(text)).collect();
    match records.iter().find(|own| !own.is_empty()) {
        _ if records.is_empty() => Vec::new(),
        None => wanted.to_vec(),
        Some(own) => {
            let is_here = |one: &Destination| wanted.iter().any(|wanted| wanted.host == one.host);
            if own.iter().all(is_here) { own.clone() } else { Vec::new() }
        }
    }
}

fn destination(uri: &str) -> Option<Destination> {
    let uri = uri.trim();
    let (scheme, rest) = uri.split_at_checked(7)?;
    let rest = rest.split('?').next().filter(|_| scheme.eq_ignore_ascii_case("mailto:"))?;
    let (address, bytes_max) = match rest.rsplit_once('!') {
        Some((address, size)) => (address, Some(bytes(size)?)),
        None => (rest, None),
    };
    let address = unescaped(address)?;
    let (local, host) = address.rsplit_once('@')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let host = domain::host(host).filter(|_| !local.is_empty() && local.bytes().all(is_plain))?;
    Some(Destination { address: format!("{local}@{host}").into(), host, bytes_max })
}

/// A size: a number of bytes, or of `k`, `m`, `g`, `t` of them.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match size.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A part of a URI without its escapes; none where one is broken.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut out = String::from(parts.next()?);
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii_graphic)?;
        out.push(char::from(byte));
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rua: &str) -> Vec<(String, Option<u64>)> {
        let found = destinations(format!("v=DMARC1; p=none; rua={rua}").as_bytes()).unwrap();
        found.into_iter().map(|one| (one.address.into(), one.bytes_max)).collect()
    }

    #[test]
    fn addresses_have_limits_and_escapes() {
        assert_eq!(
            of("mailto:a@b.test!10m, MAILTO:c@D.test ,https://x/y,mailto:d@b.test?x=y"),
            [("a@b.test".to_owned(), Some(10 << 20)), ("c@d.test".into(), None), ("d@b.test".into(), None),]
        );
        assert_eq!(of("mailto:a%21b%2b%2c@c.test!7"), []);
        assert_eq!(of("mailto:a%21b%2b@c.test!7K"), [("a!b+@c.test".to_owned(), Some(7 << 10))]);
        for wrong in [
            "mailto:a@b.test!m",
            "mailto:a@b.test!1x",
            "mailto:a@b.test!99999999999t",
            "mailto:a%4@b.test",
            "mailto:a%0d%0aX@b.test",
            "mailto:@b.test",
            "mailto:a b@c.test",
            "mailto:a@b c.test",
            "mailto:a@",
            "mailto:",
            "http:",
            "",
        ] {
            assert_eq!(of(wrong), [], "{wrong}");
        }
        assert_eq!(of(&["mailto:a@b.test"; 20].join(",")).len(), DESTINATIONS_MAX);
        assert_eq!(destinations(b"rua=mailto:a@b.test"), None);
    }

    #[test]
    fn another_organization_says_that_it_takes_reports_and_where() {
        let wanted = destinations(b"v=DMARC1; rua=mailto:a@b.test!1m").unwrap();
        let told = |texts: &[&str]| {
            let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
            accepts(&wanted, &texts).into_iter().map(|one| one.address.into()).collect::<Vec<String>>()
        };
        assert!(told(&[]).is_empty() && told(&["v=spf1", "V=DMARC1"]).is_empty());
        assert_eq!(told(&["other", "v=DMARC1;"]), ["a@b.test"]);
        assert_eq!(told(&["v=DMARC1; rua=mailto:else@b.test"]), ["else@b.test"]);
        assert!(told(&["v=DMARC1; rua=mailto:x@elsewhere.test"]).is_empty());
    }
}
