//! Traces of programs that send bulk mail: message ids, senders and templates that were never filled in.

use super::{behind, is_gated, text};
use crate::spam::eval::{Arguments, Context, times, truth};
use crate::spam::header::find;
use crate::spam::message::ascii;

/// Outlook's ids tell their time; not one, where that fits neither the date nor the path.
pub(super) fn outlook_message_id(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let id = text(context, "MESSAGEID");
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let parts: Vec<&str> = id.strip_prefix('<').unwrap_or_default().splitn(3, '$').collect();
    let token = match parts[..] {
        [first, second, third] => {
            let fits = first.len() == 12 && second.len() == 8 && third.get(8..9) == Some("@");
            let all_hex = hex(first) && hex(second) && third.get(..8).is_some_and(hex);
            first.get(4..).filter(|_| fits && all_hex).and_then(|token| u32::from_str_radix(token, 16).ok())
        }
        _ => None,
    };
    let Some(token) = token else { return 0.0 };
    let is_off = |time: i64| {
        let expected = (time as f64 * 0.002_328_306_436_538_7 + 27_111_902.832_984_9).trunc();
        (f64::from(token) - expected).abs() >= 250.0
    };
    let date = times::parse(&context.fields.get("Date")).unwrap_or(0);
    if !is_off(date) {
        return 0.0;
    }
    let received = context.fields.get("Received");
    let last = times::date_in(&received).and_then(times::parse).unwrap_or(0);
    truth(is_off(last))
}

pub(super) fn message_id_not_usable(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let leave = text(context, "List-Unsubscribe").to_ascii_lowercase();
    let leave = leave.trim_end_matches('\n');
    let is_list = behind(leave, "<mailto:").any(|rest| {
        let user = rest.strip_suffix('>').and_then(|rest| rest.rsplit_once('@')).map_or("", |(user, _)| user);
        let is_blank = rest.contains(|letter: char| letter.is_ascii_whitespace());
        !is_blank
            && (user.strip_prefix("leave-").is_some_and(|name| !name.is_empty()) || user.ends_with("-unsubscribe"))
    });
    let received = text(context, "Received");
    truth(
        is_list || is_gated(context) || received.contains("/CWT/DCE)") || received.contains("iPlanet Messaging Server"),
    )
}

/// A template that was sent without being filled in: `%NAME`.
pub(super) fn unresolved_template(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    const FREE: [&str; 12] = [
        "x-vms-to",
        "x-uidl",
        "x-face",
        "to",
        "cc",
        "from",
        "subject",
        "references",
        "in-reply-to",
        "message-id",
        "x-message-id",
        "resent-message-id",
    ];
    let all = context.fields.get("ALL");
    let has_template = |line: &[u8]| {
        line.windows(3).any(|three| {
            three[0] == b'%'
                && three[1].is_ascii_uppercase()
                && (three[2].is_ascii_uppercase() || b"_-".contains(&three[2]))
        })
    };
    let is_free = |line: &[u8]| {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default().to_ascii_lowercase();
        name == b"x-original-message-id" || FREE.iter().any(|free| free.as_bytes() == name)
    };
    truth(all.split(|&byte| byte == b'\n').any(|line| has_template(line) && !is_free(line)))
}

pub(super) fn ratware_name_id(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let id = text(context, "MESSAGEID");
    let from = text(context, "From");
    let name = behind(&id, "<").find_map(|rest| {
        let letters = rest.get(..28).is_some_and(|letters| letters.bytes().all(|byte| byte.is_ascii_uppercase()));
        let name = rest.get(28..)?.strip_prefix('.')?.split('>').next()?;
        (letters && !name.is_empty() && rest.contains('>')).then_some(name)
    });
    let Some(name) = name else { return 0.0 };
    let mut quotes = from.split('"');
    quotes.next();
    let quoted: Vec<&str> = quotes.collect();
    let is_named =
        quoted.windows(2).any(|two| !two[0].is_empty() && two[1].trim_start().starts_with(&format!("<{name}>")));
    truth(is_named)
}

/// The sender of the envelope holds the recipient, turned around.
pub(super) fn ratware_sender(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let (to, from) = (context.fields.get("To:addr"), context.fields.get("EnvelopeFrom:addr"));
    let is_rewritten = from.len() > 4
        && from[..3].eq_ignore_ascii_case(b"SRS")
        && from[3].is_ascii_digit()
        && b"=+-".contains(&from[4]);
    let at = to.iter().position(|&byte| byte == b'@');
    let (Some(at), false) = (at, is_rewritten || from.is_empty()) else { return 0.0 };
    let reading = &context.settings.reading;
    let domain = reading.registered(&ascii(&to[at + 1..]));
    if at == 0 || !reading.is_known(&domain) {
        return 0.0;
    }
    let (from, user) = (from.to_ascii_lowercase(), to[..at].to_ascii_lowercase());
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut start = 0;
    while let Some(found) = find(&from[start..], &domain) {
        let place = start + found;
        let border = !place.checked_sub(1).is_some_and(|before| word(&from[before]));
        let behind = from.get(place + domain.len() + 1..).unwrap_or_default();
        if border && behind.strip_prefix(&user[..]).is_some_and(|rest| rest.starts_with(b"@")) {
            return 1.0;
        }
        start = place + 1;
    }
    0.0
}
