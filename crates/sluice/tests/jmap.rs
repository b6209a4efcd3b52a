//! JMAP at the door of the webmail: a client logs in, reads, changes, sends, and hears of changes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::browser::{Browser, Page};
use crate::harness::{base64, wait_for};
use crate::webmail::Site;

const MAIL: &str = "From: Eve <eve@example.org>\nTo: ann@mx.test\nSubject: Hello\nMessage-ID: <1@example.org>\n\
                    MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
                    --b\nContent-Type: text/plain; charset=utf-8\n\nA first line\n\
                    --b\nContent-Type: application/x-test; name=a.bin\nContent-Transfer-Encoding: base64\n\nAAECAw==\n--b--\n";

const USING: [&str; 7] = [
    "urn:ietf:params:jmap:core",
    "urn:ietf:params:jmap:mail",
    "urn:ietf:params:jmap:submission",
    "urn:ietf:params:jmap:vacationresponse",
    "urn:ietf:params:jmap:sieve",
    "urn:ietf:params:jmap:blob",
    "urn:ietf:params:jmap:quota",
];

/// A client that has logged in.
pub struct Client {
    pub browser: Browser,
    pub login: String,
    pub account: String,
}

impl Client {
    pub fn new(site: &Site, name: &str) -> Client {
        let login = format!("Authorization: Basic {}", base64(format!("{name}:secret").as_bytes()).trim_end());
        let mut client = Client { browser: site.browser(), login, account: String::new() };
        let session = client.get("/.well-known/jmap");
        assert_eq!((session.status, session.field("content-type")), (200, "application/json"), "{session:?}");
        let session: Value = serde_json::from_slice(&session.body).unwrap();
        assert!(session["apiUrl"].as_str().unwrap().ends_with("/jmap/api"), "{session}");
        client.account = session["primaryAccounts"][USING[1]].as_str().unwrap().into();
        client
    }

    pub fn get(&self, path: &str) -> Page {
        self.browser.ask(&format!("GET {path} HTTP/1.1\r\n{}", self.login), b"")
    }

    pub fn post(&self, path: &str, kind: &str, body: &[u8]) -> Page {
        self.browser.ask(&format!("POST {path} HTTP/1.1\r\n{}\r\nContent-Type: {kind}", self.login), body)
    }

    /// The replies to calls, of which each gets the account.
    pub fn replies(&self, calls: &[(&str, Value)]) -> Vec<Value> {
        let named = calls.iter().enumerate().map(|(at, (name, arguments))| {
            let mut arguments = arguments.clone();
            arguments["accountId"] = self.account.clone().into();
            json!([name, arguments, format!("c{at}")])
        });
        let request = json!({ "using": USING, "methodCalls": named.collect::<Vec<_>>() });
        let page = self.post("/jmap/api", "application/json", request.to_string().as_bytes());
        assert_eq!(page.status, 200, "{}", page.text());
        let response: Value = serde_json::from_slice(&page.body).unwrap();
        response["methodResponses"].as_array().unwrap().clone()
    }

    /// The arguments of the replies, of which none is an error.
    pub fn call(&self, calls: &[(&str, Value)]) -> Vec<Value> {
        self.replies(calls)
            .into_iter()
            .map(|reply| {
                assert_ne!(reply[0], "error", "{reply}");
                reply[1].clone()
            })
            .collect()
    }

    pub fn mailbox(&self, role: &str) -> String {
        let boxes = self.call(&[("Mailbox/get", json!({ "ids": null }))]).remove(0);
        let found = boxes["list"].as_array().unwrap().iter().find(|mailbox| mailbox["role"] == role);
        found.unwrap_or_else(|| panic!("{role} in {boxes}"))["id"].as_str().unwrap().into()
    }

