//! Services of ICAP: c-icap, from Debian, and one that answers as a test says.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::web::chunks;
use super::{eicar, free_port, wait_for};

/// The modules of c-icap, below the folder where its packages are unpacked.
const MODULES: &str = "/usr/lib/x86_64-linux-gnu/c_icap";

/// c-icap with one of its services.
pub struct CIcap {
    pub address: SocketAddr,
    process: Child,
    _clamd: Option<Clamd>,
    _folder: TempDir,
}

impl CIcap {
    /// Starts it with `echo`; none where it is not installed.
    pub fn start() -> Option<CIcap> {
        if fs::metadata(MODULES).is_err() {
            println!("skipped: c-icap is not installed");
            return None;
        }
        Some(CIcap::with("", "Service echo srv_echo.so\n", tempfile::tempdir().unwrap(), None))
    }

    /// Starts it with `avscan` and a clamd that knows the line of EICAR; none where they are not installed. `SLUICE_VIRUS_SCAN` names a folder
    /// in which the package of the service is unpacked.
    pub fn with_clamd() -> Option<CIcap> {
        let root = std::env::var("SLUICE_VIRUS_SCAN").unwrap_or_default();
        let module = format!("{root}{MODULES}/virus_scan.so");
        for (file, package) in [(&*module, "libc-icap-mod-virus-scan"), ("/usr/sbin/clamd", "clamav-daemon")] {
            if fs::metadata(file).is_err() {
                println!("skipped: {package} is not installed");
                return None;
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let clamd = Clamd::start(folder.path());
        let service = format!(
            "TemplateDir {root}/usr/share/c_icap/templates/\nLoadMagicFile /etc/c-icap/c-icap.magic\nModule common clamd_mod.so\n\
             clamd_mod.ClamdSocket {}/clamd.sock\nService antivirus_module virus_scan.so\n\
             ServiceAlias avscan virus_scan?allow204=on&sizelimit=off&mode=simple\n\
             virus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE\nvirus_scan.MaxObjectSize 5M\nvirus_scan.DefaultEngine clamd\n",
            folder.path().display()
        );
        Some(CIcap::with(&root, &service, folder, Some(clamd)))
    }

    fn with(root: &str, service: &str, folder: TempDir, clamd: Option<Clamd>) -> CIcap {
        let port = free_port();
        let at = folder.path().display();
        let settings = format!(
            "PidFile {at}/pid\nCommandsSocket {at}/ctl\nPort 127.0.0.1:{port}\nTmpDir {at}\nServerLog {at}/log\nAccessLog {at}/access\n\
             ModulesDir {root}{MODULES}\nServicesDir {root}{MODULES}\nStartServers 1\nMaxServers 2\nThreadsPerChild 10\nMaxMemObject 131072\n\
             {service}"
        );
        let file = folder.path().join("c-icap.conf");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new("c-icap");
        command.arg("-N").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait_for(|| TcpStream::connect(address).ok(), "c-icap");
        CIcap { address, process, _clamd: clamd, _folder: folder }
    }
}

/// A clamd whose only signature is the line of EICAR.
struct Clamd(Child);

impl Clamd {
    fn start(folder: &Path) -> Clamd {
        let (at, database) = (folder.display(), folder.join("database"));
        let line: String = eicar().iter().map(|byte| format!("{byte:02x}")).collect();
        fs::create_dir(&database).unwrap();
        fs::write(database.join("test.ndb"), format!("Test.Eicar:0:*:{line}\n")).unwrap();
        let user = fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
        let user = if user { "User root\n" } else { "" };
        let settings = format!("DatabaseDirectory {at}/database\nLocalSocket {at}/clamd.sock\nForeground yes\n{user}");
        let file = folder.join("clamd.conf");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new("/usr/sbin/clamd");
        let process = command.arg("--config-file").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let clamd = Clamd(process.unwrap());
        wait_for(|| UnixStream::connect(folder.join("clamd.sock")).ok(), "clamd");
        clamd
    }
}

impl Drop for Clamd {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Drop for CIcap {
    fn drop(&mut self) {
        // Its children end with it, unless it is killed at once.
        _ = Command::new("kill").arg(self.process.id().to_string()).status();
        _ = self.process.wait();
    }
}

/// A question: its heads, and as much of the body as has come.
pub struct Question {
    pub text: String,
    pub body: Vec<u8>,
    /// The preview was the whole body, or there was none.
    pub is_whole: bool,
}

/// A service that answers as a test says.
pub struct Scripted {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// Answers OPTIONS with these fields, and each question, and again what follows its preview, by `answer`; nothing: it closes.
    pub fn start(options: &str, answer: impl Fn(&Question) -> Vec<u8> + Send + Sync + 'static) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (memory, answer) = (asked.clone(), Arc::new(answer));
        let offer = format!("ICAP/1.0 200 OK\r\nISTag: \"s\"\r\nMethods: REQMOD, RESPMOD\r\n{options}\r\n");
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (memory, answer, offer) = (memory.clone(), answer.clone(), offer.clone());
                thread::spawn(move || _ = serve(&mut stream.unwrap(), &memory, &offer, &*answer));
            }
        });
        Scripted { address, asked }
    }

