//! The quarantine, through the built program: what is kept, listed, released, deleted, and what expires.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, eicar, mail_with, stuffed, wait_for};

const KEEPS: &str = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"";

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

/// Runs `sluice quarantine` on the gateway's configuration.
fn quarantine(gateway: &Gateway, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice"))
        .arg("quarantine")
        .arg("--config")
        .arg(gateway.folder.path().join("sluice.toml"))
        .args(args)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].concat().iter().map(|&byte| char::from(byte)).collect()
}

/// Has a mail kept and returns its id.
fn keep(gateway: &Gateway, from: &str, to: &[&str]) -> String {
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    keep_of(&mut wire, from, to)
}

/// The same in a session that has begun.
fn keep_of(wire: &mut Wire, from: &str, to: &[&str]) -> String {
    wire.talk(&format!("C: MAIL FROM:<{from}> BODY=8BITMIME\nS: 250 *"));
    to.iter().for_each(|to| wire.talk(&format!("C: RCPT TO:<{to}>\nS: 250 *")));
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(&infected()));
    wire.send(b".\r\n");
    let reply = wire.reply();
    let id = reply.strip_prefix("250 2.0.0 Held back (id ").and_then(|rest| rest.strip_suffix(')'));
    id.unwrap_or_else(|| panic!("{reply}")).to_string()
}

fn facts(gateway: &Gateway, id: &str) -> serde_json::Value {
    let output = quarantine(gateway, &["show", "--json", id]);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_kept_is_listed_shown_and_deleted() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), KEEPS);
    let (one, two) = (keep(&gateway, "a@client.test", &["b@mx.test"]), keep(&gateway, "", &["c@mx.test", "d@mx.test"]));

    let all = text(&quarantine(&gateway, &["list"]));
    assert_eq!(all.lines().count(), 2, "{all}");
    assert!(all.starts_with(&one) && all.contains("held") && all.contains("<> -> c@mx.test d@mx.test"), "{all}");
    for (filter, wanted) in [
        (&["--to", "C@MX"][..], &two),
        (&["--from", "<>"], &two),
        (&["--from", "client.test"], &one),
        (&[&one[..]], &one),
    ] {
        let listed = text(&quarantine(&gateway, &[&["list"], filter].concat()));
        assert!(listed.lines().count() == 1 && listed.starts_with(wanted.as_str()), "{filter:?}: {listed}");
    }
    for filter in [["--older", "1h"], ["--found", "nothing"], ["--state", "released"]] {
        assert_eq!(text(&quarantine(&gateway, &[&["list"], &filter[..]].concat())), "");
    }
    let lines = text(&quarantine(&gateway, &["list", "--json", "--newer", "1h", "--found", "eicar"]));
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&first["id"], &first["state"]), (&one.as_str().into(), &"held".into()));

    let shown = text(&quarantine(&gateway, &["show", &two]));
    assert!(shown.contains("Eicar-Test-Signature in eicar.com") && shown.contains("  Subject: test"), "{shown}");
    assert_eq!(quarantine(&gateway, &["show", "--raw", &two]).stdout, infected());
    assert_eq!(quarantine(&gateway, &["show", "../etc"]).status.code(), Some(2));

    assert_eq!(quarantine(&gateway, &["delete"]).status.code(), Some(2), "everything has to be said");
    assert!(quarantine(&gateway, &["delete", &two]).status.success());
    assert_eq!(quarantine(&gateway, &["delete", &two]).status.code(), Some(1));
    let left: Vec<String> = gateway.files("quarantine").iter().map(|path| name(path)).collect();
    assert_eq!(left, [format!("{one}.eml"), format!("{one}.json")]);
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().into()
}

