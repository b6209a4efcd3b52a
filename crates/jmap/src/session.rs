//! The session object (RFC 8620, section 2).

use alloc::format;
use alloc::string::String;

use crate::host::Host;
use crate::limits::*;
use crate::{Value, json};

/// Capabilities of this server.
pub(crate) const CAPABILITIES: [&str; 8] = [
    "urn:ietf:params:jmap:core",
    "urn:ietf:params:jmap:mail",
    "urn:ietf:params:jmap:submission",
    "urn:ietf:params:jmap:quota",
    "urn:ietf:params:jmap:blob",
    "urn:ietf:params:jmap:vacationresponse",
    "urn:ietf:params:jmap:sieve",
    "urn:ietf:params:jmap:websocket",
];

/// The id of an account.
pub fn account_id(number: u32) -> String {
    format!("A{number}")
}

/// The state of the session object: it changes with the account's name and addresses.
pub(crate) fn session_state(host: &dyn Host) -> String {
    let account = host.account();
    let texts = core::iter::once(&account.name).chain(&account.addresses);
    let hash = texts
        .flat_map(|text| text.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:x}")
}

/// The reply to an upload (RFC 8620, section 6.1).
pub fn uploaded(account: u32, id: &str, kind: &str, size: usize) -> String {
    format!("{}", json!({ "accountId": account_id(account), "blobId": id, "type": kind, "size": size }))
}

/// The object that tells that types of an account have changed (RFC 8620, section 7.1).
pub fn changed(account: u32, types: &[&str], state: u64) -> String {
    let types: crate::Map<String, Value> =
        types.iter().map(|&name| (name.into(), format!("{state:x}").into())).collect();
    format!("{}", json!({ "@type": "StateChange", "changed": { account_id(account): types } }))
}

/// The details of a problem with no type of its own (RFC 7807).
pub fn details(status: u16, detail: &str) -> String {
    format!("{}", json!({ "type": "about:blank", "status": status, "detail": detail }))
}

/// The session object. `base` is the URL of the server without a path.
pub fn session(host: &dyn Host, base: &str) -> String {
    let account = account_id(host.account().number);
    let [core, mail, submission, quota, blob, vacation, sieve, websocket] = CAPABILITIES;
    let of_mail = json!({
        "maxMailboxesPerEmail": MAILBOXES_OF_EMAIL_MAX,
        "maxMailboxDepth": null,
        "maxSizeMailboxName": MAILBOX_NAME_BYTES_MAX,
        "maxSizeAttachmentsPerEmail": ATTACHMENTS_BYTES_MAX,
        "emailQuerySortOptions": SORTS,
        "mayCreateTopLevelMailbox": true,
    });
    let of_submission = json!({ "maxDelayedSend": 0, "submissionExtensions": {} });
    let of_blob = json!({
        "maxSizeBlobSet": UPLOAD_BYTES_MAX, "maxDataSources": SOURCES_MAX, "supportedTypeNames": LOOKED_UP,
        "supportedDigestAlgorithms": []
    });
    let bounds = host.sieve();
    let of_sieve = json!({
        "maxSizeScriptName": bounds.name_bytes_max, "maxSizeScript": bounds.script_bytes_max,
        "maxNumberScripts": bounds.scripts_max, "maxNumberRedirects": bounds.redirects_max,
        "sieveExtensions": bounds.extensions, "notificationMethods": null, "externalLists": null,
    });
    let own: Value = json!({
        core: {}, mail: of_mail, submission: of_submission, quota: {}, blob: of_blob, vacation: {}, sieve: of_sieve
    });
    let session = json!({
        "capabilities": {
            core: {
                "maxSizeUpload": UPLOAD_BYTES_MAX,
                "maxConcurrentUpload": UPLOADS_AT_ONCE,
                "maxSizeRequest": REQUEST_BYTES_MAX,
                "maxConcurrentRequests": REQUESTS_AT_ONCE,
                "maxCallsInRequest": CALLS_MAX,
                "maxObjectsInGet": GET_MAX,
                "maxObjectsInSet": SET_MAX,
                "collationAlgorithms": ["i;unicode-casemap"],
            },
            mail: {}, submission: {}, quota: {}, blob: {}, vacation: {}, sieve: { "implementation": "Sluice" },
            websocket: { "url": format!("{}/jmap/ws", base.replacen("http", "ws", 1)), "supportsPush": true },
        },
        "accounts": {
            &account: {
                "name": host.account().name,
                "isPersonal": true,
                "isReadOnly": false,
                "accountCapabilities": own,
            }
        },
        "primaryAccounts": {
            core: account, mail: account, submission: account, quota: account, blob: account, vacation: account,
            sieve: account
        },
        "username": host.account().name,
        "apiUrl": format!("{base}/jmap/api"),
        "downloadUrl": format!("{base}/jmap/download/{{accountId}}/{{blobId}}/{{name}}?accept={{type}}"),
        "uploadUrl": format!("{base}/jmap/upload/{{accountId}}"),
        "eventSourceUrl": format!("{base}/jmap/events?types={{types}}&closeafter={{closeafter}}&ping={{ping}}"),
        "state": session_state(host),
    });
    format!("{session}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Empty;

    /// The reply to one call.
    fn call(name: &str, mut arguments: Value) -> Value {
        arguments["accountId"] = "A1".into();
        let request = json!({ "using": CAPABILITIES, "methodCalls": [[name, arguments, "c"]] });
        let response = crate::answer(&mut Empty::default(), format!("{request}").as_bytes()).expect("a response");
        serde_json::from_str::<Value>(&response).expect("JSON")["methodResponses"][0][1].take()
    }

    #[test]
    fn what_the_session_tells_is_kept_to() {
        let session: Value = serde_json::from_str(&session(&Empty::default(), "https://a.test")).expect("JSON");
        let core = &session["capabilities"]["urn:ietf:params:jmap:core"];
        assert_eq!((&core["maxConcurrentRequests"], &core["maxConcurrentUpload"]), (&json!(4), &json!(4)));
        let made = |length: usize| {
            let create = json!({ "m": { "name": "n".repeat(length) } });
            call("Mailbox/set", json!({ "create": create }))["notCreated"]["m"]["properties"].take()
        };
        assert_eq!((made(MAILBOX_NAME_BYTES_MAX), made(MAILBOX_NAME_BYTES_MAX + 1)), (json!(null), json!(["name"])));
        let sorted = |count: usize| {
            let sort = vec![json!({ "property": "name" }); count];
            call("Mailbox/query", json!({ "sort": sort }))["type"].take()
        };
        assert_eq!((sorted(COMPARATORS_MAX), sorted(COMPARATORS_MAX + 1)), (json!(null), json!("unsupportedSort")));
    }

    #[test]
    fn arguments_are_those_of_the_standard() {
        assert_eq!(call("Email/import", json!({}))["type"], "invalidArguments");
        assert_eq!(call("Email/import", json!({ "emails": null }))["type"], "invalidArguments");
        assert_eq!(call("Email/import", json!({ "emails": {} }))["type"], json!(null));
    }

    #[test]
    fn a_mail_that_nobody_may_send_is_refused_with_the_reason() {
        let error = crate::error::Error::from(crate::host::Failure::NoRelay).value();
        assert_eq!(error["type"], "forbiddenToSend");
        assert!(error["description"].as_str().is_some_and(|text| text.contains("relay")), "{error}");
    }
}
