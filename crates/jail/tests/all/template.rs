//! The template and its copies: how they end, and what they share.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::task::Context as Polled;
use std::time::{Duration, Instant};

use crate::Test;
use crate::site::{
    content, inspect, inspects_again, jails, kill, mail, signal, site, site_by, site_of, templates, wait,
    wait_for_their_end,
};
use flow::{Context, Flow, Inspector, NOBODY, Progress, Unfinished};
use inspect::{RuleFile, RuleFiles};
use jail::{Children, Launch, Launched};

pub const TESTS: &[Test] = tests![
    jails_end_with_their_host,
    jails_end_with_their_template_and_are_replaced,
    what_went_with_its_template_is_not_banned,
    jails_share_what_their_template_has_read,
    content_of_slow_clients_takes_no_memory_after_it_is_inspected,
    a_template_that_is_stopped_keeps_nobody_waiting,
    a_template_that_cannot_copy_itself_lives_on,
    a_template_that_does_not_begin_is_ended_once,
    who_drops_jails_does_not_end_their_template,
];

fn jails_end_with_their_host() {
    wait_for_their_end();
    let site = site(2);
    assert_eq!((templates().len(), jails().len()), (1, 2));
    let mut inspecting = site.jails.open(mail());
    inspecting.feed(b"\r\nbody");
    drop(site);
    // What is under way comes to its end first.
    inspecting.finish();
    assert_eq!(wait(&mut *inspecting, &mut Vec::new()), Progress::Done);
    drop(inspecting);
    wait_for_their_end();
}

/// Open files of a process, where that may be looked at.
fn open_files(pid: i32) -> Option<Vec<(String, String)>> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let file = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().into_string().ok()?, target.into_os_string().into_string().ok()?))
    };
    Some(entries.filter_map(file).collect())
}

fn jails_end_with_their_template_and_are_replaced() {
    wait_for_their_end();
    let site = site(2);
    let before = jails();
    // One hears nothing, not even that its host is gone.
    signal(before[0], rustix::process::Signal::STOP);
    templates().into_iter().for_each(kill);
    let began = Instant::now();
    while before.iter().any(|pid| std::path::Path::new(&format!("/proc/{pid}/exe")).exists()) {
        assert!(began.elapsed() < Duration::from_secs(20), "a jail lives without its template");
        std::thread::sleep(Duration::from_millis(5));
    }
    inspects_again(&site);
    inspects_again(&site);
    assert_eq!((templates().len(), site.counts.lost.load(Relaxed)), (1, 2));
}

fn what_went_with_its_template_is_not_banned() {
    wait_for_their_end();
    let site = site(1);
    let content = content(2_000_000);
    for _ in 0..4 {
        let mut inspecting = site.jails.open(mail());
        let (mut outs, mut rest) = (Vec::new(), &content[..]);
        while !rest.is_empty() {
            rest = &rest[inspecting.feed(rest)..];
            let _ = inspecting.poll(&mut Polled::from_waker(NOBODY));
            std::thread::sleep(Duration::from_micros(500));
            templates().into_iter().for_each(kill);
            if let Progress::Lost(_) = wait(&mut *inspecting, &mut outs) {
                break;
            }
        }
        drop(inspecting);
        inspects_again(&site);
    }
    assert_eq!(inspect(&site.jails, &content).0, Progress::Done);
    assert_eq!(site.counts.banned.load(Relaxed), 0);
}

