//! Configurations of squidGuard: what they mean, and that squidGuard 1.6.0, where Debian's package is installed, decides the same and sends
//! blocked clients to the same page.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rules::web::phrase::Dialect;
use rules::web::{Date, Filter, Limits, Moment, Notice, Request, Told, Verdict};

const PROGRAM: &str = "/usr/bin/squidGuard";
const EXAMPLE: &str = "/etc/squidguard/squidGuard.conf.default";

/// Monday, 30 November 2026, at a minute of the day.
fn monday(minute: u16) -> Moment {
    Moment { day: 0, minute, date: Date { year: 2026, month: 11, day: 30 } }
}

pub fn load(text: &str, files: &[(&str, &str)]) -> Filter {
    let files: HashMap<&str, &str> = files.iter().copied().chain([("/etc/squidGuard.conf", text)]).collect();
    let mut read = |path: &str| files.get(path).map(|text| text.as_bytes().to_vec()).ok_or("there is none".to_string());
    Filter::load("/etc/squidGuard.conf", Dialect::Sluice, Limits::default(), &mut read)
}

fn problems(filter: &Filter) -> Vec<String> {
    filter.problems().iter().map(ToString::to_string).collect()
}

/// The URL that a blocked client is sent to; empty where there is none, `None` where the request passes.
fn redirect(filter: &Filter, request: &Request<'_>) -> Option<String> {
    let group = filter.group_of(request).expect("a group");
    let decision = group.request(request);
    let reason = decision.reason.unwrap_or_default();
    let told = Told { text: &reason.text, list: &reason.list, ..Told::default() };
    (decision.verdict == Verdict::Block).then(|| match group.notice(request, told, None) {
        Notice::Redirect(url) => url,
        _ => String::new(),
    })
}

#[test]
fn sources_times_and_words_decide_in_their_order() {
    let text = "dbhome /db\ntime work { weekly mtwhf 08:00 - 16:30 }\n\
        src admins {\n ip 10.0.0.1 10.0.1.0/24 10.0.2.4-10.0.2.6\n user Root\n}\n\
        src late {\n userlist late\n outside work\n}\nsrc class {\n ip 10.1.0.0/255.255.0.0\n}\n\
        dest good { domainlist good }\ndest bad {\n domainlist bad/domains\n urllist bad/urls\n expressionlist bad/words\n\
        redirect http://page.test/?t=%t&s=%s&u=%u }\n\
        acl {\n admins { pass any }\n late { pass all }\n class within work { pass good none } else { pass !in-addr !bad }\n\
        default { pass good !bad none\n redirect http://none.test/%t } }\n";
    let files = [
        ("/db/good", "good.test\n"),
        ("/db/bad/domains", "bad.test\n"),
        ("/db/bad/urls", "news.test/sport\n"),
        ("/db/bad/words", "^[^/]*casino\n"),
        ("/db/late", "# teachers\nAnna\n"),
    ];
    let filter = load(text, &files);
    assert_eq!(problems(&filter), Vec::<String>::new());
    let ask = |client: &str, user: Option<&str>, url: &str, minute| {
        let client = Some(client.parse().expect("an address"));
        let request =
            Request { method: b"GET", url: url.as_bytes(), client, user, now: monday(minute), ..Request::default() };
        redirect(&filter, &request).map_or("passes".into(), |url| url)
    };
    let (morning, night) = (9 * 60, 22 * 60);
    assert_eq!(ask("10.0.0.1", Some("root"), "http://bad.test/", morning), "passes");
    assert_eq!(ask("10.0.2.5", Some("ROOT"), "http://bad.test/", morning), "passes");
    assert_eq!(ask("10.0.2.7", Some("root"), "http://x.test/", morning), "http://none.test/none");
    assert_eq!(ask("10.0.0.1", None, "http://x.test/", morning), "http://none.test/none", "a source needs both");
    assert_eq!(ask("10.9.0.1", Some("anna"), "http://bad.test/", night), "passes");
    assert_eq!(ask("10.9.0.1", Some("anna"), "http://x.test/", morning), "http://none.test/none");
    assert_eq!(ask("10.1.2.3", None, "http://www.good.test/", morning), "passes");
    assert_eq!(ask("10.1.2.3", None, "http://x.test/", morning), "http://none.test/none");
    assert_eq!(ask("10.1.2.3", None, "http://x.test/", 16 * 60 + 30), "passes", "the last minute is none of the time");
    assert_eq!(ask("10.1.2.3", None, "http://1.2.3.4/", night), "http://none.test/in-addr");
    for url in ["http://a.bad.test/", "http://www2.news.test/sports/x", "http://the-casino.test/"] {
        let wanted = format!("http://page.test/?t=bad&s=class&u={url}");
        assert_eq!(ask("10.1.2.3", None, url, night), wanted, "{url}");
    }
    assert_eq!(ask("10.1.2.3", None, "http://news.test/?sport", night), "passes");
}

