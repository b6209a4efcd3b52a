//! Where the files of a configuration lie, and what is told of entries that never count.

use std::collections::HashMap;

use rules::web::phrase::Dialect;
use rules::web::{Entry, Filter, Limits, Request, Response, Verdict};

use crate::web::{ask, lists, load};

/// The layout of E2Guardian 5.4 and later: lists of the main file, lists of each group, maps of users and addresses.
const MAIN: &str = "filtergroups = 3\nauthplugin = 'e/ip.conf'\nauthplugin = 'e/basic.conf'\n\
    maplist = 'name=defaultusermap, path=__LISTDIR__/../authplugins/users'\n\
    ipmaplist = 'name=ipmap, path=__LISTDIR__/../authplugins/addresses'\n\
    iplist = 'name=bannedclient,messageno=100,path=__LISTDIR__/bannedclients'\n\
    preauthstoryboard = 'e/preauth.story'\n";

#[test]
fn lists_lie_where_the_version_has_them() {
    let group = "sitelist = 'name=banned,path=__LISTDIR__/sites'\n";
    let files = [
        ("e2guardian.conf", MAIN),
        ("preauth.story", "function(pre-authcheck)\nif(clientin,bannedclient) return setblock\n"),
        ("e2guardianf1.conf", group),
        ("e2guardianf2.conf", group),
        ("e2guardianf3.conf", ".Define LISTDIR <e/own>\nsitelist = 'name=banned,path=__LISTDIR__/sites'\n"),
        ("lists/common/bannedclients", "10.0.0.9\n"),
        ("lists/common/sites", "common.test\n"),
        ("lists/group2/sites", "second.test\n"),
        ("own/sites", "third.test\n"),
        ("ip.conf", "plugname = 'ip'\nstory_function = 'auth_ip'\n"),
        ("basic.conf", "plugname = 'proxy-basic'\nstory_function = 'auth_proxy_basic'\n"),
        ("lists/common/../authplugins/users", "anna=3\n"),
        ("lists/common/../authplugins/addresses", "10.0.0.2 = filter2\n"),
    ];
    let filter = load(&files, Dialect::Sluice);
    assert_eq!(filter.problems(), []);
    let verdict = |client: &str, user, url: &str| {
        let request = Request { url: url.as_bytes(), client: client.parse().ok(), user, ..Request::default() };
        let decision = filter.request(&request);
        (decision.group, decision.verdict == Verdict::Block)
    };
    assert_eq!(verdict("10.0.0.1", None, "http://common.test/"), (1, true));
    assert_eq!(verdict("10.0.0.2", None, "http://second.test/"), (2, true));
    assert_eq!(verdict("10.0.0.2", None, "http://common.test/"), (2, false));
    assert_eq!(verdict("10.0.0.1", Some("anna"), "http://third.test/"), (3, true));
    assert!(verdict("10.0.0.9", None, "http://free.test/").1, "the client is banned");
}

#[test]
fn a_mark_of_utf_8_is_no_part_of_the_first_line() {
    let group = "\u{feff}bannedsitelist = 'e/sites'\nbannedurllist = 'e/urls'\n";
    let files = [("sites", "\u{feff}marked.test\n#ENDLIST\nbelow.test\n"), ("urls", "\u{feff}# a comment\na.test/x\n")];
    let filter = lists(group, &files);
    assert_eq!(filter.problems(), []);
    assert_eq!(ask(&filter, "http://marked.test/").verdict, Verdict::Block);
    assert_eq!(ask(&filter, "http://below.test/").verdict, Verdict::Block, "only lists on standard input end so");
    assert_eq!(ask(&filter, "http://a.test/x").verdict, Verdict::Block);
}

/// Spellings of `evil.a.test` that browsers map to it (UTS 46).
const SPELLINGS: [&str; 9] = [
    "EVIL.a.test",
    "ev\u{ad}il.a.test",
    "ev\u{200b}il.a.test",
    "ev\u{2060}il.a.test",
    "ev\u{feff}il.a.test",
    "\u{ff45}\u{ff56}\u{ff49}\u{ff4c}.a.test",
    "evil\u{3002}a\u{ff0e}test",
    "\u{24d4}vil.a.test",
    "ev%C2%ADil.a.test",
];

