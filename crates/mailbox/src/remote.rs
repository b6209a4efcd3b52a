//! The host asks servers that mails name, when a user says so. Where they are and who may be asked is the host's business.

/// Asks other servers. Its methods wait, within bounds, and are called where a thread may.
pub trait Remote: Send + Sync {
    /// Files at these URLs that may be pictures, each at the place of its URL, as large as `bytes_max` in all; `None` for one that is not
    /// to be had.
    fn pictures(&self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>>;

    /// Leaves a mailing list by a request to this URL (RFC 8058), if a signature of the mail covers the fields that name it. `read` reads
    /// the mail from its beginning: 0 is its end, and nothing comes when it cannot be read.
    ///
    /// # Errors
    /// Why the list is not left.
    fn leave(&self, url: &str, read: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> Result<(), NotLeft>;
}

/// Why a mailing list is not left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotLeft {
    /// The mail cannot be read.
    Unread,
    /// No signature that verifies covers both fields.
    Unsigned,
    /// The server of the list has not taken the request.
    Unreached,
}

impl NotLeft {
    /// The reason in words, for the log.
    pub const fn words(self) -> &'static str {
        match self {
            NotLeft::Unread => "the mail cannot be read",
            NotLeft::Unsigned => "no signature covers the fields of the list",
            NotLeft::Unreached => "the server of the list has not taken it",
        }
    }
}
