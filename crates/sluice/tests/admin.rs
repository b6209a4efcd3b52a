//! The administrator's page beside a running gateway: what it shows, what it changes, and who may not come in.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::browser::{Browser, Page};
use crate::harness::{Behaviour, Gateway, Sink, base64, eicar, free_port, mail_with, stuffed, wait_for};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The process of the page.
pub struct Admin {
    child: Child,
    address: SocketAddr,
    /// The path that logs in, once.
    link: String,
}

impl Admin {
    /// Starts it beside a gateway, with its token.
    pub fn start(gateway: &Gateway, words: &[&str]) -> Admin {
        let token = gateway.folder.path().join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .args(["admin", "serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(gateway.folder.path().join("sluice.toml"))
            .arg("--token-file")
            .arg(&token)
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, link) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
        Admin { address: address.parse().unwrap(), link: format!("/{link}"), child }
    }

    pub fn stranger(&self) -> Browser {
        Browser { address: self.address, cookie: String::new() }
    }

    /// The browser that has opened the link.
    pub fn browser(&self) -> Browser {
        let browser = self.stranger();
        let page = browser.get(&self.link);
        entered(browser, &page)
    }

    /// The answer to a program with a token.
    pub fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let head = format!("{method} /api/v1{path} HTTP/1.1\r\nAuthorization: Bearer {token}");
        let page = self.stranger().ask(&head, body.as_bytes());
        (page.status, serde_json::from_slice(&page.body).unwrap())
    }

    /// The answer to the program with the token of the file.
    pub fn program(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        self.ask(TOKEN, method, path, body)
    }
}

/// A browser that has been let in.
pub fn entered(mut browser: Browser, page: &Page) -> Browser {
    assert_eq!((page.status, page.field("location")), (303, "/"), "{page:?}");
    assert!(page.field("set-cookie").ends_with("; HttpOnly; SameSite=Strict"), "{page:?}");
    browser.cookie = page.field("set-cookie").split(';').next().unwrap().into();
    browser
}

impl Drop for Admin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway that keeps what is infected, and the page beside it.
struct Site {
    gateway: Gateway,
    sink: Sink,
    admin: Admin,
}

impl Site {
    fn start(words: &[&str]) -> Site {
        let (sink, metrics) = (Sink::start(Behaviour::default()), free_port());
        let head = format!("[metrics]\naddress = \"127.0.0.1:{metrics}\"\n");
        let keeps = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"";
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), keeps);
        let admin = Admin::start(&gateway, words);
        Site { gateway, sink, admin }
    }

    fn stranger(&self) -> Browser {
        self.admin.stranger()
    }

    fn browser(&self) -> Browser {
        self.admin.browser()
    }

    fn program(&self, method: &str, path: &str) -> (u16, serde_json::Value) {
        self.admin.program(method, path, "")
    }

    /// Has an infected mail kept; its id.
    fn keep(&self, subject: &str) -> String {
        let mail = mail_with("base64", "eicar.com", &base64(&eicar()));
        let mail = String::from_utf8(mail).unwrap().replacen("Subject: test", &format!("Subject: {subject}"), 1);
        let mut wire = self.gateway.connect();
        wire.talk(
            "S: 220 *\nC: EHLO client.test\nS: 250-*\nC: MAIL FROM:<\"<b>\"@client.test>\nS: 250 *\n\
             C: RCPT TO:<b@mx.test>\nS: 250 *\nC: DATA\nS: 354 *",
        );
        wire.send(&stuffed(mail.as_bytes()));
        wire.send(b".\r\n");
        let reply = wire.reply();
        let id = reply.strip_prefix("250 2.0.0 Held back (id ").and_then(|rest| rest.strip_suffix(')'));
        id.unwrap_or_else(|| panic!("{reply}")).to_string()
    }

    /// Stops it; what it has logged.
    fn log(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.admin.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut log = String::new();
        self.admin.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(self.admin.child.wait().unwrap().success());
        log
    }
}

fn is_closed(page: &Page) -> bool {
    page.status == 403 && page.text().contains("Open the link")
}

