//! `sluice update` from a mirror that the test makes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

const RULE: &str = "Test.One:0:*:6f6e652d6d61726b6572\n";
const OTHER_RULE: &str = "Test.Two:0:*:74776f2d6d61726b6572\n";

/// Answer of the mirror to a path.
#[derive(Clone)]
struct Answer {
    status: &'static str,
    header: String,
    body: Vec<u8>,
}

/// A server of files, which knows their versions by their content.
struct Mirror {
    address: SocketAddr,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Mirror {
    fn start(tls: Option<Arc<ServerConfig>>) -> Mirror {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (answers, requests) =
            (Arc::<Mutex<HashMap<String, Answer>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (shown, noted) = (answers.clone(), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                match &tls {
                    Some(config) => {
                        let connection = ServerConnection::new(config.clone()).unwrap();
                        serve(StreamOwned::new(connection, stream), &shown, &noted);
                    }
                    None => serve(stream, &shown, &noted),
                }
            }
        });
        Mirror { address, answers, requests }
    }

    fn put(&self, name: &str, body: impl AsRef<[u8]>) {
        self.answer(name, "200 OK", "", body);
    }

    fn answer(&self, name: &str, status: &'static str, header: &str, body: impl AsRef<[u8]>) {
        let answer = Answer { status, header: header.into(), body: body.as_ref().to_vec() };
        self.answers.lock().unwrap().insert(format!("/{name}"), answer);
    }

    /// The requests since the last time.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

fn serve(mut stream: impl Read + Write, answers: &Mutex<HashMap<String, Answer>>, requests: &Mutex<Vec<String>>) {
    let mut head = String::new();
    let mut reader = BufReader::new(&mut stream);
    while !head.ends_with("\r\n\r\n") {
        if !matches!(reader.read_line(&mut head), Ok(1..)) {
            return;
        }
    }
    let path = head.split(' ').nth(1).unwrap().to_string();
    requests.lock().unwrap().push(head.clone());
    let answer = answers.lock().unwrap().get(&path).cloned();
    let answer = answer.unwrap_or(Answer { status: "404 Not Found", header: String::new(), body: Vec::new() });
    let sum = answer.body.iter().fold(7u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let known = head.lines().any(|line| line.eq_ignore_ascii_case(&format!("if-none-match: \"{sum:x}\"")));
    let text = match known && answer.status.starts_with("200") {
        true => "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".to_string(),
        false => {
            let length = if answer.header.contains("Content-Length") {
                String::new()
            } else {
                format!("Content-Length: {}\r\n", answer.body.len())
            };
            let Answer { status, header, .. } = &answer;
            format!("HTTP/1.1 {status}\r\nETag: \"{sum:x}\"\r\n{header}{length}Connection: close\r\n\r\n")
        }
    };
    let _ = stream.write_all(text.as_bytes());
    if !known {
        let _ = stream.write_all(&answer.body);
    }
    let _ = stream.flush();
}

/// A configuration with a folder of its own.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new(settings: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let text = settings.replace("FOLDER", &folder.path().display().to_string());
        std::fs::write(folder.path().join("sluice.toml"), text).unwrap();
        Site { folder }
    }

    /// With a mirror of these databases and these further files.
    fn of(mirror: &Mirror, databases: &[&str], files: &[&str]) -> Site {
        let urls: Vec<String> = files.iter().map(|name| format!("http://{}/{name}", mirror.address)).collect();
        Site::new(&format!(
            "[update]\nfolder = \"FOLDER/signatures\"\nmirror = \"http://{}\"\ndatabases = {databases:?}\nurls = {urls:?}\n\
             file_bytes_max = 100000\n",
            mirror.address
        ))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("signatures").join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn update(&self, options: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.env_remove("http_proxy").env_remove("https_proxy").env_remove("all_proxy");
        command.env_remove("HTTP_PROXY").env_remove("HTTPS_PROXY").env_remove("ALL_PROXY");
        command.arg("update").arg("--config").arg(self.folder.path().join("sluice.toml")).args(options);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), text)
    }
}

/// Signed databases of ClamAV's own tests, where they are.
fn signed(name: &str) -> Option<Vec<u8>> {
    let data = std::env::var_os("SLUICE_DATA")?;
    let folder = Path::new(&data).join("av-clamav/clamav-scanfiles/freshclam_testfiles");
    let bytes = std::fs::read(folder.join(name)).ok();
    if bytes.is_none() {
        eprintln!("no pack: av-clamav");
    }
    bytes
}

