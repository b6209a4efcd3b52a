//! The administrator's page beside a gateway with a store: accounts, queue, domains, signatures, audit log, roles, logins.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::admin::{Admin, entered};
use crate::harness::browser::{Browser, Page};
use crate::harness::imap::ask;
use crate::harness::{Gateway, Wire, base64, free_port, stuffed, wait_for};
use crate::webmail::code;

pub struct Site {
    gateway: Gateway,
    imap: SocketAddr,
    pub admin: Admin,
    accounts: tempfile::TempDir,
}

/// A gateway with an account `ann@here.test`, whose next hop is not there.
pub fn start(words: &[&str]) -> Site {
    let accounts = tempfile::tempdir().unwrap();
    let path = accounts.path().join("accounts").display().to_string();
    sluice(&["account", "--accounts", &path, "add", "ann@here.test"], "secret");
    let (imap, dead, metrics) = (free_port(), free_port(), free_port());
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[metrics]\naddress = \"127.0.0.1:{metrics}\"\n\
         [dns]\nservers = [\"127.0.0.1:{dead}\"]\n[admin]\nfolder = \"FOLDER/admin\"\n\
         [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nimap = [\"127.0.0.1:{imap}\"]\n\
         relay = \"smtp://127.0.0.1:{dead}\"\naccounts = \"{path}\"\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nauth = \"any\"\n"
    ));
    let admin = Admin::start(&gateway, words);
    Site { gateway, imap: ([127, 0, 0, 1], imap).into(), admin, accounts }
}

