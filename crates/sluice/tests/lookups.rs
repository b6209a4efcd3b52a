//! Tables of databases and directories: as recipients, as accounts, and while they are away.

use std::process::Command;

use crate::harness::databases::{Database, Kind};
use crate::harness::imap::ask;
use crate::harness::{Gateway, Wire, stuffed, wait_for};

/// A gateway with a store, whose recipients and accounts are in a database alone. Nothing is remembered.
fn gateway(database: &Database) -> Gateway {
    let forgetful = "valid_seconds = 0\nunknown_seconds = 0\nseconds_max = 20";
    Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n{}\
         [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nlookups = [\"people\"]\nimap = [\"127.0.0.1:0\"]\nlmtp = [\"127.0.0.1:0\"]\n\
         [[recipients]]\nname = \"own\"\nlookups = [\"people\"]\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nrecipients = [\"own\"]\n",
        database.table(forgetful)
    ))
}

fn rcpt(gateway: &Gateway, to: &str) -> String {
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    wire.command(&format!("RCPT TO:<{to}>"))
}

fn lmtp(gateway: &Gateway, to: &str) -> String {
    let mut wire = Wire::connect(gateway.addresses[2]);
    wire.talk("S: 220 *\nC: LHLO x\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    wire.command(&format!("RCPT TO:<{to}>"))
}

fn log_in(gateway: &Gateway, name: &str, password: &str) -> (Wire, String) {
    let mut wire = Wire::connect(gateway.addresses[1]);
    assert!(wire.line().starts_with("* OK"));
    let answer = ask(&mut wire, &format!("LOGIN {name} {password}"));
    (wire, answer.status)
}

fn subjects(gateway: &Gateway, name: &str) -> usize {
    let (mut wire, status) = log_in(gateway, name, "secret");
    assert!(status.starts_with("OK"), "{name}: {status}");
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    ask(&mut wire, "UID FETCH 1:* BODY.PEEK[]").literals.len()
}

fn people_are_there_and_a_table_that_is_away_makes_nobody_unknown(kind: Kind) {
    let Some(mut database) = Database::start(kind) else { return };
    let gateway = gateway(&database);
    for (to, wanted) in [
        ("tim@a.test", "250"),
        ("TIM+news@A.test", "250"),
        ("team@a.test", "250"),
        ("nobody@a.test", "550 5.1.1"),
        ("\"x' or '1'='1\"@a.test", "550 5.1.1"),
        ("\"' or 1=1 -- \"@a.test", "550 5.1.1"),
        ("\"\\\\' or 1=1 -- \"@a.test", "550 5.1.1"),
        ("*@a.test", "550 5.1.1"),
        ("\"*)(uid=*\"@a.test", "550 5.1.1"),
        ("t%@a.test", "550 5.1.1"),
    ] {
        let reply = rcpt(&gateway, to);
        assert!(reply.starts_with(wanted), "{kind:?} {to}: {reply}");
    }
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    for to in ["tim@a.test", "team@a.test", "ann+x@a.test"] {
        assert!(wire.command(&format!("RCPT TO:<{to}>")).starts_with("250"), "{to}");
    }
    wire.command("DATA");
    wire.send(&stuffed(b"Subject: one\r\n\r\nhello\r\n"));
    wire.send(b".\r\n");
    assert!(wire.reply().starts_with("250"));
    // A group is its accounts, an alias is the account, and nobody gets a mail twice.
    let count = |name| subjects(&gateway, name);
    assert_eq!([count("tim@a.test"), count("info@a.test"), count("ann@a.test")], [1, 1, 1], "{kind:?}");
    let (mut wire, _) = log_in(&gateway, "ann@a.test", "secret");
    let quota = ask(&mut wire, "GETQUOTAROOT INBOX");
    assert!(quota.lines.iter().any(|line| line.contains("STORAGE") && line.contains(" 4)")), "{quota:?}");
    for (name, password) in
        [("tim@a.test", "Secret"), ("nobody@a.test", "secret"), ("team@a.test", "secret"), ("\"*\"", "x")]
    {
        let (_, status) = log_in(&gateway, name, password);
        assert!(status.starts_with("NO [AUTHENTICATIONFAILED]"), "{kind:?} {name}: {status}");
    }
    let (_, status) = log_in(&gateway, "ann@a.test", "\"\"");
    assert!(status.starts_with("NO [AUTHENTICATIONFAILED]"), "an empty password: {status}");

    database.end();
    let reply = rcpt(&gateway, "tim@a.test");
    assert!(reply.starts_with("451 4.4.3"), "{kind:?}: {reply}");
    let reply = lmtp(&gateway, "nobody@a.test");
    assert!(reply.starts_with("451 4.4.3"), "{kind:?}: {reply}");
    let (_, status) = log_in(&gateway, "info@a.test", "secret");
    assert!(status.starts_with("NO [UNAVAILABLE]"), "{kind:?}: {status}");

    database.begin();
    wait_for(|| rcpt(&gateway, "tim@a.test").starts_with("250").then_some(()), "the table is there again");
    assert!(rcpt(&gateway, "nobody@a.test").starts_with("550"));
    assert_eq!(subjects(&gateway, "info@a.test"), 1);
}

#[test]
fn people_in_postgresql() {
    people_are_there_and_a_table_that_is_away_makes_nobody_unknown(Kind::Postgresql);
}

#[test]
fn people_in_mariadb() {
    people_are_there_and_a_table_that_is_away_makes_nobody_unknown(Kind::Mariadb);
}

#[test]
fn people_in_ldap() {
    people_are_there_and_a_table_that_is_away_makes_nobody_unknown(Kind::Ldap);
}

#[test]
fn people_in_sqlite() {
    people_are_there_and_a_table_that_is_away_makes_nobody_unknown(Kind::Sqlite);
}

#[test]
fn aliases_in_a_table_lead_to_accounts_or_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mail.db");
    let tables = "CREATE TABLE boxes (name text, password text); CREATE TABLE aliases (address text, goto text);\
        INSERT INTO boxes VALUES ('ann@a.test', '{PLAIN}secret'), ('bob@a.test', '{PLAIN}secret');\
        INSERT INTO aliases VALUES ('ann@a.test', 'ann@a.test'), ('sales@a.test', 'ann@a.test, bob@a.test'),\
        ('info@a.test', 'sales@a.test'), ('out@a.test', 'x@far.test'), ('both@a.test', 'bob@a.test,x@far.test');";
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
    assert!(Command::new("python3").args(["-c", script]).arg(&file).arg(tables).status().unwrap().success());
    let server = format!("servers = [\"sqlite:{}\"]", file.display());
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n\
         [[lookup]]\nname = \"boxes\"\n{server}\nquery = \"SELECT name AS user, password FROM boxes WHERE name = '%s'\"\n\
         [[lookup]]\nname = \"aliases\"\n{server}\nquery = \"SELECT goto AS user FROM aliases WHERE address = '%s'\"\n\
         [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nlookups = [\"boxes\", \"aliases\"]\nimap = [\"127.0.0.1:0\"]\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n"
    ));
    assert!(rcpt(&gateway, "out@a.test").starts_with("550 5.1.1"));
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*");
    for to in ["info+x@a.test", "both@a.test", "ann@a.test"] {
        wire.talk("C: MAIL FROM:<a@client.test>\nS: 250 *");
        assert!(wire.command(&format!("RCPT TO:<{to}>")).starts_with("250"), "{to}");
        wire.command("DATA");
        wire.send(&stuffed(b"Subject: one\r\n\r\nhello\r\n"));
        wire.send(b".\r\n");
        assert!(wire.reply().starts_with("250"), "{to}");
    }
    let count = |name| subjects(&gateway, name);
    assert_eq!([count("ann@a.test"), count("bob@a.test")], [2, 2]);
}

