//! Inodes: a folder's listing, a file's blocks and tail. All others have no content.

use stream::{Limits, ReadAt};

use super::metadata::{Cursor, Metadata, Place};
use crate::frame::codec::{le16, le32, le64};

/// An inode, by the kind of its content.
pub(super) enum Inode {
    Folder { listing: Place, bytes: u32 },
    File(File),
    Other,
}

/// The content of a file; the lengths of its blocks follow its inode.
pub(super) struct File {
    pub blocks_at: u64,
    pub bytes: u64,
    /// The block of tails that holds its end, and where in it.
    pub fragment: u32,
    pub tail_at: u32,
}

impl Inode {
    /// Reads an inode, up to the data after it.
    pub fn read(table: &mut Metadata, cursor: &mut Cursor, kept: &dyn ReadAt, limits: &Limits) -> Option<Inode> {
        const COMMON: usize = 16;
        let common: [u8; COMMON] = table.take(cursor, kept, limits)?;
        match le16(&common, 0) {
            1 => {
                let fields: [u8; 16] = table.take(cursor, kept, limits)?;
                let listing = Place { block: le32(&fields, 0).into(), within: le16(&fields, 10) };
                Some(Inode::Folder { listing, bytes: le16(&fields, 8).into() })
            }
            8 => {
                let fields: [u8; 24] = table.take(cursor, kept, limits)?;
                let listing = Place { block: le32(&fields, 8).into(), within: le16(&fields, 18) };
                Some(Inode::Folder { listing, bytes: le32(&fields, 4) })
            }
            2 => {
                let fields: [u8; 16] = table.take(cursor, kept, limits)?;
                let [blocks_at, fragment, tail_at, bytes] = [0, 4, 8, 12].map(|at| le32(&fields, at));
                Some(Inode::File(File { blocks_at: blocks_at.into(), bytes: bytes.into(), fragment, tail_at }))
            }
            9 => {
                let fields: [u8; 40] = table.take(cursor, kept, limits)?;
                let (fragment, tail_at) = (le32(&fields, 28), le32(&fields, 32));
                Some(Inode::File(File { blocks_at: le64(&fields, 0), bytes: le64(&fields, 8), fragment, tail_at }))
            }
            _ => Some(Inode::Other),
        }
    }
}
