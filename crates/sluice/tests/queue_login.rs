//! Mail that goes out by a next hop that wants a login: Dovecot, Postfix with Dovecot's logins, Exim, and servers of our own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::dovecot::Dovecot;
use crate::harness::exim::Exim;
use crate::harness::postfix::Postfix;
use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, LOGIN, PLAIN, Sink, SinkTls, free_port, wait_for};
use crate::queue::{Site, send};

const MAIL: &str = "Subject: hello\r\n\r\nbody\r\n";

/// A folder with a certificate that is trusted, and logins.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new(certificate: &Certificate, logins: &str) -> Ground {
        let ground = Ground { folder: tempfile::tempdir().unwrap() };
        certificate.store(ground.folder.path(), "hop");
        ground.log_in_with(logins);
        ground
    }

    fn logins(&self) -> PathBuf {
        self.folder.path().join("logins")
    }

    fn log_in_with(&self, logins: &str) {
        std::fs::write(self.logins(), logins).unwrap();
        std::fs::set_permissions(self.logins(), std::fs::Permissions::from_mode(0o640)).unwrap();
    }

    /// A site that relays to a next hop; `settings` are of `[store.queue]`.
    fn site(&self, relay: &str, settings: &str) -> Site {
        let authorities = self.folder.path().join("hop.crt");
        let settings = format!(
            "logins = \"{}\"\n{settings}\n[tls]\nauthorities = \"{}\"",
            self.logins().display(),
            authorities.display()
        );
        Site::relayed(relay, &settings, Behaviour::default())
    }
}

/// Sends a mail of ann to each of these.
fn submit(site: &Site, to: &[&str]) {
    let mut wire = site.submit_as("ann@here.test");
    for to in to {
        assert_eq!(send(&mut wire, "<ann@here.test>", &[to], MAIL), "250 2.0.0 Queued");
    }
}

/// Waits until each mail waits for a reason with these words; nothing comes back.
fn waits(site: &Site, words: &str) -> String {
    let told =
        || Some(site.sluice(&["why"])).filter(|why| !why.is_empty() && why.lines().all(|line| line.contains(words)));
    let why = wait_for(told, &format!("{words}: {}", site.sluice(&["why"])));
    assert!(site.mails("ann@here.test", 0).is_empty(), "nothing comes back");
    why
}

fn logins_of(sink: &Sink) -> Vec<String> {
    sink.commands()
        .into_iter()
        .filter(|line| line.starts_with("AUTH") || line == PLAIN || LOGIN.contains(&&**line))
        .collect()
}

fn tls(name: &str, implicit: bool) -> (Certificate, Option<SinkTls>) {
    let certificate = Certificate::of(name);
    let tls = SinkTls { certificate: Arc::new(certificate.clone()), implicit, injected: "" };
    (certificate, Some(tls))
}

#[test]
fn dovecot_lets_us_in_by_scram_over_starttls() {
    let sink = Sink::start(Behaviour::default());
    let Some(dovecot) = Dovecot::with_submission(sink.address) else { return };
    let Some(port) = dovecot.submission.map(|address| address.port()) else { return };
    let ground = Ground::new(&dovecot.certificate, &format!("[localhost]:{port} tim:secret\n"));
    let site = ground.site(&format!("smtp://localhost:{port}"), "");
    submit(&site, &["<u@far.test>", "<v@far.test>"]);
    // Two connections may carry them, in any order.
    let mut taken: Vec<_> = sink.wait(2).into_iter().flat_map(|mail| mail.to).collect();
    taken.sort();
    assert_eq!(taken, ["u@far.test", "v@far.test"], "{}", dovecot.log());
    assert!(dovecot.log().contains("user=<tim>, method=SCRAM-SHA-256"), "{}", dovecot.log());

    ground.log_in_with(&format!("localhost tim:wrong\n[localhost]:{} nobody:x\n", port ^ 1));
    let wrong = ground.site(&format!("smtp://localhost:{port}"), "");
    submit(&wrong, &["<u@far.test>"]);
    let why = waits(&wrong, "the next hop refuses the login: 535 5.7.8");
    assert!(!why.contains("wrong"), "{why}");
    assert!(wrong.gateway.log().contains("a login is for no next hop"), "{}", wrong.gateway.log());
    assert_eq!(sink.mails().len(), 2);
}