#[test]
fn a_file_is_fetched_once_and_again_when_it_has_changed() {
    let mirror = Mirror::start(None);
    mirror.put("a.ndb", RULE);
    let site = Site::of(&mirror, &[], &["a.ndb"]);
    assert_eq!(site.update(&[]), (0, "a.ndb: new\n".into()));
    assert_eq!(site.read("a.ndb"), RULE.as_bytes());
    assert!(!mirror.requests()[0].to_lowercase().contains("if-none-match"));
    assert_eq!(site.update(&[]), (0, "a.ndb: up to date\n".into()));
    assert!(mirror.requests()[0].to_lowercase().contains("if-none-match"));
    mirror.put("a.ndb", OTHER_RULE);
    assert_eq!(site.update(&[]), (0, "a.ndb: new\n".into()));
    assert_eq!(site.read("a.ndb"), OTHER_RULE.as_bytes());
    // A file that was removed is fetched whatever the server was told before.
    std::fs::remove_file(site.path("a.ndb")).unwrap();
    assert_eq!(site.update(&[]), (0, "a.ndb: new\n".into()));
    assert!(std::fs::read_dir(site.path(".coming")).unwrap().next().is_none());
}

/// A file that nobody but root may change, and who owns the signatures that root updates.
fn victim(site: &Site) -> Option<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be led astray");
        return None;
    }
    let victim = site.folder.path().join("victim");
    std::fs::write(&victim, "of root").unwrap();
    std::fs::create_dir(site.path("")).unwrap();
    chown(site.path(""), Some(OWNER), Some(OWNER)).unwrap();
    Some(victim)
}

const OWNER: u32 = 4_321;

#[test]
fn root_is_not_led_astray_by_links_in_the_folder() {
    let mirror = Mirror::start(None);
    mirror.put("a.ndb", RULE);
    for planted in [".lock", ".state.new", ".state.json", "a.ndb", ".coming/a.ndb", ".coming", ".previous"] {
        let site = Site::of(&mirror, &[], &["a.ndb"]);
        let Some(victim) = victim(&site) else { return };
        let folder = site.folder.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        if planted.contains('/') {
            std::fs::create_dir(site.path(".coming")).unwrap();
            chown(site.path(".coming"), Some(OWNER), Some(OWNER)).unwrap();
        }
        let target = if planted.ends_with('g') || planted.ends_with("us") { &folder } else { &victim };
        symlink(target, site.path(planted)).unwrap();
        lchown(site.path(planted), Some(OWNER), Some(OWNER)).unwrap();
        let (_, text) = site.update(&[]);
        assert_eq!(std::fs::read(&victim).unwrap(), b"of root", "{planted}: {text}");
        assert_eq!(std::fs::metadata(&victim).unwrap().uid(), 0, "{planted}: {text}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{planted}: {text}");
    }
}

#[test]
fn root_updates_as_the_owner_of_the_folder() {
    let mirror = Mirror::start(None);
    mirror.put("a.ndb", RULE);
    let site = Site::of(&mirror, &[], &["a.ndb"]);
    if victim(&site).is_none() {
        return;
    }
    assert_eq!(site.update(&[]), (0, "a.ndb: new\n".into()));
    mirror.put("a.ndb", OTHER_RULE);
    assert_eq!(site.update(&[]), (0, "a.ndb: new\n".into()));
    for name in ["a.ndb", ".state.json", ".lock", ".coming", ".previous", ".previous/a.ndb"] {
        assert_eq!(std::fs::symlink_metadata(site.path(name)).unwrap().uid(), OWNER, "{name}");
    }
    assert_eq!(site.update(&["--rollback"]), (0, "a.ndb: as it was before\n".into()));
    assert_eq!(site.read("a.ndb"), RULE.as_bytes());
}

#[test]
fn a_file_with_a_digest_is_that_file_or_none() {
    let mirror = Mirror::start(None);
    mirror.put("a.fp", "44d88612fea8a8f36de82e1278abb02f:68:Test.Allowed\n");
    let site = |digest: &str| Site::of(&mirror, &[], &[&format!("a.fp#sha256={digest}")]);
    let right = "7e9b24e12c6bc5f9ad39ea6b6fa7a2c6f8d6a7d3e7a1d4d5a0aa3bb1cc2dd3ee";
    let (code, text) = site(right).update(&[]);
    let named = text.split("its SHA-256 is ").nth(1).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(code, 2, "{text}");
    assert_eq!(site(named.split(',').next().unwrap()).update(&[]), (0, "a.fp: new\n".into()));
    let (code, text) = Site::of(&mirror, &[], &["a.fp"]).update(&[]);
    assert!(code == 2 && text.contains("name its digest"), "{text}");
}

