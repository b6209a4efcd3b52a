//! The wake-ups of event loops.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context as Polled, Wake, Waker};
use std::time::{Duration, Instant};

use crate::Test;
use crate::site::{Unpark, content, inspects_again, jails, kill, mail, signal, site_with, wait};
use flow::{Inspector, Out, Progress, Unfinished};
use jail::Bells;
use rustix::event::{PollFd, PollFlags, Timespec};

pub const TESTS: &[Test] =
    tests![a_jail_rings_the_bell_of_who_waits, who_listens_to_a_bell_hears_that_the_jail_is_gone,];

/// Wakes whoever waits for an eventfd.
struct Tell(Arc<OwnedFd>);

impl Wake for Tell {
    fn wake(self: Arc<Tell>) {
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
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
