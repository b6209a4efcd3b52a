//! Languages of the interface: the choice of one, and its texts, numbers and dates.
//!
//! A user's setting comes first, then `Accept-Language` (RFC 9110, section 12.5.4), then English. A language is one constant value of
//! [`Words`]; without the feature `languages` there is English alone. Bounds: [`ACCEPTED_MAX`].

mod english;
mod numbers;
mod words;

#[cfg(feature = "languages")]
mod arabic;
#[cfg(feature = "languages")]
mod chinese;
#[cfg(feature = "languages")]
mod french;
#[cfg(feature = "languages")]
mod german;
#[cfg(feature = "languages")]
mod spanish;

use alloc::string::String;
use core::fmt;

pub(crate) use numbers::Plural;
pub(crate) use words::Words;

/// Languages of `Accept-Language` that are looked at.
const ACCEPTED_MAX: usize = 20;

/// All languages.
#[cfg(feature = "languages")]
const ALL: [Language; 6] = [
    Language(&english::ENGLISH),
    Language(&german::GERMAN),
    Language(&french::FRENCH),
    Language(&spanish::SPANISH),
    Language(&chinese::CHINESE),
    Language(&arabic::ARABIC),
];

/// All languages.
#[cfg(not(feature = "languages"))]
const ALL: [Language; 1] = [Language(&english::ENGLISH)];

/// A language of the interface; English by default.
#[derive(Clone, Copy)]
pub struct Language(&'static Words);

impl Language {
    /// All of them, English first.
    pub fn all() -> impl Iterator<Item = Language> {
        ALL.into_iter()
    }

    /// The one with a tag, as [`Language::tag`] tells it.
    pub fn tagged(tag: &str) -> Option<Language> {
        Language::all().find(|language| language.0.tag == tag)
    }

    /// The tag of BCP 47, as `lang` has it.
    pub fn tag(self) -> &'static str {
        self.0.tag
    }

    /// The one that a browser asks for most by a value of `Accept-Language`, or English.
    pub fn accepted(value: &[u8]) -> Language {
        let (mut best, mut best_weight) = (Language::default(), 0);
        let all = value.split(|&byte| byte == b',').take(ACCEPTED_MAX);
        for (range, weight) in all.filter_map(|item| weighted(item.trim_ascii())) {
            if let Some(language) = Language::ranged(range)
                && weight > best_weight
            {
                (best, best_weight) = (language, weight);
            }
        }
        best
    }

    /// The language of a range: its first part decides, in whatever country or script.
    fn ranged(range: &[u8]) -> Option<Language> {
        let asked = range.split(|&byte| byte == b'-').next()?;
        let primary = |language: &Language| language.0.tag.split('-').next().unwrap_or_default().as_bytes();
        Language::all().find(|language| asked.eq_ignore_ascii_case(primary(language)))
    }

    /// Its texts.
    pub(crate) fn words(self) -> &'static Words {
        self.0
    }
}

impl Default for Language {
    fn default() -> Language {
        Language(&english::ENGLISH)
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.tag)
    }
}

impl PartialEq for Language {
    fn eq(&self, other: &Language) -> bool {
        self.0.tag == other.0.tag
    }
}

impl Eq for Language {}

impl Words {
    /// A number with its groups.
    pub fn number(&self, number: usize) -> String {
        self.numbers.written(number as u64)
    }

    /// A text with a number.
    pub fn count(&self, plural: Plural, number: usize) -> String {
        self.numbers.counted(plural, number as u64)
    }

    /// A size for people.
    pub fn size(&self, bytes: u64) -> String {
        self.numbers.size(bytes)
    }
}

/// A range of `Accept-Language` and its weight in thousandths, 1,000 if there is none; `None` if that is damaged.
fn weighted(item: &[u8]) -> Option<(&[u8], u32)> {
    let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let range = parts.next()?;
    let Some(parameter) = parts.next() else { return Some((range, 1_000)) };
    let weight = parameter.strip_prefix(b"q=").or(parameter.strip_prefix(b"Q="))?;
    let (whole, tenths) = weight.split_first()?;
    let tenths = if tenths.is_empty() { tenths } else { tenths.strip_prefix(b".")? };
    if !matches!(whole, b'0' | b'1') || tenths.len() > 3 || !tenths.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = tenths.iter().chain(b"000").take(3).fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Some((range, if *whole == b'1' { 1_000 } else { digits }))
}

/// Writes a text with its values to `put`: pieces of the text, and the numbers of values.
pub(crate) fn pieces(text: &'static str, mut put: impl FnMut(Result<&'static str, usize>)) {
    let mut rest = text;
    while let Some((before, at)) = rest.split_once('{')
        && let Some((number, behind)) = at.split_once('}')
    {
        put(Ok(before));
        put(Err(number.parse().unwrap_or(usize::MAX)));
        rest = behind;
    }
    put(Ok(rest));
}

/// A text with its values.
pub(crate) fn fill(text: &'static str, values: &[&str]) -> String {
    let mut filled = String::with_capacity(text.len().saturating_add(32));
    pieces(text, |piece| match piece {
        Ok(piece) => filled.push_str(piece),
        Err(number) => filled.push_str(values.get(number).copied().unwrap_or_default()),
    });
    filled
}

#[cfg(all(test, feature = "languages"))]
mod tests {
    use super::*;

    /// The texts of a language by the names of their fields, in the order of the table.
    fn texts(language: Language) -> Vec<(String, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for line in format!("{:#?}", language.0).lines().map(str::trim) {
            let (name, value) = match line.split_once(": ").filter(|(name, _)| !name.starts_with('"')) {
                Some((name, value)) => (Some(name), value),
                None => (None, line),
            };
            all.extend(name.map(|name| (name.to_owned(), Vec::new())));
            let text = value.trim_end_matches(',').strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            if let (Some(text), Some((_, texts))) = (text, all.last_mut()) {
                texts.push(text.to_owned());
            }
        }
        all
    }