fn sluice(words: &[&str]) -> (i32, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_sluice")).args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn check_asks_a_table_and_lookup_shows_what_is_in_it() {
    let Some(mut database) = Database::start(Kind::Sqlite) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sluice.toml");
    let config = path.to_str().unwrap();
    let door = "[[recipients]]\nname = 'own'\nlookups = ['people']\n\
                [[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:0'\nforward = 'discard:'\nrecipients = ['own']\n";
    let table = database.table("");
    std::fs::write(&path, format!("{table}{door}")).unwrap();
    let (status, said, error) = sluice(&["check", config]);
    assert!(status == 0 && said.contains("lookup \"people\" answers (sqlite)"), "{said}{error}");
    let (status, said, _) = sluice(&["lookup", "--config", config, "people", "ANN@a.test", "x@a.test"]);
    assert_eq!(said, "ANN@a.test: user=ann password=(101 characters) quota=4096\nx@a.test: nothing\n");
    assert_eq!(status, 1);
    let (status, said, _) = sluice(&["recipients", "check", "--config", config, "tim+x@a.test"]);
    assert_eq!((status, &*said), (0, "tim+x@a.test: valid: sqlite people (tim@a.test), of \"own\"\n"));
    std::fs::write(&path, format!("{}{door}", table.replace("account AS", "acount AS"))).unwrap();
    let (status, _, error) = sluice(&["check", config]);
    assert!(
        status == 2 && error.contains("lookup \"people\"") && error.contains("no such column: acount"),
        "{status} {error}"
    );
    std::fs::write(&path, format!("{table}{}", door.replace("'people'", "'peple'"))).unwrap();
    let (_, _, error) = sluice(&["check", config]);
    assert!(error.contains("there is no [[lookup]] with the name \"peple\""), "{error}");
    std::fs::write(&path, format!("{table}{door}")).unwrap();
    database.end();
    let (status, _, error) = sluice(&["check", config]);
    assert!(status == 0 && error.contains("warning: lookup \"people\" cannot be asked now"), "{status} {error}");
    let (status, ..) = sluice(&["lookup", "--config", config, "people", "tim@a.test"]);
    assert_eq!(status, 2);
}