#[test]
fn what_was_before_comes_back() {
    let mirror = Mirror::start(None);
    mirror.put("a.ndb", RULE);
    let site = Site::of(&mirror, &[], &["a.ndb"]);
    site.update(&[]);
    mirror.put("a.ndb", OTHER_RULE);
    site.update(&[]);
    assert_eq!(site.update(&["--rollback"]), (0, "a.ndb: as it was before\n".into()));
    assert_eq!(site.read("a.ndb"), RULE.as_bytes());
    assert_eq!(site.update(&["--rollback"]).0, 0);
    assert_eq!(site.read("a.ndb"), OTHER_RULE.as_bytes(), "and forth");
}

#[test]
fn what_cannot_be_read_never_replaces_what_can() {
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &[], &["a.ndb"]);
    mirror.put("a.ndb", RULE);
    site.update(&[]);
    let half = format!("Content-Length: {}\r\n", 2 * OTHER_RULE.len());
    let wrong: [(&str, &str, Vec<u8>); 5] = [
        ("200 OK", "", b"rubbish\n".to_vec()),
        ("200 OK", "", Vec::new()),
        ("200 OK", &half, OTHER_RULE.into()),
        ("200 OK", "", OTHER_RULE.repeat(10_000).into_bytes()),
        ("404 Not Found", "", OTHER_RULE.into()),
    ];
    for (status, header, body) in wrong {
        mirror.answer("a.ndb", status, header, body);
        let (code, text) = site.update(&["--force"]);
        assert_eq!(code, 2, "{status} {header}: {text}");
        assert_eq!(site.read("a.ndb"), RULE.as_bytes(), "{status} {header}: {text}");
    }
    assert!(std::fs::read_dir(site.path(".coming")).unwrap().all(|entry| entry.unwrap().file_name() == "a.ndb"));
    mirror.put("a.ndb", OTHER_RULE);
    assert_eq!(site.update(&["--force"]), (0, "a.ndb: new\n".into()));
}

#[test]
fn what_nobody_has_is_not_up_to_date_whatever_the_server_says() {
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &[], &["a.ndb"]);
    mirror.answer("a.ndb", "304 Not Modified", "", "");
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("a.ndb: the server says 304"), "{text}");
}

#[test]
fn a_server_that_fails_is_left_alone_for_a_while() {
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &[], &["a.ndb", "b.ndb"]);
    mirror.answer("a.ndb", "503 Service Unavailable", "Retry-After: 7200\r\n", "");
    mirror.put("b.ndb", RULE);
    let (code, text) = site.update(&[]);
    assert_eq!(code, 2);
    assert!(text.contains("a.ndb: the server says 503") && text.contains("b.ndb: new"), "{text}");
    mirror.requests();
    mirror.put("a.ndb", RULE);
    let (code, text) = site.update(&[]);
    assert_eq!(code, 0);
    let seconds: u64 = text.split("asked for: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((7_100..=7_200).contains(&seconds), "{text}");
    assert_eq!(mirror.requests().len(), 1, "only b.ndb");
    assert!(site.update(&["--force"]).1.contains("a.ndb: new"));
}

#[test]
fn a_server_that_refuses_us_is_left_alone_as_long_as_freshclam_leaves_it() {
    for (status, hours) in [("403 Forbidden", 24), ("429 Too Many Requests", 4)] {
        let mirror = Mirror::start(None);
        let site = Site::of(&mirror, &[], &["a.ndb"]);
        mirror.answer("a.ndb", status, "", "");
        let (code, text) = site.update(&[]);
        let said = format!("a.ndb: the server says {status}");
        assert!(code == 2 && text.contains(&said), "{text}");
        assert_eq!(text.contains("freshclam and cvdupdate only"), hours == 24, "{text}");
        mirror.requests();
        mirror.put("a.ndb", RULE);
        let (code, text) = site.update(&[]);
        let seconds = text.split(" s to wait").next().and_then(|text| text.rsplit(' ').next()?.parse::<u64>().ok());
        assert!(code == 0 && seconds.is_some_and(|seconds| seconds > hours * 3_600 - 120), "{text}");
        assert!(mirror.requests().is_empty());
    }
}

#[test]
fn a_signed_database_is_taken_only_as_it_was_signed_and_never_an_older_one() {
    let (Some(third), Some(fourth)) = (signed("test-3.cvd"), signed("test-4.cvd")) else { return };
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &["test"], &[]);
    mirror.put("test.cvd", &third);
    assert_eq!(site.update(&[]), (0, "test.cvd: new\n".into()));
    // A later version than there is would keep what comes next out.
    let mut forged = String::from_utf8_lossy(&fourth[..512]).replacen(":4:", ":9:", 1).into_bytes();
    forged.extend_from_slice(&fourth[512..]);
    mirror.put("test.cvd", &forged);
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("the header says version 9, and the info file 4"), "{text}");
    assert_eq!(site.read("test.cvd"), third);
    std::fs::remove_file(site.path(".state.json")).unwrap();
    let mut forged = fourth.clone();
    *forged.last_mut().unwrap() ^= 1;
    mirror.put("test.cvd", &forged);
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("the MD5 differs"), "{text}");
    assert_eq!(site.read("test.cvd"), third);
    mirror.put("test.cvd", &fourth);
    assert_eq!(site.update(&["--force"]), (0, "test.cvd: new\n".into()));
    mirror.put("test.cvd", &third);
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("version 3 is older than 4"), "{text}");
    assert_eq!(site.read("test.cvd"), fourth);
}

