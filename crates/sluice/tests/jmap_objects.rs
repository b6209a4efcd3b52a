//! JMAP: objects as the standard wants them when they are changed, refused, and told.

use serde_json::{Value, json};

use crate::harness::wait_for;
use crate::jmap::{AGREED, Client, Socket};
use crate::webmail::Site;

fn types_of(told: &Value, client: &Client) -> Vec<String> {
    told["changed"][&client.account].as_object().unwrap().keys().cloned().collect()
}

/// The mailboxes by their names.
fn boxes(client: &Client) -> serde_json::Map<String, Value> {
    let all = client.call(&[("Mailbox/get", json!({ "ids": null }))]).remove(0);
    all["list"].as_array().unwrap().iter().map(|one| (one["name"].as_str().unwrap().into(), one.clone())).collect()
}

fn is_empty(map: &Value) -> bool {
    map.as_object().is_none_or(serde_json::Map::is_empty)
}

#[test]
fn states_change_with_absence_and_scripts() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let away = json!({ "update": { "singleton": { "isEnabled": true, "textBody": "Away." } } });
    let get = || json!({ "ids": null });
    let done =
        ann.call(&[("VacationResponse/get", get()), ("VacationResponse/set", away), ("VacationResponse/get", get())]);
    assert_eq!(done[0]["state"], done[1]["oldState"]);
    assert_ne!(done[1]["oldState"], done[1]["newState"], "{done:?}");
    assert_eq!(done[1]["newState"], done[2]["state"]);
    let upload = ann.post(&format!("/jmap/upload/{}", ann.account), "application/sieve", b"keep;\r\n");
    let blob = serde_json::from_slice::<Value>(&upload.body).unwrap()["blobId"].clone();
    let create = json!({ "create": { "a": { "name": "one", "blobId": blob } }, "onSuccessActivateScript": "#a" });
    let done = ann.call(&[("SieveScript/set", create)]).remove(0);
    let (made, active) = (&done["oldState"], &done["newState"]);
    assert_ne!(made, active, "{done}");
    let done = ann.call(&[("SieveScript/set", json!({ "onSuccessDeactivateScript": true }))]).remove(0);
    assert_ne!(done["newState"], *active, "{done}");
}

#[test]
fn an_identity_has_one_id_whatever_other_addresses_there_are() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let get = || ann.call(&[("Identity/get", json!({ "ids": null }))]).remove(0);
    let ids = |all: &Value| -> serde_json::Map<String, Value> {
        let list = all["list"].as_array().unwrap().iter();
        list.map(|one| (one["email"].as_str().unwrap().into(), one["id"].clone())).collect()
    };
    let become_so = |addresses: &[&str]| {
        site.account(&[&["alias", "ann"][..], addresses].concat());
        wait_for(|| Some(get()).filter(|all| addresses.iter().all(|one| ids(all).contains_key(*one))), "the addresses")
    };
    let first = become_so(&["info@mx.test", "sales@mx.test"]);
    let second = become_so(&["about@mx.test", "sales@mx.test"]);
    let (before, after) = (ids(&first), ids(&second));
    assert_eq!(before["sales@mx.test"], after["sales@mx.test"], "{before:?} {after:?}");
    assert!(!after.values().any(|id| *id == before["info@mx.test"]), "{before:?} {after:?}");
    assert_ne!(first["state"], second["state"]);
    let since = |state: &Value| ann.replies(&[("Identity/changes", json!({ "sinceState": state }))]).remove(0);
    assert_eq!(since(&first["state"])[1]["type"], "cannotCalculateChanges");
    let sales = after["sales@mx.test"].as_str().unwrap();
    let set = json!({ "ifInState": second["state"], "update": { sales: { "name": "Sales" } } });
    let done = ann.call(&[("Identity/set", set)]).remove(0);
    assert!(done["updated"].as_object().unwrap().contains_key(sales) && done["oldState"] == second["state"], "{done}");
    let told = since(&second["state"]);
    assert!(told[1]["updated"].as_array().unwrap().contains(&json!(sales)), "{told}");
    assert_eq!(told[1]["newState"], done["newState"]);
    assert_eq!(get()["state"], done["newState"]);
}

