//! The configuration and the lists of E2Guardian: values that E2Guardian 5.3.5 and 5.5.8 give, or that ours gives instead of them.

use std::collections::HashMap;
use std::sync::LazyLock;

use rules::web::phrase::{Dialect, Outcome, Page, Score};
use rules::web::{
    Cause, Decision, Field, Filter, Limits, Moment, Notice, Request, Response, Suffixes, Tokens, Told, Verdict,
};

/// A configuration of these files, and nothing else.
pub fn load(files: &[(&str, &str)], dialect: Dialect) -> Filter {
    let bytes: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect();
    load_bytes(&bytes, dialect)
}

fn load_bytes(files: &[(&str, Vec<u8>)], dialect: Dialect) -> Filter {
    let files: HashMap<&str, &Vec<u8>> = files.iter().map(|(name, bytes)| (*name, bytes)).collect();
    let mut read = |path: &str| {
        let name = path.strip_prefix("e/").unwrap_or(path);
        files.get(name).map(|bytes| bytes.to_vec()).ok_or_else(|| "there is no such file".to_string())
    };
    Filter::load("e/e2guardian.conf", dialect, Limits::default(), &mut read)
}

fn phrases(dialect: Dialect, main: &str, lists: [&[u8]; 3]) -> Filter {
    let group = "naughtynesslimit = 100000\nbannedphraselist = 'e/banned'\nweightedphraselist = 'e/weighted'\n\
                 exceptionphraselist = 'e/exception'\n";
    let [banned, weighted, exception] = lists.map(<[u8]>::to_vec);
    let files = [
        ("e2guardian.conf", main.as_bytes().to_vec()),
        ("e2guardianf1.conf", group.as_bytes().to_vec()),
        ("banned", banned),
        ("weighted", weighted),
        ("exception", exception),
    ];
    load_bytes(&files, dialect)
}

/// The score of a page, which is the same however the page is cut.
fn score(filter: &Filter, page: &[u8]) -> Score {
    let phrases = filter.groups()[0].phrases();
    let run = |pieces: &[&[u8]]| {
        let mut run = Page::new(phrases);
        pieces.iter().for_each(|piece| run.feed(piece));
        run.finish(Moment::default())
    };
    let whole = run(&[page]);
    for at in 0..=page.len().min(100) {
        assert_eq!(run(&[&page[..at], &page[at..]]), whole, "cut at {at}");
    }
    assert_eq!(run(&page.chunks(1).collect::<Vec<_>>()), whole, "cut into bytes");
    whole
}

fn points(filter: &Filter, page: impl AsRef<[u8]>) -> i32 {
    score(filter, page.as_ref()).points
}

const LIST: &[u8] = b"<qfoo><11>\n<abqc><12>\n<don't zork><14>\n<tom.zork><15>\n<tom/zork><16>\n<a&b zork><17>\n\
    <caf\xc3\xa9 zork><18>\n<\xd0\xbf\xd1\x80\xd0\xb8 zork><21>\n<\xe6\x97\xa5 zork><23>\n<zork=eq><26>\n<zork@at><27>\n\
    <zork(par)><28>\n<zork-dash><31>\n<zork~til><34>\n<zork|bar><35>\n<z  dbl><39>\n<caf\xe9lat zork><42>\n";

#[test]
fn phrases_have_the_points_of_each_dialect() {
    let rows: &[(&[u8], [i32; 3])] = &[
        (b"qfoo ", [11, 11, 11]),
        (b"QABQC ", [12, 12, 12]),
        (b"don't zork ", [0, 14, 14]),
        (b"don t zork ", [0, 14, 14]),
        (b"tom.zork ", [15, 15, 15]),
        (b"tom/zork ", [16, 16, 16]),
        (b"a&b zork ", [0, 17, 17]),
        (b"caf\xc3\xa9 zork ", [0, 0, 18]),
        (b"\xd0\xbf\xd1\x80\xd0\xb8 zork ", [0, 0, 21]),
        (b"\xe6\x97\xa5 zork ", [23, 23, 23]),
        (b"CAF\xc9LAT zork ", [42, 42, 42]),
        (b"zork=eq ", [26, 26, 26]),
        (b"zork@at ", [27, 27, 27]),
        (b"zork(par) ", [0, 28, 28]),
        (b"zork-dash ", [0, 31, 31]),
        (b"zork~til ", [34, 34, 34]),
        (b"zork|bar ", [35, 35, 35]),
    ];
    let dialects = [Dialect::E2guardian535, Dialect::E2guardian558, Dialect::Sluice];
    let filters = dialects.map(|dialect| phrases(dialect, "", [b"", LIST, b""]));
    for (page, wanted) in rows {
        let told = filters.each_ref().map(|filter| points(filter, page));
        assert_eq!(told, *wanted, "{}", page.escape_ascii());
    }
    assert_eq!(points(&filters[0], "z  dbl"), 39);
    assert_eq!((points(&filters[1], "z  dbl"), points(&filters[1], "z dbl")), (0, 39));
}

