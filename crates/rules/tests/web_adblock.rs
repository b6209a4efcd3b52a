//! Adblock lists where a list of URLs may stand: patterns, options, exceptions, and what is left out.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

use rules::web::phrase::Dialect;
use rules::web::{Decision, Field, Filter, Limits, Request, Verdict};

const GROUP: &str =
    "urllist = 'name=banned,messageno=501,path=e/banned'\nurllist = 'name=exception,path=e/exception'\n";

fn load(files: &[(&str, &str)]) -> Filter {
    let files: HashMap<&str, &str> =
        [("e.conf", ""), ("ef1.conf", GROUP)].into_iter().chain(files.iter().copied()).collect();
    let mut read = |path: &str| {
        let text = files.get(path.strip_prefix("e/").unwrap_or(path));
        text.map(|text| text.as_bytes().to_vec()).ok_or_else(|| "there is no such file".to_string())
    };
    Filter::load("e.conf", Dialect::Sluice, Limits::default(), &mut read)
}

/// A filter with these rules, and none that is not understood.
fn banned(rules: &str) -> Filter {
    let filter = load(&[("banned", &format!("[Adblock Plus 2.0]\n{rules}\n")), ("exception", "")]);
    assert_eq!(filter.errors(), 0, "{:?}", filter.problems());
    filter
}

/// A request: its URL, its page and its destination, each of which may be missing.
#[derive(Clone, Copy, Default)]
struct Ask<'a> {
    url: &'a str,
    page: &'a str,
    destination: &'a str,
}

fn decide(filter: &Filter, ask: Ask<'_>) -> Decision {
    let fields: [Field<'_>; 2] = [(b"Referer", ask.page.as_bytes()), (b"Sec-Fetch-Dest", ask.destination.as_bytes())];
    let fields: Vec<Field<'_>> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    filter.request(&Request { method: b"GET", url: ask.url.as_bytes(), fields: &fields, ..Request::default() })
}

fn is_blocked(filter: &Filter, ask: Ask<'_>) -> bool {
    decide(filter, ask).verdict == Verdict::Block
}

fn of(url: &str) -> Ask<'_> {
    Ask { url, ..Ask::default() }
}

#[test]
fn a_pattern_matches_what_its_anchors_and_separators_say() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        (
            "||ads.test^",
            &["http://ads.test/", "http://a.ads.test/x", "https://ADS.test:8443/x", "http://me@ads.test./x"],
            &["http://bads.test/", "http://ads.test.org/", "http://x.test/ads.test/"],
        ),
        ("||ads.test/x/", &["http://www.ads.test/x/y"], &["http://ads.test/xy", "http://ads.test/y/x/"]),
        ("||example.test", &["http://example.tests/"], &["http://anexample.test/"]),
        ("|http://a.test/x", &["http://a.test/xy"], &["https://a.test/x", "http://b.test/?u=http://a.test/x"]),
        (".swf|", &["http://a.test/b.swf"], &["http://a.test/b.swf?c"]),
        ("/ads/*/big", &["http://a.test/ads/1/2/big.gif"], &["http://a.test/ads/big", "http://a.test/big/ads/"]),
        ("&ad=*^", &["http://a.test/?b&ad=1"], &["http://a.test/?bad=1"]),
        (
            "^one^",
            &["http://a.test/one/", "http://a.test/one", "http://a.test/?one"],
            &["http://a.test/one.gif", "http://a.test/one-x"],
        ),
        ("/Banner-Ad", &["http://a.test/banner-ad.gif"], &["http://a.test/banner_ad.gif"]),
        ("/Top$match-case", &["http://a.test/Top"], &["http://a.test/top"]),
        (r"/\/ad[0-9]{2}\.gif$/", &["http://a.test/ad12.GIF"], &["http://a.test/ad1.gif", "http://a.test/ad12.gif?x"]),
        (r"/\/Ad[0-9]/$match-case", &["http://a.test/Ad1"], &["http://a.test/ad1"]),
        ("||a.*/x^", &["http://a.test/x"], &["http://b.test/x"]),
        ("||[2001:db8::1]/", &["http://[2001:db8:0::1]/"], &["http://[2001:db8::2]/"]),
    ];
    for (rule, matching, others) in rows {
        let filter = banned(rule);
        for url in *matching {
            assert!(is_blocked(&filter, of(url)), "{rule}: {url}");
        }
        for url in *others {
            assert!(!is_blocked(&filter, of(url)), "{rule}: {url}");
        }
    }
}

