//! The webmail of a gateway with a store: read, written and attacked by requests as browsers send them.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use crate::harness::browser::Browser;
use crate::harness::{Gateway, Wire, free_port, stuffed, wait_for};

/// A gateway with accounts `ann` and `bob`, whose relay is its own SMTP door.
pub struct Site {
    gateway: Gateway,
    accounts: tempfile::TempDir,
    webmail: SocketAddr,
}

fn add_account(accounts: &std::path::Path, words: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["account", "--accounts", accounts.to_str().unwrap()]).args(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    assert!(child.wait().unwrap().success());
}

impl Site {
    pub fn start(relay: bool) -> Site {
        Site::start_with(relay, "")
    }

    /// The same, with settings behind all others.
    pub fn start_with(relay: bool, settings: &str) -> Site {
        Site::start_in(relay, "", settings)
    }

    /// The same, with settings of the store, too.
    pub fn start_in(relay: bool, store: &str, settings: &str) -> Site {
        let accounts = tempfile::tempdir().unwrap();
        for name in ["ann", "bob"] {
            add_account(&accounts.path().join("accounts"), &["add", name]);
        }
        let (smtp, webmail) = (free_port(), free_port());
        let relay = if relay { format!("relay = \"smtp://127.0.0.1:{smtp}\"\n") } else { String::new() };
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\n{relay}{store}\
             accounts = \"{}/accounts\"\nwebmail = [\"127.0.0.1:{webmail}\"]\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:{smtp}\"\nforward = \"store:\"\n{settings}",
            accounts.path().display()
        ));
        Site { gateway, accounts, webmail: ([127, 0, 0, 1], webmail).into() }
    }

    /// Changes the accounts by a command.
    pub fn account(&self, words: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.args(["account", "--accounts"]).arg(self.accounts.path().join("accounts")).args(words);
        let output = output.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Sets the password of an account anew.
    pub fn change_password(&self, name: &str) {
        add_account(&self.accounts.path().join("accounts"), &["passwd", name]);
    }

    /// Runs a command with a configuration of the store: whether it succeeds, and its output.
    pub fn command(&self, words: &[&str]) -> (bool, String) {
        let folder = self.gateway.folder.path();
        let config = folder.join("command.toml");
        std::fs::write(&config, format!("[store]\nfolder = {:?}\n", folder.join("store"))).unwrap();
        let (first, rest) = words.split_first().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.args([first, "--config"]).arg(config).args(rest).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    pub fn browser(&self) -> Browser {
        Browser { address: self.webmail, cookie: String::new() }
    }

    /// A browser in which a user has logged in.
    pub fn user(&self, name: &str) -> Browser {
        let mut browser = self.browser();
        let page = browser.post("/login", &format!("name={name}&password=secret"));
        assert_eq!((page.status, page.field("location")), (303, "/"), "{page:?}");
        let cookie = page.field("set-cookie").to_owned();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("Secure"), "{cookie}");
        browser.cookie = cookie.split(';').next().unwrap().into();
        assert_eq!(browser.cookie.len(), "sluice=".len() + 64);
        browser
    }

    pub fn deliver(&self, to: &str, mail: &str) {
        self.deliver_from("eve@example.org", to, mail);
    }

    fn deliver_from(&self, from: &str, to: &str, mail: &str) {
        let mut wire = Wire::connect(self.gateway.addresses[0]);
        wire.talk(&format!(
            "S: 220 *\nC: HELO x\nS: 250 *\nC: MAIL FROM:<{from}>\nS: 250 *\nC: RCPT TO:<{to}@mx.test>\nS: 250 *\n\
             C: DATA\nS: 354 *"
        ));
        wire.send(&stuffed(mail.replace('\n', "\r\n").as_bytes()));
        wire.send(b".\r\n");
        assert!(wire.line().starts_with("250"));
    }
}

/// Where the messages of a user are.
pub trait Inbox {
    fn messages(&self) -> Vec<String>;
    fn inbox(&self) -> String;
}

impl Inbox for Browser {
    /// The pages of the messages in the inbox: their paths.
    fn messages(&self) -> Vec<String> {
        let (link, home) = (format!("href=\"{}/", self.inbox()), self.get("/").text());
        let paths = home.match_indices(&link).filter_map(|(at, _)| home[at + 6..].split('"').next());
        let mut paths: Vec<String> = paths.filter(|path| path.matches('/').count() == 3).map(str::to_owned).collect();
        paths.dedup();
        paths
    }