#[test]
fn words_at_the_edges_count_as_the_dialect_has_it() {
    let list = b"< zork b ><1>\n<zork c ><2>\n< zork d><4>\n<zork e><8>\n<zork f><32>\n";
    let old = |views: &str| phrases(Dialect::E2guardian535, &format!("phrasefiltermode = {views}\n"), [b"", list, b""]);
    let (raw, text) = (old("0"), old("1"));
    let tail = " abcdefghijkl";
    let rows = [
        (format!("zork b{tail}"), 0, 1),
        (format!(" zork b{tail}"), 1, 1),
        (format!("zork d{tail}"), 0, 4),
        ("abc zork c".into(), 0, 0),
        ("abc zork c ".into(), 2, 0),
        ("abc zork e".into(), 8, 0),
        ("abc zork ef".into(), 8, 8),
        ("abc zork c</p>x".into(), 2, 2),
        (format!("abc zork f{tail}"), 32, 32),
        (format!("abc zork<b>f{tail}"), 1, 32),
        (format!("abc zork  f{tail}"), 0, 32),
    ];
    for (page, in_raw, in_text) in rows {
        assert_eq!((points(&raw, &page), points(&text, &page)), (in_raw, in_text), "{page}");
    }
    let ours = phrases(Dialect::Sluice, "", [b"", list, b""]);
    assert_eq!(["zork b", "zork c", "zork d", "zork<i></i>e"].map(|page| points(&ours, page)), [1, 2, 4, 8]);
}

#[test]
fn weights_bans_and_exceptions_have_their_order() {
    let weighted = b"<dup><10>\n<dup><25>\n<half><50%>\n<zero><0>\n<one>,<two><5>\n<one>,<zork> <6>\n<three>,<><7>\n";
    let banned = b"<ban word>\n<ten><10>\n<b1>,<b2>\n";
    let exception = b"<free word>\n<twenty><20>\n<e1>,<e2>\n";
    let filter = phrases(Dialect::E2guardian535, "", [banned, weighted, exception]);
    let outcome = |page: &str| score(&filter, page.as_bytes()).outcome;
    assert_eq!(points(&filter, "dup dup "), 25);
    assert_eq!(points(&filter, "half "), 50_000);
    assert_eq!((points(&filter, "ten "), points(&filter, "twenty ")), (10, 20));
    assert_eq!((points(&filter, "one two "), points(&filter, "one "), points(&filter, "three ")), (5, 0, 7));
    let banned = |phrase: &str, is_together| Outcome::Banned { phrase: phrase.into(), is_together };
    let free = |phrase: &str, is_together| Outcome::Exception { phrase: phrase.into(), is_together };
    assert_eq!(outcome("zero "), banned("zero", false));
    assert_eq!(outcome("a ban word "), banned("ban word", false));
    assert_eq!(outcome("one zork "), banned("one, zork", true));
    assert_eq!(outcome("a ban word b1 b2 free word "), free("free word", false));
    assert_eq!(outcome("a ban word free word e1 e2 "), free("e1, e2", true));
    assert_eq!(score(&filter, b"dup free word ").points, 0);
    assert_eq!(outcome("half half dup ten twenty one two "), Outcome::Passed);
    let twice = phrases(Dialect::E2guardian535, "weightedphrasemode = 1\n", [b"", weighted, b""]);
    assert_eq!((points(&twice, "dup dup x"), points(&twice, "one two one two one x")), (50, 10));
    let off = phrases(Dialect::E2guardian535, "weightedphrasemode = 0\n", [b"", weighted, b""]);
    assert_eq!(points(&off, "dup dup x"), 0);
}

#[test]
fn time_category_and_case_belong_to_the_lines_behind_them() {
    let list = b"#listcategory: \"Games\"\n<poker><60>\n#time: 9 0 17 0 01234\n<chess><30>\n#listcategory: \"Sport\"\n<ball><20>\n";
    let filter = phrases(Dialect::Sluice, "", [b"", list, b""]);
    let at = |day, hour: u16| {
        let mut page = Page::new(filter.groups()[0].phrases());
        page.feed(b"poker chess ball");
        page.finish(Moment { day, minute: hour * 60, ..Moment::default() })
    };
    let names =
        |score: &Score| score.categories.iter().map(|(name, points)| (name.to_string(), *points)).collect::<Vec<_>>();
    assert_eq!((at(0, 12).points, at(0, 18).points, at(5, 12).points), (110, 60, 60));
    assert_eq!(names(&at(0, 12)), [("Games".to_string(), 90), ("Sport".to_string(), 20)]);
    let kept = phrases(
        Dialect::E2guardian535,
        "preservecase = 1\n",
        [b"", "<Caf\u{e9}><5>\n<Zork><6>\n#noconvert\n<Bar><7>\n".as_bytes(), b""],
    );
    // Of pages alone: phrases are in small letters in any case, as E2Guardian 5.3.5 scores them.
    assert_eq!((points(&kept, "caf\u{e9} x"), points(&kept, "Zork x"), points(&kept, "zork x")), (5, 0, 6));
    assert_eq!(points(&kept, "Bar x"), 7);
    for dialect in Dialect::ALL {
        let both = phrases(dialect, "preservecase = 2\n", [b"", b"<HOT><5>\n<cold><10>\n", b""]);
        let all = ["a hot b", "a HOT b", "a Cold b", "a cold b"].map(|page| points(&both, page));
        assert_eq!(all, [5, 5, 10, 10], "{}", dialect.name());
    }
    let decoded = phrases(Dialect::E2guardian535, "hexdecodecontent = on\n", [b"", b"<zork e><8>\n", b""]);
    assert_eq!(points(&decoded, "zor%6B%20e x"), 8);
}

