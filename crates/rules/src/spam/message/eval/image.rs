//! Over the pictures in a mail: how many, how large, by what name.

use std::collections::BTreeSet;

use super::{View, bound, number, text, truth};
use crate::spam::message::{Message, Part};

pub(super) const FUNCTIONS: &[(&str, View)] = &[
    ("image_count", count),
    ("image_named", named),
    ("image_size_exact", size_exact),
    ("image_size_range", size_range),
    (TEXT_RATIO, text_ratio),
    ("pixel_coverage", coverage),
];

/// The one function that depends on what its rule is over.
pub(super) const TEXT_RATIO: &str = "image_to_text_ratio";

/// Pictures of one kind or of all.
#[derive(Debug, Default)]
struct Pictures<'a> {
    count: usize,
    area: f64,
    /// Heights and widths.
    sizes: BTreeSet<(u32, u32)>,
    names: BTreeSet<&'a [u8]>,
}

/// The pictures of that kind: `gif`, `png`, `jpeg` or `all`; none of another.
fn pictures<'a>(message: &'a Message, kind: &str) -> Option<Pictures<'a>> {
    if !["all", "gif", "png", "jpeg"].contains(&kind) {
        return None;
    }
    let mut out = Pictures::default();
    for part in message.parts().iter().filter(|part| !part.has_parts) {
        let is_coded =
            part.field(b"content-transfer-encoding").is_some_and(|field| field.value.eq_ignore_ascii_case(b"base64"));
        let found = match &*part.kind {
            "image/gif" => "gif",
            "image/png" => "png",
            "image/jpeg" | "image/jpg" => "jpeg",
            _ => continue,
        };
        if !is_coded || (kind != "all" && kind != found) {
            continue;
        }
        out.count += 1;
        out.add(part, found);
    }
    Some(out)
}

impl<'a> Pictures<'a> {
    fn add(&mut self, part: &'a Part, kind: &str) {
        let data = part.decoded();
        let size = match kind {
            "gif" => gif(data),
            "png" => png(data),
            _ => jpeg(data),
        };
        let Some((height, width)) = size.filter(|(height, width)| *height > 0 && *width > 0) else { return };
        self.area += f64::from(height) * f64::from(width);
        self.sizes.insert((height, width));
        self.names.extend(part.name.as_deref());
    }
}

/// Height and width.
fn gif(data: &[u8]) -> Option<(u32, u32)> {
    if !data.starts_with(b"GIF87a") && !data.starts_with(b"GIF89a") {
        return None;
    }
    let short = |at: usize| Some(u32::from(u16::from_le_bytes([*data.get(at)?, *data.get(at + 1)?])));
    Some((short(8)?, short(6)?))
}

/// Height and width: of the first chunk that says them, looked for every eight bytes.
fn png(data: &[u8]) -> Option<(u32, u32)> {
    let mut rest = data.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let long = |bytes: &[u8]| Some(u32::from_be_bytes(*bytes.first_chunk()?));
    while let Some((head, behind)) = rest.split_at_checked(8) {
        match &head[4..] {
            b"IEND" => return None,
            b"IHDR" if long(head) == Some(13) => return Some((long(behind.get(4..)?)?, long(behind)?)),
            _ => rest = behind,
        }
    }
    None
}

/// Height and width: of the first frame.
fn jpeg(data: &[u8]) -> Option<(u32, u32)> {
    let mut rest = data.strip_prefix(b"\xff\xd8")?;
    loop {
        let [0xff, mark, high, low, behind @ ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if matches!(mark, 0xda | 0xd9) || length < 2 {
            return None;
        }
        let block = &behind[..behind.len().min(length - 2)];
        if matches!(mark, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf) {
            let [_, a, b, c, d, ..] = block else { return None };
            return Some((u32::from(u16::from_be_bytes([*a, *b])), u32::from(u16::from_be_bytes([*c, *d]))));
        }
        rest = &behind[block.len()..];
    }
}

fn within(value: Option<f64>, arguments: &[Box<[u8]>]) -> bool {
    value.is_some_and(|value| value >= number(arguments, 1) && bound(arguments, 2).is_none_or(|max| value <= max))
}

fn count(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let found = pictures(message, text(arguments, 0)).map(|found| found.count as f64);
    truth(arguments.len() > 1 && within(found, arguments))
}

fn coverage(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let found = pictures(message, text(arguments, 0)).map(|found| found.area);
    truth(arguments.len() > 1 && within(found, arguments))
}

fn named(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let Some(name) = arguments.first() else { return 0.0 };
    truth(pictures(message, "all").is_some_and(|found| found.names.contains(&**name)))
}

fn size_exact(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let fits =
        |size: &(u32, u32)| f64::from(size.0) == number(arguments, 1) && f64::from(size.1) == number(arguments, 2);
    let found = pictures(message, text(arguments, 0));
    truth(arguments.len() > 2 && found.is_some_and(|found| found.sizes.iter().any(fits)))
}

fn size_range(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let fits = |size: &(u32, u32)| {
        let [height, width] = [size.0, size.1].map(f64::from);
        height >= number(arguments, 1)
            && width >= number(arguments, 2)
            && bound(arguments, 3).is_none_or(|max| height <= max)
            && bound(arguments, 4).is_none_or(|max| width <= max)
    };
    let found = pictures(message, text(arguments, 0));
    truth(arguments.len() > 2 && found.is_some_and(|found| found.sizes.iter().any(fits)))
}

/// Letters of the rendered body for each point of the pictures.
fn text_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    ratio(message, message.body(), arguments)
}

/// The same of the decoded text parts.
pub(super) fn raw_text_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    ratio(message, message.raw_body(), arguments)
}

fn ratio(message: &Message, texts: &[Box<[u8]>], arguments: &[Box<[u8]>]) -> f64 {
    let letters: usize = texts.iter().map(|text| text.len()).sum();
    let area = pictures(message, text(arguments, 0)).map_or(0.0, |found| found.area);
    if arguments.len() < 3 || letters == 0 || area <= 0.0 {
        return 0.0;
    }
    let ratio = letters as f64 / area;
    truth(ratio >= number(arguments, 1) && ratio < number(arguments, 2))
}