    pub fn emails(&self) -> Vec<Value> {
        let query = json!({ "filter": { "inMailbox": self.mailbox("inbox") }, "sort": [{ "property": "receivedAt", "isAscending": false }] });
        let get = json!({
            "#ids": { "resultOf": "c0", "name": "Email/query", "path": "/ids" },
            "properties": ["id", "blobId", "threadId", "mailboxIds", "keywords", "subject", "from", "textBody", "attachments", "bodyValues", "preview"],
            "fetchTextBodyValues": true,
        });
        let replies = self.call(&[("Email/query", query), ("Email/get", get)]);
        replies[1]["list"].as_array().unwrap().clone()
    }
}

#[test]
fn a_client_reads_changes_and_hears_what_has_changed() {
    let site = Site::start(false);
    site.deliver("ann", MAIL);
    let ann = Client::new(&site, "ann");
    let mail = wait_for(|| ann.emails().pop(), "the mail");
    assert_eq!((&mail["subject"], &mail["from"][0]["email"]), (&json!("Hello"), &json!("eve@example.org")), "{mail}");
    let part = mail["textBody"][0]["partId"].as_str().unwrap();
    assert_eq!(mail["bodyValues"][part]["value"], "A first line", "{mail}");
    let (id, blob) = (mail["id"].as_str().unwrap(), mail["attachments"][0]["blobId"].as_str().unwrap());
    let file = ann.get(&format!("/jmap/download/{}/{blob}/a.bin?accept=text/html", ann.account));
    assert_eq!((file.status, &file.body[..]), (200, &[0u8, 1, 2, 3][..]));
    assert!(
        file.field("content-disposition").starts_with("attachment; ")
            && file.field("content-security-policy").contains("sandbox")
            && file.field("cache-control").contains("immutable")
    );

    let before = ann.call(&[("Email/get", json!({ "ids": [] })), ("Mailbox/get", json!({ "ids": [] }))]);
    let change = json!({ "update": { id: { "keywords/$seen": true, "keywords/work": true } } });
    let done = ann.call(&[("Email/set", change), ("Mailbox/set", json!({ "create": { "new": { "name": "Plans" } } }))]);
    assert!(done[0]["updated"].as_object().unwrap().contains_key(id), "{done:?}");
    let folder = done[1]["created"]["new"]["id"].as_str().unwrap();
    let moved = json!({ "update": { id: { "mailboxIds": { folder: true } } } });
    assert!(ann.call(&[("Email/set", moved)])[0]["notUpdated"].as_object().is_none_or(serde_json::Map::is_empty));
    assert!(ann.emails().is_empty());
    let since = |at: usize| json!({ "sinceState": before[at]["state"] });
    let changes = ann.call(&[("Email/changes", since(0)), ("Mailbox/changes", since(1))]);
    assert_eq!(changes[0]["updated"], json!([id]), "{changes:?}");
    assert!(changes[1]["created"].as_array().unwrap().contains(&json!(folder)), "{changes:?}");
    let got = ann.call(&[("Email/get", json!({ "ids": [id], "properties": ["keywords", "mailboxIds"] }))]).remove(0);
    assert_eq!(got["list"][0]["keywords"], json!({ "$seen": true, "work": true }));
    assert_eq!(got["list"][0]["mailboxIds"], json!({ folder: true }));

    // Somebody else's ids are nobody's.
    let bob = Client::new(&site, "bob");
    let got = bob.call(&[("Email/get", json!({ "ids": [id] })), ("Email/set", json!({ "destroy": [id] }))]);
    assert_eq!(
        (&got[0]["notFound"], &got[1]["notDestroyed"][id]["type"]),
        (&json!([id]), &json!("notFound")),
        "{got:?}"
    );
    assert_eq!(bob.get(&format!("/jmap/download/{}/{blob}/a.bin", bob.account)).status, 404);
    assert_eq!(bob.get(&format!("/jmap/download/{}/{blob}/a.bin", ann.account)).status, 404);

    // Who waits hears of it.
    let waits = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ann.get("/jmap/events?types=*&closeafter=state&ping=0").text());
        std::thread::sleep(std::time::Duration::from_millis(300));
        wait_for(
            || {
                ann.call(&[(
                    "Email/set",
                    json!({ "update": { id: { "keywords/$flagged": !waiting.is_finished() } } }),
                )]);
                waiting.is_finished().then_some(())
            },
            "news",
        );
        waiting.join().unwrap()
    });
    assert!(waits.contains("event: state\ndata: {") && waits.contains("\"StateChange\""), "{waits}");
}

