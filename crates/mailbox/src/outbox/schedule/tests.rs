//! The schedule against a plain model, and its law: however time passes, the turns are the same.

use std::collections::{HashMap, HashSet};

use super::*;

/// Numbers that look random, and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Drives a schedule of 300 jobs to its end. Each attempt takes no time; the destination `ill` fails until `well_from`.
fn driven(seed: u64, well_from: i64, mut pass: impl FnMut(i64, i64) -> i64) -> Vec<(i64, Turn)> {
    let mut random = Random(seed);
    let mut schedule = Schedule::new(Limits { rest_longest: 240, ..Limits::default() });
    for mail in 1..=300 {
        let name = ["a", "b", "ill"][random.below(3) as usize];
        let (sender, due) = (random.below(4) as u32, random.below(50) as i64);
        schedule.insert(mail, name, sender, due, 5_000);
    }
    let (mut now, mut turns) = (0, Vec::new());
    while !schedule.is_empty() {
        let turn = schedule.next(now);
        match turn {
            Turn::Idle(until) => {
                assert!(until > now, "it stands still at {now}");
                now = pass(now, until);
                continue;
            }
            Turn::Attempt(job) => {
                let is_ill = schedule.destination(job) == "ill" && now < well_from;
                schedule.done(job, if is_ill { Health::Ill } else { Health::Well }, now);
                match is_ill {
                    true => _ = schedule.insert(job.mail, "ill", 1, now + 30, 5_000),
                    false => schedule.remove(job),
                }
            }
            Turn::Alarm(job) => schedule.remove(job),
        }
        turns.push((now, turn));
    }
    turns
}

#[test]
fn however_time_passes_the_turns_are_the_same() {
    for (seed, well_from) in [(1, 0), (2, 100), (3, 1_000), (4, 100_000)] {
        let leaps = driven(seed, well_from, |_, until| until);
        let steps = driven(seed, well_from, |now, _| now + 1);
        assert_eq!(leaps, steps, "{seed}");
        let first: HashSet<u32> = leaps.iter().map(|(_, turn)| mail(*turn)).collect();
        assert_eq!(first.len(), 300, "each mail has its turn, at the latest when its alarm comes");
    }
}

fn mail(turn: Turn) -> u32 {
    match turn {
        Turn::Attempt(job) | Turn::Alarm(job) => job.mail,
        Turn::Idle(_) => 0,
    }
}

/// Random calls beside a list of what each job should be.
#[test]
fn a_job_is_tried_when_it_is_due_and_once_at_a_time() {
    for seed in 0..40 {
        let (mut random, mut schedule) = (Random(seed), Schedule::new(Limits { jobs_max: 5, ..Limits::default() }));
        let mut waiting: HashMap<Job, (i64, i64)> = HashMap::new();
        let mut held: HashSet<Job> = HashSet::new();
        let mut under_way: Vec<Job> = Vec::new();
        let mut alarmed: Vec<Job> = Vec::new();
        let mut now = 0;
        for _ in 0..2_000 {
            let (mail, name) = (random.below(60) as u32, ["a", "b", "c"][random.below(3) as usize]);
            match random.below(8) {
                0..=2 if schedule.job(mail, name).is_none_or(|job| !schedule.is_busy(job)) => {
                    let (due, alarm) = (now + random.below(100) as i64, now + 50 + random.below(500) as i64);
                    let job = schedule.insert(mail, name, mail % 3, due, alarm);
                    waiting.insert(job, (due, alarm));
                    held.remove(&job);
                }
                3 => {
                    if let Some(job) = schedule.job(mail, name).filter(|job| !schedule.is_busy(*job)) {
                        schedule.hold(mail, name, mail % 3);
                        waiting.remove(&job);
                        held.insert(job);
                    }
                }
                4 => {
                    if let Some(job) = schedule.job(mail, name).filter(|job| !schedule.is_busy(*job)) {
                        schedule.remove(job);
                        waiting.remove(&job);
                        held.remove(&job);
                    }
                }
                5 if !under_way.is_empty() => {
                    let job = under_way.swap_remove(random.below(under_way.len() as u64) as usize);
                    let health = [Health::Well, Health::Ill, Health::Unknown][random.below(3) as usize];
                    schedule.done(job, health, now);
                    alarmed.push(job);
                }
                6 if !alarmed.is_empty() => {
                    let job = alarmed.swap_remove(0);
                    schedule.remove(job);
                }
                _ => now += random.below(20) as i64,
            }
            loop {
                match schedule.next(now) {
                    Turn::Attempt(job) => {
                        let (due, alarm) = waiting.remove(&job).expect("it waits");
                        assert!(due <= now && now < alarm + LAST_ATTEMPT_WAIT, "{due} {alarm} at {now}");
                        assert!(!under_way.contains(&job));
                        under_way.push(job);
                    }
                    Turn::Alarm(job) => {
                        let (_, alarm) = waiting.remove(&job).expect("it waits");
                        assert!(alarm <= now);
                        alarmed.push(job);
                    }
                    Turn::Idle(until) => {
                        assert!(until > now);
                        break;
                    }
                }
            }
            assert_eq!(schedule.under_way() as usize, under_way.len());
            assert!(under_way.len() <= 5);
            assert_eq!(schedule.len(), waiting.len() + held.len() + under_way.len() + alarmed.len());
        }
    }
}

