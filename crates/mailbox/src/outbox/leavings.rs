//! Mails whose answer comes after their process has handed over the store.
//!
//! ```text
//!   the process that ends   writes a list of them, which it holds locked ─ answers ─► adds those ─► lets go of the list
//!   the one that follows    leaves these mails alone while the list is locked, notes the answers in it, and tries the other mails
//! ```
//!
//! The kernel lets go of the list of a process that is killed: mails without an answer are tried again then. A list is a file beside the volume,
//! a line for each mail and each recipient. Bounds: [`LIST_BYTES_MAX`], and the time for which the process waits.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::{JoinHandle, JoinSet};

use crate::relay::{Fate, Outcome, Sending};

/// Bytes of a list that are read: many times what the mails under way at a time take.
const LIST_BYTES_MAX: u64 = 8 << 20;

/// Lists that are looked at: processes that end at a time.
const LISTS_MAX: usize = 100;

/// A mail that was sent, and has no answer yet.
pub(crate) struct Left {
    pub mail: u32,
    pub destination: String,
    pub recipients: Vec<String>,
    pub sending: Sending,
}

impl std::fmt::Debug for Left {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Left").field("mail", &self.mail).finish_non_exhaustive()
    }
}

/// The lists beside a volume.
#[derive(Debug, Clone)]
pub struct Leavings(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The beginning of their names.
    name: PathBuf,
    /// How long answers are waited for.
    wait: Duration,
    hands_over: AtomicBool,
    waiting: Mutex<Option<JoinHandle<()>>>,
}

impl Leavings {
    /// The lists beside a volume, and how long a process that ends waits for answers.
    pub fn beside(volume: &Path, wait: Duration) -> Leavings {
        let mut name = volume.as_os_str().to_owned();
        name.push(".sent.");
        let (hands_over, waiting) = (AtomicBool::new(false), Mutex::default());
        Leavings(Arc::new(Inner { name: name.into(), wait, hands_over, waiting }))
    }

    /// From here on another process is there to take over: answers that are late are left to it.
    pub fn hand_over(&self) {
        self.0.hands_over.store(true, Relaxed);
    }

    pub(crate) fn hands_over(&self) -> bool {
        self.0.hands_over.load(Relaxed)
    }