#[test]
fn a_client_writes_and_sends_and_the_recipient_has_it() {
    let site = Site::start(true);
    let (ann, bob) = (Client::new(&site, "ann"), Client::new(&site, "bob"));
    let upload = ann.post(&format!("/jmap/upload/{}", ann.account), "application/x-test", &[7; 5_000]);
    let upload: Value = serde_json::from_slice(&upload.body).unwrap();
    assert_eq!((&upload["size"], &upload["type"]), (&json!(5_000), &json!("application/x-test")));
    let identity = ann.call(&[("Identity/get", json!({ "ids": null }))]).remove(0)["list"][0]["id"].clone();
    let drafts = ann.mailbox("drafts");
    let draft = json!({
        "mailboxIds": { &drafts: true }, "keywords": { "$draft": true }, "subject": "Gr\u{fc}\u{df}e",
        "from": [{ "email": "ann@mx.test" }], "to": [{ "name": "Bob", "email": "bob@mx.test" }],
        "bodyValues": { "1": { "value": "See the file." } }, "textBody": [{ "partId": "1", "type": "text/plain" }],
        "attachments": [{ "blobId": upload["blobId"], "type": "application/x-test", "name": "d\u{e4}ta.bin" }],
    });
    let submission = json!({
        "create": { "s": { "emailId": "#draft", "identityId": identity } },
        "onSuccessUpdateEmail": { "#s": { "keywords/$draft": null, "keywords/$seen": true } },
    });
    let done = ann.call(&[("Email/set", json!({ "create": { "draft": draft } })), ("EmailSubmission/set", submission)]);
    assert!(done[0]["created"]["draft"]["id"].is_string() && done[1]["created"]["s"]["id"].is_string(), "{done:?}");
    let mail = wait_for(|| bob.emails().pop(), "the mail");
    assert_eq!(mail["subject"], "Gr\u{fc}\u{df}e");
    let file = &mail["attachments"][0];
    assert_eq!((&file["name"], &file["size"]), (&json!("d\u{e4}ta.bin"), &json!(5_000)), "{mail}");
    let path = format!("/jmap/download/{}/{}/x", bob.account, file["blobId"].as_str().unwrap());
    assert_eq!(bob.get(&path).body, [7; 5_000]);
    // Nobody sends as another.
    let forged = json!({ "mailboxIds": { &drafts: true }, "from": [{ "email": "bob@mx.test" }], "to": [{ "email": "bob@mx.test" }], "subject": "x" });
    let submission = json!({ "create": { "s": { "emailId": "#f", "identityId": identity } } });
    let done = ann.call(&[("Email/set", json!({ "create": { "f": forged } })), ("EmailSubmission/set", submission)]);
    assert!(done[1]["notCreated"]["s"]["type"].is_string(), "{done:?}");
}