    fn inbox(&self) -> String {
        format!("/m/{}", self.get("/").quoted("href=\"/m/"))
    }
}

const MAIL: &str =
    "From: Eve <eve@example.org>\nTo: ann@mx.test\nSubject: Hello\nMessage-ID: <1@example.org>\n\nA first line\n";

#[test]
fn pages_are_in_the_language_of_the_browser_until_the_user_sets_one() {
    let site = Site::start(false);
    let german = "Accept-Language: pt, de-AT;q=0.9, en;q=0.8";
    let stranger = site.browser();
    let login = stranger.ask(&format!("GET /login HTTP/1.1\r\n{german}"), b"").text();
    assert!(login.contains("<html lang=\"de\" dir=\"ltr\">") && login.contains(">Anmelden</button>"), "{login}");
    let wrong = stranger.post_with("/login", "name=ann&password=x", german).text();
    assert!(wrong.contains("Der Name oder das Passwort ist falsch."), "{wrong}");
    let ann = site.user("ann");
    let home = |browser: &Browser| browser.ask(&format!("GET / HTTP/1.1\r\n{german}"), b"").text();
    assert!(home(&ann).contains("<bdi>Posteingang</bdi>"), "{}", home(&ann));
    let kept = ann.post("/settings", &format!("rows=50&zone=0&language=ar&token={}", ann.get("/").token()));
    assert_eq!(kept.status, 303);
    for browser in [&ann, &site.user("ann")] {
        let page = home(browser);
        assert!(page.contains("<html lang=\"ar\" dir=\"rtl\">") && page.contains("البريد الوارد"), "{page}");
    }
    assert!(home(&site.user("bob")).contains("<html lang=\"de\""), "a setting is its user's alone");
}

