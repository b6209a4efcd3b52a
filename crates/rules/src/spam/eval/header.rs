//! Functions about the header: forged senders, recipients, subjects, dates.

use super::{Arguments, Context, Function, look, times, truth};
use crate::spam::header::{find, ip_in};
use crate::spam::message::ascii;

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

/// What is looked at of what stands behind a mark: more than any line of a header has, so that many marks cost no square.
const BEHIND_BYTES_MAX: usize = 1_024;

/// What stands behind each occurrence of a text, at most [`BEHIND_BYTES_MAX`] of it.
fn behind<'t>(text: &'t str, mark: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(mark).map(move |(at, _)| {
        let rest = &text[at + mark.len()..];
        let end = (BEHIND_BYTES_MAX..rest.len()).find(|&end| rest.is_char_boundary(end)).unwrap_or(rest.len());
        &rest[..end]
    })
}

fn fake_aol_relay(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let received = spaced(&context.fields.get("Received"));
    let lower = received.to_ascii_lowercase();
    let is_relay = behind(&lower, " rly-").any(|rest| {
        let bytes = rest.as_bytes();
        bytes.get(..2).is_some_and(|pair| pair.iter().all(u8::is_ascii_lowercase))
            && bytes.get(2..4).is_some_and(|pair| pair.iter().all(u8::is_ascii_digit))
            && bytes.get(4) == Some(&b'.')
    });
    let is_of_aol = behind(&received, "/AOL-").any(|rest| {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut rest = rest;
        (0..3).all(|part| {
            let count = digits(rest);
            let end = rest.get(count..).and_then(|rest| rest.strip_prefix(if part < 2 { '.' } else { ')' }));
            rest = end.unwrap_or_default();
            count > 0 && end.is_some()
        })
    });
    let is_known = ["RELAY", "MAILRELAY", "MAILIN"].iter().any(|id| received.contains(&format!("ESMTP id {id}")));
    truth(is_relay && !is_of_aol && !is_known)
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

/// What a mail that names Hotmail comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hotmail {
    /// Nothing is wrong.
    Fine,
    /// The path says Hotmail and is not theirs.
    Forged,
    /// The sender says Hotmail, and the path does not.
    Missing,
}

fn hotmail(context: &Context<'_>) -> Hotmail {
    *context.hotmail.get_or_init(|| hotmail_of(context))
}

fn hotmail_of(context: &Context<'_>) -> Hotmail {
    let received = context.fields.get("Received");
    let is_of_them = || ends_with_word(&text(context, "From:addr"), "hotmail.com");
    // Most mails name it nowhere.
    if memchr::memmem::find(&received, b"hotmail.com").is_none() && !is_of_them() {
        return Hotmail::Fine;
    }
    let received = spaced(&received);
    if received.contains("from mail pickup service by hotmail.com with Microsoft SMTPSVC;") || is_of_msn_groups(context)
    {
        return Hotmail::Fine;
    }
    let has_ip = context.fields.text("X-Originating-Ip").is_some_and(|text| ip_in(&text));
    let organisation = text(context, "X-OriginatorOrg");
    let has_origin = organisation.contains("hotmail.com") || organisation.contains("msonline-outlook");
    if is_gated(context) {
        return Hotmail::Fine;
    }
    let is_theirs = behind(&received, "from ").any(|rest| {
        let words: Vec<&str> = rest.split(' ').take(5).collect();
        let name = words.first().copied().unwrap_or_default();
        let second = words.get(1).copied().unwrap_or_default();
        let host = second.strip_prefix('(').unwrap_or_default();
        let of = |suffix: &str| host.trim_end_matches(')').ends_with(suffix) && second.starts_with('(');
        let is_hotmail = name == "hotmail.com" || name.ends_with(".hotmail.com") || name.ends_with(".hotmail com");
        let is_address = ip_in(second.as_bytes());
        (has_ip && is_hotmail && (of(".hotmail.com") || of(".hotmail.msn.com")))
            || (has_origin
                && name.ends_with(".outbound.protection.outlook.com")
                && of(".outbound.protection.outlook.com"))
            || (has_origin && name.ends_with(".prod.outlook.com") && name.contains("prd") && is_address)
            || (has_ip && is_hotmail && second.starts_with("([") && is_address)
            || (has_ip
                && words.get(1).is_some_and(|&word| word == "by")
                && words
                    .get(2)
                    .is_some_and(|word| word.ends_with(".hotmail.com") || word.ends_with(".hotmail.msn.com"))
                && words.get(3).is_some_and(|&word| word == "with")
                && words.get(4).is_some_and(|&word| word == "HTTP;"))
            || (has_ip
                && name.starts_with("[66.218")
                && name.ends_with(']')
                && words.get(1).is_some_and(|&word| word == "by")
                && words.get(2).is_some_and(|word| word.contains(".yahoo.com")))
    });
    if is_theirs {
        return Hotmail::Fine;
    }
    let names_it = ["from ", "HELO ", "helo="].iter().any(|mark| {
        behind(&received, mark).any(|rest| {
            let word = rest.split(' ').next().unwrap_or_default();
            behind(word, "hotmail.com").any(|rest| !rest.starts_with(is_word))
        })
    });
    if names_it {
        return Hotmail::Forged;
    }
    if is_of_them() { Hotmail::Missing } else { Hotmail::Fine }
}

