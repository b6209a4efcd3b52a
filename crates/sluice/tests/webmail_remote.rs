//! What the webmail asks of other servers: pictures that a user wants, and to be taken off a list.

use std::sync::{Arc, Mutex};

use auth::dkim::sign::{Signer, SigningKey, WANTED};
use auth::message::{LineEnds, Message, Progress};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

use crate::harness::dns::{Dns, Told};
use crate::harness::tls::Certificate;
use crate::harness::web::{Origin, response};
use crate::webmail::{Inbox as _, Site};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\npixels";
const LOOPBACK: &str = "remote_destinations = [\"127.0.0.1\"]\n";

/// All names are on the loopback, and this one has a text.
fn names(name: &'static str, text: String) -> Dns {
    Dns::start(move |asked, kind| match (asked, kind) {
        (asked, 16) if asked == name => Told::Text(text.clone()),
        (_, 1) => Told::Addresses(vec![[127, 0, 0, 1]]),
        _ => Told::NoName,
    })
}

fn pictures() -> Origin {
    Origin::start(|head, _| {
        Some(match head.split(' ').nth(1).unwrap() {
            "/a" | "/b" => response("Content-Type: text/html\r\nSet-Cookie: a=b\r\n", PNG),
            "/bad" => response("", &[PNG, b"forbidden-pixels"].concat()),
            "/moved" => b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "/page" => response("Content-Type: image/png\r\n", b"<svg onload=alert(1)>"),
            _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        })
    })
}

fn mail(origin: &Origin) -> String {
    let port = origin.address.port();
    let picture = |path| format!("<img src=\"http://pictures.test:{port}{path}\">");
    let all: String = ["/a", "/a", "/moved", "/bad", "/page", "/nothing"].map(picture).concat();
    format!("From: Eve <Eve@example.org>\nTo: ann@mx.test\nSubject: P\nContent-Type: text/html\n\n<p>{all}</p>\n")
}

