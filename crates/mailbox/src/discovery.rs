//! Discovery by programs before a login: Thunderbird's autoconfig (`config-v1.1.xml`), Outlook's autodiscover (POX), the
//! configuration of draft-ietf-mailmaint-pacc-04, and the policy of MTA-STS (RFC 8461).
//!
//! The answers have the doors of this server, whatever domain and address are asked for: none is looked up, so nobody learns who has an
//! account. A question is 16 KiB long at the most.

use ::webmail::{Call, Refusal, Reply, refusal};
use proto::http::Request;
use proto::smtp::Path;

/// The name of a domain at which programs ask for its configuration.
pub const CONFIGURATION_HOST: &str = "ua-auto-config.";

/// The longest question of autodiscover, in bytes.
pub(crate) const REQUEST_BYTES_MAX: u64 = 16 << 10;

/// The doors of a server, as far as programs are told of them: those within TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The port of IMAP within TLS.
    pub imaps: Option<u16>,
    /// The port of POP3 within TLS.
    pub pop3s: Option<u16>,
    /// The port at which accounts send within TLS.
    pub submissions: Option<u16>,
    /// The port at which they send behind STARTTLS.
    pub submission: Option<u16>,
    /// The port of webmail and JMAP within TLS.
    pub webmails: Option<u16>,
    /// The policy of MTA-STS, whole.
    pub policy: Option<String>,
}

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Autoconfig,
    Autodiscover,
    Configuration,
    Policy,
}

/// The question of a request, if it is one.
pub(crate) fn asked(call: &Call) -> Option<Asked> {
    match call.segments()[..] {
        ["mail", "config-v1.1.xml"] | [".well-known", "autoconfig", "mail", "config-v1.1.xml"] => {
            Some(Asked::Autoconfig)
        }
        [folder, file] if folder.eq_ignore_ascii_case("autodiscover") => {
            file.eq_ignore_ascii_case("autodiscover.xml").then_some(Asked::Autodiscover)
        }
        [".well-known", "user-agent-configuration.json"] => Some(Asked::Configuration),
        [".well-known", "mta-sts.txt"] => Some(Asked::Policy),
        _ => None,
    }
}

impl Discovery {
    /// Answers a question, whose body this is.
    pub(crate) fn answer(&self, asked: Asked, request: &Request, call: &Call, body: &[u8], hostname: &str) -> Reply {
        let host = request.fields.get("host").map(|host| String::from_utf8_lossy(host).to_ascii_lowercase());
        let host = host.as_deref().map_or("", |host| host.split(':').next().unwrap_or_default());
        match asked {
            Asked::Policy => self.told_policy(host, call),
            Asked::Configuration => {
                let domain = host.strip_prefix(CONFIGURATION_HOST).filter(|domain| is_host(domain));
                let told = domain.and_then(|domain| self.configuration(domain, hostname));
                told.map_or_else(|| not_here(call), |told| Reply::json(200, told))
            }
            _ if self.imaps.is_none() && self.pop3s.is_none() => not_here(call),
            Asked::Autoconfig => {
                let domain = call.query.get("emailaddress").rsplit_once('@').map(|(_, domain)| domain);
                let domain = domain.or_else(|| host.strip_prefix("autoconfig.")).filter(|domain| is_host(domain));
                xml(self.autoconfig(domain.unwrap_or(hostname), hostname))
            }
            Asked::Autodiscover => match address(body) {
                Some(address) => xml(self.autodiscover(address, hostname)),
                None => refusal(call.language, Refusal::NoAddress),
            },
        }
    }

    /// The policy, which is that of a domain: `mta-sts.DOMAIN` alone has it.
    fn told_policy(&self, host: &str, call: &Call) -> Reply {
        match self.policy.as_ref().filter(|_| host.starts_with("mta-sts.")) {
            Some(policy) => text("text/plain; charset=utf-8", policy.clone()),
            None => not_here(call),
        }
    }