    fn places(text: &str) -> Vec<&str> {
        let mut places: Vec<&str> =
            text.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).filter(|p| p.len() == 1).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn texts_of_all_languages_have_the_same_places_and_no_markup() {
        let english = texts(Language::default());
        assert!(english.iter().map(|(_, texts)| texts.len()).sum::<usize>() > 300);
        for language in Language::all() {
            let forms = (0..=100).chain([1_000_000]).map(language.0.numbers.form).max().unwrap() + 1;
            for ((name, wanted), (own_name, own)) in english.iter().zip(texts(language)) {
                let told = format!("{language:?} {name}: {own:?}");
                assert_eq!((name, own.is_empty()), (&own_name, wanted.is_empty()), "{told}");
                if wanted.len() == 2 {
                    assert_eq!(own.len(), forms, "{told}");
                }
                for text in &own {
                    assert!(!text.contains(['<', '>', '&', '\'', '"']), "{told}");
                    assert!(places(text).iter().all(|place| wanted.iter().any(|text| places(text).contains(place))));
                }
                let last = |texts: &[String]| texts.last().map(|text| places(text).join(" "));
                assert!(name == "whole" || last(wanted) == last(&own), "{told}");
            }
        }
    }

    #[test]
    fn the_browser_chooses_by_weight_and_by_the_first_part_of_a_tag() {
        for (value, wanted) in [
            ("", "en"),
            ("de", "de"),
            ("pt, fr-CA;q=0.8, de-AT;q=0.9", "de"),
            ("zh-TW,zh;q=0.9,en;q=0.8", "zh-Hans"),
            ("AR-eg ; q=0.5 , es;q=0", "ar"),
            ("de;q=0.001, fr;q=0.01", "fr"),
            ("en-GB,de", "en"),
            ("*", "en"),
            ("x-de, dex, d, e", "en"),
            ("de;q=2, fr;q=x, es;q=0.1234, ar;q=-1, zh;level=1", "en"),
            ("de;q=, fr;q=0., es;q=1.", "es"),
        ] {
            assert_eq!(Language::accepted(value.as_bytes()).tag(), wanted, "{value}");
        }
        assert_eq!(Language::accepted(format!("{}de", "x,".repeat(ACCEPTED_MAX)).as_bytes()).tag(), "en");
        assert!(Language::tagged("de").is_some() && Language::tagged("").is_none());
    }

    fn language(tag: &str) -> &'static Words {
        Language::tagged(tag).unwrap().words()
    }

    #[test]
    fn numbers_and_their_plurals_are_those_of_the_language() {
        for (tag, wanted) in [
            ("en", "0 messages|1 message|2 messages|1,000,000 messages"),
            ("de", "0 Nachrichten|1 Nachricht|2 Nachrichten|1.000.000 Nachrichten"),
            ("fr", "0 message|1 message|2 messages|1\u{202f}000\u{202f}000 de messages"),
            ("es", "0 mensajes|1 mensaje|2 mensajes|1.000.000 de mensajes"),
            ("zh-Hans", "0 封邮件|1 封邮件|2 封邮件|1,000,000 封邮件"),
            ("ar", "لا رسائل|رسالة واحدة|رسالتان|١٬٠٠٠٬٠٠٠ رسالة"),
        ] {
            let words = language(tag);
            let told = [0, 1, 2, 1_000_000].map(|number| words.count(words.list.messages, number));
            assert_eq!(told.join("|"), wanted);
        }
        let words = language("ar");
        let forms = [3, 10, 11, 99, 100, 103, 111].map(|number| (words.numbers.form)(number));
        assert_eq!(forms, [3, 3, 4, 4, 5, 3, 4]);
        assert_eq!(
            (language("es").number(1_234), language("es").number(1_234_567)),
            ("1234".into(), "1.234.567".into())
        );
        for (tag, wanted) in [("en", "999 B|1 kB|1.2 MB|1,234.5 GB"), ("fr", "999 o|1 ko|1,2 Mo|1\u{202f}234,5 Go")] {
            let told = [999, 1_999, 1_250_000, 1_234_500_000_000].map(|bytes| language(tag).size(bytes));
            assert_eq!(told.join("|"), wanted);
        }
    }

    #[test]
    fn dates_are_those_of_the_language() {
        for (tag, day, year, whole) in [
            ("en", "17 Jul", "17 Jul 1996", "Wed, 17 Jul 1996 09:44:25 -0330"),
            ("de", "17. Juli", "17. Juli 1996", "Mi., 17. Juli 1996, 09:44:25 -0330"),
            ("fr", "17 juil.", "17 juil. 1996", "mer. 17 juil. 1996, 09:44:25 -0330"),
            ("es", "17 jul", "17 jul 1996", "mié, 17 jul 1996, 09:44:25 -0330"),
            ("zh-Hans", "7月17日", "1996年7月17日", "1996年7月17日星期三 09:44:25 -0330"),
            ("ar", "١٧ يوليو", "١٧ يوليو ١٩٩٦", "الأربعاء، ١٧ يوليو ١٩٩٦، ٠٩:٤٤:٢٥ \u{200e}-٠٣٣٠"),
        ] {
            let Words { dates, numbers, .. } = language(tag);
            let seconds = 837_596_665;
            let told = [dates.day(numbers, seconds, false), dates.day(numbers, seconds, true)];
            assert_eq!(told, [day, year]);
            assert_eq!(dates.whole(numbers, seconds, -210), whole);
        }
    }
}