#[test]
fn pictures_of_other_servers_are_shown_when_a_user_wants_them() {
    let (origin, dns) = (pictures(), names("", String::new()));
    let signatures = tempfile::tempdir().unwrap();
    let digits: String = b"forbidden-pixels".iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(signatures.path().join("own.ndb"), format!("Test.Pixels:0:*:{digits}\n")).unwrap();
    let settings = format!("{}[database]\npaths = [{:?}]\n", dns.settings(), signatures.path());
    let site = Site::start_in(false, LOOPBACK, &settings);
    site.deliver("ann", &mail(&origin));
    let ann = site.user("ann");
    let path = ann.messages().pop().unwrap();

    let read = ann.get(&path);
    let frame = read.quoted("src=\"/m/");
    let frame = ann.get(&format!("/m/{frame}"));
    assert!(frame.text().contains("6 pictures on other servers not loaded"), "{}", frame.text());
    assert!(origin.said().is_empty(), "nobody has asked for them");

    assert!(read.text().contains(&format!("href=\"{path}?pictures=1\"")), "{}", read.text());
    let wanted = ann.get(&format!("{path}?pictures=1"));
    let with = format!("/m/{}", wanted.quoted("src=\"/m/"));
    assert!(with.ends_with("?pictures=1"), "{with}");
    let shown = ann.get(&with);
    assert_eq!(shown.text().matches("src=\"data:image/png;base64,iVBORw0KGgpwaXhlbHM=\"").count(), 3);
    assert!(shown.text().contains("3 pictures on other servers not to be had"), "{}", shown.text());
    assert_eq!(shown.field("content-security-policy"), frame.field("content-security-policy"));
    let said = origin.said().concat().to_lowercase();
    assert!(said.contains("get /a http/1.1") && said.matches("get /a ").count() == 1, "{said}");
    for word in ["cookie", "referer", "authorization", "ann", "mx.test"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
    let count = origin.counts().len();
    ann.get(&with);
    let again = origin.said()[count..].concat();
    assert!(!again.contains("GET /a ") && !again.contains("GET /bad "), "pictures are kept: {again}");

    // Always from this sender, until the user says otherwise.
    let (token, at) = (read.token(), path.strip_prefix("/m/").unwrap().replace('/', "."));
    assert!(wanted.text().contains("<bdi>eve@example.org</bdi>"), "{}", wanted.text());
    assert_eq!(ann.post("/pictures", &format!("token={token}&do=always&at={at}")).status, 303);
    assert!(ann.get(&path).text().contains(&with));
    assert!(!ann.get(&format!("{path}?pictures=0")).text().contains(&with));
    ann.post("/settings", &format!("token={token}&rows=50&zone=0&name=Ann"));
    assert!(ann.get("/pictures").text().contains("eve@example.org") && ann.get(&path).text().contains(&with));
    ann.post("/pictures", &format!("token={token}&do=forget&sender=eve@example.org"));
    assert!(!ann.get(&path).text().contains(&with));

    // Junk shows none, whatever is asked for.
    let folder = at.split('.').next().unwrap();
    ann.post("/act", &format!("token={token}&at={at}&back=/m/{folder}&do=junk"));
    let home = ann.get("/").text();
    let junk = home.split("<li><a href=\"/m/").find(|item| item.contains("<bdi>Junk</bdi>")).unwrap();
    let junk = format!("/m/{}", junk.split('"').next().unwrap());
    let junk = format!("{junk}/{}", ann.get(&junk).quoted(&format!("href=\"{junk}/")));
    let page = ann.get(&format!("{junk}?pictures=1"));
    assert!(!page.text().contains("pictures=") && page.text().contains("<iframe"), "{}", page.text());
    assert!(!ann.get(&format!("{junk}/html/1?pictures=1")).text().contains("data:"));
}

#[test]
fn a_mail_has_no_request_sent_into_our_own_network() {
    let (origin, dns) = (pictures(), names("", String::new()));
    let site = Site::start_in(false, "", &dns.settings());
    site.deliver("ann", &mail(&origin));
    let port = origin.address.port();
    let forms = ["127.0.0.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0", "a@127.0.0.1"];
    let all: String = forms.iter().map(|host| format!("<img src=http://{host}:{port}/a>")).collect();
    site.deliver("ann", &format!("From: e@example.org\nContent-Type: text/html\n\n{all}\n"));
    let ann = site.user("ann");
    for path in ann.messages() {
        let frame = ann.get(&format!("{path}/html/1?pictures=1")).text();
        assert!(frame.contains("pictures on other servers not to be had") && !frame.contains("data:"), "{frame}");
    }
    assert!(origin.said().is_empty(), "{:?}", origin.said());
    let closed = Site::start_in(false, "remote_content = false\n", &dns.settings());
    closed.deliver("ann", &mail(&origin));
    let ann = closed.user("ann");
    let path = ann.messages().pop().unwrap();
    assert!(!ann.get(&path).text().contains("pictures=1"), "nothing is offered that is not had");
}

/// A mail with a signature over these fields in front.
fn signed(mail: &str, key: &SigningKey, names: &[&str]) -> String {
    let mail = mail.replace('\n', "\r\n");
    let mut message = Message::new(LineEnds::Crlf, auth::message::Limits::default());
    let (taken, Progress::Header(Some(header))) = message.feed(mail.as_bytes()) else { panic!("no header") };
    message.begin_body([WANTED]);
    message.feed(&mail.as_bytes()[taken..]);
    message.finish();
    let signer = Signer { key, domain: "list.test", selector: "s", names, seconds: None };
    let field = signer.sign(&header, message.hashes().unwrap(), 1_700_000_000, &SystemRandom::new()).unwrap();
    format!("{field}{mail}").replace("\r\n", "\n")
}

#[test]
fn a_list_is_left_in_one_step_if_a_signature_proves_that_it_wants_that() {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap();
    let key = SigningKey::from_der(der.as_ref()).unwrap();
    let public = format!("v=DKIM1; k=ed25519; p={}", text::base64::encode(pair.public_key().as_ref()));
    let dns = names("s._domainkey.list.test", public);
    let (certificate, folder) = (Certificate::of("list.test"), tempfile::tempdir().unwrap());
    certificate.store(folder.path(), "list");
    let left = Arc::new(Mutex::new(Vec::new()));
    let noted = left.clone();
    let list = Origin::in_tls("127.0.0.1:0", &certificate, move |head, body| {
        noted.lock().unwrap().push((head.to_owned(), String::from_utf8_lossy(body).into_owned()));
        Some(match head.contains("/moved") {
            true => b"HTTP/1.1 307 Moved\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n".to_vec(),
            false => response("", b""),
        })
    });
    let authorities = folder.path().join("list.crt");
    let site = Site::start_in(true, LOOPBACK, &format!("{}[tls]\nauthorities = {authorities:?}\n", dns.settings()));
    let port = list.address.port();
    let mail = |path: &str| {
        format!(
            "From: news@list.test\nTo: ann@mx.test\nSubject: News\nList-Unsubscribe: <mailto:u@list.test>,\n <https://list.test:{port}{path}>\n\
             List-Unsubscribe-Post: List-Unsubscribe=One-Click\n\nText\n"
        )
    };
    let all = ["from", "subject", "list-unsubscribe", "list-unsubscribe-post"];
    let proven = signed(&mail("/u?a=1"), &key, &all);
    site.deliver("ann", &proven);
    let ann = site.user("ann");
    let path = ann.messages().pop().unwrap();
    let page = ann.get(&path);
    assert!(page.text().contains("value=\"once\">Unsubscribe</button>"), "{}", page.text());
    let (token, folder) = (page.token(), path.split('/').nth(2).unwrap().to_owned());
    let leave = |path: &str| {
        let at = path.strip_prefix("/m/").unwrap().replace('/', ".");
        ann.post("/unsubscribe", &format!("token={token}&do=once&at={at}"))
    };
    let done = leave(&path);
    assert_eq!((done.status, done.field("location")), (303, &*format!("{path}?told=left")), "{}", done.text());
    let said = left.lock().unwrap().drain(..).collect::<Vec<_>>();
    let [(head, body)] = &said[..] else { panic!("{said:?}") };
    assert!(head.starts_with("POST /u?a=1 HTTP/1.1\r\n") && body == "List-Unsubscribe=One-Click", "{head}{body}");
    let head = head.to_lowercase();
    assert!(head.contains("content-type: application/x-www-form-urlencoded") && !head.contains("cookie"), "{head}");

    // Changed on its way, signed but for one field, and with a field in front that nobody has signed.
    let changed = proven.replace("a=1", "a=2");
    let partly = signed(&mail("/u"), &key, &all[..3]).replace("h=", "h=list-unsubscribe-post:");
    for mail in [&changed, &partly] {
        site.deliver("ann", mail);
        let path = &ann.messages()[0];
        assert!(ann.get(path).text().contains("value=\"once\""), "the claim is looked at when it is used");
        let refused = leave(path);
        assert!(refused.status == 400 && refused.text().contains("no signature of this mail"), "{}", refused.text());
    }
    site.deliver("ann", &format!("List-Unsubscribe: <https://list.test:{port}/other>\n{proven}"));
    let path = &ann.messages()[0];
    assert!(!ann.get(path).text().contains("value=\"once\""));
    assert_eq!(leave(path).status, 404);
    assert!(left.lock().unwrap().is_empty());

    // A request is not sent on to another place.
    site.deliver("ann", &signed(&mail("/moved"), &key, &all));
    let moved = leave(&ann.messages()[0]);
    assert!(moved.status == 400 && moved.text().contains("does not take this now"), "{}", moved.text());
    assert_eq!(left.lock().unwrap().len(), 1);
    assert_eq!(ann.get(&format!("/m/{folder}")).status, 200);
}