#[test]
fn what_is_released_keeps_its_envelope_and_is_marked() {
    for extensions in [&["XFORWARD NAME ADDR PROTO HELO SOURCE PORT"][..], &["CHUNKING", "SIZE"]] {
        let sink = Sink::start(Behaviour { extensions, ..Behaviour::default() });
        let gateway = Gateway::start(&sink.forward(), KEEPS);
        let id = keep(&gateway, "", &["b@mx.test", "c@mx.test"]);
        let before = std::fs::metadata(gateway.folder.path().join(format!("quarantine/{id}.json"))).unwrap();

        let output = quarantine(&gateway, &["release", &id]);
        assert!(output.status.success(), "{}", text(&output));
        let arrived = sink.wait(1)[0].clone();
        assert_eq!((arrived.from.as_str(), &arrived.to[..]), ("", &["b@mx.test".to_string(), "c@mx.test".into()][..]));
        assert_eq!(arrived.original(), infected());
        assert!(arrived.text().starts_with("Received: from client.test ([127.0.0.1])"), "{}", arrived.text());
        assert!(sink.commands().iter().any(|line| line.starts_with("MAIL FROM:<>") && line.contains("BODY=8BITMIME")));

        let facts = facts(&gateway, &id);
        assert_eq!(facts["state"], "released");
        assert_eq!(facts["releases"][0]["reply"], "250 2.0.0 Taken");
        let after = std::fs::metadata(gateway.folder.path().join(format!("quarantine/{id}.json"))).unwrap();
        assert_eq!((before.mode(), before.uid()), (after.mode(), after.uid()));

        let again = quarantine(&gateway, &["release", &id]);
        assert!(again.status.code() == Some(1) && text(&again).contains("--again"), "{}", text(&again));
        assert_eq!(quarantine(&gateway, &["release", "--to", "mx.test"]).status.code(), Some(1), "nothing waits");
        assert_eq!(sink.mails().len(), 1);
        assert!(quarantine(&gateway, &["release", "--again", &id]).status.success());
        assert_eq!(sink.wait(2).len(), 2);
    }
}

#[test]
fn mail_of_an_account_is_released_as_after_its_login() {
    let (sink, accounts) = (Sink::start(Behaviour::default()), tempfile::tempdir().unwrap());
    let file = accounts.path().join("accounts");
    let mut add = Command::new(env!("CARGO_BIN_EXE_sluice"));
    add.arg("account").arg("--accounts").arg(&file).args(["add", "ann@here.test"]).stdin(Stdio::piped());
    let mut child = add.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    assert!(child.wait().unwrap().success());
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{}\"\n\
         relay = \"{}\"\n[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n\
         auth = \"any\"\n{KEEPS}\n",
        file.display(),
        sink.forward()
    ));
    let config = gateway.folder.path().join("sluice.toml");
    let mut sign = Command::new(env!("CARGO_BIN_EXE_sluice"));
    assert!(sign.args(["dkim", "create", "here.test", "--config"]).arg(config).output().unwrap().status.success());
    let mut wire = gateway.connect();
    let login = base64(b"\0ann@here.test\0secret");
    wire.talk(&format!("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: AUTH PLAIN {}\nS: 235 *", login.trim_end()));
    let mut keep = || keep_of(&mut wire, "ann@here.test", &["u@far.test"]);
    let (one, two) = (keep(), keep());

    let output = quarantine(&gateway, &["release", &one]);
    assert!(output.status.success() && facts(&gateway, &one)["account"] == "ann@here.test", "{}", text(&output));
    let arrived = sink.wait(1)[0].clone();
    assert_eq!((arrived.from.as_str(), &arrived.to[..]), ("ann@here.test", &["u@far.test".to_string()][..]));
    let released = arrived.text();
    assert!(released.contains("DKIM-Signature: ") && released.contains("Message-ID: "), "{released}");
    assert!(released.contains("Received: from client.test ([127.0.0.1])"), "{released}");

    // An account that is gone sends nothing, and nobody sends in its place.
    let json = gateway.folder.path().join(format!("quarantine/{two}.json"));
    let kept = std::fs::read_to_string(&json).unwrap();
    std::fs::write(&json, kept.replace("\"account\": \"ann@", "\"account\": \"bob@")).unwrap();
    let output = quarantine(&gateway, &["release", &two]);
    assert!(text(&output).contains("not released to <u@far.test>: 554 5.7.1 The account"), "{}", text(&output));
    // Another account's name is no way to its sender, either.
    std::fs::write(&json, kept.replace("\"from\": \"ann@", "\"from\": \"bob@")).unwrap();
    let output = quarantine(&gateway, &["release", &two]);
    assert!(text(&output).contains("553 5.7.1 The sender is not an address of this account"), "{}", text(&output));
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn a_recipient_that_is_refused_waits_and_the_others_are_not_sent_it_twice() {
    let refuses = Sink::start(Behaviour { refuse: Some("b@"), ..Behaviour::default() });
    let takes = Sink::start(Behaviour { lmtp: true, ..Behaviour::default() });
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), KEEPS);
    let id = keep(&gateway, "a@client.test", &["b@mx.test", "c@mx.test"]);

    let output = quarantine(&gateway, &["release", "--hop", &refuses.forward(), &id]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("not released to <b@mx.test>: 550 5.1.1 No such user"), "{}", text(&output));
    assert_eq!(facts(&gateway, &id)["state"], "partly");
    assert_eq!(refuses.wait(1)[0].to, ["c@mx.test"]);

    let hop = format!("lmtp://{}", takes.address);
    let output = quarantine(&gateway, &["release", "--hop", &hop, "--state", "partly"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(takes.wait(1)[0].to, ["b@mx.test"]);
    assert_eq!(facts(&gateway, &id)["state"], "released");
    assert!(sink.mails().is_empty());
}

#[test]
fn a_hop_that_fails_leaves_everything_as_it_was() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), KEEPS);
    let id = keep(&gateway, "a@client.test", &["b@mx.test"]);
    let before = facts(&gateway, &id);
    for behaviour in [
        Behaviour { close_at: Some("DATA"), ..Behaviour::default() },
        Behaviour { final_reply: Some("452 4.3.1 Disk full"), ..Behaviour::default() },
        Behaviour { close_after_bytes: Some(100), ..Behaviour::default() },
        Behaviour { refuse: Some("b@"), ..Behaviour::default() },
    ] {
        let fails = Sink::start(behaviour.clone());
        let output = quarantine(&gateway, &["release", "--hop", &fails.forward(), &id]);
        assert_eq!(output.status.code(), Some(1), "{behaviour:?}: {}", text(&output));
        assert_eq!(facts(&gateway, &id), before);
    }
    assert_eq!(quarantine(&gateway, &["release", "--hop", "smtp://127.0.0.1:1", &id]).status.code(), Some(1));
    assert_eq!(quarantine(&gateway, &["release", "--hop", "smtp:nonsense", &id]).status.code(), Some(2));
    assert!(quarantine(&gateway, &["release", &id]).status.success());
}

