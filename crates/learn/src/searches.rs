//! Searches with which header fields are read: patterns that are removed or rewritten, with their memory.

use pattern::expression::Search;

use crate::expression::{groups, places, replace};

/// The searches that fields are read with, and their memory.
pub(crate) struct Searches {
    relay_word: Search,
    version: Search,
    outlook_id: Search,
    exim_id: Search,
    sendmail_id: Search,
    /// Ids of servers, in the order in which they are taken out.
    server_ids: [Search; 4],
    date: Search,
    address: Search,
    usual: Search,
    boundary: Search,
    signs: Search,
    type_words: Search,
}

impl Default for Searches {
    fn default() -> Searches {
        Searches {
            relay_word: places(" [a-z]+="),
            version: places(r"1\.0"),
            outlook_id: groups(r"<([0-9a-f]{4})[0-9a-f]{8}\$([0-9a-f]{4})[0-9a-f]{4}\$([0-9a-f]{8})@(\S+)>"),
            exim_id: places("<[A-Za-z0-9]{7}-[A-Za-z0-9]{6}-0[A-Za-z0-9]@"),
            sendmail_id: places(r"<20\d\d[01]\d[0-3]\d[0-2]\d[0-5]\d[0-5]\d\.[A-F0-9]{10,12}@"),
            server_ids: [
                places(r"\swith\sSMTP\sid\sg[\dA-Z]{10,12}\s"),
                places(r"\swith\sESMTP\sid\s[\dA-F]{10,12}\s"),
                places(r"\bid\s[a-zA-Z0-9]{7,20}\b"),
                places(r"\bid\s[A-Za-z0-9]{7}-[A-Za-z0-9]{6}-0[A-Za-z0-9]"),
            ],
            date: places(concat!(
                r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),\s)?[0-3\s]?[0-9]\s",
                r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s(?:19|20)?[0-9]{2}\s",
                r"[0-2][0-9](?::[0-5][0-9]){1,2}\s",
                r"(?:\s*\(|\)|\s*[+-][0-9]{4}|\s*(?:UT|[A-Z]{2,3}T))*",
            )),
            address: groups(r"\b(\d{1,3}\.)(\d{1,3}\.)(\d{1,3})(\.\d{1,3})\b"),
            usual: places(r"\b(?:with|from|for|SMTP|ESMTP)\b"),
            boundary: groups(r#"(?i)boundary=["'](.*?)["']"#),
            signs: places(r"[-_.=]+"),
            type_words: places(r"\b(?:text|charset)\b"),
        }
    }
}

impl Searches {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Search> {
        let Searches { relay_word, version, outlook_id, exim_id, sendmail_id, server_ids, .. } = self;
        let Searches { date, address, usual, boundary, signs, type_words, .. } = self;
        let others =
            [relay_word, version, outlook_id, exim_id, sendmail_id, date, address, usual, boundary, signs, type_words];
        others.into_iter().chain(server_ids)
    }

    /// The version of MIME that all mails have says nothing.
    pub(crate) fn version(&mut self, value: &mut Vec<u8>) {
        replace(&mut self.version, value, 1, |_, _| {});
    }

    /// Keeps the relays in the path of a mail, without the names of attributes.
    pub(crate) fn path(&mut self, value: &mut Vec<u8>) {
        replace(&mut self.relay_word, value, usize::MAX, |_, out| out.push(b' '));
    }

    /// Keeps of the ids of known programs the part that mails share.
    pub(crate) fn message_id(&mut self, value: &mut Vec<u8>) {
        replace(&mut self.outlook_id, value, usize::MAX, |groups, out| {
            for (mark, group) in [(&b" OEA"[..], 1), (b" OEB", 2), (b" OEC", 3), (b" ", 4)] {
                out.extend_from_slice(mark);
                out.extend_from_slice(groups.get(group));
            }
            out.push(b' ');
        });
        replace(&mut self.exim_id, value, 1, |_, _| {});
        replace(&mut self.sendmail_id, value, usize::MAX, |_, _| {});
    }

    /// Without dates and ids; addresses by their network, and whole besides.
    pub(crate) fn received(&mut self, value: &mut Vec<u8>) {
        for search in &mut self.server_ids {
            replace(search, value, usize::MAX, |_, out| out.push(b' '));
        }
        replace(&mut self.date, value, usize::MAX, |_, _| {});
        replace(&mut self.address, value, usize::MAX, |groups, out| {
            let network = [groups.get(1), groups.get(2), groups.get(3)].concat();
            out.extend_from_slice(&[&network, &b" ip*"[..], &network, groups.get(4), b" "].concat());
        });
        replace(&mut self.usual, value, usize::MAX, |_, out| out.push(b' '));
    }

    /// Replaces a boundary by its form: those of one program look alike.
    pub(crate) fn content_type(&mut self, value: &mut Vec<u8>) {
        let mut boundary = Vec::new();
        replace(&mut self.boundary, value, usize::MAX, |groups, out| {
            boundary = groups.get(1).to_vec();
            out.push(b' ');
        });
        boundary.iter_mut().filter(|byte| byte.is_ascii_hexdigit()).for_each(|byte| *byte = b'H');
        replace(&mut self.signs, &mut boundary, usize::MAX, |groups, out| {
            out.extend_from_slice(&[b" ", groups.get(0), b" "].concat());
        });
        value.extend_from_slice(&boundary);
        replace(&mut self.type_words, value, usize::MAX, |_, out| out.push(b' '));
    }
}