#[test]
fn a_delivery_is_told_when_a_mail_is_new_and_not_when_a_flag_is() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let mail = "From: eve@example.org\nTo: ann@mx.test\nSubject: Hello\n\nA line\n";
    site.deliver("ann", mail);
    let id = wait_for(|| ann.emails().pop(), "the mail")["id"].as_str().unwrap().to_owned();
    let (_, mut socket) = Socket::open(&ann, AGREED);
    socket.send(0x81, b"{\"@type\":\"WebSocketPushEnable\",\"dataTypes\":[\"Email\",\"EmailDelivery\"]}");
    socket.ask("{");
    let flag = json!({ "update": { &id: { "keywords/$flagged": true } } });
    ann.call(&[("Email/set", flag)]);
    assert_eq!(types_of(&socket.text(), &ann), ["Email"]);
    site.deliver("ann", mail);
    assert_eq!(types_of(&socket.text(), &ann), ["Email", "EmailDelivery"]);
    ann.call(&[("Email/set", json!({ "destroy": [id] }))]);
    assert_eq!(types_of(&socket.text(), &ann), ["Email"]);
}

#[test]
fn refusals_name_what_is_at_fault() {
    let site = Site::start(true);
    let ann = Client::new(&site, "ann");
    let drafts = ann.mailbox("drafts");
    let identity = ann.call(&[("Identity/get", json!({ "ids": null }))]).remove(0)["list"][0]["id"].clone();
    let mail = json!({ "mailboxIds": { &drafts: true }, "from": [{ "email": "ann@mx.test" }], "subject": "x" });
    let email = ann.call(&[("Email/set", json!({ "create": { "m": mail } }))]).remove(0)["created"]["m"]["id"].clone();
    let refused = |to: Vec<String>| {
        let to: Vec<Value> = to.iter().map(|to| json!({ "email": to })).collect();
        let envelope = json!({ "mailFrom": { "email": "ann@mx.test" }, "rcptTo": to });
        let submission = json!({ "emailId": email, "identityId": identity, "envelope": envelope });
        let done = ann.call(&[("EmailSubmission/set", json!({ "create": { "s": submission } }))]).remove(0);
        done["notCreated"]["s"].clone()
    };
    let wrong = refused(["a b".into(), "bob@mx.test".into(), "j\u{f6}rg@x".into()].into());
    assert_eq!(wrong, json!({ "type": "invalidRecipients", "invalidRecipients": ["a b", "j\u{f6}rg@x"] }));
    let many = refused((0..101).map(|at| format!("u{at}@mx.test")).collect());
    assert_eq!(many, json!({ "type": "tooManyRecipients", "maxRecipients": 100 }));

    let refused = |more: Value| {
        let mut mail = json!({ "mailboxIds": { &drafts: true }, "bodyValues": { "1": { "value": "x" } } });
        mail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ann.call(&[("Email/set", json!({ "create": { "m": mail } }))]).remove(0)["notCreated"]["m"].clone()
    };
    let files = ["Uone", "Utwo"].map(|id| json!({ "blobId": id, "type": "image/png" }));
    assert_eq!(
        refused(json!({ "attachments": files })),
        json!({ "type": "blobNotFound", "notFound": ["Uone", "Utwo"] })
    );
    for (property, other) in [
        ("header:Content-Type", Value::Null),
        ("header:Content-Disposition", json!({ "disposition": "inline" })),
        ("header:content-id", json!({ "cid": "a@b" })),
    ] {
        let mut part = json!({ "type": "text/plain", "partId": "1", property: "x" });
        part.as_object_mut().unwrap().extend(other.as_object().cloned().unwrap_or_default());
        let wrong = refused(json!({ "bodyStructure": part }));
        assert_eq!(wrong, json!({ "type": "invalidProperties", "properties": [property] }));
    }
    let sized = json!({ "partId": "1", "type": "text/plain", "size": 3 });
    let wrong = refused(json!({ "textBody": [sized] }));
    assert_eq!(wrong, json!({ "type": "invalidProperties", "properties": ["textBody/size"] }));
    let wrong = refused(json!({ "receivedAt": "2020-01-01T00:00:00+01:00" }));
    assert_eq!(wrong, json!({ "type": "invalidProperties", "properties": ["receivedAt"] }));
    let sort = vec![json!({ "property": "subject" }); 17];
    assert_eq!(ann.replies(&[("Email/query", json!({ "sort": sort }))])[0][1]["type"], "unsupportedSort");
}

