//! Tests of the messages to the service manager and the load balancer, and of the dashboard.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};

use crate::harness::{Gateway, PATIENCE, base64, eicar, free_port, mail_with, wait_for};

/// A service manager: a socket that notices come to, and the service.
struct Manager {
    socket: UnixDatagram,
    service: Child,
    _folder: tempfile::TempDir,
}

impl Manager {
    fn start(environment: &[(&str, &str)]) -> Manager {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let config = folder.path().join("sluice.toml");
        std::fs::write(
            &config,
            "[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"discard:\"\n",
        )
        .unwrap();
        // The shell replaces itself, so that the watchdog is asked of the process that runs.
        let mut service = Command::new("sh");
        service.args([
            "-c",
            "WATCHDOG_PID=$$ exec \"$0\" serve --allow-root --config \"$1\"",
            env!("CARGO_BIN_EXE_sluice"),
        ]);
        let service = service
            .arg(&config)
            .env("NOTIFY_SOCKET", folder.path().join("notify"))
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Manager { socket, service, _folder: folder }
    }

    /// The next that it is told, but for the sockets that it is to keep.
    fn told(&self) -> String {
        let mut text = [0; 4096];
        loop {
            let count = self.socket.recv(&mut text).expect("the service says something");
            let told = String::from_utf8_lossy(&text[..count]);
            if !told.starts_with("FDSTORE") {
                return told.into();
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.service.id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), id]).status().unwrap().success());
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.service.kill();
        let _ = self.service.wait();
    }
}

#[test]
fn the_service_manager_is_told_of_start_reload_and_stop() {
    let mut manager = Manager::start(&[]);
    let ready = manager.told();
    assert!(ready.starts_with("READY=1\nSTATUS=1 addresses, ") && ready.ends_with("generation 1"), "{ready}");
    manager.signal("HUP");
    let reloading = manager.told();
    let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|text| text.parse::<u64>().ok());
    assert!(time.is_some_and(|time| time > 0), "{reloading}");
    assert!(manager.told().ends_with("generation 2"));
    manager.signal("TERM");
    assert!(manager.told().starts_with("STOPPING=1\n"));
    let service = &mut manager.service;
    assert!(wait_for(|| service.try_wait().unwrap(), "the service to end").success());
}

#[test]
fn the_watchdog_is_fed_while_the_event_loops_come_round() {
    let manager = Manager::start(&[("WATCHDOG_USEC", "2000000")]);
    let mut told = [manager.told(), manager.told(), manager.told(), manager.told()];
    told.sort();
    assert!(told[0].starts_with("READY=1"), "{told:?}");
    assert_eq!(&told[1..], ["WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]);
}

#[test]
fn the_journal_gets_the_fields_of_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let journal = UnixDatagram::bind(&path).unwrap();
    journal.set_read_timeout(Some(PATIENCE)).unwrap();
    let log = format!("[log]\nformat = \"json\"\njournal = \"{}\"", path.display());
    let gateway = Gateway::start_with(&log, "smtp", "discard:", "");
    let virus = mail_with("base64", "e.com", &base64(&eicar()));
    assert!(gateway.connect().deliver(&virus).starts_with("554 5.7.1 "));
    let next = || {
        let mut record = vec![0; 64 << 10];
        let count = journal.recv(&mut record).expect("a record of the message");
        String::from_utf8_lossy(&record[..count]).into_owned()
    };
    let record = std::iter::repeat_with(next).find(|record| record.contains("\nSLUICE_MESSAGE=message\n")).unwrap();
    assert!(record.starts_with("PRIORITY=6\nSYSLOG_IDENTIFIER=sluice\nMESSAGE={"), "{record}");
    for field in ["ACTION=reject", "FOUND=Eicar-Test-Signature", "CLIENT=127.0.0.1", "FROM=a@client.test", "DOOR=smtp"]
    {
        assert!(record.contains(&format!("\nSLUICE_{field}")), "{field}: {record}");
    }
    assert!(!gateway.log().contains("Eicar"), "it is written twice");
}

/// A gateway that shows its numbers, and where.
fn with_numbers() -> (Gateway, SocketAddr) {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let gateway = Gateway::start_with(&format!("[metrics]\naddress = \"{address}\""), "smtp", "discard:", "");
    (gateway, address)
}

pub fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let (mut status, mut rest) = (String::new(), String::new());
    reader.read_line(&mut status).unwrap();
    reader.read_to_string(&mut rest).unwrap();
    (status.trim_end().into(), rest.split_once("\r\n\r\n").map(|(_, body)| body.to_string()).unwrap_or_default())
}

