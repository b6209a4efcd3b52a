//! What becomes of inspections, and of a jail, when one dies.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context as Polled;
use std::time::{Duration, Instant};

use crate::Test;
use crate::site::{content, inspect, inspects_again, jails, kill, mail, signal, site, wait};
use flow::{Inspector, NOBODY, Out, Progress, Unfinished};

pub const TESTS: &[Test] = tests![
    a_jail_that_is_killed_costs_what_it_had_and_is_replaced,
    a_jail_that_takes_the_place_of_another_has_its_policy,
    a_jail_that_is_stopped_while_it_has_nothing_to_do_is_replaced,
    a_thousand_deaths_leave_no_inspection_waiting,
    what_two_died_of_is_not_given_to_a_third,
];

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