#[test]
fn a_window_grows_with_successes_and_a_dead_destination_gets_one_mail_at_a_time() {
    let mut schedule = Schedule::new(Limits::default());
    (1..=500).for_each(|mail| _ = schedule.insert(mail, "a", 1, 0, 9_999_999));
    let mut widths = Vec::new();
    for _ in 0..12 {
        let jobs: Vec<Job> = std::iter::from_fn(|| match schedule.next(0) {
            Turn::Attempt(job) => Some(job),
            _ => None,
        })
        .collect();
        widths.push(jobs.len());
        for job in jobs {
            schedule.done(job, Health::Well, 0);
            schedule.remove(job);
        }
    }
    assert_eq!(widths[..5], [2, 3, 4, 5, 6]);
    let (mut now, mut tries, mut rests) = (0, 0, Vec::new());
    while now < 20_000 {
        match schedule.next(now) {
            Turn::Attempt(job) => {
                tries += 1;
                schedule.done(job, Health::Ill, now);
                schedule.insert(job.mail, "a", 1, now + 3_600, 9_999_999);
            }
            Turn::Idle(until) => {
                rests.push(until - now);
                now = until;
            }
            Turn::Alarm(_) => unreachable!("no alarm has come"),
        }
    }
    assert!(tries < 25, "{tries}");
    assert!(rests.starts_with(&[60, 120, 240, 480]), "{rests:?}");
}

/// A list with a hundred mails and somebody with one, and a dead destination beside a good one.
#[test]
fn a_list_keeps_nobody_waiting_and_neither_does_a_dead_destination() {
    let mut schedule = Schedule::new(Limits::default());
    (1..=100).for_each(|mail| _ = schedule.insert(mail, "a", 1, 0, 9_999));
    schedule.insert(101, "a", 2, 0, 9_999);
    (200..=300).for_each(|mail| _ = schedule.insert(mail, "dead", 1, 0, 9_999));
    let mut order = Vec::new();
    while let Turn::Attempt(job) = schedule.next(1) {
        let is_dead = schedule.destination(job) == "dead";
        schedule.done(job, if is_dead { Health::Ill } else { Health::Well }, 1);
        schedule.remove(job);
        order.push(job.mail);
    }
    let at = order.iter().position(|&mail| mail == 101).unwrap();
    assert!(at < 6, "{order:?}");
    assert_eq!(order.iter().filter(|&&mail| mail >= 200).count(), 2, "a dead destination is left alone soon");
    assert_eq!(schedule.len(), 99);
}

#[test]
fn a_job_takes_few_bytes_and_names_are_forgotten() {
    let mut schedule = Schedule::new(Limits::default());
    let count = 200_000;
    for mail in 0..count {
        schedule.insert(mail, ["a", "b", "c", "d"][mail as usize % 4], mail % 100, 0, 1 << 40);
    }
    assert!(matches!(schedule.next(1), Turn::Attempt(_)), "all of them are in line");
    // Tables have eight places for seven entries at most, and a byte for each place; nodes of trees are half full at least.
    let tables = schedule.jobs.capacity() * 8 / 7 * (size_of::<(Job, Waiting)>() + 1);
    let trees = schedule.times.len() * 2 * size_of::<(i64, Job)>();
    let lines = schedule.destinations.iter().flat_map(|one| one.lines.values()).map(VecDeque::capacity);
    let each = (tables + trees + lines.sum::<usize>() * size_of::<u32>()) / count as usize;
    assert!(each <= JOB_BYTES_MAX, "{each} bytes");
    let mut few = Schedule::new(Limits::default());
    for mail in 0..1_000 {
        let job = few.insert(mail, &format!("host{mail}"), 1, 0, 10);
        assert!(matches!(few.next(0), Turn::Attempt(_)));
        few.done(job, Health::Ill, 0);
        few.remove(job);
        few.next(0);
    }
    assert!(few.names.is_empty() && few.destinations.len() < 10 && few.rests.is_empty(), "{}", few.destinations.len());
}

#[test]
fn a_mail_whose_time_has_passed_while_nobody_looked_is_tried_once_more() {
    let mut schedule = Schedule::new(Limits::default());
    let [missed, far] = [1, 2].map(|mail| schedule.insert(mail, "a", 1, if mail == 1 { 100 } else { 900_000 }, 500));
    let resting = schedule.insert(3, "b", 1, 160, 500);
    schedule.destinations.iter_mut().filter(|one| &*one.name == "b").for_each(|one| one.rests_until = 2_000_000);
    assert_eq!(schedule.next(100), Turn::Attempt(missed));
    schedule.done(missed, Health::Unknown, 100);
    schedule.insert(1, "a", 1, 160, 500);
    // The clock is put ahead.
    let turns: Vec<Turn> = (0..4).map(|_| schedule.next(864_000)).collect();
    assert!(turns.contains(&Turn::Attempt(missed)), "{turns:?}");
    assert!(turns.contains(&Turn::Alarm(far)) && turns.contains(&Turn::Alarm(resting)), "{turns:?}");
    schedule.done(missed, Health::Unknown, 864_000);
    schedule.insert(1, "a", 1, 864_000, 500);
    assert_eq!(schedule.next(864_000), Turn::Alarm(missed), "once");
}