#[test]
fn postfix_lets_us_in_where_dovecot_vouches_for_us() {
    if !std::path::Path::new("/usr/sbin/postfix").exists() {
        return eprintln!("skipped: postfix is not installed");
    }
    let Some(dovecot) = Dovecot::start() else { return };
    let certificate = Certificate::of("localhost");
    for mechanisms in ["plain login", "login"] {
        let ground = Ground::new(&certificate, "localhost tim:secret\n");
        let at = ground.folder.path().display();
        let refused = if mechanisms == "login" { "!plain, !scram-sha-256" } else { "!scram-sha-256" };
        let postfix = Postfix::start(&format!(
            "mynetworks = 192.0.2.1/32\nsmtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\n\
             smtpd_sasl_path = inet:{}\nsmtpd_sasl_authenticated_header = yes\nsmtpd_tls_security_level = encrypt\n\
             smtpd_sasl_mechanism_filter = {refused}, static:all\n\
             smtpd_tls_cert_file = {at}/hop.crt\nsmtpd_tls_key_file = {at}/hop.key\n\
             smtpd_relay_restrictions =\nsmtpd_recipient_restrictions = permit_sasl_authenticated, reject",
            dovecot.auth,
        ));
        let site = ground.site(&format!("smtp://localhost:{}", postfix.port), "");
        submit(&site, &["<b@mx.test>"]);
        let log = || std::fs::read_to_string(postfix.folder.path().join("log")).unwrap_or_default();
        let mail = wait_for(|| postfix.mail(), &format!("a mail: {}", log()));
        let mail = String::from_utf8(mail).unwrap();
        assert!(mail.contains("(Authenticated sender: tim)") && mail.contains("with ESMTPSA id "), "{mail}");
    }
}

#[test]
fn exim_lets_us_in_on_the_loopback_without_tls_where_that_is_set() {
    let port = free_port();
    let authenticators = "begin authenticators\nplain:\n  driver = plaintext\n  public_name = PLAIN\n  server_prompts = :\n  \
                          server_condition = ${if and{{eq{$auth2}{tim}}{eq{$auth3}{secret}}}}\n  server_set_id = $auth2\n";
    let Some(exim) = Exim::start(&[port], authenticators, "", "") else { return };
    let ground = Ground::new(&Certificate::of("localhost"), "127.0.0.1 tim:secret\n");
    let relay = format!("smtp://127.0.0.1:{port}");
    let site = ground.site(&relay, "logins_without_tls = true");
    submit(&site, &["<b@mx.test>"]);
    let mail = String::from_utf8(wait_for(|| exim.mail(), &format!("a mail: {}", exim.log()))).unwrap();
    assert!(mail.contains("with esmtpa ") && exim.log().contains("A=plain:tim"), "{mail}");
    let guarded = ground.site(&relay, "");
    submit(&guarded, &["<b@mx.test>"]);
    waits(&guarded, "STARTTLS is not offered");
}

#[test]
fn each_mechanism_is_spoken_within_tls_and_none_without_a_proof_of_the_name() {
    for (extension, said) in [
        (["AUTH LOGIN PLAIN"], vec![format!("AUTH PLAIN {PLAIN}"), PLAIN.into()]),
        (["AUTH XOAUTH2 LOGIN"], vec!["AUTH LOGIN".into(), LOGIN[0].into(), LOGIN[1].into()]),
    ] {
        let (certificate, tls) = tls("localhost", true);
        let extensions: &[&str] = Box::leak(Box::new(extension));
        let hop = Sink::start(Behaviour { tls, extensions, login: true, ..Behaviour::default() });
        let ground = Ground::new(&certificate, "localhost tim:secret\n");
        let site = ground.site(&format!("smtps://localhost:{}", hop.address.port()), "");
        submit(&site, &["<u@far.test>"]);
        assert_eq!(hop.wait(1)[0].to, ["u@far.test"]);
        assert_eq!(logins_of(&hop), said);
    }
    const CLEAR: &[&str] = &["AUTH PLAIN"];
    const WITH_TLS: &[&str] = &["AUTH PLAIN", "STARTTLS"];
    let (certificate, wrong) = tls("elsewhere.test", false);
    for (extensions, tls, words) in
        [(CLEAR, None, "STARTTLS is not offered"), (WITH_TLS, wrong, "not known by its certificate")]
    {
        let hop = Sink::start(Behaviour { tls, extensions, login: true, ..Behaviour::default() });
        let ground = Ground::new(&certificate, "localhost tim:secret\n");
        let site = ground.site(&format!("smtp://localhost:{}", hop.address.port()), "logins_without_tls = true");
        submit(&site, &["<u@far.test>"]);
        waits(&site, words);
        assert!(logins_of(&hop).is_empty(), "{:?}", hop.commands());
    }
}

