//! Files that the nodes of a cluster share: accounts, DKIM keys, certificates and files of the site.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cluster::{Cluster, SECRET, files};
use crate::harness::acme::Authority;
use crate::harness::imap::ask;
use crate::harness::tls::Certificate;
use crate::harness::{Gateway, Wire, free_port, wait_for};

impl Cluster {
    /// A node with these files besides its secrets.
    fn sharing(&self, name: &str, more: &str, own: &[(&str, &str)]) -> Gateway {
        let [secret, password, _] = files(SECRET);
        let own = own.iter().map(|(name, text)| (*name, (*text).to_owned()));
        let all: Vec<_> = [secret, password].into_iter().chain(own).collect();
        Gateway::with_files(&self.text(name, &format!("synchronous = false\n{more}")), &all)
    }

    /// A node with a door in TLS, for which certificates are got from an authority. Challenges are answered at `http`.
    fn certified(&self, name: &str, authority: &Authority, http: &str, own: &[(&str, &str)]) -> Gateway {
        let known = self.server.as_ref().unwrap().authorities();
        let all = text(Path::new(&known)) + &authority.server.chain;
        let more = format!(
            "[tls.acme]\ndirectory = \"{}\"\naccept_terms = true\nfolder = \"FOLDER/acme\"\nhttp = \"{http}\"\n\
             [[tls.certificate]]\nacme = [\"mx.test\"]\n\
             {}",
            authority.directory,
            door_in_tls()
        );
        let text = self.text(name, "synchronous = false").replace(&known, "FOLDER/authorities") + &more;
        let [secret, password, _] = files(SECRET);
        let own = own.iter().map(|(name, text)| (*name, (*text).to_owned()));
        let all: Vec<_> = [secret, password, ("authorities", all)].into_iter().chain(own).collect();
        Gateway::with_files(&text, &all)
    }

    /// Two nodes, of which the first has shared its account `tim` and has the store.
    fn pair(&self) -> (Gateway, Gateway) {
        let a = self.sharing("a", "", &[("accounts", "tim:{PLAIN}secret:\n")]);
        self.wait_for_owner(&a, "a");
        let (status, said) = self.command(&a, &["share"]);
        assert!(status == 0 && said.contains("1 documents"), "{said}");
        let b = self.sharing("b", "", &[]);
        wait_for_text(&b, "accounts", "tim:{PLAIN}secret:\n");
        (a, b)
    }
}