#[test]
fn options_hold_for_the_page_the_site_and_the_type_of_a_request() {
    let page = |page| Ask { url: "http://cdn.x.test/a", page, ..Ask::default() };
    let typed = |destination| Ask { url: "http://cdn.x.test/a", page: "http://y.test/", destination };
    let rows: &[(&str, Ask<'_>, bool)] = &[
        ("cdn.x.test$third-party", page("http://y.test/"), true),
        ("cdn.x.test$third-party", page("http://www.x.test/"), false),
        ("cdn.x.test$third-party", page(""), false),
        ("cdn.x.test$~third-party", page("http://x.test/"), true),
        ("cdn.x.test$1p", page("http://y.test/"), false),
        ("cdn.x.test$domain=y.test|z.test", page("http://www.y.test/b"), true),
        ("cdn.x.test$domain=y.test", page("http://ay.test/"), false),
        ("cdn.x.test$domain=y.test", page(""), false),
        ("cdn.x.test$domain=y.test|~a.y.test", page("http://b.a.y.test/"), false),
        ("cdn.x.test$domain=~y.test", page("http://z.test/"), true),
        ("cdn.x.test$domain=~y.test", page("http://y.test/"), false),
        ("cdn.x.test$domain=y.*", page("http://www.y.co.uk/"), true),
        ("cdn.x.test$domain=y.*", page("http://y.x.test/"), false),
        ("*$domain=y.test", page("http://y.test/"), true),
        ("*$script,denyallow=x.test", typed("script"), false),
        ("*$script,denyallow=z.test", typed("script"), true),
        ("cdn.x.test$script", typed("script"), true),
        ("cdn.x.test$script,image", typed("image"), true),
        ("cdn.x.test$script", typed("style"), false),
        ("cdn.x.test$~script", typed("style"), true),
        ("cdn.x.test$~script", typed("script"), false),
        ("cdn.x.test$xhr", typed("empty"), false),
        ("cdn.x.test$xhr,ping", typed("empty"), true),
        ("cdn.x.test", typed("document"), false),
        ("||cdn.x.test^", typed("document"), true),
        ("cdn.x.test/a$~image", typed("document"), false),
        ("cdn.x.test/a$document", typed("document"), true),
        ("cdn.x.test$script,popup", typed("script"), true),
        ("cdn.x.test$script,redirect=noop.js", typed("script"), true),
    ];
    for (rule, ask, wanted) in rows {
        assert_eq!(is_blocked(&banned(rule), *ask), *wanted, "{rule}: {:?} {:?}", ask.page, ask.destination);
    }
}

#[test]
fn a_type_is_known_by_accept_and_by_the_extension() {
    let filter = banned("||x.test^$image\n||y.test^$script\n||z.test^$subdocument\n||w.test^$websocket");
    let ask = |url: &str, fields: &[Field<'_>]| {
        filter.request(&Request { method: b"GET", url: url.as_bytes(), fields, ..Request::default() }).verdict
            == Verdict::Block
    };
    assert!(ask("http://x.test/a", &[(b"Accept", b"image/avif,*/*")]) && ask("http://x.test/a.PNG?b", &[]));
    assert!(ask("http://y.test/a.js?v=1", &[(b"Accept", b"*/*")]) && !ask("http://y.test/a", &[(b"Accept", b"*/*")]));
    assert!(!ask("http://z.test/", &[(b"Accept", b"text/html,*/*")]), "it may be a page of its own");
    assert!(ask("http://w.test/", &[(b"Upgrade", b"websocket")]) && !ask("http://w.test/", &[]));
}

#[test]
fn exceptions_count_before_rules_and_important_rules_before_exceptions() {
    let filter = banned(
        "||ads.test^\n@@||ads.test/ok^\n||ads.test/ok/never^$important\n@@||free.test^$document\n||gone.test^\n\
         ||gone.test^$badfilter\n||kept.test^$script,third-party\n||kept.test^$third-party,badfilter\n\
         @@||ads.test^$image,domain=shop.test",
    );
    let on = |url, page| Ask { url, page, destination: "image" };
    assert!(is_blocked(&filter, of("http://ads.test/x")) && !is_blocked(&filter, of("http://ads.test/ok")));
    assert!(is_blocked(&filter, of("http://ads.test/ok/never")));
    assert!(!is_blocked(&filter, on("http://ads.test/x", "http://www.free.test/")));
    assert!(!is_blocked(&filter, on("http://ads.test/x", "http://shop.test/")));
    assert!(is_blocked(&filter, on("http://ads.test/x", "http://free.test.org/")));
    assert!(!is_blocked(&filter, of("http://gone.test/")));
    let script = Ask { url: "http://kept.test/", page: "http://y.test/", destination: "script" };
    assert!(is_blocked(&filter, script), "the options are others");
    let reason = decide(&filter, of("http://ads.test/x")).reason.expect("a reason");
    assert_eq!((reason.message, &*reason.list, &*reason.entry), (501, "banned", "||ads.test^"));
}

#[test]
fn a_tunnel_is_blocked_by_rules_for_the_whole_of_its_host() {
    let filter = banned(
        "||ads.test^\n||path.test/x\n||some.test^$third-party\n||mixed.test^\n@@||mixed.test/ok.js$script\n||very.test^$important\n@@||very.test^",
    );
    let tunnel = |host: &str| {
        let request = Request { method: b"CONNECT", url: host.as_bytes(), ..Request::default() };
        filter.request(&request).verdict == Verdict::Block
    };
    assert!(tunnel("a.ads.test:443") && tunnel("ADS.test.:8443") && tunnel("very.test:443"));
    assert!(!tunnel("path.test:443") && !tunnel("some.test:443"));
    assert!(!tunnel("mixed.test:443"), "a part of it is free");
}

#[test]
fn files_that_a_list_includes_are_one_list_of_rules() {
    let files = [
        ("banned", "#listcategory: \"Own\"\n.Include<ads>\n.Include<own>\nbad.test/x\n"),
        (
            "ads",
            "! Title: Ads of all kinds\n||ads.test^\n!#if ext_ublock\n||b.test^\n!#else\n||c.test^\n!#endif\n||d.test^\n",
        ),
        ("own", "[Adblock]\n@@||ads.test/ok^\n"),
        ("exception", "! free\n||bad.test/x/free^\n"),
    ];
    let filter = load(&files);
    assert_eq!(filter.errors(), 0, "{:?}", filter.problems());
    assert!(is_blocked(&filter, of("http://ads.test/x")) && !is_blocked(&filter, of("http://ads.test/ok")));
    assert!(!is_blocked(&filter, of("http://b.test/")) && is_blocked(&filter, of("http://c.test/")));
    assert!(is_blocked(&filter, of("http://d.test/")) && is_blocked(&filter, of("http://bad.test/x")));
    assert_eq!(decide(&filter, of("http://bad.test/x/free")).verdict, Verdict::Exception);
    assert_eq!(decide(&filter, of("http://ads.test/x")).categories, ["Ads of all kinds".into()]);
}

#[test]
fn a_list_of_squidguard_may_be_one() {
    let files = HashMap::from([
        ("/etc/squidGuard.conf", "dbhome /db\ndest ads {\n urllist ads/urls\n}\nacl { default { pass !ads any } }\n"),
        ("/db/ads/urls", "! of the day\n||ads.test/x^\n"),
    ]);
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec()).ok_or("there is none".to_string());
    let filter = Filter::load("/etc/squidGuard.conf", Dialect::Sluice, Limits::default(), &mut read);
    assert_eq!(filter.errors(), 0, "{:?}", filter.problems());
    assert!(is_blocked(&filter, of("http://ads.test/x")) && !is_blocked(&filter, of("http://ads.test/")));
}

