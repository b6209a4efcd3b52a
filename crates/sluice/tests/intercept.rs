//! Connections that were meant for servers, taken on their way: three machines in network namespaces.

use std::net::SocketAddr;
use std::process::Command;

use crate::harness::imap::{Imap, ask};
use crate::harness::mailbox::Pop3;
use crate::harness::namespaces::Machines;
use crate::harness::tls::Certificate;
use crate::harness::web::{Origin, response};
use crate::harness::{Behaviour, Gateway, Sink, SinkTls, Wire, base64, eicar, mail_with};

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

/// Listeners that are all transparent, at any address of both versions of IP.
fn listeners(how: &str, more: &str) -> String {
    ["smtp 2525", "pop3 1100", "imap 1430"].map(|listener| self::listener(listener, how, more)).concat()
}

fn listener(what: &str, how: &str, more: &str) -> String {
    let (protocol, port) = what.split_once(' ').unwrap();
    format!("[[listener]]\nprotocol = \"{protocol}\"\naddress = \"[::]:{port}\"\ntransparent = \"{how}\"\n{more}\n")
}

/// A gateway in the middle, its rules in force.
fn gateway(machines: &Machines, text: &str) -> Gateway {
    let text = format!("hostname = \"mx.test\"\nthreads = 1\n{text}");
    machines.on("gateway", || {
        let gateway = Gateway::with(&text);
        assert_eq!(intercept(&gateway, "install"), (true, String::new()));
        gateway
    })
}

fn intercept(gateway: &Gateway, command: &str) -> (bool, String) {
    let config = gateway.folder.path().join("sluice.toml");
    run(Command::new(env!("CARGO_BIN_EXE_sluice")).args(["intercept", "--config"]).arg(config).arg(command))
}

fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn connect(machines: &Machines, address: &str) -> Wire {
    let address: SocketAddr = address.parse().unwrap();
    machines.on("client", || Wire::connect(address))
}

/// A clean mail arrives, the virus is refused, and what comes by POP3 is inspected, by both versions of IP.
fn mail_is_inspected_on_its_way(how: &str, more: &str, seen_by_server: [&str; 2]) {
    let Some(machines) = Machines::start() else { return };
    let imap = Imap::with(&[b"Subject: clean\r\n\r\nHello\r\n", &infected()]);
    let (sink, boxes) = machines.on("server", || {
        imap.start_at("[::]:143");
        let boxes = Pop3::with(&[b"Subject: clean\r\n\r\nHello\r\n", &infected()]);
        boxes.start_at("[::]:110");
        (Sink::at("[::]:25", Behaviour::default()), boxes)
    });
    let gateway = gateway(&machines, &listeners(how, more));
    for (server, seen) in ["198.51.100.2", "[2001:db8:2::2]"].into_iter().zip(seen_by_server) {
        let mut wire = connect(&machines, &format!("{server}:25"));
        assert_eq!(wire.deliver(&mail_with("7bit", "a.txt", "Hello")), "250 2.0.0 Taken");
        assert!(wire.transaction(&infected()).starts_with("554 5.7.1 Message refused: Eicar-Test-Signature"));
        assert_eq!(sink.clients().last().unwrap().ip().to_canonical().to_string(), seen);
        let mut wire = connect(&machines, &format!("{server}:110"));
        wire.talk("S: +OK Ready *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK\nC: RETR 1\nS: +OK *");
        assert_eq!(wire.lines_to_dot(), b"Subject: clean\r\n\r\nHello\r\n");
        wire.talk("C: RETR 2\nS: +OK *");
        let received = String::from_utf8(wire.lines_to_dot()).unwrap();
        assert!(received.contains("AAAAAAAA") && received.len() == infected().len(), "{received}");
        wire.talk("C: QUIT\nS: +OK");
        messages_are_inspected_by_imap(connect(&machines, &format!("{server}:143")));
    }
    assert_eq!(imap.commands().iter().filter(|command| command.starts_with("LOGIN")).count(), 2);
    assert_eq!(sink.mails().len(), 2);
    assert!(sink.unfinished().is_empty());
    assert_eq!(boxes.commands().iter().filter(|command| command.starts_with("PASS")).count(), 2);
    // Whom the mail came from is known all the same.
    assert!(sink.mails()[0].text().contains("([192.0.2.2])"), "{}", sink.mails()[0].text());
    assert!(sink.mails()[1].text().contains("([IPv6:2001:db8:1::2])"), "{}", sink.mails()[1].text());
    assert!(gateway.log().contains("client=192.0.2.2"), "{}", gateway.log());
}