#[test]
fn a_database_that_is_ahead_is_made_of_incremental_updates() {
    let (Some(third), Some(fourth), Some(cdiff)) = (signed("test-3.cvd"), signed("test-4.cvd"), signed("test-4.cdiff"))
    else {
        return;
    };
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &["test"], &[]);
    mirror.put("test.cvd", &third);
    assert_eq!(site.update(&[]), (0, "test.cvd: new\n".into()));
    mirror.requests();
    mirror.put("test.cvd", &fourth);
    mirror.put("test-4.cdiff", &cdiff);
    assert_eq!(site.update(&[]), (0, "test.cld: new\n".into()));
    let paths: Vec<String> = mirror.requests().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(paths, ["/test.cvd", "/test-4.cdiff"]);
    assert!(site.path("test.cld").is_file() && !site.path("test.cvd").exists());
    assert_eq!(site.update(&[]), (0, "test.cvd: up to date\n".into()));
    // Whether or not the server knows what was told before.
    mirror.answer("test.cvd", "200 OK", "X: y\r\n", [&fourth[..], b"\n"].concat());
    assert_eq!(site.update(&[]), (0, "test.cvd: up to date\n".into()));
    assert_eq!(site.update(&["--rollback"]), (0, "test.cvd: as it was before\n".into()));
    assert!(site.path("test.cvd").is_file() && !site.path("test.cld").exists());
    assert_eq!(site.update(&["--rollback"]), (0, "test.cld: as it was before\n".into()));
    assert!(site.path("test.cld").is_file() && !site.path("test.cvd").exists());
}

#[test]
fn an_incremental_update_that_is_not_as_it_was_signed_is_not_taken() {
    let (Some(third), Some(fourth), Some(mut cdiff)) =
        (signed("test-3.cvd"), signed("test-4.cvd"), signed("test-4.cdiff"))
    else {
        return;
    };
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &["test"], &[]);
    mirror.put("test.cvd", &third);
    site.update(&[]);
    cdiff[100] ^= 1;
    mirror.put("test.cvd", &fourth);
    mirror.put("test-4.cdiff", &cdiff);
    let (code, text) = site.update(&[]);
    assert!(code == 0 && text.contains("the signature of the update is wrong: it is fetched whole"), "{text}");
    assert_eq!(site.read("test.cvd"), fourth);
    assert!(!site.path("test.cld").exists());
}

#[test]
fn a_server_that_wants_rest_is_not_asked_for_the_whole() {
    let (Some(third), Some(fourth)) = (signed("test-3.cvd"), signed("test-4.cvd")) else { return };
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &["test"], &[]);
    mirror.put("test.cvd", &third);
    site.update(&[]);
    mirror.requests();
    mirror.put("test.cvd", &fourth);
    let date = "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n";
    mirror.answer("test-4.cdiff", "429 Too Many Requests", date, "");
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("test.cvd: the server says 429"), "{text}");
    let paths: Vec<String> = mirror.requests().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(paths, ["/test.cvd", "/test-4.cdiff"]);
    assert_eq!(site.read("test.cvd"), third);
    let (code, text) = site.update(&[]);
    let seconds: u64 = text.split("asked for: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(code == 0 && (604_000..=604_800).contains(&seconds), "a week: {text}");
}

#[test]
fn freshclams_own_file_is_enough() {
    let Some(third) = signed("test-3.cvd") else { return };
    let mirror = Mirror::start(None);
    mirror.put("clamav/test.cvd", &third);
    mirror.put("a.ndb", RULE);
    let site = Site::new("");
    let (folder, conf) = (site.path(""), site.folder.path().join("freshclam.conf"));
    let (folder, at) = (folder.display(), mirror.address);
    let text = format!(
        "DatabaseDirectory {folder}\nPrivateMirror http://{at}/clamav\nExtraDatabase test\nExcludeDatabase main\n\
         ExcludeDatabase daily\nBytecode no\nDatabaseCustomURL http://{at}/a.ndb\nChecks 24\n"
    );
    std::fs::write(&conf, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["update", "--freshclam-conf"]).arg(&conf);
    let output = command.env_remove("http_proxy").env_remove("HTTP_PROXY").output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*said), (Some(0), "test.cvd: new\na.ndb: new\n"), "{errors}");
    let told = format!(
        "sluice: unsupported option ignored: {}:8: Checks: the command runs once, use a timer\n",
        conf.display()
    );
    assert_eq!((errors, site.read("test.cvd")), (told.into(), third));
}

