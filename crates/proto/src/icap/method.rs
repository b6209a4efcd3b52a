//! Methods (RFC 3507, section 4.3.2).

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Asks for the properties of the service.
    Options,
    /// Asks about a request of HTTP.
    Reqmod,
    /// Asks about a response of HTTP.
    Respmod,
}