#[test]
fn an_account_sends_to_so_many_in_an_hour_whatever_it_sends_by() {
    let site = Site::start_with(true, "[store.queue]\nrecipients_hour_max = 3\n");
    let ann = Client::new(&site, "ann");
    let identity = ann.call(&[("Identity/get", json!({ "ids": null }))]).remove(0)["list"][0]["id"].clone();
    let drafts = ann.mailbox("drafts");
    let send = || {
        let to = json!([{ "email": "ann@mx.test" }, { "email": "bob@mx.test" }]);
        let mail = json!({ "mailboxIds": { &drafts: true }, "from": [{ "email": "ann@mx.test" }], "to": to });
        let submission = json!({ "create": { "s": { "emailId": "#m", "identityId": identity } } });
        ann.call(&[("Email/set", json!({ "create": { "m": mail } })), ("EmailSubmission/set", submission)]).remove(1)
    };
    let first = send();
    assert!(first["created"]["s"]["id"].is_string(), "{first}");
    assert_eq!(send()["notCreated"]["s"]["type"], "rateLimit");
    // What is counted is the account, and not the door.
    let browser = site.user("ann");
    let token = browser.get("/write").token();
    let to = "ann%40mx.test%2C+bob%40mx.test";
    let page = browser.post("/write", &format!("token={token}&from=ann%40mx.test&to={to}&subject=s&text=t&do=send"));
    assert!(page.status == 400 && page.text().contains("too many recipients within an hour"), "{}", page.text());
}

#[test]
fn who_is_not_let_in_and_what_is_no_request_is_refused() {
    let site = Site::start(false);
    let stranger = site.browser();
    for path in ["/.well-known/jmap", "/jmap/session", "/jmap/events"] {
        let page = stranger.get(path);
        assert_eq!((page.status, page.field("content-type")), (401, "application/problem+json"), "{path}");
        assert!(page.field("www-authenticate").starts_with("Basic realm="));
    }
    let mut wrong = Client::new(&site, "ann");
    let ann = Client::new(&site, "ann");
    wrong.login = format!("Authorization: Basic {}", base64(b"ann:guess").trim_end());
    assert_eq!(wrong.get("/jmap/session").status, 401);
    for (kind, body, wanted) in [
        ("application/json", "{", "notJSON"),
        ("application/json", "{\"using\":[],\"using\":[],\"methodCalls\":[]}", "notJSON"),
        ("application/json", "[]", "notRequest"),
        ("application/json", "{\"using\":[\"x\"],\"methodCalls\":[]}", "unknownCapability"),
        ("text/plain", "{\"using\":[],\"methodCalls\":[]}", "notJSON"),
    ] {
        let page = ann.post("/jmap/api", kind, body.as_bytes());
        assert_eq!(page.status, 400, "{body}");
        assert!(page.text().contains(&format!("urn:ietf:params:jmap:error:{wanted}")), "{body}: {}", page.text());
    }
    let head = format!(
        "POST /jmap/api HTTP/1.1\r\n{}\r\nContent-Type: application/json\r\nSec-Fetch-Site: cross-site",
        ann.login
    );
    assert_eq!(ann.browser.ask(&head, b"{\"using\":[],\"methodCalls\":[]}").status, 403);
    let request = json!({ "using": USING, "methodCalls": [["Mailbox/get", { "accountId": "A0" }, "a"], ["Core/echo", { "x": 1 }, "b"]] });
    let page = ann.post("/jmap/api", "application/json", request.to_string().as_bytes());
    let replies: Value = serde_json::from_slice(&page.body).unwrap();
    assert_eq!(replies["methodResponses"][0][1]["type"], "accountNotFound");
    assert_eq!(replies["methodResponses"][1], json!(["Core/echo", { "x": 1 }, "b"]));
}

