//! The folders of a 7z archive, and the files in them: each by its name, whether its content can be had or not.

use stream::{Class, Entry, Kind, Limits, Object, ReadAt};
use zlib_rs::crc32::crc32;

use super::aes::Properties;
use super::attempt;
use super::header::{Folder, Header};
use super::judge;
use super::pull::{DATA, Pull, Read};
use super::source::{self, Source};
use crate::frame::codec::Fault;
use crate::frame::keys::{Keys, Tried};
use crate::frame::password::TOO_COSTLY;
use crate::frame::reader::{CONTENT_BYTES, Outbox};

const CRC: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.SevenZip.Crc");

/// The place among folders and files.
pub(super) struct Folders {
    header: Header,
    folder: usize,
    file: usize,
    /// The stream within the folder.
    stream: usize,
    source: Option<Source>,
    /// The file that is open: bytes left of it, its checksum so far.
    open: Option<(u64, u32)>,
    /// Packed streams to be emitted raw.
    raw: Vec<(u64, u64)>,
    /// Files of the folder that cannot be opened, whose names are still to be emitted; the folder comes after them.
    lost: usize,
    /// Whether the raw streams have their name, if they have one.
    is_raw_named: bool,
}

impl Folders {
    pub fn new(header: Header) -> Folders {
        Folders {
            header,
            folder: 0,
            file: 0,
            stream: 0,
            source: None,
            open: None,
            raw: Vec::new(),
            lost: 0,
            is_raw_named: false,
        }
    }

    /// Emits the next thing; whether there is more.
    pub fn turn(
        &mut self,
        limits: &Limits,
        keys: &mut Keys<Properties>,
        kept: &dyn ReadAt,
        at: u64,
        outbox: &mut Outbox,
    ) -> bool {
        if let Some((left, crc)) = self.open {
            self.content(left, crc, kept, at, outbox);
            return true;
        }
        let is_empty = self.header.files.get(self.file).is_some_and(|file| !file.has_content);
        if self.lost > 0 && is_empty && !outbox.is_open() {
            if self.empty_file(limits, outbox) && outbox.is_open() {
                outbox.close();
            }
            return true;
        }
        if let Some((raw_at, left)) = self.raw.pop() {
            self.raw(raw_at, left, limits, kept, outbox);
            return true;
        }
        if outbox.is_open() {
            outbox.close();
            return true;
        }
        if self.lost > 0 {
            self.lost_file(None, limits, outbox);
            return true;
        }
        let Some(folder) = self.header.folders.get(self.folder) else {
            return self.empty_file(limits, outbox);
        };
        let Some(&(size, _)) = folder.streams.get(self.stream) else {
            self.next_folder();
            return true;
        };
        if self.source.is_none() {
            match self.unlock(limits, keys, kept, at, outbox) {
                None => return true,
                Some(Ok(source)) => self.source = Some(source),
                Some(Err(fault)) => {
                    self.give_up(fault, at, outbox);
                    return true;
                }
            }
        }
        while self.header.files.get(self.file).is_some_and(|file| !file.has_content) {
            if self.empty_file(limits, outbox) && outbox.is_open() {
                return true;
            }
        }
        let object = self.next_file(Some(size), limits);
        outbox.open(object);
        self.open = Some((size, 0));
        true
    }

    fn next_folder(&mut self) {
        (self.folder, self.stream, self.source) = (self.folder + 1, 0, None);
    }

    /// The folder's content, or why it cannot be had; `None` while passwords are tried.
    fn unlock(
        &mut self,
        limits: &Limits,
        keys: &mut Keys<Properties>,
        kept: &dyn ReadAt,
        at: u64,
        outbox: &mut Outbox,
    ) -> Option<Result<Source, Fault>> {
        let folder = self.header.folders.get(self.folder)?;
        if !folder.is_encrypted() {
            return Some(Source::of(folder, limits, None));
        }
        match attempt(folder, judge::judge, keys, limits, kept, outbox) {
            Tried::More => None,
            Tried::Found(key) => Some(Source::of(folder, limits, Some(&key))),
            Tried::Closed => Some(Err(source::ENCRYPTED)),
            Tried::Refused => {
                outbox.finding(TOO_COSTLY.class, TOO_COSTLY.name, at);
                Some(Err(source::ENCRYPTED))
            }
        }
    }

