//! Whole configurations of several shapes, each of which becomes one that loads.

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::config::Config;

/// Services as a distribution ships them.
const MASTER: &str = "smtp      inet  n       -       y       -       -       smtpd\n\
                      pickup    unix  n       -       y       60      1       pickup\n\
                      cleanup   unix  n       -       y       -       0       cleanup\n\
                      smtp      unix  -       -       y       -       -       smtp\n";

/// Parameters that every such configuration has.
const COMMON: &str = "smtpd_banner = $myhostname ESMTP $mail_name\nbiff = no\nappend_dot_mydomain = no\nreadme_directory = no\n\
                      compatibility_level = 3.6\nsmtp_tls_CApath=/etc/ssl/certs\nsmtp_tls_security_level=may\n\
                      smtp_tls_session_cache_database = btree:${data_directory}/smtp_scache\n\
                      alias_database = hash:/etc/aliases\nmailbox_size_limit = 0\nrecipient_delimiter = +\ninet_protocols = all\n";

/// The configuration and the notes, of these files; it has to load.
fn migrated(files: &[(&str, &str)]) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    let certificate = rcgen::generate_simple_self_signed(vec!["mx.example.org".to_owned()]).unwrap();
    std::fs::write(folder.path().join("mx.pem"), certificate.cert.pem()).unwrap();
    std::fs::write(folder.path().join("mx.key"), certificate.signing_key.serialize_pem()).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text.replace("FOLDER", &at)).unwrap();
    }
    let mut draft = read(folder.path()).unwrap();
    let text = draft.text("/etc/postfix");
    Config::parse(&text, "test").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let notes = draft.json()["not_translated"].as_array().unwrap().clone();
    (text.replace(&at, "FOLDER"), notes)
}

/// Whether there is a note on a setting, with this in its reason.
fn is_noted(notes: &[Value], setting: &str, why: &str) -> bool {
    let is = |note: &Value, key: &str, text: &str| note[key].as_str().is_some_and(|found| found.contains(text));
    notes.iter().any(|note| is(note, "setting", setting) && is(note, "why", why))
}

