//! Bounds, which the session object tells clients (RFC 8620, section 2).

/// Bytes of a request. Beyond it: `limit`, `maxSizeRequest`.
pub const REQUEST_BYTES_MAX: u64 = 10_000_000;
/// Bytes of an upload: the largest mail that the webmail sends. Beyond it: `limit`, `maxSizeUpload`.
pub const UPLOAD_BYTES_MAX: u64 = 27 << 20;
/// Uploads of one account that are taken at a time, the least that RFC 8620 suggests: they wait for each other.
pub const UPLOADS_AT_ONCE: u32 = 4;
/// Requests of one account that are taken at a time, the least that RFC 8620 suggests: they wait for each other.
pub const REQUESTS_AT_ONCE: u32 = 4;
/// Bytes of the name of a mailbox, without those above it. Beyond it: `invalidProperties`.
pub const MAILBOX_NAME_BYTES_MAX: usize = 490;
/// Calls of one request. Beyond it: `limit`, `maxCallsInRequest`.
pub const CALLS_MAX: usize = 32;
/// Objects of one `get`. Beyond it: `requestTooLarge`.
pub const GET_MAX: usize = 500;
/// Objects of one `set`. Beyond it: `requestTooLarge`.
pub const SET_MAX: usize = 500;
/// Arrays and objects within each other in a request: the recursion of the reader ends there.
pub const DEPTH_MAX: usize = 64;
/// Values of a request, counting those within arrays and objects. Beyond it: `limit`, `maxSizeRequest`.
pub const VALUES_MAX: usize = 100_000;
/// Properties that a `get` of Emails asks for, of them and of their parts. Beyond it: `requestTooLarge`.
pub const PROPERTIES_MAX: usize = 300;
/// Conditions of one filter, and the depth of its operators. Beyond it: `unsupportedFilter`.
pub const CONDITIONS_MAX: usize = 100;
/// Comparators of one query: each is computed for each object. Beyond it: `unsupportedSort`.
pub const COMPARATORS_MAX: usize = 16;
/// Bytes of all replies together, and of what refers to earlier ones; a call behind is answered `requestTooLarge`.
pub const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Mailboxes of an Email, and keywords.
pub const MAILBOXES_OF_EMAIL_MAX: usize = 100;
/// Bytes of a body value without `maxBodyValueBytes`.
pub const BODY_VALUE_BYTES_MAX: usize = 2 << 20;
/// Bytes of the attachments of an Email that is created, decoded.
pub const ATTACHMENTS_BYTES_MAX: u64 = 25 << 20;
/// Parts of a message that are told.
pub const PARTS_MAX: usize = 1_000;
/// Bytes of the header of a part that are read.
pub const HEADER_BYTES_MAX: u64 = 64 << 10;
/// Bytes of a mail that is submitted, unless the host takes fewer.
pub const SENT_BYTES_MAX: u64 = 2 * ATTACHMENTS_BYTES_MAX;
/// Pieces that a blob is made of (RFC 9404, section 3.1).
pub const SOURCES_MAX: usize = 64;
/// Recipients of one submission.
pub const RECIPIENTS_MAX: usize = 100;
/// Characters of a preview (RFC 8621, section 4.1.4).
pub const PREVIEW_CHARACTERS: usize = 256;

/// Types whose objects a blob is looked up in.
pub const LOOKED_UP: [&str; 3] = ["Mailbox", "Thread", "Email"];

/// Properties by which Emails are sorted.
pub const SORTS: [&str; 9] = [
    "receivedAt",
    "sentAt",
    "size",
    "from",
    "to",
    "subject",
    "hasKeyword",
    "allInThreadHaveKeyword",
    "someInThreadHaveKeyword",
];

const _: () = assert!(CALLS_MAX >= 16 && GET_MAX >= 500 && SET_MAX >= 500, "the least that RFC 8620 suggests");