#[test]
fn keywords_are_the_same_in_capitals() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    site.deliver("ann", "From: eve@example.org\nTo: ann@mx.test\nSubject: Hello\n\nA line\n");
    let id = wait_for(|| ann.emails().pop(), "the mail")["id"].as_str().unwrap().to_owned();
    for patch in [
        json!({ "keywords/$Seen": true, "keywords/work": true, "keywords/Home": true }),
        json!({ "keywords/$SEEN": null, "keywords/WORK": null }),
    ] {
        let done = ann.call(&[("Email/set", json!({ "update": { &id: patch } }))]).remove(0);
        assert!(is_empty(&done["notUpdated"]), "{done}");
    }
    assert_eq!(ann.emails()[0]["keywords"], json!({ "home": true }));
    let long = |bytes: usize| json!({ "update": { &id: { format!("keywords/{}", "k".repeat(bytes)): true } } });
    let done = ann.call(&[("Email/set", long(255)), ("Email/set", long(256))]);
    assert!(is_empty(&done[0]["notUpdated"]), "{done:?}");
    assert_eq!(done[1]["notUpdated"][&id]["type"], "invalidProperties", "{done:?}");
}

#[test]
fn emails_are_sorted_by_what_their_subjects_are_about() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let sorted =
        ["RE: FW: Re: aardvark", "[list] Re: apple", "banana", "[fwd: blueberry]", "Re[2]: cherry", "date (fwd)"];
    for subject in [3, 0, 5, 1, 4, 2].map(|at| sorted[at]) {
        site.deliver("ann", &format!("From: eve@example.org\nTo: ann@mx.test\nSubject: {subject}\n\nA line\n"));
    }
    wait_for(|| (ann.emails().len() == sorted.len()).then_some(()), "the mails");
    let query = json!({ "sort": [{ "property": "subject" }] });
    let get = json!({ "#ids": { "resultOf": "c0", "name": "Email/query", "path": "/ids" }, "properties": ["subject"] });
    let got = ann.call(&[("Email/query", query), ("Email/get", get)]).remove(1);
    let subjects: Vec<&Value> = got["list"].as_array().unwrap().iter().map(|one| &one["subject"]).collect();
    assert_eq!(subjects, sorted.map(Value::from).iter().collect::<Vec<_>>());
}

