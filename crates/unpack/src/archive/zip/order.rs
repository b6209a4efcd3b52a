//! Records where none is being read: which may come next, and what the records at the end of an archive say.

use stream::{Class, Event, Finding, Step};

use super::directory::Directory;
use super::listed::{self, ByDirectory, Listed};
use super::member::Turn;
use super::record::{self, End, Header, Kind};
use super::tail::Tail;
use super::watch::Watch;
use super::{State, Zip};
use crate::frame::codec::{Collected, le16, le32};

/// Bytes at the end of a file in which programs look for an end record: 64 KiB of comment and the record for most, 66,560 for
/// Go, and as much again.
const END_REACH: u64 = 128 << 10;

impl Zip {
    /// Whether a search for an archive has found no part of one yet.
    const fn is_stray(&self) -> bool {
        self.searching && self.directory.is_empty() && self.listing.is_none()
    }

    /// Where the head began.
    pub(super) const fn start(&self) -> u64 {
        self.at - self.head.len() as u64
    }

    /// Whether a record of this kind would be accepted here, as far as its signature tells. Within a central header only
    /// members are of interest: names that hold other signatures are met.
    pub(super) const fn welcomes(&self, kind: Kind) -> bool {
        let expected = self.start() == self.expected_at;
        match kind {
            Kind::Local => true,
            _ if self.listing.is_some() => false,
            Kind::Central => true,
            Kind::End | Kind::Zip64End | Kind::Zip64Locator => !self.is_stray(),
            Kind::DirectorySignature | Kind::ArchiveExtra => !self.is_stray() && expected,
            Kind::Marker => expected && self.directory.is_empty() && !self.ended,
        }
    }

    /// Whether the head is a record of this kind, here.
    pub(super) fn accepts(&self, kind: Kind) -> bool {
        let (bytes, start) = (self.head.bytes(), self.start());
        let is_plausible = match kind {
            _ if start == self.expected_at => true,
            Kind::Local => record::local_is_plausible(bytes),
            Kind::Central => record::central_is_plausible(bytes),
            Kind::End => End::parse(bytes).is_plausible(start),
            Kind::Zip64End => End::zip64_bytes(bytes).is_some(),
            _ => true,
        };
        self.welcomes(kind) && is_plausible
    }

    pub(super) fn accept(&mut self, kind: Kind) -> Turn {
        if std::mem::take(&mut self.gap) {
            return Turn::Step(Step::tell(0, Event::Close));
        }
        self.listing = None;
        if kind == Kind::Local {
            self.local();
        } else {
            self.other(kind);
        }
        Turn::Again
    }

    fn local(&mut self) {
        if self.ended {
            self.second_archive();
        }
        let start = self.start();
        let head = std::mem::replace(&mut self.head, Collected::new());
        self.kept.begin(start);
        self.kept.pass(start, head.bytes());
        let tail = Tail::local(Header::local(head.bytes()), start, self.limits.name_bytes_max as usize);
        let tail = if self.searching { tail.keep(head.bytes()) } else { tail };
        self.state = State::Header(Box::new(tail));
    }

    /// Only the signature of what is no member is sure: the rest is passed quietly, and searched on the way.
    fn other(&mut self, kind: Kind) {
        const SIGNATURE: usize = 4;
        let (head, start) = (self.head.clone(), self.start());
        let bytes = head.bytes();
        let variable = match kind {
            Kind::Central => {
                let header = Header::central(bytes);
                let tail = Tail::central(header, start, self.limits.name_bytes_max as usize);
                self.listing = Some(Box::new(tail));
                u64::from(header.name_length) + u64::from(header.extra_length) + u64::from(header.comment_length)
            }
            Kind::End => {
                let end = End::parse(bytes);
                self.end_record(end);
                u64::from(end.comment_length)
            }
            Kind::Zip64End => {
                self.directory.zip64(End::parse_zip64(bytes));
                End::zip64_bytes(bytes).unwrap_or(0).saturating_sub(kind.fixed_bytes() as u64)
            }
            Kind::DirectorySignature => u64::from(le16(bytes, 4)),
            Kind::ArchiveExtra => {
                self.note(Class::Encrypted, "Heuristics.Encrypted.Zip");
                u64::from(le32(bytes, 4))
            }
            Kind::Local | Kind::Zip64Locator | Kind::Marker => 0,
        };
        self.expected_at = start + kind.fixed_bytes() as u64 + variable;
        self.quiet_until = self.quiet_until.max(self.expected_at);
        self.head.clear();
        self.give_back(&bytes[SIGNATURE..]);
    }