    /// The heads of the questions so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A service that says what it offers, and answers each question by a field of its head without an end, byte by byte.
pub struct Dripping {
    pub address: SocketAddr,
}

impl Dripping {
    pub fn start() -> Dripping {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || _ = drip(&mut stream.unwrap()));
            }
        });
        Dripping { address }
    }
}

fn drip(stream: &mut TcpStream) -> Option<()> {
    let mut said = Vec::new();
    read_until(stream, &mut said, |said| said.windows(4).position(|four| four == b"\r\n\r\n"))?;
    stream.write_all(b"ICAP/1.0 200 OK\r\nISTag: \"s\"\r\nMethods: RESPMOD\r\nPreview: 4\r\n\r\n").ok()?;
    said.clear();
    read_until(stream, &mut said, |said| (!said.is_empty()).then_some(()))?;
    stream.write_all(b"ICAP/1.0 200 OK\r\nX-Slow: ").ok()?;
    loop {
        thread::sleep(Duration::from_millis(50));
        stream.write_all(b"x").ok()?;
    }
}

fn serve(
    stream: &mut TcpStream,
    memory: &Mutex<Vec<String>>,
    offer: &str,
    answer: &dyn Fn(&Question) -> Vec<u8>,
) -> Option<()> {
    let mut said = Vec::new();
    loop {
        let end = read_until(stream, &mut said, |said| said.windows(4).position(|four| four == b"\r\n\r\n"))? + 4;
        let head = String::from_utf8_lossy(&said[..end]).into_owned();
        if head.starts_with("OPTIONS") {
            said.drain(..end);
            stream.write_all(offer.as_bytes()).ok()?;
            continue;
        }
        let last = head.rsplit_once("-body=").unwrap().1;
        let heads = end + last.split("\r\n").next().unwrap().parse::<usize>().unwrap();
        read_until(stream, &mut said, |said| (said.len() >= heads).then_some(0))?;
        let text = String::from_utf8_lossy(&said[..heads]).into_owned();
        memory.lock().unwrap().push(text.clone());
        said.drain(..heads);
        let mut question = Question { is_whole: head.contains("null-body="), body: Vec::new(), text };
        loop {
            if !question.is_whole {
                let (body, used) = read_until(stream, &mut said, chunks)?;
                let was_preview = head.contains("Preview: ") && question.body.is_empty();
                question.is_whole = !was_preview || String::from_utf8_lossy(&said[..used]).contains("ieof");
                question.body.extend(body);
                said.drain(..used);
            }
            let told = answer(&question);
            if told.is_empty() {
                return None;
            }
            stream.write_all(&told).ok()?;
            if !told.starts_with(b"ICAP/1.0 100") {
                break;
            }
        }
    }
}

fn read_until<T>(stream: &mut TcpStream, said: &mut Vec<u8>, found: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    loop {
        if let Some(found) = found(said) {
            return Some(found);
        }
        let mut piece = [0; 16 << 10];
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        said.extend_from_slice(&piece[..count]);
    }
}

/// An answer of ICAP with this head of HTTP and this body.
pub fn answer(kind: &str, head: &str, body: &str) -> Vec<u8> {
    format!(
        "ICAP/1.0 200 OK\r\nISTag: \"s\"\r\nX-Infection-Found: Type=0; Threat=Test;\r\n\
         Encapsulated: {kind}-hdr=0, {kind}-body={}\r\n\r\n{head}{:x}\r\n{body}\r\n0\r\n\r\n",
        head.len(),
        body.len()
    )
    .into_bytes()
}
