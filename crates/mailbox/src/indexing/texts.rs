//! The text of a mail: of its header here, of the rest by an inspection.

use std::ops::ControlFlow;
use std::time::Duration;

use ::index::{Cutter, Field};
use flow::{Context, Flow, Inspector, Out, Protocol, Sought, Unfinished, Wants};
use keep::content::Reader as _;
use keep::header::{fields, plain_addresses};
use tokio::time::timeout;

use crate::content::Body;
use crate::inspecting::{self, Unread};

/// Bytes of a header that are read.
const HEADER_BYTES_MAX: usize = 256 << 10;

/// How long an inspection of one mail may take.
const WAIT: Duration = Duration::from_secs(20);

/// Has an inspection read a mail, until `hear` has heard enough.
pub(crate) async fn read(
    inspector: &dyn Inspector,
    body: &mut Body<'_>,
    sought: Sought,
    hear: &mut (impl FnMut(Out) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>, Unread> {
    let context = Context {
        flow: Flow { protocol: Protocol::Imap, ..Flow::default() },
        wants: Wants { sought: Some(sought), ..Wants::default() },
        ..Context::default()
    };
    let reading = inspecting::read(inspector, context, body, 0, hear);
    timeout(WAIT, reading).await.unwrap_or(Err(Unread::Inspection(Unfinished::Late)))
}

/// Whether a text is in a mail, behind its header; no if it cannot be read.
pub(crate) async fn holds(inspector: &dyn Inspector, body: &mut Body<'_>, text: &str) -> bool {
    let mut is_present = false;
    let mut hear = |out| match out {
        Out::Present => {
            is_present = true;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let _ = read(inspector, body, Sought::Phrase(text.into()), &mut hear).await;
    is_present
}

/// Tells the terms of a mail's header; whether it was read whole.
pub(super) fn header(body: &mut Body<'_>, tell: &mut impl FnMut(Field, &str)) -> bool {
    let mut header = Vec::new();
    let read = tokio::task::block_in_place(|| body.read_header(HEADER_BYTES_MAX, &mut header));
    for field in fields(&header) {
        let colon = field.iter().position(|&byte| byte == b':').unwrap_or(field.len());
        let (name, value) = (field[..colon].trim_ascii(), mime::unfolded(field.get(colon + 1..).unwrap_or_default()));
        let (is, is_of_addresses) = kind(name);
        let mut cut = |field: Field, text: &str| {
            let mut cutter = Cutter::default();
            cutter.read(text, &mut |term| tell(field, term));
            cutter.end(&mut |term| tell(field, term));
        };
        cut(Field::Other, &String::from_utf8_lossy(name));
        cut(is, &mime::header_text(&value, usize::MAX));
        // What is no UTF-8 as a whole may be in part.
        if std::str::from_utf8(&value).is_err() {
            cut(is, &String::from_utf8_lossy(&value));
        }
        if is_of_addresses {
            plain_addresses(&value).for_each(|address| cut(is, &mime::header_text(&address, usize::MAX)));
        }
    }
    read.is_ok() && header.len() < HEADER_BYTES_MAX
}

/// The field of an index for a header field of this name, and whether it has addresses.
pub(super) fn kind(name: &[u8]) -> (Field, bool) {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    match () {
        () if is("subject") => (Field::Subject, false),
        () if is("from") => (Field::From, true),
        () if is("to") => (Field::To, true),
        () if is("cc") => (Field::Cc, true),
        () => (Field::Other, is("bcc") || is("sender") || is("reply-to")),
    }
}
