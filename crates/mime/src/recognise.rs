//! Recognising a message by its head.
//!
//! Conservative: a text that merely has lines with colons is not taken for a mail, and neither are the headers of HTTP.
//! At most 1 KiB is looked at.

/// How much of the head is looked at.
const HEAD_MAX: usize = 1024;

/// Fields that hardly anything but a mail begins with.
const STRONG: [&[u8]; 20] = [
    b"received",
    b"return-path",
    b"delivered-to",
    b"delivery-date",
    b"envelope-to",
    b"message-id",
    b"mime-version",
    b"x-original-to",
    b"x-envelope-from",
    b"x-envelope-to",
    b"x-mailer",
    b"x-mozilla-status",
    b"x-uidl",
    b"x-priority",
    b"dkim-signature",
    b"domainkey-signature",
    b"authentication-results",
    b"arc-seal",
    b"in-reply-to",
    b"list-unsubscribe",
];

/// Fields of mails that other texts have too; two different ones count.
const WEAK: [&[u8]; 14] = [
    b"from",
    b"to",
    b"cc",
    b"bcc",
    b"subject",
    b"date",
    b"sender",
    b"reply-to",
    b"references",
    b"resent-from",
    b"resent-to",
    b"newsgroups",
    b"content-type",
    b"content-transfer-encoding",
];

/// Whether `head`, the first bytes of something (up to 1 KiB of it counts), looks like the beginning of a message (RFC
/// 5322), with or without the `From ` line of mbox files. Lines of blanks in front of it, as webmails write them before a source that is
/// saved, do not count.
pub fn looks_like_mail(head: &[u8]) -> bool {
    let head = &head[..head.len().min(HEAD_MAX)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = head.split(|&byte| byte == b'\n' || byte == b'\r').filter(|line| !line.is_empty()).peekable();
    while lines.next_if(|line| line.trim_ascii().is_empty()).is_some() {}
    let divider = lines.next_if(|line| line.starts_with(b"From ") || line.starts_with(b">From "));
    // Behind such a line with a time in it, as mbox files have, any field will do.
    if divider.is_some_and(has_time) && lines.peek().is_some_and(|line| field_name(line).is_some()) {
        return true;
    }
    let mut weak = 0_u32;
    for (index, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        if index > 0 && matches!(line.first(), Some(b' ' | b'\t')) {
            continue;
        }
        let Some(name) = field_name(line) else {
            return false;
        };
        if STRONG.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return true;
        }
        if name.eq_ignore_ascii_case(b"content-type") && is_multipart(&line[name.len()..]) {
            return true;
        }
        let known = WEAK.iter().position(|known| name.eq_ignore_ascii_case(known));
        weak |= known.map_or(0, |known| 1 << known);
        if weak.count_ones() >= 2 {
            return true;
        }
    }
    false
}

/// Whether two digits stand on both sides of a colon.
fn has_time(line: &[u8]) -> bool {
    line.windows(5).any(|at| at[2] == b':' && [0, 1, 3, 4].iter().all(|&digit| at[digit].is_ascii_digit()))
}

fn field_name(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line[..colon].trim_ascii_end();
    let good = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    good.then_some(name)
}

/// Returns whether the rest of a `Content-Type` field declares a multipart.
fn is_multipart(rest: &[u8]) -> bool {
    let value = rest.trim_ascii_start().strip_prefix(b":").unwrap_or_default().trim_ascii_start();
    value.get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_are_recognised_by_their_first_fields() {
        for head in [
            &b"Received: from x by y; z\r\n"[..],
            b"From a@example.org Thu Nov 21\nX-Some: thing\nReceived: x\n",
            b"Subject: x\r\nFrom: y\r\n\r\nbody",
            b"X-Folded: a\r\n b\r\nTo: x\r\nDate: y\r\n",
            b"to: x\rsubject: y\r\rbody",
            b"     \r\n \t\r\nto: x\r\nsubject: y\r\n",
            b"\xef\xbb\xbfMIME-Version: 1.0\n",
            b"Content-type : Multipart/mixed; boundary=B\r\n",
            b"From a@b  Fri Feb 22 17:06:23 2008\nSubject: only this\nX-A: b\n\nbody\n",
        ] {
            assert!(looks_like_mail(head), "{}", head.escape_ascii());
        }
    }

    #[test]
    fn other_things_are_not() {
        for head in [
            &b""[..],
            b"Dear reader,\nsubject: x\nfrom: y\n",
            b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: text/plain\r\n",
            b"Subject: only this\n\n",
            b"key: value\nother: value\n",
            b"From here on: things\nare different\n",
            b"From 10:30 on it rains.\nTake a coat.\n",
            b"MZ\x90\0",
            b"name\x00: x\nFrom: y\nTo: z\n",
        ] {
            assert!(!looks_like_mail(head), "{}", head.escape_ascii());
        }
    }
}
