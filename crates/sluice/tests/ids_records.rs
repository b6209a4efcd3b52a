//! Records of captures against what Suricata's own tests want of them, field by field, and against its output.

use std::collections::BTreeMap;
use std::fs;
use std::iter::once;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// Expectations that must be met; it only rises.
const MET_MIN: usize = 207;

/// Keys of packets and of what Suricata alone keeps; and lists of keys.
const FOREIGN: [&str; 10] = [
    "pcap_cnt",
    "pkt_src",
    "vlan[0]",
    "not-has-key",
    "has-key",
    "fileinfo.md5",
    "fileinfo.sha256",
    "fileinfo.stored",
    "email.url[0]",
    // Nothing is dropped in a capture.
    "flow.action",
];

/// An expectation: how many records have these values.
struct Wanted {
    count: usize,
    fields: Vec<(String, String)>,
}

#[test]
fn records_have_the_fields_that_suricata_wants() {
    let data = std::env::var_os("SLUICE_DATA").map(PathBuf::from).unwrap_or_default();
    let tests = data.join("ids-suricata-verify/suricata-verify/tests");
    if !tests.is_dir() {
        return eprintln!("no pack: ids-suricata-verify");
    }
    let (mut folders, mut results) = (vec![tests.clone()], BTreeMap::<(String, bool), usize>::new());
    while let Some(folder) = folders.pop() {
        folders.extend(files(&folder).into_iter().filter(|path| path.is_dir()));
        let wanted = fs::read_to_string(folder.join("test.yaml")).map(|test| wanted(&test)).unwrap_or_default();
        let Some(records) = (!wanted.is_empty()).then(|| records(&folder)).flatten() else { continue };
        for Wanted { count, fields } in wanted {
            let found = records.iter().filter(|record| fields.iter().all(|field| has(record, field))).count();
            if found != count {
                let name = folder.strip_prefix(&tests).unwrap().display();
                println!("{name}: {found} records for {count}: {fields:?}");
            }
            *results.entry((fields[0].1.clone(), found == count)).or_default() += 1;
        }
    }
    println!("{results:?}");
    let met: usize = results.iter().filter(|((_, is_met), _)| *is_met).map(|(_, count)| count).sum();
    assert!(met >= MET_MIN, "{results:?}");
}

