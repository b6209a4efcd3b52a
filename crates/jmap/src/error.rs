//! Errors: of a request (RFC 8620, section 3.6.1), of a method (3.6.2), of one object of a `set` (5.3).

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Map, Value, json};

/// A request that is refused as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The body is no I-JSON.
    NotJson,
    /// The body is JSON and no Request object.
    NotRequest,
    /// It names a capability that this server does not have.
    UnknownCapability,
    /// It exceeds the bound of this name.
    Limit(&'static str),
}

impl Problem {
    /// The status of HTTP and the problem details (RFC 7807).
    pub fn reply(self) -> (u16, String) {
        let (kind, detail) = match self {
            Problem::NotJson => ("notJSON", "The body is not a value of I-JSON."),
            Problem::NotRequest => ("notRequest", "The body is not a Request object."),
            Problem::UnknownCapability => ("unknownCapability", "A capability in \"using\" is not supported."),
            Problem::Limit(_) => ("limit", "The request exceeds a limit of the session object."),
        };
        let kind = alloc::format!("urn:ietf:params:jmap:error:{kind}");
        let mut details = json!({ "type": kind, "status": 400, "detail": detail });
        if let (Problem::Limit(limit), Some(details)) = (self, details.as_object_mut()) {
            details.insert("limit".into(), limit.into());
        }
        (400, alloc::format!("{details}"))
    }
}

impl From<crate::json::Wrong> for Problem {
    fn from(wrong: crate::json::Wrong) -> Problem {
        match wrong {
            crate::json::Wrong::NoJson => Problem::NotJson,
            crate::json::Wrong::TooManyValues => Problem::Limit("maxSizeRequest"),
        }
    }
}

/// A method that is not carried out, or an object that is not changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Error {
    pub kind: &'static str,
    pub description: String,
    /// Further members, as the kind has them.
    pub more: Map<String, Value>,
}

impl Error {
    pub fn new(kind: &'static str) -> Error {
        Error { kind, description: String::new(), more: Map::new() }
    }

    /// The same with one member more.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Error {
        self.more.insert(name.into(), value.into());
        self
    }

    pub fn arguments(description: impl Into<String>) -> Error {
        Error { description: description.into(), ..Error::new("invalidArguments") }
    }

    pub fn property(name: &str) -> Error {
        Error::new("invalidProperties").with("properties", json!([name]))
    }

    /// Blobs that do not exist.
    pub fn no_blobs(ids: Vec<String>) -> Error {
        Error::new("blobNotFound").with("notFound", ids)
    }

    pub fn value(self) -> Value {
        let mut value = self.more;
        value.insert("type".into(), self.kind.into());
        if !self.description.is_empty() {
            value.insert("description".into(), self.description.into());
        }
        Value::Object(value)
    }
}

impl From<crate::host::Failure> for Error {
    fn from(failure: crate::host::Failure) -> Error {
        use crate::host::Failure;
        Error::new(match failure {
            Failure::Gone => "notFound",
            Failure::OverQuota => "overQuota",
            Failure::Exists => "alreadyExists",
            Failure::Name => return Error::property("name"),
            Failure::TooLarge => "tooLarge",
            Failure::Store => "serverFail",
            Failure::NoRelay => {
                let why = "This server has no relay to other mail servers.";
                return Error { description: why.into(), ..Error::new("forbiddenToSend") };
            }
            Failure::Elsewhere => {
                let why = "This server delivers mail to its own users alone.";
                return Error { description: why.into(), ..Error::new("forbiddenToSend") };
            }
            Failure::Waiting => "rateLimit",
            Failure::Foreign => "forbidden",
        })
    }
}
