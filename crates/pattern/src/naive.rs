//! The plain matcher: every part at every offset, by backtracking over the whole input. What the fast one is tested
//! against, and good for nothing else.

use crate::piece::{Edge, Piece};

/// All `(start, end)` of a part in `data`, in ascending order.
pub fn find_all(part: &[Piece], data: &[u8]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for start in 0..=data.len() {
        let mut ends = Vec::new();
        walk(part, data, start, &mut |end| ends.push(end));
        ends.sort_unstable();
        ends.dedup();
        found.extend(ends.into_iter().map(|end| (start as u64, end as u64)));
    }
    found
}

fn walk(pieces: &[Piece], data: &[u8], at: usize, end: &mut dyn FnMut(usize)) {
    let Some((piece, rest)) = pieces.split_first() else {
        return end(at);
    };
    let mut skip = |count: usize| {
        if at + count <= data.len() {
            walk(rest, data, at + count, end);
        }
    };
    match piece {
        Piece::Byte { value, mask } => {
            if data.get(at).is_some_and(|byte| byte & mask == *value) {
                skip(1);
            }
        }
        Piece::Set(set) => {
            if data.get(at).is_some_and(|&byte| set.has(byte)) {
                skip(1);
            }
        }
        Piece::Skip(count) => skip(usize::from(*count)),
        Piece::Gap { min, max } => (*min..=*max).for_each(|count| skip(usize::from(count))),
        Piece::NoneOf(all) => {
            let length = all.first().map_or(0, Vec::len);
            let there = data.get(at..at + length);
            if there.is_some_and(|there| all.iter().all(|one| one != there)) {
                skip(length);
            }
        }
        Piece::OneOf(all) => {
            for one in all {
                walk(one, data, at, &mut |then| walk(rest, data, then, end));
            }
        }
        Piece::Behind(edge) => {
            if behind(edge, &data[..at]) {
                skip(0);
            }
        }
        Piece::Ahead(edge) => {
            if ahead(edge, &data[at..]) {
                skip(0);
            }
        }
    }
}

fn behind(edge: &Edge, before: &[u8]) -> bool {
    match edge {
        Edge::Byte { set, at_border } => before.last().map_or(*at_border, |&byte| set.has(byte)),
        Edge::Line => before.is_empty() || before.ends_with(b"\n"),
        Edge::NotWide(set) => {
            let length = before.len();
            length < 2 || before[length - 1] != 0 || !set.has(before[length - 2])
        }
    }
}

fn ahead(edge: &Edge, after: &[u8]) -> bool {
    match edge {
        Edge::Byte { set, at_border } => after.first().map_or(*at_border, |&byte| set.has(byte)),
        Edge::Line => after.is_empty() || after.starts_with(b"\n") || after.starts_with(b"\r\n"),
        Edge::NotWide(set) => after.len() < 2 || after[1] != 0 || !set.has(after[0]),
    }
}
