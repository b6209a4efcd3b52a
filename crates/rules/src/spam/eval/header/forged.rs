//! Headers that pretend to come from a large provider: relays and fields that its mails have, and these have not.

use super::{behind, ends_with_word, is_gated, is_word, spaced, text};
use crate::spam::eval::{Arguments, Context, truth};
use crate::spam::header::ip_in;

pub(super) fn fake_aol_relay(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

/// Verdict on a mail that names Hotmail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hotmail {
    /// Nothing is wrong.
    Fine,
    /// The path says Hotmail and is not theirs.
    Forged,
    /// The sender says Hotmail, and the path does not.
    Missing,
}

pub(super) fn hotmail(context: &Context<'_>) -> Hotmail {
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

pub(super) fn is_of_msn_groups(context: &Context<'_>) -> bool {
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

pub(super) fn forged_eudoramail(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

pub(super) fn forged_yahoo(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

pub(super) fn forged_juno(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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

pub(super) fn forged_gmail(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
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
pub(super) fn forged_gw05(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let received = text(context, "Received");
    let lines: Vec<&str> = received.lines().collect();
    let is_it = |line: &&str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        matches!(words[..], ["from", _, "by", by, "with", "ESMTP;", day, _, _, _, _, _] if !by.contains('.') && day.ends_with(','))
    };
    truth(lines.len() > 1 && lines.last().is_some_and(is_it))
}