    fn end_record(&mut self, end: End) {
        let fresh = Directory::new(self.limits.directory_entries_max as usize);
        let nothing_new = self.directory.is_empty();
        self.watch = Watch::default();
        let directory = std::mem::replace(&mut self.directory, fresh);
        if std::mem::replace(&mut self.ended, true) {
            self.second_archive();
            if nothing_new {
                let listed = self.elsewhere(None, &end);
                return self.read_listed(listed);
            }
        }
        let is_split = end.disk > 0 && end.disk != 0xffff;
        if is_split {
            // The last volume begins in the middle of a member, so it is found by a search: it is told there too.
            let at = self.start();
            self.notes.push_back(Finding::new(Class::Truncated, "Heuristics.Truncated.ZipSplit", at));
        }
        let summary = directory.end(end);
        // What is missing lies in other volumes. Readers that know of none go by the directory all the same.
        for (class, name) in summary.remarks.into_iter().filter(|_| !is_split) {
            if self.searching && class == Class::Ambiguous {
                self.postpone(name);
            } else {
                self.note(class, name);
            }
        }
        let mut listed = summary.listed;
        listed.append(&mut self.elsewhere(summary.began, &summary.end));
        self.read_listed(listed);
    }

    /// Keeps an ambiguity until the end of the file shows whether programs find its end record. The last one of a name counts.
    fn postpone(&mut self, name: &'static str) {
        let at = self.start();
        match self.postponed.iter_mut().find(|finding| finding.name == name) {
            Some(earlier) => *earlier = Finding::new(Class::Ambiguous, name, at),
            None => self.postponed.push(Finding::new(Class::Ambiguous, name, at)),
        }
    }

    /// Moves the ambiguities to the findings. Where more data follow the end record than a program looks through for it, none
    /// opens the file as this archive, and both readings have been inspected.
    pub(super) fn note_postponed(&mut self) {
        for finding in std::mem::take(&mut self.postponed) {
            let is_in_reach = self.at.saturating_sub(finding.offset) <= END_REACH;
            let class = if is_in_reach { Class::Ambiguous } else { Class::TwoReadings };
            self.notes.push_back(Finding { class, ..finding });
        }
    }

    /// The members of the directory that readers find by the end record, unless it is the one that was seen.
    fn elsewhere(&self, seen: Option<u64>, end: &End) -> Vec<Listed> {
        let places = [self.start().checked_sub(end.directory_bytes), Some(end.directory_offset)];
        let places = places.into_iter().flatten().filter(|&place| Some(place) != seen);
        places
            .flat_map(|place| listed::directory(&self.kept, place, end, self.limits.name_bytes_max as usize))
            .collect()
    }

    fn read_listed(&mut self, listed: Vec<Listed>) {
        if !listed.is_empty() {
            self.state = State::ByDirectory(Box::new(ByDirectory::new(listed)));
        }
    }

    /// Readers that look from the end see only the last archive, streaming readers only the first.
    fn second_archive(&mut self) {
        if !self.searching && !std::mem::replace(&mut self.second_told, true) {
            self.note(Class::Ambiguous, "Heuristics.Ambiguous.Zip.TwoArchives");
        }
    }

    /// The input is over and the archive is not. Who looks for an end record all the same finds what was swallowed.
    pub(super) fn no_end_record(&mut self) {
        if std::mem::take(&mut self.watch).found() {
            self.note(Class::Ambiguous, "Heuristics.Ambiguous.Zip.Hidden");
        }
        self.note(Class::Truncated, "Heuristics.Truncated.Zip");
    }
}
