//! Lists and their weights, as postscreen is told (`postscreen_dnsbl_sites` in postconf(5)):
//! `DOMAIN[=FILTER][*WEIGHT]`, between commas and blanks. A filter is an address whose octets may be `[2;4..7]`.

use core::str::FromStr;

use proto::dns::Name;

/// How many alternatives an octet of a filter has.
const ALTERNATIVES_MAX: usize = 64;

/// The longest label that is shown. Keys have 20 characters and more.
const LABEL_BYTES_SHOWN: usize = 15;

/// A list, its filter of answers, and its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The zone that is asked.
    pub zone: Name,
    /// Addresses that count; without a filter all.
    pub filter: Option<Filter>,
    /// Points of a listing; below 0 for lists of trusted clients.
    pub weight: i32,
}

/// Addresses that count: for each octet, runs of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    octets: [Vec<(u8, u8)>; 4],
}

impl Filter {
    /// Whether an address counts.
    pub fn matches(&self, address: [u8; 4]) -> bool {
        let within =
            |(runs, octet): (&Vec<(u8, u8)>, u8)| runs.iter().any(|&(first, last)| (first..=last).contains(&octet));
        self.octets.iter().zip(address).all(within)
    }
}

/// Reads sites as they stand in main.cf: with or without `postscreen_dnsbl_sites =` before them, over several lines.
///
/// # Errors
/// The first word that is no site.
pub fn read(text: &str) -> Result<Vec<Site>, String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let all = lines.collect::<Vec<_>>().join(" ");
    let sites = all
        .trim_start()
        .strip_prefix("postscreen_dnsbl_sites")
        .map_or(&*all, |rest| rest.trim_start().trim_start_matches('='));
    sites.split([',', ' ', '\t']).filter(|word| !word.is_empty()).map(Site::from_str).collect()
}

/// A site or the name of a zone for logs: long labels, such as the keys of commercial lists, are left out.
pub fn shown(text: &str) -> String {
    let end = text.find(['=', '*']).unwrap_or(text.len());
    let (zone, rest) = text.split_at(end);
    let labels = zone.split('.').map(|label| if label.len() > LABEL_BYTES_SHOWN { "..." } else { label });
    labels.collect::<Vec<_>>().join(".") + rest
}

impl FromStr for Site {
    type Err = String;

    fn from_str(word: &str) -> Result<Site, String> {
        // It may have a key in it, and the message ends in a log.
        let wrong = || format!("{:?} is no list: DOMAIN[=FILTER][*WEIGHT]", shown(word));
        let (rest, weight) = match word.split_once('*') {
            Some((rest, weight)) => (rest, weight.parse().map_err(|_| wrong())?),
            None => (word, 1),
        };
        let (zone, filter) = match rest.split_once('=') {
            Some((zone, filter)) => (zone, Some(filter.parse().map_err(|()| wrong())?)),
            None => (rest, None),
        };
        let zone: Name = zone.parse().map_err(|_| wrong())?;
        if zone == Name::root() {
            return Err(wrong());
        }
        Ok(Site { zone, filter, weight })
    }
}

impl FromStr for Filter {
    type Err = ();

    fn from_str(text: &str) -> Result<Filter, ()> {
        let mut octets = [const { Vec::new() }; 4];
        let mut rest = text;
        for (index, octet) in octets.iter_mut().enumerate() {
            let (part, behind) = match rest.strip_prefix('[') {
                Some(inner) => inner.split_once(']').ok_or(())?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            for alternative in part.split(';') {
                let (first, last) = alternative.split_once("..").unwrap_or((alternative, alternative));
                let (first, last) = (first.parse().map_err(|_| ())?, last.parse().map_err(|_| ())?);
                if first > last || octet.len() >= ALTERNATIVES_MAX {
                    return Err(());
                }
                octet.push((first, last));
            }
            rest = match index {
                3 if behind.is_empty() => behind,
                3 => return Err(()),
                _ => behind.strip_prefix('.').ok_or(())?,
            };
        }
        Ok(Filter { octets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_postscreen_load_unchanged() {
        let text = "postscreen_dnsbl_sites = zen.spamhaus.org=127.0.0.[10;11]*8\n\tzen.spamhaus.org=127.0.0.[4..7]*6\n\
                    # a comment\n  bl.spamcop.net*2, list.dnswl.org=127.0.[0..255].[1..3]*-2 b.example";
        let sites = read(text).unwrap();
        let weights: Vec<i32> = sites.iter().map(|site| site.weight).collect();
        assert_eq!(weights, [8, 6, 2, -2, 1]);
        let counts = |index: usize, address| sites[index].filter.as_ref().is_none_or(|filter| filter.matches(address));
        assert!(counts(0, [127, 0, 0, 10]) && !counts(0, [127, 0, 0, 4]) && counts(1, [127, 0, 0, 4]));
        assert!(counts(3, [127, 0, 9, 2]) && !counts(3, [127, 0, 9, 0]) && counts(4, [127, 9, 9, 9]));
        for wrong in [
            "a*b",
            "a=127.0.0",
            "a=127.0.0.[1",
            "a=127.0.0.[3..1]",
            "a=127.0.0.1.2",
            "=127.0.0.1",
            "a..b",
            "a=127.0.0.256",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let refused = read("bl.example, abcdefghij0123456789abcdef.zen.dq.example=127.0.0.x*3").unwrap_err();
        assert!(refused.starts_with("\"....zen.dq.example=127.0.0.x*3\" is no list"), "{refused}");
    }
}
