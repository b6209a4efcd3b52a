//! Reasons for which a message is refused.

use super::status::Status;

/// A message that is refused: malformed, ambiguous, or beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The head is longer than [`Limits::head_bytes_max`](super::Limits::head_bytes_max).
    HeadTooLong,
    /// More fields than [`Limits::fields_max`](super::Limits::fields_max).
    TooManyFields,
    /// The target is longer than [`Limits::target_bytes_max`](super::Limits::target_bytes_max).
    TargetTooLong,
    /// A line ends with LF alone, which some parsers take for a line end and others do not.
    BareNewline,
    /// A CR without its LF.
    BareReturn,
    /// NUL or another control byte.
    ControlByte,
    /// The first line has not the form of a request or status line.
    StartLine,
    /// A version other than HTTP/1.x.
    Version,
    /// The method is no token.
    Method,
    /// The target has none of the four forms (RFC 9112, section 3.2), or the wrong one for its method.
    Target,
    /// A field without a colon, with a name that is no token, or white space before the colon.
    FieldName,
    /// A field continued on the next line (RFC 9112, section 5.2).
    FieldFolded,
    /// A request of HTTP/1.1 without `Host`, with two, or with a `Host` that is no authority.
    Host,
    /// `Content-Length` is no number, or there are several different ones.
    Length,
    /// `Content-Length` beside `Transfer-Encoding`: the classic of request smuggling.
    LengthWithChunks,
    /// A transfer coding other than `chunked`, or in HTTP/1.0.
    TransferCoding,
    /// The line of a chunk's size is malformed or too long.
    ChunkSize,
    /// A chunk's content does not end where its size says.
    ChunkEnd,
    /// The trailer is malformed, or holds a field that belongs in a head.
    Trailer,
    /// The connection ended within a message.
    Incomplete,
    /// `Expect` asks for something other than `100-continue`.
    Expectation,
    /// More interim responses than [`Limits::interim_max`](super::Limits::interim_max), or 101 unasked.
    TooManyInterim,
    /// A response nobody asked for.
    Unexpected,
}

impl Refusal {
    /// The status that a server answers with (RFC 9110, section 15).
    pub fn status(self) -> Status {
        Status(match self {
            Refusal::HeadTooLong | Refusal::TooManyFields => 431,
            Refusal::TargetTooLong => 414,
            Refusal::Version => 505,
            Refusal::TransferCoding => 501,
            Refusal::Expectation => 417,
            _ => 400,
        })
    }

    /// A sentence for the log.
    pub fn reason(self) -> &'static str {
        match self {
            Refusal::HeadTooLong => "head too long",
            Refusal::TooManyFields => "too many header fields",
            Refusal::TargetTooLong => "request target too long",
            Refusal::BareNewline => "line ends with LF alone",
            Refusal::BareReturn => "CR without LF",
            Refusal::ControlByte => "control byte in the head",
            Refusal::StartLine => "malformed first line",
            Refusal::Version => "unsupported HTTP version",
            Refusal::Method => "malformed method",
            Refusal::Target => "malformed request target",
            Refusal::FieldName => "malformed field name",
            Refusal::FieldFolded => "folded header field",
            Refusal::Host => "missing, repeated or malformed Host",
            Refusal::Length => "malformed or contradictory Content-Length",
            Refusal::LengthWithChunks => "Content-Length beside Transfer-Encoding",
            Refusal::TransferCoding => "unsupported transfer coding",
            Refusal::ChunkSize => "malformed chunk size",
            Refusal::ChunkEnd => "chunk longer than its size",
            Refusal::Trailer => "malformed trailer",
            Refusal::Incomplete => "connection ended within a message",
            Refusal::Expectation => "unsupported expectation",
            Refusal::TooManyInterim => "too many interim responses",
            Refusal::Unexpected => "response without a request",
        }
    }
}