    /// Waits until the answers that were left to this are on the list, or are late.
    pub async fn finish(&self) {
        let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            let _ = waiting.await;
        }
    }

    /// Lists mails, and goes on to wait for their answers.
    pub(crate) fn leave(&self, left: Vec<Left>) -> io::Result<()> {
        let file = self.begin(&left)?;
        let wait = self.0.wait;
        let waiting = tokio::spawn(async move {
            let mut answers = JoinSet::new();
            for Left { mail, recipients, sending, .. } in left {
                answers.spawn(async move { (mail, recipients, tokio::time::timeout(wait, sending).await) });
            }
            while let Some(answer) = answers.join_next().await {
                let Ok((mail, recipients, Ok(report))) = answer else { continue };
                let fates = recipients.iter().zip(&report.fates);
                let lines = String::from_iter(fates.map(|(to, fate)| line(mail, to, fate)));
                if let Err(error) = (&file).write_all(lines.as_bytes()) {
                    tracing::warn!(mail, %error, "the answer to a mail cannot be left to the next process");
                }
            }
        });
        *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting);
        Ok(())
    }

    fn begin(&self, left: &[Left]) -> io::Result<File> {
        let mut path = self.0.name.as_os_str().to_owned();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        path.push(format!("{}.{now}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.try_lock().map_err(io::Error::from)?;
        let lines = left.iter().map(|left| format!("sent\t{}\t{}\n", left.mail, plain(&left.destination)));
        file.write_all(String::from_iter(lines).as_bytes())?;
        Ok(file)
    }

    /// The lists of processes before this one.
    pub(crate) fn found(&self) -> Vec<List> {
        let (Some(folder), Some(name)) = (self.0.name.parent(), self.0.name.file_name()) else { return Vec::new() };
        let entries = fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
        let is_list = |path: &PathBuf| {
            path.file_name().is_some_and(|one| one.as_encoded_bytes().starts_with(name.as_encoded_bytes()))
        };
        let paths = entries.map(|entry| entry.path()).filter(is_list).take(LISTS_MAX);
        paths.filter_map(|path| List::open(path).ok()).collect()
    }
}

/// A list of another process.
#[derive(Debug)]
pub(crate) struct List {
    path: PathBuf,
    file: File,
    /// Its mails and their destinations.
    pub sent: Vec<(u32, String)>,
}

/// The fates of recipients, by mail.
pub(crate) type Answers = BTreeMap<u32, Vec<(String, Fate)>>;

impl List {
    fn open(path: PathBuf) -> io::Result<List> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let mut list = List { path, file, sent: Vec::new() };
        let text = list.text()?;
        list.sent = text.lines().filter_map(sent).collect();
        Ok(list)
    }

    fn text(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(&self.path)?.take(LIST_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The answers, if its process has let go of it. It stays locked by this one then.
    pub fn answers(&self) -> Option<Answers> {
        match self.file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => None,
            Err(fs::TryLockError::Error(_)) => Some(Answers::new()),
            Ok(()) => {
                let mut answers = Answers::new();
                for (mail, to, fate) in self.text().unwrap_or_default().lines().filter_map(fate) {
                    answers.entry(mail).or_default().push((to, fate));
                }
                Some(answers)
            }
        }
    }

    /// Removes it: its answers are in the store.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn sent(line: &str) -> Option<(u32, String)> {
    let (mail, destination) = line.strip_prefix("sent\t")?.split_once('\t')?;
    Some((mail.parse().ok()?, destination.to_owned()))
}

fn line(mail: u32, to: &str, fate: &Fate) -> String {
    let Fate { outcome, status: (class, subject, detail), why, host, host_notifies } = fate;
    let outcome = match outcome {
        Outcome::Taken => "taken",
        Outcome::Later => "later",
        Outcome::Never => "never",
    };
    let (to, host, why) = (plain(to), plain(host.as_deref().unwrap_or_default()), plain(why));
    format!("fate\t{mail}\t{to}\t{outcome}\t{class}.{subject}.{detail}\t{host}\t{host_notifies}\t{why}\n")
}

fn fate(line: &str) -> Option<(u32, String, Fate)> {
    let mut parts = line.strip_prefix("fate\t")?.splitn(7, '\t');
    let (mail, to) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
    let outcome = match parts.next()? {
        "taken" => Outcome::Taken,
        "later" => Outcome::Later,
        "never" => Outcome::Never,
        _ => return None,
    };
    let mut status = parts.next()?.splitn(3, '.');
    let status = (status.next()?.parse().ok()?, status.next()?.parse().ok()?, status.next()?.parse().ok()?);
    let host = Some(parts.next()?.to_owned()).filter(|host| !host.is_empty());
    let host_notifies = parts.next()? == "true";
    Some((mail, to, Fate { outcome, status, why: parts.next()?.to_owned(), host, host_notifies }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_left() {
        let taken =
            Fate { outcome: Outcome::Taken, host: Some("mx.test".into()), ..Fate::later((2, 0, 0), "250 a\tb") };
        let never = Fate { host_notifies: true, ..Fate::never((5, 1, 1), "") };
        let read = |one: &Fate| fate(line(7, "a@b.test", one).trim_end_matches('\n'));
        assert_eq!(read(&taken), Some((7, "a@b.test".into(), Fate { why: "250 a b".into(), ..taken })));
        assert_eq!(read(&never), Some((7, "a@b.test".into(), never)));
        assert_eq!(sent("sent\t7\tb.test"), Some((7, "b.test".into())));
        for torn in ["", "sent\t7", "fate\t7\ta@b.test\ttaken", "fate\t7\ta\tsome\t2.0.0\t\tfalse\tx", "fate\tx"] {
            assert!(sent(torn).is_none() && fate(torn).is_none(), "{torn}");
        }
    }
}
