//! Settings for reading mails.

use std::sync::Arc;

use crate::spam::map::HashSet;
use crate::spam::rule::Setting;
use crate::spam::syntax::value::Value;
use text::host::ascii;

/// Patterns of addresses that lead to another which they contain (`redirector_pattern`).
pub trait Redirectors: Send + Sync + std::fmt::Debug {
    /// First group of the first pattern that matches with a dot in that group.
    fn target(&self, uri: &[u8]) -> Option<Vec<u8>>;
}

/// How mails are read: made of the settings once, for all mails.
#[derive(Debug, Clone)]
pub struct Reading {
    /// `normalize_charset`: text is decoded from its charset before it is looked at.
    pub normalize_charset: bool,
    /// `body_part_scan_size`: as many characters of each rendered part are looked at; 0 is all.
    pub body_part_scan_size: usize,
    /// `rawbody_part_scan_size`: as many bytes of each decoded part; 0 is all.
    pub rawbody_part_scan_size: usize,
    /// `parse_dkim_uris`: the domains of DKIM signatures are addresses.
    pub parse_dkim_uris: bool,
    /// `util_rb_tld`: domains at the top; without any those of countries and the usual ones.
    pub tlds: HashSet<Box<[u8]>>,
    /// `util_rb_2tld`: pairs below which names are registered.
    pub two_level: HashSet<Box<[u8]>>,
    /// `util_rb_3tld`.
    pub three_level: HashSet<Box<[u8]>>,
    /// `redirector_pattern`.
    pub redirectors: Option<Arc<dyn Redirectors>>,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            normalize_charset: true,
            body_part_scan_size: 50_000,
            rawbody_part_scan_size: 500_000,
            parse_dkim_uris: true,
            tlds: HashSet::default(),
            two_level: HashSet::default(),
            three_level: HashSet::default(),
            redirectors: None,
        }
    }
}

/// Domains at the top besides those of countries, where no list of them is loaded.
const USUAL: [&[u8]; 10] = [b"app", b"biz", b"com", b"dev", b"edu", b"gov", b"info", b"net", b"online", b"org"];

impl Reading {
    /// Whether names end so, in lower case.
    pub(crate) fn is_top(&self, name: &[u8]) -> bool {
        let is_country = || name.len() == 2 && name.iter().all(u8::is_ascii_alphabetic);
        self.tlds.contains(name) || self.tlds.is_empty() && (is_country() || USUAL.contains(&name))
    }

    /// Reads the settings; redirectors are compiled by the owner of an engine for expressions.
    pub fn new(settings: &[Setting]) -> Reading {
        let mut reading = Reading::default();
        settings.iter().for_each(|setting| reading.set(setting));
        reading
    }

    fn set(&mut self, setting: &Setting) {
        match (&*setting.name, &setting.value) {
            ("normalize_charset", Value::Switch(value)) => self.normalize_charset = *value,
            ("parse_dkim_uris", Value::Switch(value)) => self.parse_dkim_uris = *value,
            ("body_part_scan_size", Value::Number(value)) => self.body_part_scan_size = *value as usize,
            ("rawbody_part_scan_size", Value::Number(value)) => self.rawbody_part_scan_size = *value as usize,
            ("util_rb_tld", Value::Text(names)) => add(&mut self.tlds, names),
            ("util_rb_2tld", Value::Text(names)) => add(&mut self.two_level, names),
            ("util_rb_3tld", Value::Text(names)) => add(&mut self.three_level, names),
            ("clear_util_rb", _) => {
                self.tlds.clear();
                self.two_level.clear();
                self.three_level.clear();
            }
            _ => {}
        }
    }
}

fn add(set: &mut HashSet<Box<[u8]>>, names: &[u8]) {
    let words = names.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    set.extend(words.map(|word| ascii(word).into_boxed_slice()));
}
