//! The same zones and queries for rbldnsd and for us: random data files of every kind, random questions, equal answers.
//!
//! rbldnsd runs on a free port of the loopback; ours answers in this process. `SLUICE_DNSBL_QUERIES` says how many
//! questions there are in all (`bench/dnsbl/differential.sh` asks a million), `SLUICE_DNSBL_SEED` which ones.
//! What may differ is explained in `explained`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dnsbl::answer::{Options, Outcome, Scratch, Transport, respond};
use dnsbl::zone::loader::Loader;
use dnsbl::zone::{Spec, Zones};
use proto::dns::{Message, Name, Record, flag, kind, rcode};

/// Default number of questions.
const QUERIES: u64 = 12_000;

#[test]
fn random_zones_are_answered_as_rbldnsd_answers_them() {
    let Some(program) = rbldnsd() else {
        eprintln!("skipped: rbldnsd is not installed");
        return;
    };
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (queries, seed) = (number("SLUICE_DNSBL_QUERIES", QUERIES), number("SLUICE_DNSBL_SEED", 1));
    let rounds = (queries / 2_000).clamp(12, 400);
    let mut tally = Tally::default();
    for round in 0..rounds {
        let mut random =
            Random(seed.wrapping_mul(1_000_003).wrapping_add(round).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let site = Site::new(&mut random, round);
        let peer = Peer::start(&program, &site);
        let mut ours = Ours::new(&site);
        for _ in 0..queries / rounds {
            let packet = site.question(&mut random);
            let answer = ours.answer(&packet);
            let theirs = peer.ask(&packet, answer.is_some());
            tally.add(&site, &packet, theirs, answer);
        }
        tally.round = false;
    }
    eprintln!("{tally:?}");
    assert!(tally.differences.is_empty(), "{} differ:\n{}", tally.different, tally.differences.join("\n\n"));
    assert!(tally.positive * 8 > tally.asked, "too few of the questions have an answer: {tally:?}");
}

fn rbldnsd() -> Option<PathBuf> {
    ["/usr/sbin/rbldnsd", "/usr/bin/rbldnsd"].map(PathBuf::from).into_iter().find(|path| path.exists())
}

/// Counts of the answers.
#[derive(Debug, Default)]
struct Tally {
    asked: u64,
    positive: u64,
    silent: u64,
    cut_off: u64,
    different: u64,
    /// Whether something of this round is among the differences that are shown.
    round: bool,
    differences: Vec<String>,
}

impl Tally {
    fn add(&mut self, site: &Site, packet: &[u8], theirs: Option<Vec<u8>>, ours: Option<Vec<u8>>) {
        self.asked += 1;
        let (theirs, ours) = match (theirs, ours) {
            (None, None) => {
                self.silent += 1;
                return;
            }
            (theirs, ours) => {
                (theirs.map(|bytes| Message::parse(&bytes).unwrap()), ours.map(|bytes| Message::parse(&bytes).unwrap()))
            }
        };
        if let (Some(theirs), Some(ours)) = (&theirs, &ours) {
            self.positive += u64::from(!theirs.answers.is_empty());
            if explained(packet, theirs, ours, &mut self.cut_off) {
                return;
            }
        }
        self.different += 1;
        if self.differences.len() < 8 && !std::mem::replace(&mut self.round, true) {
            let question = Message::parse(packet);
            self.differences.push(format!(
                "asked: {question:?}\nrbldnsd: {theirs:?}\nours: {ours:?}\nzones: {:?}\n{}",
                site.specs,
                site.lines_about(packet)
            ));
        }
    }
}

/// Returns whether two responses are equal, with records of a section in any order, except for intended differences: a
/// truncated response is marked, and one to a client with EDNS has OPT and so a little less room.
fn explained(packet: &[u8], theirs: &Message, ours: &Message, cut_off: &mut u64) -> bool {
    let without_opt = |message: &Message| -> Vec<Record> {
        message.additionals.iter().filter(|record| record.kind != kind::OPT).cloned().collect()
    };
    if ours.flags & flag::TC != 0 {
        *cut_off += 1;
        let known = ours.answers.iter().all(|record| theirs.answers.contains(record));
        let edns = Message::parse(packet).is_ok_and(|query| !query.additionals.is_empty());
        return known && theirs.flags & flag::AA == 0 && (edns || theirs.answers.len() == ours.answers.len());
    }
    // An empty non-terminal does not exist for rbldnsd (`above.rs` tests which names are ones).
    let is_above = ours.answers.is_empty() && ours.flags & 15 == 0 && theirs.flags & 15 == rcode::NXDOMAIN;
    let flags = if is_above { ours.flags | rcode::NXDOMAIN } else { ours.flags };
    ours.id == theirs.id
        && flags == theirs.flags
        && ours.questions == theirs.questions
        && same(&ours.answers, &theirs.answers)
        && same(&ours.authorities, &theirs.authorities)
        && same(&without_opt(ours), &without_opt(theirs))
}

fn same(ours: &[Record], theirs: &[Record]) -> bool {
    ours.len() == theirs.len() && theirs.iter().all(|record| ours.contains(record))
}

/// rbldnsd, until it is dropped.
struct Peer {
    child: Child,
    socket: UdpSocket,
}

impl Peer {
    /// A free port may be taken a moment later.
    fn start(program: &Path, site: &Site) -> Peer {
        (0..10).find_map(|_| Peer::try_start(program, site)).expect("no port is free for long enough")
    }

    fn try_start(program: &Path, site: &Site) -> Option<Peer> {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let log = std::fs::File::create(site.folder.join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(["-n", "-v", "-v", "-b", &format!("127.0.0.1/{port}"), "-c", "0"]).current_dir(&site.folder);
        if is_root() {
            command.args(["-u", "nobody"]);
        } else {
            let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
            command.args(["-u", user.trim()]);
        }
        let child = command.args(&site.specs).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        let mut peer = Peer { child, socket };
        peer.wait_until_ready(site).then_some(peer)
    }

    /// Whether it is ready; not, if its port is not free.
    fn wait_until_ready(&mut self, site: &Site) -> bool {
        let probe = question("ready.invalid", kind::A, 1, None, 1);
        self.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        for _ in 0..200 {
            let mut bytes = [0; 512];
            if self.socket.send(&probe).is_ok() && self.socket.recv(&mut bytes).is_ok() {
                // An answer to an earlier probe may still come.
                std::thread::sleep(Duration::from_millis(20));
                self.socket.set_nonblocking(true).unwrap();
                while self.socket.recv(&mut bytes).is_ok() {}
                self.socket.set_nonblocking(false).unwrap();
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
            if self.child.try_wait().unwrap().is_some() {
                assert!(site.log().contains("Address already in use"), "rbldnsd ended: {}", site.log());
                return false;
            }
        }
        panic!("rbldnsd does not answer: {}", site.log());
    }

    /// Waits long for an answer where there should be one.
    fn ask(&self, packet: &[u8], expected: bool) -> Option<Vec<u8>> {
        let wait = if expected { 1_000 } else { 25 };
        self.socket.set_read_timeout(Some(Duration::from_millis(wait))).unwrap();
        self.socket.send(packet).unwrap();
        let mut bytes = vec![0; 4_096];
        loop {
            let len = self.socket.recv(&mut bytes).ok()?;
            if bytes[..2] == packet[..2] {
                bytes.truncate(len);
                return Some(bytes);
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Our zones, without a socket.
struct Ours {
    zones: Zones,
    scratch: Scratch,
    out: Vec<u8>,
}

impl Ours {
    fn new(site: &Site) -> Ours {
        let mut parts = Vec::new();
        for spec in &site.specs {
            let spec: Spec = spec.parse().unwrap();
            let mut loader = Loader::new(spec.kind);
            for file in &spec.files {
                let path = site.folder.join(file);
                let changed = std::fs::metadata(&path).unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
                loader.begin(file, changed.as_secs());
                // In pieces of any size.
                std::fs::read(path).unwrap().chunks(97).for_each(|piece| loader.feed(piece));
                loader.end();
            }
            parts.push((spec.zone, loader.finish(now()).ok().map(|(dataset, ..)| Arc::new(dataset))));
        }
        Ours { zones: Zones::new(parts), scratch: Scratch::default(), out: Vec::new() }
    }

    fn answer(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let from = (IpAddr::from(Ipv4Addr::LOCALHOST), Transport::Udp);
        let options = Options::default();
        match respond(&self.zones, &options, packet, from, now(), &mut self.scratch, &mut self.out) {
            Outcome::Respond(_) => Some(self.out.clone()),
            _ => None,
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Random zones in a folder of their own.
struct Site {
    folder: PathBuf,
    specs: Vec<String>,
    text: String,
    zones: Vec<&'static str>,
    /// Listings of the zone in progress, and of its subzone.
    ip4: Vec<u32>,
    ip6: Vec<u128>,
    names: Vec<String>,
    pools: Vec<Pool>,
    subzones: &'static str,
}

/// Listings of a zone, with their subzones.
#[derive(Default)]
struct Pool {
    ip4: Vec<(u32, &'static str)>,
    ip6: Vec<(u128, &'static str)>,
    names: Vec<(String, &'static str)>,
}

const ZONES: [&str; 4] = ["bl.test", "sub.bl.test", "Other.List.example", "z"];

impl Site {
    fn new(random: &mut Random, round: u64) -> Site {
        let folder = std::env::temp_dir().join(format!("sluice-rbldnsd-{}-{round}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        open_to_all(&folder);
        let mut site = Site {
            folder,
            specs: Vec::new(),
            text: String::new(),
            zones: ZONES.to_vec(),
            ip4: Vec::new(),
            ip6: Vec::new(),
            names: ["www", "mail.www", "ns1", "@"].map(str::to_owned).to_vec(),
            pools: Vec::new(),
            subzones: "",
        };
        let kinds = ["ip4set", "ip4trie", "ip4tset", "ip6trie", "ip6tset", "dnset", "generic", "combined"];
        for zone in ZONES {
            site.pools.push(Pool { names: vec![("www".to_owned(), "")], ..Pool::default() });
            for _ in 0..=random.below(2) {
                let kind = kinds[usize::try_from(round + random.below(8)).unwrap() % 8];
                let count = 1 + random.below(2);
                let files: Vec<String> = (0..count).map(|_| site.file(kind, random)).collect();
                site.specs.push(format!("{zone}:{kind}:{}", files.join(",")));
            }
            if random.below(6) == 0 {
                let file = site.acl(random);
                site.specs.push(format!("{zone}:acl:{file}"));
            }
        }
        if random.below(12) == 0 {
            let file = site.acl(random);
            site.specs.push(format!(":acl:{file}"));
        }
        site
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn write(&mut self, text: &str) -> String {
        let name = format!("file{}", std::fs::read_dir(&self.folder).unwrap().count());
        let _ = writeln!(self.text, "--- {name}\n{text}");
        let path = self.folder.join(&name);
        std::fs::write(&path, text).unwrap();
        open_to_all(&path);
        name
    }

    fn file(&mut self, kind: &str, random: &mut Random) -> String {
        let mut text = String::new();
        self.head(&mut text, random);
        if kind == "combined" {
            for _ in 0..=random.below(4) {
                let kind = ["ip4set", "ip4trie", "ip4tset", "ip6trie", "ip6tset", "dnset", "generic"][random.index(7)];
                let subzones = ["@", "a", "b c", "@ a", "sub", "x.a", "www @"][random.index(7)];
                self.subzones = subzones;
                let _ = writeln!(text, "$DATASET {kind}{} {subzones}", ["", ":name"][random.index(2)]);
                if random.below(2) == 0 {
                    self.head(&mut text, random);
                }
                self.body(kind, &mut text, random);
            }
        } else {
            self.subzones = "";
            self.body(kind, &mut text, random);
        }
        self.write(&text)
    }

    fn head(&mut self, text: &mut String, random: &mut Random) {
        for _ in 0..random.below(7) {
            let times = ["0", "1", "60", "5m", "2H", "1d", "1w", "3600s", "604800"];
            let time = times[random.index(times.len())];
            let prefix = ["$", "#$", ";$", ":$"][random.index(8) / 2 % 4 * usize::from(random.below(4) == 0)];
            let _ = match random.below(9) {
                0 | 1 => writeln!(text, "{prefix}SOA {time} ns1.Bl.test admin.x {} 2h 1h 1w {time}", random.below(99)),
                2 | 3 => {
                    let hosts = ["ns1.bl.test", "NS2.example.org", "-off.example", "ns3.z", "www.sub.bl.test"];
                    let count = 1 + random.index(4);
                    let list: Vec<&str> = (0..count).map(|_| hosts[random.index(5)]).collect();
                    writeln!(text, "{prefix}NS {time} {}", list.join(" "))
                }
                4 => writeln!(text, "{prefix}TTL {time}"),
                5 | 6 => writeln!(text, "{prefix}{} See $ at {} $$ end", random.below(10), random.below(99)),
                7 if random.below(3) == 0 => writeln!(text, "{prefix}= base $= for $ ($1) $9"),
                7 => writeln!(text, "{prefix}MAXRANGE4 {}", ["/8", "/16", "65536", "/12", "0", "x"][random.index(6)]),
                _ => {
                    let odd =
                        ["$BOGUS 1", "$TTL", "$SOA 1 2 3", "# comment", "; comment", "", "   ", "$NS 5", "$1", "#"];
                    writeln!(text, "{}", odd[random.index(odd.len())])
                }
            };
        }
    }

    fn value(random: &mut Random) -> String {
        let texts = [
            "Listed $",
            "",
            "plain",
            "$1 and $2$3",
            "see http://x.example/?$",
            "=alone $",
            "$= twice $=",
            "a : b",
            "$$5 $",
            "#no",
            "two  blanks",
        ];
        let text = texts[random.index(texts.len())];
        let address = ["2", "127.0.0.3", "5", "10.1.2.3", "7.9", "1.2.3", "127.0.1.255", "255"][random.index(8)];
        match random.below(9) {
            0..=2 => String::new(),
            3 => format!(" :{address}"),
            4 => format!(" :{address}:"),
            5 | 6 => format!(" :{address}:{text}"),
            7 => format!("\t {text}  "),
            _ => [" :0:x", " ::x", " # comment", " ; comment", " :300:", " :5 junk", " :5 :x", ":6:close", " : 5:x"]
                [random.index(9)]
            .to_owned(),
        }
    }

    fn body(&mut self, kind: &str, text: &mut String, random: &mut Random) {
        let lines = [3, 20, 60][random.index(3)];
        // Above INDEXED_MIN at times, so that both forms of a level are asked.
        let many = random.below(12) == 0 && kind.starts_with("ip4");
        for _ in 0..lines {
            if kind != "generic" && random.below(8) == 0 {
                let value = Site::value(random);
                let value = value.trim_start();
                if value.starts_with(':') {
                    let _ = writeln!(text, "{value}");
                }
            }
            let line = match kind {
                "ip4set" | "ip4trie" => self.ip4_entry(kind == "ip4set", random),
                "ip4tset" => self.ip4_single(random),
                "ip6trie" => self.ip6_entry(random),
                "ip6tset" => self.ip6_trivial(random),
                "dnset" => self.name_entry(random),
                _ => self.record(random),
            };
            let _ = writeln!(text, "{line}");
        }
        if many {
            for _ in 0..9_000 {
                let address = self.ip4(random);
                let _ = writeln!(text, "{}", Ipv4Addr::from(address));
            }
        }
    }

    fn ip4(&mut self, random: &mut Random) -> u32 {
        let address = match (random.below(3), self.ip4.is_empty()) {
            (0, false) => self.ip4[random.index(self.ip4.len())] ^ u32::try_from(random.below(8)).unwrap(),
            (1, false) => {
                let near = self.ip4[random.index(self.ip4.len())];
                near ^ (1 << random.below(32))
            }
            _ => u32::try_from(random.next() & 0xffff_ffff).unwrap() & [0xff00_ffff, u32::MAX][random.index(2)],
        };
        self.ip4.push(address);
        self.pools.last_mut().unwrap().ip4.push((address, self.subzones));
        address
    }

    fn ip4_entry(&mut self, ranges: bool, random: &mut Random) -> String {
        let address = self.ip4(random);
        let [a, b, c, d] = address.to_be_bytes();
        let bang = if random.below(5) == 0 { "!" } else { "" };
        let bits = [8, 9, 12, 15, 16, 17, 20, 23, 24, 25, 28, 30, 31, 32][random.index(14)];
        let network = address & (u32::MAX << (32 - bits));
        let value = Site::value(random);
        let network_text = Ipv4Addr::from(network);
        let range = match random.below(12) {
            0..=3 => format!("{a}.{b}.{c}.{d}"),
            4..=6 => format!("{network_text}/{bits}"),
            7 => format!("{a}.{b}"),
            8 => format!("{a}.{b}.{c}"),
            9 if ranges => format!("{a}.{b}.{c}.{d}-{}", random.below(256)),
            10 if ranges => format!(
                "{a}.{b}.{c}.{d}-{}",
                Ipv4Addr::from(address.saturating_add(u32::try_from(random.below(3_000)).unwrap()))
            ),
            10 => format!("{a}/8"),
            _ => [
                format!("{a}.{b}.{c}.{d}/{bits}"),
                format!("{a}.{b}-{a}.{}", b.saturating_add(3)),
                format!("{a}-{}", a.saturating_add(1)),
                format!("{a}"),
                format!("0{a}.{b}.{c}"),
                format!("{a}.{b}.{c}.256"),
                format!("{a}.{b}.{c}.{d}.1"),
                format!("{a}.{b}.{c}.{d}x"),
                "0/0".to_owned(),
                "0/0".to_owned(),
                format!("{a}.{b}.{c}.0/33"),
                "foo".to_owned(),
            ][random.index(12)]
            .clone(),
        };
        format!("{bang}{range}{value}")
    }

    fn ip4_single(&mut self, random: &mut Random) -> String {
        let address = Ipv4Addr::from(self.ip4(random));
        match random.below(12) {
            0 => format!("!{address}"),
            1 => format!("{address}/32"),
            2 => format!("{address}{}", Site::value(random)),
            _ => address.to_string(),
        }
    }

    fn ip6(&mut self, random: &mut Random) -> u128 {
        let fresh = u128::from(random.next()) << 64 | u128::from(random.next());
        let address = match (random.below(4), self.ip6.is_empty()) {
            (0, false) => self.ip6[random.index(self.ip6.len())] ^ 1 << random.below(128),
            (1, false) => self.ip6[random.index(self.ip6.len())] ^ u128::from(random.below(4)),
            (2, _) => 0x2001_0db8 << 96 | (fresh & (0xffff << 80 | 0xffff << 16 | 0xf)),
            _ => fresh & !(u128::MAX >> [0, 16, 48, 64, 90][random.index(5)]) | u128::from(random.below(3)),
        };
        self.ip6.push(address);
        self.pools.last_mut().unwrap().ip6.push((address, self.subzones));
        address
    }

    fn ip6_entry(&mut self, random: &mut Random) -> String {
        let address = self.ip6(random);
        let bits = [0, 16, 20, 32, 48, 56, 63, 64, 65, 96, 127, 128][random.index(12)];
        let network = if bits == 0 { 0 } else { address & (u128::MAX << (128 - bits)) };
        let bang = if random.below(5) == 0 { "!" } else { "" };
        let words: Vec<String> =
            std::net::Ipv6Addr::from(address).segments().iter().map(|word| format!("{word:x}")).collect();
        let value = Site::value(random);
        let text = |address: u128| hex_only(address);
        match random.below(8) {
            0..=2 => format!("{bang}{}/{bits}{value}", text(network)),
            3 => format!("{bang}{}{value}", text(address)),
            4 => format!("{bang}{}{}", words[..4].join(":"), value),
            5 => format!("{bang}{}{}", words[..random.index(7) + 2].join(":").to_uppercase(), value),
            6 => format!("{bang}{}/{bits}{value}", text(address)),
            _ => ["::/0 :4:all $", "1:2:", "1::2/200", ":::", "1", "::ffff:1.2.3.4", "2001:db8::g", "12345::"]
                [random.index(8)]
            .to_owned(),
        }
    }

    fn ip6_trivial(&mut self, random: &mut Random) -> String {
        let address = self.ip6(random);
        let words: Vec<String> =
            std::net::Ipv6Addr::from(address).segments().iter().map(|word| format!("{word:x}")).collect();
        match random.below(7) {
            0..=3 => words[..4].join(":"),
            4 | 5 => format!("!{}", hex_only(address)),
            _ => format!("{}{}", words[..random.index(5) + 2].join(":"), Site::value(random)),
        }
    }

    fn name(&mut self, random: &mut Random) -> String {
        let labels = ["a", "b", "example", "Com", "org", "x-y", "_z", "mail", "7"];
        let mut name = match (random.below(3), self.names.len() > 8) {
            (0, true) => self.names[random.index(self.names.len())].clone(),
            _ => labels[random.index(9)].to_owned(),
        };
        for _ in 0..random.below(3) {
            name = format!("{}.{name}", labels[random.index(9)]);
        }
        if name.len() < 120 {
            self.names.push(name.clone());
            self.pools.last_mut().unwrap().names.push((name.clone(), self.subzones));
        }
        name
    }

    fn name_entry(&mut self, random: &mut Random) -> String {
        let name = self.name(random);
        let bang = if random.below(5) == 0 { "!" } else { "" };
        let form = match random.below(10) {
            0..=3 => name,
            4..=6 => format!(".{name}"),
            7 | 8 => format!("*.{name}"),
            _ => [
                format!("{name}."),
                format!("a..{name}"),
                format!("*.*.{name}"),
                format!("\\065.{name}"),
                ".".to_owned(),
            ][random.index(5)]
            .clone(),
        };
        let value = Site::value(random);
        let value = if value.starts_with(':') { format!(" {value}") } else { value };
        format!("{bang}{form}{value}")
    }

    fn record(&mut self, random: &mut Random) -> String {
        let name = if random.below(4) == 0 { "@".to_owned() } else { self.name(random) };
        let ttl = ["", "300 ", "5m ", "0 ", "1d IN ", "in "][random.index(6)];
        let data = [
            "A 192.0.2.1",
            "A 192.0.2.2",
            "a 10.0.0.1 extra",
            "TXT \"quoted text\"",
            "TXT plain $ text $1",
            "TXT \"half",
            "MX 10 mx.Example.org",
            "MX 5 www.bl.test.",
            "txt \"\"",
            "A 1.2.3",
            "A 7",
            "TXT",
        ][random.index(12)];
        format!("{name} {ttl}{data}")
    }

    fn acl(&mut self, random: &mut Random) -> String {
        let actions = [":refuse", ":empty", ":pass", ":ignore", ":5:you $ are $1", "text $", ":6", ""];
        let mut text = String::from("$1 variable\n");
        if random.below(2) == 0 {
            text.push_str("$TTL 77\n");
        }
        let mut lines = ["127.0.0.1", "127.0.0.0/8", "0/0", "127.0.0.2", "::1", "10.0.0.0/8"];
        let first = random.index(6);
        lines.rotate_left(first);
        // Refusals and silence rarely, or there is nothing to compare.
        for client in &lines[..1 + random.index(3)] {
            let action = if random.below(8) == 0 {
                random.index(4)
            } else {
                1 + random.index(2) + 3 * usize::from(random.below(2) == 0)
            };
            let _ = writeln!(text, "{client} {}", actions[action]);
        }
        self.write(&text)
    }

    /// Makes a question about a listed address or one near it, in one of the zones, sometimes an odd one.
    fn question(&self, random: &mut Random) -> Vec<u8> {
        let index = random.index(self.zones.len());
        let (zone, pool) = (self.zones[index], &self.pools[index]);
        let mut subzones = "";
        let below = match random.below(14) {
            0..=5 if !pool.ip4.is_empty() => {
                let near = if random.below(4) == 0 { 1 << random.below(32) } else { 0 };
                let (address, inside) = pool.ip4[random.index(pool.ip4.len())];
                subzones = inside;
                reversed4(address ^ near)
            }
            6 | 7 if !pool.ip6.is_empty() => {
                let near = if random.below(3) == 0 { 1 << random.below(128) } else { 0 };
                let (address, inside) = pool.ip6[random.index(pool.ip6.len())];
                subzones = inside;
                reversed6(address ^ near)
            }
            8 if !pool.ip4.is_empty() => {
                let (address, inside) = pool.ip4[random.index(pool.ip4.len())];
                subzones = inside;
                let address = u128::from(address);
                reversed6([0xffff << 32 | address, 0x2002 << 112 | address << 80][random.index(2)])
            }
            9 => String::new(),
            10 => {
                let odd =
                    ["0", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.002.3.4", "0001.2.3.4", "x.2.3.4", "f.f", "*.2.3.4"];
                let address = u32::try_from(random.next() & 0xffff_ffff).unwrap();
                if random.below(2) == 0 { reversed4(address) } else { odd[random.index(odd.len())].to_owned() }
            }
            _ => {
                let (name, inside) = &pool.names[random.index(pool.names.len())];
                subzones = inside;
                let child = ["", "", "a.", "b.example.", "*."][random.index(5)];
                format!("{child}{name}").replace('@', "").trim_matches('.').to_owned()
            }
        };
        let inside: Vec<&str> = subzones.split(' ').collect();
        let subzone = match random.below(5) {
            0 => ["", "a", "b", "c", "sub", "x.a", "www"][random.index(7)],
            _ => inside[random.index(inside.len())].trim_matches('@'),
        };
        let mut name =
            [below.as_str(), subzone, zone].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        if random.below(10) == 0 {
            name = name.to_uppercase();
        }
        if random.below(60) == 0 {
            name = ["test", "invalid", "xbl.test", "example", "list.example", "a.b.c", "."][random.index(7)].to_owned();
        }
        let kinds = [
            1, 1, 1, 1, 1, 1, 1, 16, 16, 16, 16, 16, 255, 255, 255, 255, 255, 255, 2, 6, 15, 28, 5, 33, 99, 249, 252,
            41, 300,
        ];
        let class = if random.below(40) == 0 { [255, 3, 4, 0][random.index(4)] } else { 1 };
        let edns = [None, None, None, Some(512), Some(1_232), Some(4_096)][random.index(6)];
        let id = u16::try_from(random.next() & 0xffff).unwrap();
        let mut packet = question(&name, kinds[random.index(kinds.len())], class, edns, id);
        if random.below(50) == 0 {
            // Recursion not desired, and bits that mean nothing in a query.
            packet[2] = 0;
            packet[3] = [0, 0x10, 0x20, 0x80, 0x0f][random.index(5)];
        }
        packet
    }

    /// The lines of the files that have to do with a question, as far as one can tell.
    fn lines_about(&self, _: &[u8]) -> String {
        if self.text.len() < 4_000 {
            return self.text.clone();
        }
        let kept =
            std::env::temp_dir().join(self.folder.file_name().unwrap().to_string_lossy().replace("sluice-", "kept-"));
        std::fs::write(&kept, &self.text).unwrap();
        format!("(many lines: see {})", kept.display())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An IPv6 address without IPv4 in it.
fn hex_only(address: u128) -> String {
    let words = std::net::Ipv6Addr::from(address).segments().map(|word| format!("{word:x}"));
    let text = words.join(":");
    match text.find(":0:0:") {
        Some(at) => {
            let rest = text[at + 1..].trim_start_matches("0:");
            let rest = if rest == "0" { "" } else { rest };
            format!("{}::{rest}", &text[..at])
        }
        None => text,
    }
}

fn reversed4(address: u32) -> String {
    let [a, b, c, d] = address.to_be_bytes();
    format!("{d}.{c}.{b}.{a}")
}

fn reversed6(address: u128) -> String {
    (0..32).map(|at| format!("{:x}", address >> (4 * at) & 15)).collect::<Vec<_>>().join(".")
}

fn question(name: &str, kind: u16, class: u16, edns: Option<u16>, id: u16) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let mut packet = Vec::new();
    packet.extend_from_slice(&id.to_be_bytes());
    packet.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(edns.is_some())]);
    packet.extend_from_slice(name.as_wire());
    packet.extend_from_slice(&kind.to_be_bytes());
    packet.extend_from_slice(&class.to_be_bytes());
    if let Some(size) = edns {
        packet.extend_from_slice(&[0, 0, 41]);
        packet.extend_from_slice(&size.to_be_bytes());
        packet.extend_from_slice(&[0; 6]);
    }
    packet
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// xorshift64*: the same questions for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(u64::try_from(end).unwrap())).unwrap()
    }
}