#[test]
fn a_client_by_the_library_jmapc_reads_writes_and_sends() {
    let python = std::env::var("SLUICE_JMAPC").unwrap_or_else(|_| "python3".into());
    if !Command::new(&python).args(["-c", "import jmapc"]).output().is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: {python} has no library jmapc (SLUICE_JMAPC names a Python that has it)");
    }
    let site = Site::start(true);
    site.deliver(
        "ann",
        "From: Eve <eve@example.org>\nTo: ann@mx.test\nSubject: Hello\nMessage-ID: <1@x>\n\nA first line\n",
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jmap_client.py");
    let address = site.browser().address.to_string();
    let output = Command::new("timeout").args(["60", &python, script, &address]).output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        said,
        "read Hello eve@example.org 'A first line\\n' <mark>Hello</mark>\nthread True\nkeywords ['$seen', 'work']\n\
         sent True draft gone True\nvacation True 2999-01-01T00:00:00Z Away I am away. None\n",
        "{wrong}"
    );
    let mail = wait_for(|| Client::new(&site, "bob").emails().pop(), "the mail");
    assert_eq!(mail["subject"], "Gr\u{fc}\u{df}e");
    // The page and the library change the same answer, and neither a script that is the user's own.
    let browser = site.user("ann");
    let form = browser.get("/vacation");
    assert!(form.text().contains("value=\"Away\"") && form.text().contains("I am away."), "{}", form.text());
    browser.post("/filters/text", &format!("token={}&text=keep%3B", form.token()));
    let ann = Client::new(&site, "ann");
    let set =
        json!({ "update": { "singleton": { "isEnabled": true } }, "create": { "a": {} }, "destroy": ["singleton"] });
    let done = ann.call(&[("VacationResponse/set", set), ("VacationResponse/get", json!({ "ids": null }))]);
    let kind = |name: &str, id: &str| done[0][name][id]["type"].clone();
    assert_eq!(kind("notUpdated", "singleton"), "forbidden", "{done:?}");
    assert_eq!((kind("notCreated", "a"), kind("notDestroyed", "singleton")), (json!("singleton"), json!("singleton")));
    assert_eq!(done[1]["list"][0]["isEnabled"], false);
}

#[test]
fn scripts_are_kept_checked_renamed_and_activated() {
    let site = Site::start(false);
    let (ann, bob) = (Client::new(&site, "ann"), Client::new(&site, "bob"));
    let blob = |text: &str| {
        let upload = ann.post(&format!("/jmap/upload/{}", ann.account), "application/sieve", text.as_bytes());
        serde_json::from_slice::<Value>(&upload.body).unwrap()["blobId"].clone()
    };
    let set = |arguments: Value| ann.call(&[("SieveScript/set", arguments)]).remove(0);
    let list = |client: &Client| client.call(&[("SieveScript/get", json!({ "ids": null }))]).remove(0)["list"].clone();
    let (keep, discard) = ("keep;\r\n", "discard;\r\n");
    let done = set(json!({
        "create": { "a": { "name": "one", "blobId": blob(keep) }, "b": { "name": "wrong", "blobId": blob("fileinto") } },
        "onSuccessActivateScript": "#a",
    }));
    assert_eq!(done["notCreated"]["b"]["type"], "invalidSieve", "{done}");
    let (one, id) = (&done["created"]["a"], done["created"]["a"]["id"].as_str().unwrap());
    assert_eq!((&one["name"], &one["isActive"]), (&json!("one"), &json!(false)), "one of them was wrong: {done}");
    let path = |client: &Client| format!("/jmap/download/{}/{}/x", client.account, one["blobId"].as_str().unwrap());
    assert_eq!(ann.get(&path(&ann)).text(), keep);
    assert_eq!((bob.get(&path(&bob)).status, list(&bob)), (404, json!([])), "nobody else has it");

    let again = set(json!({ "create": { "c": { "name": "one", "blobId": blob(keep) } } }));
    assert_eq!(again["notCreated"]["c"], json!({ "type": "alreadyExists", "existingId": id }));
    let done = set(json!({ "create": { "d": { "blobId": blob(discard) } }, "onSuccessActivateScript": "#d" }));
    let other = done["created"]["d"]["id"].as_str().unwrap();
    assert_eq!(done["updated"][other], json!({ "isActive": true }), "{done}");
    assert_eq!(set(json!({ "destroy": [other] }))["notDestroyed"][other]["type"], "sieveIsActive");
    let done = set(json!({ "onSuccessActivateScript": id }));
    assert_eq!(done["updated"], json!({ id: { "isActive": true }, other: { "isActive": false } }), "{done}");

    // With another name it is the same, and a new one of the old name is another.
    let done = set(json!({ "update": { id: { "name": "two", "blobId": blob(discard) } } }));
    assert!(done["updated"].as_object().unwrap().contains_key(id), "{done}");
    let done = set(json!({ "create": { "e": { "name": "one", "blobId": blob(keep) } }, "destroy": [other] }));
    assert_eq!(done["destroyed"], json!([other]), "{done}");
    assert_ne!(done["created"]["e"]["id"], id);
    let query = json!({ "filter": { "isActive": true }, "sort": [{ "property": "name" }] });
    let found = ann.call(&[("SieveScript/query", query), ("SieveScript/get", json!({ "ids": [id] }))]);
    assert_eq!((&found[0]["ids"], &found[1]["list"][0]["name"]), (&json!([id]), &json!("two")), "{found:?}");
    let validate =
        |text: &str| ann.call(&[("SieveScript/validate", json!({ "blobId": blob(text) }))]).remove(0)["error"].clone();
    assert_eq!((validate(keep), validate("x y;")["type"].clone()), (Value::Null, json!("invalidSieve")));
    let done = set(json!({ "onSuccessDeactivateScript": true }));
    assert_eq!(done["updated"], json!({ id: { "isActive": false } }), "{done}");
    let wrong = set(json!({ "update": { id: { "isActive": true }, "F0": { "name": "x" } }, "destroy": ["F1"] }));
    let kinds = [&wrong["notUpdated"][id], &wrong["notUpdated"]["F0"], &wrong["notDestroyed"]["F1"]]
        .map(|one| one["type"].clone());
    assert_eq!(kinds, [json!("invalidProperties"), json!("notFound"), json!("notFound")], "{wrong}");
}

