//! Status codes (RFC 9110, section 15).

/// A status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Status(pub u16);

impl Status {
    /// True for 1xx.
    pub fn is_interim(self) -> bool {
        self.0 < 200
    }

    /// The phrase of RFC 9110, section 15; empty for a code that is not there.
    pub fn phrase(self) -> &'static str {
        match self.0 {
            100 => "Continue",
            101 => "Switching Protocols",
            200 => "OK",
            204 => "No Content",
            206 => "Partial Content",
            301 => "Moved Permanently",
            302 => "Found",
            303 => "See Other",
            304 => "Not Modified",
            307 => "Temporary Redirect",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            407 => "Proxy Authentication Required",
            408 => "Request Timeout",
            411 => "Length Required",
            413 => "Content Too Large",
            414 => "URI Too Long",
            415 => "Unsupported Media Type",
            416 => "Range Not Satisfiable",
            417 => "Expectation Failed",
            421 => "Misdirected Request",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            _ => "",
        }
    }

    /// True when a response has no body, whatever its fields say (RFC 9112, section 6.3). `method` is the request's.
    pub(super) fn is_bodiless(self, method: &str) -> bool {
        self.is_interim() || matches!(self.0, 204 | 304) || method == "HEAD" || self.opens_tunnel(method)
    }

    /// True when what follows is no HTTP any more.
    pub(super) fn opens_tunnel(self, method: &str) -> bool {
        self.0 == 101 || (method == "CONNECT" && (200..300).contains(&self.0))
    }
}
