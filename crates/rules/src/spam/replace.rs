//! Tags in expressions: `<A>` becomes what `replace_tag A` says.
//!
//! In an expression of a rule that `replace_rules` names, `<pre X>`, `<inter X>` and `<post X>` choose what stands before,
//! between and behind the tags of this expression, and are taken away wherever they stand, defined or not. Two tags are next
//! to each other where nothing stands between them. Tags may stand in what stands for tags, five deep, where nothing is put
//! around them. A tag that nobody has defined stays as it stands, and what is chosen is put around it all the same.

use std::collections::HashMap;

/// The tags of a configuration.
#[derive(Debug, Clone)]
pub struct Tags {
    start: Box<[u8]>,
    end: Box<[u8]>,
    tags: HashMap<Box<[u8]>, Box<[u8]>>,
    before: HashMap<Box<[u8]>, Box<[u8]>>,
    between: HashMap<Box<[u8]>, Box<[u8]>>,
    behind: HashMap<Box<[u8]>, Box<[u8]>>,
}

impl Default for Tags {
    fn default() -> Tags {
        Tags {
            start: b"<"[..].into(),
            end: b">"[..].into(),
            tags: HashMap::new(),
            before: HashMap::new(),
            between: HashMap::new(),
            behind: HashMap::new(),
        }
    }
}

impl Tags {
    /// Whether `keyword` says something about tags.
    pub fn is_keyword(keyword: &str) -> bool {
        matches!(
            keyword,
            "replace_start" | "replace_end" | "replace_tag" | "replace_pre" | "replace_inter" | "replace_post"
        )
    }

    /// Takes a line; `false` where its value is missing.
    pub fn set(&mut self, keyword: &str, key: &[u8], value: &[u8]) -> bool {
        let map = match keyword {
            "replace_start" | "replace_end" => {
                let place = if keyword == "replace_start" { &mut self.start } else { &mut self.end };
                if !key.is_empty() {
                    *place = key.into();
                }
                return !key.is_empty();
            }
            "replace_pre" => &mut self.before,
            "replace_inter" => &mut self.between,
            "replace_post" => &mut self.behind,
            _ => &mut self.tags,
        };
        if key.is_empty() || value.is_empty() {
            return false;
        }
        map.insert(key.into(), value.into());
        true
    }

    /// The expression with its tags replaced; `None` where it would be longer than `bytes_max`.
    pub fn replace(&self, source: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        let mut chosen = Chosen::default();
        let mut out = Vec::with_capacity(source.len());
        let mut after_tag = false;
        for piece in self.pieces(source, &mut chosen) {
            match piece {
                Piece::Text(text) => {
                    append(&mut out, text, bytes_max)?;
                    after_tag = false;
                }
                Piece::Tag(value) | Piece::Unknown(value) => {
                    if after_tag {
                        append(&mut out, chosen.between, bytes_max)?;
                    }
                    append(&mut out, chosen.before, bytes_max)?;
                    match piece {
                        Piece::Tag(_) => self.expand(value, &mut out, bytes_max)?,
                        _ => append(&mut out, value, bytes_max)?,
                    }
                    append(&mut out, chosen.behind, bytes_max)?;
                    after_tag = true;
                }
            }
        }
        Some(out)
    }

