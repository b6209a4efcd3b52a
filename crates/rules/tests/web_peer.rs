//! The same lists for E2Guardian 5.3.5, where Debian's package is installed, and for us: pages made by chance have the same score,
//! requests made by chance the same verdict, entry and group.
//!
//! E2Guardian runs as a proxy on loopback, with this test as the proxy behind it, and tells scores in its log.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rules::web::phrase::{Dialect, Outcome, Page};
use rules::web::{Filter, Limits, Moment, Request, Verdict};

const PROGRAM: &str = "/usr/sbin/e2guardian";
const INSTALLED: &str = "/etc/e2guardian";

#[test]
fn pages_have_the_score_that_e2guardian_gives_them() {
    let mut chance = Chance(7);
    let phrases: Vec<String> = (0..60).map(|_| phrase(&mut chance)).collect();
    let weighted: String = (0..60).map(|_| phrase_line(&phrases, &mut chance)).collect();
    let lists = [
        ("weightedphraselist", weighted.as_str()),
        ("bannedphraselist", "<ban word>\n<ban one>,<ban two>\n<ten ban><10>\n"),
        ("exceptionphraselist", "<free word>\n<free one>,<free two>\n<ten free><10>\n"),
    ];
    let Some(peer) = Peer::start(&lists, "naughtynesslimit = 1000000\n", "") else { return };
    let pages: Vec<String> = (0..200).map(|_| page(&phrases, &mut chance)).collect();
    let wire: Vec<(String, String)> =
        (0..).zip(&pages).map(|(at, page): (usize, _)| (format!("http://a.test/p{at}"), page.clone())).collect();
    let told = peer.ask(&wire);
    let filter = peer.load();
    for (page, told) in pages.iter().zip(&told) {
        let mut run = Page::new(filter.groups()[0].phrases());
        run.feed(page.as_bytes());
        let score = run.finish(Moment::default());
        let kind = match score.outcome {
            Outcome::Passed => "-",
            Outcome::Exception { .. } => "hrase found",
            Outcome::Banned { .. } => "*DENIED* Banned",
            Outcome::Weighted | Outcome::Dense => "*DENIED* Content",
        };
        assert!(told.reason.contains(kind), "{page:?}: {told:?}, and ours is {score:?}");
        // The points of a page that passes whatever is in it depend on the order of its phrases.
        if kind != "hrase found" {
            assert_eq!(score.points, told.points, "{page:?}: {told:?}, and ours is {score:?}");
        }
    }
}

#[test]
fn requests_have_the_verdict_that_e2guardian_gives_them() {
    let mut chance = Chance(11);
    let mut files = Vec::new();
    for name in ["banned", "grey", "exception", "localbanned", "localgrey", "localexception"] {
        let sites: String = (0..chance.below(3)).map(|_| format!("{}\n", host(&mut chance))).collect();
        let urls: String =
            (0..chance.below(4)).map(|_| format!("{}/{}\n", host(&mut chance), path(&mut chance))).collect();
        files.push((format!("p{name}site"), sites));
        files.push((format!("p{name}url"), urls));
    }
    files.push(("pbannedrx".into(), "shop.*exe\n^a\\.\n\\.zip$\n".into()));
    files.push(("pext".into(), ".exe\n".into()));
    let lists: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let group = ["banned", "grey", "exception", "localbanned", "localgrey", "localexception"].iter().fold(
        String::from(
            "regexpboollist = 'name=banned,messageno=503,path=@/lists/pbannedrx'\n\
             fileextlist = 'name=bannedextension,messageno=900,path=@/lists/pext'\n",
        ),
        |mut text, name| {
            let _ = writeln!(text, "sitelist = 'name={name},messageno=500,path=@/lists/p{name}site'");
            let _ = writeln!(text, "urllist = 'name={name},messageno=501,path=@/lists/p{name}url'");
            text
        },
    );
    let Some(peer) = Peer::start(&lists, &group, "") else { return };
    let urls: Vec<String> = (0..300).map(|_| format!("http://{}/{}", host(&mut chance), path(&mut chance))).collect();
    let wire: Vec<(String, String)> = urls.iter().map(|url| (url.clone(), String::new())).collect();
    let told = peer.ask(&wire);
    let filter = peer.load();
    for (url, told) in urls.iter().zip(&told) {
        let decision =
            filter.request(&Request { method: b"GET", url: url.as_bytes(), port: 8080, ..Request::default() });
        let kind = if told.reason.contains("DENIED") {
            Verdict::Block
        } else if told.reason.contains("TRUSTED") {
            Verdict::Exception
        } else {
            Verdict::Allow
        };
        let ours = if decision.verdict == Verdict::Grey { Verdict::Allow } else { decision.verdict };
        assert_eq!(ours, kind, "{url}: {told:?}, and ours is {decision:?}");
    }
}

