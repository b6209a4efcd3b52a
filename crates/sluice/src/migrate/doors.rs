//! Where mail comes in: services of `master.cf` that are `smtpd` or postscreen become listeners.

use serde_json::json;

use super::access;
use super::draft::Part;
use super::parameters::{Parameters, Place};
use super::services::{Service, endpoint};
use super::translation::{Shape, Translation, told};
use super::ways;

/// The port of mail servers.
const SMTP: u16 = 25;

/// Options of a service that listeners have by their kind.
const KNOWN: &[&str] = &[
    "smtpd_tls_security_level",
    "smtpd_tls_wrappermode",
    "smtpd_tls_auth_only",
    "smtpd_sasl_auth_enable",
    "smtpd_reject_unlisted_recipient",
    "smtpd_relay_restrictions",
    "smtpd_recipient_restrictions",
    "smtpd_client_restrictions",
    "smtpd_helo_restrictions",
    "smtpd_sender_restrictions",
    "syslog_name",
    "smtpd_sasl_security_options",
    "smtpd_sasl_local_domain",
    "smtpd_use_tls",
    "smtpd_enforce_tls",
    "message_size_limit",
    "mynetworks",
];

/// Parameters by which a proxy in front tells who its clients are.
const PROXIES: [&str; 3] =
    ["smtpd_upstream_proxy_protocol", "postscreen_upstream_proxy_protocol", "smtpd_authorized_xclient_hosts"];

/// Programs of Postfix.
const OWN: &[&str] = &[
    "anvil",
    "bounce",
    "cleanup",
    "discard",
    "dnsblog",
    "error",
    "flush",
    "lmtp",
    "local",
    "oqmgr",
    "pickup",
    "postlogd",
    "proxymap",
    "qmgr",
    "qmqpd",
    "scache",
    "showq",
    "smtp",
    "smtpd",
    "tlsmgr",
    "tlsproxy",
    "trivial-rewrite",
    "verify",
    "virtual",
];

/// Makes a listener of each service to which clients connect.
pub fn listeners(work: &mut Translation<'_>, shape: &Shape, has_tls: bool) {
    let services: Vec<Service> = work.services.to_vec();
    let mut is_any = false;
    for service in &services {
        let is_door = service.kind == "inet" && matches!(service.command.as_str(), "smtpd" | "postscreen");
        if is_door {
            is_any |= listener(work, service, shape, has_tls);
        } else {
            other(work, service);
        }
    }
    if !is_any {
        let service = Service {
            place: Default::default(),
            name: "smtp".into(),
            kind: "inet".into(),
            command: "smtpd".into(),
            options: Vec::new(),
        };
        listener(work, &service, shape, has_tls);
    }
    for name in [
        "smtpd_tls_security_level",
        "smtpd_use_tls",
        "smtpd_enforce_tls",
        "smtpd_sasl_auth_enable",
        "message_size_limit",
        "inet_interfaces",
    ] {
        work.done(name);
    }
    if *shape == Shape::Server {
        work.set(Part::Store, "message_bytes_max", "message_size_limit", |value| {
            let bytes = value.parse::<u64>().ok()?;
            Some(if bytes == 0 { json!("1G") } else { json!(bytes) })
        });
    }
}

/// Notes options of a service that have an effect. An empty value takes back what `main.cf` sets, which is noted there.
fn options(work: &mut Translation<'_>, service: &Service, is_known: impl Fn(&str, &str) -> bool) {
    for (place, name, value) in service.options.iter().filter(|(_, name, value)| !is_known(name, value)) {
        let why = match name.as_str() {
            _ if value.is_empty() => continue,
            "smtp_tls_security_level" if ways::is_strict(value) => ways::STRICT,
            name => super::reasons::reason(name).map_or("there is no such setting", |why| why.unwrap_or_default()),
        };
        if !why.is_empty() {
            work.draft.note(
                Some(place),
                format!("{}: -o {}", service.name, told(name, value).replacen(" = ", "=", 1)),
                why,
            );
        }
    }
}

/// Services besides doors: options of Postfix's own programs, and services that are not Postfix's own.
fn other(work: &mut Translation<'_>, service: &Service) {
    if OWN.contains(&service.command.as_str()) {
        // The next hop is one within TLS.
        return options(work, service, |name, _| KNOWN.contains(&name) || name == "smtp_tls_wrappermode");
    }
    let setting = format!("{} {} {}", service.name, service.kind, service.command);
    let why = match service.command.as_str() {
        "pipe" | "spawn" => "programs are not started for mails",
        _ => "there is no such service",
    };
    work.draft.note(Some(&service.place), setting, why);
}

/// What a listener is made of.
struct Listener<'a> {
    service: &'a Service,
    /// Parameters of the service.
    own: Parameters,
    forward: &'a str,
    host: Option<String>,
    port: u16,
    tls: &'static str,
    is_submission: bool,
    /// Networks that may relay.
    inside: Vec<String>,
    /// Networks of which clients are, where others are refused.
    clients: Vec<String>,
}

