//! The host's side of a template: the process that jails are copies of (see [`start`](crate::start)).

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stream::Limits;

use crate::launch::{Launch, Launched};
use crate::patience::give_way;
use crate::protocol::{Place, Request, Start};
use crate::start::send;

/// How long an answer may take: signatures are mapped and rules read before the first.
pub const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Signatures as they are handed to jails: compiled, in files.
pub struct Signatures {
    /// The compiled signatures.
    pub base: OwnedFd,
    /// What lies over them, and the files whose signatures of before are not in force any more.
    pub overlay: Option<(OwnedFd, Vec<Box<str>>)>,
    /// Whether some of them may take back what was reported.
    pub takes_back: bool,
    /// The time, in seconds since 1970.
    pub now: i64,
    /// Rules to score mails with: an [`inspect::RuleFiles`] in its byte form.
    pub rules: Option<OwnedFd>,
}

impl Signatures {
    /// The files, in the order in which a template expects them.
    fn files(&self) -> Vec<BorrowedFd<'_>> {
        let overlay = self.overlay.as_ref().map(|(overlay, _)| overlay);
        [Some(&self.base), overlay, self.rules.as_ref()].into_iter().flatten().map(AsFd::as_fd).collect()
    }

    /// What a template is told.
    fn start(&self, limits: Limits) -> Start {
        Start {
            limits,
            has_overlay: self.overlay.is_some(),
            replaced: self.overlay.as_ref().map_or_else(Vec::new, |(_, replaced)| replaced.clone()),
            now: self.now,
            has_rules: self.rules.is_some(),
        }
    }
}

/// A template, that ends when nobody has it any more, and all its copies with it.
pub struct Template {
    /// One request at a time.
    way: Mutex<UnixStream>,
    launched: Box<dyn Launched>,
}

impl Template {
    /// Starts one, and waits until it has read what it is handed.
    ///
    /// # Errors
    /// When that fails.
    pub fn start(launch: &dyn Launch, limits: Limits, signatures: &Signatures) -> io::Result<Template> {
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER_WAIT))?;
        // A process has the policy of the thread that starts it.
        give_way(0);
        let mut launched = launch.launch(theirs.into())?;
        let read = send(&ours, &signatures.start(limits), &signatures.files()).and_then(|()| ours.read_exact(&mut [0]));
        match read {
            Ok(()) => Ok(Template { way: Mutex::new(ours), launched }),
            Err(error) => Err(io::Error::other(format!("an inspection process: {error} ({})", launched.end()))),
        }
    }

    /// One more jail, and its process.
    ///
    /// # Errors
    /// When the template is gone, or has no more memory.
    pub fn copy(self: &Arc<Template>, place: Place, descriptors: &[BorrowedFd<'_>]) -> io::Result<Copied> {
        let answer = self.ask(&Request::Copy(place), descriptors)?;
        let pid = u32::try_from(answer).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Copied { template: self.clone(), pid })
    }

    fn ask(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<i32> {
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = [0; 4];
        send(&way, request, descriptors)?;
        (&*way).read_exact(&mut answer)?;
        Ok(i32::from_le_bytes(answer))
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        let _ = self.launched.end();
    }
}

/// A jail that was started.
pub struct Copied {
    /// What it is a copy of.
    pub template: Arc<Template>,
    pid: u32,
}

impl Copied {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// Ends it, if it has not ended by itself, and says how it has; an error if its template is gone, and it with that.
    pub fn end(&self) -> io::Result<String> {
        let status = self.template.ask(&Request::End(self.pid), &[])?;
        Ok(ExitStatus::from_raw(status).to_string())
    }
}
