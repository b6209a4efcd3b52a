//! Prefix answers: what is listed of a whole IPv4 /24 or IPv6 /48, in one TXT record (`docs/engine/pbl-draft.md`).
//!
//! ```text
//! answer4  = version count *4class4            version = 1; count = number of classes, or 0x80: ask for each address
//! class4   = tag address hosts
//! tag      = coding (2 bits) | full (1 bit) | number (5 bits)
//! address  = last octet of 127.0.0.x, or where `full` is set four octets
//! hosts    = number octets                      coding 0: that many hosts
//!          | number (first last)                coding 1: that many runs of hosts, both ends in octets
//!          | 32 octets                          coding 2: a bitmap, the first host the highest bit
//!          |                                    coding 3: all hosts
//! ```
//! Of a /48, hosts are its 65,536 networks of 64 bits, in two octets each, and there is no bitmap.

/// The version of the form.
const VERSION: u8 = 1;

/// In place of the number of classes: one has to ask for each address.
const ASK_SINGLE: u8 = 0x80;

/// How many classes an answer has at most.
pub const CLASSES_MAX: usize = 4;

/// The largest number in a tag.
const NUMBER_MAX: usize = 31;

const LIST: u8 = 0;
const RUNS: u8 = 1;
const BITMAP: u8 = 2;
const ALL: u8 = 3;

/// Answer for a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prefix<H> {
    /// One has to ask for each address.
    AskSingle,
    /// Answers with their hosts. Hosts in no class are not listed.
    Classes(Vec<([u8; 4], H)>),
}

/// Hosts of a /24.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hosts {
    bits: [u64; 4],
}

impl Hosts {
    /// Adds hosts from `first` to `last`.
    pub fn insert(&mut self, first: u8, last: u8) {
        for host in first..=last {
            self.bits[usize::from(host >> 6)] |= 1 << (host & 63);
        }
    }

    /// Whether a host is among them.
    pub const fn contains(&self, host: u8) -> bool {
        self.bits[(host >> 6) as usize] >> (host & 63) & 1 == 1
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }

    /// The hosts as runs, both ends included.
    fn runs(&self) -> Vec<(u8, u8)> {
        let mut runs: Vec<(u8, u8)> = Vec::new();
        for host in (0..=255).filter(|&host| self.contains(host)) {
            match runs.last_mut() {
                Some((_, last)) if host > 0 && *last == host - 1 => *last = host,
                _ => runs.push((host, host)),
            }
        }
        runs
    }
}

/// Networks of 64 bits in a /48, as runs in ascending order, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks {
    runs: Vec<(u16, u16)>,
}

impl Networks {
    /// Adds networks from `first` to `last`, which lie behind all that there are.
    pub fn insert(&mut self, first: u16, last: u16) {
        match self.runs.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
            _ => self.runs.push((first, last)),
        }
    }

    /// Whether a network is among them.
    pub fn contains(&self, network: u16) -> bool {
        self.runs.iter().any(|&(first, last)| (first..=last).contains(&network))
    }
}

/// Writes an answer about a /24 to `out`: at most 150 bytes.
pub fn write4(prefix: &Prefix<Hosts>, out: &mut Vec<u8>) {
    write(prefix, out, |address, hosts, out| {
        let runs = hosts.runs();
        let count = usize::try_from(hosts.count()).unwrap_or(256);
        match (count, runs.len()) {
            (256, _) => tag(ALL, 0, address, out),
            (_, number) if number <= NUMBER_MAX && 2 * number < count.min(32) => {
                tag(RUNS, number, address, out);
                out.extend(runs.iter().flat_map(|&(first, last)| [first, last]));
            }
            (number, _) if number <= NUMBER_MAX => {
                tag(LIST, number, address, out);
                out.extend((0..=255).filter(|&host| hosts.contains(host)));
            }
            _ => {
                tag(BITMAP, 0, address, out);
                out.extend(hosts.bits.iter().flat_map(|word| word.reverse_bits().to_be_bytes()));
            }
        }
        true
    });
}

/// Writes an answer about a /48 to `out`: at most 255 bytes, or that one has to ask for each address.
pub fn write6(prefix: &Prefix<Networks>, out: &mut Vec<u8>) {
    write(prefix, out, |address, networks, out| {
        let number = networks.runs.len();
        match &networks.runs[..] {
            [(0, u16::MAX)] => tag(ALL, 0, address, out),
            runs if number <= NUMBER_MAX && runs.iter().all(|(first, last)| first == last) => {
                tag(LIST, number, address, out);
                out.extend(runs.iter().flat_map(|&(first, _)| first.to_be_bytes()));
            }
            runs if number <= NUMBER_MAX => {
                tag(RUNS, number, address, out);
                out.extend(runs.iter().flat_map(|&(first, last)| [first.to_be_bytes(), last.to_be_bytes()].concat()));
            }
            _ => return false,
        }
        out.len() <= 255
    });
}

fn write<H>(prefix: &Prefix<H>, out: &mut Vec<u8>, each: impl Fn([u8; 4], &H, &mut Vec<u8>) -> bool) {
    out.clear();
    if let Prefix::Classes(classes) = prefix
        && classes.len() <= CLASSES_MAX
    {
        out.extend([VERSION, u8::try_from(classes.len()).unwrap_or(0)]);
        if classes.iter().all(|(address, hosts)| each(*address, hosts, out)) {
            return;
        }
    }
    out.clear();
    out.extend([VERSION, ASK_SINGLE]);
}

