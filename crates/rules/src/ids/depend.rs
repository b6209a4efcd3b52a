//! Rules that others depend on by `flowbits`: a rule that asks for a bit never matches if those that set it are disabled. They are
//! enabled without alerts of their own, as `suricata-update` does.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::changes::Line;
use super::lexer::{self, all_lines};

/// Names of bits.
type Bits = Vec<Vec<u8>>;

/// A disabled rule that changes bits.
struct Setter {
    /// The number of its file, and its place there.
    file: usize,
    place: Range<usize>,
    text: Vec<u8>,
    asks: Bits,
}

/// Enables disabled rules whose bits enabled rules ask for; how many. Files are names and contents; each rule stays in its line.
pub fn enable_needed(files: &mut [(Box<str>, Vec<u8>)]) -> usize {
    let (mut setters, mut asked) = (Vec::new(), Vec::new());
    let mut by_bit: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (file, (name, bytes)) in files.iter().enumerate() {
        for lexer::Line { place, text, .. } in all_lines(bytes) {
            let has_bits = memchr::memmem::find(&text, b"flowbits").is_some();
            let Some(line) = has_bits.then(|| Line::read(name, &text)).flatten() else { continue };
            let (sets, asks) = bits(&line);
            if line.is_enabled {
                asked.extend(asks);
                continue;
            }
            sets.into_iter().for_each(|bit| by_bit.entry(bit).or_default().push(setters.len()));
            setters.push(Setter { file, place, text: line.silenced(), asks });
        }
    }
    let (mut known, mut needed) = (HashSet::new(), HashSet::new());
    while let Some(bit) = asked.pop() {
        for &setter in by_bit.get(&bit).filter(|_| known.insert(bit.clone())).into_iter().flatten() {
            if needed.insert(setter) {
                asked.extend(setters[setter].asks.iter().cloned());
            }
        }
    }
    // From the end, so that places in front stay as they are.
    let mut needed: Vec<usize> = needed.into_iter().collect();
    needed.sort_unstable_by(|one, other| other.cmp(one));
    for &setter in &needed {
        let Setter { file, place, text, .. } = &setters[setter];
        let bytes = &mut files[*file].1;
        let ends = bytes[place.clone()].iter().filter(|&&byte| byte == b'\n').count();
        let line: Vec<u8> = text.iter().copied().chain(std::iter::repeat_n(b'\n', ends)).collect();
        bytes.splice(place.clone(), line);
    }
    needed.len()
}

/// The bits that a rule changes, and those that it asks for.
fn bits(line: &Line<'_>) -> (Bits, Bits) {
    let (mut sets, mut asks) = (Vec::new(), Vec::new());
    for value in line.options("flowbits") {
        let mut parts = value.splitn(2, |&byte| byte == b',').map(<[u8]>::trim_ascii);
        let (Some(verb), Some(names)) = (parts.next(), parts.next()) else { continue };
        let names = names.split(|&byte| byte == b'|').map(|name| name.trim_ascii().to_vec());
        match verb {
            b"set" | b"setx" | b"unset" | b"toggle" => sets.extend(names),
            b"isset" | b"isnotset" => asks.extend(names),
            _ => {}
        }
    }
    (sets, asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(files: &[&str]) -> (usize, Vec<String>) {
        let mut files: Vec<(Box<str>, Vec<u8>)> =
            files.iter().map(|text| ("a.rules".into(), text.as_bytes().to_vec())).collect();
        let count = enable_needed(&mut files);
        (count, files.into_iter().map(|(_, bytes)| String::from_utf8(bytes).expect("text")).collect())
    }

    #[test]
    fn rules_that_set_bits_of_enabled_ones_are_enabled_without_alerts() {
        let asks = "alert tcp any any -> any any (flowbits:isset,b|c; sid:1;)\n";
        let sets = "# alert tcp any any -> any any (flowbits:isset,a; \\\nflowbits: set , c; sid:2;)\n\
                    #alert tcp any any -> any any (flowbits:set,a; flowbits:noalert; noalert; sid:3;)\n\
                    # alert tcp any any -> any any (flowbits:set,other; sid:4;)\n# a comment on flowbits\n";
        let (count, files) = enabled(&[asks, sets]);
        assert_eq!((count, &*files[0]), (2, asks));
        let wanted = "alert tcp any any -> any any (flowbits:isset,a; flowbits: set , c; sid:2; noalert;)\n\n\
                      alert tcp any any -> any any (flowbits:set,a; flowbits:noalert; noalert; sid:3;)\n\
                      # alert tcp any any -> any any (flowbits:set,other; sid:4;)\n# a comment on flowbits\n";
        assert_eq!(files[1], wanted);
        assert_eq!(enabled(&[sets]), (0, vec![sets.to_owned()]));
    }

    #[test]
    fn rings_of_bits_end() {
        let ring = "alert tcp any any -> any any (flowbits:isset,a; sid:1;)\n\
                    #alert tcp any any -> any any (flowbits:set,a; flowbits:isset,b; sid:2;)\n\
                    #alert tcp any any -> any any (flowbits:set,b; flowbits:isset,a; sid:3;)\n";
        assert_eq!(enabled(&[ring]).0, 2);
    }
}