#[test]
fn mailboxes_may_be_in_each_others_way_until_the_end_of_a_call() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let set = |arguments: Value| {
        let done = ann.call(&[("Mailbox/set", arguments)]).remove(0);
        let refused = ["notCreated", "notUpdated", "notDestroyed"].map(|name| done[name].clone());
        assert!(refused.iter().all(is_empty), "{done}");
        done
    };
    let made = set(json!({ "create": {
        "a": { "name": "A", "isSubscribed": true }, "b": { "name": "B" }, "c": { "name": "C" },
        "below": { "name": "x", "parentId": "#a", "isSubscribed": true },
    } }));
    assert_eq!(made["created"]["b"]["sortOrder"], 0, "{made}");
    let id = |creation: &str| made["created"][creation]["id"].as_str().unwrap().to_owned();
    let (a, b, c, below) = (id("a"), id("b"), id("c"), id("below"));
    // Names in a ring, and roles that come before they are free.
    set(json!({ "update": { &a: { "name": "B" }, &b: { "name": "C" }, &c: { "name": "A" } } }));
    let now = boxes(&ann);
    assert_eq!([&now["B"]["id"], &now["C"]["id"], &now["A"]["id"]], [&json!(a), &json!(b), &json!(c)]);
    assert_eq!((&now["x"]["id"], &now["x"]["parentId"]), (&json!(below), &json!(a)));
    let subscribed = ["A", "B", "C", "x"].map(|name| now[name]["isSubscribed"] == true);
    assert_eq!(subscribed, [false, true, false, true], "{now:?}");
    let (archive, junk) = (ann.mailbox("archive"), ann.mailbox("junk"));
    for (from, to) in [(&archive, &a), (&a, &archive)] {
        set(json!({ "update": { from: { "role": null }, to: { "role": "archive" } } }));
        assert_eq!(ann.mailbox("archive"), **to);
    }
    set(json!({ "update": { &archive: { "role": "junk" }, &junk: { "role": "archive" } } }));
    assert_eq!((ann.mailbox("archive"), ann.mailbox("junk")), (junk, archive));
    // Above and below at once, and a name that becomes free.
    let done = set(json!({ "destroy": [&a, &below, &b], "create": { "new": { "name": "B" }, "d": { "name": "C" } } }));
    assert_eq!(boxes(&ann)["B"]["id"], done["created"]["new"]["id"]);

    let other =
        ann.call(&[("Mailbox/set", json!({ "update": { &c: { "name": "B" } }, "create": { "e": { "name": "C" } } }))]);
    let inbox = ann.mailbox("inbox");
    let fixed = ann.call(&[("Mailbox/set", json!({ "update": { &inbox: { "role": null } } }))]).remove(0);
    assert_eq!(fixed["notUpdated"][&inbox]["properties"], json!(["role"]), "{fixed}");
    let accents = json!({ "create": { "f": { "name": "caf\u{e9}" }, "g": { "name": "cafe\u{301}" } } });
    assert_eq!(ann.call(&[("Mailbox/set", accents)])[0]["notCreated"]["g"]["type"], "alreadyExists");
    let taken = |id: &Value| json!({ "type": "alreadyExists", "existingId": id });
    assert_eq!(other[0]["notUpdated"][&c], taken(&done["created"]["new"]["id"]), "{other:?}");
    assert_eq!(other[0]["notCreated"]["e"], taken(&done["created"]["d"]["id"]), "{other:?}");
}

#[test]
fn a_mail_has_no_empty_lists_and_is_sent_from_an_address_with_detail() {
    let site = Site::start(true);
    let (ann, bob) = (Client::new(&site, "ann"), Client::new(&site, "bob"));
    let drafts = ann.mailbox("drafts");
    let identity = ann.call(&[("Identity/get", json!({ "ids": null }))]).remove(0)["list"][0]["id"].clone();
    let mail = json!({
        "mailboxIds": { &drafts: true }, "from": [{ "email": "ann+x@mx.test" }], "to": [{ "email": "bob@mx.test" }],
        "cc": [], "bcc": [], "replyTo": [], "inReplyTo": [], "references": [], "subject": "x",
    });
    let envelope = json!({ "mailFrom": { "email": "ann+x@mx.test" }, "rcptTo": [{ "email": "bob@mx.test" }] });
    let submission = json!({ "emailId": "#m", "identityId": identity, "envelope": envelope });
    let create = |name: &str, object: Value| json!({ "create": { name: object } });
    let done = ann.call(&[("Email/set", create("m", mail)), ("EmailSubmission/set", create("s", submission))]);
    assert!(done[1]["created"]["s"]["id"].is_string(), "{done:?}");
    let mail = wait_for(|| bob.emails().pop(), "the mail");
    let path = format!("/jmap/download/{}/{}/x", bob.account, mail["blobId"].as_str().unwrap());
    let text = bob.get(&path).text();
    for name in ["Cc:", "Bcc:", "Reply-To:", "In-Reply-To:", "References:"] {
        assert!(!text.contains(&format!("\n{name}")), "{text}");
    }
}

