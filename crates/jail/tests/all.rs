//! Jails from outside: what they report, what becomes of inspections when one dies, and what a hostile one can reach.
//!
//! A program without the usual harness, since it is its own jail: it is started again with `jail` as its argument.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::catch_unwind;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::{Context as Polled, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use flow::{Action, Answer, Ask, Authenticating, Flow, Outcome, Record, RecordKind, Security, Verdict};
use flow::{Context, Inspecting, Inspector, NOBODY, Out, Progress, Unfinished, Wants};
use inspect::{Engine, RuleFile, RuleFiles};
use jail::{
    Bells, Children, Confined, Counting, Counts, Jails, Launch, Launched, Local, Settings, Signatures, Suspects,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use scan::{Builder, Database};
use stream::{Limits, Object};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TESTS: &[(&str, fn())] = &[
    ("a_jail_reports_what_is_reported_here", a_jail_reports_what_is_reported_here),
    ("a_jail_asks_and_is_answered_as_an_inspection_here", a_jail_asks_and_is_answered_as_an_inspection_here),
    ("many_inspections_share_a_jail", many_inspections_share_a_jail),
    ("one_that_nobody_wants_any_more_leaves_nothing", one_that_nobody_wants_any_more_leaves_nothing),
    ("one_that_nobody_waits_for_goes_on_in_its_own_time", one_that_nobody_waits_for_goes_on_in_its_own_time),
    (
        "a_jail_sleeps_until_there_is_enough_to_do_for_somebody_who_does_not_wait",
        a_jail_sleeps_until_there_is_enough_to_do_for_somebody_who_does_not_wait,
    ),
    ("one_jail_may_have_what_another_does_not_use", one_jail_may_have_what_another_does_not_use),
    (
        "a_jail_that_is_killed_costs_what_it_had_and_is_replaced",
        a_jail_that_is_killed_costs_what_it_had_and_is_replaced,
    ),
    ("a_jail_that_takes_the_place_of_another_has_its_policy", a_jail_that_takes_the_place_of_another_has_its_policy),
    (
        "a_jail_that_is_stopped_while_it_has_nothing_to_do_is_replaced",
        a_jail_that_is_stopped_while_it_has_nothing_to_do_is_replaced,
    ),
    ("a_jail_rings_the_bell_of_who_waits", a_jail_rings_the_bell_of_who_waits),
    ("who_listens_to_a_bell_hears_that_the_jail_is_gone", who_listens_to_a_bell_hears_that_the_jail_is_gone),
    ("a_thousand_deaths_leave_no_inspection_waiting", a_thousand_deaths_leave_no_inspection_waiting),
    ("what_two_died_of_is_not_given_to_a_third", what_two_died_of_is_not_given_to_a_third),
    (
        "a_jail_and_its_template_have_no_capability_and_few_calls",
        a_jail_and_its_template_have_no_capability_and_few_calls,
    ),
    ("a_hostile_jail_reaches_nothing", a_hostile_jail_reaches_nothing),
    ("jails_end_with_their_host", jails_end_with_their_host),
    ("jails_end_with_their_template_and_are_replaced", jails_end_with_their_template_and_are_replaced),
    ("what_went_with_its_template_is_not_banned", what_went_with_its_template_is_not_banned),
    ("jails_share_what_their_template_has_read", jails_share_what_their_template_has_read),
    (
        "content_of_slow_clients_takes_no_memory_after_it_is_inspected",
        content_of_slow_clients_takes_no_memory_after_it_is_inspected,
    ),
    ("a_template_that_is_stopped_keeps_nobody_waiting", a_template_that_is_stopped_keeps_nobody_waiting),
    ("a_template_that_cannot_copy_itself_lives_on", a_template_that_cannot_copy_itself_lives_on),
    ("a_template_that_does_not_begin_is_ended_once", a_template_that_does_not_begin_is_ended_once),
    ("who_drops_jails_does_not_end_their_template", who_drops_jails_does_not_end_their_template),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    match first.as_deref() {
        Some("jail") => return jail::run(),
        Some("hostile") => return hostile(),
        Some("--list") => {
            TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let filter = first.filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&filter)) {
        let passed = catch_unwind(test).is_ok();
        failed += u32::from(!passed);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    println!("\ntest result: {}. {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    ExitCode::from(u8::from(failed > 0))
}

const EICAR: &str = r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*";

fn limits() -> Limits {
    Limits::default()
}

/// Signatures that ship with the program, and one for which all content is hashed.
fn database() -> Database {
    let mut builder = Builder::new();
    builder.add_builtin();
    builder.add("large.hdb", format!("{:032x}:1000000:Large\n", 1).as_bytes()).unwrap();
    builder.build()
}

struct Site {
    jails: Jails,
    counts: Arc<Counts>,
    confined: Confined,
}

fn site(count: usize) -> Site {
    site_with(count, 1 << 30, &Arc::default())
}

fn site_with(count: usize, memory_bytes: usize, bells: &Arc<Bells>) -> Site {
    site_of(count, memory_bytes, bells, None)
}

fn site_of(count: usize, memory_bytes: usize, bells: &Arc<Bells>, rules: Option<OwnedFd>) -> Site {
    site_by(Box::new(Children { user: None }), count, memory_bytes, bells, rules).unwrap()
}

fn site_by(
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

fn mail() -> Context {
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    let wants = Wants { parts: true, objects: true, fields: vec!["subject".into()].into(), ..Wants::default() };
    Context { object, wants, ..Context::default() }
}

/// Wakes a thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Wakes whoever waits for an eventfd.
struct Tell(Arc<OwnedFd>);

impl Wake for Tell {
    fn wake(self: Arc<Tell>) {
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// Polls until it no longer waits.
fn wait(inspecting: &mut dyn Inspecting, outs: &mut Vec<Out>) -> Progress {
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

fn inspect(inspector: &dyn Inspector, content: &[u8]) -> (Progress, Vec<Out>) {
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

/// Reports, without times and without the moments at which content was cleared.
fn essence(outs: Vec<Out>) -> Vec<Out> {
    let essence = outs.into_iter().filter_map(|out| match out {
        Out::Cleared(_) => None,
        Out::Object(mut object) => {
            object.stages.clear();
            Some(Out::Object(object))
        }
        out => Some(out),
    });
    essence.collect()
}

fn content(size: usize) -> Vec<u8> {
    let mail = format!(
        "Subject: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\n\
         Content-Type: application/octet-stream; name=a.com\r\n\r\n{EICAR}\r\n--b\r\n\r\n"
    );
    let mut content = mail.into_bytes();
    content.extend((content.len()..size.max(content.len())).map(|at| b'a' + (at % 17) as u8));
    content.extend_from_slice(b"\r\n--b--\r\n");
    content
}

fn a_jail_reports_what_is_reported_here() {
    let site = site(1);
    let engine = Engine { database: Arc::new(database()), limits: limits() };
    let local = Local::new(Arc::new(engine), None);
    for size in [0, 5_000, 200_000, 3_000_000] {
        let content = content(size);
        let (progress, outs) = inspect(&site.jails, &content);
        assert_eq!(progress, Progress::Done);
        let (_, here) = inspect(&local, &content);
        assert_eq!(essence(outs), essence(here), "{size} bytes");
    }
    assert!(site.confined.seccomp, "{}", site.confined);
}

/// Questions while a mail is authenticated, and the verdict. The answers come in another order than the questions: each
/// text is a policy that forbids all senders, in a long company; nothing else exists.
fn authenticate(inspector: &dyn Inspector, content: &[u8]) -> (Vec<Ask>, Verdict) {
    let flow = Flow { hello: "client.example".into(), sender: "a@sender.example".into(), ..Flow::default() };
    let authenticating = Authenticating {
        authserv_id: "mx.test".into(),
        client: Some([192, 0, 2, 1].into()),
        on_spf_fail: Action::Quarantine,
        ..Authenticating::default()
    };
    let context = Context { flow, authenticating: Some(authenticating), ..mail() };
    let mut inspecting = inspector.open(context);
    let (mut asks, mut outs) = (Vec::new(), Vec::new());
    let mut rest = content;
    while !rest.is_empty() {
        rest = &rest[inspecting.feed(rest)..];
        assert_eq!(wait(&mut *inspecting, &mut outs), Progress::Hungry);
    }
    inspecting.finish();
    while wait(&mut *inspecting, &mut outs) == Progress::Waiting {
        let asked = outs.iter().filter_map(|out| if let Out::Ask(ask) = out { Some(ask.clone()) } else { None });
        let new: Vec<Ask> = asked.skip(asks.len()).collect();
        assert!(!new.is_empty(), "it waits for what it has not asked");
        for Ask { id, question, .. } in new.iter().rev() {
            let texts = || [&b"v=spf1 -all"[..], &[b'x'; 15_000]].map(|text| Record::Txt(text.into())).into();
            let outcome = if question.kind == RecordKind::Txt { Outcome::Records(texts()) } else { Outcome::NoName };
            inspecting.answer(Answer { id: *id, outcome, security: Security::Unknown });
        }
        // Nobody has asked this.
        inspecting.answer(Answer { id: 77_777, outcome: Outcome::NoName, security: Security::Unknown });
        asks.extend(new);
    }
    let Some(Out::Verdict(verdict)) = outs.pop() else { panic!("no verdict") };
    (asks, verdict)
}

fn a_jail_asks_and_is_answered_as_an_inspection_here() {
    let site = site(1);
    let engine = Engine { database: Arc::new(database()), limits: limits() };
    let local = Local::new(Arc::new(engine), None);
    let mail = b"From: a@author.example\r\nDKIM-Signature: v=1; a=rsa-sha256; d=author.example; s=s; h=from; bh=AA==; b=AA==\r\n\r\nx\r\n";
    for size in [0, 500_000] {
        let content = [&mail[..], &vec![b'y'; size]].concat();
        let (asked, verdict) = authenticate(&site.jails, &content);
        let found = verdict.authenticity.as_ref().expect("it was asked for");
        assert_eq!((&*found.spf, &*found.reason), ("fail", "SPF policy of sender.example"), "{found:?}");
        assert_eq!((verdict.action, found.questions as usize), (Action::Quarantine, asked.len()));
        let names: Vec<&str> = asked.iter().map(|ask| &*ask.question.name).collect();
        for name in ["sender.example", "client.example", "s._domainkey.author.example", "_dmarc.author.example"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        assert_eq!((asked, verdict), authenticate(&local, &content), "{size} bytes");
    }
}

fn many_inspections_share_a_jail() {
    let site = Arc::new(site(2));
    let content = Arc::new(content(300_000));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (site, content) = (site.clone(), content.clone());
            std::thread::spawn(move || {
                for _ in 0..5 {
                    let (progress, outs) = inspect(&site.jails, &content);
                    assert_eq!(progress, Progress::Done);
                    let Some(Out::Verdict(verdict)) = outs.last() else { panic!("no verdict") };
                    assert!(verdict.findings.iter().any(|spotted| spotted.finding.name.contains("Eicar")));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(site.counts.lost.load(Relaxed), 0);
}

fn one_that_nobody_waits_for_goes_on_in_its_own_time() {
    let site = site(1);
    let content = content(300_000);
    let mut inspecting = site.jails.open(mail());
    let mut outs = Vec::new();
    let mut rest = &content[..];
    while !rest.is_empty() {
        let piece = &rest[..rest.len().min(4_000)];
        let taken = inspecting.feed(piece);
        rest = &rest[taken..];
        if taken == piece.len() {
            let _ = inspecting.poll(&mut Polled::from_waker(NOBODY));
        } else {
            assert_eq!(wait(&mut *inspecting, &mut outs), Progress::Hungry, "more than may be on its way");
        }
    }
    inspecting.finish();
    assert_eq!(wait(&mut *inspecting, &mut outs), Progress::Done);
    let (_, waited) = inspect(&site.jails, &content);
    assert_eq!(essence(outs), essence(waited));
}

fn a_jail_sleeps_until_there_is_enough_to_do_for_somebody_who_does_not_wait() {
    let site = site(1);
    inspect(&site.jails, b"\r\n");
    let mut inspecting = site.jails.open(mail());
    let mut poll_after = |content: &[u8]| {
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(inspecting.feed(content), content.len());
        inspecting.poll(&mut Polled::from_waker(NOBODY))
    };
    assert!(poll_after(&[b'x'; 10_000]).is_pending());
    assert!(poll_after(b"").is_pending(), "it was woken for ten thousand bytes");
    assert!(poll_after(&[b'x'; 30_000]).is_pending());
    assert_eq!(poll_after(b""), Poll::Ready(Progress::Hungry), "it was not woken for forty thousand bytes");
}

fn one_jail_may_have_what_another_does_not_use() {
    // Each of two would have 3 MiB by itself, and one inspection may hold a quarter of all, which is as much.
    let (site, total) = (site_with(2, 6 << 20, &Arc::default()), 6 << 20);
    let free = || {
        // What is told of memory is as old as the last that was inspected.
        (0..2).for_each(|_| drop(inspect(&site.jails, b"\r\n")));
        std::thread::sleep(Duration::from_millis(50));
        site.jails.free_bytes()
    };
    assert_eq!(free(), total);
    let deep = content(200_000);
    let open: Vec<_> = (0..64)
        .map(|_| {
            let mut inspecting = site.jails.open(mail());
            let mut outs = Vec::new();
            let taken = inspecting.feed(&deep[..100_000]);
            (taken > 0).then(|| wait(&mut *inspecting, &mut outs));
            (site.jails.open(mail()), inspecting)
        })
        .collect();
    let least = site.jails.free_bytes();
    assert!(least < total, "they hold something");
    drop(open);
    assert_eq!(free(), total, "all of it came back; it was down to {least}");
}

fn one_that_nobody_wants_any_more_leaves_nothing() {
    let site = site(1);
    let free = || {
        inspect(&site.jails, b"\r\n");
        std::thread::sleep(Duration::from_millis(50));
        site.jails.free_bytes()
    };
    let before = free();
    for _ in 0..200 {
        let mut inspecting = site.jails.open(mail());
        inspecting.feed(&content(100_000));
    }
    assert_eq!(free(), before);
}

/// The processes that this one has started: templates.
fn templates() -> Vec<i32> {
    children_of(std::process::id().cast_signed())
}

/// The copies of those: jails.
fn jails() -> Vec<i32> {
    templates().into_iter().flat_map(children_of).collect()
}

fn children_of(parent: i32) -> Vec<i32> {
    let own = parent.to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split(' ').skip(1);
        fields.next() != Some("Z") && fields.next() == Some(&own)
    };
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

fn kill(pid: i32) {
    signal(pid, rustix::process::Signal::KILL);
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

fn inspects_again(site: &Site) {
    let began = Instant::now();
    while inspect(&site.jails, b"\r\nbody").0 != Progress::Done {
        assert!(began.elapsed() < Duration::from_secs(30), "no jail comes back");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn a_jail_that_is_killed_costs_what_it_had_and_is_replaced() {
    let site = site(1);
    let mut outs = Vec::new();
    let mut inspecting = site.jails.open(mail());
    assert!(inspecting.feed(&content(10_000)) > 0);
    assert_eq!(wait(&mut *inspecting, &mut outs), Progress::Hungry);
    jails().into_iter().for_each(kill);
    inspecting.finish();
    assert_eq!(wait(&mut *inspecting, &mut outs), Progress::Lost(Unfinished::Gone));
    assert!(!outs.iter().any(|out| matches!(out, Out::Verdict(_))));
    drop(inspecting);
    inspects_again(&site);
    assert_eq!(site.counts.lost.load(Relaxed), 1);
}

/// The scheduling policy of a process or thread, by its folder in /proc.
fn policy(folder: &std::path::Path) -> Option<u32> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    stat.rsplit(')').next()?.split(' ').nth(39)?.parse().ok()
}

fn a_jail_that_takes_the_place_of_another_has_its_policy() {
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let of_jails = || -> Vec<_> { jails().iter().map(|pid| policy(format!("/proc/{pid}").as_ref())).collect() };
    let site = site(1);
    let before = of_jails();
    let held: Vec<_> = (0..8).map(|_| site.jails.open(mail())).collect();
    let is_patient = || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        threads.into_iter().any(|thread| policy(&thread.path()) == Some(libc::SCHED_BATCH as u32))
    };
    until("the warden gives way", &is_patient);
    jails().into_iter().for_each(kill);
    until("another jail takes its place", &|| site.counts.started.load(Relaxed) == 2);
    assert_eq!(of_jails(), before);
    drop(held);
}

fn a_jail_rings_the_bell_of_who_waits() {
    let bells = Arc::new(Bells::new(2).unwrap());
    let site = site_with(1, 1 << 30, &bells);
    let [(_other, silent), (bell, end)] = [0, 1].map(|index| bells.bell(index).expect("nobody has it"));
    assert!(bells.bell(1).is_none(), "it is one loop's");
    bell.begin();
    // The warden looks now and then, and what it finds is not rung for.
    let told = Arc::new(rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap());
    let waker = Waker::from(Arc::new(Tell(told.clone())));
    let mut rung = 0;
    for round in 0..50 {
        let mut inspecting = site.jails.open(mail());
        assert!(inspecting.feed(&content(1_000)) > 0);
        inspecting.finish();
        let mut outs = Vec::new();
        while inspecting.poll(&mut Polled::from_waker(&waker)).is_pending() {
            let mut polled = [PollFd::new(&end, PollFlags::IN), PollFd::new(&*told, PollFlags::IN)];
            let most = Timespec { tv_sec: 10, tv_nsec: 0 };
            assert_ne!(rustix::event::poll(&mut polled, Some(&most)), Ok(0), "not woken in round {round}");
            let [is_rung, is_told] = [0, 1].map(|at| !polled[at].revents().is_empty());
            if is_rung {
                assert_eq!(rustix::io::read(&end, &mut [0; 8][..]), Ok(8));
                bell.hear();
                rung += 1;
            }
            if is_told {
                let _ = rustix::io::read(&*told, &mut [0; 8][..]);
            }
        }
        outs.extend(std::iter::from_fn(|| inspecting.hear()));
        assert!(matches!(outs.last(), Some(Out::Verdict(_))));
    }
    assert!(rung > 10, "rung for {rung} of 50");
    let mut polled = [PollFd::new(&silent, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut polled, Some(&at_once)), Ok(0), "nobody waits there");
}

fn who_listens_to_a_bell_hears_that_the_jail_is_gone() {
    let bells = Arc::new(Bells::new(1).unwrap());
    let site = site_with(1, 1 << 30, &bells);
    let (bell, _end) = bells.bell(0).expect("nobody has it");
    bell.begin();
    let mut inspecting = site.jails.open(mail());
    assert!(inspecting.feed(&content(10_000)) > 0);
    assert_eq!(wait(&mut *inspecting, &mut Vec::new()), Progress::Hungry, "the warden looks now and then");
    jails().into_iter().for_each(|pid| signal(pid, rustix::process::Signal::STOP));
    inspecting.finish();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    assert!(inspecting.poll(&mut Polled::from_waker(&waker)).is_pending());
    jails().into_iter().for_each(kill);
    let began = Instant::now();
    while inspecting.poll(&mut Polled::from_waker(&waker)).is_pending() {
        std::thread::park_timeout(Duration::from_secs(20));
        assert!(began.elapsed() < Duration::from_secs(10), "nobody woke it");
    }
    assert_eq!(wait(&mut *inspecting, &mut Vec::new()), Progress::Lost(Unfinished::Gone));
    drop(inspecting);
    inspects_again(&site);
}

fn a_jail_that_is_stopped_while_it_has_nothing_to_do_is_replaced() {
    let site = site(1);
    inspects_again(&site);
    jails().into_iter().for_each(|pid| signal(pid, rustix::process::Signal::STOP));
    assert_eq!(inspect(&site.jails, b"\r\nbody").0, Progress::Lost(Unfinished::Gone));
    inspects_again(&site);
    assert_eq!(site.counts.lost.load(Relaxed), 1);
}

fn a_thousand_deaths_leave_no_inspection_waiting() {
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let site = Arc::new(site(2));
    let content = Arc::new(content(400_000));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (site, content, stop) = (site.clone(), content.clone(), stop.clone());
            std::thread::spawn(move || {
                let (mut done, mut lost) = (0, 0);
                while !stop.load(Relaxed) {
                    // The first bytes differ, so that none is banned.
                    let mail = [format!("X: {done} {lost} {:?}\r\n", std::thread::current().id()).as_bytes(), &content]
                        .concat();
                    match inspect(&site.jails, &mail) {
                        (Progress::Done, outs) => {
                            assert!(matches!(outs.last(), Some(Out::Verdict(verdict)) if !verdict.findings.is_empty()));
                            done += 1;
                        }
                        (Progress::Lost(Unfinished::Gone), outs) => {
                            assert!(!outs.iter().any(|out| matches!(out, Out::Verdict(_))), "a verdict and lost");
                            lost += 1;
                        }
                        (progress, _) => panic!("{progress:?}"),
                    }
                }
                (done, lost)
            })
        })
        .collect();
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(20 + round * 7 % 40));
        if let Some(&pid) = jails().get(round as usize % 2) {
            kill(pid);
        }
    }
    stop.store(true, Relaxed);
    let counts: Vec<(u32, u32)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    println!("{rounds} kills: {counts:?} inspections done and lost");
    inspects_again(&site);
}

fn what_two_died_of_is_not_given_to_a_third() {
    let site = site(1);
    // No stage is known that dies of its input, so it is killed while it works on this.
    let deadly = content(2_000_000);
    for _ in 0..50 {
        if site.counts.banned.load(Relaxed) > 0 {
            break;
        }
        let mut inspecting = site.jails.open(mail());
        let mut outs = Vec::new();
        let mut rest = &deadly[..];
        while !rest.is_empty() {
            let taken = inspecting.feed(rest);
            rest = &rest[taken..];
            // It has heard of this, and works on it.
            let _ = inspecting.poll(&mut Polled::from_waker(NOBODY));
            let pid = site.jails.processes()[0].pid;
            std::thread::sleep(Duration::from_micros(500));
            pid.into_iter().for_each(|pid| kill(pid.cast_signed()));
            if let Progress::Lost(_) = wait(&mut *inspecting, &mut outs) {
                break;
            }
        }
        drop(inspecting);
        inspects_again(&site);
    }
    assert_eq!(site.counts.banned.load(Relaxed), 1);
    assert_eq!(inspect(&site.jails, &deadly).0, Progress::Lost(Unfinished::Gone));
    inspects_again(&site);
}

/// Attempts of an attacker who has taken over a jail, and whether they succeeded.
fn hostile() -> ExitCode {
    let host = std::process::id();
    let parent = rustix::process::getppid();
    let stdin = std::io::stdin().as_raw_fd();
    let secret = File::open("/etc/passwd").map(|file| file.as_raw_fd());
    let confined = jail::confine();
    let try_to = |what: &str, came: bool| println!("{what}: {}", if came { "DONE" } else { "refused" });
    try_to("confined", confined.as_ref().is_ok_and(|confined| !confined.seccomp));
    try_to("read a file", std::fs::read("/etc/passwd").is_ok());
    try_to("write a file", std::fs::write("/tmp/sluice-hostile", b"x").is_ok());
    try_to("list a folder", std::fs::read_dir("/").is_ok());
    try_to("read its own maps", std::fs::read("/proc/self/maps").is_ok());
    try_to("read the parent's memory", File::open(format!("/proc/{host}/mem")).is_ok());
    try_to("connect", std::net::TcpStream::connect("127.0.0.1:9").is_ok_and(|_| true));
    try_to("make a socket", std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
    try_to("make a pair of sockets", std::os::unix::net::UnixStream::pair().is_ok());
    try_to("start a program", Command::new("/bin/true").stdin(Stdio::null()).spawn().is_ok());
    try_to("start a thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    let killed = parent.map(|parent| rustix::process::test_kill_process(parent).is_ok());
    try_to("signal the parent", killed == Some(true));
    try_to("another descriptor", rustix::io::dup(std::io::stdout()).is_ok());
    try_to("look at a descriptor's file", rustix::fs::fstat(std::io::stdout()).is_ok());
    let _ = (secret, stdin);
    ExitCode::SUCCESS
}

/// Rights of a process, by the kernel.
fn rights(pid: u32) -> Vec<(String, String)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let fields = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        fields.contains(&name).then(|| (name.to_owned(), value.trim().trim_start_matches('0').to_owned()))
    };
    status.lines().filter_map(field).collect()
}

fn a_jail_and_its_template_have_no_capability_and_few_calls() {
    wait_for_their_end();
    let site = site(1);
    inspects_again(&site);
    let is_root = rustix::process::geteuid().is_root();
    for pid in templates().into_iter().chain(jails()) {
        let is_template = templates().contains(&pid);
        for (name, value) in rights(pid.cast_unsigned()) {
            let wanted = match name.as_str() {
                "NoNewPrivs" => "1",
                "Seccomp" => "2",
                // The bounding set is root's to change, of its own namespace.
                "CapBnd" if !is_root && (is_template || !site.confined.namespaces) => continue,
                _ => "",
            };
            assert_eq!(value, wanted, "{name} of {pid}, a template: {is_template}");
        }
    }
}

fn a_hostile_jail_reaches_nothing() {
    let output = Command::new("/proc/self/exe").arg("hostile").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(said.lines().count() >= 14, "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().all(|line| line.ends_with("refused")), "{said}");
}

/// Waits until no jail is left, of tests before this one either.
fn wait_for_their_end() {
    let began = Instant::now();
    while !templates().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "jails are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

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
    while kilobytes().saturating_sub(before) > 110 * CLIENTS {
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
