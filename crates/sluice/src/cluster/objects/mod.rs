//! Blocks of the store as objects of an S3 server, beside the database. No acknowledgement waits for it.
//!
//! ```text
//!  folds ─► Store ─► threads, PARALLEL at a time ─► Bucket: signed, bounded, tried again, checked ─► the server
//!  cache ◄──────────────────────────────────────────┘
//! ```

mod bucket;
#[cfg(test)]
mod fake;
mod sign;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cluster::{Object, Objects};
use tokio::task::JoinSet;

use self::bucket::{Bucket, Fault};
use crate::config::ObjectSettings;

/// Requests at a time. Each has a block in memory.
const PARALLEL: usize = 8;

/// The objects of a cluster.
#[derive(Clone)]
pub struct Store {
    bucket: Arc<Bucket>,
    /// Whether blocks are written there; else they are moved back.
    pub writes: bool,
    /// Days for which former objects are kept.
    pub keep_days: u32,
}

impl Store {
    /// The bucket that the settings name.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn new(settings: &ObjectSettings, authorities: &Path) -> Result<Store, String> {
        let bucket = Bucket::new(settings, authorities).map_err(|error| format!("cluster: objects: {error}"))?;
        Ok(Store { bucket: Arc::new(bucket), writes: settings.write, keep_days: settings.keep_days })
    }

    /// Requests that were made once more.
    pub fn repeated(&self) -> u64 {
        self.bucket.repeated.load(Relaxed)
    }

    /// Writes, lists, reads and deletes an object that nobody needs.
    ///
    /// # Errors
    /// What did not work, and why.
    pub async fn check(&self, name: String) -> Result<String, String> {
        let bucket = self.bucket.clone();
        let work = move || {
            let said = |what: &str, fault: Fault| format!("{what}: {fault}");
            let object = bucket.put(&name, name.as_bytes()).map_err(|fault| said("writing", fault))?;
            let read = bucket.get(&object).map_err(|fault| said("reading", fault));
            let listed = bucket.list(&name, "").map_err(|fault| said("listing", fault));
            bucket.delete(&name).map_err(|fault| said("deleting", fault))?;
            match listed? {
                names if names == [name] => read.map(|_| format!("bucket {} is written and read", bucket.name)),
                _ => Err("listing: an object that was written is not in the list".to_owned()),
            }
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())?
    }

    /// Does something with each of them, some at a time.
    async fn each<T: Send + 'static, R: Send + 'static>(
        &self,
        items: Vec<T>,
        work: fn(&Bucket, &T) -> Result<R, String>,
    ) -> Result<Vec<R>, String> {
        let mut done: Vec<Option<R>> = items.iter().map(|_| None).collect();
        let (mut running, mut items) = (JoinSet::new(), items.into_iter().enumerate());
        loop {
            while running.len() < PARALLEL
                && let Some((at, item)) = items.next()
            {
                let bucket = self.bucket.clone();
                running.spawn_blocking(move || work(&bucket, &item).map(|result| (at, result)));
            }
            let Some(outcome) = running.join_next().await else { break };
            let (at, result) = outcome.map_err(|error| error.to_string())??;
            done[at] = Some(result);
        }
        Ok(done.into_iter().flatten().collect())
    }
}

impl Objects<String> for Store {
    async fn put(&mut self, blocks: Vec<(String, Vec<u8>)>) -> Result<Vec<Object>, String> {
        let work = |bucket: &Bucket, (name, bytes): &(String, Vec<u8>)| {
            bucket.put(name, bytes).map_err(|fault| format!("object {name}: {fault}"))
        };
        self.each(blocks, work).await
    }

    async fn get(&mut self, objects: &[Object]) -> Result<Vec<Vec<u8>>, String> {
        let work = |bucket: &Bucket, object: &Object| {
            bucket.get(object).map_err(|fault| format!("object {}: {fault}", object.name))
        };
        self.each(objects.to_vec(), work).await
    }

    async fn delete(&mut self, names: &[String]) -> Result<(), String> {
        let work =
            |bucket: &Bucket, name: &String| bucket.delete(name).map_err(|fault| format!("object {name}: {fault}"));
        self.each(names.to_vec(), work).await.map(drop)
    }

    async fn list(&mut self, volume: &str, after: &str) -> Result<Vec<String>, String> {
        let (bucket, words, after) = (self.bucket.clone(), format!("{volume}/"), after.to_owned());
        let listed = tokio::task::spawn_blocking(move || bucket.list(&words, &after)).await;
        let listed = listed.map_err(|error| error.to_string())?;
        listed.map_err(|fault| format!("objects of the bucket {}: {fault}", self.bucket.name))
    }
}
