//! Decisions on odd lists and requests, as E2Guardian 5.3.5 gives them.

use rules::web::phrase::{Dialect, Outcome};
use rules::web::{Decision, Field, Filter, Moment, Request, Response, Severity, Verdict};

use crate::web::{ask, load};

const STORY: &str = "function(checkrequest)\nif(urlin,exception) return setexception\nif(refererin,refererexception) return setexception\n\
    if(urlin,grey) return setgrey\nif(urlin,banned) return setblock\nif(urlin,bannedextension) return setblock\n\
    if(fullurlin,addheader) setaddheader\nif(true) setgrey\n\
    function(checkresponse)\nif(extensionin,exceptionextension) return false\nif(mimein,bannedmime) return setblock\n\
    if(extensionin,bannedextension) return setblock\n";

pub fn lists(dialect: Dialect, group: &str, files: &[(&str, &str)]) -> Filter {
    let group = format!("storyboard = 'e/agreement.story'\n{group}");
    let mut all = vec![("e2guardian.conf", ""), ("e2guardianf1.conf", &*group), ("agreement.story", STORY)];
    all.extend(files);
    load(&all, dialect)
}

fn is_blocked(decision: &Decision) -> bool {
    decision.verdict == Verdict::Block
}

#[test]
fn a_time_that_is_not_understood_never_holds() {
    let times = ["0,1,2", "0-6", "1,2", "0", "7", "x", "0,1,2,3,4,5,6", ""];
    let include: String = (0..times.len()).map(|number| format!(".Include<t{number}>\n")).collect();
    let names: Vec<String> = (0..times.len()).map(|number| format!("t{number}")).collect();
    let texts: Vec<String> =
        (times.iter().enumerate()).map(|(number, days)| format!("#time: 0 0 23 59 {days}\nt{number}.test\n")).collect();
    let phrases = "#time: 0 0 24 0 0\n<zork><200>\n";
    let mut files = vec![("banned", &*include), ("weighted", phrases)];
    files.extend(names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)));
    let group = "bannedsitelist = 'e/banned'\nweightedphraselist = 'e/weighted'\n";
    let filter = lists(Dialect::Sluice, group, &files);
    let blocked = |day| -> Vec<usize> {
        let holds = |number: &usize| {
            let (url, now) = (format!("http://t{number}.test/"), Moment { day, ..Moment::default() });
            is_blocked(&filter.request(&Request { method: b"GET", url: url.as_bytes(), now, ..Request::default() }))
        };
        (0..times.len()).filter(holds).collect()
    };
    assert_eq!((blocked(0), blocked(1), blocked(6)), (vec![0, 1, 3], vec![0, 2], vec![1]));
    let mut told: Vec<String> = filter.problems().iter().map(|problem| problem.place.to_string()).collect();
    told.sort();
    assert_eq!(told, ["e/t1:1", "e/t4:1", "e/t5:1", "e/t6:1", "e/t7:1", "e/weighted:1"]);
    let mut page = filter.groups()[0].page(&Response::default(), &Decision::default()).expect("a page");
    page.feed(b" zork ");
    assert_eq!(page.finish(Moment::default()).points, 0);
}

#[test]
fn a_list_holds_as_long_as_those_that_include_it() {
    let group = "bannedsitelist = 'e/banned'\n";
    let files = [
        ("banned", "#time: 8 0 12 0 01\na.test\n.Include<plain>\n.Include<own>\n"),
        ("plain", "b.test\n"),
        ("own", "#time: 10 0 23 0 12\nc.test\n"),
    ];
    let filter = lists(Dialect::Sluice, group, &files);
    let blocked = |day, hour: u16| {
        let now = Moment { day, minute: hour * 60, ..Moment::default() };
        ["a", "b", "c"].map(|name| {
            let url = format!("http://{name}.test/");
            is_blocked(&filter.request(&Request { method: b"GET", url: url.as_bytes(), now, ..Request::default() }))
        })
    };
    assert_eq!((blocked(1, 9), blocked(1, 11), blocked(1, 13)), ([true, true, false], [true; 3], [false; 3]));
    assert_eq!((blocked(0, 11), blocked(2, 11)), ([true, true, false], [false; 3]));
}

