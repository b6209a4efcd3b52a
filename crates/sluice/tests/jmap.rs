//! JMAP at the door of the webmail: a client logs in, reads, changes, sends, and hears of changes.

use serde_json::{Value, json};

use crate::harness::browser::{Browser, Page};
use crate::harness::{base64, wait_for};
use crate::webmail::Site;

const MAIL: &str = "From: Eve <eve@example.org>\nTo: ann@mx.test\nSubject: Hello\nMessage-ID: <1@example.org>\n\
                    MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
                    --b\nContent-Type: text/plain; charset=utf-8\n\nA first line\n\
                    --b\nContent-Type: application/x-test; name=a.bin\nContent-Transfer-Encoding: base64\n\nAAECAw==\n--b--\n";

const USING: [&str; 3] = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail", "urn:ietf:params:jmap:submission"];

/// A client that has logged in.
struct Client {
    browser: Browser,
    login: String,
    account: String,
}

impl Client {
    fn new(site: &Site, name: &str) -> Client {
        let login = format!("Authorization: Basic {}", base64(format!("{name}:secret").as_bytes()).trim_end());
        let mut client = Client { browser: site.browser(), login, account: String::new() };
        let session = client.get("/.well-known/jmap");
        assert_eq!((session.status, session.field("content-type")), (200, "application/json"), "{session:?}");
        let session: Value = serde_json::from_slice(&session.body).unwrap();
        assert!(session["apiUrl"].as_str().unwrap().ends_with("/jmap/api"), "{session}");
        client.account = session["primaryAccounts"][USING[1]].as_str().unwrap().into();
        client
    }

    fn get(&self, path: &str) -> Page {
        self.browser.ask(&format!("GET {path} HTTP/1.1\r\n{}", self.login), b"")
    }

    fn post(&self, path: &str, kind: &str, body: &[u8]) -> Page {
        self.browser.ask(&format!("POST {path} HTTP/1.1\r\n{}\r\nContent-Type: {kind}", self.login), body)
    }

    /// The arguments of the replies to calls, of which each gets the account.
    fn call(&self, calls: &[(&str, Value)]) -> Vec<Value> {
        let named = calls.iter().enumerate().map(|(at, (name, arguments))| {
            let mut arguments = arguments.clone();
            arguments["accountId"] = self.account.clone().into();
            json!([name, arguments, format!("c{at}")])
        });
        let request = json!({ "using": USING, "methodCalls": named.collect::<Vec<_>>() });
        let page = self.post("/jmap/api", "application/json", request.to_string().as_bytes());
        assert_eq!(page.status, 200, "{}", page.text());
        let response: Value = serde_json::from_slice(&page.body).unwrap();
        let replies = response["methodResponses"].as_array().unwrap().clone();
        replies
            .into_iter()
            .map(|reply| {
                assert_ne!(reply[0], "error", "{reply}");
                reply[1].clone()
            })
            .collect()
    }

    fn mailbox(&self, role: &str) -> String {
        let boxes = self.call(&[("Mailbox/get", json!({ "ids": null }))]).remove(0);
        let found = boxes["list"].as_array().unwrap().iter().find(|mailbox| mailbox["role"] == role);
        found.unwrap_or_else(|| panic!("{role} in {boxes}"))["id"].as_str().unwrap().into()
    }

    fn emails(&self) -> Vec<Value> {
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