#[test]
fn a_reader_who_has_gone_does_not_stop_an_update() {
    let mirror = Mirror::start(None);
    mirror.put("a.ndb", RULE);
    let site = Site::of(&mirror, &[], &["a.ndb", "b.ndb"]);
    let run = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.arg("update").arg("--config").arg(site.folder.path().join("sluice.toml"));
        command.stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap().code()
    };
    assert_eq!(run(), Some(2), "b.ndb is not there");
    mirror.put("b.ndb", OTHER_RULE);
    std::fs::remove_file(site.path(".state.json")).expect("it was written");
    assert_eq!(run(), Some(0));
    assert_eq!(site.read("b.ndb"), OTHER_RULE.as_bytes());
}

#[test]
fn a_server_has_to_prove_who_it_is() {
    let key = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_string()]).unwrap();
    let certificate = CertificateDer::from(key.cert.der().to_vec());
    let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], private).unwrap();
    let mirror = Mirror::start(Some(Arc::new(config)));
    mirror.put("a.ndb", RULE);
    let settings = |authorities: &str| {
        format!(
            "[tls]\nauthorities = \"FOLDER/{authorities}\"\n[update]\nfolder = \"FOLDER/signatures\"\n\
             urls = [\"https://{}/a.ndb\"]\n",
            mirror.address
        )
    };
    let (site, stranger) = (Site::new(&settings("ours.pem")), Site::new(&settings("others.pem")));
    std::fs::write(site.folder.path().join("ours.pem"), key.cert.pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_string()]).unwrap();
    std::fs::write(stranger.folder.path().join("others.pem"), other.cert.pem()).unwrap();
    assert_eq!(site.update(&[]), (0, "a.ndb: new\n".into()));
    let (code, text) = stranger.update(&[]);
    assert_eq!(code, 2, "{text}");
    assert!(!stranger.path("a.ndb").exists() && text.to_lowercase().contains("certificate"), "{text}");
}

#[test]
fn two_updates_do_not_get_into_each_others_way() {
    let mirror = Mirror::start(None);
    let site = Site::of(&mirror, &[], &["a.ndb"]);
    mirror.put("a.ndb", RULE);
    std::fs::create_dir_all(site.path("")).unwrap();
    let lock = std::fs::File::create(site.path(".lock")).unwrap();
    lock.lock().unwrap();
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("another update is under way"), "{text}");
    drop(lock);
    assert_eq!(site.update(&[]).0, 0);
}

/// An authority's certificate in the site's folder, and what signs there; nothing without OpenSSL.
struct Office<'s>(&'s Site);

impl Office<'_> {
    fn open(site: &Site) -> Option<Office<'_>> {
        let office = Office(site);
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "root.crt"])
            .args(["-subj", "/CN=Signer", "-days", "9", "-addext", "keyUsage=digitalSignature,keyCertSign"])
            .current_dir(site.folder.path())
            .output();
        if made.is_err() {
            eprintln!("skipped: openssl is not installed");
            return None;
        }
        Some(office)
    }

    /// The content of a `.sign` file.
    fn sign(&self, bytes: &[u8]) -> String {
        let path = |name: &str| self.0.folder.path().join(name);
        std::fs::write(path("file"), bytes).unwrap();
        let done = Command::new("openssl")
            .args(["cms", "-sign", "-binary", "-in", "file", "-signer", "root.crt", "-inkey", "key.pem"])
            .args(["-outform", "PEM", "-out", "file.pem"])
            .current_dir(self.0.folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let pem = std::fs::read_to_string(path("file.pem")).unwrap();
        let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        format!("#clamsign-1.0\n230::pkcs7-pem:{lines}\n")
    }
}

/// With a mirror of one database, and certificates.
fn site_with_certificates(mirror: &Mirror) -> Site {
    Site::new(&format!(
        "[database]\ncertificates = \"root.crt\"\n[update]\nfolder = \"FOLDER/signatures\"\nmirror = \"http://{}\"\n\
         databases = [\"test\"]\n",
        mirror.address
    ))
}

