//! The host's side of a template: the process that jails are copies of (see [`start`](crate::start)).

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stream::Limits;

use crate::launch::{Launch, Launched};
use crate::patience::give_way;
use crate::protocol::{Place, Ready, Request, Start};
use crate::start::send;

/// How long the first answer may take, of a template or of a jail: signatures are mapped and rules read before it.
pub const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// How long the others may, which take a template a millisecond: somebody has stopped it.
const DEAF_FOR: Duration = Duration::from_secs(10);

/// Signatures as they are handed to jails: compiled, in files.
pub struct Signatures {
    /// The compiled signatures.
    pub base: OwnedFd,
    /// Overlay of recent signatures, and the files whose compiled signatures are disabled.
    pub overlay: Option<(OwnedFd, Vec<Box<str>>)>,
    /// Whether some of them may take back what was reported.
    pub takes_back: bool,
    /// The time, in seconds since 1970.
    pub now: i64,
    /// Rules to score mails with: an [`inspect::RuleFiles`] in its byte form.
    pub rules: Option<OwnedFd>,
    /// Phrases to score web pages with: an [`inspect::PageFiles`] in its byte form.
    pub pages: Option<OwnedFd>,
    /// Intrusion rules: an [`inspect::IntrusionFiles`] in its byte form.
    pub intrusion: Option<OwnedFd>,
}

impl Signatures {
    /// The files, in the order in which a template expects them.
    fn files(&self) -> Vec<BorrowedFd<'_>> {
        let overlay = self.overlay.as_ref().map(|(overlay, _)| overlay);
        [Some(&self.base), overlay, self.rules.as_ref(), self.pages.as_ref(), self.intrusion.as_ref()]
            .into_iter()
            .flatten()
            .map(AsFd::as_fd)
            .collect()
    }

    /// Start message for a template.
    fn start(&self, limits: Limits) -> Start {
        Start {
            limits,
            has_overlay: self.overlay.is_some(),
            replaced: self.overlay.as_ref().map_or_else(Vec::new, |(_, replaced)| replaced.clone()),
            now: self.now,
            has_rules: self.rules.is_some(),
            has_pages: self.pages.is_some(),
            has_intrusion: self.intrusion.is_some(),
        }
    }
}

/// A template, that ends when nobody has it any more or it does not answer, and all its copies with it.
pub struct Template {
    /// The connection to the template, for one request at a time.
    way: Mutex<UnixStream>,
    /// None once it was ended: whoever has started it says only once how.
    launched: Mutex<Option<Box<dyn Launched>>>,
    /// Its message when it was ready.
    ready: Ready,
}

impl Template {
    /// Starts one, and waits until it has read what it is handed.
    ///
    /// # Errors
    /// When that fails.
    pub fn start(launch: &dyn Launch, limits: Limits, signatures: &Signatures) -> io::Result<Template> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER_WAIT))?;
        ours.set_write_timeout(Some(ANSWER_WAIT))?;
        // A process has the policy of the thread that starts it.
        give_way(0);
        let launched = Mutex::new(Some(launch.launch(theirs.into())?));
        let mut template = Template { way: Mutex::new(ours), launched, ready: Ready { pid: 0, resident_bytes: 0 } };
        let read = template.read(&signatures.start(limits), signatures);
        template.ready = read.map_err(|error| template.failed(&error))?;
        Ok(template)
    }

    fn read(&self, start: &Start, signatures: &Signatures) -> io::Result<Ready> {
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        send(&way, start, &signatures.files())?;
        let mut ready = [0; Ready::BYTES];
        (&*way).read_exact(&mut ready)?;
        way.set_read_timeout(Some(DEAF_FOR))?;
        Ok(Ready::of(ready))
    }

    /// Its message when it was ready.
    pub fn ready(&self) -> Ready {
        self.ready
    }

    /// Describes a failure, with the way the process has ended.
    fn failed(&self, error: &io::Error) -> io::Error {
        let status = self.end().unwrap_or_else(|| "ended before".into());
        let why = match error.kind() {
            io::ErrorKind::WouldBlock => "no answer".into(),
            _ => error.to_string(),
        };
        io::Error::other(format!("the template of inspection processes: {why} ({status})"))
    }

    /// Ends it, and says how it has ended, to whoever is the first to want that.
    fn end(&self) -> Option<String> {
        let launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner).take();
        // It ends by itself, too, where whoever ends it may not do that to a process.
        let _ = self.way.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
        launched.map(|mut launched| launched.end())
    }

    /// Whether it was ended.
    pub fn is_lost(&self) -> bool {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// One more jail, and its process.
    ///
    /// # Errors
    /// When the template is lost; or when there can be no more processes, which it survives.
    pub fn copy(self: &Arc<Template>, place: Place, descriptors: &[BorrowedFd<'_>]) -> io::Result<Copied> {
        let answer = self.ask(&Request::Copy(place), descriptors)?;
        let pid = u32::try_from(answer).map_err(|_| io::Error::from_raw_os_error(answer.saturating_neg()))?;
        Ok(Copied { template: self.clone(), pid })
    }

    /// An answer; a template that gives none is ended.
    fn ask(&self, request: &Request, descriptors: &[BorrowedFd<'_>]) -> io::Result<i32> {
        let mut answer = [0; 4];
        let asked = {
            let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = send(&way, request, descriptors).and_then(|()| (&*way).read_exact(&mut answer));
            // What it says later would be taken for the answer to another.
            asked.inspect_err(|_| _ = way.shutdown(Shutdown::Both))
        };
        asked.map_err(|error| self.failed(&error))?;
        Ok(i32::from_le_bytes(answer))
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        self.end();
    }
}

/// A jail that was started.
pub struct Copied {
    /// Template that it is a copy of.
    template: Arc<Template>,
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
