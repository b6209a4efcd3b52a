//! Documents: small files that each node has, of which the database has the version that counts.
//!
//! ```text
//!  file as it was synced, newer document          take it
//!  file changed here, document as it was synced   push it, if the document is still that version
//!  both changed, or never synced and different    take the document, and keep the file beside
//!  no file, or an empty one                       take it: a missing file is no deletion
//!  no document                                    nothing: documents are made on request alone
//! ```
//!
//! A node remembers the version that its file was last equal to. Without this memory its file never goes anywhere, so that a new node, or
//! one whose disk is old, overwrites nothing. A file with an older time than the synced one had was brought back from a backup, and counts
//! as never synced, as does a node that remembers a version which the database does not know.

/// Digest of a text.
pub type Digest = [u8; 32];

/// A version of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Counts versions, from 1.
    pub number: u64,
    /// Digest of its text.
    pub digest: Digest,
}

/// The file of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Digest of its text.
    pub digest: Digest,
    /// Whether it was last changed before the file that was synced.
    pub is_older: bool,
}

/// Next action for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The file is the document, or there is no document.
    Nothing,
    /// Remember that the file is the document.
    Note,
    /// Write the document to the file.
    Take,
    /// Keep the file under another name, and write the document to it.
    TakeAside,
    /// Make the file the version after this one, if that is still the last.
    Push(u64),
}

/// Returns the next action for a file that is not empty, the version that it was last equal to, and the version in the database.
pub fn step(file: Option<Held>, synced: Option<Version>, document: Option<Version>) -> Step {
    let Some(document) = document else { return Step::Nothing };
    let Some(file) = file else { return Step::Take };
    match synced {
        _ if file.digest == document.digest && synced == Some(document) => Step::Nothing,
        _ if file.digest == document.digest => Step::Note,
        Some(synced) if synced.number < document.number && file.digest == synced.digest => Step::Take,
        Some(synced) if synced == document && !file.is_older => Step::Push(document.number),
        _ => Step::TakeAside,
    }
}