#[test]
fn a_signature_beside_a_database_comes_with_it_and_a_bad_one_is_refused() {
    let (Some(third), Some(fourth), Some(cdiff)) = (signed("test-3.cvd"), signed("test-4.cvd"), signed("test-4.cdiff"))
    else {
        return;
    };
    let mirror = Mirror::start(None);
    let site = site_with_certificates(&mirror);
    let Some(office) = Office::open(&site) else { return };
    mirror.put("test.cvd", &third);
    mirror.put("test-3.cvd.sign", office.sign(&fourth));
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("test-3.cvd.sign: the signature is of other bytes"), "{text}");
    assert!(!site.path("test.cvd").exists());
    mirror.put("test-3.cvd.sign", office.sign(&third));
    assert_eq!(site.update(&["--force"]), (0, "test.cvd: new\n".into()));
    assert!(site.path("test-3.cvd.sign").is_file());
    // An update that somebody else signed is not taken; the whole is.
    mirror.put("test.cvd", &fourth);
    mirror.put("test-4.cdiff", &cdiff);
    mirror.put("test-4.cdiff.sign", office.sign(&third));
    mirror.put("test-4.cvd.sign", office.sign(&fourth));
    let (code, text) = site.update(&[]);
    assert!(code == 0 && text.contains("update 4: the signature is of other bytes: it is fetched whole"), "{text}");
    assert!(site.path("test-4.cvd.sign").is_file() && site.path("test.cvd").is_file());
    assert_eq!(site.update(&["--rollback"]), (0, "test.cvd: as it was before\n".into()));
    mirror.put("test-4.cdiff.sign", office.sign(&cdiff));
    std::fs::remove_file(site.path(".state.json")).unwrap();
    assert_eq!(site.update(&["--force"]), (0, "test.cld: new\n".into()));
}

#[test]
fn a_signature_that_is_required_cannot_be_left_out() {
    let (Some(third), Some(fourth), Some(cdiff)) = (signed("test-3.cvd"), signed("test-4.cvd"), signed("test-4.cdiff"))
    else {
        return;
    };
    let mirror = Mirror::start(None);
    let site = site_with_certificates(&mirror);
    let Some(office) = Office::open(&site) else { return };
    let config = site.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[update]", "signatures = \"required\"\n[update]")).unwrap();
    mirror.put("test.cvd", &third);
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("no detached signature"), "{text}");
    assert!(!site.path("test.cvd").exists());
    mirror.put("test-3.cvd.sign", office.sign(&third));
    assert_eq!(site.update(&["--force"]), (0, "test.cvd: new\n".into()));
    // An update without one is not taken, and the whole has to have one, too.
    mirror.put("test.cvd", &fourth);
    mirror.put("test-4.cdiff", &cdiff);
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("update 4: no signature"), "{text}");
    assert_eq!(site.read("test.cvd"), third);
    mirror.put("test-4.cdiff.sign", office.sign(&cdiff));
    assert_eq!(site.update(&["--force"]), (0, "test.cld: new\n".into()));
}

#[test]
fn a_signature_that_is_missing_comes_later() {
    let (Some(third), Some(fourth)) = (signed("test-3.cvd"), signed("test-4.cvd")) else { return };
    let mirror = Mirror::start(None);
    let site = site_with_certificates(&mirror);
    let Some(office) = Office::open(&site) else { return };
    mirror.put("test.cvd", &third);
    assert_eq!(site.update(&[]), (0, "test.cvd: new\n".into()));
    assert!(!site.path("test-3.cvd.sign").exists());
    mirror.put("test-3.cvd.sign", office.sign(&fourth));
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("test-3.cvd.sign: the signature is of other bytes"), "{text}");
    assert!(!site.path("test-3.cvd.sign").exists());
    mirror.put("test-3.cvd.sign", office.sign(&third));
    assert_eq!(site.update(&["--force"]), (0, "test.cvd: up to date\n".into()));
    assert!(site.path("test-3.cvd.sign").is_file());
    mirror.requests();
    assert_eq!(site.update(&[]), (0, "test.cvd: up to date\n".into()));
    assert_eq!(mirror.requests().len(), 1, "it is not asked for again");
}

