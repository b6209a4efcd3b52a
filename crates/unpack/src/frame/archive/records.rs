//! The records of a format: [`Records`] reads them, and the stage of archives follows.

use std::num::NonZeroU64;

use stream::Object;

use super::check::Check;

use crate::frame::codec::{Fault, Progress};

/// Additions of an archive format to the stage: its records and its decoder.
pub(crate) trait Records: Send {
    /// Faults of content that fails.
    const FAULTS: Faults;

    /// Reads the record at the front of `head`, which stands at `at` in the stream.
    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record;

    /// Decodes content of the member that was told last; as [`Decoder::decode`](crate::frame::codec::Decoder::decode).
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress;

    /// Whether packed bytes behind the last byte of a member's content count for the next member: [`decode`](Records::decode) gets them
    /// without room for output, until they do no more.
    fn reads_on(&self) -> bool {
        false
    }

    /// Bytes that were taken and not used.
    fn surplus(&self) -> &[u8] {
        &[]
    }

    /// A fault that may be the cause of this one, to be reported besides.
    fn cause(&mut self, _: &Fault) -> Option<Fault> {
        None
    }

    /// Work done since this was asked last, besides what is taken and told.
    fn take_work(&mut self) -> usize {
        0
    }

    /// Whether the input may end where a record should begin.
    fn may_end(&self) -> bool {
        true
    }
}

/// The findings of a format.
pub(crate) struct Faults {
    pub truncated: Fault,
    pub check: Fault,
    pub size: Fault,
}

/// Record at the front.
pub(crate) enum Record {
    /// So many bytes are needed to say.
    Need(usize),
    /// Much work has been done, and there is more: to be asked again.
    Again,
    /// The format has come to its next table or member without a byte being read: to be asked again.
    Next,
    /// A record of so many bytes, all or most of them in the head, that holds no member.
    Pass(NonZeroU64),
    /// A header of so many bytes, and a member behind it.
    Member(usize, Member),
    /// No record: the rest is told as it stands.
    Rest,
}

impl Record {
    /// A record of so many bytes that holds no member, and so many bytes behind it. What reaches beyond all streams passes
    /// what there is, which is then truncated.
    pub fn pass(header_bytes: usize, behind: u64) -> Record {
        Record::pass_bytes(behind.saturating_add(header_bytes as u64))
    }

    /// As [`pass`](Self::pass), the record and what is behind it in one.
    pub fn pass_bytes(bytes: u64) -> Record {
        NonZeroU64::new(bytes).map_or(Record::Next, Record::Pass)
    }
}

/// A member, as its header tells it.
pub(crate) struct Member {
    pub object: Object,
    pub content: Content,
    pub check: Check,
}

/// How a member's content is stored.
pub(crate) enum Content {
    /// As it stands, so many bytes.
    Raw(u64),
    /// Packed.
    Packed {
        /// Bytes of packed data; `None` where the decoder knows, which then serves several members.
        packed: Option<u64>,
        /// Bytes of content, if that is known.
        size: Option<u64>,
    },
}

impl Member {
    /// Content as it stands that belongs to nothing.
    pub fn nameless(length: u64) -> Member {
        Member { object: Object::default(), content: Content::Raw(length), check: Check::None }
    }
}
