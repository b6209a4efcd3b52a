//! Folds into objects: owners that are paused and followed at any point, over a database and a bucket that lose, delay and repeat requests.
//!
//! After each step every row of a made fold has its object, and what can be read is what was flushed; also after the database was set back.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use cluster::{Blocks, Folds, Object, Objects, Row};

const BLOCKS: u64 = 6;

/// Steps for which former objects are kept, and after which the latest request has arrived.
const KEEP: u64 = 60;
const LATE_MAX: u64 = 25;

/// The database at one moment, with the value of each block that was flushed.
#[derive(Debug, Clone, Default)]
struct State {
    epoch: u64,
    flush: u64,
    folded: u64,
    tail: BTreeMap<u64, Vec<(u64, u64)>>,
    made: BTreeSet<(u64, u64)>,
    rows: BTreeMap<(u64, u64, u64), Content>,
    former: BTreeMap<String, u64>,
    flushed: BTreeMap<u64, u64>,
}

#[derive(Debug, Clone)]
enum Content {
    Bytes(Vec<u8>),
    Object(Object),
}

type Change = Box<dyn FnOnce(&mut State, u64) -> bool + Send>;

#[derive(Default)]
struct World {
    random: u64,
    now: u64,
    state: State,
    /// States of former moments.
    history: Vec<(u64, State)>,
    /// Statements that are on their way, and a fold that has the lock of the volume and is not decided.
    late: Vec<(u64, Change)>,
    undecided: Option<Change>,
    bucket: BTreeMap<String, Vec<u8>>,
    late_puts: Vec<(u64, String, Vec<u8>)>,
    late_deletes: Vec<(u64, String)>,
    /// Faults in 1,000 requests.
    faults: u64,
    puts: usize,
}

fn sum(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum[..8].copy_from_slice(&bytes[..8]);
    sum
}

fn value(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

impl State {
    fn named(&self) -> BTreeSet<&str> {
        let names = self.rows.values().filter_map(|content| match content {
            Content::Object(object) => Some(object.name.as_str()),
            Content::Bytes(_) => None,
        });
        names.collect()
    }

    fn is_made(&self, (_, flush, epoch): &(u64, u64, u64)) -> bool {
        self.made.contains(&(*flush, *epoch))
    }

    fn retire(&mut self, gone: impl Fn(&State, &(u64, u64, u64)) -> bool, now: u64) {
        let keys: Vec<_> = self.rows.keys().filter(|key| gone(self, key)).copied().collect();
        for key in keys {
            if let Some(Content::Object(object)) = self.rows.remove(&key) {
                self.former.insert(object.name, now);
            }
        }
    }
}

impl World {
    /// xorshift64*.
    fn below(&mut self, below: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % below
    }

    fn fails(&mut self) -> bool {
        self.faults > 0 && self.below(1_000) < self.faults
    }

    /// Waits for a fold that has the lock.
    fn decide(&mut self) {
        if let Some(change) = self.undecided.take() {
            change(&mut self.state, self.now);
        }
    }

    fn change(&mut self, locks: bool, change: Change) -> Result<(), ()> {
        if locks {
            self.decide();
        }
        if self.fails() {
            let until = self.now + 1 + self.below(LATE_MAX);
            match self.below(3) {
                0 => {}
                1 => _ = change(&mut self.state, self.now),
                _ if locks && self.undecided.is_none() => self.undecided = Some(change),
                _ => self.late.push((until, change)),
            }
            return Err(());
        }
        change(&mut self.state, self.now).then_some(()).ok_or(())
    }

    /// Lets time pass, and late requests arrive.
    fn pass(&mut self) {
        self.now += 1;
        let now = self.now;
        if self.below(8) == 0 {
            self.decide();
        }
        let (due, later) = std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now);
        self.late = later;
        let due: Vec<(u64, Change)> = due;
        due.into_iter().for_each(|(_, change)| _ = change(&mut self.state, now));
        for (_, name, bytes) in self.late_puts.extract_if(.., |(at, ..)| *at <= now) {
            self.bucket.insert(name, bytes);
        }
        for (_, name) in self.late_deletes.extract_if(.., |(at, _)| *at <= now) {
            self.bucket.remove(&name);
        }
        self.history.push((now, self.state.clone()));
        self.history.retain(|(at, _)| at + KEEP - LATE_MAX - 1 > now);
    }

    /// What a node with an empty cache reads.
    fn check(&self, seed: u64) -> BTreeMap<u64, u64> {
        let mut read = BTreeMap::new();
        for (key, content) in self.state.rows.iter().filter(|(key, _)| self.state.is_made(key)) {
            let bytes = match content {
                Content::Bytes(bytes) => bytes,
                Content::Object(Object { name, sum: wanted, .. }) => {
                    let found = self.bucket.get(name);
                    let bytes = found.unwrap_or_else(|| panic!("{seed}: step {}: {name} is not there", self.now));
                    assert_eq!(sum(bytes), *wanted, "{seed}: {name} is another one");
                    bytes
                }
            };
            // Rows of a block come in the order of their flushes.
            read.insert(key.0, value(bytes));
        }
        read.extend(self.state.tail.values().flatten().copied());
        for (block, flushed) in &self.state.flushed {
            // What was not flushed may be there, too.
            let found = read.get(block).copied().unwrap_or(0);
            assert!(found >= *flushed, "{seed}: step {}: block {block} has {found} for {flushed}", self.now);
        }
        read
    }
}

