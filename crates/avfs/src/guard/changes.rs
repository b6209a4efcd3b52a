//! Holds the changes of an open file back in its overlay, until their verdict brings them to the file below or drops them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Guard, Open, Refusal, TRIES};
use crate::judge::{self, Generation, Hit, Unjudged};
use crate::node::{Content, Known, Mode, Node, OnInfected, Stamp, facts};
use crate::overlay::{Overlay, Stream, errno};
use crate::reading::{Held, Pending};
use crate::who::Who;

/// Files that are inspected while they are written, at a time.
const STREAMS_MAX: usize = 64;

impl Guard {
    /// Writes to an open file.
    ///
    /// # Errors
    /// When a hit is known by then, or there is no room.
    pub fn write(&self, open: Open<'_>, data: &[u8], offset: u64, who: Who) -> Result<(), Refusal> {
        let Open { node, below, .. } = open;
        if let Some(done) = self.directly(open, || below.write_all_at(data, offset).map_err(errno))? {
            return Ok(done);
        }
        let mut content = node.content_mut();
        if content.drops(open.share) {
            return Ok(());
        }
        let (overlay, mode) = self.overlay(&mut content, node, below, who)?;
        let begins = mode == Mode::Regular && overlay.base() == 0 && overlay.size() == 0 && offset == 0;
        if let Some(current) = self.current().filter(|_| begins) {
            overlay.stream = Stream::begin(&current, &self.streams, STREAMS_MAX);
        }
        overlay.write(below, data, offset)?;
        let (Some(mut stream), version) = (overlay.stream.take(), overlay.version()) else { return Ok(()) };
        // Others may look at the file while the inspection takes its time.
        drop(content);
        let fed = {
            let _waits = self.front.enter();
            stream.feed(data, offset)
        };
        let mut content = node.content_mut();
        // Whatever was changed meanwhile, no stream has seen: the whole is inspected when it is complete.
        let Some(overlay) = content.overlay.as_mut().filter(|overlay| overlay.version() == version) else {
            return Ok(());
        };
        match fed {
            Ok(None) => {
                overlay.stream = Some(stream);
                Ok(())
            }
            // All of it is evidence: its writer goes on, and it is inspected once more when it is complete.
            Ok(Some(_)) if content.on_infected == OnInfected::Deferred => Ok(()),
            Ok(Some(hit)) => {
                let outcome = (stream.generation, Ok(Some(hit)));
                self.conclude(node, &mut content, below, outcome, "write", who)
            }
            Err(_) => Ok(()),
        }
    }