fn is_of_msn_groups(context: &Context<'_>) -> bool {
    let to = text(context, "To");
    let lower = to.to_ascii_lowercase();
    let Some(at) = lower.find("@groups.msn.com>") else { return false };
    let start = lower[..at].rfind(|letter: char| letter == '<' || letter.is_ascii_whitespace());
    let Some(list) = start.filter(|&start| lower[start..].starts_with('<')).and_then(|start| to.get(start + 1..at))
    else {
        return false;
    };
    let received = text(context, "Received");
    let server = behind(&received, "from mail pickup service by ").find_map(|rest| {
        let digits = rest.get(1..3).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let end = rest.get(3..).filter(|end| end.starts_with(".groups.msn.com"))?;
        (rest.starts_with('p') && digits).then(|| &rest[..rest.len() - end.len() + ".groups.msn.com".len()])
    });
    let Some(server) = server else { return false };
    let id = text(context, "Message-Id");
    if list == "notifications" {
        return id.starts_with('<') && id.contains(&format!("@{server}>"));
    }
    let sender = text(context, "EnvelopeFrom:addr");
    id.starts_with(&format!("<{list}-"))
        && id.contains("@groups.msn.com>")
        && sender.contains(&format!("{list}-bounce@groups.msn.com"))
}

fn forged_eudoramail(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    if !ends_with_word(&text(context, "From:addr"), "eudoramail.com") {
        return 0.0;
    }
    let received = spaced(&context.fields.get("Received"));
    let has_ip = context.fields.text("X-Sender-Ip").is_some_and(|text| ip_in(&text));
    let is_theirs = behind(&received, "by ").any(|rest| {
        let word = rest.split(' ').next().unwrap_or_default();
        word.contains("whowhere.com;")
    });
    let is_explained = is_theirs && has_ip;
    truth(!is_explained && !is_gated(context))
}