#[test]
fn a_phrase_counts_in_each_of_its_windows() {
    let list = b"#time: 9 0 12 0 0123456\n<zork><90>\n<zork><60>\n#time: 11 0 18 0 0123456\n<zork><20>\n";
    for dialect in Dialect::ALL {
        let filter = phrases(dialect, "", [b"", list, b""]);
        let at = |hour: u16| {
            let mut page = Page::new(filter.groups()[0].phrases());
            page.feed(b"a zork b");
            page.finish(Moment { minute: hour * 60, ..Moment::default() }).points
        };
        assert_eq!([8, 10, 11, 15, 20].map(at), [0, 90, 90, 20, 0], "{}", dialect.name());
    }
}

#[test]
fn odd_settings_are_read_as_by_e2guardian_5_3_5() {
    let of =
        |main: &str, list: &[u8], page: &str| points(&phrases(Dialect::E2guardian535, main, [b"", list, b""]), page);
    let bytes = "phrasefiltermode = 0\nweightedphrasemode = 1\n";
    assert_eq!([of(bytes, b"<e=mc><60>", "1 e=mc 2"), of(bytes, b"< word ><60>", "a=word=b")], [0, 60]);
    let text = "phrasefiltermode = 1\npreservecase = 2\n";
    assert_eq!(of(text, "#noconvert\n<\u{41f}><40>\n".as_bytes(), "a \u{41f} x"), 0);
    let long = |count| format!("<{}><60>", "k".repeat(count));
    assert_eq!([126, 127, 200].map(|count| of("", long(count).as_bytes(), &"k".repeat(count + 1))), [60, 0, 0]);
    let sums = "phrasefiltermode = 2\nweightedphrasemode = 1\n";
    assert_eq!(of(sums, b"<grue><-40>\n<zork><10>\n", "<zork> grue <zork> b"), -40);
    assert_eq!(of(sums, b"<grue><-40>\n<zork><60>\n", "<zork> grue b"), 20);
}

#[test]
fn a_page_in_which_phrases_are_too_dense_to_count_is_blocked() {
    let nested: String = (1..=40).map(|count| format!("<{}><1>\n", "z".repeat(count))).collect();
    let filter = phrases(Dialect::Sluice, "", [b"", nested.as_bytes(), b"<free>\n"]);
    let score = |text: &[u8], cut: usize| {
        let mut page = Page::new(filter.groups()[0].phrases());
        text.chunks(cut).for_each(|piece| page.feed(piece));
        page.finish(Moment::default())
    };
    let dense = [vec![b'z'; 100_000], b" free ".to_vec()].concat();
    for cut in [1, 7, 8192, 70_000, 200_000] {
        assert_eq!(score(&dense, cut), Score { outcome: Outcome::Dense, ..Score::default() }, "{cut}");
    }
    let decision = filter.groups()[0].scored(&score(&dense, 8192), Decision::default());
    assert!(
        decision.verdict == Verdict::Block
            && decision.reason.is_some_and(|reason| reason.log.contains("too many phrases"))
    );
    // A page with much in it is none of these.
    let much = b"zzzzz zzz zz ".repeat(10_000);
    assert_eq!(score(&much, 8192).outcome, Outcome::Passed);
}

#[test]
fn a_page_above_the_limit_is_scored_where_the_dialect_has_it() {
    let page = [b"zorkban ".as_slice(), &b"x".repeat(3 << 20)].concat();
    let told = [Dialect::E2guardian535, Dialect::E2guardian558].map(|dialect| {
        let filter = phrases(dialect, "", [b"<zorkban>\n", b"", b""]);
        let mut run = Page::new(filter.groups()[0].phrases());
        run.feed(&page);
        run.finish(Moment::default()).outcome
    });
    assert_eq!(told[0], Outcome::Passed);
    assert!(matches!(told[1], Outcome::Banned { .. }));
}

/// A group with lists of one kind each.
pub fn lists(group: &str, files: &[(&str, &str)]) -> Filter {
    let mut all = vec![("e2guardian.conf", ""), ("e2guardianf1.conf", group)];
    all.extend(files);
    load(&all, Dialect::Sluice)
}