#[test]
fn a_quota_that_is_changed_holds_at_once() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let told = || ann.call(&[("Quota/get", json!({ "ids": null }))]).remove(0)["list"].clone();
    assert_eq!(told(), json!([]));
    site.account(&["quota", "ann", "300K"]);
    let quota = wait_for(|| Some(told()).filter(|list| *list != json!([])), "the quota");
    assert_eq!(quota[0]["hardLimit"], 300 << 10);
    let query = |filter: Value| ann.call(&[("Quota/query", json!({ "filter": filter }))]).remove(0)["ids"].clone();
    assert_eq!(query(json!({ "type": "Email", "scope": "account" })), json!(["Qbytes"]));
    assert_eq!(query(json!({ "resourceType": "count" })), json!([]));
}

#[test]
fn objects_go_by_their_creation_ids_in_later_calls() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    let done = ann.call(&[
        ("Mailbox/set", json!({ "create": { "k": { "name": "Zed" } } })),
        ("Mailbox/set", json!({ "update": { "#k": { "name": "Zod" } } })),
        ("Mailbox/set", json!({ "destroy": ["#k"] })),
    ]);
    let id = done[0]["created"]["k"]["id"].as_str().unwrap();
    assert!(done[1]["updated"].as_object().unwrap().contains_key(id), "{done:?}");
    assert_eq!(done[2]["destroyed"], json!([id]));
}

#[test]
fn behind_a_proxy_with_tls_the_addresses_have_it_too() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    for (field, scheme) in [
        ("X-Forwarded-Proto: https", "https"),
        ("Forwarded: for=192.0.2.1;proto=https;host=x", "https"),
        ("X-Forwarded-Proto: https, http", "http"),
        ("X-Other: https", "http"),
    ] {
        let page = ann.browser.ask(&format!("GET /jmap/session HTTP/1.1\r\n{}\r\n{field}", ann.login), b"");
        let session: Value = serde_json::from_slice(&page.body).unwrap();
        let wanted = format!("{scheme}://{}/jmap/api", ann.browser.address);
        assert_eq!(session["apiUrl"], wanted, "{field}");
    }
}

#[test]
fn a_blob_is_looked_up_in_emails_threads_and_mailboxes() {
    let site = Site::start(false);
    let ann = Client::new(&site, "ann");
    site.deliver("ann", "From: eve@example.org\nTo: ann@mx.test\nSubject: Hello\n\nA line\n");
    let mail = wait_for(|| ann.emails().pop(), "the mail");
    let types = ["Mailbox", "Thread", "Email"];
    let found = ann.call(&[("Blob/lookup", json!({ "typeNames": types, "ids": [mail["blobId"]] }))]).remove(0);
    let wanted = json!({ "Mailbox": [ann.mailbox("inbox")], "Thread": [mail["threadId"]], "Email": [mail["id"]] });
    assert_eq!(found["list"][0]["matchedIds"], wanted, "{found}");
    let upload = json!({ "create": { "b": { "data": [{ "blobId": mail["blobId"], "offset": 0, "length": 5 }] } } });
    let done = ann.call(&[("Blob/upload", upload)]).remove(0);
    let got = ann.call(&[("Blob/get", json!({ "ids": [done["created"]["b"]["id"]] }))]).remove(0);
    let path = format!("/jmap/download/{}/{}/x", ann.account, mail["blobId"].as_str().unwrap());
    let (whole, got) = (ann.get(&path).text(), &got["list"][0]);
    assert_eq!((&got["data:asText"], &got["size"]), (&json!(whole[..5]), &json!(5)), "{got}");
}
