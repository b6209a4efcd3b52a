//! A database of one volume that loses answers, delays statements and fails over, and an engine on it.
//!
//! Statements are committed to a log. A prefix of it is on the standbys too: an answer is given only for what that prefix holds. When the primary
//! is lost, so is the rest of the log.

use std::cell::RefCell;
use std::rc::Rc;

use cluster::{Answer, Engine, Renewal, Standing};

/// A statement that changes the volume.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `flush` of an owner.
    Append { epoch: u64, flush: u64, runs: Vec<u8> },
    /// Nothing, by an owner whose flush is there.
    Settle { epoch: u64, flush: u64 },
    /// A renewal by an owner.
    Renew { epoch: u64, token: u64 },
    /// A node takes the volume over if the row is as it has seen it.
    Take { seen: Renewal, token: u64 },
}

/// Faults in 1,000 statements.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub lost: u64,
    pub answer_lost: u64,
    pub warned: u64,
    pub late: u64,
    pub failover: u64,
}

#[derive(Debug, Default)]
pub struct Database {
    log: Vec<Statement>,
    replicated: usize,
    late: Vec<Statement>,
    random: u64,
    pub faults: Faults,
}

pub type Shared = Rc<RefCell<Database>>;

impl Database {
    pub fn new(seed: u64, faults: Faults) -> Shared {
        Rc::new(RefCell::new(Database { random: seed.wrapping_mul(2) | 1, faults, ..Database::default() }))
    }

    /// xorshift64*.
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn chance(&mut self, of_thousand: u64) -> bool {
        self.random() % 1_000 < of_thousand
    }

    pub fn row(&self) -> (Standing, Renewal) {
        let (mut standing, mut last) = (Standing { epoch: 0, flush: 0 }, 0);
        for statement in &self.log {
            match statement {
                Statement::Append { flush, .. } => standing.flush = *flush,
                Statement::Renew { token, .. } => last = *token,
                Statement::Take { token, .. } => (standing.epoch, last) = (standing.epoch + 1, *token),
                Statement::Settle { .. } => {}
            }
        }
        (standing, Renewal { epoch: standing.epoch, token: last })
    }

    /// The rows of the tail, in order.
    pub fn rows(&self) -> Vec<Vec<u8>> {
        let row = |statement: &Statement| match statement {
            Statement::Append { runs, .. } => Some(runs.clone()),
            _ => None,
        };
        self.log.iter().filter_map(row).collect()
    }

    fn applies(&self, statement: &Statement) -> bool {
        let (standing, renewal) = self.row();
        match statement {
            Statement::Append { epoch, flush, .. } => standing.epoch == *epoch && standing.flush < *flush,
            Statement::Settle { epoch, flush } => standing == Standing { epoch: *epoch, flush: *flush },
            Statement::Renew { epoch, .. } => standing.epoch == *epoch,
            Statement::Take { seen, .. } => renewal == *seen,
        }
    }

    fn commit(&mut self, statement: Statement) -> bool {
        let applies = self.applies(&statement);
        if applies {
            self.log.push(statement);
        }
        applies
    }

    /// Lets delayed statements arrive, or loses the primary.
    fn weather(&mut self) {
        if !self.late.is_empty() && self.chance(300) {
            let at = self.random() as usize % self.late.len();
            let statement = self.late.swap_remove(at);
            self.commit(statement);
        }
        if self.chance(self.faults.failover) {
            self.log.truncate(self.replicated);
            self.late.clear();
        }
    }

    pub fn execute(&mut self, statement: Statement) -> Answer {
        self.weather();
        let Faults { lost, answer_lost, warned, late, .. } = self.faults;
        if self.chance(lost) {
            return Answer::Unknown;
        }
        if self.chance(late) {
            self.late.push(statement);
            return Answer::Unknown;
        }
        let applied = self.commit(statement);
        if self.chance(warned) {
            return Answer::Unknown;
        }
        self.replicated = self.log.len();
        match (self.chance(answer_lost), applied) {
            (true, _) => Answer::Unknown,
            (false, true) => Answer::Done,
            (false, false) => Answer::Refused,
        }
    }

    pub fn asked(&mut self) -> Option<(Standing, Renewal)> {
        self.weather();
        (!self.chance(self.faults.lost)).then(|| self.row())
    }
}

/// Engine of an owner, with a number of attempts for each flush.
#[derive(Debug)]
pub struct Link {
    pub database: Shared,
    pub patience: u32,
}

impl Engine for Link {
    fn append(&mut self, epoch: u64, flush: u64, runs: &[u8]) -> Answer {
        self.database.borrow_mut().execute(Statement::Append { epoch, flush, runs: runs.to_vec() })
    }

    fn standing(&mut self) -> Option<Standing> {
        self.database.borrow_mut().asked().map(|(standing, _)| standing)
    }

    fn settle(&mut self, epoch: u64, flush: u64) -> Answer {
        self.database.borrow_mut().execute(Statement::Settle { epoch, flush })
    }

    fn wait(&mut self) -> bool {
        self.patience = self.patience.saturating_sub(1);
        self.patience > 0
    }

    fn touch(&mut self, _block: u64) {}

    fn lose(&mut self, _lost: cluster::Lost) {}
}

/// Takes the volume over, in as many attempts as needed; `None` if another row was seen meanwhile.
pub fn take(database: &Shared) -> Option<Standing> {
    let (before, seen) = database.borrow().row();
    loop {
        let token = database.borrow_mut().random();
        let answer = database.borrow_mut().execute(Statement::Take { seen, token });
        match answer {
            Answer::Done => return Some(Standing { epoch: before.epoch + 1, flush: database.borrow().row().0.flush }),
            Answer::Refused => return None,
            // The owner is unknown: a node that tries again may take over from itself.
            Answer::Unknown if database.borrow().row().1 != seen => return None,
            Answer::Unknown => {}
        }
    }
}