fn listener(work: &mut Translation<'_>, service: &Service, shape: &Shape, has_tls: bool) -> bool {
    let setting = format!("{} {} {}", service.name, service.kind, service.command);
    let Some((host, port)) = endpoint(&service.name) else {
        work.draft.note(Some(&service.place), setting, "the port of this name is not known");
        return false;
    };
    let own = work.parameters.with(&effective(work.services, service));
    let logs_in = own.is_yes("smtpd_sasl_auth_enable");
    let is_loopback = host.as_deref().is_some_and(|host| host.starts_with("127.") || host == "::1");
    if !matches!(port, SMTP | 587 | 465) && is_loopback {
        let why = "a way back from a filter, or from programs of this machine: mail is inspected here, and programs use sluice sendmail";
        work.draft.note(Some(&service.place), setting, why);
        return false;
    }
    options(work, service, |name, _| KNOWN.contains(&name));
    let is_submission = port != SMTP && (logs_in || matches!(port, 587 | 465));
    let refused = match () {
        () if is_submission && !has_tls => Some("logins need a certificate: set [[tls.certificate]], and add it"),
        () if is_submission && *shape != Shape::Server => {
            Some("a gateway has no accounts: with auth = \"tls\" clients log in to the next hop")
        }
        () => None,
    };
    if let Some(why) = refused {
        work.draft.note(Some(&service.place), setting, why);
        return false;
    }
    if port == SMTP && logs_in {
        let place = own.place("smtpd_sasl_auth_enable").cloned();
        let why = "accounts log in at the ports 587 and 465, and not where strangers bring mail";
        work.draft.note(place.as_ref(), "smtpd_sasl_auth_enable = yes", why);
    }
    // All clients of a proxy seem to be on its machine, as long as the listener does not know it.
    let is_proxied = PROXIES.iter().any(|name| own.is_set(name));
    let is_inside =
        !is_submission && !is_proxied && *shape == Shape::Server && work.has_way && access::let_networks_relay(&own);
    let inside = if is_inside { access::mynetworks(work, &own) } else { Vec::new() };
    let clients = access::only_clients(work, &own, is_submission).unwrap_or_default();
    let forward = if let Shape::Gateway(hop) = shape { hop.as_str() } else { "store:" };
    let tls = if has_tls { tls_of(&own, port, is_submission) } else { "off" };
    Listener { service, own, forward, host, port, tls, is_submission, inside, clients }.write(work);
    true
}

/// The key `tls` of a listener, where there is a certificate.
fn tls_of(own: &Parameters, port: u16, is_submission: bool) -> &'static str {
    if own.is_yes("smtpd_tls_wrappermode") || port == 465 {
        return "implicit";
    }
    if is_submission {
        return "require";
    }
    match own.value("smtpd_tls_security_level").as_str() {
        "" if own.is_yes("smtpd_enforce_tls") => "require",
        "" if own.is_yes("smtpd_use_tls") => "offer",
        "may" => "offer",
        "encrypt" => "require",
        _ => "off",
    }
}

impl Listener<'_> {
    fn write(&self, work: &mut Translation<'_>) {
        let has_recipients = work.has_recipients && !self.is_submission;
        for address in addresses(work, self.host.as_deref()) {
            let draft = &mut work.draft;
            let place = &self.service.place;
            let from = if place.file.is_empty() { String::new() } else { format!("  # {place}") };
            draft.line(Part::Listeners, format!("[[listener]]{from}"));
            draft.key(Part::Listeners, "protocol", &json!("smtp"), None);
            draft.key(Part::Listeners, "address", &json!(format!("{address}:{}", self.port)), None);
            draft.key(Part::Listeners, "forward", &json!(self.forward), None);
            draft.key(Part::Listeners, "tls", &json!(self.tls), None);
            if self.is_submission {
                draft.key(Part::Listeners, "auth", &json!("tls"), None);
            }
            if !self.clients.is_empty() {
                draft.key(
                    Part::Listeners,
                    "clients",
                    &json!(self.clients),
                    self.own.place("smtpd_client_restrictions"),
                );
            }
            if has_recipients {
                draft.key(Part::Listeners, "recipients", &json!(["relayed"]), None);
            }
            if !self.inside.is_empty() {
                draft.key(Part::Listeners, "relay_clients", &json!(self.inside), self.own.place("mynetworks"));
            }
            if let Ok(bytes @ 1..) = self.own.value("message_size_limit").parse::<u64>() {
                let place = self.own.place("message_size_limit");
                draft.key(Part::Listeners, "message_bytes_max", &json!(bytes), place);
            }
        }
    }
}

/// The options of a service; postscreen hands its clients over to the service `smtpd pass`, whose options hold for them.
fn effective(services: &[Service], service: &Service) -> Vec<(Place, String, String)> {
    let is_behind =
        |other: &&Service| service.command == "postscreen" && other.kind == "pass" && other.command == "smtpd";
    let behind = services.iter().find(is_behind).map(|other| other.options.as_slice());
    [service.options.as_slice(), behind.unwrap_or_default()].concat()
}

/// The addresses of a service: its own, or those of `inet_interfaces`.
fn addresses(work: &mut Translation<'_>, host: Option<&str>) -> Vec<String> {
    let bracketed = |host: &str| {
        let host = host.trim_matches(['[', ']']);
        match host.parse::<std::net::IpAddr>() {
            Ok(address) if address.is_ipv6() => Some(format!("[{address}]")),
            Ok(address) => Some(address.to_string()),
            Err(_) if host == "localhost" => Some("127.0.0.1".into()),
            Err(_) => None,
        }
    };
    let protocols = work.parameters.list("inet_protocols");
    let any = if protocols == ["ipv4"] { "0.0.0.0" } else { "[::]" };
    if let Some(host) = host {
        return vec![bracketed(host).unwrap_or_else(|| any.into())];
    }
    let mut found = Vec::new();
    for word in work.parameters.list("inet_interfaces") {
        match word.as_str() {
            "all" => found.push(any.to_owned()),
            "loopback-only" => found.push("127.0.0.1".into()),
            word => match bracketed(word) {
                Some(address) => found.push(address),
                None => work.note("inet_interfaces", format!("{word}: a listener has an address, and not a name")),
            },
        }
    }
    if found.is_empty() {
        found.push(any.into());
    }
    found
}