    /// The next file, whatever its name.
    fn next_file(&mut self, size: Option<u64>, limits: &Limits) -> Object {
        let stream = self.header.folders.get(self.folder).and_then(|folder| folder.streams.get(self.stream));
        let crc32 = stream.and_then(|(_, crc)| *crc).filter(|_| size.is_some_and(|size| size > 0));
        let name = self.header.files.get(self.file).map(|file| {
            let units = &file.name[..file.name.len().min(limits.name_bytes_max as usize / 3)];
            String::from_utf16_lossy(units).into()
        });
        self.file += 1;
        let entry = size.map(|size| Box::new(Entry { size: Some(size), crc32, ..Entry::default() }));
        Object { kind: Kind::Member, name, size, entry, ..Object::default() }
    }

    /// Opens the next file of a folder that cannot be opened, with its packed bytes at `raw_offset` or without content.
    fn lost_file(&mut self, raw_offset: Option<u64>, limits: &Limits, outbox: &mut Outbox) {
        self.lost -= 1;
        let is_encrypted = self.header.folders.get(self.folder).is_some_and(Folder::is_encrypted);
        let size = self.header.folders.get(self.folder).and_then(|folder| folder.streams.get(self.stream));
        let mut object = self.next_file(size.map(|&(size, _)| size), limits);
        if let Some(entry) = &mut object.entry {
            entry.encrypted = is_encrypted;
        }
        outbox.open(Object { size: None, raw_offset, ..object });
        self.stream += 1;
    }

    /// Passes a folder, or opens a file without content; whether there was one.
    fn empty_file(&mut self, limits: &Limits, outbox: &mut Outbox) -> bool {
        let Some(file) = self.header.files.get(self.file) else {
            return false;
        };
        if file.is_folder || file.has_content {
            self.file += 1;
        } else {
            let object = self.next_file(Some(0), limits);
            outbox.open(object);
        }
        true
    }

    fn content(&mut self, left: u64, crc: u32, kept: &dyn ReadAt, at: u64, outbox: &mut Outbox) {
        let told = self.header.folders.get(self.folder).and_then(|folder| folder.streams.get(self.stream));
        if left == 0 {
            if told.and_then(|(_, told)| *told).is_some_and(|told| told != crc) {
                outbox.finding(CRC.class, CRC.name, at);
                self.doubt_key(&CRC, at, outbox);
            }
            outbox.close();
            self.open = None;
            self.stream += 1;
            return;
        }
        let mut piece = [0; CONTENT_BYTES];
        let wanted = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        let read = match &mut self.source {
            Some(source) => source.read(kept, &mut piece[..wanted]),
            None => Ok(Read::End),
        };
        match read {
            Ok(Read::Some(count)) => {
                outbox.content(&piece[..count]);
                self.open = Some((left - count as u64, crc32(crc, &piece[..count])));
            }
            Ok(Read::Later) => outbox.worked(CONTENT_BYTES),
            Ok(Read::End) => self.give_up(DATA, at, outbox),
            Err(fault) => self.give_up(fault, at, outbox),
        }
    }

    /// The rest of the folder cannot be had: its packed streams are emitted raw.
    fn give_up(&mut self, fault: Fault, at: u64, outbox: &mut Outbox) {
        outbox.finding(fault.class, fault.name, at);
        // The file that is open has had its name.
        self.is_raw_named = self.open.take().is_some();
        self.stream += usize::from(self.is_raw_named);
        if outbox.is_open() {
            outbox.close();
        }
        self.doubt_key(&fault, at, outbox);
        let Some(folder) = self.header.folders.get(self.folder) else {
            return;
        };
        self.raw = folder.packed.iter().rev().copied().collect();
        self.lost = folder.streams.len() - self.stream.min(folder.streams.len());
        self.source = None;
    }

    /// Malformed content of an encrypted folder may have been decrypted with a wrong key.
    fn doubt_key(&self, fault: &Fault, at: u64, outbox: &mut Outbox) {
        let is_encrypted = self.header.folders.get(self.folder).is_some_and(Folder::is_encrypted);
        if is_encrypted && fault.class == Class::Malformed {
            outbox.finding(source::ENCRYPTED.class, source::ENCRYPTED.name, at);
        }
    }

    fn raw(&mut self, at: u64, left: u64, limits: &Limits, kept: &dyn ReadAt, outbox: &mut Outbox) {
        if !outbox.is_open() {
            match self.lost > 0 && !std::mem::replace(&mut self.is_raw_named, true) {
                true => self.lost_file(Some(at), limits, outbox),
                false => outbox.open(Object { kind: Kind::Member, raw_offset: Some(at), ..Object::default() }),
            }
            self.raw.push((at, left));
            return;
        }
        let mut piece = [0; CONTENT_BYTES];
        let wanted = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        let count = kept.read_at(at, &mut piece[..wanted]);
        outbox.content(&piece[..count]);
        if count > 0 && left > count as u64 {
            self.raw.push((at + count as u64, left - count as u64));
        } else {
            outbox.close();
        }
    }
}