    /// The configuration that `ua-auto-config.DOMAIN` has (draft-ietf-mailmaint-pacc-04), whose digest stands in the DNS: the protocols within
    /// TLS at their usual ports, which are all that it can name. None without any.
    pub fn configuration(&self, domain: &str, hostname: &str) -> Option<String> {
        let at = |port: Option<u16>, usual: u16| port == Some(usual);
        let host = |is_there: bool, name: &str| is_there.then(|| format!("\"{name}\":{{\"host\":\"{hostname}\"}}"));
        let session = || format!("\"jmap\":{{\"url\":\"https://{hostname}/.well-known/jmap\"}}");
        let protocols = [
            at(self.webmails, 443).then(session),
            host(at(self.imaps, 993), "imap"),
            host(at(self.pop3s, 995), "pop3"),
            host(at(self.submissions, 465), "submit"),
        ];
        let protocols: Vec<String> = protocols.into_iter().flatten().collect();
        // Longer names of providers are refused.
        let provider = if domain.len() <= 60 { domain } else { "mail" };
        (!protocols.is_empty()).then(|| {
            format!(
                "{{\"protocols\":{{{}}},\"authentication\":{{\"password\":true}},\"info\":{{\"provider\":{{\"name\":\"{provider}\"}}}}}}",
                protocols.join(",")
            )
        })
    }

    fn autoconfig(&self, domain: &str, hostname: &str) -> String {
        let server = |element: &str, kind: &str, port: u16, socket: &str| {
            format!(
                "    <{element} type=\"{kind}\">\n      <hostname>{hostname}</hostname>\n      <port>{port}</port>\n      \
                 <socketType>{socket}</socketType>\n      <authentication>password-cleartext</authentication>\n      \
                 <username>%EMAILADDRESS%</username>\n    </{element}>\n"
            )
        };
        let mut servers = String::new();
        servers.extend(self.imaps.map(|port| server("incomingServer", "imap", port, "SSL")));
        servers.extend(self.pop3s.map(|port| server("incomingServer", "pop3", port, "SSL")));
        servers.extend(self.submissions.map(|port| server("outgoingServer", "smtp", port, "SSL")));
        servers.extend(self.submission.map(|port| server("outgoingServer", "smtp", port, "STARTTLS")));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<clientConfig version=\"1.1\">\n  <emailProvider id=\"{domain}\">\n    \
             <domain>{domain}</domain>\n    <displayName>{domain}</displayName>\n    <displayShortName>{domain}</displayShortName>\n\
             {servers}  </emailProvider>\n</clientConfig>\n"
        )
    }

    fn autodiscover(&self, address: &str, hostname: &str) -> String {
        let protocol = |kind: &str, port: u16, security: &str| {
            format!(
                "      <Protocol>\n        <Type>{kind}</Type>\n        <Server>{hostname}</Server>\n        <Port>{port}</Port>\n        \
                 <LoginName>{address}</LoginName>\n        <DomainRequired>off</DomainRequired>\n        <SPA>off</SPA>\n        \
                 {security}\n        <AuthRequired>on</AuthRequired>\n      </Protocol>\n"
            )
        };
        let mut protocols = String::new();
        protocols.extend(self.imaps.map(|port| protocol("IMAP", port, "<SSL>on</SSL>")));
        protocols.extend(self.pop3s.map(|port| protocol("POP3", port, "<SSL>on</SSL>")));
        // One of a kind: what is encrypted from the first byte goes first (RFC 8314, section 3.3).
        let implicit = self.submissions.map(|port| protocol("SMTP", port, "<SSL>on</SSL>"));
        let explicit = || self.submission.map(|port| protocol("SMTP", port, "<Encryption>TLS</Encryption>"));
        protocols.extend(implicit.or_else(explicit));
        const NAMES: &str = "http://schemas.microsoft.com/exchange/autodiscover";
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Autodiscover xmlns=\"{NAMES}/responseschema/2006\">\n  \
             <Response xmlns=\"{NAMES}/outlook/responseschema/2006a\">\n    <Account>\n      <AccountType>email</AccountType>\n      \
             <Action>settings</Action>\n{protocols}    </Account>\n  </Response>\n</Autodiscover>\n"
        )
    }
}

