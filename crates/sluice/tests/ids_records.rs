//! Records of captures against what Suricata's own tests want of `http`, `smtp`, `tls` and `fileinfo`, field by field.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Expectations that must be met; it only rises.
const MET_MIN: usize = 197;

/// Keys of packets and of what Suricata alone keeps; and lists of keys.
const FOREIGN: [&str; 9] = [
    "pcap_cnt",
    "pkt_src",
    "vlan[0]",
    "not-has-key",
    "has-key",
    "fileinfo.md5",
    "fileinfo.sha256",
    "fileinfo.stored",
    "email.url[0]",
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
        let Some(kind) = kind.filter(|(_, kind)| ["http", "smtp", "tls", "fileinfo"].contains(&&**kind)) else {
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["ids", "check", "--records", "--rules"]).arg(rules.path()).arg("--pcap").arg(capture);
    let output = command.output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect())
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
