//! Events of protocols, by the names that Suricata has for them in records and in rules.

/// The name of an event in rules.
pub(super) fn name_in_rules(event: &str) -> String {
    format!("http.{}", event.to_ascii_lowercase())
}

/// The name of an event that is told here, as rules have it; none of any other.
pub(super) fn event_named(name: &str) -> Option<String> {
    ALL.iter().map(|event| name_in_rules(event)).find(|known| known.eq_ignore_ascii_case(name.trim()))
}

/// All events.
const ALL: [&str; 14] = [
    "DUPLICATE_CONTENT_LENGTH_FIELD_IN_REQUEST",
    "DUPLICATE_CONTENT_LENGTH_FIELD_IN_RESPONSE",
    "INVALID_CONTENT_LENGTH_FIELD_IN_REQUEST",
    "INVALID_CONTENT_LENGTH_FIELD_IN_RESPONSE",
    "INVALID_REQUEST_CHUNK_LEN",
    "INVALID_RESPONSE_CHUNK_LEN",
    "INVALID_TRANSFER_ENCODING_VALUE_IN_REQUEST",
    "INVALID_TRANSFER_ENCODING_VALUE_IN_RESPONSE",
    "MISSING_HOST_HEADER",
    "REQUEST_FIELD_MISSING_COLON",
    "REQUEST_HEADER_HOST_INVALID",
    "REQUEST_LINE_MISSING_PROTOCOL",
    "RESPONSE_FIELD_MISSING_COLON",
    "UNABLE_TO_MATCH_RESPONSE_TO_REQUEST",
];