    /// The overlay of a file from here on, and when it is inspected.
    fn overlay<'a>(
        &self,
        content: &'a mut Content,
        node: &Node,
        below: &File,
        who: Who,
    ) -> Result<(&'a mut Overlay, Mode), Refusal> {
        if content.overlay.is_none() {
            let (size, ruling) = (facts(below)?.stx_size, self.ruling(node, below, who));
            content.overlay = Some(Box::new(Overlay::new(&self.staging, size)?));
            (content.mode, content.on_infected) = (ruling.mode, ruling.on_infected);
        }
        let mode = content.mode;
        Ok((content.overlay.as_deref_mut().ok_or(Refusal::Failed(Errno::IO))?, mode))
    }

    /// Changes the file below at once, where nothing is inspected: not at all, or nothing of this opening. What others have
    /// written and waits gets its verdict with what is changed here.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn directly<T>(
        &self,
        open: Open<'_>,
        change: impl FnOnce() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<Option<T>> {
        if !self.inspects() {
            return change().map(Some);
        }
        if !open.skips {
            return Ok(None);
        }
        let mut content = open.node.content_mut();
        if content.overlay.is_some() {
            return Ok(None);
        }
        let stamp = Stamp::of_file(open.below)?;
        // By whatever signatures: these may be in force again.
        if content.was_clean(&stamp) | self.verdicts.forget(open.node.inode) {
            stamp.outlast();
        }
        content.known = None;
        content.is_cached = false;
        change().map(Some)
    }

    /// Changes the content in another way than by writing.
    ///
    /// # Errors
    /// As `change` does, or when there is no room.
    pub fn change(
        &self,
        open: Open<'_>,
        who: Who,
        change: impl FnOnce(&mut Overlay) -> rustix::io::Result<()>,
    ) -> Result<(), Refusal> {
        let mut content = open.node.content_mut();
        if content.drops(open.share) {
            return Ok(());
        }
        Ok(change(self.overlay(&mut content, open.node, open.below, who)?.0)?)
    }

    /// Gets a verdict on pending changes: they come to the file below, or are dropped.
    ///
    /// # Errors
    /// When it was dropped, or has no verdict, or there is no room below; then it still waits.
    pub fn settle(&self, node: &Node, below: &File, operation: &str, who: Who) -> Result<(), Refusal> {
        let Some(current) = self.current() else { return Ok(()) };
        let generation = current.generation;
        if node.content().overlay.is_none() {
            return Ok(());
        }
        let _waits = self.front.enter();
        let _turn = node.inspected();
        // Reading what shows of it is not its user's reading.
        let quiet = node.open(OFlags::RDONLY | OFlags::NOATIME).ok();
        let quiet = quiet.as_ref().unwrap_or(below);
        for _ in 0..TRIES {
            let was = Stamp::of_file(below)?;
            let lies_on_unknown = {
                let content = node.content();
                let Some(overlay) = &content.overlay else { return Ok(()) };
                overlay.base() > 0 && Self::known(&content, &was, generation) != Some(Known::Clean)
            };
            if lies_on_unknown {
                was.outlast();
            }
            let (version, stream, size) = {
                let mut content = node.content_mut();
                let Some(overlay) = &mut content.overlay else { return Ok(()) };
                (overlay.version(), overlay.stream.take(), overlay.size())
            };
            let stream = stream.filter(|stream| stream.generation == generation);
            let pending = || Pending { node, below: quiet, version, at: 0 };
            let (outcome, sum) = match stream.and_then(|stream| stream.finish(size)) {
                Some(outcome) => (outcome, None),
                None => match self.inspect(&current, size, pending(), pending) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    inspected => inspected.map_err(errno)?,
                },
            };
            let mut content = node.content_mut();
            match &content.overlay {
                None => return Ok(()),
                // What it lies over may be changed by others, behind the mount.
                Some(overlay) if overlay.version() != version || Stamp::of_file(below)? != was => continue,
                Some(_) => {
                    if let (Some(sum), Ok(None)) = (&sum, &outcome) {
                        self.verdicts.add_content(size, sum, generation);
                    }
                    return self.conclude(node, &mut content, below, (generation, outcome), operation, who);
                }
            }
        }
        let mut content = node.content_mut();
        let Some(overlay) = &content.overlay else { return Ok(()) };
        let was = Stamp::of_file(below)?;
        let mut outcome = judge::whole(&*current.judge, Held { overlay, below: quiet, at: 0 }).map_err(errno)?;
        if Stamp::of_file(below)? != was {
            outcome = Err(Unjudged("it changes all the time".into()));
        }
        self.conclude(node, &mut content, below, (generation, outcome), operation, who)
    }

    fn conclude(
        &self,
        node: &Node,
        content: &mut Content,
        below: &File,
        (generation, outcome): (Generation, Result<Option<Hit>, Unjudged>),
        operation: &str,
        who: Who,
    ) -> Result<(), Refusal> {
        let Some(overlay) = &content.overlay else { return Ok(()) };
        let hit = match outcome {
            Err(why) => return Err(self.unjudged(node, &why, who)),
            Ok(hit) => hit,
        };
        let Some(hit) = hit else {
            content.known = None;
            // Whoever asks may have it open for reading.
            let below = node.open(OFlags::RDWR)?;
            overlay.commit(&below)?;
            content.overlay = None;
            content.is_tainted = false;
            let stamp = Stamp::of_file(&below)?;
            content.learn(stamp, generation, Known::Clean);
            self.verdicts.add(node.inode, &stamp, generation);
            return Ok(());
        };
        let before = facts(below).is_ok_and(|facts| facts.stx_size > 0);
        let before = before.then(|| node.open(OFlags::RDONLY | OFlags::NOATIME).ok()).flatten();
        let evidence = Held { overlay, below, at: 0 };
        self.report(node, &hit, operation, who, Some(evidence), before);
        self.take_back(node, content);
        if content.on_infected == OnInfected::Deferred { Ok(()) } else { Err(Refusal::Infected) }
    }

    /// Drops what waits.
    fn take_back(&self, node: &Node, content: &mut Content) {
        content.overlay = None;
        match content.on_infected {
            OnInfected::Immediate => content.taken_back += 1,
            OnInfected::Deferred => content.withheld += 1,
        }
        content.is_tainted = true;
        content.is_cached = false;
        let _ = self.stale.send(node.id);
    }

    /// The last who had a file open for writing has closed it: nothing waits any longer.
    pub fn release(&self, node: &Node, below: &File, who: Who) {
        let handles = match &*node.content() {
            content if content.overlay.is_some() && self.inspects() => content.handles,
            _ => return,
        };
        let is_gone = handles == 0 && facts(below).is_ok_and(|facts| facts.stx_nlink == 0);
        let outcome = if is_gone { Ok(()) } else { self.settle(node, below, "close", who) };
        let mut content = node.content_mut();
        if content.writers > 0 || content.overlay.is_none() {
            return;
        }
        if !is_gone {
            let error = outcome.err().map(|refusal| refusal.working().to_string()).unwrap_or_default();
            tracing::error!(file = self.name(node), error, "written data is lost");
            content.is_tainted = true;
        }
        content.overlay = None;
    }
}