#[test]
fn two_releases_at_once_send_one_mail() {
    let sink = Sink::start(Behaviour::default());
    let slow = Sink::start(Behaviour { stall_after_bytes: Some(1), ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), KEEPS);
    let id = keep(&gateway, "a@client.test", &["b@mx.test"]);
    let mut first = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["quarantine", "--folder"])
        .arg(gateway.folder.path().join("quarantine"))
        .args(["release", "--hop", &slow.forward(), &id])
        .spawn()
        .unwrap();
    wait_for(|| slow.commands().iter().any(|line| line == "DATA").then_some(()), "the first release");
    let second = quarantine(&gateway, &["release", &id]);
    assert!(text(&second).contains("being released already"), "{}", text(&second));
    // Killed in the middle, it leaves the message to be released again.
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(facts(&gateway, &id)["state"], "held");
    assert!(quarantine(&gateway, &["release", &id]).status.success());
    assert_eq!(sink.wait(1).len(), 1);
}

#[test]
fn a_message_is_read_when_it_is_meant_and_while_somebody_reads() {
    let gateway = Gateway::start("discard:", KEEPS);
    let id = keep(&gateway, "a@b", &["c@d"]);
    let folder = gateway.folder.path().join("quarantine");
    std::fs::write(folder.join("broken.json"), "{").unwrap();
    for args in [&["list", &id][..], &["show", &id], &["release", &id]] {
        let output = quarantine(&gateway, args);
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {}", text(&output));
    }
    let all = quarantine(&gateway, &["list"]);
    assert!(all.status.success() && text(&all).contains("broken.json: EOF"), "{}", text(&all));
    std::fs::remove_file(folder.join("broken.json")).unwrap();
    let facts = std::fs::read_to_string(folder.join(format!("{id}.json"))).unwrap();
    for number in 0..1_000 {
        let other = format!("zz{number}");
        std::fs::write(folder.join(format!("{other}.json")), facts.replace(&id, &other)).unwrap();
        std::fs::write(folder.join(format!("{other}.eml")), "x\r\n").unwrap();
    }
    for command in ["list", "list --json"] {
        let mut head = Command::new("bash");
        head.args(["-o", "pipefail", "-c", &format!("\"$0\" quarantine --folder \"$1\" {command} | head -n 1")]);
        let output = head.arg(env!("CARGO_BIN_EXE_sluice")).arg(&folder).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{command}: {}", text(&output));
    }
}

#[test]
fn serve_removes_what_is_too_old() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with("[quarantine]\nkeep_days = 7", "smtp", &sink.forward(), KEEPS);
    let (old, new) = (keep(&gateway, "a@b", &["c@d"]), keep(&gateway, "a@b", &["c@d"]));
    let mail = gateway.folder.path().join(format!("quarantine/{old}.eml"));
    let then = SystemTime::now() - Duration::from_secs(8 * 86_400);
    std::fs::File::options().write(true).open(mail).unwrap().set_modified(then).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("expired from the quarantine");
    wait_for(|| (gateway.files("quarantine").len() == 2).then_some(()), "the old message to go");
    assert!(text(&quarantine(&gateway, &["list"])).starts_with(&new));
}