#[test]
fn hosts_of_lists_are_those_that_browsers_map_to() {
    let squid = |kind: &str, list: &str| {
        let main = format!("dbhome /db\ndest bad {{\n {kind} list\n}}\nacl {{ default {{ pass !bad any }} }}\n");
        let files = HashMap::from([("/etc/squidGuard.conf", main), ("/db/list", list.to_string())]);
        let mut read = |path: &str| {
            files.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| "there is none".to_string())
        };
        Filter::load("/etc/squidGuard.conf", Dialect::Sluice, Limits::default(), &mut read)
    };
    let sites = |list: &str| lists("bannedsitelist = 'e/sites'\n", &[("sites", list)]);
    let urls = |list: &str| lists("bannedurllist = 'e/urls'\n", &[("urls", list)]);
    let filters = [
        ("sites", sites("evil.a.test\nb\u{fc}cher.test\n")),
        ("hosts file", sites("0.0.0.0 evil.a.test\n0.0.0.0 b\u{fc}cher.test\n")),
        ("urls", urls("evil.a.test/x\nb\u{fc}cher.test/x\n")),
        ("Adblock", urls("[Adblock Plus 2.0]\n||evil.a.test^\n||b\u{fc}cher.test/x\n")),
        ("squidGuard's domains", squid("domainlist", "evil.a.test\nb\u{fc}cher.test\n")),
        ("squidGuard's URLs", squid("urllist", "evil.a.test/x\nb\u{fc}cher.test/x\n")),
        ("squidGuard's expressions", squid("expressionlist", "^evil\\.a\\.test/\n^xn--bcher-kva\\.test/\n")),
    ];
    for (name, filter) in filters {
        assert_eq!(filter.errors(), 0, "{name}: {:?}", filter.problems());
        let others = ["b\u{fc}cher.test", "B%C3%BCCHER.test", "xn--bcher-kva.test"];
        for host in SPELLINGS.into_iter().chain(others) {
            let is_upper = name.ends_with("expressions") && host.is_ascii() && !host.contains('%');
            let host = if is_upper { host.to_ascii_lowercase() } else { host.to_string() };
            assert_eq!(ask(&filter, &format!("http://{host}/x")).verdict, Verdict::Block, "{name}: {host:?}");
        }
        assert_ne!(ask(&filter, "http://bucher.test/x").verdict, Verdict::Block, "{name}");
    }
}

#[test]
fn entries_that_no_request_can_have_are_told() {
    let group = "bannedsitelist = 'e/sites'\nbannedurllist = 'e/urls'\nsitelist = 'name=grey,path=e/night'\n";
    let files = [
        ("sites", "*.b.test\nxn--bcher-kva.test\n"),
        ("urls", "https://a.test/x\nb.test/x\nc.test:8080/x\n"),
        ("night", "#time: 22 0 6 0 0123456\nnight.test\n"),
    ];
    let places: Vec<String> = lists(group, &files).problems().iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(places, ["e/sites:1", "e/night:1", "e/urls:1"]);
}

#[test]
fn expressions_hold_for_the_site_of_a_tunnel() {
    let group = "bannedregexpurllist = 'e/expressions'\n";
    let filter = lists(group, &[("expressions", "casino[0-9]+\nfoo\\.(exe|zip)$\n^https?://\n")]);
    let tunnel = |to: &str| filter.request(&Request { method: b"CONNECT", url: to.as_bytes(), ..Request::default() });
    let blocked = ["casino5.test:443", "foo.exe:443", "free.test:443"].map(|to| tunnel(to).verdict == Verdict::Block);
    assert_eq!(blocked, [true, true, false]);
}

#[test]
fn a_line_that_asks_for_a_list_that_is_not_there_is_told() {
    let group = "bannedsitelist = 'e/sites'\nstoryboard = 'e/own.story'\n";
    let story = "function(checkrequest)\nif(urlin,bannned) return setblock\nif(urlin,banned) return setblock\n\
                 if(urlin,exceptionvirus) unsetviruscheck\n";
    let filter = lists(group, &[("sites", "a.test\n"), ("own.story", story)]);
    let told: Vec<String> = filter.problems().iter().map(ToString::to_string).collect();
    let wanted = "e/own.story:2: note: no list for this state has the name bannned; the condition never holds";
    assert_eq!(told, [wanted]);
}

