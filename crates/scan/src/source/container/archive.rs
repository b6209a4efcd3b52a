//! The members of a container's body: a tar archive, in the clear or in gzip, read on the stream.
//!
//! Bounds: what it unpacks to, the number of members, and the windows between the two readers. Whatever either reader
//! finds wrong makes the container unreadable: there is no second guess about signatures.

use stream::{Event, FileType, Fuel, Limits, Note, Nothing, Stage, Window};

/// The most bytes that a body may unpack to.
pub(super) const UNPACKED_BYTES_MAX: u64 = 4 << 30;
/// The most members.
const MEMBERS_MAX: usize = 512;
const WINDOW_BYTES: usize = 64 << 10;

/// Piece of a member.
pub(super) enum Piece<'a> {
    Open(&'a str),
    Bytes(&'a [u8]),
    Close,
}

type Sink<'s> = dyn FnMut(Piece<'_>) -> Result<(), String> + 's;

/// Tells the members of `body` to `sink`.
pub(super) fn unpack(body: &[u8], sink: &mut Sink<'_>) -> Result<(), String> {
    let limits = Limits::default();
    let reader = |file_type| {
        unpack::reader(file_type, &limits, &unpack::Passwords::default())
            .ok_or_else(|| "no reader for archives".to_owned())
    };
    let mut members = 0;
    let mut unpacked = 0;
    let mut counted = |piece: Piece<'_>| {
        members += usize::from(matches!(piece, Piece::Open(_)));
        if members > MEMBERS_MAX {
            return Err(format!("more than {MEMBERS_MAX} members"));
        }
        sink(piece)
    };
    let mut tar = Driven::new(reader(FileType::Tar)?);
    if body.starts_with(&[0x1f, 0x8b]) {
        let mut gzip = Driven::new(reader(FileType::Gzip)?);
        let mut each = |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => {
                unpacked += bytes.len() as u64;
                if unpacked > UNPACKED_BYTES_MAX {
                    return Err(format!("it unpacks to more than {UNPACKED_BYTES_MAX} bytes"));
                }
                tar.step(bytes, &mut counted)
            }
            _ => Ok(()),
        };
        gzip.step(body, &mut each)?;
        gzip.finish(&mut each)?;
    } else {
        tar.step(body, &mut counted)?;
    }
    tar.finish(&mut counted)
}

/// Members of an archive with their names, as it has them; a tar archive, in the clear or in gzip.
///
/// # Errors
/// When it is damaged, has too many members, or their content is more than so many bytes.
pub fn members(archive: &[u8], bytes_max: u64) -> Result<Vec<(String, Vec<u8>)>, String> {
    let (mut files, mut left): (Vec<(String, Vec<u8>)>, _) = (Vec::new(), bytes_max);
    unpack(archive, &mut |piece| {
        match piece {
            Piece::Open(name) => files.push((name.to_owned(), Vec::new())),
            Piece::Bytes(bytes) => {
                left = left.checked_sub(bytes.len() as u64).ok_or_else(|| format!("more than {bytes_max} bytes"))?;
                files.last_mut().ok_or("bytes of no member")?.1.extend_from_slice(bytes);
            }
            Piece::Close => {}
        }
        Ok(())
    })?;
    Ok(files)
}

/// Unpacks a gzip stream, if its content is no more than so much.
pub(super) fn gunzip(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    let reader = unpack::reader(FileType::Gzip, &Limits::default(), &unpack::Passwords::default())
        .ok_or("no reader for gzip")?;
    let (mut gzip, mut out) = (Driven::new(reader), Vec::new());
    let mut each = |piece: Piece<'_>| {
        if let Piece::Bytes(bytes) = piece {
            if (out.len() + bytes.len()) as u64 > bytes_max {
                return Err(format!("it unpacks to more than {bytes_max} bytes"));
            }
            out.extend_from_slice(bytes);
        }
        Ok(())
    };
    gzip.step(bytes, &mut each)?;
    gzip.finish(&mut each)?;
    Ok(out)
}

/// A stage that is driven to the end of each piece of its input.
struct Driven {
    stage: Box<dyn Stage>,
    window: Window,
    ended: bool,
}

impl Driven {
    fn new(stage: Box<dyn Stage>) -> Driven {
        Driven { stage, window: Window::with_capacity(WINDOW_BYTES), ended: false }
    }

    fn step(&mut self, mut input: &[u8], sink: &mut Sink<'_>) -> Result<(), String> {
        while !input.is_empty() && !self.ended {
            let step = self.stage.step(input, &mut self.window, &mut Fuel::unlimited());
            let (taken, rest) = input.split_at(step.taken);
            input = rest;
            self.heed(step.event, taken, sink)?;
        }
        Ok(())
    }

    fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), String> {
        while !self.ended {
            let event = self.stage.finish(&Nothing, &mut self.window, &mut Fuel::unlimited());
            self.heed(event, &[], sink)?;
        }
        Ok(())
    }

    fn heed(&mut self, event: Event, taken: &[u8], sink: &mut Sink<'_>) -> Result<(), String> {
        match event {
            Event::Idle | Event::Keep(_) => Ok(()),
            Event::Verbatim => sink(Piece::Bytes(taken)),
            Event::Wrote => {
                let told = sink(Piece::Bytes(self.window.filled()));
                self.window.take(self.window.len());
                told
            }
            Event::Open(object) => sink(Piece::Open(object.name.as_deref().unwrap_or_default())),
            Event::Close => sink(Piece::Close),
            Event::Note(Note::Finding(finding) | Note::Fork(finding)) => Err(format!("damaged: {}", finding.name)),
            Event::End => {
                self.ended = true;
                Ok(())
            }
        }
    }
}