pub fn ask(filter: &Filter, url: &str) -> Decision {
    filter.request(&Request { method: b"GET", url: url.as_bytes(), ..Request::default() })
}

fn entry(filter: &Filter, url: &str) -> Option<String> {
    let decision = ask(filter, url);
    (decision.verdict == Verdict::Block).then(|| decision.reason.map(|reason| reason.entry).unwrap_or_default())
}

#[test]
fn sites_and_urls_are_blocked_however_they_are_written() {
    let sites = "banned.test\nwww.sub.test\n.wildtld\nUPPER.test\nport.test:8080\nxn--bcher-kva.test\nhttp://scheme.test\n\
                 slash.test/\ndotend.test.\n*.star.test\n10.9.8.7\nunder_score.test\n";
    let urls = "u.test/a\nu.test/Cap/X\nu.test/q?x=1\nu.test/enc%20oded\nu.test/dec oded\nu.test:8081/p\nwww.w.test/a\n\
                u.test/tr/\nu.test/dot.html\n";
    let filter = lists(
        "bannedsitelist = 'e/sites'\nbannedurllist = 'e/urls'\nstoryboard = 'e/story'\n",
        &[("sites", sites), ("urls", urls), ("story", STORY)],
    );
    let rows = [
        ("http://banned.test/", "banned.test"),
        ("http://a.b.banned.test/x", "banned.test"),
        ("http://xbanned.test/", ""),
        ("http://BANNED.TEST/", "banned.test"),
        ("http://banned.test./", "banned.test"),
        ("http://banned.test:8080/", "banned.test"),
        ("http://sub.test/", ""),
        ("http://www.sub.test/", "www.sub.test"),
        ("http://x.wildtld/", ".wildtld"),
        ("http://wildtld/", ".wildtld"),
        ("http://upper.test/", "upper.test"),
        ("http://port.test:8080/", ""),
        ("http://user@banned.test/", "banned.test"),
        ("http://user:pw@banned.test/", "banned.test"),
        ("http://b%61nned.test/", "banned.test"),
        ("http://xn--bcher-kva.test/", "xn--bcher-kva.test"),
        ("http://scheme.test/", ""),
        ("http://slash.test/", "slash.test"),
        ("http://dotend.test/", ""),
        ("http://a.star.test/", ""),
        ("http://10.9.8.7/", "10.9.8.7"),
        ("http://under_score.test/", "under_score.test"),
        ("http://u.test/a", "u.test/a"),
        ("http://u.test/a/b", "u.test/a"),
        ("http://u.test/ab", ""),
        ("http://x.y.u.test/a?z", "u.test/a"),
        ("http://u.test/A", "u.test/a"),
        ("http://u.test/a;x", ""),
        ("http://u.test/a&x", "u.test/a"),
        ("http://u.test/a=1", "u.test/a"),
        ("http://u.test/a.html", ""),
        ("http://u.test/a#f", ""),
        ("http://u.test/CAP/X", "u.test/cap/x"),
        ("http://u.test/q?x=1&y=2", "u.test/q?x=1"),
        ("http://u.test/q?x=12", ""),
        ("http://u.test/enc%20oded", "u.test/enc oded"),
        ("http://u.test/dec%20oded", "u.test/dec oded"),
        ("http://u.test/p", "u.test/p"),
        ("http://u.test//a", "u.test/a"),
        ("http://u.test/./a", "u.test/a"),
        ("http://u.test/x/../a", "u.test/a"),
        ("http://u.test/%61", "u.test/a"),
        ("http://u.test/%2561", ""),
        ("http://u.test/a%2fb", "u.test/a"),
        ("http://u.test/a%00", "u.test/a"),
        ("http://u.test/a/../c", ""),
        ("http://w.test/a", ""),
        ("http://www.w.test/a", "www.w.test/a"),
        ("http://u.test/tr/x", "u.test/tr"),
        ("http://u.test/dot.html?x", "u.test/dot.html"),
        ("http://u.test/x?u=u.test/a", ""),
        ("http://http.test/http://u.test/a", "u.test/a"),
    ];
    for (url, wanted) in rows {
        assert_eq!(entry(&filter, url).unwrap_or_default(), wanted, "{url}");
    }
    let told: Vec<String> = filter.problems().iter().map(ToString::to_string).collect();
    let wanted = ["e/sites:5:", "e/sites:7:", "e/sites:9:", "e/sites:10:"];
    assert!(told.len() == 4 && told.iter().zip(wanted).all(|(told, wanted)| told.starts_with(wanted)), "{told:?}");
}