#[test]
fn a_line_of_a_storyboard_without_a_list_gives_its_message_as_the_reason() {
    let story = "function(checkrequest)\nif(siteisip,,505) return setblock\nifnot(get,,506) return setblock\nif(true,,502) return setblock\n";
    let files = [("e2guardian.conf", ""), ("e2guardianf1.conf", "storyboard = 'e/own.story'\n"), ("own.story", story)];
    let filter = load(&files, Dialect::Sluice);
    let message = |method: &[u8], url: &[u8]| {
        let decision = filter.request(&Request { method, url, ..Request::default() });
        assert!(is_blocked(&decision));
        decision.reason.map(|reason| reason.message)
    };
    assert_eq!(message(b"GET", b"http://10.1.1.1/"), Some(505));
    assert_eq!((message(b"PUT", b"http://a.test/"), message(b"GET", b"http://a.test/")), (Some(506), Some(502)));
}

#[test]
fn grey_takes_back_what_was_decided_before_it() {
    let decided = |lines: &str, url: &str| {
        let story = format!("function(checkrequest)\n{lines}\n");
        let group = "storyboard = 'e/own.story'\nbannedsitelist = 'e/bad'\nexceptionsitelist = 'e/good'\n";
        let files = [
            ("e2guardian.conf", ""),
            ("e2guardianf1.conf", group),
            ("own.story", &*story),
            ("bad", "b.test\n"),
            ("good", "x.test\n"),
        ];
        let decision = ask(&load(&files, Dialect::E2guardian535), url);
        (decision.verdict, decision.reason.map(|reason| reason.entry))
    };
    let (good, bad) = ("if(urlin,exception) setexception", "if(urlin,banned) setblock");
    for (lines, url, verdict, entry) in [
        (format!("{good}\nif(true) setgrey"), "http://x.test/", Verdict::Grey, "x.test"),
        (format!("{bad}\nif(true) setgrey"), "http://b.test/", Verdict::Grey, "b.test"),
        (format!("{good}\n{bad}"), "http://x.test/", Verdict::Exception, "x.test"),
        (format!("if(true) setgrey\n{bad}"), "http://b.test/", Verdict::Block, "b.test"),
    ] {
        assert_eq!(decided(&lines, url), (verdict, Some(entry.into())), "{lines}");
    }
}

#[test]
fn a_port_or_a_dot_behind_the_host_hides_no_site_from_expressions() {
    let files = [("add", "\"^(http://h\\.test/.*)$\"->\"X-Two: two\"\n")];
    let filter = lists(Dialect::Sluice, "addheaderregexplist = 'e/add'\n", &files);
    for url in ["http://h.test/x", "http://h.test:80/x", "http://H.test./x", "https://h.test:443/x"] {
        assert!(ask(&filter, url).added.is_some(), "{url}");
    }
}

#[test]
fn options_turn_phrases_and_addresses_in_lists_of_sites_off() {
    let group = "bannedsitelist = 'e/banned'\nbannedphraselist = 'e/phrases'\nstoryboard = 'e/agreement.story'\n";
    for (main, wanted) in [("", [true, true]), ("searchsitelistforip = off\nweightedphrasemode = 0\n", [false, false])]
    {
        let files = [
            ("e2guardian.conf", main),
            ("e2guardianf1.conf", group),
            ("agreement.story", STORY),
            ("banned", "10.1.2.4\n"),
            ("phrases", "<xanax>\n"),
        ];
        let filter = load(&files, Dialect::Sluice);
        let mut page = filter.groups()[0].page(&Response::default(), &Decision::default()).expect("a page");
        page.feed(b" xanax ");
        let is_banned = matches!(page.finish(Moment::default()).outcome, Outcome::Banned { .. });
        assert_eq!([is_blocked(&ask(&filter, "http://10.1.2.4/")), is_banned], wanted, "{main}");
    }
}