fn messages_are_inspected_by_imap(mut wire: Wire) {
    wire.talk("S: * OK *");
    for command in ["LOGIN tim secret", "SELECT INBOX"] {
        assert!(ask(&mut wire, command).status.starts_with("OK"), "{command}");
    }
    assert_eq!(ask(&mut wire, "FETCH 1 BODY[]").literals, [b"Subject: clean\r\n\r\nHello\r\n"]);
    let received = ask(&mut wire, "FETCH 2 BODY[]").literals.remove(0);
    let text = String::from_utf8_lossy(&received);
    assert!(text.contains("AAAAAAAA") && received.len() == infected().len(), "{text}");
    assert!(ask(&mut wire, "LOGOUT").status.starts_with("OK"));
}

#[test]
fn redirected_mail_is_inspected_on_its_way() {
    mail_is_inspected_on_its_way("redirect", "", ["198.51.100.1", "2001:db8:2::1"]);
}

#[test]
fn mail_by_tproxy_is_inspected_on_its_way() {
    mail_is_inspected_on_its_way("tproxy", "", ["198.51.100.1", "2001:db8:2::1"]);
}

#[test]
fn servers_see_the_client_where_its_address_is_kept() {
    mail_is_inspected_on_its_way("tproxy", "keep_source = true", ["192.0.2.2", "2001:db8:1::2"]);
}

#[test]
fn rules_are_installed_once_and_removed_wholly() {
    let Some(machines) = Machines::start() else { return };
    machines.on("server", || Sink::at("[::]:25", Behaviour::default()));
    let text = listeners("tproxy", "") + "[intercept]\ninterfaces = [\"clients\"]\nservers = [\"198.51.100.0/24\"]\n";
    let gateway = gateway(&machines, &text);
    let state = || {
        let commands =
            ["nft list ruleset", "ip rule", "ip -6 rule", "ip route show table 29548", "ip -6 route show table 29548"];
        machines.on("gateway", || {
            let shown = |command: &str| run(Command::new("sh").args(["-c", command])).1;
            commands.map(shown).concat()
        })
    };
    let once = state();
    assert!(once.contains("fwmark 0x736c lookup 29548") && once.contains("local default dev lo"), "{once}");
    assert_eq!(machines.on("gateway", || intercept(&gateway, "install")), (true, String::new()));
    assert_eq!(state(), once);
    // What is printed is what is in force.
    let printed = intercept(&gateway, "print").1;
    let again = machines.on("gateway", || {
        std::fs::write(gateway.folder.path().join("rules"), &printed).unwrap();
        run(Command::new("nft").arg("-f").arg(gateway.folder.path().join("rules")))
    });
    assert_eq!(again, (true, String::new()));
    assert_eq!(state(), once);
    connect(&machines, "198.51.100.2:25").talk("S: 220 mx.test *");
    // Other networks are none of ours.
    connect(&machines, "[2001:db8:2::2]:25").talk("S: 220 sink.test *");
    assert_eq!(machines.on("gateway", || intercept(&gateway, "remove")), (true, String::new()));
    assert_eq!(machines.on("gateway", || intercept(&gateway, "remove")), (true, String::new()));
    let after = state();
    assert!(!after.contains("sluice") && !after.contains("29548\n") && !after.contains("0x736c"), "{after}");
    connect(&machines, "198.51.100.2:25").talk("S: 220 sink.test *");
}

