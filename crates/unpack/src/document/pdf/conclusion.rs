//! The end of a document: what could not be known in passing is read again, and faults are reported.

use stream::{Class, ReadAt};

use super::again::Begins;
use super::mark::Mark;
use super::object::Object;
use super::{Pdf, State};
use crate::frame::keys::{Judgement, Tried};
use crate::frame::password::TOO_COSTLY;
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox};

impl Pdf {
    /// Ends what is half read; whether that is done.
    fn wind_up(&mut self, outbox: &mut Outbox) -> bool {
        match std::mem::replace(&mut self.state, State::Words) {
            State::Words | State::LineEnd(_) => {
                self.here = self.at;
                self.end_string(outbox);
                self.end_object();
                self.lexer.reset();
                true
            }
            State::Data(data) if !data.extent.released().is_empty() => {
                self.data(data, b"", outbox);
                false
            }
            State::Data(data) => {
                self.state = State::Rest(data);
                false
            }
            State::Rest(data) => {
                self.rest(data, outbox);
                false
            }
        }
    }

    /// Reads on in what is read again.
    pub(super) fn reread(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        let mut piece = [0; CONTENT_BYTES];
        let is_within = self.object.is_some() || !matches!(self.state, State::Words);
        let count = self.again.read(kept, self.at, is_within, &mut piece);
        if count > 0 {
            let taken = self.piece(&piece[..count], outbox);
            outbox.worked(taken);
            return Ended::More;
        }
        if !self.wind_up(outbox) {
            return Ended::More;
        }
        self.again.ended(self.at);
        // What is read again may have the trailer, with the first sign of it or the identifier.
        let waits = !self.known.has_identifier() && self.again.has_next();
        if self.known.is_encrypted() && !self.is_decided && !waits {
            self.decrypt(outbox);
            return Ended::More;
        }
        match self.again.next() {
            None => return self.conclude(outbox),
            Some((start, begins)) => {
                (self.at, self.here) = (start, start);
                self.mark = Mark::default();
                match begins {
                    Begins::Words => {}
                    Begins::Data(object) => self.begin_data(object, start, outbox),
                    Begins::Marked(marked) => self.object = Some(Box::new(Object::new(marked.id()))),
                }
            }
        }
        Ended::More
    }

    /// Tries a password. If it opens the encrypted document, all of it is read again.
    fn decrypt(&mut self, outbox: &mut Outbox) {
        let mut work = 0;
        let tried = match self.known.locked() {
            Some(locked) => self.keys.attempt(&locked, &mut work, |_| Judgement::Right),
            None => Tried::Closed,
        };
        outbox.worked(work);
        if matches!(tried, Tried::More) {
            return;
        }
        self.is_decided = true;
        self.faults.clear();
        if let Tried::Found(key) = tried {
            self.key = Some(key);
            return self.again.everything();
        }
        self.again.forget();
        if matches!(tried, Tried::Refused) {
            self.fault(TOO_COSTLY.class, TOO_COSTLY.name, 0);
        }
        self.fault(Class::Encrypted, "Heuristics.Encrypted.Pdf", 0);
    }

    fn conclude(&mut self, outbox: &mut Outbox) -> Ended {
        if let Some(at) = self.again.missed() {
            self.fault(Class::Limit, "Heuristics.Limits.Exceeded.PdfSpool", at);
        }
        for (class, name, offset) in std::mem::take(&mut self.faults) {
            outbox.finding(class, name, offset);
        }
        Ended::Done
    }
}