#[test]
fn a_database_with_a_bad_signature_beside_it_is_not_loaded() {
    let (Some(third), Some(fourth)) = (signed("test-3.cvd"), signed("test-4.cvd")) else { return };
    let site = Site::new("");
    let Some(office) = Office::open(&site) else { return };
    std::fs::create_dir(site.path("")).unwrap();
    std::fs::write(site.path("test.cvd"), &third).unwrap();
    let (path, root) = (site.path(""), site.folder.path().join("root.crt"));
    let [path, root] = [&path, &root].map(|path| path.to_str().unwrap());
    let cache = site.folder.path().join("cache").display().to_string();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), text)
    };
    let verify = ["database", "verify", path, "--certificates", root];
    let scan = ["scan", "--no-summary", "-d", path, "--certificates", root, root];
    let compile = ["database", "compile", path, "--cache", &cache, "--certificates", root];
    let all = [&verify[..], &scan, &compile];
    assert!(all.iter().all(|arguments| run(arguments).0 == 0), "without one it is as ever");
    std::fs::write(site.path("test-3.cvd.sign"), office.sign(&third)).unwrap();
    let (code, text) = run(&verify);
    assert!(code == 0 && text.contains("signed beside by Signer"), "{text}");
    assert!(all.iter().all(|arguments| run(arguments).0 == 0));
    std::fs::write(site.path("test-3.cvd.sign"), office.sign(&fourth)).unwrap();
    std::fs::remove_dir_all(&cache).unwrap();
    for arguments in all {
        let (code, text) = run(arguments);
        assert!(
            code == 2 && text.contains("test-3.cvd.sign: the signature is of other bytes"),
            "{arguments:?}: {text}"
        );
    }
    assert_eq!(run(&["database", "verify", path]).0, 0, "nobody asked");
    let (code, text) = run(&["database", "verify", path, "--certificates", path]);
    assert!(code == 2 && text.contains("no certificates"), "{text}");
}

/// A tar archive in gzip, of these files.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut command = Command::new("tar");
    command.arg("-C").arg(folder.path()).args(["--transform", "s,^up,..,", "-Pczf", "-"]);
    command.args(files.iter().map(|(name, _)| name));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn intrusion_rule(sid: u32, rev: u32, text: &str) -> String {
    format!("alert http any any -> any any (msg:\"rule {sid}\"; http.uri; content:\"{text}\"; sid:{sid}; rev:{rev};)\n")
}

/// A site with these sources of intrusion rules.
fn rules_site(sources: &[&str]) -> Site {
    Site::new(&format!("[update]\nrules_folder = \"FOLDER/ids\"\nrules = {sources:?}\nfile_bytes_max = 100000\n"))
}

impl Site {
    /// The files of rules in force.
    fn rules(&self) -> Vec<(String, String)> {
        let folder = self.folder.path().join("ids/rules");
        let file = |entry: std::fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
        };
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| file(entry.unwrap())).collect();
        files.sort();
        files
    }

    fn rule_names(&self) -> Vec<String> {
        self.rules().into_iter().map(|(name, _)| name).collect()
    }
}