#[test]
fn without_privileges_nothing_is_tried() {
    let Some(machines) = Machines::start() else { return };
    let gateway = gateway(&machines, &listeners("redirect", ""));
    let config = gateway.folder.path().join("sluice.toml");
    let refused = |command: &[&str]| {
        let mut powerless = Command::new("setpriv");
        powerless.args(["--bounding-set=-net_admin,-net_raw", env!("CARGO_BIN_EXE_sluice")]).args(command);
        machines.on("gateway", || run(powerless.arg("--config").arg(&config)))
    };
    let (done, text) = refused(&["intercept", "install"]);
    assert!(!done && text == "sluice: changing the packet filter needs root (CAP_NET_ADMIN)\n", "{text}");
    let tproxy = std::fs::read_to_string(&config).unwrap().replace("redirect", "tproxy").replace(":2525", ":2526");
    std::fs::write(&config, tproxy).unwrap();
    let (served, text) = refused(&["serve"]);
    assert!(!served && text.contains("cannot listen on [::]:2526: not without CAP_NET_ADMIN"), "{text}");
}

#[test]
fn what_was_meant_for_the_gateway_is_refused() {
    for how in ["redirect", "tproxy"] {
        let Some(machines) = Machines::start() else { return };
        let gateway = gateway(&machines, &listeners(how, ""));
        for address in ["192.0.2.1:2525", "198.51.100.1:1100", "[2001:db8:1::1]:2525"] {
            assert_eq!(connect(&machines, address).rest(), b"", "{how} {address}");
        }
        let log = gateway.wait_for_log("[2001:db8:1::1]:2525");
        assert_eq!(log.matches("a redirected connection was refused").count(), 3, "{log}");
        // And what was meant for nobody is answered as if nobody was there.
        let mut wire = connect(&machines, "198.51.100.2:25");
        assert_eq!(wire.reply(), "421 4.4.1 The next hop cannot be reached now");
    }
}