    /// Writes a tag's value out, and the tags in it, as deep as there may be some.
    fn expand(&self, value: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Option<()> {
        const DEPTH_MAX: usize = 5;
        // What is still to be written at each depth.
        let mut rests = vec![value];
        while let Some(rest) = rests.pop() {
            let deep = rests.len() == DEPTH_MAX;
            let starts = self.starts(rest).filter(|_| !deep);
            let tags = starts.filter_map(|at| Some((at, self.tag(rest, at)?)));
            let found = tags.into_iter().find_map(|(at, (name, next))| Some((at, self.tags.get(name)?, next)));
            let Some((at, inner, next)) = found else {
                append(out, rest, bytes_max)?;
                continue;
            };
            append(out, &rest[..at], bytes_max)?;
            rests.push(&rest[next..]);
            rests.push(inner);
        }
        Some(())
    }

    fn pieces<'a>(&'a self, source: &'a [u8], chosen: &mut Chosen<'a>) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let (mut text, mut at) = (0, 0);
        while let Some(skipped) = self.starts(&source[at..]).next() {
            at += skipped;
            let Some((name, next)) = self.tag(source, at) else {
                at += 1;
                continue;
            };
            if text < at {
                pieces.push(Piece::Text(&source[text..at]));
            }
            if !self.choose(name, chosen) {
                pieces.push(self.tags.get(name).map_or(Piece::Unknown(&source[at..next]), |value| Piece::Tag(value)));
            }
            (text, at) = (next, next);
        }
        if text < source.len() {
            pieces.push(Piece::Text(&source[text..]));
        }
        pieces
    }

    /// Where tags may begin.
    fn starts<'a>(&self, source: &'a [u8]) -> memchr::Memchr<'a> {
        memchr::memchr_iter(self.start.first().copied().unwrap_or_default(), source)
    }

    /// The name of the tag that begins at `at`, and where it ends.
    fn tag<'a>(&self, source: &'a [u8], at: usize) -> Option<(&'a [u8], usize)> {
        const NAME_BYTES_MAX: usize = 128;
        let rest = source[at..].strip_prefix(&*self.start)?;
        let near = &rest[..rest.len().min(NAME_BYTES_MAX + self.end.len())];
        let length = near.windows(self.end.len().max(1)).position(|window| window == &*self.end)?;
        let name = &rest[..length];
        let holds_another = name.windows(self.start.len().max(1)).any(|window| window == &*self.start);
        // The name of a group, or what stands behind the text, is no tag.
        let is_group = source[..at].ends_with(b"(?") || source[..at].ends_with(b"(?P");
        (length > 0 && !holds_another && !is_group).then_some((name, at + self.start.len() + length + self.end.len()))
    }

    fn choose<'a>(&'a self, name: &[u8], chosen: &mut Chosen<'a>) -> bool {
        let space = name.iter().position(|&byte| byte == b' ').unwrap_or(name.len());
        let (kind, key) = (&name[..space], name.get(space + 1..).unwrap_or_default());
        let (map, place) = match kind {
            b"pre" => (&self.before, &mut chosen.before),
            b"inter" => (&self.between, &mut chosen.between),
            b"post" => (&self.behind, &mut chosen.behind),
            _ => return false,
        };
        *place = map.get(key).map_or(&b""[..], |value| value);
        true
    }
}

/// Appends, as long as it stays within bounds.
fn append(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) -> Option<()> {
    (text.len() <= bytes_max.saturating_sub(out.len())).then(|| out.extend_from_slice(text))
}

#[derive(Default)]
struct Chosen<'a> {
    before: &'a [u8],
    between: &'a [u8],
    behind: &'a [u8],
}

enum Piece<'a> {
    Text(&'a [u8]),
    Tag(&'a [u8]),
    /// An undefined tag.
    Unknown(&'a [u8]),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> Tags {
        let mut tags = Tags::default();
        for (keyword, key, value) in [
            ("replace_tag", "A", "[a@]"),
            ("replace_tag", "B", "b"),
            ("replace_tag", "C", "x<B>y<A>"),
            ("replace_tag", "R", "r<R>"),
            ("replace_inter", "SP", r"\s"),
            ("replace_pre", "P1", "(?:x)"),
            ("replace_post", "P2", "{1,3}"),
        ] {
            assert!(tags.set(keyword, key.as_bytes(), value.as_bytes()));
        }
        tags
    }

    #[test]
    fn tags_are_replaced_with_what_stands_around_them() {
        let tags = tags();
        for (text, expected) in [
            ("<A>b<inter SP><A><post P2>", "[a@]{1,3}b[a@]{1,3}"),
            ("<inter SP><post P2><A><A>", r"[a@]{1,3}\s[a@]{1,3}"),
            ("<pre P1><A>+<B>", "(?:x)[a@]+(?:x)b"),
            ("(?<X>a)<Z><inter NO><A", "(?<X>a)<Z><A"),
            ("<post P2><A><Z>x<>(?<!a)>", "[a@]{1,3}<Z>{1,3}x<>(?<!a)>"),
            ("<inter SP>a<b<A><Z>", r"a<b[a@]\s<Z>"),
            ("<inter  SP><A><A>", "[a@][a@]"),
            ("<inter SP><post P2><C><C>", r"xby[a@]{1,3}\sxby[a@]{1,3}"),
            ("<R>", "rrrrrr<R>"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(tags.replace(text.as_bytes(), 1000).unwrap()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn other_marks_can_be_chosen_and_the_length_is_bounded() {
        let mut tags = tags();
        assert!(tags.replace(b"<A><A><A>", 8).is_none());
        tags.set("replace_start", b"{{", b"");
        tags.set("replace_end", b"}}", b"");
        assert_eq!(tags.replace(b"{{B}}<A>", 100).unwrap(), b"b<A>");
        assert!(!tags.set("replace_tag", b"C", b""));
        assert!(!tags.set("replace_start", b"", b""));
        assert_eq!(tags.replace(b"{{B}}", 100).unwrap(), b"b");
    }
}