const STORY: &str = "function(checkrequest)\nif(fullurlin,searchterms) setsearchterm\nif(urlin,exception) return setexception\n\
    if(urlin,grey) return setgrey\nif(urlin,banned) return setblock\nif(embeddedin,banned) return setblock\n\
    if(urlin,bannedextension) return setblock\nif(headerin,bannedheader) return setblock\nif(fullurlin,change) setmodurl\n\
    if(headerin,headermods) setmodheader\nif(fullurlin,addheader) setaddheader\nif(searchin,banned) return setblock\n\
    if(fullurlin,redirect) return setredirect\nif(true) setgrey\nfunction(checkresponse)\nif(mimein,bannedmime) return setblock\n\
    if(extensionin,bannedextension) return setblock\n";

#[test]
fn an_exception_counts_before_grey_and_that_before_a_ban() {
    let group = "bannedsitelist = 'e/banned'\ngreysitelist = 'e/grey'\nexceptionsitelist = 'e/exception'\n\
                 sitelist = 'name=banned,messageno=500,path=e/banned,sitewild=true'\n";
    let files = [
        ("banned", "#listcategory: \"Ads\"\na.test\nb.test\nc.test\n.Include<more>\n"),
        ("more", "#time: 9 0 17 0 01234\nd.test\n"),
        ("grey", "b.test\nc.test\n"),
        ("exception", "c.test # a comment\n"),
    ];
    let filter = lists(group, &files);
    assert_eq!(filter.problems(), []);
    let verdicts =
        ["http://a.test/", "http://b.test/", "http://c.test/", "http://e.test/"].map(|url| ask(&filter, url).verdict);
    assert_eq!(verdicts, [Verdict::Block, Verdict::Grey, Verdict::Exception, Verdict::Allow]);
    let told = ask(&filter, "http://www.a.test/x");
    assert_eq!(told.reason.map(|reason| reason.text).as_deref(), Some("The site is blocked: a.test"));
    assert_eq!(told.categories.iter().map(|name| &**name).collect::<Vec<_>>(), ["Ads"]);
    let at = |day| {
        let now = Moment { day, minute: 600, ..Moment::default() };
        filter.request(&Request { method: b"GET", url: b"http://d.test/", now, ..Request::default() }).verdict
    };
    assert_eq!((at(1), at(6)), (Verdict::Block, Verdict::Allow));
}

#[test]
fn the_group_is_that_of_the_address_the_port_or_the_name() {
    let main = "filtergroups = 3\nauthplugin = 'e/ip.conf'\nauthplugin = 'e/port.conf'\nauthplugin = 'e/basic.conf'\n\
                filtergroupslist = 'e/users'\n";
    let ip = "10.0.0.1-10.0.0.99 = filter2\n10.0.0.0/255.255.255.240 = filter2\n10.0.0.5 = filter2\n10.0.0.5 = filter3\n\
              10.0.0.7 = filter9\n10.0.0.8 = g3\n";
    let files = [
        ("e2guardian.conf", main),
        ("e2guardianf1.conf", ""),
        ("e2guardianf2.conf", ""),
        ("e2guardianf3.conf", ""),
        ("ip.conf", "plugname = 'ip'\nipgroups = 'e/ipgroups'\n"),
        ("ipgroups", ip),
        ("port.conf", "plugname = 'port'\nportgroups = 'e/ports'\n"),
        ("ports", "8081 = filter3\n"),
        ("basic.conf", "plugname = 'proxy-basic'\n"),
        ("users", "# users\nAnna=filter2\n"),
    ];
    let filter = load(&files, Dialect::Sluice);
    let group = |client: &str, port, user| {
        let client = client.parse().ok();
        filter.request(&Request { url: b"http://a.test/", client, port, user, ..Request::default() }).group
    };
    assert_eq!((group("10.0.0.5", 1, None), group("10.0.0.50", 1, None), group("10.0.0.7", 1, None)), (3, 2, 2));
    assert_eq!(
        (group("10.1.0.1", 8081, None), group("10.1.0.1", 1, Some("anna")), group("10.1.0.1", 1, None)),
        (3, 2, 1)
    );
    assert_eq!(group("10.1.0.1", 1, Some("eve")), 1);
    let places: Vec<String> = filter.problems().iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(places, ["e/ipgroups:5", "e/ipgroups:6"]);
}