/// A hold on the world: each request is done at another step than that before.
#[derive(Clone)]
struct Hold(Arc<Mutex<World>>);

impl Hold {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    async fn turn(&self) -> MutexGuard<'_, World> {
        let mut is_next = false;
        std::future::poll_fn(|_| if std::mem::replace(&mut is_next, true) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        self.world()
    }

    async fn change(
        &self,
        locks: bool,
        change: impl FnOnce(&mut State, u64) -> bool + Send + 'static,
    ) -> Result<(), ()> {
        self.turn().await.change(locks, Box::new(change))
    }
}

impl Blocks<()> for Hold {
    async fn clean(&mut self, epoch: u64) -> Result<(), ()> {
        let clean = move |state: &mut State, now| {
            state.retire(|state, key| key.2 <= epoch && !state.is_made(key), now);
            state.epoch == epoch
        };
        self.change(true, move |state, now| state.epoch == epoch && clean(state, now)).await
    }

    async fn add_bytes(&mut self, (epoch, flush): (u64, u64), blocks: &[(u64, Vec<u8>)]) -> Result<(), ()> {
        let blocks = blocks.to_vec();
        let add = move |state: &mut State, _| {
            for (block, bytes) in blocks {
                state.rows.entry((block, flush, epoch)).or_insert(Content::Bytes(bytes));
            }
            true
        };
        self.change(false, add).await
    }

    async fn add_objects(&mut self, (epoch, flush): (u64, u64), blocks: &[(u64, Object)]) -> Result<(), ()> {
        let blocks = blocks.to_vec();
        let add = move |state: &mut State, _| {
            for (block, object) in blocks {
                state.rows.entry((block, flush, epoch)).or_insert(Content::Object(object));
            }
            true
        };
        self.change(false, add).await
    }

    async fn fold(&mut self, epoch: u64, flush: u64) -> Result<(), ()> {
        let fold = move |state: &mut State, now| {
            if state.epoch != epoch || state.folded >= flush {
                return state.epoch == epoch;
            }
            state.folded = flush;
            state.made.insert((flush, epoch));
            state.tail.retain(|number, _| *number > flush);
            let is_replaced =
                |state: &State, key: &(u64, u64, u64)| key.1 < flush && state.rows.contains_key(&(key.0, flush, epoch));
            state.retire(is_replaced, now);
            true
        };
        self.change(true, fold).await
    }

    async fn with_bytes(&mut self, most: usize) -> Result<Vec<(Row, Vec<u8>)>, ()> {
        let world = self.turn().await;
        let some = world.state.rows.iter().filter(|(key, _)| world.state.is_made(key)).filter_map(|(key, content)| {
            let Content::Bytes(bytes) = content else { return None };
            Some((Row { block: key.0, flush: key.1, epoch: key.2 }, bytes.clone()))
        });
        Ok(some.take(most.min(2)).collect())
    }

    async fn with_objects(&mut self, most: usize) -> Result<Vec<(Row, Object)>, ()> {
        let world = self.turn().await;
        let some = world.state.rows.iter().filter(|(key, _)| world.state.is_made(key)).filter_map(|(key, content)| {
            let Content::Object(object) = content else { return None };
            Some((Row { block: key.0, flush: key.1, epoch: key.2 }, object.clone()))
        });
        Ok(some.take(most.min(2)).collect())
    }

    async fn move_out(&mut self, epoch: u64, row: Row, object: &Object) -> Result<(), ()> {
        let object = object.clone();
        let set = move |state: &mut State, _| {
            if state.epoch != epoch {
                return false;
            }
            if let Some(content @ Content::Bytes(_)) = state.rows.get_mut(&(row.block, row.flush, row.epoch)) {
                *content = Content::Object(object);
            }
            true
        };
        self.change(false, set).await
    }