/// Fields that ask for a conversation.
pub const AGREED: &str = "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                          Sec-WebSocket-Protocol: jmap\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A client of WebSocket.
pub struct Socket(TcpStream);

impl Socket {
    /// Asks for a conversation with more fields; the head of the answer, and the connection.
    pub fn open(client: &Client, fields: &str) -> (String, Socket) {
        let mut stream = TcpStream::connect(client.browser.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("GET /jmap/ws HTTP/1.1\r\nHost: {}\r\n{}{fields}\r\n", client.browser.address, client.login);
        stream.write_all(head.as_bytes()).unwrap();
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        (String::from_utf8(answer).unwrap(), Socket(stream))
    }

    pub fn send(&mut self, first: u8, content: &[u8]) {
        let length = u16::try_from(content.len()).unwrap();
        let mut frame = vec![first];
        match length {
            ..126 => frame.push(0x80 | length as u8),
            _ => frame.extend([&[0x80 | 126][..], &length.to_be_bytes()].concat()),
        }
        // A mask of zeros.
        frame.extend([0; 4]);
        frame.extend(content);
        self.0.write_all(&frame).unwrap();
    }

    pub fn ask(&mut self, text: &str) -> Value {
        self.send(0x81, text.as_bytes());
        self.text()
    }

    fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let mut length = usize::from(head[1]);
        if length == 126 {
            let mut more = [0; 2];
            self.0.read_exact(&mut more).unwrap();
            length = usize::from(u16::from_be_bytes(more));
        }
        let mut content = vec![0; length];
        self.0.read_exact(&mut content).unwrap();
        (head[0], content)
    }

    pub fn text(&mut self) -> Value {
        let (first, content) = self.frame();
        assert_eq!(first, 0x81, "{content:?}");
        serde_json::from_slice(&content).unwrap()
    }
}