fn forged_yahoo(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let from = text(context, "From:addr");
    if !ends_with_word(&from, "yahoo.com") {
        return 0.0;
    }
    let mut received = spaced(&context.fields.get("Received"));
    if !context.fields.get("Resent-From").is_empty() && !context.fields.get("Resent-To").is_empty() {
        let older = spaced(&context.fields.get("X-Received"));
        if !older.is_empty() {
            received = older;
        }
    }
    if is_gated(context) {
        return 0.0;
    }
    let is_yahoo = |relay: &crate::spam::header::Relay| relay.rdns.ends_with(b".yahoo.com") && relay.rdns.len() > 10;
    if context.path.trusted.iter().any(is_yahoo) || context.path.untrusted.first().is_some_and(is_yahoo) {
        return 0.0;
    }
    let is_theirs = behind(&received, "by ").any(|rest| {
        let (host, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let of = |start: &str, inner: &str| {
            host.strip_prefix(start).is_some_and(|name| name.ends_with(".yahoo.com") && name.contains(inner))
        };
        let parts = host.split('.').count();
        let words = host.split('.').all(|part| !part.is_empty() && part.chars().all(is_word));
        let version = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let is_version = version.is_some_and(|(version, rest)| {
            let halves: Vec<&str> = version.split('/').collect();
            let numbers = |half: &&str| {
                half.split('.').count() == 3
                    && half.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let rest = rest.strip_prefix(" with ESMTP").unwrap_or(rest);
            let is_named = rest.strip_prefix(" id ").is_some_and(|id| id.starts_with(is_word));
            halves.len() == 2 && halves.iter().all(numbers) && is_named
        });
        (of("web", ".mail") && rest.starts_with("via HTTP"))
            || (of("sonic", ".consmr.mail") && rest.starts_with("with HTTP"))
            || (of("smtp", "") && rest.starts_with("with SMTP"))
            || (parts == 4 && words && host.ends_with(".yahoo.com") && is_version)
    });
    let is_group = behind(&received, "from [").any(|rest| {
        let Some((address, rest)) = rest.split_once("] by ") else { return false };
        let host = rest.split(' ').next().unwrap_or_default();
        let is_server = [".groups.yahoo.com", ".scd.yahoo.com", ".dcn.yahoo.com"].iter().any(|end| host.ends_with(end));
        ip_in(address.as_bytes()) && is_server && rest[host.len()..].starts_with(" with NNFMP")
    });
    let is_bulk = behind(&received, "mailer").any(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with(".bulk.scd.yahoo.com")
    }) && from.to_ascii_lowercase().ends_with("@reply.yahoo.com");
    truth(!is_theirs && !is_group && !is_bulk)
}

fn forged_juno(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    if !ends_with_word(&text(context, "From:addr"), "juno.com") || is_gated(context) {
        return 0.0;
    }
    let origin = text(context, "X-Originating-IP");
    let mailer = text(context, "X-Mailer");
    let received = text(context, "Received");
    // Of one line: a name behind `from`, an address in brackets behind it, `by` behind that.
    let is_from = |name: &str, brackets: &[char]| {
        received.lines().any(|line| {
            behind(line, "from").any(|rest| {
                let named = behind(rest, name).find(|rest| !rest.starts_with(is_word));
                named.is_some_and(|rest| {
                    rest.match_indices(brackets).any(|(at, _)| {
                        let inner = &rest[at + 1..];
                        let end = inner.find([']', ')']).unwrap_or(0);
                        ip_in(&inner.as_bytes()[..end]) && inner[end..].contains("by")
                    })
                })
            })
        })
    };
    if !origin.is_empty() {
        let is_theirs = is_from("juno.com", &['[', '(']) || is_from("untd.com", &['[', '(']);
        let has_cookie = received.contains(" cookie.juno.com ") || received.contains(" cookie.untd.com ");
        return truth((!is_theirs && !has_cookie) || !mailer.contains("Juno "));
    }
    // Without the address of a client it is forged in any case.
    1.0
}

fn forged_gmail(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    if !ends_with_word(&text(context, "From:addr"), "gmail.com") {
        return 0.0;
    }
    const BYTES_MIN: usize = 60;
    let older = text(context, "X-Received");
    let received = text(context, "Received");
    let by = |text: &str, mark: &str, with: &str| {
        behind(text, mark).any(|rest| {
            let word = rest.split([' ', '\n', '\t']).next().unwrap_or_default();
            let id = rest[word.len()..].strip_prefix(with);
            !word.is_empty() && id.is_some_and(|id| id.starts_with(|letter: char| !letter.is_ascii_whitespace()))
        })
    };
    let is_six = |text: &str| {
        behind(text, "by 2002:a").any(|rest| {
            let digits = rest.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            let word = rest.split([' ', '\n', '\t']).next().unwrap_or_default();
            let id = rest[word.len()..].strip_prefix(" with SMTP id ");
            digits && word[2..].starts_with(':') && id.is_some_and(|id| !id.trim_start().is_empty())
        })
    };
    let is_theirs = by(&older, "by 10.", " with SMTP id ")
        || is_six(&older)
        || received.contains("by smtp.googlemail.com with ESMTPSA id ")
        || (context.fields.get("X-Gm-Message-State").len() >= BYTES_MIN
            && context.fields.get("X-Google-Smtp-Source").len() >= BYTES_MIN);
    truth(!is_theirs)
}

/// `from A by B with ESMTP; date`, where B has no dot: in a field that is not the first.
fn forged_gw05(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let received = text(context, "Received");
    let lines: Vec<&str> = received.lines().collect();
    let is_it = |line: &&str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        matches!(words[..], ["from", _, "by", by, "with", "ESMTP;", day, _, _, _, _, _] if !by.contains('.') && day.ends_with(','))
    };
    truth(lines.len() > 1 && lines.last().is_some_and(is_it))
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

/// How recipients follow each other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recipients {
    are_sorted: bool,
    similar: f64,
}