#[test]
fn a_response_is_judged_by_the_names_that_it_gives() {
    let group = "greysitelist = 'e/grey'\nbannedextensionlist = 'e/banned'\nbannedmimetypelist = 'e/types'\n\
                 fileextlist = 'name=exceptionextension,path=e/spared'\n";
    let files = [("grey", "grey.test\n"), ("banned", ".exe\n"), ("types", "audio/mpeg\n"), ("spared", ".html\n")];
    let all = [Dialect::Sluice, Dialect::E2guardian535].map(|dialect| lists(dialect, group, &files));
    for filter in &all {
        let verdict = |url: &str, content_type: &str, names: [Option<&'static [u8]>; 2]| {
            let request = Request { method: b"GET", url: url.as_bytes(), ..Request::default() };
            let response = Response { content_type: Some(content_type.as_bytes()), file_names: names };
            is_blocked(&filter.groups()[0].response(&request, &response, filter.groups()[0].request(&request)))
        };
        let program = "application/octet-stream";
        let (exe, txt, html) = (Some(&b"a.exe"[..]), Some(&b"b.txt"[..]), Some(&b"c.html"[..]));
        assert!(!verdict("http://grey.test/a.exe", program, [None; 2]));
        assert!(verdict("http://grey.test/x", program, [exe, None]));
        assert!(verdict("http://f.test/x", program, [txt, exe]) && verdict("http://f.test/x", program, [exe, txt]));
        assert!(verdict("http://f.test/x", program, [html, exe]), "one name of two is an exception");
        assert!(!verdict("http://f.test/x", "audio/mpeg", [html, html]));
        assert!(verdict("http://f.test/a.exe", program, [None; 2]));
        assert!(verdict("http://f.test/b", "audio/mpeg ,x", [None; 2]));
    }
    let coded = all.map(|filter| is_blocked(&ask(&filter, "http://f.test/a%2eexe")));
    assert_eq!(coded, [true, false], "E2Guardian decodes no extension");
}