/// The draft of a long mail that has not ended, on a gateway that was killed; and the connection, which keeps nothing alive.
fn draft_of_a_killed_gateway(gateway: &mut Gateway) -> std::path::PathBuf {
    let mut wire = gateway.connect();
    wire.begin_data();
    wire.send(&mail_with("7bit", "long.txt", &"a line of a long mail\r\n".repeat(100_000)));
    let draft = || {
        let files = gateway.files("quarantine");
        files.into_iter().find(|path| path.metadata().is_ok_and(|metadata| metadata.len() > 500_000))
    };
    let draft = wait_for(draft, "the draft of a mail that is passed on");
    gateway.kill();
    assert!(!gateway.wait().success());
    draft
}

#[test]
fn drafts_that_a_kill_left_go_once_they_are_an_hour_old() {
    let sink = Sink::start(Behaviour::default());
    let mut killed = Gateway::start(&sink.forward(), KEEPS);
    let old = draft_of_a_killed_gateway(&mut killed);
    assert!(name(&old).starts_with('.') && name(&old).ends_with(".eml.part"), "{}", old.display());
    let folder = killed.folder.path().join("quarantine");
    let [hour, facts, young] = ["hour.eml.part", "facts.json.part", "young.eml.part"].map(|end| {
        let path = folder.join(format!(".{end}"));
        std::fs::write(&path, "From: a@b").unwrap();
        path
    });
    let age = |path: &Path, minutes: u64| {
        let then = SystemTime::now() - Duration::from_secs(60 * minutes);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    };
    for (path, minutes) in [(&old, 61), (&hour, 61), (&facts, 61), (&young, 58)] {
        age(path, minutes);
    }
    let keeps = format!("on_infected = \"quarantine\"\nquarantine = \"{}\"", folder.display());
    let gateway = Gateway::start(&sink.forward(), &keeps);
    // What is written while the old ones go is not among them.
    let mut wire = gateway.connect();
    wire.begin_data();
    wire.send(&mail_with("7bit", "long.txt", &"a line of a long mail\r\n".repeat(100_000)));
    gateway.signal("HUP");
    let left = || {
        let files = killed.files("quarantine");
        let is_gone = [&old, &hour, &facts].iter().all(|path| !files.contains(path));
        is_gone.then_some(files)
    };
    let left = wait_for(left, "drafts that are an hour old to go");
    assert!(left.contains(&young), "{left:?}");
    wire.send(b".\r\n");
    assert!(wire.reply().starts_with("250 "));
}

/// A gateway whose learners are these scripts, in its folder.
fn learning(spam: &str, ham: &str, seconds: u32) -> Gateway {
    let settings = format!(
        "[quarantine.train]\nspam = [\"/bin/sh\", \"FOLDER/spam\", \"an argument; touch x\"]\n\
         ham = [\"/bin/sh\", \"FOLDER/ham\"]\nseconds_max = {seconds}\n"
    );
    let gateway = Gateway::start_with(&settings, "smtp", "discard:", KEEPS);
    let at = gateway.folder.path();
    for (name, script) in [("spam", spam), ("ham", ham)] {
        std::fs::write(at.join(name), script.replace("FOLDER", &at.display().to_string())).unwrap();
    }
    gateway
}

#[test]
fn a_program_learns_from_what_is_kept_and_that_is_marked() {
    let gateway = learning("cat > FOLDER/learnt; echo \"$1\" >> FOLDER/learnt; env >> FOLDER/learnt", "exit 0", 20);
    let (one, two) = (keep(&gateway, "a@client.test", &["b@mx.test"]), keep(&gateway, "", &["c@mx.test"]));
    let output = quarantine(&gateway, &["train", "spam", &one]);
    assert!(output.status.success() && text(&output) == format!("{one}: learnt as spam\n"), "{}", text(&output));
    let learnt = std::fs::read(gateway.folder.path().join("learnt")).unwrap();
    let rest = String::from_utf8_lossy(learnt.strip_prefix(&infected()[..]).expect("the mail as it came"));
    assert!(rest.starts_with("an argument; touch x\n"), "{rest}");
    assert!(!rest.contains("CARGO"), "{rest}");
    let trained = &facts(&gateway, &one)["trained"][0];
    assert_eq!((&trained["kind"], &trained["by"]), (&"spam".into(), &"/bin/sh".into()));
    assert!(text(&quarantine(&gateway, &["show", &one])).contains("as spam by /bin/sh"));
    let lines = text(&quarantine(&gateway, &["train", "ham", "--from", "<>", "--json"]));
    let line: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(line, serde_json::json!({"id": two, "kind": "ham", "done": true, "error": null}));
    assert_eq!(quarantine(&gateway, &["train", "spam"]).status.code(), Some(2), "everything has to be said");
    assert_eq!(quarantine(&gateway, &["train", "tea", &one]).status.code(), Some(2));
}

