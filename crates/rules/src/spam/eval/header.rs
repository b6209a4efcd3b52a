//! Functions about the header: forged senders, recipients, subjects, dates.

mod forged;
mod ratware;
mod recipients;
mod subject;

use super::{Arguments, Context, Function, look, truth};
pub use forged::Hotmail;
use forged::{
    fake_aol_relay, forged_eudoramail, forged_gmail, forged_gw05, forged_juno, forged_yahoo, hotmail, is_of_msn_groups,
};
use ratware::{message_id_not_usable, outlook_message_id, ratware_name_id, ratware_sender, unresolved_template};
pub use recipients::Recipients;
use recipients::{missing_to, recipients};
use subject::{all_caps, subject_in, to_in_subject};

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_for_fake_aol_relay_in_rcvd", fake_aol_relay),
    look("check_for_unique_subject_id", |_, _| 0.0),
    look("check_illegal_chars", illegal_chars),
    look("check_for_forged_hotmail_received_headers", |context, _| truth(hotmail(context) == Hotmail::Forged)),
    look("check_for_no_hotmail_received_headers", |context, _| truth(hotmail(context) == Hotmail::Missing)),
    look("check_for_msn_groups_headers", |context, _| truth(is_of_msn_groups(context))),
    look("check_for_forged_eudoramail_received_headers", forged_eudoramail),
    look("check_for_forged_yahoo_received_headers", forged_yahoo),
    look("check_for_forged_juno_received_headers", forged_juno),
    look("check_for_forged_gmail_received_headers", forged_gmail),
    look("check_for_forged_gw05_received_headers", forged_gw05),
    look("check_for_matching_env_and_hdr_from", matching_senders),
    look("check_equal_from_domains", differing_domains),
    look("sorted_recipients", |context, _| truth(recipients(context).are_sorted)),
    look("similar_recipients", |context, arguments| truth(within(recipients(context).similar, arguments))),
    look("check_for_missing_to_header", missing_to),
    look("check_for_shifted_date", |context, arguments| {
        truth(within(context.dates().difference as f64 / 3600.0, arguments))
    }),
    look("received_within_months", |context, arguments| {
        const MONTH: f64 = 31_556_952.0 / 12.0;
        truth(within((context.now - context.date_received()) as f64 / MONTH, arguments))
    }),
    look("subject_is_all_caps", all_caps),
    look("check_for_to_in_subject", to_in_subject),
    look("check_outlook_message_id", outlook_message_id),
    look("check_messageid_not_usable", message_id_not_usable),
    look("check_header_count_range", count_range),
    look("check_unresolved_template", unresolved_template),
    look("check_ratware_name_id", ratware_name_id),
    look("check_ratware_envelope_from", ratware_sender),
    look("gated_through_received_hdr_remover", |context, _| truth(is_gated(context))),
    look("check_subject_in_welcomelist", |context, _| subject_in(context, "welcomelist_subject")),
    look("check_subject_in_blocklist", |context, _| subject_in(context, "blocklist_subject")),
    look("check_subject_in_whitelist", |context, _| subject_in(context, "welcomelist_subject")),
    look("check_subject_in_blacklist", |context, _| subject_in(context, "blocklist_subject")),
];

/// At least the first argument and less than the second, where these are bounds.
fn within(value: f64, arguments: &Arguments<'_>) -> bool {
    let bound = |place| if place < arguments.len() { arguments.bound(place) } else { None };
    bound(0).is_none_or(|min| value >= min) && bound(1).is_none_or(|max| value < max)
}