#[test]
fn urls_and_fields_are_changed_and_what_comes_of_it_is_checked_again() {
    let group = "bannedsitelist = 'e/banned'\nurlregexplist = 'e/change'\nheaderregexplist = 'e/header'\naddheaderregexplist = 'e/add'\n\
                 urlredirectregexplist = 'e/redirect'\n";
    let files = [
        ("banned", "bad.test\n"),
        ("change", "\"^http://www\\.a\\.test:81(/.*)$\"->\"http://safe.test$1\"\n\"trap\"->\"bad\"\n"),
        ("header", "\"tt\"->\"ttt\"\n\"^Cookie: .*\"->\"\"\n"),
        ("add", "\"(^http://tube\\.test/)\"->\"Tube-Restrict: Strict\"\n"),
        ("redirect", "\"^http://old\\.test/(.*)\"->\"http://new.test/\\1\"\n"),
    ];
    let filter = lists(group, &files);
    let url = |url: &str| ask(&filter, url).url.map(|url| String::from_utf8_lossy(&url).into_owned());
    assert_eq!(url("http://www.a.test:81/x?y").as_deref(), Some("http://safe.test/x?y"));
    assert_eq!(url("https://www.a.test:81/").as_deref(), None);
    assert_eq!(url("https://www.a.test:81/z").as_deref(), Some("https://safe.test/z"));
    assert_eq!(ask(&filter, "http://trap.test/").verdict, Verdict::Block);
    assert_eq!(ask(&filter, "http://old.test/q").redirect.as_deref(), Some(&b"http://new.test/q"[..]));
    let added = ask(&filter, "http://tube.test/watch?v=1").added;
    assert_eq!(added, Some((b"Tube-Restrict".to_vec(), b"Strict".to_vec())));
    let fields: [Field<'_>; 3] = [(b"Host", b"a.test"), (b"Cookie", b"x=1"), (b"X-Att", b"putt")];
    let told =
        filter.request(&Request { method: b"GET", url: b"http://a.test/", fields: &fields, ..Request::default() });
    assert_eq!(told.fields, [(1, vec![]), (2, b"puttt".to_vec())]);
    assert_eq!(told.renamed, [(2, b"X-Attt".to_vec())]);
}

#[test]
fn search_terms_are_compared_as_sets_and_weighed() {
    let group = "searchregexplist = 'e/search'\nbannedsearchlist = 'e/terms'\nsearchtermlimit = 10\nweightedphraselist = 'e/weighted'\n";
    let files = [
        ("search", "\"^http://s\\.test/.*[?&]q=([^&]*).*$\"->\"\\1\"\n"),
        ("terms", "sexy+girl\ngirl+naked\n"),
        ("weighted", "<poker><11>\n"),
    ];
    let filter = lists(group, &files);
    let verdict = |query: &str| ask(&filter, &format!("http://s.test/find?x=1&q={query}")).verdict;
    assert_eq!(verdict("Girl+sexy"), Verdict::Block);
    assert_eq!(verdict("naked%20GIRL"), Verdict::Block);
    assert_eq!(verdict("girl"), Verdict::Allow);
    assert_eq!(verdict("Poker"), Verdict::Block);
    assert_eq!(ask(&filter, "http://s.test/find?q=a%26b+C").search.as_deref(), Some("a&b c"));
    let told: Vec<String> = filter.problems().iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(told, ["e/terms:1"], "E2Guardian needs words in order");
}

#[test]
fn types_extensions_and_content_decide_on_a_response() {
    let group = "naughtynesslimit = 20\nbannedmimetypelist = 'e/types'\nbannedextensionlist = 'e/extensions'\nweightedphraselist = 'e/weighted'\n";
    let files =
        [("types", "audio/mpeg\n"), ("extensions", ".exe\n"), ("weighted", "#listcategory: \"Games\"\n<poker><21>\n")];
    let filter = lists(group, &files);
    let group = &filter.groups()[0];
    let request = Request { method: b"GET", url: b"http://a.test/x", ..Request::default() };
    let head = |content_type: Option<&'static str>, file_name: Option<&'static str>| {
        let response = Response {
            content_type: content_type.map(str::as_bytes),
            file_names: [file_name.map(str::as_bytes), None],
        };
        let decided = group.response(&request, &response, group.request(&request));
        (decided.verdict, group.page(&response, &decided).is_some())
    };
    assert_eq!(head(Some("Audio/MPEG; x=1"), None), (Verdict::Block, false));
    assert_eq!(head(Some("image/png"), Some("Setup.EXE")), (Verdict::Block, false));
    assert_eq!(head(Some("image/png"), None), (Verdict::Allow, false));
    for kind in [None, Some("text/html; charset=utf-8"), Some("application/json"), Some("image/svg+xml")] {
        assert_eq!(head(kind, None), (Verdict::Allow, true), "{kind:?}");
    }
    assert_eq!(ask(&filter, "http://a.test/setup.exe?x=1").verdict, Verdict::Block);
    let mut page = group.page(&Response::default(), &Decision::default()).expect("a page");
    page.feed(b"<p>Pok");
    page.feed(b"er</p>");
    let told = group.scored(&page.finish(Moment::default()), Decision::default());
    assert_eq!(told.verdict, Verdict::Block);
    assert_eq!(
        told.reason.map(|reason| reason.log).as_deref(),
        Some("The points of phrases are above the limit: 20 : 21 (poker)")
    );
    assert_eq!(told.categories.iter().map(|name| &**name).collect::<Vec<_>>(), ["Games"]);
}

#[test]
fn a_tunnel_is_decided_by_its_site() {
    let filter = lists("bannedsitelist = 'e/banned'\n", &[("banned", "a.test\n")]);
    let verdict =
        |url: &str| filter.request(&Request { method: b"CONNECT", url: url.as_bytes(), ..Request::default() }).verdict;
    assert_eq!((verdict("www.a.test:443"), verdict("b.test:443")), (Verdict::Block, Verdict::Allow));
    // Without a storyboard `sslmitm` opens all but what is an exception.
    let files = [("banned", "a.test\n"), ("free", "bank.test\n")];
    let group = "sslmitm = on\nbannedsitelist = 'e/banned'\nexceptionsitelist = 'e/free'\n";
    let (opening, other) = (lists(group, &files), lists(&group.replace("sslmitm = on", ""), &files));
    let opens = |filter: &Filter, url: &str| {
        filter.request(&Request { method: b"CONNECT", url: url.as_bytes(), ..Request::default() }).intercepts
    };
    let urls = ["b.test:443", "bank.test:443", "a.test:443"];
    assert_eq!(urls.map(|url| opens(&opening, url)), [true, false, false]);
    assert_eq!(urls.map(|url| opens(&other, url)), [false; 3]);
}

#[test]
fn folders_of_categories_and_hosts_files_are_lists() {
    let group = "bannedsitelist = 'e/ads'\nbannedurllist = 'e/ads'\nbannedregexpurllist = 'e/ads'\nsitelist = 'name=grey,path=e/hosts'\n";
    let files = [
        ("ads/domains", "ads.test\n"),
        ("ads/urls", "a.test/banner\n"),
        ("ads/expressions", "(^|[-.])popup[0-9]\n"),
        ("hosts", "127.0.0.1 localhost\n0.0.0.0 0.0.0.0\n0.0.0.0 Track.test other.test # both\n::1 ip6-localhost\n"),
    ];
    let filter = lists(group, &files);
    assert_eq!(filter.problems(), []);
    let verdicts = ["x.ads.test", "a.test/banner/1.png", "a.popup7.test", "www.track.test", "localhost", "a.test"];
    let verdicts = verdicts.map(|url| ask(&filter, &format!("http://{url}")).verdict);
    let (block, grey, allow) = (Verdict::Block, Verdict::Grey, Verdict::Allow);
    assert_eq!(verdicts, [block, block, block, grey, allow, allow]);
}

/// A request of a client that may have tokens, at this second.
fn with_tokens<'r>(url: &'r str, fields: &'r [Field<'r>], now: u64) -> Request<'r> {
    static SUFFIXES: LazyLock<Suffixes> = LazyLock::new(Suffixes::default);
    let tokens = Some(Tokens { now, secret: b"secret", suffixes: &SUFFIXES });
    Request { method: b"GET", url: url.as_bytes(), fields, tokens, ..Request::default() }
}

