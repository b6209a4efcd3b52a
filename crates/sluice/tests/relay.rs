//! The queue as the next hop of a gateway: mail for the domains of its list, and mail of clients inside, waits there and goes out; all
//! other mail for others than accounts is refused.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::postfix::Postfix;
use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, eicar, free_port, mail_with, wait_for};
use crate::queue::send;

const MAIL: &str = "From: x@client.test\r\nSubject: hello\r\n\r\nbody\r\n";

/// A gateway with the accounts `ann@here.test` and `full@here.test`, which has room for 1,000 bytes, that relays to `relay.test` and below `.many.test`, and for clients of 10.0.0.0/8; they name
/// their addresses by XCLIENT. All its mail goes to one next hop.
fn gateway(hop: &str, routes: &str) -> Gateway {
    gateway_with(hop, routes, "")
}

/// The same with settings of the first listener.
fn gateway_with(hop: &str, routes: &str, settings: &str) -> Gateway {
    let accounts = tempfile::tempdir().unwrap();
    let path = accounts.path().join("accounts");
    for (name, quota) in [("ann@here.test", "0"), ("full@here.test", "1000")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["account", "--accounts", path.to_str().unwrap(), "add", "--quota", quota, name]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
    }
    let text = format!(
        "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{}\"\nrelay = \"mx\"\n\
         [store.queue]\nretry_first_seconds = 1\nrelay_domains = [\"relay.test\", \".many.test\"]\ndane = false\nmta_sts = false\n\
         routes = {{ {routes}\".test\" = \"{hop}\" }}\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nauth = \"any\"\ntrust = \"off\"\n\
         relay_clients = [\"10.0.0.0/8\", \"2001:db8::/32\"]\nxclient_from = [\"127.0.0.0/8\"]\nxforward_from = [\"127.0.0.0/8\", \"10.0.0.9\"]\n{settings}\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\ntrust = \"off\"\nxclient_from = [\"127.0.0.0/8\"]\n",
        path.display()
    );
    Gateway::with(&text).owning(accounts)
}

/// A session of a client with this address.
fn client(gateway: &Gateway, listener: usize, address: &str) -> Wire {
    let mut wire = Wire::connect(gateway.addresses[listener]);
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    let address = if address.contains(':') { format!("IPV6:{address}") } else { address.to_owned() };
    wire.talk(&format!("C: XCLIENT ADDR={address} PORT=4711\nS: 220 *\nC: EHLO client.test\nS: 250-*"));
    wire
}