#[test]
fn statements_that_are_not_understood_are_told_with_their_line() {
    let text = "dbhome /db\nwhat\ntime t {\n weekly q 8-9\n}\nsrc a {\n ip 10.0.0.x\n ldapusersearch x\n}\nsrc b {\n within u\n}\n\
        dest d {\n domainlist gone\n redirect nowhere\n}\nrew r {\n s@a@b@i\n}\nacl {\n c {\n pass all\n}\n\
        default {\n pass !e !d all\n rewrite r\n}\n}\n";
    let filter = load(text, &[]);
    let told = problems(&filter);
    let lines: Vec<&str> = told.iter().filter_map(|told| told.split(':').nth(1)).collect();
    assert_eq!(lines, ["2", "4", "7", "8", "11", "15", "17", "21", "25", "26", "14"], "{told:#?}");
    let request =
        Request { method: b"GET", url: b"http://x.test/", client: "10.0.0.1".parse().ok(), ..Request::default() };
    assert_eq!(redirect(&filter, &request), None);
}

#[test]
fn a_branch_without_a_word_passes_nothing_and_a_file_without_rules_all() {
    let request = Request { method: b"GET", url: b"http://x.test/", ..Request::default() };
    assert_eq!(
        redirect(&load("acl {\n default {\n redirect http://b.test/\n}\n}\n", &[]), &request).as_deref(),
        Some("http://b.test/")
    );
    assert_eq!(redirect(&load("acl {\n default {\n}\n}\n", &[]), &request).as_deref(), Some(""), "our own page");
    assert_eq!(redirect(&load("logdir /log\n", &[]), &request), None);
}

#[test]
fn the_example_of_the_package_loads_without_a_word() {
    let text = match fs::read_to_string(EXAMPLE) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return eprintln!("skipped: {EXAMPLE}: {error}"),
        Err(_) => return eprintln!("skipped: squidGuard is not installed"),
    };
    let filter = load(&text, &[]);
    assert_eq!(problems(&filter), Vec::<String>::new());
    assert_eq!(filter.groups().len(), 6);
}

#[test]
fn squidguard_decides_the_same() {
    if !Path::new(PROGRAM).exists() {
        return eprintln!("skipped: squidGuard is not installed");
    }
    let mut chance = Chance(5);
    let mut blocks = 0;
    for _ in 0..CONFIGURATIONS {
        let folder = tempfile::tempdir().expect("a folder");
        // A minute beside the bounds of times: its clock goes on while it is asked.
        let minute = chance.below(48) as u16 * 30 + 1;
        let path = configuration(folder.path(), &mut chance);
        let mut read = |path: &str| fs::read(path).map_err(|error| error.to_string());
        let filter = Filter::load(&path, Dialect::E2guardian535, Limits::default(), &mut read);
        assert_eq!(problems(&filter), Vec::<String>::new());
        let asked: Vec<Asked> = (0..REQUESTS).map(|_| Asked::by_chance(&mut chance)).collect();
        for (asked, told) in asked.iter().zip(ask(&path, minute, &asked)) {
            let ours = redirect(&filter, &asked.request(minute));
            let text = fs::read_to_string(&path).expect("the configuration");
            assert_eq!(ours, told, "{asked:?} at {minute}:\n{text}");
            blocks += usize::from(ours.is_some());
        }
    }
    let all = CONFIGURATIONS * REQUESTS;
    assert!(blocks > all / 5 && blocks < all * 4 / 5, "{blocks} of {all} are blocked");
}