fn xml(content: String) -> Reply {
    text("text/xml; charset=utf-8", content)
}

fn text(kind: &str, content: String) -> Reply {
    let mut reply = Reply::json(200, content);
    reply.set("Content-Type", kind.into());
    reply
}

fn not_here(call: &Call) -> Reply {
    refusal(call.language, Refusal::Missing)
}

/// The address of a question: `<EMailAddress>ADDRESS</EMailAddress>`, of letters that no document reads as marks.
fn address(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?;
    let (_, rest) = body.split_once("EMailAddress>")?;
    let (address, _) = rest.split_once('<')?;
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>&\"'".contains(&byte));
    let address = address.trim();
    (is_plain && address.contains('@') && address.parse::<Path>().is_ok()).then_some(address)
}

fn is_host(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    (1..=253).contains(&name.len()) && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_marks_are_refused() {
        let question =
            |address: &str| format!("<Autodiscover><Request><EMailAddress>{address}</EMailAddress></Request>");
        assert_eq!(address(question("ann@example.org").as_bytes()), Some("ann@example.org"));
        for wrong in ["", "ann", "a&b@example.org", "\"a\"@example.org", "a b@example.org", "ann@example.org\n"] {
            assert_eq!(address(question(wrong).as_bytes()), None, "{wrong}");
        }
        assert_eq!((address(b""), address(b"EMailAddress>a@b"), address(b"\xff")), (None, None, None));
        assert!(is_host("example.org") && !is_host("a<b") && !is_host("") && !is_host(&"x".repeat(300)));
    }

    #[test]
    fn doors_that_are_there_are_told() {
        let discovery = Discovery { imaps: Some(993), submission: Some(587), ..Discovery::default() };
        let told = discovery.autoconfig("example.org", "mx.example.org");
        assert!(told.contains("<port>993</port>\n      <socketType>SSL</socketType>"), "{told}");
        assert!(
            told.contains("<port>587</port>\n      <socketType>STARTTLS</socketType>") && !told.contains("pop3"),
            "{told}"
        );
        let told = discovery.autodiscover("ann@example.org", "mx.example.org");
        assert!(
            told.contains("<Encryption>TLS</Encryption>") && told.contains("<LoginName>ann@example.org</LoginName>"),
            "{told}"
        );
        let both = Discovery { submissions: Some(465), ..discovery };
        let told = both.autoconfig("example.org", "mx.example.org");
        assert!(told.find("<port>465</port>\n      <socketType>SSL") < told.find("<port>587</port>"), "{told}");
        assert!(!both.autodiscover("ann@example.org", "mx.example.org").contains("587"));
    }

    #[test]
    fn a_configuration_names_what_is_at_its_usual_port() {
        let told = |discovery: &Discovery| discovery.configuration("example.org", "mx.example.org");
        assert_eq!(told(&Discovery { imaps: Some(1993), submission: Some(587), ..Discovery::default() }), None);
        let all = Discovery { imaps: Some(993), submissions: Some(465), webmails: Some(443), ..Discovery::default() };
        assert_eq!(
            told(&all).as_deref(),
            Some(
                "{\"protocols\":{\"jmap\":{\"url\":\"https://mx.example.org/.well-known/jmap\"},\"imap\":{\"host\":\"mx.example.org\"},\
                 \"submit\":{\"host\":\"mx.example.org\"}},\"authentication\":{\"password\":true},\
                 \"info\":{\"provider\":{\"name\":\"example.org\"}}}"
            )
        );
    }
}
