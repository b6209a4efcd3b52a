//! What an inspection in a jail reports, and how jails share memory and time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context as Polled, Poll};
use std::time::Duration;

use crate::Test;
use crate::site::{content, database, inspect, limits, mail, site, site_with, wait};
use flow::{
    Action, Answer, Ask, Authenticating, Context, Flow, Inspector, NOBODY, Out, Outcome, Progress, Record, RecordKind,
    Security, Verdict,
};
use inspect::Engine;
use jail::Local;

pub const TESTS: &[Test] = tests![
    a_jail_reports_what_is_reported_here,
    a_jail_asks_and_is_answered_as_an_inspection_here,
    many_inspections_share_a_jail,
    one_that_nobody_wants_any_more_leaves_nothing,
    one_that_nobody_waits_for_goes_on_in_its_own_time,
    a_jail_sleeps_until_there_is_enough_to_do_for_somebody_who_does_not_wait,
    one_jail_may_have_what_another_does_not_use,
];

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