#[test]
fn rules_that_are_left_out_are_counted_and_those_not_understood_are_told() {
    let list = "! Title: x\n##.ad\na.test#@#.b\na.test#?#div:has(x)\nb.test$$script[x]\n||a.test^$csp=script-src 'self'\n\
                ||a.test^$removeparam=/^u,t$/\n||a.test^$popup\n@@||a.test^$generichide\n||a.test^$nonsense\n/(/\n0.0.0.0 a.test\n\
                ||b.test^$method=post\n*\n||good.test^\n";
    let filter = load(&[("banned", list), ("exception", "")]);
    let told: Vec<String> = filter.problems().iter().map(ToString::to_string).collect();
    let wrong = |line, rule| format!("e/banned:{line}: error: the rule {rule} is not understood; it has no effect");
    let note = |line, words| format!("e/banned:{line}: note: {words}; they have no effect");
    let wanted = [
        wrong(10, "||a.test^$nonsense"),
        wrong(11, "/(/"),
        wrong(12, "0.0.0.0 a.test"),
        wrong(13, "||b.test^$method=post"),
        wrong(14, "*"),
        note(2, "4 rules from here on hide elements of pages"),
        note(6, "2 rules from here on change pages or requests"),
        note(8, "2 rules from here on are about windows and pages"),
    ];
    assert_eq!(told, wanted);
    assert_eq!(filter.census().entries, 1);
}