fn recipients(context: &Context<'_>) -> Recipients {
    *context.recipients.get_or_init(|| {
        const SORTED_MIN: usize = 7;
        const SIMILAR_MIN: usize = 5;
        const LOOKED_AT_MAX: usize = 256;
        let mut all = context.fields.values("ToCc:addr").to_vec();
        if all.len() < SIMILAR_MIN {
            all.extend(context.fields.values("Bcc:addr").iter().cloned());
        }
        let mut distinct: Vec<Box<[u8]>> = Vec::new();
        for address in all.into_iter().take_while(|address| !matches!(&**address, b"" | b"0")) {
            if distinct.last().is_none_or(|last| !last.eq_ignore_ascii_case(&address)) {
                distinct.push(address);
            }
            if distinct.len() == LOOKED_AT_MAX {
                break;
            }
        }
        let are_sorted = distinct.len() >= SORTED_MIN && distinct.is_sorted();
        let similar = if distinct.len() >= SIMILAR_MIN { similarity(&distinct) } else { 0.0 };
        Recipients { are_sorted, similar }
    })
}

/// How many pairs begin alike, of their users or their hosts.
fn similarity(addresses: &[Box<[u8]>]) -> f64 {
    let start = |text: &'_ [u8]| text[..text.len().min(2)].to_vec();
    let host = |address: &[u8]| address.iter().position(|&byte| byte == b'@').map(|at| address[at + 1..].to_vec());
    let users: Vec<Vec<u8>> = addresses.iter().map(|address| start(address)).collect();
    // Addresses without a host are passed over, and those behind move up.
    let hosts: Vec<Vec<u8>> = addresses.iter().filter_map(|address| host(address)).collect();
    let (mut hits, mut pairs) = (0_u32, 0_u32);
    for first in 0..addresses.len() {
        for second in first + 1..addresses.len() {
            hits += u32::from(users[first] == users[second]);
            if let (Some(one), Some(other)) = (hosts.get(first), hosts.get(second)) {
                hits += u32::from(start(one) == start(other) && one != other);
            }
            pairs += 1;
        }
    }
    f64::from(hits) / f64::from(pairs.max(1))
}

fn missing_to(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    truth(context.fields.get("To").is_empty() && context.fields.get("Apparently-To").is_empty())
}

fn all_caps(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    const ANSWERS: [&str; 10] = ["re", "fwd", "fw", "aw", "antwort", "wg", "sv", "vb", "vs", "vl"];
    let subject = text(context, "Subject");
    let mut subject = subject.trim_matches(|letter: char| letter.is_ascii_whitespace());
    while let Some((word, rest)) = subject.split_once(':') {
        if !ANSWERS.contains(&&*word.to_ascii_lowercase()) {
            break;
        }
        subject = rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace());
    }
    if !subject.contains(|letter: char| letter.is_ascii_whitespace()) || subject.len() < 10 {
        return 0.0;
    }
    const FAR: [&str; 13] = [
        "koi",
        "jp",
        "jis",
        "euc",
        "gb",
        "big5",
        "isoir",
        "cp1251",
        "windows-1251",
        "georgianps",
        "pt154",
        "tis",
        "sjis",
    ];
    let raw = text(context, "Subject:raw").to_ascii_lowercase();
    let is_far = behind(&raw, "=?").any(|rest| {
        let charset = rest.split('?').next().unwrap_or_default();
        let fits = charset.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        fits && rest.len() > charset.len() && FAR.iter().any(|name| charset.contains(name))
    });
    let mut letters = subject.bytes().filter(u8::is_ascii_alphabetic).peekable();
    truth(!is_far && letters.peek().is_some() && letters.all(|byte| byte.is_ascii_uppercase()))
}