#[test]
fn requests_and_changes_go_over_websocket() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let session: Value = serde_json::from_slice(&ann.get("/jmap/session").body).unwrap();
    let url = &session["capabilities"]["urn:ietf:params:jmap:websocket"]["url"];
    assert_eq!(url.as_str().unwrap(), format!("ws://{}/jmap/ws", ann.browser.address));
    let status = |client: &Client, fields: &str| Socket::open(client, fields).0[9..12].to_owned();
    assert_eq!(status(&ann, "\r\n"), "426");
    assert_eq!(status(&ann, &format!("{AGREED}Origin: http://evil.example\r\n")), "403");
    assert_eq!(status(&ann, &format!("{AGREED}Sec-Fetch-Site: cross-site\r\n")), "403");
    let login = format!("Authorization: Basic {}", base64(b"ann:wrong").trim_end());
    let stranger = Client { browser: site.browser(), login, account: String::new() };
    assert_eq!(status(&stranger, AGREED), "401");

    let (head, mut socket) = Socket::open(&ann, AGREED);
    let fields = head.to_lowercase();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert!(fields.contains("sec-websocket-protocol: jmap\r\n") && fields.contains("upgrade: websocket\r\n"), "{head}");
    let echo = "{\"@type\":\"Request\",\"id\":\"R1\",\"using\":[\"urn:ietf:params:jmap:core\"],\
                \"methodCalls\":[[\"Core/echo\",{\"a\":1},\"c\"]]}";
    let told = socket.ask(echo);
    assert_eq!((&told["@type"], &told["requestId"]), (&json!("Response"), &json!("R1")), "{told}");
    assert_eq!(told["methodResponses"], json!([["Core/echo", { "a": 1 }, "c"]]));
    let told = socket.ask("{");
    assert_eq!((&told["@type"], &told["type"]), (&json!("RequestError"), &json!("urn:ietf:params:jmap:error:notJSON")));
    socket.send(0x89, b"there?");
    assert_eq!(socket.frame(), (0x8a, b"there?".to_vec()));

    // A message in two frames, with a mail that comes behind it.
    socket.send(0x01, b"{\"@type\":\"WebSocketPushEnable\",");
    socket.send(0x80, b"\"dataTypes\":[\"Email\"]}");
    site.deliver("ann", MAIL);
    let told = socket.text();
    assert_eq!(told["@type"], "StateChange", "{told}");
    let types: Vec<&String> = told["changed"][&ann.account].as_object().unwrap().keys().collect();
    assert_eq!(types, ["Email"], "{told}");
    socket.send(0x88, &1000u16.to_be_bytes());
    assert_eq!(socket.frame().0, 0x88);
    assert_eq!(socket.0.read(&mut [0]).unwrap(), 0);

    // It ends with the password that it began with, and with bytes that are no frames of a client.
    let (_, mut socket) = Socket::open(&ann, AGREED);
    socket.ask(echo);
    site.change_password("ann");
    let last = wait_for(
        || {
            socket.send(0x81, echo.as_bytes());
            Some(socket.frame()).filter(|(first, _)| *first == 0x88)
        },
        "the end of the conversation",
    );
    assert_eq!(last.1, 1008u16.to_be_bytes());
    let bob = Client::new(&site, "bob");
    let (_, mut socket) = Socket::open(&bob, AGREED);
    socket.0.write_all(b"\x81\x00").unwrap();
    assert_eq!(socket.frame(), (0x88, 1002u16.to_be_bytes().to_vec()));
    // A text is UTF-8, and a frame that is too large is refused at its head.
    let (_, mut socket) = Socket::open(&bob, AGREED);
    socket.send(0x81, b"\xff{}");
    assert_eq!(socket.frame(), (0x88, 1007u16.to_be_bytes().to_vec()));
    let (_, mut socket) = Socket::open(&bob, AGREED);
    socket.0.write_all(b"\x81\xff\x40\0\0\0\0\0\0\0\0\0\0\0").unwrap();
    assert_eq!(socket.frame(), (0x88, 1009u16.to_be_bytes().to_vec()));
}