#[test]
fn a_rule_that_is_built_to_cost_much_is_bounded() {
    let stars: String = (0..200).fold(String::new(), |mut all, number| {
        let _ = writeln!(all, "{}b{number}", "*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(20));
        all
    });
    let filter = banned(&stars);
    let url = format!("http://a.test/{}", "a".repeat(60_000));
    let begun = Instant::now();
    let decision = decide(&filter, of(&url));
    assert!(decision.is_partial && decision.verdict == Verdict::Allow);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// `cargo test -p sluice-rules --release --test all -- --ignored --nocapture web_adblock::`; `SLUICE_ADBLOCK` names a list.
#[test]
#[ignore = "a measurement"]
fn measure_a_list_of_a_hundred_thousand_rules() {
    let of_number = |number: u32| match number % 10 {
        0..5 => format!("||host{number}.test^$third-party\n"),
        5 | 6 => format!("||cdn{}.test/track{number}/*.js$script\n", number % 300),
        7 => format!("/ad-slot-{number}.\n"),
        8 => format!("-banner_{number}^$image,domain=site{}.test|~a.site{}.test\n", number % 900, number % 900),
        _ => format!("@@||host{number}.test/ok^$domain=site{}.test\n", number % 900),
    };
    let list = match std::env::var_os("SLUICE_ADBLOCK") {
        Some(path) => std::fs::read_to_string(path).expect("a list"),
        None => (0..100_000).map(of_number).collect(),
    };
    let list = format!("[Adblock]\n{list}");
    let begun = Instant::now();
    let filter = load(&[("banned", &list), ("exception", "")]);
    let census = filter.census();
    eprintln!(
        "{} rules of {} bytes in {} bytes, loaded in {:?}",
        census.entries,
        list.len(),
        census.bytes,
        begun.elapsed()
    );
    let urls = [
        "https://www.news.example/2026/11/29/politics/some-long-title-of-a-story.html?utm_source=feed&id=12345",
        "https://cdn7.test/assets/js/track/main.bundle.min.js?v=20261129",
        "https://images.shop.example/products/thumb/400x300/banner_12-large.webp",
        "https://host10.test/pixel.gif?cb=1764452938&u=https%3A%2F%2Fwww.news.example%2F",
    ];
    for url in urls {
        let ask = Ask { url, page: "https://www.site8.test/", destination: "script" };
        let begun = Instant::now();
        (0..10_000).for_each(|_| drop(decide(&filter, ask)));
        eprintln!("{:?}: {:?} {url}", decide(&filter, ask).verdict, begun.elapsed() / 10_000);
    }
}