/// A field as text, its blanks one space each.
fn spaced(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in String::from_utf8_lossy(text).chars() {
        if !letter.is_ascii_whitespace() {
            out.push(letter);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

fn text(context: &Context<'_>, name: &str) -> String {
    String::from_utf8_lossy(&context.fields.get(name)).into_owned()
}

/// Whether a text ends with a name, before a last line feed, behind a border of words, whatever its case.
fn ends_with_word(text: &str, name: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text).to_ascii_lowercase();
    text.strip_suffix(name).is_some_and(|before| !before.ends_with(is_word))
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Bytes behind a mark that are looked at: more than any line of a header has, so that many marks cost no square.
const BEHIND_BYTES_MAX: usize = 1_024;

/// Text behind each occurrence of a mark, at most [`BEHIND_BYTES_MAX`] of it.
fn behind<'t>(text: &'t str, mark: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(mark).map(move |(at, _)| {
        let rest = &text[at + mark.len()..];
        let end = (BEHIND_BYTES_MAX..rest.len()).find(|&end| rest.is_char_boundary(end)).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Bytes that text has none of: their share and number.
fn illegal_chars(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let name = arguments.text(0);
    let name = if name.ends_with(":raw") { name.to_string() } else { format!("{name}:raw") };
    let value = context.fields.get(&name);
    if value.trim_ascii().is_empty() {
        return 0.0;
    }
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f);
    if !value.is_ascii() && core::str::from_utf8(&value).is_ok() && !value.iter().any(is_control) {
        return 0.0;
    }
    let mut illegal = value.iter().filter(|byte| is_control(byte) || **byte >= 0x7f).count();
    if illegal > 0 && name.eq_ignore_ascii_case("subject:raw") {
        // One sign of a currency or a trade mark is common.
        illegal -= usize::from(value.iter().filter(|byte| [0xa2, 0xa3, 0xae].contains(*byte)).count() == 1);
    }
    truth(illegal as f64 / value.len() as f64 >= arguments.number(1) && illegal as f64 >= arguments.number(2))
}

/// Whether a gateway has taken the path away.
pub(super) fn is_gated(context: &Context<'_>) -> bool {
    let list = text(context, "Mailing-List");
    let is_list = list.lines().any(|line| {
        line.strip_prefix("contact ").and_then(|rest| rest.strip_suffix("; run by ezmlm")).is_some_and(|address| {
            address.contains('@') && !address.starts_with('@') && !address.ends_with('@') && !address.contains(' ')
        })
    });
    let received = context.fields.text("Received");
    if is_list {
        let delivered = text(context, "Delivered-To");
        let to_list =
            delivered.lines().any(|line| line.strip_prefix("mailing list ").is_some_and(|rest| rest.contains('@')));
        let path = String::from_utf8_lossy(received.as_deref().unwrap_or_default()).into_owned();
        let is_invoked = behind(&path, "qmail ").any(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && rest[digits..].starts_with(" invoked ")
        });
        if to_list && is_invoked {
            return true;
        }
    }
    let Some(received) = received else { return true };
    let received = String::from_utf8_lossy(&received).into_owned();
    behind(&received, "from groups.msn.com (").any(|rest| {
        let word = rest.split([' ', '\n', '\t']).next().unwrap_or_default();
        word.ends_with(".msn.com") && word.len() > ".msn.com".len() && rest[word.len()..].starts_with(' ')
    })
}

fn matching_senders(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let (envelope, header) = (context.fields.get("EnvelopeFrom:addr"), context.fields.get("From:addr"));
    truth(envelope.eq_ignore_ascii_case(&header))
}

/// Whether the senders of the envelope and of the header are of different domains.
fn differing_domains(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let domain = |name: &str| {
        let address = context.fields.get(name);
        let host = address.rsplitn(2, |&byte| byte == b'@').next().filter(|host| host.len() < address.len())?.to_vec();
        let labels: Vec<&[u8]> = host.split(|&byte| byte == b'.').collect();
        let last = &labels[labels.len().saturating_sub(2)..];
        let all_there = last.iter().all(|label| !label.is_empty());
        let cut = if labels.len() > 2 && all_there { last.join(&b'.') } else { host.clone() };
        (!cut.is_empty()).then(|| cut.to_ascii_lowercase())
    };
    match (domain("From:addr"), domain("EnvelopeFrom:addr")) {
        (Some(header), Some(envelope)) => truth(header != envelope),
        _ => 0.0,
    }
}

fn count_range(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let mut values: Vec<&[u8]> = context.fields.written(arguments.text(0)).iter().map(|field| &*field.value).collect();
    values.sort_unstable();
    values.dedup();
    let count = values.len() as f64;
    truth(count >= arguments.number(1) && count <= arguments.number(2))
}