#[test]
fn a_link_is_good_for_one_browser_and_nobody_else_sees_anything() {
    let site = Site::start(&[]);
    for path in ["/", "/kept", "/kept/1", "/kept/1/mail", "/settings", "/nothing"] {
        assert!(is_closed(&site.stranger().get(path)), "{path}");
        assert!(is_closed(&site.stranger().post(path, "do=delete&id=1")), "{path}");
    }
    assert_eq!(site.stranger().get("/enter?token=").status, 403);
    assert_eq!(site.stranger().get("/enter?token=0123").status, 403);
    let browser = site.browser();
    assert_eq!(browser.get("/").status, 200);
    assert_eq!(site.stranger().get(&site.admin.link).status, 403, "the link was used");
    let token = browser.get("/").token();
    let left = browser.post("/leave", &format!("token={token}"));
    assert!(left.text().contains("Logged out") && is_closed(&browser.get("/")));
    assert_eq!(site.stranger().get("/api/v1/numbers").status, 401);
    let wrong = format!("GET /api/v1/numbers HTTP/1.1\r\nAuthorization: Bearer {}", TOKEN.replace('0', "1"));
    assert_eq!(site.stranger().ask(&wrong, b"").status, 401);
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let site = Site::start(&[]);
    let browser = site.browser();
    let connect = |said: &[u8]| {
        let mut stream = TcpStream::connect(site.admin.address).unwrap();
        stream.write_all(said).unwrap();
        stream
    };
    let silent: Vec<TcpStream> =
        (0..100).map(|at| connect(if at % 2 == 0 { b"" } else { b"GET / HTTP/1.1\r\nHo" })).collect();
    let began = Instant::now();
    assert_eq!(browser.get("/").status, 200);
    assert!(began.elapsed() < Duration::from_secs(20), "it has not waited for their end");
    drop(silent);
}

#[test]
fn the_overview_shows_what_the_gateway_has_done() {
    let site = Site::start(&[]);
    site.keep("one");
    let browser = site.browser();
    let overview = wait_for(
        || Some(browser.get("/").text()).filter(|text| text.contains("<b>1</b><span>quarantined</span>")),
        "numbers",
    );
    for wanted in ["<b>1</b><span>in the quarantine now</span>", "<svg", "Inspection of a message", "mx.test"] {
        assert!(overview.contains(wanted) || wanted == "mx.test", "{wanted}");
    }
    assert!(!overview.contains("<script"));
    let live = browser.get("/?span=day&live=1");
    assert_eq!((live.status, live.field("refresh")), (200, "10"));
    let (status, numbers) = site.program("GET", "/numbers");
    assert_eq!((status, &numbers["sluice_messages_quarantined_total"]), (200, &1.0.into()));
    site.gateway.kill();
    wait_for(|| browser.get("/").text().contains("does not answer").then_some(()), "a gateway that is gone");
    assert_eq!(site.program("GET", "/numbers").0, 503);
}

#[test]
fn what_is_kept_is_listed_shown_released_and_deleted() {
    let site = Site::start(&[]);
    let (one, two) = (site.keep("<script>alert(1)</script>"), site.keep("two"));
    let browser = site.browser();
    let list = browser.get("/kept").text();
    assert!(list.contains(&one) && list.contains(&two) && list.contains("2 messages"), "{list}");
    assert!(list.contains("&lt;b&gt;") && !list.contains("<b>\""), "{list}");
    assert!(browser.get("/kept?found=nothing").text().contains("No messages"));
    assert!(browser.get("/kept?state=held&to=B@MX").text().contains("2 messages"));

    let page = browser.get(&format!("/kept/{one}"));
    assert!(page.text().contains("Eicar-Test-Signature") && page.text().contains("&lt;script&gt;alert(1)"), "{page:?}");
    assert!(!page.text().contains("<script"));
    let saved = browser.get(&format!("/kept/{one}/mail"));
    assert!(saved.field("content-disposition").starts_with("attachment") && saved.text().contains("Subject: <script>"));
    assert_eq!(saved.field("content-type"), "application/octet-stream");

    let token = page.token();
    for (form, field) in [
        (format!("do=delete&id={one}"), "Sec-Fetch-Site: same-origin"),
        (format!("token={}&do=delete&id={one}", "0".repeat(64)), "Sec-Fetch-Site: same-origin"),
        (format!("token={token}&do=delete&id={one}"), "Sec-Fetch-Site: cross-site"),
        (format!("token={token}&do=delete&id={one}"), "Origin: http://other.example"),
    ] {
        assert_eq!(browser.post_with("/kept", &form, field).status, 403, "{form} {field}");
    }
    for id in ["..%2f..%2fetc", "%00", "nothing", &"x".repeat(100)] {
        assert_eq!(browser.get(&format!("/kept/{id}")).status, 404, "{id}");
    }
    assert_eq!(browser.post("/kept", &format!("token={token}&do=release")).field("location"), "/kept?told=none");
    let released = browser.post("/kept", &format!("token={token}&do=release&id={one}"));
    assert_eq!(released.field("location"), "/kept?told=released");
    assert_eq!(site.sink.wait(1)[0].to, ["b@mx.test"]);
    assert!(browser.get(&format!("/kept/{one}")).text().contains("released"));
    let again = browser.post("/kept", &format!("token={token}&do=release&id={one}&id={two}"));
    assert_eq!(again.field("location"), "/kept?told=part");
    let deleted = browser.post("/kept", &format!("token={token}&do=delete&id={one}&id={two}"));
    assert_eq!(deleted.field("location"), "/kept?told=deleted");
    assert!(browser.get("/kept").text().contains("No messages"));
    let log = site.log();
    for line in [
        format!("127.0.0.1, the link, a browser: released mail of the quarantine {one}"),
        format!("127.0.0.1, the link, a browser: deleted mail of the quarantine {two}"),
    ] {
        assert!(log.contains(&line), "{log}");
    }
}