#[test]
fn servers_in_tls_are_asked_for_by_the_name_that_the_client_asked_for() {
    let Some(machines) = Machines::start() else { return };
    let certificate = std::sync::Arc::new(Certificate::of("mail.test"));
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mail");
    let at = folder.path().display();
    let tls = SinkTls { certificate: certificate.clone(), implicit: true, injected: "" };
    let sink = machines.on("server", || Sink::at("[::]:465", Behaviour { tls: Some(tls), ..Behaviour::default() }));
    let head = format!(
        "[tls]\nauthorities = \"{at}/mail.crt\"\n[[tls.certificate]]\nchain = \"{at}/mail.crt\"\nkey = \"{at}/mail.key\"\n"
    );
    let _gateway = gateway(&machines, &(head + &listener("smtp 2525", "tproxy", "tls = \"implicit\"")));
    let mut wire = connect(&machines, "198.51.100.2:465").secure(certificate.client("mail.test"));
    assert_eq!(wire.deliver(&mail_with("7bit", "a.txt", "Hello")), "250 2.0.0 Taken");
    assert!(wire.transaction(&infected()).starts_with("554 5.7.1 "));
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn mailboxes_in_tls_are_inspected_by_redirect_and_by_tproxy() {
    for how in ["redirect", "tproxy"] {
        let Some(machines) = Machines::start() else { return };
        let certificate = std::sync::Arc::new(Certificate::of("mail.test"));
        let folder = tempfile::tempdir().unwrap();
        certificate.store(folder.path(), "mail");
        let at = folder.path().display();
        let tls = Some(SinkTls { certificate: certificate.clone(), implicit: true, injected: "" });
        let server = Imap { tls, ..Imap::with(&[b"Subject: clean\r\n\r\nHello\r\n", &infected()]) };
        machines.on("server", || server.start_at("[::]:993"));
        let head = format!(
            "[tls]\nauthorities = \"{at}/mail.crt\"\n[[tls.certificate]]\nchain = \"{at}/mail.crt\"\nkey = \"{at}/mail.key\"\n"
        );
        let _gateway = gateway(&machines, &(head + &listener("imap 1430", how, "tls = \"implicit\"")));
        for address in ["198.51.100.2:993", "[2001:db8:2::2]:993"] {
            let wire = connect(&machines, address).secure(certificate.client("mail.test"));
            messages_are_inspected_by_imap(wire);
        }
        // A server that cannot prove the name that was asked for is not spoken to.
        let mut stream = connect(&machines, "198.51.100.2:993").stream;
        let _ = certificate.handshake(&mut stream, "other.test", tokio_rustls::rustls::ALL_VERSIONS);
        assert_eq!(server.commands().iter().filter(|command| command.starts_with("LOGIN")).count(), 2, "{how}");
    }
}

#[test]
fn real_clients_do_not_notice() {
    let Some(machines) = Machines::start() else { return };
    let installed = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !installed("swaks") || !installed("curl") {
        eprintln!("skipped: swaks and curl are not installed");
        return;
    }
    let sink = machines.on("server", || {
        Pop3::with(&[b"Subject: clean\r\n\r\nHello\r\n"]).start_at("[::]:110");
        Sink::at("[::]:587", Behaviour::default())
    });
    let _gateway = gateway(&machines, &listeners("redirect", ""));
    let mut swaks = Command::new("swaks");
    swaks.args(["--server", "198.51.100.2:587", "--from", "a@x.test", "--to", "b@y.test"]);
    let (sent, text) = machines.on("client", || run(&mut swaks));
    assert!(sent, "{text}");
    let (sent, text) =
        machines.on("client", || run(swaks.arg("--attach-body").arg(String::from_utf8(eicar()).unwrap())));
    assert!(!sent && text.contains("554 5.7.1 Message refused"), "{text}");
    assert_eq!(sink.mails().len(), 1);
    let mut curl = Command::new("curl");
    let (got, text) = machines.on("client", || run(curl.args(["-sS", "pop3://tim:secret@198.51.100.2/1"])));
    assert!(got && text.contains("Hello"), "{text}");
}

#[test]
fn requests_of_http_go_where_their_connection_was_meant_to() {
    let Some(machines) = Machines::start() else { return };
    let origin = machines.on("server", || {
        Origin::at("[::]:80", |head, _| {
            Some(if head.starts_with("GET /eicar") { response("", &eicar()) } else { response("", b"hello") })
        })
    });
    for (names, other) in [("log", "200"), ("refuse", "421")] {
        let settings = format!("mode = \"transparent\"\nmismatched_names = \"{names}\"");
        let gateway = gateway(&machines, &listener("http 8000", "redirect", &settings));
        for server in ["198.51.100.2", "[2001:db8:2::2]"] {
            let mut wire = connect(&machines, &format!("{server}:80"));
            let mut get = |path: &str, host: &str| wire.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(get("/", server).text(), "hello");
            assert_eq!(get("/eicar", server).status(), "403");
            assert_eq!(get("/", "192.0.2.77").status(), other);
            // One without a name is for the server that the connection was meant for.
            assert_eq!(get("/", "").text(), "hello");
            let mut old = connect(&machines, &format!("{server}:80"));
            assert_eq!(old.ask("GET / HTTP/1.0\r\n\r\n").text(), "hello");
        }
        gateway.wait_for_log("request to a host with another address");
    }
    assert!(origin.said().concat().contains("Host: [2001:db8:2::2]\r\nVia: 1.1 mx.test\r\n"));
}

#[test]
fn tls_of_intercepted_clients_is_let_alone_or_opened() {
    let Some(machines) = Machines::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let servers = Certificate::issued(None, "Authority of servers", (-1, 9));
    servers.store(folder.path(), "servers");
    let certificate = Certificate::issued(Some(&servers), "198.51.100.2", (-1, 9));
    let origin = machines.on("server", || {
        Origin::in_tls("198.51.100.2:443", &certificate, |head, _| {
            Some(if head.starts_with("GET /eicar") { response("", &eicar()) } else { response("", b"hello") })
        })
    });
    let own = folder.path().join("own.pem");
    let made = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["web", "ca", "create"]).arg(&own).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let own = Certificate { chain: std::fs::read_to_string(own).unwrap(), key: String::new() };
    let at = folder.path().display();
    let tls = format!("[tls]\nauthorities = \"{at}/servers.crt\"\nsigning_authority = \"{at}/own.pem\"\n");
    for (https, trusted, status) in [("tunnel", &servers, "200"), ("inspect", &own, "403")] {
        let settings = format!("mode = \"transparent\"\nhttps = \"{https}\"");
        let gateway = gateway(&machines, &(tls.clone() + &listener("http 8000", "redirect", &settings)));
        let mut wire = connect(&machines, "198.51.100.2:443").secure(trusted.client("198.51.100.2"));
        let mut get = |path: &str| wire.ask(&format!("GET {path} HTTP/1.1\r\nHost: 198.51.100.2\r\n\r\n"));
        assert_eq!(get("/").text(), "hello", "{https}");
        assert_eq!(get("/eicar").status(), status, "{https}");
        drop(wire);
        gateway.wait_for_log(if https == "inspect" { "action=\"open\"" } else { "method=\"TLS\"" });
    }
    assert!(origin.said().concat().contains("GET /eicar"));
}