fn queued(gateway: &Gateway, arguments: &[&str]) -> String {
    let volume = gateway.folder.path().join("store/mail");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let output = command.arg("queue").args(arguments).arg("--store").arg(volume).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The mails of an account.
fn inbox(gateway: &Gateway, account: &str) -> Vec<String> {
    let volume = gateway.folder.path().join("store/mail");
    let cat = |uid: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.args(["store", "cat"]).arg(&volume).args([account, "INBOX", &uid.to_string()]);
        let output = output.output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    (1..).map_while(cat).collect()
}

#[test]
fn one_mail_for_accounts_and_for_domains_of_the_list_is_one_transaction() {
    let hop = Sink::start(Behaviour::default());
    let gateway = gateway(&hop.forward(), "");
    let mut stranger = client(&gateway, 0, "192.0.2.7");
    let both = ["<ann@here.test>", "<u@relay.test>"];
    for to in [both, [both[1], both[0]]] {
        assert_eq!(send(&mut stranger, "<s@client.test>", &to, MAIL), "250 2.0.0 Delivered");
    }
    for mail in hop.wait(2) {
        assert_eq!((&*mail.from, &mail.to[..]), ("s@client.test", &["u@relay.test".to_owned()][..]));
        let text = mail.text();
        assert!(text.starts_with("Received: from client.test") && text.ends_with("\r\n\r\nbody\r\n"), "{text}");
    }
    let mails = inbox(&gateway, "ann@here.test");
    assert_eq!(mails.len(), 2, "{mails:?}");
    assert!(mails[0].starts_with("Return-Path: <s@client.test>\r\nDelivered-To: ann@here.test\r\nReceived: "));
    // A finding, and an account without room, keep it from all of them.
    let infected = String::from_utf8(mail_with("base64", "eicar.com", &base64(&eicar()))).unwrap();
    assert!(send(&mut stranger, "<s@client.test>", &both, &infected).starts_with("554 5.7.1"));
    let large = format!("{MAIL}{}", "a line of it\r\n".repeat(100));
    let full = ["<u@relay.test>", "<full@here.test>", "<ann@here.test>"];
    assert!(send(&mut stranger, "<s@client.test>", &full, &large).starts_with("452 4.2.2"));
    assert_eq!(send(&mut stranger, "<s@client.test>", &both[1..], MAIL), "250 2.0.0 Queued");
    assert_eq!((hop.wait(3).len(), inbox(&gateway, "ann@here.test").len()), (3, 2));
    wait_for(|| queued(&gateway, &["list"]).is_empty().then_some(()), "an empty queue");
    assert_eq!(hop.mails().len(), 3);
}

#[test]
fn a_mail_of_a_client_inside_is_released_from_the_quarantine_to_anybody() {
    let hop = Sink::start(Behaviour::default());
    let keeps = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"";
    let gateway = gateway_with(&hop.forward(), "", keeps);
    let infected = String::from_utf8(mail_with("base64", "eicar.com", &base64(&eicar()))).unwrap();
    let release = |address: &str, to: &str| {
        let reply = send(&mut client(&gateway, 0, address), "<i@client.test>", &[to], &infected);
        let id = reply.strip_prefix("250 2.0.0 Held back (id ").and_then(|rest| rest.strip_suffix(')'));
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let config = gateway.folder.path().join("sluice.toml");
        command.args(["quarantine", "--config"]).arg(config).args(["release", id.expect(&reply)]);
        command.output().unwrap()
    };
    let output = release("10.1.2.3", "<u@foreign.test>");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(hop.wait(1)[0].to, ["u@foreign.test"]);
    let output = release("192.0.2.7", "<u@relay.test>");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(hop.wait(2)[1].to, ["u@relay.test"]);
}

/// Who may send where: the recipients that are taken, of all that are tried.
#[test]
fn mail_is_relayed_to_domains_of_the_list_and_for_clients_inside_alone() {
    let gateway = gateway("smtp://127.0.0.1:9", "");
    let recipients = [
        "<ann@here.test>",
        "<nobody@here.test>",
        "<u@relay.test>",
        "<U@Relay.TEST>",
        "<u@a.many.test>",
        "<u@many.test>",
        "<u@sub.relay.test>",
        "<u@foreign.test>",
        "<u%foreign.test@relay.test>",
        "<foreign.test!u@relay.test>",
        "<\"u@foreign.test\"@relay.test>",
        "<u@foreign.test@relay.test>",
        "<@relay.test:u@foreign.test>",
        "<@foreign.test:u@relay.test>",
        "<u@relay.test@foreign.test>",
        "<u@[127.0.0.2]>",
        "<relay.test!u>",
        "<u%foreign.test@here.test>",
    ];
    let account = BTreeSet::from(["<ann@here.test>"]);
    // A source route is taken off (RFC 5321, appendix C), so that the mailbox behind it counts.
    let listed = ["<u@relay.test>", "<U@Relay.TEST>", "<u@a.many.test>", "<@foreign.test:u@relay.test>"];
    let stranger: BTreeSet<&str> = account.iter().copied().chain(listed).collect();
    let malformed = ["<u@foreign.test@relay.test>", "<u@relay.test@foreign.test>"];
    let here = ["<nobody@here.test>", "<relay.test!u>", "<u%foreign.test@here.test>"];
    let inside: BTreeSet<&str> =
        recipients.into_iter().filter(|to| !malformed.contains(to) && !here.contains(to)).collect();
    let login = base64(b"\0ann@here.test\0secret");
    let taken = |wire: &mut Wire, from: &str| {
        let one = |to: &&str| {
            assert!(wire.command(&format!("MAIL FROM:{from}")).starts_with("250"), "{from}");
            let reply = wire.command(&format!("RCPT TO:{to}"));
            assert!(reply.starts_with("250") || reply.starts_with('5'), "{to}: {reply}");
            wire.command("RSET");
            reply.starts_with("250")
        };
        recipients.into_iter().filter(one).collect::<BTreeSet<&str>>()
    };
    for from in ["<>", "<u@relay.test>", "<ann@here.test>", "<postmaster@mx.test>"] {
        for (address, wanted) in [
            ("192.0.2.7", &stranger),
            ("127.0.0.1", &stranger),
            ("2001:db9::1", &stranger),
            ("10.1.2.3", &inside),
            ("2001:db8::7", &inside),
        ] {
            assert_eq!(taken(&mut client(&gateway, 0, address), from), *wanted, "{address} {from}");
        }
        // Of a listener without the list nobody is inside.
        assert_eq!(taken(&mut client(&gateway, 1, "10.1.2.3"), from), stranger, "{from}");
    }
    // Who speaks for another is inside where both are.
    for (peer, other, wanted) in
        [("10.0.0.9", "10.1.1.1", &inside), ("10.0.0.9", "192.0.2.7", &stranger), ("192.0.2.7", "10.1.1.1", &stranger)]
    {
        let mut wire = client(&gateway, 0, peer);
        assert!(wire.command(&format!("XFORWARD ADDR={other}")).starts_with("250"));
        assert_eq!(taken(&mut wire, "<u@relay.test>"), *wanted, "{peer} for {other}");
    }
    // Wrong passwords make nobody an account, and who has logged in sends as itself.
    let mut wire = client(&gateway, 0, "192.0.2.7");
    assert!(wire.command(&format!("AUTH PLAIN {}", base64(b"\0ann@here.test\0wrong").trim_end())).starts_with("535"));
    assert_eq!(taken(&mut wire, "<ann@here.test>"), stranger);
    for address in ["192.0.2.7", "10.1.2.3"] {
        let mut wire = client(&gateway, 0, address);
        wire.talk(&format!("C: AUTH PLAIN {}\nS: 235 *", login.trim_end()));
        assert!(taken(&mut wire, "<ann@here.test>").contains("<u@foreign.test>"), "{address}");
        wire.command("MAIL FROM:<u@relay.test>");
        assert!(wire.command("RCPT TO:<u@foreign.test>").starts_with("553 5.7.1"), "{address}");
    }
    assert!(queued(&gateway, &["list"]).is_empty());
}

#[test]
fn a_mail_waits_for_a_dead_next_hop_through_a_kill_and_is_sent_once() {
    let port = free_port();
    let gateway = gateway(&format!("smtp://127.0.0.1:{port}"), "");
    let mut stranger = client(&gateway, 0, "192.0.2.7");
    let to = ["<u@relay.test>", "<v@relay.test>"];
    assert_eq!(send(&mut stranger, "<s@client.test>", &to, MAIL), "250 2.0.0 Queued");
    let mut insider = client(&gateway, 0, "10.1.2.3");
    assert_eq!(
        send(&mut insider, "<i@client.test>", &["<u@foreign.test>", "<ann@here.test>"], MAIL),
        "250 2.0.0 Queued"
    );
    let before = gateway.pid();
    assert!(Command::new("kill").args(["-KILL", &before.to_string()]).status().unwrap().success());
    wait_for(|| (gateway.pid() != before && gateway.pid() != 0).then_some(()), "another edge");
    let hop = Sink::at(&format!("127.0.0.1:{port}"), Behaviour::default());
    wait_for(
        || {
            queued(&gateway, &["flush"]);
            queued(&gateway, &["list"]).is_empty().then_some(())
        },
        "an empty queue",
    );
    let mails = hop.wait(2);
    assert_eq!(mails.len(), 2, "{mails:?}");
    let relayed = mails.iter().find(|mail| mail.to.contains(&"u@relay.test".into())).unwrap();
    assert_eq!((&*relayed.from, relayed.to.len()), ("s@client.test", 2));
    let text = relayed.text();
    assert!(text.starts_with("Received: from client.test") && text.ends_with("\r\n\r\nbody\r\n"), "{text}");
    assert!(!text.contains("Return-Path") && !text.contains("Message-ID"), "nothing but the trace is added: {text}");
}

#[test]
fn mail_of_clients_inside_is_signed_and_that_of_strangers_is_not() {
    let hop = Sink::start(Behaviour::default());
    let gateway = gateway(&hop.forward(), "");
    let config = gateway.folder.path().join("sluice.toml");
    std::fs::write(&config, format!("[store]\nfolder = \"{}/store\"\n", gateway.folder.path().display())).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let output = command.args(["dkim", "create", "here.test", "--config"]).arg(&config).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for address in ["10.1.2.3", "192.0.2.7"] {
        let mut wire = client(&gateway, 0, address);
        assert_eq!(send(&mut wire, "<ann@here.test>", &["<u@relay.test>"], MAIL), "250 2.0.0 Queued");
    }
    let mails: Vec<String> = hop.wait(2).iter().map(|mail| mail.text()).collect();
    let is_signed = |address: &str| {
        let mail = mails.iter().find(|mail| mail.contains(address)).unwrap();
        mail.contains("DKIM-Signature: ") && mail.contains("d=here.test")
    };
    assert_eq!(["[10.1.2.3]", "[192.0.2.7]"].map(is_signed), [true, false], "{mails:?}");
}

/// Postfix takes what it knows; what it refuses comes back to the sender, by the same way out.
#[test]
fn postfix_as_the_next_hop_takes_mail_and_what_it_refuses_comes_back() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !std::path::Path::new("/usr/sbin/postfix").exists() || !is_root {
        return eprintln!("skipped: postfix is not installed, or we are not root");
    }
    let postfix = Postfix::start(
        "virtual_mailbox_domains = relay.test\n\
         smtpd_recipient_restrictions = check_recipient_access inline:{refused@relay.test=REJECT}, permit_mynetworks",
    );
    let back = Sink::start(Behaviour::default());
    let hop = format!("smtp://127.0.0.1:{}", postfix.port);
    let gateway = gateway(&hop, &format!("\"client.test\" = \"{}\", ", back.forward()));
    let mut stranger = client(&gateway, 0, "192.0.2.7");
    assert_eq!(send(&mut stranger, "<s@client.test>", &["<box@relay.test>"], MAIL), "250 2.0.0 Queued");
    let arrived = String::from_utf8(wait_for(|| postfix.mail(), "delivery by Postfix")).unwrap();
    assert!(
        arrived.contains("\nReturn-Path: <s@client.test>\n") || arrived.starts_with("Return-Path: <s@client.test>\n")
    );
    assert!(arrived.contains("\nSubject: hello\n") && arrived.ends_with("\n\nbody\n"), "{arrived}");
    let refused = ["<refused@relay.test>"];
    assert_eq!(send(&mut stranger, "<s@client.test>", &refused, MAIL), "250 2.0.0 Queued");
    let notice = &back.wait(1)[0];
    assert_eq!((&*notice.from, &*notice.to), ("", &["s@client.test".to_owned()][..]));
    assert!(
        notice
            .text()
            .contains("\r\nFinal-Recipient: rfc822; refused@relay.test\r\nAction: failed\r\nStatus: 5.7.1\r\n")
    );
    // Of what has no sender, and of spam from strangers, nobody is told.
    assert_eq!(send(&mut stranger, "<>", &refused, MAIL), "250 2.0.0 Queued");
    assert_eq!(
        send(&mut stranger, "<s@client.test>", &refused, &format!("X-Spam-Flag: YES\r\n{MAIL}")),
        "250 2.0.0 Queued"
    );
    wait_for(|| queued(&gateway, &["list"]).is_empty().then_some(()), "an empty queue");
    assert_eq!(back.mails().len(), 1);
}
