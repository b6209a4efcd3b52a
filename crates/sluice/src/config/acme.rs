//! `[tls.acme]`, and the key `acme` of `[[tls.certificate]]`: certificates that are got by ACME (RFC 8555).

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use tokio_rustls::rustls::pki_types::{DnsName, ServerName};

use super::tls::{Certificate, Tls};

/// `[tls.acme]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Acme {
    /// The directory of the authority's server.
    pub directory: String,
    /// Whether its terms of service are agreed to; nothing is asked of it otherwise.
    pub accept_terms: bool,
    /// A mail address for the authority's messages. None: it knows of none.
    pub contact: Option<String>,
    /// Where the account's key and the certificates are kept.
    pub folder: PathBuf,
    /// Where the authority's questions are answered, while there are any: it asks at port 80.
    pub http: SocketAddr,
}

impl Default for Acme {
    fn default() -> Acme {
        Acme {
            directory: "https://acme-v02.api.letsencrypt.org/directory".into(),
            accept_terms: false,
            contact: None,
            folder: "/var/lib/sluice/acme".into(),
            http: SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 80),
        }
    }
}

/// Names of one certificate: as many as Let's Encrypt puts into one.
const NAMES_MAX: usize = 100;

impl Tls {
    /// The names of each certificate that is got by ACME.
    pub fn acme_names(&self) -> impl Iterator<Item = &[String]> {
        self.certificates.iter().filter_map(|certificate| match certificate {
            Certificate::Acme { names } => Some(&**names),
            Certificate::Files { .. } => None,
        })
    }

    pub(super) fn check_acme(&self) -> Result<(), String> {
        let mut firsts: Vec<&str> = Vec::new();
        for names in self.acme_names() {
            let Some(first) = names.first() else { return Err("tls.certificate: acme names nobody".into()) };
            if names.len() > NAMES_MAX {
                return Err(format!("tls.certificate: {first}: more than {NAMES_MAX} names"));
            }
            if let Some(wrong) = names.iter().find(|name| !is_certifiable(name)) {
                return Err(format!("tls.certificate: {wrong:?} is no name of a host that ACME could look at"));
            }
            if firsts.contains(&first.as_str()) {
                return Err(format!("tls.certificate: two certificates by ACME begin with {first}"));
            }
            firsts.push(first);
        }
        if firsts.is_empty() {
            return Ok(());
        }
        let acme = &self.acme;
        if !acme.accept_terms {
            return Err("tls.acme: accept_terms = true says that you agree to the terms of its authority".into());
        }
        if !acme.directory.starts_with("https://") {
            return Err(format!("tls.acme: {:?} is no URL of https", acme.directory));
        }
        match &acme.contact {
            Some(contact) if !is_contact(contact) => Err(format!("tls.acme: {contact:?} is no mail address")),
            _ => Ok(()),
        }
    }
}

/// A name of two labels at least, without `*`: it is asked over HTTP.
fn is_certifiable(name: &str) -> bool {
    let is_name = matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)));
    is_name && DnsName::try_from(name).is_ok() && name.contains('.') && !name.starts_with('*') && !name.ends_with('.')
}

fn is_contact(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?,:<>".contains(&byte));
    plain && text.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn parse(acme: &str, names: &str) -> Result<Config, String> {
        let text = format!(
            "[tls.acme]\n{acme}\n[[tls.certificate]]\nacme={names}\n\
             [[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\ntls='offer'"
        );
        Config::parse(&text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn what_an_authority_would_refuse_is_refused_before_it_is_asked() {
        let agreed = "accept_terms=true\ncontact='postmaster@example.org'";
        let names = |config: Config| config.tls.acme_names().map(<[_]>::to_vec).collect::<Vec<_>>();
        assert_eq!(names(parse(agreed, "['MX.example.org']").unwrap()), [["mx.example.org"]]);
        for (acme, wrong, why) in [
            ("", "['mx.example.org']", "accept_terms"),
            (agreed, "[]", "names nobody"),
            (agreed, "['*.example.org']", "no name of a host"),
            (agreed, "['192.0.2.1']", "no name of a host"),
            (agreed, "['localhost']", "no name of a host"),
            (agreed, "['../../x.y']", "no name of a host"),
            ("accept_terms=true\ncontact='me'", "['mx.example.org']", "no mail address"),
            ("accept_terms=true\ndirectory='http://a'", "['mx.example.org']", "no URL of https"),
            (agreed, "['mx.example.org']\nchain='x'", "chain and key, or acme"),
            (agreed, "['a.example']\n[[tls.certificate]]\nacme=['A.example']", "begin with a.example"),
        ] {
            let refusal = parse(acme, wrong).unwrap_err();
            assert!(refusal.contains(why), "{acme} {wrong}: {refusal}");
        }
    }
}