fn file(node: &Gateway, name: &str) -> PathBuf {
    node.folder.path().join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn wait_for_text(node: &Gateway, name: &str, wanted: &str) {
    let path = file(node, name);
    wait_for(|| (text(&path) == wanted).then_some(()), &format!("{name}: {}", node.log()));
}

/// Runs a command at a node with a line on its standard input.
fn sluice(node: &Gateway, words: &[&str], line: &str) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg(words[0]).arg("--config").arg(file(node, "sluice.toml")).args(&words[1..]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(format!("{line}\n").as_bytes());
    let done = child.wait_with_output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}

fn logs_in(node: &Gateway, name: &str, password: &str) -> bool {
    let mut wire = Wire::connect(node.addresses[1]);
    wire.line().starts_with("* OK") && ask(&mut wire, &format!("LOGIN {name} {password}")).status.starts_with("OK")
}

#[test]
fn accounts_are_changed_at_any_node_and_no_change_is_lost() {
    let Some(cluster) = Cluster::start() else { return };
    let (a, b) = cluster.pair();
    assert!(!file(&b, "accounts.before-cluster").exists(), "a node without accounts has nothing to keep");
    let done = sluice(&b, &["account", "add", "ann"], "first");
    assert!(done.0, "{}", done.1);
    // The owner of the store is the other node, and whoever connects here is handed over to it.
    wait_for(|| logs_in(&a, "ann", "first").then_some(()), &format!("ann at a: {}", a.log()));
    assert!(logs_in(&b, "ann", "first"));
    assert!(sluice(&a, &["account", "passwd", "ann"], "second").0);
    wait_for(|| logs_in(&b, "ann", "second").then_some(()), "the other password");

    let nodes = [&a, &b];
    std::thread::scope(|scope| {
        for number in 0..20 {
            scope.spawn(move || {
                let done = sluice(nodes[number % 2], &["account", "add", &format!("user{number}")], "password");
                assert!(done.0, "{}", done.1);
            });
        }
    });
    let (_, listed) = sluice(&a, &["account", "list"], "");
    assert_eq!(listed.lines().count(), 22, "{listed}");
    wait_for(|| (text(&file(&a, "accounts")) == text(&file(&b, "accounts"))).then_some(()), "the same accounts");
    let refused = sluice(&b, &["account", "add", "user1"], "password");
    assert!(!refused.0 && refused.1.contains("is there already"), "{}", refused.1);
    // A text in the database shows nothing of a file.
    let rows = cluster.server.as_ref().unwrap().say("select encode(body, 'escape') from sluice.document");
    assert!(!rows.contains("tim") && !rows.contains("secret"), "{rows}");
}

#[test]
fn an_edit_by_hand_is_shared_and_a_file_that_was_never_synced_is_kept_beside() {
    let Some(cluster) = Cluster::start() else { return };
    let (a, b) = cluster.pair();
    let both = "tim:{PLAIN}secret:\nann:{PLAIN}x:\n";
    std::fs::write(file(&b, "accounts"), both).unwrap();
    wait_for_text(&a, "accounts", both);
    // An empty and a missing file are no edits, and an invalid one goes nowhere.
    std::fs::write(file(&b, "accounts"), "").unwrap();
    wait_for_text(&b, "accounts", both);
    std::fs::remove_file(file(&b, "accounts")).unwrap();
    wait_for_text(&b, "accounts", both);
    std::fs::write(file(&b, "accounts"), "no account\n").unwrap();
    b.wait_for_log("not shared");
    assert_eq!(text(&file(&a, "accounts")), both);
    let c = cluster.sharing("c", "", &[("accounts", "eve:{PLAIN}old:\n")]);
    wait_for_text(&c, "accounts", both);
    wait_for_text(&c, "accounts.before-cluster", "eve:{PLAIN}old:\n");
    c.wait_for_log("is kept beside the document");
    assert_eq!(text(&file(&a, "accounts")), both);
}

#[test]
fn a_node_starts_without_the_database_and_a_damaged_document_is_refused() {
    let Some(mut cluster) = Cluster::start() else { return };
    let (a, b) = cluster.pair();
    let before = text(&file(&b, "accounts"));
    let server = cluster.server.as_ref().unwrap();
    server.say("update sluice.document set body = set_byte(body, 20, 0), digest = set_byte(digest, 0, 0), version = 9");
    b.wait_for_log("sealed with another secret, or damaged");
    assert_eq!(text(&file(&b, "accounts")), before);
    let refused = sluice(&a, &["account", "add", "ann"], "x");
    assert!(!refused.0 && refused.1.contains("damaged"), "{}", refused.1);
    assert_eq!(b.log().matches("sealed with another secret").count(), 1, "it is said once");
    cluster.server.as_mut().unwrap().end();
    let c = cluster.sharing("c", "", &[("accounts", "eve:{PLAIN}old:\n")]);
    c.wait_for_log("not in step with the cluster");
    assert_eq!(text(&file(&c, "accounts")), "eve:{PLAIN}old:\n");
    let refused = sluice(&c, &["account", "add", "ann"], "x");
    assert!(!refused.0 && refused.1.contains("the database of the cluster"), "{}", refused.1);
    assert_eq!(text(&file(&c, "accounts")), "eve:{PLAIN}old:\n");
}

#[test]
fn keys_that_mail_is_signed_with_are_shared_and_nodes_that_lack_one_are_named() {
    let Some(cluster) = Cluster::start() else { return };
    let (a, b) = cluster.pair();
    let made = sluice(&b, &["dkim", "create", "a.test"], "");
    assert!(made.0, "{}", made.1);
    let keys = text(&file(&b, "store/dkim"));
    assert!(keys.lines().count() == 3, "{keys}");
    wait_for_text(&a, "store/dkim", &keys);
    assert!(sluice(&a, &["dkim", "rotate", "a.test"], "").0);
    let rotated = text(&file(&a, "store/dkim"));
    assert!(rotated.starts_with(&keys) && rotated.lines().count() == 5, "{rotated}");
    wait_for_text(&b, "store/dkim", &rotated);
    let (status, said) = cluster.command(&a, &["documents"]);
    assert!(status == 0 && said.lines().count() == 3 && said.contains("dkim") && !said.contains("another"), "{said}");
    let (_, said) = cluster.command(&a, &["documents", "--json"]);
    let line: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!((line["name"].as_str(), line["here"].as_str()), (Some("accounts"), Some("yes")), "{said}");
    let (_, said) = cluster.command(&a, &["status"]);
    assert!(said.contains("documents: 2, all nodes have them"), "{said}");
}

/// A listener in TLS. Two with any port would be one.
fn door_in_tls() -> String {
    let address = format!("127.0.0.1:{}", free_port());
    format!("[[listener]]\nprotocol = \"smtp\"\naddress = \"{address}\"\nforward = \"discard:\"\ntls = \"implicit\"\n")
}

fn shows(node: &Gateway, root: &Certificate) -> bool {
    let Ok(mut stream) = std::net::TcpStream::connect(node.addresses[1]) else { return false };
    root.handshake(&mut stream, "mx.test", tokio_rustls::rustls::ALL_VERSIONS).is_ok()
}

#[test]
fn one_node_gets_a_certificate_any_node_answers_the_authority_and_all_show_it() {
    let Some(cluster) = Cluster::start() else { return };
    let port = free_port();
    let authority = Authority::start(port);
    authority.state().away = true;
    // The authority asks at the address of the node that orders nothing.
    let a = cluster.certified("a", &authority, &format!("127.0.0.1:{port}"), &[("accounts", "tim:{PLAIN}secret:\n")]);
    cluster.wait_for_owner(&a, "a");
    assert_eq!(cluster.command(&a, &["share"]).0, 0);
    let b = cluster.certified("b", &authority, &format!("127.0.0.2:{port}"), &[]);
    wait_for_text(&b, "accounts", "tim:{PLAIN}secret:\n");
    assert_eq!(cluster.command(&a, &["move", "b"]).0, 0);
    cluster.wait_for_owner(&b, "b");
    assert!(!shows(&a, &authority.root));
    authority.state().away = false;
    b.signal("HUP");
    wait_for(|| shows(&b, &authority.root).then_some(()), &format!("a certificate: {}", b.log()));
    wait_for(|| shows(&a, &authority.root).then_some(()), &format!("b's certificate: {}", a.log()));
    assert_eq!(authority.state().orders, 1);
    wait_for_text(&a, "acme/challenges.json", "{}");
    assert_eq!(text(&file(&a, "acme/mx.test.pem")), text(&file(&b, "acme/mx.test.pem")));
}

#[test]
fn files_of_the_site_are_shared_and_taken_into_use() {
    let Some(cluster) = Cluster::start() else { return };
    let names = "documents = [\"shared/aliases\", \"shared/mx.crt\", \"shared/mx.key\"]";
    let certificate = "[[tls.certificate]]\nchain = \"FOLDER/shared/mx.crt\"\nkey = \"FOLDER/shared/mx.key\"\n";
    let [old, new] = [(); 2].map(|()| Certificate::of("mx.test"));
    let node = |name: &str, aliases: &str| {
        let text = cluster.text(name, &format!("synchronous = false\n{names}")) + certificate + &door_in_tls();
        let own = [
            ("shared/mx.crt", old.chain.clone()),
            ("shared/mx.key", old.key.clone()),
            ("shared/aliases", aliases.into()),
        ];
        Gateway::with_files(&text, &[&files(SECRET)[..], &own].concat())
    };
    let a = node("a", "postmaster: tim\n");
    cluster.wait_for_owner(&a, "a");
    let (status, said) = cluster.command(&a, &["share"]);
    assert!(status == 0 && said.contains("4 documents"), "{said}");
    let b = node("b", "");
    wait_for_text(&b, "shared/aliases", "postmaster: tim\n");
    assert_eq!(cluster.command(&b, &["documents", "--get", "file:shared/aliases"]), (0, "postmaster: tim\n".into()));
    wait_for(|| shows(&b, &old).then_some(()), "the certificate");
    new.store(&file(&a, "shared"), "mx");
    for node in [&b, &a] {
        wait_for(|| shows(node, &new).then_some(()), &format!("the other certificate: {}", node.log()));
    }
    assert!(sluice(&b, &["account", "add", "ann"], "x").0);
}