    async fn move_in(&mut self, epoch: u64, row: Row, object: &Object, bytes: &[u8]) -> Result<(), ()> {
        let (object, bytes) = (object.clone(), bytes.to_vec());
        let set = move |state: &mut State, now| {
            if state.epoch != epoch {
                return false;
            }
            if let Some(content @ Content::Object(_)) = state.rows.get_mut(&(row.block, row.flush, row.epoch)) {
                *content = Content::Bytes(bytes);
                state.former.insert(object.name, now);
            }
            true
        };
        self.change(false, set).await
    }

    async fn note_unnamed(&mut self, epoch: u64, names: &[String]) -> Result<(), ()> {
        let names = names.to_vec();
        let note = move |state: &mut State, now| {
            if state.epoch == epoch {
                let unnamed: Vec<String> =
                    names.into_iter().filter(|name| !state.named().contains(name.as_str())).collect();
                unnamed.into_iter().for_each(|name| _ = state.former.entry(name).or_insert(now));
            }
            state.epoch == epoch
        };
        self.change(false, note).await
    }

    async fn over(&mut self, epoch: u64, _most: usize) -> Result<Vec<String>, ()> {
        let world = self.turn().await;
        let (state, now) = (&world.state, world.now);
        let is_over = |(name, since): &(&String, &u64)| **since + KEEP < now && !state.named().contains(name.as_str());
        let names = state.former.iter().filter(is_over).map(|(name, _)| name.clone());
        if state.epoch == epoch { Ok(names.collect()) } else { Err(()) }
    }

    async fn forget(&mut self, names: &[String]) -> Result<(), ()> {
        let names = names.to_vec();
        self.change(false, move |state, _| {
            names.iter().for_each(|name| _ = state.former.remove(name));
            true
        })
        .await
    }
}

impl Objects<()> for Hold {
    async fn put(&mut self, blocks: Vec<(String, Vec<u8>)>) -> Result<Vec<Object>, ()> {
        let mut put = Vec::new();
        for (name, bytes) in blocks {
            let mut world = self.turn().await;
            world.puts += 1;
            let known = world.bucket.get(&name);
            assert!(known.is_none_or(|known| *known == bytes), "{name} is overwritten");
            let object = Object { name: name.clone(), length: 8, sum: sum(&bytes) };
            if world.fails() {
                let at = world.now + 1 + world.below(LATE_MAX);
                match world.below(3) {
                    0 => return Err(()),
                    1 => _ = world.bucket.insert(name, bytes),
                    _ => world.late_puts.push((at, name, bytes)),
                }
                return Err(());
            }
            if world.fails() {
                // It arrives once more.
                let at = world.now + 1 + world.below(LATE_MAX);
                world.late_puts.push((at, name.clone(), bytes.clone()));
            }
            world.bucket.insert(name, bytes);
            put.push(object);
        }
        Ok(put)
    }

    async fn get(&mut self, objects: &[Object]) -> Result<Vec<Vec<u8>>, ()> {
        let world = self.turn().await;
        objects.iter().map(|object| world.bucket.get(&object.name).cloned().ok_or(())).collect()
    }

    async fn delete(&mut self, names: &[String]) -> Result<(), ()> {
        for name in names {
            let mut world = self.turn().await;
            if world.fails() {
                let at = world.now + 1 + world.below(LATE_MAX);
                world.late_deletes.push((at, name.clone()));
                return Err(());
            }
            world.bucket.remove(name);
        }
        Ok(())
    }

    async fn list(&mut self, _volume: &str, after: &str) -> Result<Vec<String>, ()> {
        let world = self.turn().await;
        Ok(world.bucket.keys().filter(|name| name.as_str() > after).take(3).cloned().collect())
    }
}

/// An owner: its cache, the blocks of flushes since its last fold, and work that is under way.
struct Owner {
    epoch: u64,
    cache: Arc<Mutex<BTreeMap<u64, u64>>>,
    written: Arc<Mutex<BTreeSet<u64>>>,
    pending: BTreeSet<u64>,
    folds: Option<Folds>,
    work: Option<Pin<Box<dyn Future<Output = Folds> + Send>>>,
}

impl Owner {
    /// Takes over, with an empty cache.
    fn take(hold: &Hold, seed: u64) -> Owner {
        let mut world = hold.world();
        world.decide();
        world.state.epoch += 1;
        let cache = world.check(seed);
        let written = world.state.tail.values().flatten().map(|(block, _)| *block).collect();
        let epoch = world.state.epoch;
        Owner {
            epoch,
            cache: Arc::new(Mutex::new(cache)),
            written: Arc::new(Mutex::new(written)),
            pending: BTreeSet::new(),
            folds: Some(Folds::new("v".into(), epoch)),
            work: None,
        }
    }

