//! `sluice check` before the first start of the service, and `sluice config show`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, config: &str, words: &[&str]) -> Output {
    fs::write(folder.join("sluice.toml"), config).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sluice")).args(words).arg(folder.join("sluice.toml")).output().unwrap()
}

fn check(folder: &Path, config: &str) -> (Option<i32>, String) {
    let output = run(folder, config, &["check", "--no-signatures"]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap().replace(folder.to_str().unwrap(), ""))
}

/// As the page of the mail server has it, with credentials that systemd has not loaded.
const PACKAGED: &str = "hostname = 'mail.example.org'\n[store]\nfolder = 'STATE/store'\nsize = '64M'\nimaps = ['[::]:993']\n\
    [spam.bayes]\nledger = 'STATE/ledger'\n[clamd]\naddresses = ['unix:/run/sluice/clamd.sock']\n\
    [[lookup]]\nname = 'db'\nservers = ['sqlite:STATE/none']\nquery = \"SELECT a FROM p WHERE x = '%s'\"\n\
    password = 'file:/run/credentials/sluice-test.service/password'\n\
    [[tls.certificate]]\nchain = '/run/credentials/sluice-test.service/fullchain.pem'\n\
    key = '/run/credentials/sluice-test.service/privkey.pem'\n\
    [[listener]]\nprotocol = 'smtp'\naddress = '[::]:25'\ntls = 'offer'\nforward = 'store:'\nquarantine = 'STATE/quarantine'\n";

#[test]
fn what_the_service_makes_at_its_first_start_is_no_fault() {
    let place = tempfile::tempdir().unwrap();
    let config = PACKAGED.replace("STATE", "/var/lib/sluice-that-is-not-there").replace("[[lookup]]", "[[unused]]");
    let config =
        format!("{}{}", &config[..config.find("[[unused]]").unwrap()], &config[config.find("[[tls").unwrap()..]);
    let (code, said) = check(place.path(), &config);
    assert_eq!(code, Some(0), "{said}");
    for wanted in [
        "/run/credentials/sluice-test.service/fullchain.pem: a credential, which systemd hands to the service",
        "/run/credentials/sluice-test.service/privkey.pem: a credential",
        "folder /var/lib/sluice-that-is-not-there/quarantine, which would be made",
        "folder /var/lib/sluice-that-is-not-there/ledger, which would be made",
        "folder /run/sluice, which systemd makes for the service",
        "store /var/lib/sluice-that-is-not-there/store/mail, which would be made",
        "/sluice.toml: OK",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    // The service itself has its credentials, or does not start.
    let secret = format!("{config}[archives]\npasswords = ['file:/run/credentials/sluice-test.service/words']\n");
    let (code, said) = check(place.path(), &secret);
    assert!(code == Some(0) && said.contains("sluice-test.service/words: a credential"), "{said}");
    let output = run(place.path(), &secret, &["serve", "--allow-root", "--config"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("words: a credential that systemd has not loaded"), "{error}");
}

#[test]
fn what_is_wrong_is_told_with_its_file_and_line() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("bad.pem"), "nothing").unwrap();
    let certificate = rcgen::generate_simple_self_signed(vec!["mx.test".to_owned()]).unwrap();
    fs::write(place.path().join("chain.pem"), certificate.cert.pem()).unwrap();
    let listener = "[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:25'\ntls = 'offer'\nforward = 'discard:'\n";
    for (tables, wanted) in [
        ("[[tls.certificate]]\nchain = 'bad.pem'\nkey = 'bad.pem'\n", "/sluice.toml:2: /bad.pem: no certificate in it"),
        ("[[tls.certificate]]\nchain = 'chain.pem'\nkey = 'chain.pem'\n", "/chain.pem: no private key in it"),
        ("[[tls.certificate]]\nchain = '/none.pem'\nkey = '/none.pem'\n", "/sluice.toml:2: /none.pem: "),
        (
            "[database]\npaths = ['/none']\n[[tls.certificate]]\nacme = ['a.example']\n[tls.acme]\naccept_terms = true\n",
            "/sluice.toml:2: /none: ",
        ),
        (
            "[[tls.certificate]]\nchain = '/none.pem'\nkey = '/run/credentials/sluice-test.service/key'\n",
            "/sluice.toml:2: /none.pem: ",
        ),
        ("[databse]\npaths = []\n", "/sluice.toml:1:2: unknown field `databse`"),
    ] {
        let (code, said) = check(place.path(), &format!("{tables}{listener}"));
        assert!(code == Some(2) && said.contains(wanted), "{wanted}: {said}");
    }
}

#[test]
fn every_key_is_shown_with_what_is_in_force() {
    let place = tempfile::tempdir().unwrap();
    let config = "hostname = 'mx.test'\n[resources]\nsessions_max = 20000\nhead_pool_bytes = '64M'\nstop_seconds = 31\n\
        [spam]\nreject = 15\n[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:25'\nforward = 'discard:'\n\
        [listener.spam]\nreject = 20\n[[listener]]\nprotocol = 'lmtp'\naddress = '127.0.0.1:24'\nforward = 'discard:'\n";
    let show = |words: &[&str]| {
        let output = run(place.path(), config, &[&["config", "show"], words, &["--config"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().replace(place.path().to_str().unwrap(), "")
    };
    let all = show(&["--all"]);
    for wanted in [
        "hostname = \"mx.test\"  # /sluice.toml:1",
        "threads = 0  # default",
        "resources.stop_seconds = 31  # /sluice.toml:5",
        "resources.inspection_pool_bytes = 1073741824  # default",
        "spam.headers = true  # default",
        "spam.required = (required_score of the rules, usually 5)  # default",
        "user = (none)  # default",
        "# [spam.bayes] not set",
        "# [store] not set",
        "trust.scores.defer = 8  # default",
        "tls.authorities = \"/etc/ssl/certs/ca-certificates.crt\"  # default",
        "listener[1].spam.reject = 20  # /sluice.toml:13",
        "listener[2].protocol = \"lmtp\"  # /sluice.toml:15",
        "listener[2].received = true  # default",
    ] {
        assert!(all.lines().any(|line| line == wanted), "{wanted}: {all}");
    }
    let json = show(&["--all", "--json"]);
    assert!(
        json.lines().count() > 200 && json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
    let changed = show(&["--changed"]);
    assert!(changed.contains("stop_seconds = 31") && changed.contains("spam.reject = 15"), "{changed}");
    assert!(!changed.contains("sessions_max") && !changed.contains("head_pool_bytes"), "{changed}");
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sluice.toml");
    let listener = "[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:2525\"\nforward = \"discard:\"\n";
    std::fs::write(&file, listener).unwrap();
    let run = |words: &[&str], to: std::process::Stdio| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(words).arg(&file).stdout(to).stderr(std::process::Stdio::piped()).output().unwrap()
    };
    for words in [&["check"][..], &["config", "show", "--config"], &["explain"], &["scan"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = run(words, full.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("No space left on device"), "{words:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(run(words, writer.into()).status.code(), Some(0), "{words:?}");
    }
}