#[test]
fn a_login_that_is_refused_is_not_tried_by_every_mail() {
    let (certificate, tls) = tls("localhost", true);
    let behaviour = Behaviour { tls, extensions: &["AUTH PLAIN"], login: true, ..Behaviour::default() };
    let hop = Sink::start(behaviour.clone());
    let ground = Ground::new(&certificate, "localhost tim:guess\n");
    let site = ground.site(&format!("smtps://localhost:{}", hop.address.port()), "");
    let domains: Vec<String> = (0..12).map(|at| format!("<u@far{at}.test>")).collect();
    submit(&site, &domains.iter().map(String::as_str).collect::<Vec<_>>());
    let why = waits(&site, "the next hop refuses the login: 535 5.7.8 Wrong");
    assert_eq!(why.lines().count(), 12);
    assert_eq!(logins_of(&hop).iter().filter(|line| line.starts_with("AUTH")).count(), 1, "{:?}", hop.commands());

    let other = Sink::start(Behaviour { extensions: &["AUTH XOAUTH2"], ..behaviour });
    let site = ground.site(&format!("smtps://localhost:{}", other.address.port()), "");
    submit(&site, &["<u@far.test>"]);
    waits(&site, "offers no login by SCRAM-SHA-256, PLAIN or LOGIN");
}

#[test]
fn senders_have_next_hops_and_logins_of_their_own() {
    let (certificate, tls) = tls("localhost", true);
    let behaviour = Behaviour { tls, extensions: &["AUTH PLAIN"], login: true, ..Behaviour::default() };
    let (relay, own) = (Sink::start(behaviour.clone()), Sink::start(behaviour));
    let routed = Sink::start(Behaviour::default());
    let [relay_port, own_port] = [&relay, &own].map(|sink| sink.address.port());
    let logins = format!(
        "localhost:{relay_port} tim:wrong\nlocalhost:{own_port} tim:secret\nbob@here.test tim:secret\n@elsewhere.test x:y\n"
    );
    let ground = Ground::new(&certificate, &logins);
    let settings = format!(
        "sender_routes = {{ \"ann@here.test\" = \"smtps://localhost:{own_port}\" }}\nroutes = {{ \"routed.test\" = \"{}\" }}",
        routed.forward()
    );
    let site = ground.site(&format!("smtps://localhost:{relay_port}"), &settings);
    submit(&site, &["<a@far.test>", "<c@routed.test>"]);
    let mut wire = site.submit_as("bob@here.test");
    for to in ["<b@far.test>", "<d@routed.test>"] {
        assert_eq!(send(&mut wire, "<Bob@here.test>", &[to], MAIL), "250 2.0.0 Queued");
    }
    assert_eq!(own.wait(1)[0].to, ["a@far.test"]);
    assert_eq!(relay.wait(1)[0].to, ["b@far.test"]);
    // The way of a recipient's domain comes first, and hears of no sender's login.
    let mut taken: Vec<_> = routed.wait(2).into_iter().flat_map(|mail| mail.to).collect();
    taken.sort();
    assert_eq!(taken, ["c@routed.test", "d@routed.test"]);
    assert!(logins_of(&routed).is_empty(), "{:?}", routed.commands());
    assert_eq!(logins_of(&relay), [format!("AUTH PLAIN {PLAIN}"), PLAIN.into()]);
}
