//! The clamd door beside a real clamd with the same signatures, and under clamd's own clients. Each test that lacks its
//! peer says so.

use std::fs::Permissions;
use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::harness::exim::Exim;
use crate::harness::{Behaviour, Gateway, PATIENCE, Sink, Wire, base64, eicar, free_port, mail_with, wait_for};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

const BAD: &[u8] = b"x clamd-test-marker y";

/// Whether a program is there.
fn has(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// Signatures and files that both sides are given.
struct Material {
    folder: tempfile::TempDir,
}

impl Material {
    fn new() -> Material {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for name in ["database", "files", "files/sub", "files/empty", "files/closed"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        let hex: String = b"clamd-test-marker".iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(at.join("database/test.ndb"), format!("Test.Marker:0:*:{hex}\n")).unwrap();
        std::fs::write(at.join("database/test.hdb"), "44d88612fea8a8f36de82e1278abb02f:68:Test.Eicar\n").unwrap();
        let files: [(&str, &[u8]); 6] = [
            ("bad", BAD),
            ("clean", b"clean"),
            ("zero", b""),
            ("sub/bad", BAD),
            ("sub/clean", b"-"),
            ("eicar", &eicar()),
        ];
        for (name, content) in files {
            std::fs::write(at.join("files").join(name), content).unwrap();
        }
        Material { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn gateway(&self) -> Gateway {
        Gateway::with(&format!(
            "threads = 2\n[database]\npaths = [\"{}\"]\nbuiltin = false\n[clamd]\n\
             addresses = [\"127.0.0.1:0\", \"unix:FOLDER/clamd.sock\"]\npaths = [\"{}\"]\nstream_bytes_max = 1048576\n\
             command_seconds_max = 1\nread_seconds_max = 1\nshutdown = true\n",
            self.path("database").display(),
            self.folder.path().display(),
        ))
    }
}

/// A running clamd.
struct Clamd {
    child: Child,
    socket: PathBuf,
}

impl Clamd {
    fn start(material: &Material) -> Clamd {
        let at = material.folder.path().display().to_string();
        let socket = material.path("real.sock");
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
        let user = if is_root { "User root\n" } else { "" };
        let settings = format!(
            "DatabaseDirectory {at}/database\nLocalSocket {}\nForeground yes\nStreamMaxLength 1M\n{user}\
             CommandReadTimeout 1\nReadTimeout 1\nMaxThreads 4\nAllowAllMatchScan yes\n",
            socket.display()
        );
        std::fs::write(material.path("clamd.conf"), settings).unwrap();
        let child = Command::new("/usr/sbin/clamd")
            .arg("--config-file")
            .arg(material.path("clamd.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let clamd = Clamd { child, socket };
        wait_for(|| UnixStream::connect(&clamd.socket).ok(), "clamd");
        clamd
    }
}

impl Drop for Clamd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pieces to send, each with a file or none; and whether the sender then closes its side.
type Request = (Vec<(Vec<u8>, Option<PathBuf>)>, bool);

fn ask(socket: &Path, (pieces, ends): &Request) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for (bytes, file) in pieces {
        let sent = match file {
            None => stream.write_all(bytes).is_ok(),
            Some(file) => {
                let file = std::fs::File::open(file).unwrap();
                let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let descriptors = [file.as_fd()];
                assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
                sendmsg(&stream, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).is_ok()
            }
        };
        if !sent {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if *ends {
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        answer.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(answer).unwrap()
}

/// An answer without what may differ: versions, numbers of descriptors, and the order of lines.
fn comparable(answer: &str) -> Vec<String> {
    let mut lines: Vec<String> = answer
        .split_inclusive(['\n', '\0'])
        .map(|line| {
            let line = match (line.find("fd["), line.find(']')) {
                (Some(start), Some(end)) if start < end => format!("{}fd[n{}", &line[..start], &line[end..]),
                _ => line.to_string(),
            };
            match line.split_once("ClamAV ") {
                Some((before, version)) => {
                    let end = version.find(['|', '\n', '\0']).unwrap_or(version.len());
                    format!("{before}ClamAV{}", &version[end..])
                }
                None => line,
            }
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes(), content].concat()
}

/// Requests sent to both sides.
fn requests(material: &Material) -> Vec<Request> {
    let files = material.path("files").display().to_string();
    let whole = |bytes: Vec<u8>| (vec![(bytes, None)], false);
    let mut all: Vec<Request> = Vec::new();
    for command in [
        "PING",
        "PING\n",
        "PING\r\n",
        "nPING\n",
        "nPING\r\n",
        "zPING\0",
        "zPING\n\0",
        "ping\n",
        "VERSION\n",
        "nVERSION\n",
        "zVERSIONCOMMANDS\0",
        "VERSIONCOMMANDS\n",
        "STATS\n",
        "STREAM\n",
        "SESSION\n",
        "END\n",
        "nEND\n",
        "zEND\0",
        "nFOO\n",
        "zFOO bar\0",
        "\n",
        "n\n",
        "z\0",
        "PING\0",
        "VERSION\0",
        "nPING\0x\n",
        "nPING x\n",
        "nPINGX\n",
        "nSCAN\n",
        "SCAN\n",
        "SCAN",
        "IDSESSION\n",
        "INSTREAM\n",
        "nDETSTATS\n",
        "nDETSTATSCLEAR\n",
        "DETSTATS\n",
        "GET / HTTP/1.1\r\n",
        "nRELOAD\n",
        "RELOAD\n",
        "nSCAN \n",
        "nIDSESSION\nnPING\nnVERSION\nzPING\0nEND\n",
        "nIDSESSION\nnPING\nnFOO\nnPING\n",
        "nIDSESSION\nnRELOAD\n",
        "nIDSESSION\nnPING\nnSHUTDOWN\n",
        "nIDSESSION\nnIDSESSION\n",
        "nIDSESSION\nnDETSTATS\n",
        "nIDSESSION\nnCONTSCAN /\n",
        "nIDSESSION\nnMULTISCAN /\n",
        "nIDSESSION\nnALLMATCHSCAN /\n",
        "nIDSESSION\nnVERSIONCOMMANDS\nnEND\n",
        "nFILDES\n\0",
        "zFILDES\0\0",
        "nRAWSCAN /\n",
    ] {
        all.push(whole(command.into()));
    }
    for verb in ["SCAN", "CONTSCAN", "MULTISCAN"] {
        for name in [
            "/bad",
            "/clean",
            "/zero",
            "/eicar",
            "/nowhere",
            "/bad/nowhere",
            "/sub",
            "/sub/",
            "/empty",
            "//bad",
            "/sub/../bad",
            "/bad ",
        ] {
            all.push(whole(format!("n{verb} {files}{name}\n").into()));
            all.push(whole(format!("z{verb} {files}{name}\0").into()));
        }
        all.push(whole(format!("{verb} {files}/bad\n").into()));
        all.push(whole(format!("{verb} {files}/clean").into()));
    }
    // Not the folder itself: SCAN ends at the first of its infected files, and for clamd that is the one of the lowest inode.
    for name in ["/bad", "/clean", "/sub", "/nowhere", "/empty"] {
        all.push(whole(format!("nIDSESSION\nnSCAN {files}{name}\nnEND\n").into()));
    }
    all.push(whole(format!("nCONTSCAN {files}\n").into()));
    all.push(whole(format!("zMULTISCAN {files}\0").into()));
    all.push(whole(format!("zSCAN {files}/a\nb\0").into()));
    all.push(whole(format!("nSCAN {files}/{}\n", "a".repeat(1000)).into()));
    for content in [&b"clean"[..], BAD, &eicar()] {
        for prefix in [&b"zINSTREAM\0"[..], b"nINSTREAM\n"] {
            all.push(whole([prefix, &chunk(content), &[0; 4]].concat()));
            let (first, second) = content.split_at(3);
            all.push(whole([prefix, &chunk(first), &chunk(second), &[0; 4]].concat()));
        }
        let twice = [&b"zIDSESSION\0zINSTREAM\0"[..], &chunk(content), &[0; 4], b"zINSTREAM\0\0\0\0\0zPING\0zEND\0"];
        all.push(whole(twice.concat()));
        all.push((vec![([&b"zINSTREAM\0"[..], &chunk(content)].concat(), None)], true));
    }
    all.push(whole(b"zINSTREAM\0\0\0\0\0".to_vec()));
    all.push(whole(b"nINSTREAM\n\xff\xff\xff\xff".to_vec()));
    all.push(whole(b"zINSTREAM\0\0\x20\0\0abc".to_vec()));
    all.push(whole(b"zIDSESSION\0zPING\0zINSTREAM\0\xff\xff\xff\xff".to_vec()));
    all.push(whole([&b"zINSTREAM\0"[..], &chunk(&vec![b'a'; 1 << 20]), &[0; 4]].concat()));
    // What is broken off, and what never comes.
    for input in [&b"nPI"[..], b"zPING", b"zINSTREAM\0\0\0", b"zINSTREAM\0\0\0\0\x09abc", b"zIDSESSION\0zPING\0", b""] {
        all.push((vec![(input.to_vec(), None)], true));
        all.push(whole(input.to_vec()));
    }
    for name in ["bad", "clean", "zero", "sub"] {
        let file = Some(material.path("files").join(name));
        all.push((vec![(b"nFILDES\n".to_vec(), None), (b"\0".to_vec(), file.clone())], false));
        all.push((vec![(b"zFILDES\0\0".to_vec(), file.clone())], false));
        all.push((vec![(b"FILDES\n".to_vec(), None), (b"\0".to_vec(), file.clone())], false));
        let session = vec![
            (b"zIDSESSION\0zFILDES\0".to_vec(), None),
            (b"\0".to_vec(), file.clone()),
            (b"zFILDES\0".to_vec(), None),
            (b"\0".to_vec(), file),
            (b"zEND\0".to_vec(), None),
        ];
        all.push((session, false));
    }
    all
}

#[test]
fn a_real_clamd_says_the_same() {
    if !has("clamd") {
        return;
    }
    let material = Material::new();
    let clamd = Clamd::start(&material);
    let gateway = material.gateway();
    let ours = gateway.folder.path().join("clamd.sock");
    let requests = requests(&material);
    let mut different = Vec::new();
    // Side by side, since many of them wait for a time-out.
    std::thread::scope(|scope| {
        let (clamd, ours) = (&clamd, &ours);
        let threads: Vec<_> = requests
            .chunks(requests.len().div_ceil(4))
            .map(|requests| {
                let compare = move |request: &Request| {
                    let (theirs, own) = (ask(&clamd.socket, request), ask(ours, request));
                    (comparable(&theirs) != comparable(&own)).then(|| {
                        let sent: Vec<String> = request
                            .0
                            .iter()
                            .map(|(bytes, _)| bytes.escape_ascii().take(120).map(char::from).collect())
                            .collect();
                        format!("{sent:?}\n  clamd: {theirs:?}\n   ours: {own:?}")
                    })
                };
                scope.spawn(move || requests.iter().filter_map(compare).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().for_each(|thread| different.extend(thread.join().unwrap()));
    });
    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), requests.len(), different.join("\n"));
    eprintln!("{} requests, equal answers", requests.len());
}

#[test]
fn clamdscan_is_served_in_all_its_ways() {
    if !has("clamdscan") {
        return;
    }
    let material = Material::new();
    let gateway = material.gateway();
    let port = gateway.address.port();
    let socket = gateway.folder.path().join("clamd.sock").display().to_string();
    for (name, settings) in [
        ("local.conf", format!("LocalSocket {socket}\n")),
        ("tcp.conf", format!("TCPSocket {port}\nTCPAddr 127.0.0.1\n")),
    ] {
        std::fs::write(material.path(name), settings).unwrap();
    }
    let files = material.path("files");
    let scan = |config: &str, options: &[&str], paths: &[PathBuf]| {
        let mut command = Command::new("clamdscan");
        command.arg("--no-summary").arg("-c").arg(material.path(config)).args(options).args(paths);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), text)
    };
    let ways: [(&str, &[&str]); 9] = [
        ("local.conf", &[]),
        ("local.conf", &["--multiscan"]),
        ("local.conf", &["--fdpass"]),
        ("local.conf", &["--fdpass", "--multiscan"]),
        ("local.conf", &["--stream"]),
        ("local.conf", &["--stream", "--multiscan"]),
        ("local.conf", &["--allmatch", "--stream"]),
        ("tcp.conf", &[]),
        ("tcp.conf", &["--stream", "--multiscan"]),
    ];
    for (config, options) in ways {
        let (status, text) = scan(config, options, std::slice::from_ref(&files));
        assert_eq!(status, 1, "{options:?}: {text}");
        for (name, found) in [("bad", "Test.Marker"), ("sub/bad", "Test.Marker"), ("eicar", "Test.Eicar")] {
            let line = format!("{}: {found}.UNOFFICIAL FOUND", files.join(name).display());
            assert_eq!(text.matches(&line).count(), 1, "{options:?}: {text}");
        }
        assert_eq!(text.matches("FOUND").count(), 3, "{options:?}: {text}");
        let (status, text) = scan(config, options, &[files.join("sub/clean"), files.join("clean")]);
        assert_eq!((status, text.matches(": OK").count()), (0, 2), "{options:?}: {text}");
        let (status, text) = scan(config, options, &[files.join("nowhere")]);
        assert_eq!(status, 2, "{options:?}: {text}");
    }
    let run = |options: &[&str]| {
        let mut command = Command::new("clamdscan");
        let output = command.arg("-c").arg(material.path("local.conf")).args(options).output().unwrap();
        assert!(output.status.success(), "{options:?} {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(run(&["--ping", "1"]).contains("PONG"));
    assert!(run(&["--version"]).starts_with("ClamAV 1.4"));
    run(&["--reload"]);
    gateway.wait_for_log("reloaded");
    let quarantine = material.path("quarantine");
    std::fs::create_dir(&quarantine).unwrap();
    let (status, text) =
        scan("local.conf", &["--fdpass", &format!("--move={}", quarantine.display())], &[files.join("bad")]);
    assert_eq!(status, 1, "{text}");
    assert!(quarantine.join("bad").exists() && !files.join("bad").exists());
}

#[test]
fn clamds_own_file_is_enough_for_both_sides() {
    if !has("clamdscan") {
        return;
    }
    let material = Material::new();
    let gateway = Gateway::with_file(
        "--clamd-conf",
        &format!(
            "# as clamd reads it\nDatabaseDirectory {}\nLocalSocket FOLDER/clamd.sock\nLocalSocketMode 600\nTCPSocket 0\n\
             TCPAddr 127.0.0.1\nMaxThreads 12\nScanPDF yes\nVirusEvent /bin/true\n",
            material.path("database").display()
        ),
    );
    let files = material.path("files");
    let conf = gateway.folder.path().join("sluice.toml");
    let output = Command::new("clamdscan").args(["--no-summary", "-c"]).arg(conf).arg(&files).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), text.matches(" FOUND").count()), (Some(1), 3), "{text}");
    let log = gateway.log();
    assert!(log.contains("VirusEvent: no commands are run") && !log.contains("MaxThreads"), "{log}");
}

#[test]
fn clamdtop_shows_the_queue() {
    if !has("clamdtop") || !has("script") {
        return;
    }
    let material = Material::new();
    let gateway = material.gateway();
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.write_all(b"zINSTREAM\0").unwrap();
    let socket = gateway.folder.path().join("clamd.sock").display().to_string();
    let screen = Command::new("timeout")
        .args(["4", "script", "-qec", &format!("TERM=xterm COLUMNS=120 LINES=40 clamdtop {socket}"), "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&screen.stdout).into_owned();
    for wanted in ["INSTREAM", "Sluice"] {
        assert!(text.contains(wanted), "no {wanted:?} in {text:?}");
    }
}

/// A running amavisd, which takes mails and hands them on.
struct Amavisd {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Amavisd {
    /// Starts one that asks at `socket` and forwards to `sink`.
    fn start(socket: &str, sink: &str) -> Amavisd {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let at = folder.path().display();
        for name in ["home", "home/work", "home/db"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert!(
            Command::new("chown")
                .args(["-R", "amavis:amavis"])
                .arg(folder.path().join("home"))
                .status()
                .unwrap()
                .success()
        );
        // Not in the folder of its own user, who could change it.
        let config = folder.path().join("amavisd.conf");
        let text = format!(
            "use strict; $max_servers = 1; $daemon_user = 'amavis'; $daemon_group = 'amavis';\n\
             $mydomain = 'hop.test'; $myhostname = 'scanner.hop.test'; $MYHOME = '{at}/home'; $TEMPBASE = '{at}/home/work';\n\
             $db_home = '{at}/home/db'; $pid_file = '{at}/home/pid'; $lock_file = '{at}/home/lock';\n\
             $DO_SYSLOG = 0; $LOGFILE = '{at}/home/log'; $enable_db = 0; $enable_dkim_verification = 0;\n\
             $inet_socket_bind = '127.0.0.1'; $inet_socket_port = {port}; @inet_acl = qw(127.0.0.0/8);\n\
             $forward_method = 'smtp:{sink}'; $notify_method = $forward_method; @local_domains_maps = (1);\n\
             @bypass_spam_checks_maps = (1); @bypass_banned_checks_maps = (1); @bypass_header_checks_maps = (1);\n\
             $final_virus_destiny = D_REJECT; $virus_quarantine_to = undef; $virus_admin = undef;\n\
             @decoders = (['mail', \\&do_mime_decode]); @av_scanners_backup = ();\n\
             @av_scanners = (['ClamAV', \\&ask_daemon, [\"CONTSCAN {{}}\\n\", '{socket}'],\n\
             qr/\\bOK$/m, qr/\\bFOUND$/m, qr/^.*?: (?!Infected Archive)(.*) FOUND$/m]);\n1;\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut amavisd = Command::new("/usr/sbin/amavisd");
        amavisd.arg("-c").arg(config).arg("foreground").stdout(Stdio::null()).stderr(Stdio::null());
        let amavisd = Amavisd { child: amavisd.spawn().unwrap(), port, folder };
        wait_for(|| TcpStream::connect(("127.0.0.1", port)).ok(), &format!("amavisd: {}", amavisd.log()));
        amavisd
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("home/log")).unwrap_or_default()
    }
}

impl Drop for Amavisd {
    fn drop(&mut self) {
        // It ends its children when it is asked to.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

#[test]
fn amavisd_has_its_folders_scanned() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !is_root || !has("amavisd") {
        return;
    }
    let material = Material::new();
    let (_gateway, socket) = door_for_others(&material);
    let sink = Sink::start(Behaviour::default());
    let amavisd = Amavisd::start(&socket, &sink.forward().replace("smtp://127.0.0.1", "[127.0.0.1]"));
    let deliver = |name: &str, body: &[u8]| {
        let mail = mail_with("base64", name, &base64(body));
        Wire::connect(([127, 0, 0, 1], amavisd.port).into()).deliver(&mail)
    };
    let reply = deliver("a", BAD);
    assert!(reply.starts_with("554 5.7.0 ") && reply.contains("Test.Marker.UNOFFICIAL"), "{reply} {}", amavisd.log());
    let reply = deliver("b", b"clean");
    assert!(reply.starts_with("250 2.0.0 "), "{reply} {}", amavisd.log());
    assert_eq!(sink.wait(1).len(), 1);
}

/// The door on TCP and on a socket that other users may use, which may scan everything.
fn door_for_others(material: &Material) -> (Gateway, String) {
    std::fs::set_permissions(material.folder.path(), Permissions::from_mode(0o755)).unwrap();
    let socket = material.path("clamd.sock").display().to_string();
    let gateway = Gateway::with(&format!(
        "[database]\npaths = [\"{}\"]\n[clamd]\naddresses = [\"127.0.0.1:0\", \"unix:{socket}\"]\n\
         socket_mode = \"666\"\npaths = [\"/\"]\n",
        material.path("database").display()
    ));
    (gateway, socket)
}

#[test]
fn exim_asks_it_by_tcp_and_by_path() {
    let material = Material::new();
    let (gateway, socket) = door_for_others(&material);
    let by_tcp = format!("127.0.0.1 {}", gateway.address.port());
    for scanner in [by_tcp.clone(), format!("{by_tcp}:local"), socket] {
        let port = free_port();
        let settings = format!(
            "av_scanner = clamd:{scanner}\nacl_smtp_data = content\nbegin acl\ncontent:\n  deny malware = *\n       \
             message = found $malware_name\n  accept"
        );
        let Some(exim) = Exim::start(&[port], &settings, "", "") else { return };
        let deliver = |name: &str, body: &[u8]| {
            let mail = mail_with("base64", name, &base64(body));
            Wire::connect(([127, 0, 0, 1], port).into()).deliver(&mail)
        };
        assert_eq!(deliver("a", BAD), "550 found Test.Marker.UNOFFICIAL", "{scanner}: {}", exim.log());
        let reply = deliver("b", b"clean");
        assert!(reply.starts_with("250 OK"), "{scanner}: {reply} {}", exim.log());
    }
}

#[test]
fn the_python_module_is_served() {
    let python = |code: &str| Command::new("python3").args(["-c", code]).output().unwrap();
    if !Command::new("python3")
        .args(["-c", "import clamd"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        return eprintln!("skipped: python3 has no module clamd, which Debian does not package");
    }
    let material = Material::new();
    let gateway = material.gateway();
    let code = format!(
        "import clamd, io\n\
         for c in (clamd.ClamdNetworkSocket('127.0.0.1', {port}), clamd.ClamdUnixSocket('{socket}')):\n\
         \x20   assert c.ping() == 'PONG'\n\
         \x20   assert c.version().startswith('ClamAV ')\n\
         \x20   assert c.instream(io.BytesIO(b'clean')) == {{'stream': ('OK', None)}}\n\
         \x20   assert c.instream(io.BytesIO(b'x clamd-test-marker y')) == {{'stream': ('FOUND', 'Test.Marker.UNOFFICIAL')}}\n\
         \x20   found = {{'{files}/sub/bad': ('FOUND', 'Test.Marker.UNOFFICIAL')}}\n\
         \x20   assert c.scan('{files}/sub') == found\n\
         \x20   assert c.contscan('{files}/sub') == found\n\
         \x20   assert c.multiscan('{files}/sub') == found\n\
         \x20   assert c.scan('{files}/clean') == {{'{files}/clean': ('OK', None)}}\n\
         \x20   assert 'QUEUE' in c.stats()\n\
         \x20   assert c.reload() == 'RELOADING'\n",
        port = gateway.address.port(),
        socket = gateway.folder.path().join("clamd.sock").display(),
        files = material.path("files").display(),
    );
    let output = python(&code);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A client from a registry: who runs it, how one asks whether it is there, and what it has to find.
struct Client {
    program: &'static str,
    there: [&'static str; 2],
    code: &'static str,
}

const CLIENTS: [Client; 3] = [
    Client {
        program: "/usr/bin/python3",
        there: ["-c", "import pyclamd"],
        code: "import pyclamd\n\
               for c in (pyclamd.ClamdNetworkSocket('127.0.0.1', PORT), pyclamd.ClamdUnixSocket('SOCKET')):\n\
               \x20   assert c.ping() and c.version().startswith('ClamAV ') and 'QUEUE' in c.stats()\n\
               \x20   found = ('FOUND', 'Test.Marker.UNOFFICIAL')\n\
               \x20   assert c.scan_stream(b'x clamd-test-marker y') == {'stream': found}\n\
               \x20   assert c.scan_stream(b'clean') is None and c.scan_file('FILES/clean') is None\n\
               \x20   for scan in (c.scan_file, c.contscan_file, c.multiscan_file):\n\
               \x20       assert scan('FILES/sub') == {'FILES/sub/bad': found}\n\
               \x20   assert c.allmatchscan('FILES/sub') == {'FILES/sub/bad': [found]}\n\
               \x20   assert c.reload() == 'RELOADING'\n",
    },
    Client {
        program: "perl",
        there: ["-MClamAV::Client", "-e1"],
        code: "use ClamAV::Client;\n\
               for my $c (ClamAV::Client->new(socket_name => 'SOCKET'),\n\
               \x20   ClamAV::Client->new(socket_host => '127.0.0.1', socket_port => PORT)) {\n\
               \x20   $c->ping and $c->version =~ /^ClamAV / or die 'ping';\n\
               \x20   my ($path, $found) = $c->scan_path('FILES/sub');\n\
               \x20   \"$path $found\" eq 'FILES/sub/bad Test.Marker.UNOFFICIAL' or die \"$path $found\";\n\
               \x20   my ($none, $clean) = $c->scan_path('FILES/clean');\n\
               \x20   defined $clean and die $clean;\n\
               }\n",
    },
    Client {
        program: "node",
        there: ["-e", "require('clamdjs')"],
        code: "const clamd = require('clamdjs'), scanner = clamd.createScanner('127.0.0.1', PORT);\n\
               const is = (what, wanted) => { if (what !== wanted) throw new Error(JSON.stringify(what)) };\n\
               (async () => {\n\
               \x20   is(await clamd.ping('127.0.0.1', PORT, 9000), true);\n\
               \x20   const found = await scanner.scanBuffer(Buffer.from('x clamd-test-marker y'), 9000, 5);\n\
               \x20   is(found, 'stream: Test.Marker.UNOFFICIAL FOUND\\0');\n\
               \x20   is(await scanner.scanFile('FILES/clean', 9000, 1024), 'stream: OK\\0');\n\
               })().catch(error => { console.error(error); process.exit(1) });\n",
    },
];

#[test]
fn clients_from_registries_are_served() {
    let material = Material::new();
    let gateway = material.gateway();
    let run = |client: &Client, arguments: [&str; 2]| {
        let mut command = Command::new(client.program);
        command.args(arguments).stdin(Stdio::null()).output()
    };
    for client in &CLIENTS {
        let [option, module] = client.there;
        if !run(client, client.there).is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {} {option} {module}", client.program);
            continue;
        }
        let code = client
            .code
            .replace("PORT", &gateway.address.port().to_string())
            .replace("SOCKET", &gateway.folder.path().join("clamd.sock").display().to_string())
            .replace("FILES", &material.path("files").display().to_string());
        let option = if client.program.ends_with("python3") { "-c" } else { "-e" };
        let output = run(client, [option, &code]).unwrap();
        assert!(output.status.success(), "{}: {}", client.program, String::from_utf8_lossy(&output.stderr));
    }
}
