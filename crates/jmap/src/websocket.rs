//! Messages of JMAP over WebSocket (RFC 8887, section 4.3). Frames are the host's.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Problem;
use crate::{Value, json};

/// A message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A request, with its id.
    Request(Option<String>),
    /// Changes of these types are told from here on; `None`: of all.
    Enable(Option<Vec<String>>),
    /// Changes are told no more.
    Disable,
    /// No message of this protocol.
    Wrong(Problem),
}

impl Message {
    /// Reads a message.
    pub fn read(text: &[u8]) -> Message {
        let value = match crate::json::request(text) {
            Ok(value) => value,
            Err(wrong) => return Message::Wrong(wrong.into()),
        };
        match value["@type"].as_str() {
            Some("Request") => Message::Request(value["id"].as_str().map(String::from)),
            Some("WebSocketPushEnable") => match &value["dataTypes"] {
                Value::Null => Message::Enable(None),
                types => match crate::arguments::strings(types.clone()) {
                    Some(types) => Message::Enable(Some(types)),
                    None => Message::Wrong(Problem::NotRequest),
                },
            },
            Some("WebSocketPushDisable") => Message::Disable,
            _ => Message::Wrong(Problem::NotRequest),
        }
    }
}

/// The message of an answer to the request with an id.
pub fn responded(id: Option<&str>, outcome: Result<String, Problem>) -> String {
    let (kind, text) = match outcome {
        Ok(text) => ("Response", text),
        Err(problem) => ("RequestError", problem.reply().1),
    };
    // Both are objects that are written here, and not empty.
    let rest = text.strip_prefix('{').unwrap_or("}");
    match id {
        Some(id) => format!("{{\"@type\":\"{kind}\",\"requestId\":{},{rest}", json!(id)),
        None => format!("{{\"@type\":\"{kind}\",{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_answers_have_the_id_of_their_request() {
        let read = |text: &str| Message::read(text.as_bytes());
        assert_eq!(read("{\"@type\":\"Request\",\"id\":\"R1\",\"using\":[]}"), Message::Request(Some("R1".into())));
        assert_eq!(read("{\"@type\":\"WebSocketPushEnable\",\"dataTypes\":null}"), Message::Enable(None));
        let some = read("{\"@type\":\"WebSocketPushEnable\",\"dataTypes\":[\"Email\"]}");
        assert_eq!(some, Message::Enable(Some(["Email".into()].into())));
        assert_eq!(read("{\"@type\":\"WebSocketPushDisable\"}"), Message::Disable);
        assert_eq!(read("{"), Message::Wrong(Problem::NotJson));
        for wrong in ["[]", "{}", "{\"@type\":1}", "{\"@type\":\"WebSocketPushEnable\",\"dataTypes\":[1]}"] {
            assert_eq!(read(wrong), Message::Wrong(Problem::NotRequest), "{wrong}");
        }
        let told = responded(Some("\"a"), Ok("{\"methodResponses\":[]}".into()));
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["@type"], &told["requestId"]), (&json!("Response"), &json!("\"a")), "{told}");
        let told: Value = serde_json::from_str(&responded(None, Err(Problem::NotJson))).unwrap();
        assert_eq!((&told["@type"], &told["status"]), (&json!("RequestError"), &json!(400)), "{told}");
    }
}