/// Numbers by chance, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const WORDS: [&str; 12] =
    ["game", "dice", "poker", "the", "card", "win", "lucky", "caf\u{e9}", "\u{65e5}\u{672c}", "x-y", "o", "a&b"];

fn phrase(chance: &mut Chance) -> String {
    let words: Vec<&str> = (0..=chance.below(3)).map(|_| chance.of(&WORDS)).collect();
    format!("{}{}{}", chance.of(&["", " "]), words.join(chance.of(&[" ", " ", "", "  "])), chance.of(&["", " "]))
}

fn phrase_line(phrases: &[String], chance: &mut Chance) -> String {
    let phrase = |chance: &mut Chance| phrases[chance.below(phrases.len())].clone();
    let one = phrase(chance);
    let weight = chance.below(150) as i32 - 60 + 1;
    match chance.below(10) {
        0 | 1 => format!("<{one}>,<{}><{weight}>\n", phrase(chance)),
        2 => format!("<{one}>, <{}>,<{}><{weight}>\n", phrase(chance), phrase(chance)),
        3 => format!("<{one}><{}%>\n", weight.max(1)),
        _ => format!("<{one}><{}>\n", if weight == 0 { 1 } else { weight }),
    }
}

fn page(phrases: &[String], chance: &mut Chance) -> String {
    const BETWEEN: [&str; 16] = [
        " ",
        " ",
        "  ",
        "<p>",
        "</p>",
        "<br>",
        "<a href=\"dice\">",
        "<",
        ">",
        ".",
        ",",
        "-",
        "\n",
        "\t",
        "%20",
        "&nbsp;",
    ];
    const RARE: [&str; 6] = ["ban one", "ban two", "ten ban", "free one", "ten free", "ban word"];
    let mut page = String::new();
    for _ in 0..=chance.below(20) {
        match chance.below(12) {
            0..4 => page.push_str(&phrases[chance.below(phrases.len())]),
            4 => page.push_str(&phrases[chance.below(phrases.len())].to_uppercase()),
            5 if chance.below(6) == 0 => page.push_str(chance.of(&RARE)),
            5 => page.push_str("free two"),
            6..9 => page.push_str(chance.of(&WORDS)),
            _ => page.push_str(chance.of(&BETWEEN)),
        }
        page.push_str(chance.of(&BETWEEN[..6]));
    }
    page
}

fn host(chance: &mut Chance) -> String {
    let labels: Vec<&str> = (0..=chance.below(2)).map(|_| chance.of(&["a", "b", "cc", "www", "shop"])).collect();
    format!("{}.{}", labels.join("."), chance.of(&["test", "co.test", "org"]))
}

fn path(chance: &mut Chance) -> String {
    let names: Vec<&str> =
        (0..=chance.below(3)).map(|_| chance.of(&["p", "q", "Dir", "x.exe", "a.zip", "..", ".", "", "img"])).collect();
    format!("{}{}", names.join("/"), chance.of(&["", "", "", "?x=1", "&y", ";z", "=1"]))
        .replace(".exe?", ".exe/?")
        .replace(".exe&", "&")
        .replace(".exe;", ";")
        .replace(".exe=", "=")
}

/// What the log says of a request.
#[derive(Debug)]
struct Told {
    reason: String,
    points: i32,
}

/// A running E2Guardian, and what is behind it.
struct Peer {
    folder: tempfile::TempDir,
    child: Child,
    port: u16,
    page: Arc<Mutex<String>>,
}