#[test]
fn old_signatures_are_told_and_may_end_readiness() {
    let Some(data) = std::env::var_os("SLUICE_DATA") else { return };
    let old = std::path::Path::new(&data).join("av-clamav/clamav-scanfiles/freshclam_testfiles/test-3.cvd");
    if !old.is_file() {
        return eprintln!("no pack: av-clamav");
    }
    for (days, status) in [(0, "HTTP/1.1 200 OK"), (30, "HTTP/1.1 503 Service Unavailable")] {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let head = format!(
            "[database]\npaths = [\"{}\"]\nunready_days = {days}\n[metrics]\naddress = \"{address}\"",
            old.display()
        );
        let gateway = Gateway::start_with(&head, "smtp", "discard:", "");
        gateway.wait_for_log("signatures are out of date");
        assert_eq!(get(address, "/readyz").0, status);
        assert_eq!(get(address, "/healthz").0, "HTTP/1.1 200 OK");
        let numbers = get(address, "/metrics").1;
        let built = numbers.lines().find_map(|line| line.strip_prefix("sluice_database_built_seconds ")).unwrap();
        assert!(built.parse::<u64>().unwrap() > 1_000_000_000, "{built}");
        assert!(gateway.connect().deliver(b"From: a\r\n\r\nx\r\n").starts_with("250 "), "mails are taken all the same");
    }
}

#[test]
fn readiness_ends_before_health_does() {
    let (gateway, address) = with_numbers();
    assert_eq!(get(address, "/readyz"), ("HTTP/1.1 200 OK".into(), "ready\n".into()));
    assert_eq!(get(address, "/healthz").0, "HTTP/1.1 200 OK");
    assert_eq!(get(address, "/else").0, "HTTP/1.1 404 Not Found");
    let mut wire = gateway.connect();
    wire.begin_data();
    gateway.signal("TERM");
    gateway.wait_for_log("stopping");
    wait_for(|| (get(address, "/readyz").0 == "HTTP/1.1 503 Service Unavailable").then_some(()), "not to be ready");
    assert_eq!(get(address, "/healthz").0, "HTTP/1.1 200 OK");
    wire.talk("C: x\nC: .\nS: 250 *");
}

/// All that the dashboard asks Prometheus for.
fn asked_by_the_dashboard() -> Vec<String> {
    let dashboard = include_str!("../../../packaging/grafana/sluice.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().into()).collect()
}

/// Metric of a series: those of a histogram have suffixes.
fn series(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// A gateway that has a certificate, and shows its numbers there.
fn with_all_numbers() -> (Gateway, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    crate::harness::tls::Certificate::of("mx.test").store(folder.path(), "mx");
    let at = folder.path().display();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let head = format!(
        "[metrics]\naddress = \"{address}\"\n[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n\
         [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nrelay = \"smtp://127.0.0.1:1\"\n\
         [store.queue]\ndmarc_reports = \"dmarc@mx.test\""
    );
    let gateway = Gateway::start_with(&head, "smtp", "discard:", "");
    wait_for(|| get(address, "/metrics").1.contains("sluice_store_").then_some(()), "the store");
    (gateway, address)
}

#[test]
fn the_dashboard_asks_for_all_numbers_and_no_others() {
    let (_gateway, address) = with_all_numbers();
    let (_, text) = get(address, "/metrics");
    let told: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(told.contains("sluice_resident_bytes") && !text.contains("sluice_resident_bytes 0"), "{text}");
    let expressions = asked_by_the_dashboard();
    let words = expressions.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("sluice_")).map(series).collect();
    assert_eq!(asked, told);
    let alerts = include_str!("../../../packaging/prometheus/sluice.rules.yml");
    let words =
        alerts.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("sluice_"));
    for word in words.map(series) {
        assert!(told.contains(word), "there is no {word}, for which an alert asks");
    }
    let page = include_str!("../../../docs/operate/configuration.md");
    let untold: Vec<_> = told.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(untold.is_empty(), "docs/operate/configuration.md does not name {untold:?}");
}