#[test]
fn a_user_logs_in_reads_and_logs_out_and_others_see_nothing() {
    let site = Site::start(false);
    site.deliver("ann", MAIL);
    let stranger = site.browser();
    for path in ["/m/1", "/write", "/settings", "/nothing"] {
        let page = stranger.get(path);
        assert_eq!((page.status, page.field("location")), (303, "/login"), "{path}");
    }
    let login = stranger.get("/");
    assert!(login.text().contains("name=\"password\"") && login.field("cache-control") == "no-store");
    let (wrong, nobody) =
        (stranger.post("/login", "name=ann&password=x"), stranger.post("/login", "name=eve&password=x"));
    assert_eq!(
        (wrong.status, wrong.text().replace("ann", "eve")),
        (nobody.status, nobody.text()),
        "names are not told"
    );
    assert!(wrong.text().contains("The name or the password is wrong."), "{}", wrong.text());
    assert!(!wrong.fields.contains_key("set-cookie"));
    let foreign = stranger.post_with("/login", "name=ann&password=secret", "Sec-Fetch-Site: cross-site");
    assert!(foreign.status == 403 && !foreign.fields.contains_key("set-cookie"), "nobody is logged in by another site");

    let ann = site.user("ann");
    let messages = ann.messages();
    assert_eq!(messages.len(), 1, "{}", ann.get("/").text());
    let read = ann.get(&messages[0]);
    assert!(read.text().contains("A first line") && read.text().contains("<bdi>Hello</bdi>"), "{}", read.text());
    let policy = read.field("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!((read.field("x-content-type-options"), read.field("referrer-policy")), ("nosniff", "no-referrer"));
    let source = ann.get(&format!("{}/source", messages[0]));
    assert!(
        source.text().contains("Message-ID: <1@example.org>\r\n")
            && source.field("content-type").starts_with("text/plain")
    );
    assert!(ann.ask("HEAD / HTTP/1.1", b"").body.is_empty());
    assert_eq!(ann.ask("DELETE / HTTP/1.1", b"").status, 405);

    // A cookie that is not whole, and one of nobody.
    let guessed = Browser { cookie: format!("sluice={}", "0".repeat(64)), ..site.browser() };
    assert_eq!(guessed.get(&messages[0]).status, 303);
    let out = ann.post("/logout", &format!("token={}", read.token()));
    assert!(out.field("set-cookie").contains("Max-Age=0") && out.field("location") == "/login", "{out:?}");
    assert_eq!(ann.get(&messages[0]).status, 303, "the session is over on this side, too");
}

#[test]
fn forms_of_others_are_refused_and_numbers_of_others_are_not_there() {
    let site = Site::start(false);
    site.deliver("ann", MAIL);
    let (ann, bob) = (site.user("ann"), site.user("bob"));
    let (mail, token, inbox) = (ann.messages().remove(0), ann.get("/").token(), ann.inbox());
    let (folder, uid) = mail.strip_prefix("/m/").unwrap().split_once('/').unwrap();
    for suffix in ["", "/source", "/part/1", "/html/1"] {
        assert_eq!(bob.get(&format!("{mail}{suffix}")).status, 404, "{suffix}");
    }
    assert_eq!(bob.get(&inbox).status, 404);
    let bobs = bob.get("/").token();
    let act =
        |token: &str, what: &str| format!("token={token}&at={folder}.{uid}&back=/m/{folder}&to={folder}&do={what}");
    for what in ["delete", "flag", "move", "seen"] {
        bob.post("/act", &act(&bobs, what));
    }
    bob.post("/folders", &format!("token={bobs}&folder={folder}&do=delete&sure=1"));
    bob.post("/folders", &format!("token={bobs}&folder={folder}&name=x&do=rename"));
    for (token, field) in [
        ("", "Sec-Fetch-Site: same-origin"),
        (bobs.as_str(), "Sec-Fetch-Site: same-origin"),
        (token.as_str(), "Sec-Fetch-Site: cross-site"),
        (token.as_str(), "Origin: http://evil.example"),
    ] {
        assert_eq!(ann.post_with("/act", &act(token, "delete"), field).status, 403, "{token} {field}");
    }
    assert_eq!(ann.messages(), std::slice::from_ref(&mail), "nobody has touched it");
    assert_eq!(ann.post("/act", &act(&token, "delete")).status, 303);
    assert!(ann.messages().is_empty());
}

#[test]
fn a_mail_is_written_with_files_inspected_and_read_by_another_user() {
    let site = Site::start(true);
    let (ann, bob) = (site.user("ann"), site.user("bob"));
    let token = ann.get("/write").token();
    let file: Vec<u8> = (0..200_000u32).map(|at| (at * 7) as u8).collect();
    let fields = [
        ("token", token.as_str()),
        ("from", "ann@mx.test"),
        ("to", "Bob <bob@mx.test>"),
        ("bcc", "ann@mx.test"),
        ("subject", "Gr\u{fc}\u{df}e\r\nX-Evil: 1"),
        ("text", "Dear Bob,\r\n\r\nsee the file."),
        ("do", "send"),
    ];
    let sent = ann.upload("/write", &fields, &[("file", "d\u{e4}ta.bin", &file)]);
    assert_eq!((sent.status, sent.field("location")), (303, "/?told=sent"), "{}", sent.text());
    let mail = wait_for(|| bob.messages().pop(), "the mail at its recipient");
    let page = bob.get(&mail);
    assert!(page.text().contains("see the file.") && page.text().contains("Gr\u{fc}\u{df}e"), "{}", page.text());
    let source = bob.get(&format!("{mail}/source")).text();
    assert!(!source.contains("\nX-Evil") && !source.contains("Bcc"), "{source}");
    let part = format!("{mail}/part/{}", page.quoted(&format!("href=\"{mail}/part/")));
    let got = bob.get(&part);
    assert_eq!(got.field("content-disposition"), "attachment; filename*=UTF-8''d%C3%A4ta.bin");
    assert_eq!((got.field("content-type"), got.body == file), ("application/octet-stream", true));
    wait_for(|| ann.messages().pop(), "the blind copy");

    // Answered: to the sender, with the text quoted, and the message is marked.
    let place = mail.strip_prefix("/m/").unwrap().replace('/', ".");
    let form = bob.get(&format!("/write?reply={place}"));
    assert!(form.text().contains("ann@mx.test") && form.text().contains("&gt; see the file."), "{}", form.text());
    let forward = bob.get(&format!("/write?forward={place}"));
    assert!(forward.text().contains("name=\"keep\""), "{}", forward.text());
    let kept = forward.quoted("name=\"keep\" checked value=\"");
    let token = forward.token();
    let fields = [
        ("token", token.as_str()),
        ("from", "bob@mx.test"),
        ("to", "ann@mx.test"),
        ("subject", "Fwd"),
        ("keep", &kept),
        ("answers", &place),
        ("do", "send"),
    ];
    let before = ann.messages().len();
    assert_eq!(bob.upload("/write", &fields, &[]).field("location"), "/?told=sent");
    let forwarded = wait_for(|| Some(ann.messages()).filter(|all| all.len() > before), "the forward").remove(0);
    let part = ann.get(&forwarded).quoted(&format!("href=\"{forwarded}/part/"));
    assert_eq!(ann.get(&format!("{forwarded}/part/{part}")).body, file);
}

#[test]
fn malware_that_a_user_sends_goes_nowhere_and_is_told() {
    let site = Site::start(true);
    let (ann, bob) = (site.user("ann"), site.user("bob"));
    let token = ann.get("/write").token();
    let fields =
        [("token", token.as_str()), ("from", "ann@mx.test"), ("to", "bob@mx.test"), ("subject", "x"), ("do", "send")];
    let eicar = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"].concat();
    let sent = ann.upload("/write", &fields, &[("file", "a.com", eicar.as_bytes())]);
    assert_eq!((sent.status, sent.field("location")), (303, "/?told=sent"), "{}", sent.text());
    let notice = wait_for(|| ann.messages().pop(), "what became of it");
    let source = ann.get(&format!("{notice}/source")).text();
    assert!(source.contains("Status: 5.7.1") && source.contains("it is not sent, since it holds Eicar"), "{source}");
    assert!(bob.messages().is_empty());
}

#[test]
fn without_a_relay_mail_goes_to_users_of_this_server_alone() {
    let site = Site::start(false);
    let (ann, bob) = (site.user("ann"), site.user("bob"));
    let token = ann.get("/write").token();
    let form = |what: &str| format!("token={token}&from=ann%40mx.test&to=bob%40far.test&subject=s&text=t&do={what}");
    let refused = ann.post("/write", &form("send"));
    assert!(refused.status == 400 && refused.text().contains("nobody who sends mail"), "{}", refused.text());
    let wrong = ann.post("/write", &form("send").replace("ann%40", "bob%40"));
    assert!(wrong.text().contains("You cannot write from this address."), "{}", wrong.text());
    let saved = ann.post("/write", &form("draft"));
    let draft = saved.field("location").to_owned();
    assert!(saved.status == 303 && draft.starts_with("/write?draft="), "{saved:?}");
    assert!(ann.get(&draft).text().contains("value=\"bob@far.test\""), "{}", ann.get(&draft).text());
    // Another draft takes its place.
    let place = draft.strip_prefix("/write?draft=").unwrap().split('&').next().unwrap();
    let again = ann.post("/write", &format!("{}&draft={place}", form("draft")));
    assert_ne!(again.field("location"), draft);
    assert_eq!(ann.get(&draft).text().matches("value=\"bob@far.test\"").count(), 0);
    let sent = ann.post("/write", &form("send").replace("far.test", "mx.test"));
    assert_eq!((sent.status, sent.field("location")), (303, "/?told=sent"), "{}", sent.text());
    wait_for(|| bob.messages().pop(), "the mail of a user of this server");
}

#[test]
fn hostile_mail_is_text_on_every_page() {
    let site = Site::start(false);
    let evil = "\"><script>alert(1)</script><img src=x onerror=alert(2)>";
    site.deliver(
        "ann",
        &format!(
            "From: \"{0}\" <eve@example.org>\nTo: \"{0}\" <ann@mx.test>\nCc: {0}\nSubject: {0}\nReply-To: \"{0}\" <r@example.org>\n\
             MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
             --b\nContent-Type: text/html\n\n<p onclick=alert(3)>Hi {0}<svg onload=alert(4)><a href=\"javascript:alert(5)\">x</a>\
             <img src=\"http://evil.example/t.gif\"><form action=http://evil.example><input></form>\n\
             --b\nContent-Type: text/html; name=\"{1}\"\nContent-Disposition: attachment; filename=\"{1}\"\n\n<script>alert(6)</script>\n--b--\n",
            evil.replace('"', "\\\""),
            "a<script>alert(7)<script>.html\\r\\nSet-Cookie: a=b",
        ),
    );
    let ann = site.user("ann");
    let mail = ann.messages().remove(0);
    let place = mail.strip_prefix("/m/").unwrap().replace('/', ".");
    let part = ann.get(&mail).quoted(&format!("href=\"{mail}/part/"));
    let html = ann.get(&mail).quoted(&format!("src=\"{mail}/html/"));
    let query = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    for path in [
        "/".into(),
        mail.clone(),
        format!("{mail}?as=text"),
        format!("{mail}/html/{html}"),
        format!("/write?reply={place}"),
        format!("/write?all={place}"),
        format!("/write?forward={place}"),
        format!("/write?to={query}&subject={query}"),
        format!("/search?q={query}"),
        format!("/?told={query}"),
        format!("/{query}"),
        format!("/m/{query}"),
    ] {
        let page = ann.get(&path);
        let text = page.text().to_lowercase();
        for markup in ["<script", "<img src", "<svg", "javascript:", "<form action=http://evil", "src=\"http"] {
            assert!(!text.contains(markup), "{markup} on {path}: {text}");
        }
        assert!(!page.field("content-security-policy").contains("script-src"), "{path}");
    }
    let frame = ann.get(&format!("{mail}/html/{html}"));
    assert!(frame.field("content-security-policy").contains("sandbox allow-popups"), "{frame:?}");
    let file = ann.get(&format!("{mail}/part/{part}"));
    assert_eq!(file.field("content-type"), "application/octet-stream", "its type is not that of the mail");
    assert!(!file.fields.contains_key("set-cookie") && file.field("content-disposition").starts_with("attachment;"));
}

#[test]
fn requests_are_bounded_and_a_session_ends_with_its_password() {
    let site = Site::start(false);
    let stranger = site.browser();
    let large = format!("name=ann&password=secret&x={}", "x".repeat(20_000));
    assert_eq!(stranger.post("/login", &large).status, 413);
    let ann = site.user("ann");
    assert_eq!(ann.get(&format!("/search?q={}", "x".repeat(9_000))).status, 414);
    let token = ann.get("/").token();
    for form in ["do=create&name=Work", "do=create&name=Work", "do=create&name=a%0Ab", "do=create&name=INBOX"] {
        ann.post("/folders", &format!("token={token}&{form}"));
    }
    let folders = ann.get("/folders").text();
    assert!(folders.contains("<bdi>Work</bdi>"), "{folders}");
    // Smuggled and split requests are refused by their framing.
    let mut wire = Wire::connect(site.webmail);
    wire.send(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert!(wire.line().starts_with("HTTP/1.1 400"));
    site.change_password("ann");
    wait_for(|| (ann.get("/settings").status == 303).then_some(()), "the end of the session");
}

#[test]
fn what_the_relay_refuses_comes_back_to_its_writer() {
    let site = Site::start(true);
    let ann = site.user("ann");
    let token = ann.get("/write").token();
    let form = format!("token={token}&from=ann%40mx.test&to=nobody%40mx.test&subject=s&text=t&do=send");
    assert_eq!(ann.post("/write", &form).field("location"), "/?told=sent");
    let notice = wait_for(|| ann.messages().pop(), "the notice");
    let text = ann.get(&notice).text();
    assert!(
        text.contains("Your mail could not be delivered to:")
            && text.contains(">nobody@mx.test</a>\n  550 5.1.1 No such user"),
        "{text}"
    );
    assert!(!site.gateway.log().contains("secret"), "no password is logged");
}

/// The code that a device shows for a secret, so many steps from now.
pub fn code(secret: &str, steps: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let script = "import base64,hashlib,hmac,struct,sys\n\
        key=base64.b32decode(sys.argv[1])\n\
        h=hmac.new(key,struct.pack('>Q',int(sys.argv[2])),hashlib.sha1).digest()\n\
        o=h[19]&15\n\
        print('%06d'%((struct.unpack('>I',h[o:o+4])[0]&0x7fffffff)%1000000))";
    let step = (i64::try_from(now / 30).unwrap() + steps).to_string();
    let output = Command::new("python3").args(["-c", script, secret, &step]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().into()
}

#[test]
fn sessions_are_listed_and_ended_by_their_user_alone() {
    let site = Site::start(false);
    let (ann, other, bob) = (site.user("ann"), site.user("ann"), site.user("bob"));
    let page = ann.get("/sessions");
    let text = page.text();
    assert!(text.contains("127.0.0.1") && text.matches("This browser").count() == 1, "{text}");
    let id = page.quoted("name=\"end\" value=\"");
    assert!(id.len() == 16 && !other.cookie.contains(&id), "nobody gets in by what is shown");
    bob.post("/sessions", &format!("token={}&end={id}", bob.get("/").token()));
    bob.post("/sessions", &format!("token={}&end=others", bob.get("/").token()));
    assert_eq!(other.get("/settings").status, 200, "bob has ended nothing of ann's");
    assert_eq!(ann.post("/sessions", &format!("end={id}")).status, 403);
    assert_eq!(ann.post("/sessions", &format!("token={}&end={id}", page.token())).status, 303);
    let alive = [&ann, &other, &bob].map(|browser| browser.get("/settings").status);
    assert_eq!(alive, [200, 303, 200]);
}

#[test]
fn conversations_are_rows_of_the_list_and_are_acted_on_as_one() {
    let site = Site::start(false);
    for (id, refers) in [("1@x", ""), ("2@x", ""), ("3@x", "References: <1@x>\n")] {
        site.deliver("ann", &format!("From: eve@example.org\nSubject: About\nMessage-ID: <{id}>\n{refers}\nText\n"));
    }
    let ann = site.user("ann");
    assert_eq!(ann.messages().len(), 3);
    let token = ann.get("/").token();
    ann.post("/settings", &format!("token={token}&rows=50&zone=0&view=threaded"));
    let (inbox, list) = (ann.inbox(), ann.get("/").text());
    assert!(list.contains(&format!("href=\"{inbox}/3/conversation\"")), "{list}");
    assert!(list.contains(&format!("href=\"{inbox}/2\"")) && !list.contains(&format!("href=\"{inbox}/1\"")), "{list}");
    let page = ann.get(&format!("{inbox}/3/conversation")).text();
    assert!(
        page.contains(&format!("href=\"{inbox}/1?back=")) && page.contains(&format!("href=\"{inbox}/3?back=")),
        "{page}"
    );
    assert_eq!(site.user("bob").get(&format!("{inbox}/3/conversation")).status, 404);
    let folder = inbox.strip_prefix("/m/").unwrap();
    ann.post("/act", &format!("token={token}&all={folder}.3&back=/m/{folder}&do=junk"));
    let (inbox_after, junk) = (ann.get("/").text(), ann.get("/folders").text());
    assert!(inbox_after.contains("1 message, ") && junk.contains("Folders"), "{inbox_after}");
}

#[test]
fn filters_of_the_form_file_mail_and_answer_it() {
    let site = Site::start(true);
    let (ann, bob) = (site.user("ann"), site.user("bob"));
    let settings = ann.get("/settings");
    assert!(settings.text().contains("href=\"/filters\"") && settings.text().contains("href=\"/vacation\""));
    let token = settings.token();
    ann.post("/folders", &format!("token={token}&do=create&name=Bills+%26+%C3%A4"));
    let rule = "name=Bills&match=all&field1=subject&how1=contains&value1=invoice&field2=from&how2=lacks&value2=nobody";
    let form = format!("token={token}&{rule}&place=/Bills+%26+%C3%A4&flagged=on");
    let kept = ann.post("/filters/rule", &form);
    assert_eq!((kept.status, kept.field("location")), (303, "/filters?told=kept"), "{}", kept.text());
    let away = format!("token={token}&on=1&from=2020-01-01&until=2999-12-31&subject=Away&text=I+am+away.%0D%0ABye");
    assert_eq!(ann.post("/vacation", &away).status, 303);
    site.deliver_from(
        "bob@mx.test",
        "ann",
        "From: bob@mx.test\nTo: ann@mx.test\nSubject: An invoice\nMessage-ID: <1@x>\n\nx\n",
    );
    let answer = wait_for(|| bob.messages().pop(), "the answer");
    let text = bob.get(&answer).text();
    assert!(text.contains("<bdi>Away</bdi>") && text.contains("I am away.\nBye"), "{text}");
    let found = ann.get("/search?q=subject:invoice").text();
    assert!(found.contains("Bills &amp; \u{e4}</bdi>") && found.contains("title=\"flagged\""), "{found}");
    // A script is checked before it is kept, and one that is not the form's is left alone by it.
    let wrong = ann.post("/filters/text", &format!("token={token}&text=fileinto+%3Cb%3E"));
    assert!(wrong.status == 400 && wrong.text().contains("role=\"alert\""), "{}", wrong.text());
    assert!(ann.get("/filters").text().contains("Bills"));
    assert_eq!(ann.post("/filters/text", &format!("token={token}&text=discard%3B")).status, 303);
    assert!(ann.get("/filters").text().contains("a text that this form does not know"));
    assert_eq!(ann.post("/filters/rule", &form).status, 404);
    assert!(bob.get("/filters").text().contains("No rules here."), "and others have their own");
}

#[test]
fn a_name_of_an_address_is_the_same_by_jmap() {
    let site = Site::start(false);
    let ann = site.user("ann");
    let form = format!("token={}&address=ann%40mx.test&name=Ann+B.&signature=Bye", ann.get("/identities").token());
    assert_eq!(ann.post("/identities", &form).field("location"), "/identities?told=kept");
    assert!(
        ann.get("/write").text().contains("&quot;Ann B.&quot; &lt;ann@mx.test&gt;"),
        "{}",
        ann.get("/write").text()
    );
    let login = crate::harness::base64(b"ann:secret");
    let head =
        format!("POST /jmap/api HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Basic {}", login.trim());
    let account =
        site.browser().ask(&head.replace("POST /jmap/api", "GET /jmap/session"), b"").quoted("\"accounts\":{\"");
    let call = format!(
        "{{\"using\":[\"urn:ietf:params:jmap:core\",\"urn:ietf:params:jmap:submission\"],\"methodCalls\":\
         [[\"Identity/get\",{{\"accountId\":\"{account}\",\"ids\":null}},\"0\"]]}}"
    );
    let text = site.browser().ask(&head, call.as_bytes()).text();
    assert!(text.contains("\"name\":\"Ann B.\"") && text.contains("\"textSignature\":\"Bye\""), "{text}");
}

#[test]
fn pages_do_not_wait_for_guesses_at_the_second_step() {
    let site = Site::start(false);
    let ann = site.user("ann");
    let form = format!("token={}&do=begin&secret=x&code=1&password=x", ann.get("/second").token());
    let head = format!(
        "POST /second HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
        site.webmail,
        ann.cookie,
        form.len()
    );
    let guesses: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut guess = TcpStream::connect(site.webmail).unwrap();
            guess.write_all(head.as_bytes()).unwrap();
            guess.set_nonblocking(true).unwrap();
            guess
        })
        .collect();
    let answered = || guesses.iter().filter(|guess| guess.peek(&mut [0]).is_ok()).count();
    wait_for(|| (answered() > 0).then_some(()), "the first answer");
    assert_eq!(ann.get("/settings").status, 200);
    assert!(answered() < 4, "the page has waited behind guesses");
}

#[test]
fn a_browser_is_listed_without_what_nobody_sees() {
    let site = Site::start(false);
    let agent = "User-Agent: Mine \u{202e}\u{2066}<b>\u{e0041}!";
    let page = site.browser().post_with("/login", "name=ann&password=secret", agent);
    let cookie = page.field("set-cookie").split(';').next().unwrap().into();
    let text = Browser { cookie, ..site.browser() }.get("/sessions").text();
    assert!(text.contains("127.0.0.1 Mine &lt;b&gt;!</bdi>"), "{text}");
}

#[test]
fn a_second_step_is_asked_for_once_its_code_is_shown_and_closes_other_doors() {
    let site = Site::start(false);
    let ann = site.user("ann");
    assert!(ann.get("/settings").text().contains("href=\"/second\""));
    let page = ann.get("/second");
    let (secret, token) = (page.quoted("name=\"secret\" value=\""), page.token());
    assert!(page.text().contains(&format!("otpauth://totp/mx.test:ann?secret={secret}&amp;")), "{page:?}");
    let begin_with = |password: &str, code: &str| {
        let form = format!("token={token}&do=begin&secret={secret}&code={code}&password={password}&programs=closed");
        ann.post("/second", &form)
    };
    let begin = |code: &str| begin_with("secret", code);
    assert_eq!(begin("000000").status, 400);
    let first = code(&secret, 0);
    let other = site.user("ann");
    let wrong = begin_with("x", &first);
    assert!(wrong.status == 400 && wrong.text().contains("The password is wrong."), "{wrong:?}");
    assert_eq!(other.get("/settings").status, 200);
    let begun = begin(&first).text();
    assert_eq!(other.get("/settings").field("location"), "/login", "sessions in other browsers end");
    assert_eq!(ann.get("/settings").status, 200);
    let codes: Vec<&str> =
        begun.split("<pre dir=\"ltr\">").nth(1).unwrap().split('<').next().unwrap().lines().collect();
    assert_eq!(codes.len(), 10, "{begun}");
    assert_eq!(begin(&code(&secret, 1)).status, 400, "it is set up already");

    let log_in = |code: &str| {
        let page = site.browser().post("/login", "name=ann&password=secret");
        if code.is_empty() {
            return page;
        }
        let step = page.quoted("name=\"step\" value=\"");
        site.browser().post("/login", &format!("name=ann&step={step}&code={code}"))
    };
    let asked = log_in("");
    assert!(asked.status == 200 && asked.text().contains("name=\"code\"") && asked.field("set-cookie").is_empty());
    assert_eq!(site.browser().post("/login", "name=bob&password=secret").status, 303, "others log in as before");
    assert_eq!(log_in(codes[0]).status, 303);
    assert!(log_in(codes[0]).text().contains("code is wrong"), "a recovery code counts once");
    // JMAP is another door of the same socket, and knows no codes.
    let jmap = |name: &str| {
        let login = crate::harness::base64(format!("{name}:secret").as_bytes());
        site.browser().ask(&format!("GET /jmap/session HTTP/1.1\r\nAuthorization: Basic {}", login.trim()), b"").status
    };
    assert_eq!((jmap("ann"), jmap("bob")), (401, 200));
    let end = |code: &str| ann.post("/second", &format!("token={token}&do=end&code={code}"));
    assert_eq!(end(codes[0]).status, 400);
    assert_eq!(end(codes[1]).field("location"), "/second?told=kept");
    assert_eq!(log_in("").status, 303);
    assert_eq!(jmap("ann"), 200);
}

#[test]
fn an_app_password_lets_a_program_in_by_its_protocols_until_it_is_withdrawn() {
    let imap = free_port();
    let site = Site::start_in(false, &format!("imap = [\"127.0.0.1:{imap}\"]\n"), "");
    let ann = site.user("ann");
    let token = ann.get("/app-passwords").token();
    let add = |own: &str, more: &str| {
        ann.post("/app-passwords", &format!("token={token}&do=add&password={own}&name=My+%3Cphone%3E{more}"))
    };
    assert!(add("x", "&door=jmap").text().contains("The password is wrong."));
    assert_eq!((add("secret", "").status, add("secret", "&door=webmail").status), (400, 400));
    let made = add("secret", "&door=jmap&door=submission").text();
    let password = made.split("<pre dir=\"ltr\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert_eq!(password.len(), 20, "{made}");
    let list = ann.get("/app-passwords").text();
    assert!(
        list.contains("My &lt;phone&gt;") && list.contains("SMTP, JMAP</p>") && list.contains("not used yet"),
        "{list}"
    );
    assert!(!list.contains(&password), "it is shown once");

    let jmap = |name: &str, password: &str| {
        let login = crate::harness::base64(format!("{name}:{password}").as_bytes());
        site.browser().ask(&format!("GET /jmap/session HTTP/1.1\r\nAuthorization: Basic {}", login.trim()), b"").status
    };
    let imap = |password: &str| {
        let mut wire = Wire::connect(([127, 0, 0, 1], imap).into());
        wire.line();
        wire.send(format!("a LOGIN ann {password}\r\n").as_bytes());
        wire.line()
    };
    assert_eq!((jmap("ann", &password), jmap("bob", &password), jmap("ann", &password[1..])), (200, 401, 401));
    assert!(imap(&password).starts_with("a NO"), "it is for other protocols");
    let login = site.browser().post("/login", &format!("name=ann&password={password}"));
    assert!(login.text().contains("password is wrong") && login.field("set-cookie").is_empty(), "not for pages");
    assert!(add(&password, "&door=imap").text().contains("The password is wrong."), "it makes no others");

    // An administrator's, for all protocols.
    let sluice = |words: &[&str]| site.command(&[&["account", "app-password"], words].concat());
    let (done, printed) = sluice(&["add", "ann", "Laptop"]);
    let other = printed.strip_prefix("password ").map(str::trim).unwrap_or_else(|| panic!("{done} {printed}"));
    assert!(imap(other).starts_with("a OK"));
    assert!(!sluice(&["add", "nobody", "x"]).0 && !sluice(&["add", "ann", "x", "--protocol", "webmail"]).0);
    let used = || {
        Some(sluice(&["list", "ann"]).1)
            .filter(|list| list.matches(" jmap").count() + list.matches(" imap").count() == 2)
    };
    let list = wait_for(used, "both are noted as used");
    assert!(list.contains("1\tMy <phone>\tsubmission,jmap\t20") && list.contains("2\tLaptop\timap,pop3,"), "{list}");

    // With a second step programs have app passwords alone.
    let page = ann.get("/second");
    let (secret, token) = (page.quoted("name=\"secret\" value=\""), page.token());
    let form =
        format!("token={token}&do=begin&secret={secret}&code={}&password=secret&programs=closed", code(&secret, 0));
    assert_eq!(ann.post("/second", &form).status, 200);
    assert_eq!((jmap("ann", "secret"), jmap("ann", &password)), (401, 200));
    assert!(imap("secret").starts_with("a NO") && imap(other).starts_with("a OK"));

    assert_eq!(ann.post("/app-passwords", &format!("token={token}&do=end&id=1")).status, 303);
    assert!(sluice(&["delete", "ann", "2"]).0 && !sluice(&["delete", "ann", "2"]).0);
    assert_eq!(jmap("ann", &password), 401);
    assert!(imap(other).starts_with("a NO") && sluice(&["list", "ann"]).1.is_empty());
}