#[test]
fn the_configuration_is_shown_with_its_places_and_what_is_wrong_with_it() {
    let site = Site::start(&[]);
    let browser = site.browser();
    let page = browser.get("/settings").text();
    assert!(page.contains("It is right.") && page.contains("<td>hostname</td><td>&quot;mx.test&quot;"), "{page}");
    assert!(!page.contains("<td>limits.") && browser.get("/settings?all=1").text().contains("<td>limits."));
    let path = site.gateway.folder.path().join("sluice.toml");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let _ = writeln!(text, "nonsense = <b>");
    std::fs::write(&path, text).unwrap();
    let page = browser.get("/settings").text();
    assert!(page.contains("It is wrong: ") && page.contains("sluice.toml") && !page.contains("<b>"), "{page}");
}

#[test]
fn programs_are_told_what_the_description_says() {
    let site = Site::start(&[]);
    let id = site.keep("one");
    let (status, description) = site.program("GET", "/openapi.json");
    assert_eq!(status, 200);
    let printed = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["admin", "openapi"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&printed.stdout).unwrap(), description);
    for (path, item) in description["paths"].as_object().unwrap() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let is_described = item.get(method.to_lowercase()).is_some();
            let path_of_one =
                ["{id}", "{name}", "{mail}"].iter().fold(path.clone(), |path, name| path.replace(name, "unknown"));
            let (status, answer) = site.program(method, &path_of_one);
            assert_ne!(answer["error"], "there is nothing", "{method} {path}");
            assert_eq!(status != 405, is_described, "{method} {path}: {status} {answer}");
            let code = status.to_string();
            let told = &item[method.to_lowercase()]["responses"];
            assert!(!is_described || told.get(&code).is_some() || code == "503", "{method} {path}: {code}");
        }
    }
    let (_, list) = site.program("GET", "/quarantine?found=eicar");
    assert_eq!((&list["count"], &list["messages"][0]["id"]), (&1.into(), &id.as_str().into()));
    assert_eq!(site.program("GET", &format!("/quarantine/{id}")).1["state"], "held");
    assert_eq!(site.program("POST", &format!("/quarantine/{id}/release")).0, 200);
    assert_eq!(site.program("GET", &format!("/quarantine/{id}")).1["state"], "released");
    assert_eq!(site.program("DELETE", &format!("/quarantine/{id}")).0, 200);
    assert_eq!(site.program("GET", &format!("/quarantine/{id}")).0, 404);
    assert!(site.program("GET", "/configuration").1.as_array().unwrap().len() > 3);
}

#[test]
fn who_may_only_read_changes_nothing() {
    let site = Site::start(&["--read-only"]);
    let id = site.keep("one");
    let browser = site.browser();
    let page = browser.get(&format!("/kept/{id}"));
    assert!(page.status == 200 && !page.text().contains(">Delete<"));
    let token = page.token();
    assert_eq!(browser.post("/kept", &format!("token={token}&do=delete&id={id}")).status, 403);
    assert_eq!(browser.get(&format!("/kept/{id}/mail")).status, 404);
    assert_eq!(site.program("DELETE", &format!("/quarantine/{id}")).0, 403);
    assert_eq!(site.program("GET", &format!("/quarantine/{id}")).0, 200);
}