/// A Prometheus that asks a gateway every fifth of a second.
struct Prometheus {
    address: SocketAddr,
    program: Child,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    /// Starts it, if it is installed.
    fn start(gateway: SocketAddr) -> Option<Prometheus> {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let config = folder.path().join("prometheus.yml");
        let text = format!(
            "scrape_configs:\n  - job_name: sluice\n    scrape_interval: 200ms\n    scrape_timeout: 200ms\n    \
             static_configs: [{{targets: [\"{gateway}\"]}}]\n"
        );
        std::fs::write(&config, text).unwrap();
        let program = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(program) = program else {
            eprintln!("skipped: prometheus is not installed");
            return None;
        };
        Some(Prometheus { address, program, _folder: folder })
    }

    /// Result of an expression; none while it does not listen.
    fn ask(&self, expression: &str) -> Option<serde_json::Value> {
        let coded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /api/v1/query?query={coded} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// The values that an expression comes to, once there are any.
    fn values(&self, expression: &str) -> Vec<f64> {
        let ask = || {
            let answer = self.ask(expression)?;
            assert_eq!(answer["status"], "success", "{expression}: {answer}");
            let results = answer["data"]["result"].as_array()?.clone();
            let value = |result: &serde_json::Value| result["value"][1].as_str().unwrap().parse().unwrap();
            (!results.is_empty()).then(|| results.iter().map(value).collect())
        };
        wait_for(ask, expression)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn prometheus_answers_every_question_of_the_dashboard() {
    let (gateway, address) = with_all_numbers();
    let Some(prometheus) = Prometheus::start(address) else { return };
    wait_for(|| prometheus.ask("vector(1)"), "Prometheus");
    assert!(prometheus.values("sluice_messages_total") == [0.0]);
    assert!(gateway.connect().deliver(b"From: a\r\n\r\nHello\r\n").starts_with("250 "));
    for expression in asked_by_the_dashboard() {
        let expression = expression
            .replace("$job", "sluice")
            .replace("$instance", ".+")
            .replace("$__rate_interval", "1m")
            .replace("$__range", "1d");
        prometheus.values(&expression);
    }
    let grown = || (prometheus.values("sum(rate(sluice_messages_passed_total[1m]))")[0] > 0.0).then_some(());
    wait_for(grown, "the message");
}

#[test]
fn prometheus_takes_the_alerts() {
    let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus/sluice.rules.yml");
    let Ok(checked) = Command::new("promtool").args(["check", "rules"]).arg(rules).output() else {
        return eprintln!("skipped: prometheus is not installed");
    };
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.contains("18 rules found"), "{said}");
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let (_gateway, address) = with_all_numbers();
    let mut checker = Command::new("promtool");
    checker.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut checker) = checker.spawn() else { return eprintln!("skipped: promtool is not installed") };
    checker.stdin.take().unwrap().write_all(get(address, "/metrics").1.as_bytes()).unwrap();
    let output = checker.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn top_shows_what_a_gateway_does_and_nothing_to_obey_in_a_pipe() {
    let (gateway, address) = with_numbers();
    assert_eq!(gateway.connect().deliver(b"From: a\r\n\r\nx\r\n"), "250 2.0.0 Discarded");
    let top = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_sluice")).arg("top").args(args).output().unwrap();
    let output = top(&["--metrics", &address.to_string(), "--count", "2", "--every", "1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.matches("sluice at ").count() == 2, "{text}");
    assert!(text.lines().any(|line| line.starts_with("  passed") && line.contains(" 1 ")), "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("0.0/s"), "{text}");
    let output = top(&["--metrics", &address.to_string(), "--count", "2", "--every", "1", "--json"]);
    let objects: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[1]["metrics"]["sluice_messages_passed_total"], 1.0, "{objects:?}");
    let config = gateway.folder.path().join("sluice.toml");
    assert!(top(&["--config", config.to_str().unwrap(), "--count", "1"]).status.success());
    assert_eq!(top(&["--metrics", "127.0.0.1:1"]).status.code(), Some(2));
}

#[test]
fn log_finds_decisions_in_what_the_gateway_wrote_in_either_format() {
    for (format, passed) in [("json", "\"pass\""), ("human", "action=\"pass\"")] {
        decisions_are_found(format, passed);
    }
}

fn decisions_are_found(format: &str, passed: &str) {
    let gateway = Gateway::start_with(&format!("[log]\nformat = \"{format}\""), "smtp", "discard:", "");
    let mail = crate::harness::mail_with("base64", "eicar.com", &crate::harness::base64(&crate::harness::eicar()));
    assert!(gateway.connect().deliver(&mail).starts_with("554 "));
    assert_eq!(gateway.connect().deliver(b"From: a\r\nMessage-ID: <n1@a>\r\n\r\nx\r\n"), "250 2.0.0 Discarded");
    gateway.wait_for_log(passed);
    let file = gateway.folder.path().join("log");
    std::fs::write(&file, gateway.log()).unwrap();
    let log = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.arg("log").arg(&file).args(args).output().unwrap()
    };
    let lines = |args: &[&str]| String::from_utf8(log(args).stdout).unwrap().lines().count();
    assert_eq!(lines(&[]), 2);
    for (args, wanted) in [
        (["--action", "reject"], 1),
        (["--found", "eicar"], 1),
        (["--address", "B@mx.test"], 2),
        (["--since", "2199"], 0),
        (["--id", "nobody"], 0),
        (["--message-id", "N1@a"], 1),
    ] {
        assert_eq!(lines(&args), wanted, "{format} {args:?}");
    }
    assert_eq!(log(&["--id", "nobody"]).status.code(), Some(1));
    assert_eq!(lines(&["--spam"]), 0);
    assert!(!gateway.log().contains("Some("), "{}", gateway.log());
    if format == "json" {
        let found = log(&["--message-id", "n1@a", "--json"]).stdout;
        let facts: serde_json::Value = serde_json::from_slice(&found).unwrap();
        let of = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
        assert_eq!([of("message_id"), of("door"), of("client")], ["<n1@a>", "smtp", "127.0.0.1"]);
        assert!(
            [of("from"), of("to")].iter().all(|address| !address.contains('<') && address.contains('@')),
            "{facts}"
        );
        assert!(facts["after_end_us"].is_u64() && facts["after_dot_us"].is_null(), "{facts}");
        assert!(gateway.log().lines().all(|line| line.starts_with('{')), "{}", gateway.log());
    }
}

#[test]
fn the_line_of_a_start_is_json_where_the_log_is() {
    let gateway = Gateway::start_with("[log]\nformat = \"json\"", "smtp", "discard:", "");
    let facts: serde_json::Value = serde_json::from_str(&gateway.ready).unwrap();
    assert_eq!((&facts["message"], &facts["level"]), (&"ready".into(), &"INFO".into()));
    assert_eq!(facts["listeners"][0], format!("smtp {} -> discard:", gateway.address));
}

#[test]
fn a_reload_that_fails_and_a_list_that_changes_are_seen() {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("clients");
    std::fs::write(&list, "192.0.2.0/24\n").unwrap();
    let listed = format!("clients = [\"file:{}\"]", list.display());
    let gateway = Gateway::start_with(&format!("[metrics]\naddress = \"{address}\""), "smtp", "discard:", &listed);
    gateway.wait_for_log("no signature files: only the EICAR test file is detected");
    let number = |name: &str| {
        let numbers = get(address, "/metrics").1;
        numbers.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    assert_eq!(number("sluice_signature_files "), Some(0));
    let greeting = || {
        let mut line = String::new();
        let stream = TcpStream::connect(gateway.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    assert!(greeting().starts_with("554 5.7.1"));
    std::fs::write(&list, "# everybody here\n127.0.0.0/8\n").unwrap();
    wait_for(|| greeting().starts_with("220 ").then_some(()), "the list to be read");
    std::fs::write(&list, "nonsense\n").unwrap();
    wait_for(|| number("sluice_reload_failures_total ").filter(|&failures| failures >= 1), "the failure to be counted");
    assert!(greeting().starts_with("220 "), "the old one stays in force");
}

#[test]
fn the_processes_are_shown_and_what_isolates_them_is_tried() {
    let (gateway, address) = with_numbers();
    assert!(gateway.connect().deliver(b"From: a\r\n\r\nx\r\n").starts_with("250 "));
    let number = |name: &str| {
        let numbers = get(address, "/metrics").1;
        let value = numbers.lines().find_map(|line| Some(line.strip_prefix(name)?.rsplit_once(' ')?.1.to_owned()));
        value.and_then(|value| value.parse::<u64>().ok())
    };
    assert_eq!(number("sluice_process_inspections_total{process=\"jail_1\"}"), Some(1));
    assert!(number("sluice_process_resident_bytes{process=\"edge\"") > Some(1 << 20));
    assert!(number("sluice_process_resident_bytes{process=\"jail_1\"") > Some(1 << 20));
    let template =
        crate::harness::children_of(gateway.supervisor()).into_iter().find(|(_, name)| name == "sluice: jails");
    let shown =
        format!("sluice_process_resident_bytes{{process=\"jails\",pid=\"{}\"}}", template.expect("a template").0);
    assert!(number(&shown) > Some(1 << 20), "{shown}");
    let jail = crate::harness::children_of(gateway.supervisor()).into_iter().find(|(_, name)| name == "sluice: jail 1");
    let killed = Command::new("kill").args(["-KILL", &jail.expect("a jail").0.to_string()]).status().unwrap();
    assert!(killed.success());
    let starts = || number("sluice_process_starts_total{process=\"jail_1\"}").filter(|&starts| starts == 2);
    wait_for(starts, "another jail to be counted");
    let top = ["top", "--count", "1", "--metrics", &address.to_string()];
    let shown = Command::new(env!("CARGO_BIN_EXE_sluice")).args(top).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line = shown.lines().find(|line| line.starts_with("sluice: jail 1")).expect("a line for the jail");
    assert!(line.ends_with(" 1"), "one restart: {line}");
    let config = gateway.folder.path().join("sluice.toml");
    let checked = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(&config).output().unwrap();
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(said.contains("inspections would run in processes of their own: seccomp, landlock"), "{said}");
}

/// Digests of the text of the next test, and a string of it.
const SIGNATURES: [(&str, &str); 4] = [
    ("a.hdb", "a0feece698de84e7b264f9727ab60a69:1200:Test.Md5\n"),
    ("b.hsb", "d137bd13b98dc93465db45fccd5491fc2fe56d21:1200:Test.Sha1\n"),
    ("c.hsb", "331ae3e71a94fd2d26943d38c721182bcc23bd349ccb0dc444b87a8123b4266a:1200:Test.Sha256\n"),
    ("d.ndb", "Test.String:0:*:33343536373839616263646566676869\n"),
];

#[test]
fn the_environment_keeps_search_and_digests_to_fewer_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let listener = "[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"discard:\"\n";
    std::fs::write(at("sluice.toml"), listener).unwrap();
    std::fs::write(at("text"), "0123456789abcdefghij----\n".repeat(48)).unwrap();
    std::fs::create_dir(at("signatures")).unwrap();
    SIGNATURES.iter().for_each(|(name, line)| std::fs::write(at("signatures").join(name), line).unwrap());
    let run = |arguments: &[&str], instructions: Option<&str>| {
        let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
        sluice.current_dir(folder.path()).args(arguments).env_remove("SLUICE_INSTRUCTIONS");
        let output = sluice.envs(instructions.map(|name| ("SLUICE_INSTRUCTIONS", name))).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for instructions in [None, Some("portable"), Some("sse"), Some("avx2"), Some("avx512")] {
        let said = run(&["scan", "--cache", "none", "--allmatch", "-d", "signatures", "text"], instructions);
        let is_found = |name: &str| said.contains(&format!("text: Test.{name}.UNOFFICIAL FOUND"));
        assert!(["Md5", "Sha1", "Sha256", "String"].into_iter().all(is_found), "{instructions:?}: {said}");
    }
    let wanted = "content would be searched with portable code, and hashed with portable code";
    assert!(run(&["check", "sluice.toml"], Some("portable")).contains(wanted));
    let here = run(&["check", "sluice.toml"], None);
    assert!(here.contains("content would be searched with "), "{here}");
}