/// The URL by which a client comes past the block of another.
fn link(filter: &Filter, url: &str, cause: Cause) -> Option<String> {
    let request = with_tokens(url, &[], 1000);
    filter.groups()[0].link(&request, &filter.request(&request), cause)
}

#[test]
fn blocks_are_passed_with_a_token_that_does_not_go_on() {
    let group = "bypass = 300\nbypasskey = 'secret'\nbannedsitelist = 'e/banned'\nsitelist = 'name=bannedbypass,path=e/never'\nstoryboard = 'e/story'\n";
    let story = "function(checkrequest)\nif(bypassallowset) never\nif(urlin,banned) return setblock\n\
                 function(never)\nif(urlin,bannedbypass) return unsetbypassallow\n";
    let filter = lists(group, &[("banned", "a.test\nb.test\n"), ("never", "b.test\n"), ("story", story)]);
    assert_eq!(filter.problems(), []);
    assert_eq!(ask(&filter, "http://a.test/").verdict, Verdict::Block);
    assert!(link(&filter, "http://b.test/", Cause::Lists).is_none(), "no token lets past this block");
    assert!(link(&filter, "http://a.test/", Cause::Malware).is_none(), "nor spares this group the scan");
    let link = link(&filter, "http://a.test/x?y=1", Cause::Lists).expect("a link");
    let decision = filter.request(&with_tokens(&link, &[], 1300));
    assert!(decision.is_bypassed && decision.verdict == Verdict::Exception && !decision.skips_scan);
    assert_eq!(decision.url.as_deref(), Some(&b"http://a.test/x?y=1"[..]));
    assert_eq!(filter.request(&with_tokens(&link, &[], 1301)).verdict, Verdict::Block);
    assert_eq!(filter.request(&with_tokens(&link.replace("a.test", "b.test"), &[], 1000)).verdict, Verdict::Block);
    assert_eq!(ask(&filter, &link).verdict, Verdict::Block, "a host without tokens");
    // From then on a cookie does it.
    let cookie = String::from_utf8(decision.cookie.expect("a cookie")).expect("text");
    let said = format!("k=1; {}", cookie.split(';').next().unwrap_or_default());
    let fields: [Field<'_>; 1] = [(b"Cookie", said.as_bytes())];
    let decision = filter.request(&with_tokens("http://img.a.test/", &fields, 1100));
    assert!(decision.is_bypassed && decision.cookie.is_none() && decision.url.is_none());
    assert_eq!(decision.fields, [(0, b"k=1".to_vec())]);
    assert_eq!(filter.request(&with_tokens("http://b.test/", &fields, 1100)).verdict, Verdict::Block);
}

#[test]
fn one_url_is_spared_the_scan_where_that_is_set() {
    let with = |group: &str| lists(group, &[]);
    assert!(link(&with("bypass = 300\n"), "http://a.test/x", Cause::Fault).is_none());
    let faults = with("infectionbypass = 300\n");
    assert!(link(&faults, "http://a.test/x", Cause::Malware).is_none(), "only what cannot be inspected");
    assert!(link(&faults, "http://a.test/x", Cause::Lists).is_none());
    let token = link(&faults, "http://a.test/x", Cause::Fault).expect("a link");
    let decision = faults.request(&with_tokens(&token, &[], 1000));
    assert!(decision.skips_faults && !decision.skips_scan && !decision.is_bypassed);
    let all = with("infectionbypass = 300\ninfectionbypasserrorsonly = off\n");
    let token = link(&all, "http://a.test/x", Cause::Malware).expect("a link");
    let spared = |url: &str| all.request(&with_tokens(url, &[], 1000)).skips_scan;
    let decision = all.request(&with_tokens(&token, &[], 1000));
    assert_eq!(decision.redirect.as_deref(), Some(&b"http://a.test/x"[..]));
    let cookie = String::from_utf8(decision.cookie.expect("a cookie")).expect("text");
    let fields: [Field<'_>; 1] = [(b"Cookie", cookie.split(';').next().unwrap_or_default().as_bytes())];
    let by_cookie = |url: &str| all.request(&with_tokens(url, &fields, 1300)).skips_scan;
    assert!(by_cookie("http://a.test/x") && !by_cookie("http://a.test/y"));
    assert!(spared(&token) && !spared(&token.replace("/x", "/y")) && !spared("http://a.test/x"));
}

#[test]
fn a_block_is_told_as_the_reporting_level_says() {
    let told = Told { text: "No: a.test", log: "No: a.test (list)", categories: "Games", ..Told::default() };
    let notice = |main: &str, group: &str| {
        let template = "-REASONGIVEN- -URL-";
        let files = [("e2guardian.conf", main), ("e2guardianf1.conf", group), ("l/ukenglish/template.html", template)];
        let filter = load(&files, Dialect::Sluice);
        assert_eq!(filter.problems(), []);
        filter.groups()[0].notice(
            &with_tokens("http://a.test/?<&::b", &[], 1000),
            told,
            Some("http://a.test/?GBYPASS=1"),
        )
    };
    let template = || Notice::Page(b"No: a.test http://a.test/?&#60;&#38;::b".to_vec());
    assert_eq!(notice("languagedir = 'e/l'\n", ""), template());
    assert_eq!(notice("languagedir = 'e/l'\nreportinglevel = 0\n", "reportinglevel = 3\n"), template());
    assert_eq!(notice("languagedir = 'e/other'\n", ""), Notice::Own);
    assert_eq!(notice("languagedir = 'e/l'\n", "reportinglevel = 0\n"), Notice::Bare);
    assert_eq!(notice("reportinglevel = 1\n", ""), Notice::Own);
    let address = "accessdeniedaddress = 'http://why.test/x.pl'\ngroupname = 'pupils'\n";
    let wanted = "http://why.test/x.pl?DENIEDURL==http%3A//a.test/%3F%3C%26%3A%3Ab::IP==::USER==::FILTERGROUP==pupils::\
                  GBYPASS==1::CATEGORIES==Games::REASON==No%3A%20a.test";
    assert_eq!(notice("reportinglevel = 1\n", address), Notice::Redirect(wanted.into()));
    let full = notice("reportinglevel = 2\nnonstandarddelimiter = off\n", address);
    let Notice::Redirect(full) = full else { panic!("{full:?}") };
    assert!(full.ends_with("&GBYPASS=1&CATEGORIES=Games&REASON=No%3A%20a.test%20%28list%29"), "{full}");
    for wrong in ["reportinglevel = 4\n", "accessdeniedaddress = 'why.test'\n", "accessdeniedaddress = 'http://a b'\n"]
    {
        assert_eq!(lists(wrong, &[]).problems().len(), 1, "{wrong}");
    }
}

#[test]
fn lists_spare_content_the_scan() {
    let group = "storyboard = 'e/story'\nsitelist = 'name=exceptionvirus,path=e/clean'\n";
    let story = "function(checkresponse)\nif(urlin,exceptionvirus) unsetviruscheck\n";
    let filter = lists(group, &[("story", story), ("clean", "a.test\n")]);
    let spared = |url: &str| {
        let request = with_tokens(url, &[], 0);
        filter.groups()[0].response(&request, &Response::default(), filter.request(&request)).skips_scan
    };
    assert!(spared("http://a.test/") && !spared("http://b.test/"));
}