const CONFIGURATIONS: usize = 60;
const REQUESTS: usize = 60;

/// Sites, none below another: squidGuard's tables lose an entry that stands beside one below it.
const SITES: [&str; 6] = ["ads.test", "games.test", "x.news.test", "shop.example", "10.1.2.3", "a-b.test"];
/// Beginnings of URLs, none of another.
const URLS: [&str; 6] =
    ["ads.test/b", "games.test/a/", "news.test/a?x=1", "shop.example", "www.games.test/q", "10.1.2.3/a"];
const WORDS: [&str; 6] = ["^ads", "(casino|a)$", ":8080/", "/[A-Z]\\?x", "\\.exe$", "w{3}\\."];
const HOSTS: [&str; 10] = [
    "ads.test",
    "games.test",
    "news.test",
    "x.news.test",
    "shop.example",
    "10.1.2.3",
    "a-b.test",
    "b.test",
    "solo",
    "casino.test",
];
const SOURCES: [(&str, &str); 7] = [
    ("one", "ip 10.0.0.1 10.0.0.2"),
    ("net", "ip 10.0.1.0/24"),
    ("mask", "ip 10.0.2.0/255.255.255.128"),
    ("range", "ip 10.0.0.2-10.0.1.4"),
    ("users", "user Ann bob"),
    ("both", "ip 10.0.0.0/16\n user cyd"),
    ("files", "iplist addresses\n userlist users"),
];
const TIMES: [&str; 5] = [
    "weekly mtwhf 08:00 - 16:30",
    "weekly * 00:00-07:00 12:30-24:00",
    "weekly sundays 00:00-24:00",
    "date *-*-30 06:00-18:00",
    "date 2026.11.29-2026.12.01",
];