impl Peer {
    /// Starts one with these lists, all others empty; `None` where there is none. `@` in options is its folder.
    fn start(lists: &[(&str, &str)], group: &str, main: &str) -> Option<Peer> {
        if !Path::new(PROGRAM).exists() || !Path::new(INSTALLED).join("common.story").exists() {
            eprintln!("skipped: e2guardian is not installed");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().display().to_string();
        copy(Path::new(INSTALLED), folder.path(), &root);
        for (name, text) in lists {
            fs::write(folder.path().join("lists").join(name), text).expect("a list");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let page = Arc::new(Mutex::new(String::new()));
        let behind = serve(page.clone());
        let text = fs::read_to_string(folder.path().join("e2guardian.conf")).expect("options");
        let kept = text.lines().filter(|line| !OURS.iter().any(|name| line.starts_with(name)));
        let mut text = kept.fold(String::new(), |text, line| text + line + "\n");
        let _ = write!(
            text,
            "filterports = {port}\nfilterip = 127.0.0.1\nproxyip = 127.0.0.1\nproxyport = {behind}\nloglevel = 3\n\
             logfileformat = 4\nlogexceptionhits = 2\nhttpworkers = 20\nnodaemon = on\nmapportstoips = off\n\
             loglocation = '{root}/log/access.log'\npidfilename = '{root}/log/pid'\nstatlocation = '{root}/log/stats'\n\
             ipcfilename = '{root}/log/ipc'\nurlipcfilename = '{root}/log/urls'\nipipcfilename = '{root}/log/ips'\n\
             maxheaderlines = 100\n{main}"
        );
        if is_root() {
            text.push_str("daemonuser = 'nobody'\ndaemongroup = 'nogroup'\n");
        }
        fs::write(folder.path().join("e2guardian.conf"), text).expect("options");
        let path = folder.path().join("e2guardianf1.conf");
        let text = fs::read_to_string(&path).expect("options") + "\n" + &group.replace('@', &root);
        fs::write(path, text).expect("options");
        fs::create_dir(folder.path().join("log")).expect("a folder");
        for open in [folder.path().to_path_buf(), folder.path().join("log")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o777)).expect("rights");
        }
        let mut command = Command::new(PROGRAM);
        command.arg("-N").arg("-c").arg(folder.path().join("e2guardian.conf"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
        let peer = Peer { folder, child, port, page };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(peer);
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("e2guardian does not listen");
    }

    /// Asks for URLs one after the other, each with its page, and reads the log.
    fn ask(&self, all: &[(String, String)]) -> Vec<Told> {
        for (url, page) in all {
            self.page.lock().expect("the page").clone_from(page);
            let host = url.split('/').nth(2).unwrap_or("");
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
            let head = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("a request");
            let _ = stream.read_to_end(&mut Vec::new());
        }
        for _ in 0..100 {
            let log = fs::read(self.folder.path().join("log/access.log")).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            if log.lines().count() >= all.len() {
                return log.lines().map(told).collect();
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("the log is too short");
    }

    /// The same configuration for us.
    fn load(&self) -> Filter {
        let path = self.folder.path().join("e2guardian.conf");
        let mut read = |path: &str| fs::read(path).map_err(|error| error.to_string());
        Filter::load(&path.display().to_string(), Dialect::E2guardian535, Limits::default(), &mut read)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Options of the package that the test sets itself.
const OURS: [&str; 8] = [
    "filterports",
    "filterip",
    "transparenthttpsport",
    "loglevel",
    "logfileformat",
    "httpworkers",
    "nodaemon",
    "logexceptionhits",
];

fn told(line: &str) -> Told {
    let fields: Vec<&str> = line.split('\t').collect();
    let points = fields.get(7).and_then(|points| points.parse().ok()).unwrap_or(i32::MIN);
    Told { reason: fields.get(4).unwrap_or(&"").to_string(), points }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Copies a configuration with its paths, and its lists empty.
fn copy(from: &Path, to: &Path, root: &str) {
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir_all(&target).expect("a folder");
            copy(&path, &target, root);
            continue;
        }
        let is_list = target.components().any(|part| part.as_os_str() == "lists");
        let text = fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).replace(INSTALLED, root));
        fs::write(target, if is_list { String::new() } else { text.unwrap_or_default() }).expect("a copy");
    }
}

/// A proxy that answers every request with the page of the moment.
fn serve(page: Arc<Mutex<String>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let page = page.clone();
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                    head.push(byte[0]);
                }
                let page = page.lock().expect("the page").clone();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    page.len()
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(page.as_bytes());
            });
        }
    });
    port
}
