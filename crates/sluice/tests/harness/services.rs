//! Services of ICAP: c-icap, from Debian, and one that answers as a test says.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use super::web::chunks;
use super::{free_port, wait_for};

/// c-icap with its service `echo`.
pub struct CIcap {
    pub address: SocketAddr,
    process: Child,
    _folder: TempDir,
}

impl CIcap {
    /// Starts it; none where it is not installed.
    pub fn start() -> Option<CIcap> {
        let modules = "/usr/lib/x86_64-linux-gnu/c_icap";
        if fs::metadata(modules).is_err() {
            println!("skipped: c-icap is not installed");
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let at = folder.path().display();
        let settings = format!(
            "PidFile {at}/pid\nCommandsSocket {at}/ctl\nPort 127.0.0.1:{port}\nTmpDir {at}\nServerLog {at}/log\nAccessLog {at}/access\n\
             ModulesDir {modules}\nServicesDir {modules}\nStartServers 1\nMaxServers 2\nThreadsPerChild 10\nMaxMemObject 131072\n\
             Service echo srv_echo.so\n"
        );
        let file = folder.path().join("c-icap.conf");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new("c-icap");
        command.arg("-N").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait_for(|| TcpStream::connect(address).ok(), "c-icap");
        Some(CIcap { address, process, _folder: folder })
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