#[test]
fn a_set_of_rules_is_unpacked_compared_and_taken_as_a_whole() {
    let mirror = Mirror::start(None);
    let url = format!("http://{}/emerging.rules.tar.gz", mirror.address);
    let site = rules_site(&[&url]);
    let (one, two) = (intrusion_rule(1, 1, "/one"), intrusion_rule(2, 1, "/two"));
    let first =
        archive(&[("rules/a.rules", &one), ("rules/b.rules", &two), ("rules/LICENSE", "x"), ("x/c.lst", "YQ==")]);
    mirror.put("emerging.rules.tar.gz", &first);
    let (code, text) = site.update(&["--dry-run"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("new       1:1  rev 1  a.rules  rule 1\n") && text.contains("2 new, 0 gone"), "{text}");
    assert!(site.rules().is_empty(), "a dry run puts nothing in force");
    let (code, text) = site.update(&[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("rules: 2 read, 2 active, 0 do not load; 2 new, 0 gone, 0 changed"), "{text}");
    assert_eq!(site.rule_names(), ["a.rules", "b.rules", "c.lst"]);
    let (_, text) = site.update(&[]);
    assert_eq!(text, "rules: up to date\n");
    let second =
        archive(&[("rules/a.rules", &intrusion_rule(1, 2, "/uno")), ("rules/d.rules", &intrusion_rule(4, 1, "/d"))]);
    mirror.put("emerging.rules.tar.gz", &second);
    let (_, text) = site.update(&["--dry-run"]);
    let wanted = [
        "changed   1:1  rev 1 -> 2  a.rules  rule 1\n",
        "gone      1:2  rev 1  b.rules  rule 2\n",
        "new       1:4  rev 1  d.rules  rule 4\n",
    ];
    wanted.iter().for_each(|row| assert!(text.contains(row), "{text}"));
    assert_eq!(site.rule_names(), ["a.rules", "b.rules", "c.lst"]);
    assert_eq!(site.update(&[]).0, 0);
    assert_eq!(site.rule_names(), ["a.rules", "d.rules"], "files that are gone go");
    assert_eq!(site.update(&["--rollback"]).1, "rules: as they were before\n");
    assert_eq!(site.rule_names(), ["a.rules", "b.rules", "c.lst"]);
}

#[test]
fn a_set_of_rules_that_is_damaged_hostile_or_does_not_load_is_not_taken() {
    let mirror = Mirror::start(None);
    let url = format!("http://{}/set.tar.gz", mirror.address);
    let site = rules_site(&[&url]);
    let good = intrusion_rule(1, 1, "/one");
    let wrong = "alert http any any -> any any (msg:\"x\"; no.such.keyword; sid:9;)\n";
    let whole = archive(&[("rules/a.rules", &good)]);
    mirror.put("set.tar.gz", &whole);
    assert_eq!(site.update(&[]).0, 0);
    let large = "# long\n".repeat(60_000);
    let noise: String = (0u32..60_000).map(|n| format!("# {:08x}\n", n.wrapping_mul(2_654_435_761))).collect();
    let cases: [(Vec<u8>, &str); 8] = [
        (whole[..whole.len() - 20].to_vec(), "damaged"),
        (b"<html>not found</html>".to_vec(), "set.tar.gz: "),
        (archive(&[("rules/a.txt", &good)]), "there are no rules in it"),
        (archive(&[("rules/a.rules", &large)]), "there are no rules in it"),
        (archive(&[("up/x/a.rules", &good)]), "a member is called \"../x/a.rules\""),
        (archive(&[("rules/a.rules", &good), ("other/a.rules", &good)]), "two members are called a.rules"),
        (archive(&[("rules/a.rules", &format!("{good}{wrong}"))]), "1 of 2 rules do not load: "),
        (archive(&[("rules/a.rules", &noise)]), "larger than 100000 bytes"),
    ];
    for (body, reason) in cases {
        mirror.put("set.tar.gz", &body);
        let (code, text) = site.update(&["--force"]);
        assert!(code == 2 && text.contains(reason), "{reason}: {text}");
        assert_eq!(site.rules(), [("a.rules".to_owned(), good.clone())], "{reason}");
    }
    assert!(site.update(&[]).1.contains("not asked for: "));
    mirror.put("set.tar.gz", &whole);
    assert_eq!(site.update(&["--force"]).0, 0);
}

#[test]
fn the_md5_that_a_server_publishes_saves_the_download_and_is_verified() {
    let mirror = Mirror::start(None);
    let url = format!("http://{}/set.tar.gz?key=1", mirror.address);
    let site = rules_site(&[&url]);
    let body = archive(&[("a.rules", &intrusion_rule(1, 1, "/one"))]);
    mirror.put("set.tar.gz?key=1", &body);
    mirror.put("set.tar.gz.md5?key=1", format!("{}\n", "0".repeat(32)));
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("and the server says 00000000"), "{text}");
    let md5 = text.split("its MD5 is ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    mirror.put("set.tar.gz.md5?key=1", format!("{md5}  set.tar.gz\n"));
    assert_eq!(site.update(&["--force"]).0, 0);
    mirror.requests();
    assert_eq!(site.update(&[]).1, "rules: up to date\n");
    let requests = mirror.requests();
    assert!(requests.len() == 1 && requests[0].starts_with("GET /set.tar.gz.md5?key=1 "), "{requests:?}");
}

#[test]
fn rules_of_several_sources_are_one_set() {
    let own = tempfile::tempdir().unwrap();
    let file = own.path().join("own.rules");
    std::fs::write(&file, intrusion_rule(1, 1, "/own")).unwrap();
    let folder = own.path().join("more");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("more.rules"), intrusion_rule(2, 1, "/more")).unwrap();
    std::fs::write(folder.join("README"), "x").unwrap();
    let sources = [file.to_str().unwrap(), folder.to_str().unwrap()];
    let site = rules_site(&sources);
    assert_eq!(site.update(&[]).0, 0);
    assert_eq!(site.rule_names(), ["more.rules", "own.rules"]);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(folder.join("more.rules"), intrusion_rule(2, 2, "/more")).unwrap();
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("own.rules: ") && text.contains("1 changed"), "{text}");
    assert_eq!(site.rule_names(), ["more.rules", "own.rules"], "a source that is not there keeps its files");
    std::fs::write(folder.join("own.rules"), intrusion_rule(3, 1, "/twice")).unwrap();
    let (code, text) = site.update(&[]);
    assert!(code == 2 && text.contains("another source has a file own.rules, too"), "{text}");
    for (wrong, reason) in [
        ("http://rules.example/a.tar.gz", "the transfer is unprotected"),
        ("https://rules.example/a.zip", "ends neither in .tar.gz nor in .rules"),
        ("ftp://rules.example/a.rules", "is not a URL"),
    ] {
        let (code, text) = rules_site(&[wrong]).update(&[]);
        assert!(code == 2 && text.contains(reason), "{wrong}: {text}");
    }
}
