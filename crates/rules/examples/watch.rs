//! Speed of intrusion rules alone: `watch ROUNDS RULES... -- FILE...` tries them on the files as bodies of HTTP responses, on mails and on
//! heads of requests. Prints figures as `name value`; times are processor time. With 0 rounds it prints the alerts instead, as
//! `file kind sids`, to compare two builds.

use std::sync::Arc;
use std::{env, fs};

use flow::{Flow, Head, Protocol, Watched};
use rules::ids::{Limits, Loader, RuleSet, Watch};

/// Bytes that come at a time.
const PIECE: usize = 16 << 10;
/// Bytes of a small body and of a large one.
const SMALL: usize = 4 << 10;
const LARGE: usize = 1 << 20;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let rounds: u32 = arguments.first().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let mut halves = arguments.get(1..).unwrap_or_default().split(|word| word == "--");
    let (rules, files) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
    let rules: Vec<(&String, Vec<u8>)> = rules.iter().filter_map(|path| Some((path, fs::read(path).ok()?))).collect();
    let bodies: Vec<Vec<u8>> = files.iter().filter_map(|path| fs::read(path).ok()).collect();

    let (began, before) = (seconds(), resident());
    let mut loader = Loader::new(Limits::default());
    rules.iter().for_each(|(path, bytes)| loader.file(path, bytes));
    let set = Arc::new(loader.finish());
    println!("active {}\nload_s {:.3}", set.census().active, seconds() - began);
    println!("memory_mb {:.1}", resident() - before);

    if rounds == 0 {
        return tell(&set, files, &bodies);
    }
    let alerts: usize = bodies.iter().map(|body| response(&set, body).len()).sum();
    println!("alerts {alerts}");
    println!("bodies_mb_s {:.1}", speed(&set, rounds, &bodies));
    let all = bodies.concat();
    for (name, size) in [("small_mb_s", SMALL), ("large_mb_s", LARGE)] {
        let cut: Vec<Vec<u8>> = all.chunks(size).map(<[u8]>::to_vec).collect();
        println!("{name} {:.1}", speed(&set, rounds, &cut));
    }
    let (began, heads) = (seconds(), rounds * 1000);
    (0..heads).for_each(|number| request(&set, number));
    println!("head_us {:.2}", (seconds() - began) * 1e6 / f64::from(heads));
    for (name, size, mails) in [("mail_us", SMALL, rounds * 1000), ("large_mail_us", LARGE, rounds * 10)] {
        let text = &all[..size.min(all.len())];
        let began = seconds();
        (0..mails).for_each(|_| _ = mail(&set, text));
        println!("{name} {:.2}", (seconds() - began) * 1e6 / f64::from(mails));
    }
}

fn head(line: &str, fields: &str) -> Option<Head> {
    Some(Head { line: line.as_bytes().into(), fields: fields.as_bytes().into() })
}

/// Rules over one object between a client at home and a server elsewhere.
fn watch(set: &Arc<RuleSet>, watched: Watched) -> Watch {
    let (client, server) = ("10.1.0.1:1025".parse().ok(), "203.0.113.1:80".parse().ok());
    let flow = Flow { protocol: Protocol::Http, ..Flow::default() };
    Watch::new(set.clone(), &flow, &Watched { client, server, ..watched }).expect("HTTP has rules")
}

/// Bytes of bodies a second, in MB.
fn speed(set: &Arc<RuleSet>, rounds: u32, bodies: &[Vec<u8>]) -> f64 {
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    let began = seconds();
    (0..rounds).for_each(|_| bodies.iter().for_each(|body| _ = response(set, body)));
    bytes as f64 * f64::from(rounds) / 1e6 / (seconds() - began).max(1e-9)
}

/// Prints the rules that match each file and some of them behind each other.
fn tell(set: &Arc<RuleSet>, files: &[String], bodies: &[Vec<u8>]) {
    let joined = bodies.chunks(40).map(|some| ("joined", some.concat()));
    let alone = files.iter().map(String::as_str).zip(bodies.iter().cloned());
    for (name, body) in alone.chain(joined) {
        for (kind, alerts) in [("response", response(set, &body)), ("mail", mail(set, &body))] {
            let sids: Vec<u32> = alerts.iter().map(|alert| set.rules()[alert.rule as usize].sid).collect();
            println!("{name} {kind} {sids:?}");
        }
    }
}

/// A response with a body; the rules that matched.
#[inline(never)]
fn response(set: &Arc<RuleSet>, body: &[u8]) -> Vec<flow::Alert> {
    let fields = "Host: www.site.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\n";
    let request = head("GET /index.html HTTP/1.1", fields);
    let response = head("HTTP/1.1 200 OK", "Server: nginx\r\nContent-Type: text/html\r\n");
    let mut watch = watch(set, Watched { request, response, ..Watched::default() });
    let part = watch.open(None);
    for piece in body.chunks(PIECE) {
        watch.raw_content(part, piece, true);
    }
    watch.close(part);
    watch.end();
    watch.alerts()
}

#[inline(never)]
fn request(set: &Arc<RuleSet>, number: u32) {
    let line = format!("GET /shop/item{number}.html?id={number}&lang=en HTTP/1.1");
    let fields = "Host: www.site.test\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,*/*;q=0.8\r\n\
        Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\nReferer: http://www.site.test/\r\n\
        Cookie: session=0123456789abcdef\r\nConnection: keep-alive\r\n";
    watch(set, Watched { request: head(&line, fields), ..Watched::default() }).end();
}

/// A mail with one text, sent as it is; the rules that matched.
#[inline(never)]
fn mail(set: &Arc<RuleSet>, text: &[u8]) -> Vec<flow::Alert> {
    let (client, server) = ("203.0.113.1:1025".parse().ok(), "10.1.0.1:25".parse().ok());
    let (sender, recipients) = ("a@b.test".into(), vec!["c@d.test".into()]);
    let flow = Flow { protocol: Protocol::Smtp, hello: "b.test".into(), sender, recipients, ..Flow::default() };
    let mut watch = Watch::new(set.clone(), &flow, &Watched { client, server, ..Watched::default() }).expect("a mail");
    watch.raw(b"From: a@b.test\r\nTo: c@d.test\r\nSubject: words\r\n\r\n");
    [b"From: a@b.test", &b"To: c@d.test"[..], b"Subject: words"].iter().for_each(|field| watch.field(field));
    let part = watch.open(None);
    for piece in text.chunks(PIECE) {
        watch.raw(piece);
        watch.content(part, piece, false);
    }
    watch.close(part);
    watch.end();
    watch.alerts()
}

/// Processor time of this process.
fn seconds() -> f64 {
    let time = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    time.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Resident memory in MB.
fn resident() -> f64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0 / 1e6
}
