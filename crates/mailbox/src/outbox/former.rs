//! Entries of earlier versions: an annotation of the mailbox for each, lines of text, one recipient.

use super::{Entry, Recipient};

/// The UID in the name of such an annotation.
pub(super) fn uid(name: &[u8]) -> Option<u32> {
    std::str::from_utf8(name.strip_prefix(b"queue/")?).ok()?.parse().ok()
}

/// Decodes an entry of the former format.
pub(super) fn decode(bytes: &[u8]) -> Option<Entry> {
    let mut lines = std::str::from_utf8(bytes).ok()?.splitn(11, '\n');
    let mut line = || lines.next();
    let since = line()?.parse().ok()?;
    let (due, tries, skipped) = (line()?.parse().ok()?, line()?.parse().ok()?, line()?.parse().ok()?);
    let flags = line()?.as_bytes();
    let is_set = |at: usize| flags.get(at) == Some(&b'1');
    let [is_answer, is_stored, is_spam, is_written] = [0, 1, 2, 3].map(is_set);
    let mut text = || line().map(str::to_owned);
    let (from, to, account, address, why, trace) = (text()?, text()?, text()?, text()?, text()?, text()?);
    let recipients = vec![Recipient { due, tries, why, ..Recipient::new(to, due) }];
    Some(Entry {
        since,
        from,
        account,
        address,
        trace,
        skipped,
        is_answer,
        is_stored,
        is_spam,
        is_written,
        recipients,
        ..Entry::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_has_noted_is_taken_over() {
        let noted = b"100\n160\n2\n7\n0010\nann@example.org\ncarl@example.net\nann\nann+x\n451 later\nX: a\r\nY: b\r\n";
        let entry = decode(noted).unwrap();
        assert_eq!((entry.since, entry.skipped, entry.is_spam, entry.is_written), (100, 7, true, false));
        assert_eq!((&*entry.from, &*entry.account, &*entry.address), ("ann@example.org", "ann", "ann+x"));
        assert_eq!(entry.trace, "X: a\r\nY: b\r\n");
        let [recipient] = &entry.recipients[..] else { panic!("{entry:?}") };
        assert_eq!((&*recipient.to, recipient.due, recipient.tries), ("carl@example.net", 160, 2));
        assert_eq!((uid(b"queue/17"), uid(b"queue/x"), decode(b"1\n2\n3")), (Some(17), None, None));
    }
}
