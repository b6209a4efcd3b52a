//! Jails for a test, inspections through them, and their processes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context as Polled, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use flow::{Context, Inspecting, Inspector, Out, Progress, Wants};
use jail::{Bells, Children, Confined, Counts, Jails, Launch, Settings, Signatures, Suspects};
use scan::{Builder, Database};
use stream::{Limits, Object};

pub const EICAR: &str = r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*";

pub fn limits() -> Limits {
    Limits::default()
}

/// Signatures that ship with the program, and one for which all content is hashed.
pub fn database() -> Database {
    let mut builder = Builder::new();
    builder.add_builtin();
    builder.add("large.hdb", format!("{:032x}:1000000:Large\n", 1).as_bytes()).unwrap();
    builder.build()
}

pub struct Site {
    pub jails: Jails,
    pub counts: Arc<Counts>,
    pub confined: Confined,
}

pub fn site(count: usize) -> Site {
    site_with(count, 1 << 30, &Arc::default())
}

pub fn site_with(count: usize, memory_bytes: usize, bells: &Arc<Bells>) -> Site {
    site_of(count, memory_bytes, bells, None)
}

pub fn site_of(count: usize, memory_bytes: usize, bells: &Arc<Bells>, rules: Option<OwnedFd>) -> Site {
    site_by(Box::new(Children { user: None }), count, memory_bytes, bells, rules).unwrap()
}

pub fn site_by(
    launch: Box<dyn Launch>,
    count: usize,
    memory_bytes: usize,
    bells: &Arc<Bells>,
    rules: Option<OwnedFd>,
) -> std::io::Result<Site> {
    let file = File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    database().store("", &mut &file).unwrap();
    let signatures =
        Signatures { base: file.into(), overlay: None, takes_back: false, now: 0, rules, pages: None, intrusion: None };
    let settings = Settings { count, limits: limits(), memory_bytes, launch, bells: bells.clone() };
    let counts = Arc::new(Counts::default());
    let (jails, confined) = Jails::start(settings, signatures, counts.clone(), Arc::new(Suspects::default()))?;
    Ok(Site { jails, counts, confined })
}

pub fn mail() -> Context {
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    let wants = Wants { parts: true, objects: true, fields: vec!["subject".into()].into(), ..Wants::default() };
    Context { object, wants, ..Context::default() }
}

/// Wakes a thread.
pub struct Unpark(pub std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Polls until it no longer waits.
pub fn wait(inspecting: &mut dyn Inspecting, outs: &mut Vec<Out>) -> Progress {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let began = Instant::now();
    loop {
        let progress = inspecting.poll(&mut Polled::from_waker(&waker));
        outs.extend(std::iter::from_fn(|| inspecting.hear()));
        match progress {
            Poll::Ready(Progress::Tired) => {}
            Poll::Ready(progress) => return progress,
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(10)),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it waits for ever");
    }
}

pub fn inspect(inspector: &dyn Inspector, content: &[u8]) -> (Progress, Vec<Out>) {
    let mut inspecting = inspector.open(mail());
    let mut outs = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        rest = &rest[inspecting.feed(rest)..];
        if let Progress::Lost(why) = wait(&mut *inspecting, &mut outs) {
            return (Progress::Lost(why), outs);
        }
    }
    inspecting.finish();
    (wait(&mut *inspecting, &mut outs), outs)
}

pub fn content(size: usize) -> Vec<u8> {
    let mail = format!(
        "Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\n\
         Content-Type: application/octet-stream; name=a.com\r\n\r\n{EICAR}\r\n--b\r\n\r\n"
    );
    let mut content = mail.into_bytes();
    content.extend((content.len()..size.max(content.len())).map(|at| b'a' + (at % 17) as u8));
    content.extend_from_slice(b"\r\n--b--\r\n");
    content
}

/// The processes that this one has started: templates.
pub fn templates() -> Vec<i32> {
    children_of(std::process::id().cast_signed())
}

/// The copies of those: jails.
pub fn jails() -> Vec<i32> {
    templates().into_iter().flat_map(children_of).collect()
}

pub fn children_of(parent: i32) -> Vec<i32> {
    let own = parent.to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split(' ').skip(1);
        fields.next() != Some("Z") && fields.next() == Some(&own)
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

pub fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

pub fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

pub fn inspects_again(site: &Site) {
    let began = Instant::now();
    while inspect(&site.jails, b"\r\nbody").0 != Progress::Done {
        assert!(began.elapsed() < Duration::from_secs(30), "no jail comes back");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until no jail is left, of tests before this one either.
pub fn wait_for_their_end() {
    let began = Instant::now();
    while !templates().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "jails are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}
