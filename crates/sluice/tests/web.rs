//! `sluice web`: verdicts of pages and requests, problems with file and line, exit status.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn web(args: &[&str], folder: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice")).arg("web").args(args).arg(folder).args(more).output().unwrap()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lists")).unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    folder
}

const MAIN: &str = "filtergroups = 2\n";
const GROUP: &str = "naughtynesslimit = 50\nweightedphraselist = '/etc/e2guardian/lists/weighted'\n\
    bannedphraselist = '/etc/e2guardian/lists/banned'\nexceptionphraselist = '/etc/e2guardian/lists/exception'\n\
    bannedsitelist = '/etc/e2guardian/lists/sites'\nbannedmimetypelist = '/etc/e2guardian/lists/types'\n";

fn site() -> tempfile::TempDir {
    folder(&[
        ("e2guardian.conf", MAIN),
        ("e2guardianf1.conf", GROUP),
        ("e2guardianf2.conf", "naughtynesslimit = 500\nweightedphraselist = '/etc/e2guardian/lists/weighted'\n"),
        ("lists/weighted", "#listcategory: \"Gambling\"\n<poker><30>\n<dice>,<roulette><25>\n<chess><-10>\n"),
        ("lists/banned", "<ban word>\n"),
        ("lists/exception", "<free word>\n"),
        ("lists/sites", "bad.test\n"),
        ("lists/types", "audio/mpeg\n"),
        ("good.html", "<p>Poker and chess</p>"),
        ("bad.html", "<p>poker, dice, <b>roulette</b></p>"),
        ("free.html", "poker dice roulette: a free word, they say"),
    ])
}

#[test]
fn pages_have_a_score_a_verdict_and_a_reason() {
    let site = site();
    let path = |name: &str| site.path().join(name).display().to_string();
    let check = |more: &[&str]| {
        let output = web(&["check", "--json", "--config"], site.path(), more);
        let lines = String::from_utf8(output.stdout).unwrap();
        let values: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code(), values)
    };
    let (status, told) = check(&[&path("good.html"), &path("bad.html"), &path("free.html")]);
    assert_eq!((status, told.len()), (Some(1), 3));
    let row = |value: &Value| (value["verdict"].as_str().unwrap().to_string(), value["score"].as_i64().unwrap());
    assert_eq!(
        told.iter().map(row).collect::<Vec<_>>(),
        [("allow".to_string(), 20), ("block".to_string(), 55), ("exception".to_string(), 0)]
    );
    assert_eq!(told[1]["reason"], "The points of phrases are above the limit: 50 : 55 (dice, roulette+poker)");
    assert_eq!(told[1]["categories"], serde_json::json!(["Gambling"]));
    assert_eq!(told[1]["phrases"][1], serde_json::json!({ "phrase": "poker", "weight": 30, "count": 1 }));
    assert_eq!(check(&["--group", "2", &path("bad.html")]).0, Some(0));
    let (status, told) = check(&["--url", "http://www.bad.test/x", &path("good.html")]);
    assert_eq!((status, told[0]["reason"].as_str()), (Some(1), Some("The site is blocked: bad.test")));
    let (status, told) = check(&["--type", "audio/mpeg", &path("good.html")]);
    assert_eq!((status, told[0]["verdict"].as_str()), (Some(1), Some("block")));
    assert_eq!(check(&[&path("none.html")]).0, Some(2));
    assert_eq!(check(&["--group", "3", &path("good.html")]).0, Some(2));
    let plain = web(&["check", "--config"], site.path(), &[&path("good.html")]);
    assert_eq!(String::from_utf8(plain.stdout).unwrap(), format!("{}: allow 20 Gambling\n", path("good.html")));
}

#[test]
fn lines_that_are_wrong_are_named_with_file_and_line() {
    let good = site();
    let output = web(&["lint"], good.path(), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("2 groups, 2 lists with 2 entries, "), "{text}");
    fs::write(good.path().join("lists/sites"), "bad.test\nworse.test:8080\n").unwrap();
    fs::write(good.path().join("e2guardianf2.conf"), "naughtynesslimit = much\nnothing\n").unwrap();
    let output = web(&["lint", "--json"], good.path(), &[]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let places: Vec<String> = told["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            let file = Path::new(problem["file"].as_str().unwrap()).file_name().unwrap().to_string_lossy().into_owned();
            format!("{file}:{}", problem["line"])
        })
        .collect();
    assert_eq!(places, ["sites:2", "e2guardianf2.conf:2", "e2guardianf2.conf:1"]);
    assert_eq!(web(&["lint"], &good.path().join("lists"), &[]).status.code(), Some(2));
}

#[test]
fn the_configuration_of_the_package_loads_without_an_error() {
    if !Path::new("/etc/e2guardian/e2guardian.conf").exists() {
        eprintln!("skipped: e2guardian is not installed");
        return;
    }
    let output = web(&["lint"], Path::new("/etc/e2guardian"), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_url_is_checked_without_a_page_and_as_the_doors_read_lists() {
    let site = site();
    let check = |more: &[&str]| {
        let output = web(&["check", "--config"], site.path(), more);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, text) = check(&["--url", "http://www.bad.test/x"]);
    assert!(status == Some(1) && text.starts_with("http://www.bad.test/x: block 0 "), "{text}");
    let (status, text) = check(&["--json", "--url", "bad.test:443"]);
    assert!(status == Some(1) && text.contains("\"url\":\"bad.test:443\""), "{text}");
    assert_eq!(check(&["--url", "http://good.test/"]), (Some(0), "http://good.test/: allow 0 \n".into()));
    // A configuration of the gateway says how its doors read lists: a dot in a path hides nothing there.
    fs::write(site.path().join("e2guardianf1.conf"), "bannedurllist = '/etc/e2guardian/lists/urls'\n").unwrap();
    fs::write(site.path().join("lists/urls"), "a.test/x\n").unwrap();
    let config = site.path().join("sluice.toml");
    fs::write(&config, format!("[web]\nconfig = \"{}\"\n", site.path().display())).unwrap();
    let verdict = |config: &Path| web(&["check", "--url", "http://a.test/./x", "--config"], config, &[]).status.code();
    assert_eq!((verdict(&config), verdict(site.path())), (Some(1), Some(0)));
}

#[test]
fn the_group_of_a_user_and_of_a_client_decides() {
    let site = site();
    let path = |name: &str| site.path().join(name).display().to_string();
    fs::write(site.path().join("e2guardian.conf"), format!("{MAIN}authplugin = '{}'\n", path("ip.conf"))).unwrap();
    fs::write(path("ip.conf"), format!("plugname = 'ip'\nipgroups = '{}'\n", path("addresses"))).unwrap();
    fs::write(path("addresses"), "10.0.0.2 = filter2\n").unwrap();
    fs::write(path("users"), "ann:{PLAIN}anns:group=filter2\ntim:{PLAIN}tims\n").unwrap();
    fs::write(path("sluice.toml"), format!("[web]\nconfig = \"{}\"\naccounts = \"{}\"\n", path(""), path("users")))
        .unwrap();
    let config = site.path().join("sluice.toml");
    for (more, group, status) in [
        (["--user", "ann"], 2, 0),
        (["--user", "tim"], 1, 1),
        (["--client", "10.0.0.2"], 2, 0),
        (["--client", "10.0.0.3"], 1, 1),
    ] {
        let output = web(&["check", "--url", "http://bad.test/", "--config"], &config, &more);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with(&format!("sluice: group {group} ")), "{more:?}: {told}");
        assert_eq!(output.status.code(), Some(status), "{more:?}");
    }
}