fn has(text: &str, all: &[&str]) {
    for wanted in all {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
}

#[test]
fn a_distributions_defaults_lose_nothing() {
    let relays = "smtpd_relay_restrictions = permit_mynetworks permit_sasl_authenticated defer_unauth_destination\n\
                  mynetworks = 127.0.0.0/8 [::ffff:127.0.0.0]/104 [::1]/128\n";
    for (kind, lines, wanted) in [
        ("internet site", "myhostname = mx.example.org\nrelayhost =\ninet_interfaces = all\n", "relay = \"mx\""),
        (
            "satellite",
            "myhostname = a.example.org\nrelayhost = [smtp.example.org]\ninet_interfaces = loopback-only\n",
            "relay = \"smtp://smtp.example.org:25\"",
        ),
        (
            "local only",
            "myhostname = a.example.org\nrelayhost =\ninet_interfaces = loopback-only\ndefault_transport = smtp\n",
            "\"127.0.0.1:25\"",
        ),
    ] {
        let main = format!(
            "{COMMON}{relays}{lines}mydestination = $myhostname, example.org, localhost\nalias_maps = inline:{{root=ann}}\n"
        );
        let (text, notes) = migrated(&[("main.cf", &main), ("master.cf", MASTER)]);
        has(&text, &[wanted, "forward = \"store:\"", "--alias root@"]);
        let is_of_users = |note: &Value| note["setting"].as_str().is_some_and(|text| text.starts_with("mydestination"));
        assert!(notes.len() == 1 && is_of_users(&notes[0]), "{kind}: {notes:?}");
    }
}

#[test]
fn a_provider_keeps_its_domains_lists_and_ways() {
    let main = "myhostname = mx.example.org\nmydestination = localhost\ninet_protocols = ipv4\n\
        mynetworks = 127.0.0.0/8, 192.0.2.0/24\n\
        virtual_mailbox_domains = example.org, example.net\nvirtual_mailbox_maps = hash:FOLDER/mailboxes\n\
        virtual_alias_maps = hash:FOLDER/virtual\n\
        smtpd_tls_cert_file = FOLDER/mx.pem\nsmtpd_tls_key_file = FOLDER/mx.key\nsmtpd_tls_security_level = may\n\
        smtpd_tls_protocols = >=TLSv1.2\n\
        relayhost = [smarthost.example.com]:587\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_password_maps = hash:FOLDER/sasl\n\
        transport_maps = texthash:FOLDER/transport\n\
        smtpd_milters = inet:127.0.0.1:8891\nheader_checks = regexp:FOLDER/header_checks\n\
        smtpd_recipient_restrictions = permit_mynetworks,\n  permit_sasl_authenticated\n  reject_unauth_destination,\n\
        # lists\n  reject_rbl_client zen.example.com,\n  reject_rbl_client bl.example.com=127.0.0.[2..4]\n\
        \x20 check_client_access cidr:FOLDER/clients, check_policy_service inet:127.0.0.1:10023,\n  permit\n\
        message_size_limit = 52428800\nmaximal_queue_lifetime = 3d\ndelay_warning_time = 4h\n\
        minimal_backoff_time = 300s\nmaximal_backoff_time = 1h\nno_such_thing = 1\n";
    let master = format!(
        "{MASTER}submission inet n - y - - smtpd\n  -o syslog_name=postfix/submission\n  -o smtpd_tls_security_level=encrypt\n\
         \x20 -o smtpd_sasl_auth_enable=yes\n  -o milter_macro_daemon_name=ORIGINATING\n\
         smtps inet n - y - - smtpd\n  -o smtpd_tls_wrappermode=yes\n  -o smtpd_sasl_auth_enable=yes\n\
         127.0.0.1:10025 inet n - y - - smtpd\n  -o content_filter=\n\
         spam unix - n n - - pipe\n  flags=R user=spam argv=/usr/bin/filter\n"
    );
    let (text, notes) = migrated(&[
        ("main.cf", main),
        ("master.cf", &master),
        ("mailboxes", "tim@example.org example.org/tim/\nann@example.net example.net/ann/\n"),
        (
            "virtual",
            "example.net anything\ninfo@example.org tim@example.org, ann@example.net\nout@example.org x@elsewhere.test\nlist@example.org :include:/etc/list\n",
        ),
        (
            "transport",
            "partner.example smtp:[mx.partner.example]:2525\n.partner.example relay:[192.0.2.7]\ngone.example error:no mail\n",
        ),
        ("clients", "192.0.2.66/32 REJECT\n198.51.100.7 PREPEND X: y\n198.51.100.0/24 OK\n"),
        ("header_checks", "/^Subject: x/ REJECT\n"),
        ("sasl", "[smarthost.example.com]:587 user:secret\nann@example.org other:secret\n[x]:25 secret\n"),
    ]);
    has(
        &text,
        &[
            "hostname = \"mx.example.org\"  # FOLDER/main.cf:1",
            "minimum = \"1.2\"",
            "chain = \"FOLDER/mx.pem\"",
            "relay = \"smtp://smarthost.example.com:587\"",
            "logins = \"FOLDER/sasl\"",
            "\"partner.example\" = \"smtp://mx.partner.example:2525\"  # FOLDER/transport:1",
            "\".partner.example\" = \"smtp://192.0.2.7:25\"",
            "lifetime_seconds = 259200",
            "retry_first_seconds = 300",
            "message_bytes_max = 52428800",
            "dnsbl.lists = [\"zen.example.com*12\", \"bl.example.com=127.0.0.[2..4]*12\"]",
            "relay_clients = [\"127.0.0.0/8\", \"192.0.2.0/24\"]",
            "permit = [\"192.0.2.0/24\", \"198.51.100.0/24\"]",
            "reject = [\"192.0.2.66/32\"]",
            "address = \"0.0.0.0:25\"",
            "address = \"0.0.0.0:587\"",
            "tls = \"require\"\nauth = \"tls\"",
            "tls = \"implicit\"\nauth = \"tls\"",
            "sluice account add --alias info@example.org tim@example.org",
            "sluice account add --alias info@example.org ann@example.net",
        ],
    );
    assert!(!text.contains("10025\"") && !text.contains("secret"), "{text}");
    for (setting, why) in [
        ("smtp_sasl_password_maps", "chmod 640"),
        ("ann@example.org", "here its sender logs in"),
        ("[x]:25", "NAME:PASSWORD"),
        ("smtpd_milters", "inspected here"),
        ("header_checks", "SpamAssassin"),
        ("check_policy_service inet:127.0.0.1:10023", "greylist"),
        ("out@example.org", "redirect"),
        ("list@example.org", "programs, files and lists"),
        ("gone.example error", "refused"),
        ("198.51.100.7 PREPEND", "pass or are refused"),
        ("127.0.0.1:10025", "way back"),
        ("spam unix pipe", "programs"),
        ("no_such_thing", "no such setting"),
    ] {
        assert!(is_noted(&notes, setting, why), "{setting}: {notes:#?}");
    }
    let noted =
        notes.iter().find(|note| note["setting"].as_str().is_some_and(|text| text.starts_with("no_such"))).unwrap();
    assert!(noted["file"].as_str().unwrap().ends_with("main.cf") && noted["line"].as_u64() > Some(20), "{noted}");
}

#[test]
fn tables_in_databases_and_directories_become_lookups() {
    // A groupware in containers: everything in MySQL, mailboxes of Dovecot, filters by milter.
    let main = "myhostname = mail.example.org\nmydestination = localhost.localdomain, localhost\nmynetworks = 127.0.0.0/8 172.22.1.0/24\n\
        smtpd_tls_cert_file = FOLDER/mx.pem\nsmtpd_tls_key_file = FOLDER/mx.key\nsmtpd_use_tls = yes\n\
        virtual_alias_maps = proxy:mysql:FOLDER/sql/alias.cf\nvirtual_mailbox_domains = proxy:mysql:FOLDER/sql/domains.cf\n\
        virtual_mailbox_maps = proxy:mysql:FOLDER/sql/mailboxes.cf, proxy:ldap:FOLDER/sql/people.cf\n\
        virtual_transport = lmtp:inet:dovecot:24\nrecipient_delimiter = +\nrelayhost =\nrelay_domains = $virtual_mailbox_domains\n\
        smtpd_milters = inet:rspamd:9900\nnon_smtpd_milters = $smtpd_milters\nmilter_default_action = tempfail\n\
        postscreen_dnsbl_sites = wl.example.com=127.0.[0..255].0*-4\n  zen.example.com=127.0.0.[10;11]*8\n\
        postscreen_dnsbl_threshold = 6\npostscreen_dnsbl_action = enforce\n\
        postscreen_greet_wait = ${stress?{2}:{6}}s\npostscreen_access_list = permit_mynetworks, cidr:FOLDER/access.cidr\n\
        smtpd_sender_login_maps = proxy:mysql:FOLDER/sql/logins.cf\nsmtp_dns_support_level = dnssec\n\
        smtp_tls_security_level = dane\nsmtpd_relay_restrictions = permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination\n";
    let master = "smtp inet n - n - 1 postscreen\nsmtpd pass - - n - - smtpd\n  -o smtpd_sasl_auth_enable=no\n\
        submission inet n - n - - smtpd\n  -o smtpd_sasl_auth_enable=yes\n  -o smtpd_tls_security_level=encrypt\n\
        590 inet n - n - - smtpd\n  -o smtpd_client_restrictions=permit_mynetworks,reject\n";
    let folder = tempfile::tempdir().unwrap();
    let sql = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let login = "user = mail\npassword = secret\nhosts = unix:/run/mysqld/mysqld.sock\ndbname = mail\n";
    sql("alias.cf", &format!("{login}query = SELECT goto FROM alias\n  WHERE address='%s' AND active='1'\n"));
    sql("domains.cf", &format!("{login}query = SELECT domain FROM domain WHERE domain='%s'\n"));
    sql("mailboxes.cf", &format!("{login}query = SELECT maildir FROM mailbox WHERE username='%s'\n"));
    sql(
        "people.cf",
        "server_host = ldap.example.org\nsearch_base = ou=people,dc=example\nquery_filter = (mail=%s)\nbind_dn = cn=x\nbind_pw = y\nresult_attribute = mail\n",
    );
    let main = main.replace("FOLDER/sql", &folder.path().display().to_string());
    let (text, notes) =
        migrated(&[("main.cf", &main), ("master.cf", master), ("access.cidr", "192.0.2.1 permit\n192.0.2.2 reject\n")]);
    has(
        &text,
        &[
            "name = \"mailboxes\"\nservers = [\"mysql://mail@localhost/mail?socket=/run/mysqld/mysqld.sock\"]\npassword = \"secret\"",
            "query = \"SELECT goto AS user FROM alias WHERE address='%s' AND active='1'\"",
            "servers = [\"ldap://ldap.example.org\"]\nbase = \"ou=people,dc=example\"\nfilter = \"(mail=%s)\"",
            "lookups = [\"mailboxes\", \"people\", \"alias\"]",
            "zen.example.com=127.0.0.[10;11]*8",
            "scores.reject = 6",
            "greet_wait_ms = 6000",
            "permit = [\"172.22.1.0/24\", \"192.0.2.1\"]",
            "address = \"[::]:587\"",
        ],
    );
    for (setting, why) in [
        ("virtual_transport", "sluice store import"),
        ("smtpd_milters", "inspected here"),
        ("smtp_dns_support_level", "dane"),
        ("virtual_alias_maps", "rows name accounts here"),
        ("virtual_mailbox_maps", "column password"),
    ] {
        assert!(is_noted(&notes, setting, why), "{setting}: {notes:#?}");
    }
}

#[test]
fn odd_values_are_noted_and_values_stay_whole() {
    let many: Vec<String> = (0..60).map(|at| format!("domain-{at}.example.org")).collect();
    let long = "x".repeat(400);
    let main = format!(
        "myhostname = mx.example.org\nmydestination = localhost\nvirtual_mailbox_domains = {}\n\
         virtual_mailbox_maps = mysql:FOLDER/box.cf, mysql:FOLDER/box.cf\nvirtual_alias_maps = mysql:FOLDER/box.cf\n\
         transport_maps = hash:FOLDER/transport\nsmtpd_recipient_restrictions = reject_rbl_client bl.example.com=127.0.0.[9..2]\n\
         \x20 reject_rbl_client zen.example.com\n",
        many.join(" ")
    );
    let query = format!("SELECT a FROM box WHERE name = '%s' AND note = '{long}'");
    let table = format!("user = mail\npassword = pa$myhostname$$x\nhosts = db\ndbname = mail\nquery = {query}\n");
    let (text, notes) = migrated(&[
        ("main.cf", &main),
        ("master.cf", MASTER),
        ("box.cf", &table),
        ("transport", "zero.example smtp:host:0\n"),
    ]);
    has(
        &text,
        &[
            "name = \"box\"",
            "name = \"box-2\"",
            "password = \"pa$myhostname$$x\"",
            &query,
            "lookups = [\"box\", \"box-2\"]",
            "dnsbl.lists = [\"zen.example.com*12\"]",
        ],
    );
    for (setting, why) in [
        ("virtual_mailbox_maps: mysql:FOLDER/box.cf", "named twice"),
        ("bl.example.com=127.0.0.[9..2]", "no block list"),
        ("zero.example smtp:host:0", "port from 1"),
    ] {
        let setting = setting.split("FOLDER").next().unwrap();
        assert!(is_noted(&notes, setting, why), "{setting}: {notes:#?}");
    }
}

#[test]
fn nothing_goes_without_a_note() {
    let main = "myhostname = mx.example.org\nmydestination = example.org\nrelayhost = [smtp.example.com]:2465\n\
        smtp_tls_wrappermode = yes\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_password_maps = mysql:FOLDER/x.cf\n\
        smtp_sasl_mechanism_filter = plain\nsmtp_sender_dependent_authentication = yes\n\
        mynetworks = 127.0.0.0/8, 300.1.2.3, office.example.org\nmynetworks_style = subnet\n\
        smtpd_banner = $smtpd_banner ESMTP\nsmtp_helo_name = mail.example.org\nown = $smtp_helo_name\n\
        postscreen_greet_action = drop\n";
    let master = format!(
        "{MASTER}relay unix - - y - - smtp\n  -o syslog_name=postfix/relay\n  -o smtp_fallback_relay=x\n\
         smtps unix - - y - - smtp\n  -o smtp_tls_wrappermode=yes\n  -o smtp_bind_address=192.0.2.1\n"
    );
    let (text, notes) = migrated(&[("main.cf", main), ("master.cf", &master)]);
    has(&text, &["relay = \"smtps://smtp.example.com:2465\""]);
    assert!(!text.contains("logins ="), "{text}");
    for (setting, why) in [
        ("smtp_sasl_password_maps", "one file of text"),
        ("smtp_sasl_mechanism_filter", "SCRAM"),
        ("smtp_sender_dependent_authentication", "logins of senders"),
        ("mynetworks: 300.1.2.3", "no address"),
        ("mynetworks: office.example.org", "no address"),
        ("mynetworks_style", "without a login"),
        ("smtpd_banner", "names itself"),
        ("smtp_helo_name", "hostname"),
        ("own", "no such setting"),
        ("postscreen_greet_action", "[trust]"),
        ("relay: -o smtp_fallback_relay=x", "one way"),
        ("smtps: -o smtp_bind_address", "source address"),
    ] {
        assert!(is_noted(&notes, setting, why), "{setting}: {notes:#?}");
    }
    assert!(!notes.iter().any(|note| note["setting"].as_str().is_some_and(|text| text.contains("wrappermode"))));
    let off = "myhostname = mx.example.org\nsmtp_sasl_password_maps = hash:FOLDER/sasl\n";
    let (text, notes) = migrated(&[("main.cf", off), ("master.cf", MASTER)]);
    assert!(!text.contains("logins =") && is_noted(&notes, "smtp_sasl_password_maps", "not used"), "{notes:#?}");
}

#[test]
fn senders_have_next_hops_and_logins_of_their_own() {
    let main = "myhostname = mx.example.org\nmydestination = example.org\nrelayhost = [smtp.example.com]:587\n\
        sender_dependent_relayhost_maps = hash:FOLDER/senders\nsmtp_sender_dependent_authentication = yes\n\
        smtp_sasl_auth_enable = yes\nsmtp_sasl_password_maps = hash:FOLDER/sasl\n";
    let (text, notes) = migrated(&[
        ("main.cf", main),
        ("master.cf", MASTER),
        (
            "senders",
            "Ann@example.org [mail.provider.test]:587\n@example.net smtp.other.test\nbob@example.org DUNNO\nodd [x]\n",
        ),
        ("sasl", "ann@example.org ann:secret\n[smtp.example.com]:587 all:secret\n"),
    ]);
    has(
        &text,
        &[
            "[store.queue.sender_routes]\n\"ann@example.org\" = \"smtp://mail.provider.test:587\"  # FOLDER/senders:1\n\
             \"example.net\" = \"smtp://smtp.other.test:25\"",
            "logins = \"FOLDER/sasl\"",
        ],
    );
    assert!(is_noted(&notes, "odd [x]", "@DOMAIN"), "{notes:#?}");
    for name in ["sender_dependent", "ann@example.org", "bob@example.org"] {
        let is_there = |note: &serde_json::Value| note["setting"].as_str().is_some_and(|text| text.contains(name));
        assert!(!notes.iter().any(is_there), "{name}: {notes:#?}");
    }
}

#[test]
fn what_is_written_loads_where_the_way_out_is_none() {
    let main = "myhostname = mx.example.org\nmydestination = example.org\nrelayhost = [::1]:99999\n";
    let (text, notes) = migrated(&[("main.cf", main), ("master.cf", MASTER)]);
    assert!(is_noted(&notes, "relayhost", "port from 1"), "{notes:#?}");
    assert!(!text.contains("maildrop ="), "{text}");
}

#[test]
fn a_gateway_relays_to_one_next_hop_and_knows_its_recipients() {
    let main = "myhostname = gw.example.org\nmydestination = $myhostname, localhost\nrelay_domains = example.org hash:FOLDER/domains\n\
        relay_recipient_maps = hash:FOLDER/recipients\ntransport_maps = hash:FOLDER/transport\nmaximal_queue_lifetime = 5d\n\
        smtpd_recipient_restrictions = reject_unauth_destination, reject_unverified_recipient\n";
    let (text, notes) = migrated(&[
        ("main.cf", main),
        ("domains", "example.net OK\n"),
        ("recipients", "tim@example.org x\n"),
        ("transport", "example.org smtp:[10.0.0.5]\nexample.net smtp:[10.0.0.5]\n"),
    ]);
    has(
        &text,
        &[
            "domains = [\"example.org\", \"*.example.org\", \"example.net\", \"*.example.net\"]",
            "files = [\"FOLDER/recipients\"]",
            "forward = \"smtp://10.0.0.5:25\"",
            "recipients = [\"relayed\"]",
        ],
    );
    assert!(!text.contains("[store]"), "{text}");
    assert!(is_noted(&notes, "reject_unverified_recipient", "call_ahead"), "{notes:#?}");
    assert!(is_noted(&notes, "maximal_queue_lifetime", "no queue"), "{notes:#?}");
}

#[test]
fn a_mail_server_relays_by_its_queue() {
    let main = "myhostname = mx.example.org\nmydestination = example.org\nmynetworks = 127.0.0.0/8, 10.0.0.0/8, 0.0.0.0/0\n\
        relay_domains = example.org, inside.example, backup.example\nrelay_recipient_maps = hash:FOLDER/recipients\n\
        transport_maps = hash:FOLDER/transport\nsmtpd_tls_cert_file = FOLDER/mx.pem\nsmtpd_tls_key_file = FOLDER/mx.key\n";
    let master = format!("{MASTER}submission inet n - y - - smtpd\n  -o smtpd_sasl_auth_enable=yes\n");
    let files = |main| {
        [
            ("main.cf", main),
            ("master.cf", &*master),
            ("recipients", "tim@inside.example x\n"),
            ("transport", "inside.example smtp:[10.0.0.5]\n"),
        ]
    };
    let (text, notes) = migrated(&files(main));
    has(
        &text,
        &[
            "relay = \"mx\"",
            "relay_domains = [\"inside.example\", \".inside.example\", \"backup.example\", \".backup.example\"]",
            "\"inside.example\" = \"smtp://10.0.0.5:25\"",
            "domains = [\"inside.example\", \"*.inside.example\", \"backup.example\", \"*.backup.example\"]",
            "recipients = [\"relayed\"]\nrelay_clients = [\"127.0.0.0/8\", \"10.0.0.0/8\"]",
        ],
    );
    assert_eq!(text.matches("relay_clients").count(), 1, "the listener of port 25: {text}");
    assert!(is_noted(&notes, "mynetworks", "open relay"), "{notes:#?}");
    let proxied = format!("{main}postscreen_upstream_proxy_protocol = haproxy\n");
    let (text, _) = migrated(&files(&proxied));
    assert!(!text.contains("relay_clients"), "all clients seem to be the proxy: {text}");
    // Backup MX of one domain, with no way of its own; and clients inside that may not relay.
    let main = "myhostname = mx.example.org\nmydestination =\nrelay_domains = backup.example\nmynetworks = 10.0.0.0/8\n\
        smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination\n";
    let (text, notes) = migrated(&files(main));
    has(
        &text,
        &["relay = \"mx\"", "relay_domains = [\"backup.example\", \".backup.example\"]", "forward = \"store:\""],
    );
    for absent in ["relay_clients", "name = \"relayed\"", "[store.queue.routes]"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(is_noted(&notes, "relay_domains", "call_ahead"), "{notes:#?}");
}

#[test]
fn whatever_a_folder_holds_ends_in_a_configuration_or_an_error() {
    assert!(read(Path::new("/no/such/folder")).is_err());
    for main in [
        "",
        "\0\n= x\n",
        "myhostname = a\"b\\\n",
        "relayhost = [\ntransport_maps = hash:/dev/zero\n",
        "a = ${a?{$a}}\nmynetworks = $a ${\n",
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("main.cf"), main).unwrap();
        std::fs::write(folder.path().join("master.cf"), "smtp inet n\n{\nx inet n - y - - smtpd -o {\n").unwrap();
        let text = read(folder.path()).unwrap().text("x");
        assert!(text.parse::<toml::Table>().is_ok(), "{text}");
    }
}

/// Each as Postfix 3.7 does it with the same files.
#[test]
fn ways_of_others_domains_below_and_orders_of_restrictions_are_kept() {
    let common = "myhostname = mx.example.org\nmydestination = example.org\nlocal_recipient_maps =\nalias_maps =\n\
        mynetworks = 127.0.0.0/8 192.0.2.0/24\nrelay_domains = relay.example .void.example\nmaximal_queue_lifetime = 0\n\
        transport_maps = texthash:FOLDER/transport\n";
    let transport = "example.org smtp:[10.0.0.7]\n* smtp:[smart.example]:587\n";
    let with = |lines: &str| {
        migrated(&[("main.cf", &format!("{common}{lines}")), ("master.cf", MASTER), ("transport", transport)])
    };
    let (text, notes) = with("relayhost = [other.example]\n");
    has(
        &text,
        &[
            "relay = \"smtp://smart.example:587\"",
            "relay_domains = [\"relay.example\", \".relay.example\", \"example.org\"]",
            "\"example.org\" = \"smtp://10.0.0.7:25\"",
            "lifetime_seconds = 1",
            "relay_clients = [\"127.0.0.0/8\", \"192.0.2.0/24\"]",
        ],
    );
    assert!(is_noted(&notes, "relayhost", "comes before it") && is_noted(&notes, ".void.example", "is none there"));
    let (text, _) = with("parent_domain_matches_subdomains =\n");
    has(&text, &["relay_domains = [\"relay.example\", \".void.example\", \"example.org\"]"]);
    for lists in [
        "smtpd_relay_restrictions = reject_unauth_destination, permit_mynetworks\n",
        "smtpd_relay_restrictions = permit_mynetworks, reject\nsmtpd_recipient_restrictions = reject_unauth_destination, permit_mynetworks\n",
        "smtpd_relay_restrictions = permit_sasl_authenticated, defer_unauth_destination\n",
    ] {
        assert!(!with(lists).0.contains("relay_clients"), "{lists}");
    }
    let both = "smtpd_relay_restrictions = permit_mynetworks, reject\nsmtpd_recipient_restrictions = reject_rbl_client x.example\n";
    assert!(with(both).0.contains("relay_clients"));
}

#[test]
fn each_address_that_postfix_takes_has_an_account() {
    let main = "myhostname = mail.example.org\nmydestination = $myhostname, example.org, example.com\nrecipient_delimiter = +\n\
        alias_maps = texthash:FOLDER/locals\nlocal_recipient_maps = $alias_maps\n\
        virtual_mailbox_domains = box.example\nvirtual_mailbox_maps = texthash:FOLDER/boxes\nvirtual_alias_maps = texthash:FOLDER/virtual\n\
        smtpd_client_restrictions = check_client_access cidr:FOLDER/clients\n";
    let (text, notes) = migrated(&[
        ("main.cf", main),
        ("master.cf", MASTER),
        ("locals", "joe joe@example.com\nplus joe+folder\n"),
        ("boxes", "jim@box.example x\nboth@box.example x\n"),
        ("virtual", "both@box.example both@box.example, jim@box.example\nj+x@box.example jim+in@box.example\n"),
        ("clients", "198.51.100.0/24 REJECT\n198.51.100.7 OK\n203.0.113.9 450 later\n"),
    ]);
    has(
        &text,
        &[
            "sluice account add both@box.example",
            "sluice account add --alias j+x@box.example jim@box.example",
            "--alias joe@example.com --alias joe@example.org --alias plus@example.com",
            "reject = [\"198.51.100.0/24\"]",
        ],
    );
    assert!(
        !text.contains("--alias both@box.example") && !text.contains("permit = ") && !text.contains("+folder"),
        "{text}"
    );
    assert!(is_noted(&notes, "both@box.example jim@box.example", "redirect :copy"), "{notes:#?}");
    assert!(is_noted(&notes, "203.0.113.9 450", "for good") && !is_noted(&notes, "joe ", "elsewhere"), "{notes:#?}");
}

#[test]
fn clients_of_a_door_are_those_that_restrictions_let_in() {
    let main = "myhostname = mx.example.org\nmydestination = example.org\nmynetworks = 127.0.0.0/8, !10.22.0.3, 10.22.0.0/30\n\
        relay_domains = relay.example\nrelay_transport = smtp:[10.0.0.8]\ntransport_maps = inline:{{relay.example=:} {*=smtp:[10.0.0.7]}}\n\
        smtpd_client_restrictions = permit_mynetworks, check_client_access cidr:FOLDER/clients, reject\n";
    let master = format!(
        "{MASTER}10.0.0.1:2525 inet n - - - - smtpd\n  -o mynetworks=10.0.0.0/24\n\
         \u{20} -o smtpd_client_restrictions=permit_mynetworks,reject\n  -o smtpd_relay_restrictions=permit_mynetworks,reject\n"
    );
    let clients = "203.0.113.1 OK\n203.0.113.2 DUNNO\n203.0.113.3 REJECT\n";
    let (text, notes) = migrated(&[("main.cf", main), ("master.cf", &master), ("clients", clients)]);
    let parts = "\"127.0.0.0/8\", \"10.22.0.0/31\", \"10.22.0.2/32\"";
    has(
        &text,
        &[
            &format!("clients = [{parts}, \"203.0.113.1\"]"),
            &format!("relay_clients = [{parts}]"),
            "clients = [\"10.0.0.0/24\"]",
            "relay_clients = [\"10.0.0.0/24\"]",
            "relay = \"smtp://10.0.0.7:25\"",
            "\"relay.example\" = \"smtp://10.0.0.8:25\"",
        ],
    );
    assert!(!text.contains("\".relay.example\" ="), "the line * comes before relay_transport: {text}");
    assert!(is_noted(&notes, "* smtp:[10.0.0.7]", "accounts of this host"), "{notes:#?}");
}