#[test]
fn a_proxy_that_asks_by_icap_has_functions_of_its_own() {
    let group = "bannedsitelist = 'e/sites'\nmimelist = 'name=bannedmime,path=e/types'\nstoryboard = 'e/own.story'\n";
    let story = "function(checkrequest)\nif(true) setgrey\nfunction(icap-checkrequest)\nif(urlin,banned) return setblock\n\
                 function(checkresponse)\nif(mimein,bannedmime) return setblock\n";
    let files = [("sites", "a.test\n"), ("types", "text/x\n"), ("own.story", story)];
    let filter = lists(group, &files);
    let ask = |entry| {
        let request = Request { method: b"GET", url: b"http://a.test/", entry, ..Request::default() };
        (filter.request(&request), request)
    };
    let ((proxy, request), (icap, asked)) = (ask(Entry::Proxy), ask(Entry::Icap));
    assert_eq!((proxy.verdict, icap.verdict), (Verdict::Allow, Verdict::Block));
    let response = Response { content_type: Some(b"text/x"), ..Response::default() };
    let group = &filter.groups()[0];
    assert_eq!(group.response(&request, &response, proxy.clone()).verdict, Verdict::Block);
    assert_eq!(group.response(&asked, &response, proxy).verdict, Verdict::Block, "there is none for ICAP");
}

/// A configuration of one main file of any name.
fn of_main(name: &str, text: &str) -> Filter {
    let mut read = |path: &str| match path {
        _ if path == name => Ok(text.as_bytes().to_vec()),
        "/db/bad" => Ok(b"bad.test\n".to_vec()),
        _ => Err("there is none".to_string()),
    };
    Filter::load(name, Dialect::Sluice, Limits::default(), &mut read)
}

#[test]
fn squidguard_is_known_by_its_first_statement() {
    let text = "# site\n\ndbhome /db\nlogdir /log\ndest bad { domainlist bad }\nacl { default { pass !bad all } }\n";
    for name in ["/etc/sg.conf", "/etc/squidGuard.conf", "/etc/squidguard/main"] {
        let filter = of_main(name, text);
        assert!(filter.problems().is_empty(), "{name}: {:?}", filter.problems());
        let blocks = |url: &str| {
            filter.request(&Request { url: url.as_bytes(), ..Request::default() }).verdict == Verdict::Block
        };
        assert!(blocks("http://bad.test/") && !blocks("http://good.test/"), "{name}");
    }
    let filter = of_main("/etc/sg.conf", "dest = 'a'\n");
    assert!(filter.problems().iter().any(|problem| problem.reason.contains("no option dest")), "it is no statement");
}

#[test]
fn options_of_older_versions_name_their_successors() {
    let filter = of_main("/etc/e2guardian.conf", "bannedsslsitelist = '/a'\nbannedslist = '/b'\n");
    let told: Vec<(u32, &str, &str)> =
        filter.problems().iter().map(|one| (one.place.line, &*one.reason, &*one.advice)).collect();
    let wanted = (
        1,
        "bannedsslsitelist is an option of E2Guardian 3 and 4",
        "write sitelist = 'name=bannedssl,messageno=520,path=PATH'",
    );
    assert!(told.contains(&wanted), "{told:?}");
    assert!(told.contains(&(2, "there is no option bannedslist", "check its spelling")), "{told:?}");
}

#[test]
fn numbers_end_at_the_first_other_character() {
    let group = |value: &str| {
        let text = format!("filtergroups = 3\ndefaultfiltergroup = {value}\n");
        let filter = of_main("/etc/e2guardian.conf", &text);
        let is_wrong = filter.problems().iter().any(|problem| problem.reason.contains("is no number"));
        (filter.request(&Request::default()).group, is_wrong)
    };
    assert_eq!(group("2;"), (2, false));
    assert_eq!(group("3"), (3, false));
    assert_eq!(group("x2"), (1, true));
}
