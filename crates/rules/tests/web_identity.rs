//! Hosts that only the client names: lists block by them and exempt nothing.

use rules::web::{Identity, Request, Verdict};

use crate::web::lists;
use crate::web_squidguard;

const FILES: [(&str, &str); 4] = [
    ("free", "good.test\nbank.test\n"),
    ("bad", "good.test\n"),
    ("grey", "grey.test\n"),
    (
        "story",
        "function(checkrequest)\nif(urlin,mine) allowed\nif(urlin,mine) true\nif(returnset) return setexception\n\
      if(urlin,banned) return setblock\nfunction(allowed)\nif(true) return setexception\n",
    ),
];

fn request(url: &str, identity: Identity) -> Request<'_> {
    let method: &[u8] = if url.contains("//") { b"GET" } else { b"CONNECT" };
    Request { method, url: url.as_bytes(), identity, ..Request::default() }
}

#[test]
fn a_claimed_host_is_blocked_and_not_exempt() {
    let group = "exceptionsitelist = 'e/free'\nbannedsitelist = 'e/bad'\ngreysitelist = 'e/grey'\n";
    let own = "sitelist = 'name=mine,path=e/free'\nbannedsitelist = 'e/bad'\nstoryboard = 'e/story'\n";
    for group in [group, own] {
        let filter = lists(group, &FILES);
        let verdict = |url: &str, identity| filter.request(&request(url, identity)).verdict;
        assert_eq!(verdict("http://good.test/", Identity::Proved), Verdict::Exception, "{group}");
        assert_eq!(verdict("http://good.test/", Identity::Claimed), Verdict::Block, "{group}");
        assert_eq!(verdict("http://bank.test/", Identity::Proved), Verdict::Exception, "{group}");
        assert_eq!(verdict("http://bank.test/", Identity::Claimed), Verdict::Allow, "{group}");
    }
    let filter = lists(group, &FILES);
    assert_eq!(filter.request(&request("http://grey.test/", Identity::Claimed)).verdict, Verdict::Allow);
}

#[test]
fn a_tunnel_to_a_host_that_is_still_to_be_proved_is_opened() {
    let group = "exceptionsitelist = 'e/free'\nbannedsitelist = 'e/bad'\n";
    let (opening, other) = (lists(&format!("sslmitm = on\n{group}"), &FILES), lists(group, &FILES));
    let told = |filter: &rules::web::Filter, host: &str, identity| {
        let decision = filter.request(&request(host, identity));
        (decision.verdict, decision.intercepts)
    };
    assert_eq!(told(&opening, "good.test:443", Identity::Proved), (Verdict::Exception, false));
    assert_eq!(told(&opening, "good.test:443", Identity::Awaited), (Verdict::Exception, true));
    assert_eq!(told(&opening, "bank.test:443", Identity::Awaited), (Verdict::Exception, true));
    // Where TLS is not opened, no certificate will be seen.
    assert_eq!(told(&other, "good.test:443", Identity::Awaited), (Verdict::Block, false));
    // A client that is exempt itself stays so.
    let client = "iplist = 'name=exceptionclient,path=e/clients'\nsslmitm = on\n";
    let filter = lists(&format!("{client}{group}"), &[("clients", "10.0.0.1\n"), FILES[0], FILES[1]]);
    let by = |client: &str| {
        let request = Request { client: client.parse().ok(), ..request("good.test:443", Identity::Awaited) };
        filter.request(&request).intercepts
    };
    assert_eq!((by("10.0.0.1"), by("10.0.0.2")), (false, true));
}

#[test]
fn squidguard_passes_no_host_that_is_only_claimed() {
    let text = "dbhome /db\ndest good { domainlist good }\nacl { default { pass good none } }\n";
    let filter = web_squidguard::load(text, &[("/db/good", "good.test\n")]);
    let verdict = |identity| filter.request(&request("http://good.test/", identity)).verdict;
    assert_eq!(verdict(Identity::Proved), Verdict::Exception);
    assert_eq!(verdict(Identity::Claimed), Verdict::Block);
}