    /// Writes to the cache, and flushes what was written.
    fn write(&mut self, hold: &Hold, does_flush: bool) {
        let mut world = hold.world();
        let block = world.below(BLOCKS);
        let number = world.now;
        self.cache.lock().unwrap().insert(block, number);
        self.pending.insert(block);
        if does_flush && world.state.epoch == self.epoch {
            world.decide();
            let cache = self.cache.lock().unwrap();
            let runs: Vec<_> = self.pending.iter().map(|block| (*block, cache[block])).collect();
            let state = &mut world.state;
            state.flush += 1;
            state.flushed.extend(runs.iter().copied());
            state.tail.insert(state.flush, runs);
            self.written.lock().unwrap().append(&mut self.pending);
        }
    }

    /// Goes on with what it does, or begins something.
    fn act(&mut self, hold: &Hold) {
        if self.work.is_none() {
            let folds = self.folds.take().unwrap();
            self.work = Some(self.begin(hold.clone(), folds));
        }
        if let Some(work) = &mut self.work
            && let Poll::Ready(folds) = work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            (self.work, self.folds) = (None, Some(folds));
        }
    }

    fn begin(&self, mut hold: Hold, mut folds: Folds) -> Pin<Box<dyn Future<Output = Folds> + Send>> {
        let (mut bucket, cache, written) = (hold.clone(), self.cache.clone(), self.written.clone());
        let (what, attempt, flush) = {
            let mut world = hold.world();
            (world.below(10), world.below(u64::MAX), world.state.flush)
        };
        Box::pin(async move {
            match what {
                0..5 => {
                    let batch = std::mem::take(&mut *written.lock().unwrap());
                    let numbers: Vec<u64> = batch.iter().copied().collect();
                    let read =
                        |block| Ok(cache.lock().unwrap().get(&block).copied().unwrap_or(0).to_le_bytes().to_vec());
                    let objects = (what < 4).then_some(&mut bucket);
                    if folds.fold(&mut hold, objects, (flush, attempt), &numbers, read).await.is_err() {
                        written.lock().unwrap().extend(batch);
                    }
                }
                5 | 6 => _ = folds.relocate(&mut hold, &mut bucket, what == 5, attempt).await,
                7 | 8 => _ = folds.expire(&mut hold, &mut bucket).await,
                _ => {
                    let mut after = String::new();
                    while let Ok(Some(last)) = folds.sweep(&mut hold, &mut bucket, &after).await {
                        after = last;
                    }
                }
            }
            folds
        })
    }
}

/// Returns how many objects were written, and how many were deleted.
fn schedule(seed: u64) -> (usize, usize) {
    let world = World { random: seed.wrapping_mul(2) | 1, faults: 60, ..World::default() };
    let hold = Hold(Arc::new(Mutex::new(world)));
    let mut owner = Owner::take(&hold, seed);
    let mut former: Option<Owner> = None;
    for _ in 0..600 {
        let (what, is_long_ago) = {
            let mut world = hold.world();
            world.pass();
            (world.below(100), world.below(3) == 0)
        };
        match what {
            0..25 => owner.write(&hold, what < 15),
            25..85 => owner.act(&hold),
            85..96 => former.iter_mut().for_each(|former| former.act(&hold)),
            96..99 => former = Some(std::mem::replace(&mut owner, Owner::take(&hold, seed))),
            _ if is_long_ago => {
                // The database is set back, and the nodes were stopped before.
                former = None;
                let mut world = hold.world();
                (world.late, world.undecided) = (Vec::new(), None);
                let count = world.history.len() as u64;
                let at = world.below(count) as usize;
                world.state = world.history[at].1.clone();
                world.history.truncate(at + 1);
                drop(world);
                owner = Owner::take(&hold, seed);
            }
            _ => {}
        }
        hold.world().check(seed);
    }
    let world = hold.world();
    (world.puts, world.puts.saturating_sub(world.bucket.len()))
}

#[test]
fn no_row_names_an_object_that_is_not_there() {
    let schedules = std::env::var("SLUICE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let (puts, gone) = (1..=schedules).map(schedule).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let schedules = schedules as usize;
    assert!(
        puts > 20 * schedules && gone > 10 * schedules,
        "{puts} written and {gone} deleted in {schedules} schedules"
    );
}