/// Lists that ban two hosts and exempt them.
fn lists_with_exceptions() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let group = format!(
        "sitelist = 'name=banned,messageno=500,path={path}/hosts'\nsitelist = 'name=exception,messageno=602,path={path}/hosts'\n"
    );
    for (name, text) in [
        ("e2guardian.conf", "filtergroups = 1\n"),
        ("e2guardianf1.conf", &*group),
        ("hosts", "198.51.100.2\n192.0.2.77\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn a_host_with_another_address_is_exempt_from_nothing() {
    let Some(machines) = Machines::start() else { return };
    machines.on("server", || Origin::at("[::]:80", |_, _| Some(response("", b"hello"))));
    let lists = lists_with_exceptions();
    let web = format!("[web]\nconfig = \"{}\"\n", lists.path().display());
    let gateway = gateway(&machines, &(web + &listener("http 8000", "redirect", "mode = \"transparent\"")));
    let mut wire = connect(&machines, "198.51.100.2:80");
    let mut get = |host: &str| wire.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(get("198.51.100.2").text(), "hello");
    assert_eq!(get("192.0.2.77").status(), "403", "only the client says that it is this host");
    assert_eq!(get("192.0.2.78").text(), "hello", "no list knows it");
    gateway.wait_for_log("request to a host with another address");
}

#[test]
fn tls_is_opened_if_only_the_client_names_an_exempt_host() {
    let Some(machines) = Machines::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let servers = Certificate::issued(None, "Authority of servers", (-1, 9));
    servers.store(folder.path(), "servers");
    let certificate = Certificate::issued(Some(&servers), "web.test", (-1, 9));
    let origin =
        machines.on("server", || Origin::in_tls("198.51.100.2:443", &certificate, |_, _| Some(response("", b"hello"))));
    let own = folder.path().join("own.pem");
    let made = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["web", "ca", "create"]).arg(&own).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let at = folder.path().display();
    let head = format!(
        "[tls]\nauthorities = \"{at}/servers.crt\"\nsigning_authority = \"{at}/own.pem\"\n{}",
        listener("http 8000", "redirect", "mode = \"transparent\"\nhttps = \"inspect\"\ntunnelled = [\"localhost\"]")
    );
    let gateway = gateway(&machines, &head);
    let mut stream = connect(&machines, "198.51.100.2:443").stream;
    // The name has an address, and it is not that one.
    let _ = certificate.handshake(&mut stream, "localhost", tokio_rustls::rustls::ALL_VERSIONS);
    let log = gateway.wait_for_log("server_name=\"localhost\"");
    assert!(log.contains("request to a host with another address") && !log.contains("action=\"pass\""), "{log}");
    // The client is shown a certificate of the gateway, which it does not trust.
    assert!(log.contains("action=\"refuse\"") || log.contains("action=\"open\""), "{log}");
    assert!(origin.said().concat().is_empty());
}