fn to_in_subject(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let to = text(context, "To:addr");
    if to.is_empty() {
        return 0.0;
    }
    let subject = text(context, "Subject");
    match arguments.text(0) {
        "address" => truth(has_word(&subject.to_ascii_lowercase(), &to.to_ascii_lowercase())),
        "user" => truth(names_user(&subject, to.split('@').next().unwrap_or_default())),
        _ => 0.0,
    }
}

/// Whether a word stands in a text, its ends at borders of words.
fn has_word(text: &str, word: &str) -> bool {
    let border =
        |before: Option<char>, behind: Option<char>| before.is_some_and(is_word) != behind.is_some_and(is_word);
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + word.len()..]);
        border(before.chars().next_back(), word.chars().next())
            && border(word.chars().next_back(), behind.chars().next())
    })
}

/// Whether a subject is to a user by name: alone, at its start before a mark, or behind a comma at its end.
fn names_user(subject: &str, user: &str) -> bool {
    let subject = subject.strip_suffix('\n').unwrap_or(subject);
    let (lower, small) = (subject.to_ascii_lowercase(), user.to_ascii_lowercase());
    let marks = [',', ':', ';', '!', '?', '-'];
    if lower == small {
        return true;
    }
    if let Some(rest) = subject.strip_prefix(user) {
        let mut rest = rest.chars();
        let is_marked = rest.next().is_some_and(|mark| marks.contains(&mark));
        if is_marked && rest.next().is_none_or(|letter| letter.is_ascii_whitespace()) {
            return true;
        }
    }
    let answer = ["re:", "fw:"].iter().find_map(|start| lower.strip_prefix(start)).map(str::trim_start);
    let is_answer = answer.is_some_and(|rest| {
        let words = rest.trim_start_matches(is_word);
        let second = (words.len() < rest.len() && words.starts_with(|letter: char| letter.is_ascii_whitespace()))
            .then(|| words.trim_start());
        rest == small || second == Some(&*small)
    });
    let called = lower.strip_prefix(',').map(str::trim_start).and_then(|rest| rest.strip_prefix(&*small));
    is_answer || called.is_some_and(|rest| rest.len() == 1 && rest.starts_with(marks))
}

/// Outlook's ids tell their time; not one, where that fits neither the date nor the path.
fn outlook_message_id(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

fn message_id_not_usable(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

fn count_range(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let mut values: Vec<&[u8]> = context.fields.written(arguments.text(0)).iter().map(|field| &*field.value).collect();
    values.sort_unstable();
    values.dedup();
    let count = values.len() as f64;
    truth(count >= arguments.number(1) && count <= arguments.number(2))
}

/// A template that was sent without being filled in: `%NAME`.
fn unresolved_template(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

fn ratware_name_id(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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
fn ratware_sender(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

fn subject_in(context: &Context<'_>, list: &str) -> f64 {
    let subject = context.fields.get("Subject");
    truth(!subject.is_empty() && context.settings.has(list, &subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_in_subjects() {
        for (subject, named) in [
            ("joe", true),
            ("joe, look at this\n", true),
            ("Joe, look", false),
            ("Re: joe", true),
            ("re: about joe", true),
            ("hello joe", false),
            (", joe!", true),
        ] {
            assert_eq!(names_user(subject, "joe"), named, "{subject}");
        }
        assert!(has_word("for joe@x.com now", "joe@x.com") && !has_word("ajoe@x.com", "joe@x.com"));
    }
}
