//! Objects in the `PowerPoint Document` stream (MS-PPT 2.10.34): embedded compound files, VBA projects among them, mostly
//! deflated.
//!
//! Containers are entered by passing over their headers alone, so depth plays no role.

use stream::{Kind, Object, ReadAt};

use crate::frame::codec::{Collected, le16, le32};
use crate::frame::reader::{Ended, Outbox, Reader};

const HEADER: usize = 8;
const OBJECT: u16 = 0x1011;
const CONTAINER: u16 = 0xf;
/// In front of deflated content stands its length.
const LENGTH: u64 = 4;

/// Emits the objects in such a stream.
pub(super) struct PowerPoint {
    header: Collected<HEADER>,
    state: State,
    count: u32,
}

#[derive(Default, Clone, Copy)]
enum State {
    #[default]
    Header,
    Skip(u64),
    /// An object, behind so many bytes of its own.
    Object {
        skip: u64,
        left: u64,
    },
}

impl PowerPoint {
    pub fn new() -> PowerPoint {
        PowerPoint { header: Collected::new(), state: State::Header, count: 0 }
    }

    fn record(&mut self, header: &[u8; HEADER], outbox: &mut Outbox) -> State {
        let (version, instance) = (le16(header, 0) & 0xf, le16(header, 0) >> 4);
        let size = u64::from(le32(header, 4));
        match (version, le16(header, 2)) {
            (_, OBJECT) => {
                self.count += 1;
                let name = Some(format!("object {}", self.count).into());
                outbox.open(Object { kind: Kind::Member, name, ..Object::default() });
                let skip = if instance == 1 { LENGTH.min(size) } else { 0 };
                State::Object { skip, left: size - skip }
            }
            (CONTAINER, _) => State::Header,
            _ => State::Skip(size),
        }
    }
}

impl Reader for PowerPoint {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let at_most = |left: u64| input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match self.state {
            State::Header => {
                let taken = self.header.fill(input, HEADER);
                if let Some(header) = self.header.whole().copied() {
                    self.header.clear();
                    self.state = self.record(&header, outbox);
                }
                taken
            }
            State::Skip(0) => {
                self.state = State::Header;
                0
            }
            State::Skip(left) => {
                let count = at_most(left);
                self.state = State::Skip(left - count as u64);
                count
            }
            State::Object { skip: 0, left: 0 } => {
                outbox.close();
                self.state = State::Header;
                0
            }
            State::Object { skip: 0, left } => {
                let count = at_most(left);
                outbox.content(&input[..count]);
                self.state = State::Object { skip: 0, left: left - count as u64 };
                count
            }
            State::Object { skip, left } => {
                let count = at_most(skip);
                self.state = State::Object { skip: skip - count as u64, left };
                count
            }
        }
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if let State::Object { .. } = std::mem::take(&mut self.state) {
            outbox.close();
        }
        Ended::Done
    }
}