fn jails_share_what_their_template_has_read() {
    wait_for_their_end();
    let rules: String = (0..3_000)
        .map(|number| {
            format!("body LONG_{number} /\\b(?:offer|prize|winner) {number} (?:of|for|to) [a-z]{{3,9}}\\b/i\n")
        })
        .collect();
    let rules = RuleFile { name: "own.cf".into(), bytes: rules.into_bytes() };
    let files = RuleFiles { files: vec![rules], ..RuleFiles::default() };
    let file = File::from(rustix::fs::memfd_create("rules", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    std::io::Write::write_all(&mut &file, &flow::wire::write(&files, Vec::new())).unwrap();
    let site = site_of(2, 1 << 30, &Arc::default(), Some(file.into()));
    for _ in 0..4 {
        inspects_again(&site);
    }
    let [template] = templates()[..] else { panic!("one template: {:?}", templates()) };
    let (jails, of_template) = (jails(), open_files(template));
    let Some(of_template) = of_template.filter(|files| !files.is_empty()) else {
        println!("not looked at: a process that is not dumpable shows its memory to root alone");
        return;
    };
    let private = |pid: i32| {
        let map = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let of =
            |name: &str| map.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().nth(1).unwrap();
        (of("Private_Dirty:").parse::<u64>().unwrap(), of("Anonymous:").parse::<u64>().unwrap())
    };
    for pid in jails {
        let (own, all) = private(pid);
        assert!(all > 8_000 && own < all / 2, "{own} kB of {all} kB are the jail's own");
        // The way to the template's host is not the jail's.
        let sockets = open_files(pid).unwrap().into_iter().filter(|(_, file)| file.starts_with("socket:"));
        let others = of_template.iter().map(|(_, file)| file).collect::<Vec<_>>();
        for (number, socket) in sockets {
            assert!(!others.contains(&&socket), "{number} is the template's {socket}");
        }
    }
}

fn content_of_slow_clients_takes_no_memory_after_it_is_inspected() {
    const CLIENTS: usize = 80;
    const SENT_BYTES: usize = 150_000;
    wait_for_their_end();
    let site = site(1);
    let [jail] = jails()[..] else { panic!("one jail: {:?}", jails()) };
    let Ok(_) = File::open(format!("/proc/{jail}/smaps_rollup")) else {
        println!("not looked at: a process that is not dumpable shows its memory to root alone");
        return;
    };
    let kilobytes = || {
        let map = std::fs::read_to_string(format!("/proc/{jail}/smaps_rollup")).unwrap();
        let line = map.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
    };
    let content = content(2 * SENT_BYTES);
    let flow = Flow { protocol: flow::Protocol::Smtp, ..Flow::default() };
    let begin = |_| {
        let context = Context { flow: flow.clone(), ..mail() };
        let (mut inspecting, mut rest) = (site.jails.open(context), &content[..SENT_BYTES]);
        while !rest.is_empty() {
            rest = &rest[inspecting.feed(rest)..];
            assert_eq!(wait(&mut *inspecting, &mut Vec::new()), Progress::Hungry);
        }
        inspecting
    };
    let before = kilobytes();
    let clients: Vec<_> = (0..CLIENTS).map(begin).collect();
    let began = Instant::now();
    // Of each 300 kB wait to be hashed at first.
    while kilobytes().saturating_sub(before) > 90 * CLIENTS {
        assert!(began.elapsed() < Duration::from_secs(30), "{} kB after {before}", kilobytes());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(clients);
}

fn a_template_that_is_stopped_keeps_nobody_waiting() {
    wait_for_their_end();
    let site = site(2);
    let (before, old) = (jails(), templates());
    let mut inspecting = site.jails.open(mail());
    assert!(inspecting.feed(&content(10_000)) > 0);
    assert_eq!(wait(&mut *inspecting, &mut Vec::new()), Progress::Hungry);
    old.iter().for_each(|&pid| signal(pid, rustix::process::Signal::STOP));
    before.iter().for_each(|&pid| kill(pid));
    inspecting.finish();
    let began = Instant::now();
    assert_eq!(wait(&mut *inspecting, &mut Vec::new()), Progress::Lost(Unfinished::Gone));
    assert!(began.elapsed() < Duration::from_secs(5), "it waits until the template answers");
    drop(inspecting);
    inspects_again(&site);
    inspects_again(&site);
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert!(!templates().contains(&old[0]) && templates().len() == 1, "{old:?} {:?}", templates());
    drop(site);
    wait_for_their_end();
}

/// A user whom nobody else is, and how many processes it may have: a template, two jails, and one more.
const LONELY: u32 = 61_823;

const PROCESSES_MAX: u64 = 4;

fn a_template_that_cannot_copy_itself_lives_on() {
    use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};
    use std::os::unix::process::CommandExt as _;
    if !getuid().is_root() {
        return println!("not looked at: nobody but root may have processes of somebody else");
    }
    wait_for_their_end();
    let allowed = getrlimit(Resource::Nproc);
    setrlimit(Resource::Nproc, Rlimit { current: Some(PROCESSES_MAX), ..allowed }).unwrap();
    let site = site_by(Box::new(Children { user: Some(LONELY) }), 2, 1 << 30, &Arc::default(), None);
    setrlimit(Resource::Nproc, allowed).unwrap();
    let site = site.unwrap();
    let [template] = templates()[..] else { panic!("one template") };
    let [one, other] = jails()[..] else { panic!("two copies") };
    let sleep = || Command::new("sleep").arg("60").uid(LONELY).spawn().unwrap();
    let mut others = [sleep(), sleep()];
    kill(one);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(jails(), [other], "nobody else ends with it, and nobody comes");
    others.iter_mut().for_each(|other| {
        let _ = other.kill();
        let _ = other.wait();
    });
    inspects_again(&site);
    inspects_again(&site);
    assert_eq!((templates(), jails().len(), jails().contains(&other)), (vec![template], 2, true));
}

/// Starts what does not begin, and counts how often it was started and ended.
struct Dead(Arc<[AtomicUsize; 2]>);

impl Launch for Dead {
    fn launch(&self, _: OwnedFd) -> std::io::Result<Box<dyn Launched>> {
        self.0[0].fetch_add(1, Relaxed);
        Ok(Box::new(Dead(self.0.clone())))
    }
}

impl Launched for Dead {
    fn end(&mut self) -> String {
        self.0[1].fetch_add(1, Relaxed);
        "dead".into()
    }
}

fn a_template_that_does_not_begin_is_ended_once() {
    let counts = Arc::<[AtomicUsize; 2]>::default();
    let Err(error) = site_by(Box::new(Dead(counts.clone())), 1, 1 << 30, &Arc::default(), None) else {
        panic!("it began")
    };
    assert!(error.to_string().ends_with("(dead)"), "{error}");
    // Who asks again how it has ended waits for an answer that does not come.
    assert_eq!(counts.each_ref().map(|count| count.load(Relaxed)), [1, 1]);
}

/// Notes the thread in which a process is ended.
struct Noting<T>(T, mpsc::Sender<Option<String>>);

impl Launch for Noting<Children> {
    fn launch(&self, host: OwnedFd) -> std::io::Result<Box<dyn Launched>> {
        Ok(Box::new(Noting(self.0.launch(host)?, self.1.clone())))
    }
}

impl Launched for Noting<Box<dyn Launched>> {
    fn end(&mut self) -> String {
        let _ = self.1.send(std::thread::current().name().map(String::from));
        self.0.end()
    }
}

fn who_drops_jails_does_not_end_their_template() {
    wait_for_their_end();
    let (sender, ended) = mpsc::channel();
    for _ in 0..20 {
        let launch = Noting(Children { user: None }, sender.clone());
        drop(site_by(Box::new(launch), 2, 1 << 30, &Arc::default(), None).unwrap());
        let thread = ended.recv_timeout(Duration::from_secs(20)).expect("it ends").unwrap_or_default();
        assert!(thread.starts_with("warden-"), "{thread:?} may not be allowed to");
    }
    wait_for_their_end();
}