#[test]
fn a_program_that_fails_or_does_not_end_has_learnt_nothing() {
    let gateway = learning("echo no room >&2; exit 3", "sleep 60 & wait", 1);
    let id = keep(&gateway, "a@client.test", &["b@mx.test"]);
    let output = quarantine(&gateway, &["train", "spam", &id]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("exit status: 3: no room"), "{}", text(&output));
    let output = quarantine(&gateway, &["train", "ham", "--json", &id]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("timed out after 1 s, killed"), "{}", text(&output));
    assert!(facts(&gateway, &id).get("trained").is_none());
    let none = Gateway::start("discard:", KEEPS);
    let id = keep(&none, "a@client.test", &["b@mx.test"]);
    let output = quarantine(&none, &["train", "spam", &id]);
    assert!(output.status.code() == Some(1) && text(&output).contains("no learner is set"), "{}", text(&output));
}

/// Gives a gateway's quarantine, as it is now, to somebody else.
fn give_away(gateway: &Gateway, owner: u32) -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return false;
    }
    let folder = gateway.folder.path().join("quarantine");
    gateway.files("quarantine").into_iter().chain([folder]).for_each(|path| {
        std::os::unix::fs::chown(path, Some(owner), Some(owner)).unwrap();
    });
    true
}

#[test]
fn root_learns_and_looks_as_the_owner_of_the_folder() {
    const OWNER: u32 = 4_322;
    let told = tempfile::tempdir().unwrap();
    std::fs::set_permissions(told.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let who = told.path().join("who");
    let head = format!("[quarantine.train]\nspam = [\"/bin/sh\", \"-c\", \"id -u > {}\"]", who.display());
    let gateway = Gateway::start_with(&head, "smtp", "discard:", KEEPS);
    let id = keep(&gateway, "a@client.test", &["b@mx.test"]);
    if !give_away(&gateway, OWNER) {
        return;
    }
    let output = quarantine(&gateway, &["train", "spam", &id]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(std::fs::read_to_string(who).unwrap().trim(), OWNER.to_string());
    let mail = gateway.folder.path().join(format!("quarantine/{id}.eml"));
    assert_eq!(facts(&gateway, &id)["mail"], mail.display().to_string());
    let json = std::fs::metadata(mail.with_extension("json")).unwrap();
    assert_eq!(json.uid(), OWNER);
    assert!(quarantine(&gateway, &["delete", &id]).status.success());
    assert!(gateway.files("quarantine").is_empty());
}

#[test]
fn a_mail_goes_to_hops_of_the_configuration_whatever_stands_beside_it() {
    let gateway = Gateway::start("discard:", KEEPS);
    let id = keep(&gateway, "a@client.test", &["b@mx.test"]);
    let json = gateway.folder.path().join(format!("quarantine/{id}.json"));
    let elsewhere = gateway.folder.path().join("elsewhere");
    let facts = std::fs::read_to_string(&json).unwrap();
    std::fs::write(&json, facts.replace("discard:", &format!("maildir:{}", elsewhere.display()))).unwrap();
    let output = quarantine(&gateway, &["release", &id]);
    assert!(
        !output.status.success() && text(&output).contains("not a next hop of the configuration"),
        "{}",
        text(&output)
    );
    assert!(!elsewhere.exists());
    assert!(quarantine(&gateway, &["release", "--hop", "discard:", &id]).status.success());
}

#[test]
fn what_was_kept_from_the_gateways_own_store_is_released_to_it() {
    let accounts = tempfile::tempdir().unwrap();
    let file = accounts.path().join("accounts");
    std::fs::write(&file, "ann:{PLAIN}secret:\n").unwrap();
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{}\"\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n{KEEPS}\n",
        file.display()
    ));
    let id = keep(&gateway, "a@client.test", &["ann@mx.test"]);
    let output = quarantine(&gateway, &["release", &id]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(facts(&gateway, &id)["state"], "released");
    let store = gateway.folder.path().join("store/mail");
    let listed = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["store", "ls", store.to_str().unwrap(), "ann", "INBOX"])
        .output()
        .unwrap();
    assert!(text(&listed).contains(" UIDNEXT 2 "), "{}", text(&listed));
}