#[test]
fn a_referer_lifts_a_block_by_its_site_alone() {
    let group = "bannedsitelist = 'e/banned'\nsitelist = 'name=refererexception,path=e/sites'\n\
                 urllist = 'name=refererexception,path=e/urls'\n";
    let files = [("banned", "bad.test\n"), ("sites", "site.test\n"), ("urls", "url.test/dir\n")];
    let filter = lists(Dialect::Sluice, group, &files);
    let from = |referer: &str| {
        let fields: [Field<'_>; 1] = [(b"Referer", referer.as_bytes())];
        let request = Request { method: b"GET", url: b"http://bad.test/", fields: &fields, ..Request::default() };
        is_blocked(&filter.request(&request))
    };
    assert_eq!((from("http://www.site.test/x"), from("http://url.test/dir/x")), (false, true));
}

#[test]
fn a_field_that_gets_another_name_stays() {
    let story = "function(checkrequest)\nif(headerin,headermods) setmodheader\n";
    let header = "\"^X-Evil: (.*)\"->\"X-Was: \\1\"\n\"^X-Size: \"->\"Content-Length: \"\n\"^X-None: \"->\"A b: \"\n";
    let group = "storyboard = 'e/own.story'\nheaderregexplist = 'e/header'\n";
    let files = [("e2guardian.conf", ""), ("e2guardianf1.conf", group), ("own.story", story), ("header", header)];
    let filter = load(&files, Dialect::E2guardian535);
    let fields: [Field<'_>; 3] = [(b"X-Evil", b"yes"), (b"X-Size", b"4"), (b"X-None", b"x")];
    let told =
        filter.request(&Request { method: b"GET", url: b"http://a.test/", fields: &fields, ..Request::default() });
    assert_eq!(told.fields, [(0, b"yes".to_vec())]);
    assert_eq!(told.renamed, [(0, b"X-Was".to_vec())]);
}

#[test]
fn marks_around_words_of_a_search_and_dots_in_a_path_hide_nothing() {
    let story = "function(checkrequest)\nif(fullurlin,searchterms) setsearchterm\nif(searchin,banned) return setblock\nif(urlin,banned) return setblock\n";
    let group = "storyboard = 'e/own.story'\nsearchregexplist = 'e/search'\nbannedsearchlist = 'e/terms'\nbannedurllist = 'e/urls'\n";
    let files = [
        ("e2guardian.conf", ""),
        ("e2guardianf1.conf", group),
        ("own.story", story),
        ("search", "\"^http://s\\.test/search\\?q=([^&]*)\"->\"\\1\"\n"),
        ("terms", "bomb\nred+apple\n\u{fc}bel+c++\n?!+\n"),
        ("urls", "u.test/dir\n"),
    ];
    let filter = load(&files, Dialect::Sluice);
    let blocked = |url: &str| is_blocked(&ask(&filter, url));
    for words in [
        "bomb",
        "%22bomb%22",
        "bomb.",
        "bomb,",
        "(bomb)",
        "bomb?",
        "-bomb",
        "bomb%0a",
        "red-apple",
        "Apple,+red",
        "%22red%20apple%22",
        "red%C2%A0apple",
        "red%E3%80%80apple",
        "C%2B%2B+%C3%9CBEL",
        "u%CC%88bel-c",
    ] {
        assert!(blocked(&format!("http://s.test/search?q={words}")), "{words}");
    }
    for words in ["bombs", "", "%3F", "red", "ubel+c"] {
        assert!(!blocked(&format!("http://s.test/search?q={words}")), "{words}");
    }
    assert!(blocked("http://s.test/./search?q=bomb"));
    for path in ["dir", "./dir", "%2e/dir/x", "x/%2E./dir", "dir/./1"] {
        assert!(blocked(&format!("http://u.test/{path}")), "{path}");
    }
    assert!(filter.problems().iter().any(|problem| problem.place.to_string() == "e/terms:4"));
}

#[test]
fn the_user_is_not_told_the_phrase_or_the_expression() {
    let group = "bannedregexpurllist = 'e/expressions'\nbannedphraselist = 'e/phrases'\nbannedsitelist = 'e/sites'\n";
    let files = [("expressions", "evil[0-9]?\n"), ("phrases", "<xanax>\n"), ("sites", "bad.test\n")];
    for dialect in [Dialect::Sluice, Dialect::E2guardian535] {
        let filter = lists(dialect, group, &files);
        let told = |decision: Decision| {
            let reason = decision.reason.expect("a reason");
            (reason.text, reason.log)
        };
        let (text, log) = told(ask(&filter, "http://x.test/evil1"));
        assert_eq!((&*text, &*log), ("The URL matches a banned expression.", "The URL matches: evil[0-9]?"));
        let (text, log) = told(ask(&filter, "http://bad.test/"));
        assert_eq!((&*text, &*log), ("The site is blocked: bad.test", "The site is blocked: bad.test"));
        let group = &filter.groups()[0];
        let mut page = group.page(&Response::default(), &Decision::default()).expect("a page");
        page.feed(b" xanax ");
        let (text, log) = told(group.scored(&page.finish(Moment::default()), Decision::default()));
        assert_eq!((&*text, &*log), ("A banned phrase was found.", "A banned phrase: xanax"));
    }
}

#[test]
fn urls_of_lists_are_matched_up_to_their_fragment() {
    let group = "bannedurllist = 'e/urls'\n";
    let files = [("urls", "a.test/x.html#mail\nb.test/#ce\nc.test/d # a comment\nhost.test\n")];
    for dialect in [Dialect::Sluice, Dialect::E2guardian535] {
        let filter = lists(dialect, group, &files);
        let blocked = |url: &str| is_blocked(&ask(&filter, url));
        assert!(blocked("http://a.test/x.html") && !blocked("http://a.test/x"));
        assert!(blocked("http://b.test/x") && blocked("http://c.test/d") && blocked("http://host.test/x"));
        let is_ours = dialect == Dialect::Sluice;
        assert_eq!(blocked("http://host.test/"), is_ours, "E2Guardian asks for no bare host");
        let told: Vec<_> = filter.problems().iter().map(|problem| (problem.severity, problem.place.line)).collect();
        assert_eq!(told, [(Severity::Note, 1), (Severity::Note, 2)]);
    }
}

#[test]
fn a_field_is_made_of_the_match_or_of_the_whole_url() {
    let files = [("add", "\"^http://one\\.test\"->\"X-One: a\"\n")];
    let added = [Dialect::Sluice, Dialect::E2guardian535].map(|dialect| {
        let filter = lists(dialect, "addheaderregexplist = 'e/add'\n", &files);
        ask(&filter, "http://one.test/y").added.map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
    });
    assert_eq!(added, [Some("a".into()), Some("a/y".into())]);
}
