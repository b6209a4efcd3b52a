//! Rules on the packets of an interface: machines in network namespaces, with clients and servers that know nothing of it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::namespaces::Machines;
use crate::harness::wait_for;
use crate::harness::web::{Origin, response};

const RULES: &str = r#"
alert http any any -> any any (msg:"path"; flow:to_server; http.uri; content:"/secret"; sid:1;)
alert http any any -> any any (msg:"page"; flow:to_client; file.data; content:"forbidden-words"; sid:2;)
"#;

/// A process that reads packets, with its output in a file.
struct Sniffer {
    child: Child,
    errors: BufReader<ChildStderr>,
}

impl Sniffer {
    /// Starts one; packets are read from the return on.
    fn start(machines: &Machines, folder: &Path, more: &[&str]) -> Sniffer {
        let rules = folder.join("own.rules");
        fs::write(&rules, RULES).unwrap();
        let out = File::create(folder.join("out.json")).unwrap();
        let mut child = machines.on("gateway", || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
            command.args(["ids", "sniff", "clients", "--records"]).args(more).arg("--rules").arg(&rules);
            command.stdout(out).stderr(Stdio::piped()).spawn().unwrap()
        });
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.starts_with("sluice: clients: 2 rules, seccomp, "), "{line}");
        Sniffer { child, errors }
    }

    fn status(&self) -> String {
        fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap()
    }

    /// Ends it as a service manager does; its last words.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut words = String::new();
        self.errors.read_to_string(&mut words).unwrap();
        assert!(self.child.wait().unwrap().success(), "{words}");
        words
    }
}

fn lines(folder: &Path, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out.json")).unwrap_or_default();
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event_type"] == kind).collect()
}

#[test]
fn what_passes_an_interface_alerts_and_is_recorded() {
    let Some(machines) = Machines::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let sniffer = Sniffer::start(&machines, folder.path(), &["--promiscuous"]);
    let status = sniffer.status();
    let of = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    assert_eq!((of("CapEff:"), of("Seccomp:")), ("0000000000000000".into(), "2".into()));
    assert!(of("Uid:").starts_with("65534"), "{status}");

    let origin = machines
        .on("server", || Origin::at("198.51.100.2:0", |_, _| Some(response("", b"here are forbidden-words indeed"))));
    let url = format!("http://198.51.100.2:{}/secret", origin.address.port());
    let page = machines.on("client", || Command::new("curl").args(["-s", "--max-time", "60", &url]).output().unwrap());
    assert_eq!(page.stdout, b"here are forbidden-words indeed", "{page:?}");
    let alerts = wait_for(|| Some(lines(folder.path(), "alert")).filter(|alerts| alerts.len() >= 2), "alerts");
    let of = |alert: &Value| (alert["alert"]["signature_id"].as_u64(), alert["src_ip"].as_str().map(str::to_owned));
    let told: Vec<_> = alerts.iter().map(of).collect();
    assert_eq!(told, [(Some(1), Some("192.0.2.2".into())), (Some(2), Some("198.51.100.2".into()))]);

    let words = sniffer.end();
    assert!(words.contains(" 0 of them dropped; ") && words.contains("; 2 alerts"), "{words}");
    let http = &lines(folder.path(), "http")[0];
    assert_eq!((&http["http"]["url"], &http["http"]["status"]), (&"/secret".into(), &200.into()));
    let flows = lines(folder.path(), "flow");
    let flow = flows.iter().find(|flow| flow["dest_port"] == origin.address.port()).unwrap();
    assert_eq!((&flow["app_proto"], &flow["flow"]["alerted"]), (&"http".into(), &true.into()));
    assert!(flow["flow"]["bytes_toclient"].as_u64() > Some(31), "{flow}");
    assert_eq!(flow["flow_id"], alerts[0]["flow_id"]);
    let statistics = &lines(folder.path(), "stats")[0]["stats"];
    assert_eq!((&statistics["capture"]["kernel_drops"], &statistics["detect"]["alert"]), (&0.into(), &2.into()));
}

#[test]
fn an_interface_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("own.rules");
    fs::write(&rules, RULES).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let done = command.args(["ids", "sniff", "no-such-link", "--rules"]).arg(&rules).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && words.contains("no-such-link: "), "{words}");
}
