//! A URI as rules see it: decoded once; in the path separators are joined, steps up undone, and letters are one byte.

use super::super::transform::hex;

/// The path, and with it the query and the fragment, normalised. Of an absolute URI the scheme and the host are left out.
pub(super) fn normalised(raw: &[u8]) -> Vec<u8> {
    let raw = without_host(raw);
    let end = raw.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(raw.len());
    let (path, rest) = raw.split_at(end);
    let mut out = steps(&best_fit(&decoded(path)));
    out.extend(percent_decoded(rest));
    out
}

/// The path alone, as the name of a file.
pub(super) fn path(raw: &[u8]) -> Vec<u8> {
    let raw = without_host(raw);
    let end = raw.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(raw.len());
    normalised(&raw[..end])
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let pair = behind.get(..2).filter(|_| byte == b'%');
        let value = pair.and_then(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?));
        out.push(value.unwrap_or(byte));
        rest = if value.is_some() { &behind[2..] } else { behind };
    }
    out
}

fn without_host(raw: &[u8]) -> &[u8] {
    let Some(at) = memchr::memmem::find(raw, b"://") else { return raw };
    if raw.starts_with(b"/") || !raw[..at].iter().all(u8::is_ascii_alphanumeric) {
        return raw;
    }
    let rest = &raw[at + 3..];
    let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    path.map_or(&[][..], |at| &rest[at..])
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    let pair = |at: usize| Some(hex(*path.get(at)?)? << 4 | hex(*path.get(at + 1)?)?);
    while let Some(&byte) = path.get(at) {
        let is_wide = path.get(at + 1).is_some_and(|byte| matches!(byte, b'u' | b'U'));
        let (value, length) = match (byte, is_wide) {
            (b'%', true) => match (pair(at + 2), pair(at + 4)) {
                (Some(0), Some(low)) => (low, 6),
                (Some(_), Some(_)) => (b'?', 6),
                _ => (byte, 1),
            },
            (b'%', false) => pair(at + 1).map_or((byte, 1), |value| (value, 3)),
            _ => (byte, 1),
        };
        out.push(if value == b'\\' { b'/' } else { value });
        at += length;
    }
    out
}

/// Characters of UTF-8 as one byte: those of Latin-1 as they are, others as `?`. Overlong forms are what they stand for.
fn best_fit(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        let length = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        let tail =
            path.get(at + 1..at + length).filter(|tail| length > 1 && tail.iter().all(|byte| byte & 0xc0 == 0x80));
        let Some(tail) = tail else {
            out.push(byte);
            at += 1;
            continue;
        };
        let head = u32::from(byte) & (0x7f >> length);
        let value = tail.iter().fold(head, |value, byte| value << 6 | u32::from(byte & 0x3f));
        out.push(u8::try_from(value).unwrap_or(b'?'));
        at += length;
    }
    out
}

/// A path without empty segments, `.` and `..`.
fn steps(path: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = path[1..].split(|&byte| byte == b'/').collect();
    let last = segments.len().saturating_sub(1);
    for (at, segment) in segments.into_iter().enumerate() {
        match segment {
            b"" if at != last => {}
            // The separator goes with the last step.
            b"." => {}
            b".." => _ = kept.pop(),
            _ => kept.push(segment),
        }
    }
    [b"/", kept.join(&b'/').as_slice()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_decoded_once_and_paths_straightened() {
        let is = |raw: &[u8], is: &[u8]| assert_eq!(normalised(raw), is, "{}", raw.escape_ascii());
        is(b"/a/%62//c/../d?x=%41+%2541%zz%u0041//../#f%41", b"/a/b/d?x=A+%41%zz%u0041//../#fA");
        is(b"/caf%C3%A9?%C3%A9", b"/caf\xe9?\xc3\xa9");
        is(b"/a%3fq#b?c", b"/a?q#b?c");
        assert_eq!(path(b"http://a.test/d/f%41.txt?q"), b"/d/fA.txt");
        is(b"/caf%C3%A9", b"/caf\xe9");
        is(b"/%c0%af%d0%bf%u0041\\", b"/?A/");
        is(b"http://a.test/x/./", b"/x/");
        is(b"/%2541/%zz", b"/%41/%zz");
        is(b"*", b"*");
        is(b"/a/b/..", b"/a");
        is(b"/a/b/.", b"/a/b");
        is(b"/a/b/../", b"/a/");
        is(b"/..", b"/");
    }
}