/// Writes a configuration and its lists, and says its path.
fn configuration(folder: &Path, chance: &mut Chance) -> String {
    let home = folder.display();
    let mut text = format!("dbhome {home}\nlogdir {home}\n");
    let write = |name: &str, text: String| fs::write(folder.join(name), text).expect("a file");
    write("addresses", "10.0.0.7\n10.0.3.0/24\n".into());
    write("users", "ann\ndan:x\n".into());
    for (number, time) in TIMES.iter().enumerate() {
        let _ = writeln!(text, "time t{number} {{\n {time}\n}}");
    }
    let mut sources: Vec<&str> = Vec::new();
    for (name, body) in SOURCES {
        if chance.below(2) == 0 {
            let when = if chance.below(4) == 0 { when(chance) + "\n" } else { String::new() };
            let _ = writeln!(text, "src {name} {{\n {body}\n {when}}}");
            sources.push(name);
        }
    }
    for name in ["red", "green", "blue"] {
        let _ = writeln!(text, "dest {name} {{");
        for (option, pool) in [("domainlist", &SITES[..]), ("urllist", &URLS), ("expressionlist", &WORDS)] {
            let entries: String =
                pool.iter().filter(|_| chance.below(4) == 0).map(|entry| format!("{entry}\n")).collect();
            if !entries.is_empty() {
                write(&format!("{name}-{option}"), entries);
                let _ = writeln!(text, " {option} {name}-{option}");
            }
        }
        if chance.below(3) == 0 {
            let _ = writeln!(text, " {}", when(chance));
        }
        if chance.below(2) == 0 {
            let _ = writeln!(text, " redirect http://{name}.page/?a=%a&i=%i&s=%s&t=%t&p=%p&f=%f&q=%q&u=%u");
        }
        text += "}\n";
    }
    text += "acl {\n";
    for name in sources {
        match chance.below(5) {
            0 => {}
            1 => _ = writeln!(text, "{name} {} {{\n{}}} else {{\n{}}}", when(chance), branch(chance), branch(chance)),
            2 => _ = writeln!(text, "{name} {} {{\n{}}}", when(chance), branch(chance)),
            _ => _ = writeln!(text, "{name} {{\n{}}}", branch(chance)),
        }
    }
    let _ = writeln!(text, "default {{\n {} redirect 302:http://page.test/%s/%t?%u\n}}\n}}", pass(chance));
    let path = folder.join("squidGuard.conf");
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

fn when(chance: &mut Chance) -> String {
    format!("{} t{}", chance.of(&["within", "outside"]), chance.below(TIMES.len()))
}

fn branch(chance: &mut Chance) -> String {
    let redirect = if chance.below(3) == 0 { " redirect http://own.page/%t?u=%u\n" } else { "" };
    format!("{}{redirect}", pass(chance))
}

fn pass(chance: &mut Chance) -> String {
    const WORDS: [&str; 8] = ["red", "!red", "green", "!green", "blue", "!blue", "!in-addr", "in-addr"];
    let words: Vec<&str> = (0..chance.below(4)).map(|_| chance.of(&WORDS)).collect();
    format!(" pass {} {}\n", words.join(" "), chance.of(&["all", "any", "none", "none", "!blue"]))
}

/// A request by chance.
#[derive(Debug)]
struct Asked {
    url: String,
    client: String,
    user: &'static str,
    is_connect: bool,
}

impl Asked {
    fn by_chance(chance: &mut Chance) -> Asked {
        let before = chance.of(&["", "", "www.", "web2.", "a.", "x", "WWW."]);
        let (host, port) = (chance.of(&HOSTS), chance.of(&["", "", "", ":8080"]));
        let path = chance.of(&[
            "",
            "a",
            "a/",
            "a/b",
            "b",
            "ab",
            "a?x=1",
            "A?x=12",
            "q",
            "q/x.exe",
            "//a",
            "s?u=http://ads.test/",
        ]);
        let is_connect = chance.below(8) == 0;
        let url =
            if is_connect { format!("{before}{host}:443") } else { format!("http://{before}{host}{port}/{path}") };
        let client = format!("10.0.{}.{}", chance.below(4), chance.below(9));
        Asked { url, client, user: chance.of(&["", "", "ann", "BOB", "cyd", "dan"]), is_connect }
    }

    fn request(&self, minute: u16) -> Request<'_> {
        Request {
            method: if self.is_connect { b"CONNECT" } else { b"GET" },
            url: self.url.as_bytes(),
            client: self.client.parse().ok(),
            user: Some(self.user).filter(|user| !user.is_empty()),
            now: monday(minute),
            ..Request::default()
        }
    }
}

/// Asks squidGuard, and says where it sends the clients of blocked requests.
fn ask(path: &str, minute: u16, all: &[Asked]) -> Vec<Option<String>> {
    let now = format!("2026-11-30T{:02}:{:02}:00", minute / 60, minute % 60);
    let mut command = Command::new(PROGRAM);
    command.args(["-c", path, "-t", &now]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("a process");
    let mut lines = String::new();
    for asked in all {
        let user = if asked.user.is_empty() { "-" } else { asked.user };
        let method = if asked.is_connect { "CONNECT" } else { "GET" };
        let _ = writeln!(lines, "{} {}/- {user} {method}", asked.url, asked.client);
    }
    // The answers fit a pipe.
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("requests");
    let output = child.wait_with_output().expect("answers");
    let text = String::from_utf8(output.stdout).expect("text");
    let told: Vec<Option<String>> = text.lines().map(|line| line.split('"').nth(1).map(Into::into)).collect();
    assert_eq!(told.len(), all.len(), "{text}");
    told
}

/// Numbers by chance, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of(&mut self, all: &[&'static str]) -> &'static str {
        all[self.below(all.len())]
    }
}