fn tag(coding: u8, number: usize, address: [u8; 4], out: &mut Vec<u8>) {
    let number = u8::try_from(number).unwrap_or(0) & 31;
    match address {
        [127, 0, 0, last] => out.extend([coding << 6 | number, last]),
        [a, b, c, d] => out.extend([coding << 6 | 0x20 | number, a, b, c, d]),
    }
}

/// Reads an answer about a /24. `None` if it is malformed or of a version that is not known.
pub fn read4(bytes: &[u8]) -> Option<Prefix<Hosts>> {
    read(bytes, |coding, number, input| {
        let mut hosts = Hosts::default();
        match coding {
            LIST => input.take(number)?.iter().for_each(|&host| hosts.insert(host, host)),
            RUNS => {
                for run in input.take(2 * number)?.chunks_exact(2) {
                    (run[0] <= run[1]).then(|| hosts.insert(run[0], run[1]))?;
                }
            }
            BITMAP => {
                let bitmap = input.take(32)?;
                for (word, eight) in hosts.bits.iter_mut().zip(bitmap.chunks_exact(8)) {
                    *word = eight.iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte)).reverse_bits();
                }
            }
            _ => hosts.insert(0, 255),
        }
        Some(hosts)
    })
}

/// Reads an answer about a /48. `None` if it is malformed or of a version that is not known.
pub fn read6(bytes: &[u8]) -> Option<Prefix<Networks>> {
    read(bytes, |coding, number, input| {
        let mut networks = Networks::default();
        let word = |two: &[u8]| u16::from_be_bytes([two[0], two[1]]);
        match coding {
            LIST => input.take(2 * number)?.chunks_exact(2).for_each(|two| networks.runs.push((word(two), word(two)))),
            RUNS => {
                for run in input.take(4 * number)?.chunks_exact(4) {
                    let (first, last) = (word(&run[..2]), word(&run[2..]));
                    (first <= last).then(|| networks.runs.push((first, last)))?;
                }
            }
            BITMAP => return None,
            _ => networks.runs.push((0, u16::MAX)),
        }
        Some(networks)
    })
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, back) = self.0.split_at_checked(count)?;
        self.0 = back;
        Some(front)
    }
}

fn read<H>(bytes: &[u8], each: impl Fn(u8, usize, &mut Input<'_>) -> Option<H>) -> Option<Prefix<H>> {
    let (&[version, count], rest) = bytes.split_first_chunk()?;
    if version != VERSION {
        return None;
    }
    if count == ASK_SINGLE {
        return Some(Prefix::AskSingle);
    }
    let count = usize::from(count);
    if !(1..=CLASSES_MAX).contains(&count) {
        return None;
    }
    let mut input = Input(rest);
    let mut classes = Vec::new();
    for _ in 0..count {
        let tag = *input.take(1)?.first()?;
        let address = match tag & 0x20 {
            0 => [127, 0, 0, *input.take(1)?.first()?],
            _ => input.take(4)?.try_into().ok()?,
        };
        classes.push((address, each(tag >> 6, usize::from(tag & 31), &mut input)?));
    }
    input.0.is_empty().then_some(Prefix::Classes(classes))
}

/// Fuzz body: any answer. A valid one is written and read again unchanged.
pub fn fuzz_read(data: &[u8]) {
    let mut out = Vec::new();
    if let Some(prefix) = read4(data) {
        write4(&prefix, &mut out);
        assert!(out.len() <= 150);
        assert_eq!(read4(&out), Some(prefix));
    }
    if let Some(prefix) = read6(data) {
        write6(&prefix, &mut out);
        assert!(out.len() <= 255);
        let again = read6(&out);
        assert!(again == Some(prefix) || again == Some(Prefix::AskSingle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hosts_come_back_in_any_coding(
            classes in proptest::collection::vec((any::<[u8; 4]>(), proptest::collection::vec((any::<u8>(), any::<u8>()), 0..40)), 1..5)
        ) {
            let mut all = Vec::new();
            for (address, runs) in classes {
                let mut hosts = Hosts::default();
                runs.into_iter().for_each(|(a, b)| hosts.insert(a.min(b), if a % 3 == 0 { a.max(b) } else { a.min(b) }));
                all.push((address, hosts));
            }
            let prefix = Prefix::Classes(all);
            let mut out = Vec::new();
            write4(&prefix, &mut out);
            prop_assert!(out.len() <= 150);
            prop_assert_eq!(read4(&out), Some(prefix));
        }

        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzz_read(&data);
        }
    }

    #[test]
    fn an_answer_is_what_the_draft_says() {
        let mut hosts = Hosts::default();
        hosts.insert(7, 7);
        hosts.insert(200, 200);
        let mut out = Vec::new();
        write4(&Prefix::Classes(vec![([127, 0, 0, 2], hosts)]), &mut out);
        assert_eq!(out, [1, 1, 0x02, 2, 7, 200]);
        hosts.insert(16, 31);
        write4(&Prefix::Classes(vec![([127, 0, 1, 4], hosts)]), &mut out);
        assert_eq!(out, [1, 1, 0x63, 127, 0, 1, 4, 7, 7, 16, 31, 200, 200]);
        hosts.insert(0, 255);
        write4(&Prefix::Classes(vec![([127, 0, 0, 4], hosts)]), &mut out);
        assert_eq!(out, [1, 1, 0xc0, 4]);
        write4(&Prefix::AskSingle, &mut out);
        assert_eq!(out, [1, 0x80]);
        assert_eq!(read4(&[1, 0]), None, "a prefix of which nothing is listed has no answer at all");
    }
}
