//! Blobs (RFC 8620, section 6): an upload `U…`, a script `G…`, a message `M…`, and parts of either, `M…-2.1`: the path of a part behind a hyphen, decoded.
//! A part that is a message has parts of its own: `M…-2-1`.
//!
//! Bounds: [`NESTED_MAX`] messages within each other, of which those within are read whole, [`WITHIN_BYTES_MAX`] each.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use stream::Coding;

use crate::arguments::Arguments;
use crate::engine::Engine;
use crate::error::Error;
use crate::host::{Host, Layout, Script};
use crate::index::{Index, mailbox_id};
use crate::limits::LOOKED_UP;
use crate::part::Part;
use crate::source::{Blob, Source};
use crate::{Map, Value, json};

const NESTED_MAX: usize = 5;
const WITHIN_BYTES_MAX: usize = 64 << 20;

/// The content of a blob of the account; `None` if it does not exist.
pub fn blob(host: &mut dyn Host, id: &str) -> Option<Blob> {
    let index = Index::new(host.state(), host.account().number);
    find(host, &index, id)
}

/// The same, with the Emails as they are now.
pub(crate) fn find(host: &mut dyn Host, index: &Index, id: &str) -> Option<Blob> {
    let mut parts = id.split('-');
    let first = parts.next()?;
    let (mut source, mut layout) = (None, Layout::default());
    let mut found = match index.message_of(first) {
        Some(message) => {
            let size = index.snapshot.message(message)?.size;
            source = Some(Source::Stored(message));
            layout = host.layout(message)?;
            Blob::new(Source::Stored(message), 0, size, Coding::Identity)
        }
        None => {
            let script = script(host, first);
            let content = script.or_else(|| host.upload(first).map(|(_, content)| content))?;
            let end = content.len() as u64;
            Blob::new(Source::Bytes(content), 0, end, Coding::Identity)
        }
    };
    for (depth, path) in parts.enumerate() {
        if depth >= NESTED_MAX {
            return None;
        }
        let within = match source.take() {
            Some(source) => source,
            None => {
                let (bytes, is_whole) = found.bytes(host, WITHIN_BYTES_MAX);
                if !is_whole {
                    return None;
                }
                layout = host.layout_of(&bytes);
                Source::Bytes(bytes.into())
            }
        };
        let part = Part::read(host, &within, &layout);
        let part = part.find(path)?;
        found = Blob::new(within, part.body, part.end, part.coding);
    }
    Some(found)
}

/// `Blob/copy`: there is no other account to copy from, and from the same one nothing is copied (RFC 8620, section 6.3).
pub(crate) fn copy(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    match arguments.string("fromAccountId")? {
        Some(from) if from == account => Err(Error::arguments("fromAccountId")),
        _ => Err(Error::new("fromAccountNotFound")),
    }
}

/// `Blob/lookup` (RFC 9404, section 4.3): the Email that a blob is of, its thread and its mailboxes.
pub(crate) fn lookup(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let types = arguments.strings("typeNames")?.ok_or_else(|| Error::arguments("typeNames"))?;
    let ids = arguments.ids()?.ok_or_else(|| Error::arguments("ids"))?;
    arguments.end()?;
    if types.iter().any(|name| !LOOKED_UP.contains(&name.as_str())) {
        return Err(Error::new("unknownDataType"));
    }
    let index = engine.index();
    let (mut list, mut missing) = (Vec::new(), Vec::new());
    for id in ids {
        if find(engine.host, &index, &id).is_none() {
            missing.push(id);
            continue;
        }
        let owner = id.split('-').next().and_then(|owner| index.email(index.message_of(owner)?));
        let of = |name: &str| match (name, &owner) {
            ("Mailbox", Some(email)) => email.mailboxes.iter().copied().map(mailbox_id).collect(),
            ("Thread", Some(email)) => json!([email.thread]),
            (_, Some(email)) => json!([email.id]),
            (_, None) => json!([]),
        };
        let matched: Map<String, Value> = types.iter().map(|name| (name.clone(), of(name))).collect();
        list.push(json!({ "id": id, "matchedIds": matched }));
    }
    Ok(json!({ "accountId": account, "list": list, "notFound": missing }))
}

/// The content of a script by the id of its blob.
fn script(host: &mut dyn Host, id: &str) -> Option<Arc<[u8]>> {
    let is_it = |script: &Script| of_script(&script.text) == id;
    id.starts_with('G').then(|| host.scripts().into_iter().find(is_it).map(|script| script.text))?
}

/// The id of the blob that is a script: by its digest.
pub(crate) fn of_script(text: &[u8]) -> String {
    format!("G{:016x}{:x}", hash(text), text.len())
}

/// FNV-1a.
pub(crate) fn hash(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