fn sluice(words: &[&str], input: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Commands that read nothing may be over already.
    let _ = child.stdin.take().unwrap().write_all(format!("{input}\n").as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl Site {
    /// Runs a command of `sluice admin` with the gateway's configuration.
    pub fn command(&self, words: &[&str], input: &str) -> String {
        let config = self.gateway.folder.path().join("sluice.toml");
        sluice(&[&["admin"], words, &["--config", config.to_str().unwrap()]].concat(), input)
    }

    fn can_log_in(&self, name: &str, password: &str) -> bool {
        let mut wire = Wire::connect(self.imap);
        wire.line();
        ask(&mut wire, &format!("LOGIN {name} {password}")).status.starts_with("OK")
    }

    /// A mail that waits, since its next hop is not there.
    fn submit(&self, to: &str) {
        let mut wire = self.gateway.connect();
        let login = base64(b"\0ann@here.test\0secret");
        wire.talk(&format!(
            "S: 220 *\nC: EHLO client.test\nS: 250-*\nC: AUTH PLAIN {}\nS: 235 *\nC: MAIL FROM:<ann@here.test>\nS: 250 *\n\
             C: RCPT TO:<{to}>\nS: 250 *\nC: DATA\nS: 354 *",
            login.trim_end()
        ));
        wire.send(&stuffed(b"From: ann@here.test\r\nSubject: waits\r\n\r\nbody\r\n"));
        wire.send(b".\r\n");
        assert!(wire.reply().starts_with("250"));
    }

    /// The last changes, as text.
    pub fn audit(&self) -> String {
        self.admin.program("GET", "/audit", "").1.to_string()
    }
}

/// Sends a form with the token of the session.
pub fn send(browser: &Browser, path: &str, form: &str) -> Page {
    let token = browser.get("/you").token();
    browser.post(path, &format!("token={token}&{form}"))
}

#[test]
fn accounts_are_added_changed_disabled_and_removed() {
    let site = start(&[]);
    let browser = site.admin.browser();
    assert!(site.can_log_in("ann@here.test", "secret"));
    let list = wait_for(
        || Some(browser.get("/accounts").text()).filter(|page| page.contains(" UTC</bdi>")),
        "the login of ann on the page",
    );
    assert!(list.contains("<bdi>ann@here.test</bdi>") && list.contains("<bdi>enabled</bdi>"), "{list}");

    let bob = "do=add&name=Bob%40here.test&password=first-of-bob&quota=1.5&aliases=%40here.test+info%40here.test";
    let added = send(&browser, "/accounts", bob);
    assert_eq!((added.status, added.field("location")), (303, "/account?name=Bob@here.test&told=kept"), "{added:?}");
    let page = browser.get("/account?name=bob%40here.test").text();
    assert!(page.contains("<dd dir=\"auto\">1.5 MB</dd>") && page.contains("@here.test info@here.test"), "{page}");
    wait_for(|| site.can_log_in("bob@here.test", "first-of-bob").then_some(()), "the login of bob");
    assert!(send(&browser, "/accounts", bob).text().contains("is there already"));

    let made = send(&browser, "/accounts", "do=password&name=bob%40here.test&password=");
    let password = made.text().split("<pre dir=\"ltr\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    wait_for(|| site.can_log_in("bob@here.test", &password).then_some(()), "the login of bob");
    assert!(!site.can_log_in("bob@here.test", "first-of-bob"));
    assert_eq!(send(&browser, "/accounts", "do=set&name=bob%40here.test&quota=&aliases=").status, 303);
    assert!(browser.get("/account?name=bob%40here.test").text().contains("<dt>Quota</dt><dd dir=\"auto\">none</dd>"));

    assert_eq!(send(&browser, "/accounts", "do=disable&name=bob%40here.test").status, 303);
    wait_for(|| (!site.can_log_in("bob@here.test", &password)).then_some(()), "bob to be disabled");
    assert_eq!(send(&browser, "/accounts", "do=enable&name=bob%40here.test").status, 303);
    wait_for(|| site.can_log_in("bob@here.test", &password).then_some(()), "bob to be enabled");

    // A value that is none leaves all of them as they are.
    let patch = |aliases: &str| {
        let body = format!("{{\"quota_bytes\": 7000000, \"aliases\": [\"{aliases}\"], \"is_disabled\": true}}");
        site.admin.program("PATCH", "/accounts/bob@here.test", &body)
    };
    let (status, fault) = patch("not an address");
    assert_eq!(status, 400, "{fault}");
    let (_, bob) = site.admin.program("GET", "/accounts/bob@here.test", "");
    assert_eq!((bob["quota_bytes"].as_u64(), bob["is_disabled"].as_bool()), (Some(0), Some(false)), "{bob}");
    let (status, bob) = patch("b@here.test");
    assert_eq!((status, bob["quota_bytes"].as_u64(), bob["is_disabled"].as_bool()), (200, Some(7_000_000), Some(true)));
    assert_eq!(site.audit().matches("changed and disabled account").count(), 2, "one line each: {}", site.audit());

    let question = browser.get("/account/remove?name=bob%40here.test").text();
    assert!(
        question.contains("Remove <bdi>bob@here.test</bdi>?") && question.contains("value=\"remove\""),
        "{question}"
    );
    assert!(browser.get("/accounts").text().contains("bob@here.test"), "a question removes nothing");
    let removed = send(&browser, "/accounts", "do=remove&name=bob%40here.test");
    assert_eq!(removed.field("location"), "/accounts?told=removed");
    assert_eq!(browser.get("/account?name=bob%40here.test").status, 404);
    let audit = site.audit();
    for what in ["added account", "set password of account", "disabled account", "removed account"] {
        assert!(audit.contains(what), "{what}: {audit}");
    }
    assert!(!audit.contains(&password) && !audit.contains("first"), "{audit}");
}

#[test]
fn values_of_forms_become_no_lines_of_the_file_and_no_markup() {
    let site = start(&[]);
    let browser = site.admin.browser();
    let file = || std::fs::read_to_string(site.accounts.path().join("accounts")).unwrap();
    let before = file();
    for form in [
        "do=add&name=eve%0aroot%3a%3a&password=long-enough",
        "do=add&name=eve%3a%3aquota&password=long-enough",
        "do=add&name=%3cscript%3e+x&password=long-enough",
        "do=add&name=&password=long-enough",
        "do=add&name=eve&password=long-enough&quota=-1",
        "do=set&name=ann%40here.test&aliases=a%3db",
        "do=set&name=ann%40here.test&quota=1e400",
        "do=set&name=nobody&quota=1",
        "do=nothing&name=ann%40here.test",
    ] {
        let page = send(&browser, "/accounts", form);
        assert!((400..500).contains(&page.status) && !page.text().contains("<script"), "{form}: {page:?}");
        assert_eq!(file(), before, "{form}");
    }
    // A name with marks of HTML is one, and stays text.
    assert_eq!(send(&browser, "/accounts", "do=add&name=b%27%26amp&password=long-enough").status, 303);
    let page = browser.get("/accounts").text();
    assert!(page.contains("b&#39;&amp;amp") && page.contains("name=b%27%26amp\""), "{page}");
    let hostile = browser.get("/accounts?q=%22%3e%3cscript%3e").text();
    assert!(!hostile.contains("<script"), "{hostile}");
    assert_eq!(
        browser.post("/accounts", "do=remove&name=ann%40here.test").status,
        403,
        "without the token of the session"
    );
}

#[test]
fn mail_that_waits_is_listed_held_tried_and_deleted() {
    let site = start(&[]);
    let browser = site.admin.browser();
    site.submit("far@elsewhere.test");
    site.submit("other@world.test");
    let waits = || Some(browser.get("/queue").text()).filter(|page| page.contains("2 mails"));
    let page = wait_for(waits, "two mails");
    assert!(page.contains("far@elsewhere.test") && page.contains("ann@here.test"), "{page}");
    let narrowed = browser.get("/queue?domain=world.test&age=").text();
    assert!(narrowed.contains("1 mail.") && !narrowed.contains("far@"), "{narrowed}");
    assert!(browser.get("/queue?age=2d").text().contains("No mail waits"));
    assert_eq!(browser.get("/queue?age=soon").status, 400);

    let id = browser.get("/queue?domain=world.test").quoted("name=\"id\" value=\"");
    let held = send(&browser, "/queue", &format!("do=hold&id={id}"));
    assert_eq!(held.field("location"), "/queue?told=held", "{held:?}");
    assert!(browser.get("/queue?held=1").text().contains("1 mail."));
    let one = wait_for(
        || Some(browser.get(&format!("/queue/{id}")).text()).filter(|page| page.contains("<dd dir=\"auto\">held</dd>")),
        "a mail that is held",
    );
    assert!(one.contains("Recipients that do not have it yet") && one.contains("other@world.test"), "{one}");
    assert_eq!(send(&browser, "/queue", &format!("do=release&id={id}")).field("location"), "/queue?told=released");
    assert_eq!(send(&browser, "/queue", &format!("do=retry&id={id}")).field("location"), "/queue?told=retried");
    assert_eq!(send(&browser, "/queue", "do=delete").field("location"), "/queue?told=none");
    assert_eq!(send(&browser, "/queue", &format!("do=delete&id={id}")).field("location"), "/queue?told=deleted");
    assert_eq!(browser.get(&format!("/queue/{id}")).status, 404);
    assert_eq!(send(&browser, "/queue", &format!("do=delete&id={id}")).status, 404);
    let (_, list) = site.admin.program("GET", "/queue?recipient=far@elsewhere.test", "");
    let mail = list["mails"][0]["id"].to_string();
    assert_eq!(site.admin.program("POST", &format!("/queue/{mail}/bounce"), "").0, 200);
    // The notification to the sender is delivered here.
    wait_for(|| (site.admin.program("GET", "/queue", "").1["count"] == 0).then_some(()), "an empty queue");
}

#[test]
fn domains_have_records_and_states_and_keys_are_made() {
    let site = start(&[]);
    let browser = site.admin.browser();
    let list = browser.get("/domains").text();
    assert!(list.contains("here.test") && !list.contains("new.test"), "{list}");
    assert_eq!(send(&browser, "/domains", "domain=a%0ab").status, 400);
    let added = send(&browser, "/domains", "domain=New.test");
    assert_eq!(added.field("location"), "/domain?name=new.test", "{added:?}");
    let (status, check) = site.admin.program("GET", "/domains/new.test", "");
    let records = check["records"].as_array().unwrap();
    assert!(status == 200 && records.iter().any(|one| one["data"].as_str().unwrap().contains("v=DKIM1")), "{check}");
    assert!(records.iter().any(|one| one["type"] == "MX" && one["state"] == "no answer"), "{check}");
    assert!(site.audit().contains("added domain"));
}

#[test]
fn signatures_rules_and_certificates_are_told() {
    let site = start(&[]);
    let browser = site.admin.browser();
    let page = wait_for(
        || Some(browser.get("/rules").text()).filter(|page| !page.contains("not known")),
        "the numbers of the gateway",
    );
    for wanted in ["Signatures in force", "None: only the built-in test signatures", "no folder is set in [update]"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    assert_eq!(send(&browser, "/rules", "do=update").status, 404);
    assert_eq!(site.admin.program("GET", "/certificates", "").0, 200);
}

#[test]
fn a_role_has_its_rights_by_token_and_by_page_and_all_is_noted() {
    let site = start(&[]);
    let tokens: Vec<String> = ["reader", "helpdesk", "administrator"]
        .map(|role| site.command(&["token", "add", role, "--role", role], "").trim().to_owned())
        .into();
    let status =
        |token: usize, method: &str, path: &str, body: &str| site.admin.ask(&tokens[token], method, path, body).0;
    let password = ("PUT", "/accounts/ann@here.test/password", "{\"password\": \"other-words\"}");
    let quota = ("PATCH", "/accounts/ann@here.test", "{\"quota_bytes\": 1000000}");
    for ((method, path, body), wanted) in [
        (("GET", "/accounts", ""), [200, 200, 200]),
        (("GET", "/quarantine", ""), [200, 200, 200]),
        (("GET", "/queue", ""), [200, 403, 200]),
        (("GET", "/audit", ""), [200, 403, 200]),
        (("GET", "/configuration", ""), [200, 403, 200]),
        (("GET", "/rules", ""), [200, 403, 200]),
        (("GET", "/domains", ""), [200, 403, 200]),
        (password, [403, 200, 200]),
        (quota, [403, 403, 200]),
        (("POST", "/accounts", "{\"name\": \"x\"}"), [403, 403, 200]),
        (("POST", "/accounts", "{\"name\": \"y\", \"role\": 1}"), [400, 400, 400]),
        (("DELETE", "/accounts/x", ""), [403, 403, 200]),
        (("DELETE", "/queue/1", ""), [403, 403, 404]),
        (("POST", "/update", ""), [403, 403, 404]),
        (("POST", "/domains", "{\"domain\": \"a b\"}"), [400, 400, 400]),
    ] {
        let told = [0, 1, 2].map(|token| status(token, method, path, body));
        assert_eq!(told, wanted, "{method} {path}");
    }
    let file = std::fs::read_to_string(site.gateway.folder.path().join("admin/access")).unwrap();
    assert!(tokens.iter().all(|token| !file.contains(&token[7..])), "{file}");
    let audit = site.audit();
    assert!(audit.contains("\"who\":\"helpdesk\"") && audit.contains("\"is_program\":true"), "{audit}");
    assert!(!audit.contains("other-words"), "{audit}");
    site.command(&["token", "remove", "helpdesk"], "");
    assert_eq!(status(1, "GET", "/accounts", ""), 401);

    let mut people = Vec::new();
    for role in ["reader", "helpdesk"] {
        site.command(&["person", "add", role, "--role", role], "long enough");
        let stranger = site.admin.stranger();
        let page = stranger.post("/login", &format!("name={role}&password=long+enough&code="));
        people.push(entered(stranger, &page));
    }
    let [reader, helpdesk] = &people[..] else { unreachable!() };
    let page = reader.get("/account?name=ann%40here.test").text();
    assert!(
        page.contains("Last login") && !page.contains("value=\"password\"") && !page.contains("value=\"set\""),
        "{page}"
    );
    assert!(!reader.get("/queue").text().contains("value=\"delete\""));
    assert_eq!(reader.get("/account/remove?name=ann%40here.test").status, 403);
    assert_eq!(send(reader, "/accounts", "do=remove&name=ann%40here.test").status, 403);
    assert_eq!(helpdesk.get("/").field("location"), "/kept");
    let page = helpdesk.get("/account?name=ann%40here.test").text();
    assert!(
        page.contains("value=\"password\"") && !page.contains("value=\"set\"") && !page.contains("href=\"/queue\"")
    );
    for path in ["/queue", "/domains", "/rules", "/settings", "/changes", "/domain?name=here.test"] {
        assert_eq!(helpdesk.get(path).status, 403, "{path}");
    }
    assert_eq!(send(helpdesk, "/accounts", "do=set&name=ann%40here.test&quota=1").status, 403);
    assert!(reader.get("/changes").text().contains("set password of account"));
    site.command(&["person", "remove", "reader"], "");
    assert_eq!(reader.get("/").status, 403, "out at once");
}

#[test]
fn a_second_step_is_asked_for_and_its_codes_count_once() {
    let site = start(&[]);
    site.command(&["person", "add", "ann"], "long enough");
    let log_in =
        |code: &str| site.admin.stranger().post("/login", &format!("name=ann&password=long+enough&code={code}"));
    let browser = entered(site.admin.stranger(), &log_in(""));
    let page = browser.get("/you");
    let secret = page.quoted("name=\"secret\" value=\"");
    assert!(page.text().contains(&format!("otpauth://totp/Sluice%20mx.test:ann?secret={secret}&amp;")), "{page:?}");
    let wrong = send(&browser, "/you", &format!("do=begin&now=long+enough&secret={secret}&code=000000"));
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let first = code(&secret, 0);
    let form = format!("do=begin&secret={secret}&code={first}");
    assert_eq!(send(&browser, "/you", &form).status, 400, "a session alone is not enough");
    let begun = send(&browser, "/you", &(form + "&now=long+enough")).text();
    let codes: Vec<&str> =
        begun.split("<pre dir=\"ltr\">").nth(1).unwrap().split('<').next().unwrap().lines().collect();
    assert_eq!(codes.len(), 10, "{begun}");

    assert_eq!(log_in(&first).status, 403, "a replay");
    let asked = log_in("");
    assert!(asked.status == 200 && asked.text().contains("name=\"step\"") && asked.field("set-cookie").is_empty());
    let next = code(&secret, 1);
    let entered_by_code = log_in(&next);
    assert_eq!(entered_by_code.status, 303, "{entered_by_code:?}");
    assert_eq!(log_in(&next).status, 403, "a replay");
    assert_eq!(log_in(codes[3]).status, 303);
    assert_eq!(log_in(codes[3]).status, 403, "a recovery code counts once");
    let file = std::fs::read_to_string(site.gateway.folder.path().join("admin/access")).unwrap();
    assert!(codes.iter().all(|code| !file.contains(code)), "{file}");
    assert_eq!(send(&browser, "/you", "do=remove&code=111111").status, 400);
    site.command(&["person", "reset", "ann"], "");
    assert_eq!(log_in("").status, 303);
    assert!(site.audit().contains("set up the second step of"));
}

#[test]
fn an_update_is_begun_once_and_its_outcome_is_told() {
    let site = start(&[]);
    // The configuration of the page is that of its start: one with a folder has a page of its own.
    let path = site.gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let folder = site.gateway.folder.path().join("signatures");
    std::fs::create_dir(&folder).unwrap();
    let update = format!("[update]\nfolder = \"{}\"\nurls = [\"http://127.0.0.1:9/x.ndb\"]\n", folder.display());
    std::fs::write(&path, text.replacen("[store]", &format!("{update}[store]"), 1)).unwrap();
    let admin = Admin::start(&site.gateway, &[]);
    assert_eq!(admin.program("POST", "/update", "").0, 200);
    let told = wait_for(
        || {
            Some(admin.program("GET", "/rules", "").1["update"].clone())
                .filter(|told| told["run"]["is_running"] == false)
        },
        "the end of an update",
    );
    assert!(told["run"]["is_right"] == false && told["files"][0]["failures"] == 1, "{told}");
    assert!(told["run"]["output"].as_str().unwrap().contains("x.ndb"), "{told}");
}

#[test]
fn a_program_is_told_what_is_missing_and_what_is_wrong() {
    let site = start(&[]);
    let status = |method: &str, path: &str, body: &str| site.admin.program(method, path, body);
    for (method, path, body) in [
        ("PATCH", "/accounts/nobody", "{\"is_disabled\": true}"),
        ("PATCH", "/accounts/nobody", ""),
        ("DELETE", "/accounts/nobody", ""),
        ("PUT", "/accounts/nobody/password", "{\"password\": \"long enough\"}"),
        ("DELETE", "/accounts/ann@here.test/second", ""),
        ("DELETE", "/accounts/nobody/second", ""),
        ("DELETE", "/queue/9", ""),
        ("GET", "/nothing", ""),
    ] {
        let (status, answer) = status(method, path, body);
        assert_eq!(status, 404, "{method} {path}: {answer}");
    }
    for (method, path, body, wanted) in [
        ("PUT", "/accounts/ann@here.test/password", "{\"password\": \"seven77\"}", "8 characters"),
        ("PUT", "/accounts/ann@here.test/password", "{\"password\": \"line\\nfeed\"}", "control characters"),
        ("POST", "/accounts", "{\"name\": \"bob@here.test\", \"password\": \"x\"}", "8 characters"),
        ("POST", "/accounts", "{\"name\": \"ann@here.test\"}", "is there already"),
        ("GET", "/queue?age=soon", "", "age is"),
        ("GET", "/queue?held=2", "", "held is"),
        ("GET", "/quarantine?state=x", "", "state is"),
        ("GET", "/accounts?x=1", "", "\"x\""),
    ] {
        let (status, answer) = status(method, path, body);
        assert_eq!(status, 400, "{method} {path}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(wanted), "{method} {path}: {answer}");
    }
    assert!(site.can_log_in("ann@here.test", "secret"), "nothing was changed");
    let token = "Authorization: Bearer 0123456789abcdef0123456789abcdef";
    for (path, allowed) in
        [("/accounts", "GET, HEAD, POST"), ("/queue/1/hold", "POST"), ("/queue/1", "GET, HEAD, DELETE")]
    {
        let page = site.admin.stranger().ask(&format!("PUT /api/v1{path} HTTP/1.1\r\n{token}"), b"{}");
        assert_eq!((page.status, page.field("allow")), (405, allowed), "{page:?}");
    }
    let page = site.admin.stranger().ask(&format!("POST /api/v1/accounts HTTP/1.1\r\n{token}"), &vec![b' '; 3 << 20]);
    assert_eq!((page.status, page.field("content-type")), (413, "application/json"), "{page:?}");
    assert!(page.text().contains("65536 bytes"), "{page:?}");
    let page = site.admin.stranger().get("/api/v1/accounts");
    assert_eq!((page.status, page.field("www-authenticate")), (401, "Bearer"), "{page:?}");
}

#[test]
fn changes_by_commands_are_in_the_audit_log() {
    let site = start(&[]);
    let config = site.gateway.folder.path().join("sluice.toml").display().to_string();
    let run = |words: &[&str], input: &str| sluice(&[words, &["--config", &config]].concat(), input);
    let token = run(&["admin", "token", "add", "--role", "administrator", "backup"], "");
    run(&["admin", "person", "add", "carol"], "long enough");
    run(&["admin", "person", "passwd", "carol"], "longer than that");
    run(&["account", "add", "bob@here.test"], "secret of bob");
    run(&["account", "disable", "bob@here.test"], "");
    run(&["domain", "add", "here.test"], "");
    site.submit("x@away.test");
    run(&["queue", "hold", "--sender", "ann@here.test"], "");
    run(&["queue", "suppress", "add", "y@away.test"], "");
    run(&["admin", "person", "remove", "carol"], "");
    let refused = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["account", "remove", "nobody", "--config", &config])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    // What only looks is not noted.
    run(&["account", "list"], "");
    let (_, told) = site.admin.program("GET", "/audit", "");
    let lines = told["changes"].as_array().unwrap();
    let commands: Vec<_> = lines.iter().rev().filter(|line| line["from"] == "command line").collect();
    let pairs: Vec<(&str, &str)> =
        commands.iter().map(|line| (line["what"].as_str().unwrap(), line["on"].as_str().unwrap())).collect();
    assert_eq!(
        pairs,
        [
            ("added token of role administrator", "backup"),
            ("added person of role administrator", "carol"),
            ("set password of person", "carol"),
            ("added account", "bob@here.test"),
            ("disabled account", "bob@here.test"),
            ("added domain", "here.test"),
            ("held mail in the queue", "sender ann@here.test"),
            ("suppressed addresses", "y@away.test"),
            ("removed person", "carol"),
            ("removed account", "nobody"),
        ]
    );
    assert!(commands.last().unwrap()["failed"].as_str().unwrap().contains("no account nobody"));
    let all = told.to_string();
    assert!(!all.contains("long enough") && !all.contains("secret of bob") && !all.contains(token.trim()), "{all}");
    assert!(site.admin.browser().get("/changes").text().contains("a command"));
}