#[test]
fn flows_and_anomalies_are_told_as_suricata_tells_them() {
    // The output of Suricata 7.0.10 for this capture, without what it has of packets and of its memory.
    let flow = json!({
        "timestamp": "2023-11-14T22:13:20.007000+0000", "event_type": "flow", "src_ip": "10.0.0.1", "src_port": 1001,
        "dest_ip": "10.0.0.2", "dest_port": 80, "proto": "TCP", "app_proto": "http",
        "flow": {
            "pkts_toserver": 5, "pkts_toclient": 3, "bytes_toserver": 304, "bytes_toclient": 225,
            "start": "2023-11-14T22:13:20.000000+0000", "end": "2023-11-14T22:13:20.007000+0000", "age": 0,
            "state": "closed", "reason": "shutdown", "alerted": true,
        },
        "tcp": {
            "tcp_flags": "1b", "tcp_flags_ts": "1b", "tcp_flags_tc": "1b", "syn": true, "fin": true, "psh": true,
            "ack": true, "state": "closed",
        },
    });
    let anomaly = |event: &str| {
        let anomaly = json!({ "app_proto": "http", "type": "applayer", "event": event, "layer": "proto_parser" });
        json!({ "event_type": "anomaly", "proto": "TCP", "tx_id": 0, "anomaly": anomaly })
    };
    let events = ["MISSING_HOST_HEADER", "REQUEST_FIELD_MISSING_COLON", "INVALID_RESPONSE_CHUNK_LEN"];
    let wanted: Vec<Value> = events.into_iter().map(anomaly).chain(once(flow)).collect();
    let folder = tempfile::tempdir().unwrap();
    let (rules, capture) = (folder.path().join("a.rules"), folder.path().join("a.pcap"));
    fs::write(&rules, "alert http any any -> any any (http.uri; content:\"/a\"; sid:1;)\n").unwrap();
    let texts = [
        "GET /a HTTP/1.1\r\nNo colon here\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    ];
    fs::write(&capture, connection(texts)).unwrap();
    let mut told = check(&rules, &capture);
    let number = told[0]["flow_id"].clone();
    assert!(number.is_u64() && told.iter().all(|record| record["flow_id"] == number), "{told:?}");
    told.retain(|record| ["flow", "anomaly"].contains(&record["event_type"].as_str().unwrap()));
    for record in &mut told {
        let fields = record.as_object_mut().unwrap();
        // Those of Suricata 8, and of a packet.
        ["flow_id", "ip_v"].iter().for_each(|key| _ = fields.remove(*key));
        if fields["event_type"] == "anomaly" {
            let ends = ["timestamp", "src_ip", "src_port", "dest_ip", "dest_port"];
            ends.iter().for_each(|key| assert!(fields.remove(*key).is_some(), "{key}"));
        }
    }
    assert_eq!(told, wanted);
}

/// A capture of a connection to port 80, on which the client and the server each send a text.
fn connection(texts: [&str; 2]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0];
    let (mut sequences, mut count) = ([1000_u32, 5000], 0_u32);
    let mut put = |side: usize, flags: u8, text: &str| {
        let ends: [([u8; 4], u16); 2] = [([10, 0, 0, 1], 1001), ([10, 0, 0, 2], 80)];
        let (from, to) = (ends[side], ends[1 - side]);
        let length = u16::try_from(40 + text.len()).unwrap().to_be_bytes();
        let mut packet = vec![2; 12];
        packet.extend([8, 0, 0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend([from.0, to.0].concat());
        packet.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        packet.extend([sequences[side].to_be_bytes(), sequences[1 - side].to_be_bytes()].concat());
        packet.extend([0x50, flags, 255, 255, 0, 0, 0, 0]);
        packet.extend(text.as_bytes());
        let length = u32::try_from(packet.len()).unwrap();
        file.extend([1_700_000_000, count * 1000, length, length].map(u32::to_le_bytes).concat());
        file.extend(packet);
        count += 1;
        sequences[side] += length - 54 + u32::from(flags & 3 != 0);
    };
    [(0, 2), (1, 0x12), (0, 0x10)].into_iter().for_each(|(side, flags)| put(side, flags, ""));
    texts.into_iter().enumerate().for_each(|(side, text)| put(side, 0x18, text));
    [(0, 0x11), (1, 0x11), (0, 0x10)].into_iter().for_each(|(side, flags)| put(side, flags, ""));
    file
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// The expectations of a test that mean records of ours, of the newest version, the kind of record first.
fn wanted(test: &str) -> Vec<Wanted> {
    let mut all = Vec::new();
    for block in test.split("- filter:").skip(1) {
        let value = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let pairs = block.lines().filter_map(|line| Some((line, line.trim().split_once(':')?)));
        let pairs: Vec<(usize, &str, String)> = pairs
            .map(|(line, (key, text))| {
                (line.len() - line.trim_start().len(), key.trim_start_matches("- "), value(text))
            })
            .collect();
        let field = |name: &str| pairs.iter().find(|(_, key, _)| *key == name).map(|(.., value)| value.clone());
        let Some(at) = pairs.iter().position(|(_, key, _)| *key == "match") else { continue };
        let depth = pairs[at].0;
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut above: Option<(usize, &str)> = None;
        for (depth_of_key, key, value) in pairs[at + 1..].iter().take_while(|(inner, ..)| *inner > depth) {
            above = above.filter(|(outer, _)| depth_of_key > outer);
            match above {
                _ if value.is_empty() => above = Some((*depth_of_key, key)),
                Some((_, outer)) => fields.push((format!("{outer}.{key}"), value.clone())),
                None => fields.push(((*key).into(), value.clone())),
            }
        }
        let kind = fields.iter().position(|(key, _)| key == "event_type").map(|at| fields.remove(at));
        let Some(kind) =
            kind.filter(|(_, kind)| ["http", "smtp", "tls", "fileinfo", "flow", "anomaly"].contains(&&**kind))
        else {
            continue;
        };
        let is_foreign = block.lines().any(|line| FOREIGN.iter().any(|key| line.trim_start().starts_with(key)));
        if is_foreign || field("lt-version").is_some() {
            continue;
        }
        fields.insert(0, kind);
        let count = field("count").and_then(|count| count.parse().ok()).unwrap_or(1);
        all.push(Wanted { count, fields });
    }
    all
}

fn records(folder: &Path) -> Option<Vec<Value>> {
    let is_capture = |path: &PathBuf| path.to_string_lossy().contains(".pcap");
    let capture = files(folder).into_iter().find(is_capture)?;
    let rules = tempfile::NamedTempFile::new().unwrap();
    Some(check(rules.path(), &capture))
}

/// Alerts and records of a capture.
fn check(rules: &Path, capture: &Path) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["ids", "check", "--records", "--rules"]).arg(rules).arg("--pcap").arg(capture);
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a record has a value; a key has dots and places in lists.
fn has(record: &Value, (key, wanted): &(String, String)) -> bool {
    let path = key.replace('[', "/").replace(']', "").replace('.', "/");
    match record.pointer(&format!("/{path}")) {
        Some(Value::String(text)) => text == wanted,
        Some(value) => format!("{value}") == wanted.to_lowercase(),
        None => false,
    }
}
