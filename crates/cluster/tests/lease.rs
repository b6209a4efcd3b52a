//! Leases of nodes with wrong clocks and paused processes, over a faulty database.

use cluster::{Answer, Duty, Lease, Vigil};

use super::database::{Database, Faults, Shared, Statement};

const LEASE_MS: u64 = 10_000;

/// Node whose clock is wrong by up to a tenth.
struct Node {
    /// Milliseconds of its clock in 1,000 true ones.
    pace: u64,
    offset: u64,
    paused_until: u64,
    vigil: Vigil,
    owns: Option<(u64, Lease)>,
}

impl Node {
    fn clock(&self, now: u64) -> u64 {
        self.offset + now * self.pace / 1_000
    }

    /// Lets a node act in its turn. `latency` is the time of the database's answer, in true milliseconds.
    fn act(&mut self, database: &Shared, now: u64, latency: u64) {
        let asked = self.clock(now);
        match &mut self.owns {
            Some((epoch, lease)) => match lease.duty(asked) {
                Duty::Wait(_) => {}
                Duty::End => self.owns = None,
                Duty::Renew => {
                    let token = database.borrow_mut().random();
                    match database.borrow_mut().execute(Statement::Renew { epoch: *epoch, token }) {
                        Answer::Done => lease.renewed(asked),
                        Answer::Refused => self.owns = None,
                        Answer::Unknown => {}
                    }
                }
            },
            None => self.watch(database, now, asked, latency),
        }
    }

    fn watch(&mut self, database: &Shared, now: u64, asked: u64, latency: u64) {
        let Some((_, seen)) = database.borrow_mut().asked() else { return };
        let after = self.clock(now + latency);
        let token = database.borrow_mut().random();
        if self.vigil.is_over(seen, after)
            && database.borrow_mut().execute(Statement::Take { seen, token }) == Answer::Done
        {
            self.owns = Some((seen.epoch + 1, Lease::new(LEASE_MS, asked)));
        }
    }

    fn believes(&self, now: u64) -> bool {
        self.owns.as_ref().is_some_and(|(_, lease)| lease.duty(self.clock(now)) != Duty::End)
    }
}

fn schedule(seed: u64) -> (u64, u64) {
    let faults = Faults { lost: 50, answer_lost: 50, warned: 50, late: 50, failover: 20 };
    let database = Database::new(seed, faults);
    let random = move |database: &Shared, below: u64| database.borrow_mut().random() % below;
    let mut nodes: Vec<Node> = (0..3)
        .map(|_| Node {
            pace: 900 + random(&database, 201),
            offset: random(&database, 10_000_000),
            paused_until: 0,
            vigil: Vigil::new(LEASE_MS),
            owns: None,
        })
        .collect();
    let (mut now, mut owned) = (0, 0);
    for _ in 0..400 {
        let step = 1 + random(&database, 600);
        now += step;
        let at = random(&database, 3) as usize;
        let latency = random(&database, 300);
        if random(&database, 40) == 0 {
            nodes[at].paused_until = now + random(&database, 30_000);
        }
        if nodes[at].paused_until <= now {
            nodes[at].act(&database, now, latency);
        }
        // A paused node relies on its lease, and shows it to nobody.
        let believing = nodes.iter().filter(|node| node.paused_until <= now && node.believes(now)).count();
        assert!(believing <= 1, "{seed}: {believing} owners at {now} ms");
        owned += step * believing as u64;
    }
    (owned, now)
}

#[test]
fn no_two_nodes_own_a_volume() {
    let schedules = std::env::var("SLUICE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let (owned, time) = (1..=schedules).map(schedule).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(owned * 3 > time, "volumes have an owner for {owned} of {time} ms");
}
