//! The table of contents: of its XML only the elements of files count, wherever they stand.
//!
//! ```text
//! <file> … <name>n</name> … <data> <length>9</length> <offset>20</offset> <size>12</size> <encoding style="…"/> </data>
//!          <file> … </file> … </file>
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::frame::name;

/// A member; one without content has no place.
pub(super) struct Entry {
    pub name: Box<str>,
    pub offset: u64,
    pub length: u64,
    pub size: Option<u64>,
    pub encoding: Box<str>,
}

/// Files within files beyond these have no path any more.
const DEPTH_MAX: usize = 64;

/// A file that is open.
#[derive(Default)]
struct File {
    path: Box<str>,
    data: Option<Data>,
    /// Not a folder or a symbolic link.
    is_plain: bool,
    /// Within the element of its data.
    in_data: bool,
}

#[derive(Default, Clone)]
struct Data {
    offset: u64,
    length: u64,
    size: Option<u64>,
    encoding: Box<str>,
}

/// Reads the entries, one more than `max` at most.
pub(super) fn read(xml: &[u8], max: usize, name_bytes_max: usize) -> Vec<Entry> {
    let xml = String::from_utf8_lossy(xml);
    let mut entries = Vec::new();
    let mut files: Vec<File> = Vec::new();
    let mut deeper = 0_usize;
    for (tag, text) in tags(&xml) {
        let element = tag.split([' ', '\t', '\n', '\r', '/']).find(|part| !part.is_empty()).unwrap_or("");
        match (tag.starts_with('/'), element) {
            (false, "file") if files.len() == DEPTH_MAX => deeper = deeper.saturating_add(1),
            (false, "file") => {
                let path = files.last().map(|file| file.path.clone()).unwrap_or_default();
                files.push(File { path, ..File::default() });
            }
            (true, "file") if deeper > 0 => deeper = deeper.saturating_sub(1),
            (true, "file") => {
                let Some(File { path, data, is_plain, .. }) = files.pop() else { continue };
                if let Some(data) = data.or(is_plain.then(Data::default)) {
                    let Data { offset, length, size, encoding } = data;
                    entries.push(Entry { name: path, offset, length, size, encoding });
                    if entries.len() > max {
                        break;
                    }
                }
            }
            (is_end, field) => {
                if let Some(file) = files.last_mut().filter(|_| deeper == 0) {
                    file.element(is_end, field, tag, text, name_bytes_max);
                }
            }
        }
    }
    entries
}

impl File {
    fn element(&mut self, is_end: bool, field: &str, tag: &str, text: &str, name_bytes_max: usize) {
        match field {
            "name" if !is_end && !self.in_data => {
                let parent = if self.path.is_empty() { String::new() } else { format!("{}/", self.path) };
                self.path = name::cut(&format!("{parent}{}", unescaped(text)), name_bytes_max);
            }
            "type" if !is_end && !self.in_data => self.is_plain = matches!(text.trim(), "file" | "hardlink"),
            "data" => {
                self.in_data = !is_end && !tag.ends_with('/');
                self.data.get_or_insert_default();
            }
            _ if is_end || !self.in_data => {}
            _ => self.data.get_or_insert_default().field(field, tag, text),
        }
    }
}

impl Data {
    fn field(&mut self, field: &str, tag: &str, text: &str) {
        let number = text.trim().parse().ok();
        match field {
            "offset" => self.offset = number.unwrap_or(0),
            "length" => self.length = number.unwrap_or(0),
            "size" => self.size = number,
            "encoding" => {
                let style = tag.split_once("style=").map_or("", |(_, style)| style);
                self.encoding = style.split(['"', '\'']).nth(1).unwrap_or("").into();
            }
            _ => {}
        }
    }
}

/// The tags, each with the text that follows it.
fn tags(xml: &str) -> impl Iterator<Item = (&str, &str)> {
    xml.split('<').skip(1).filter_map(|part| part.split_once('>'))
}

fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_string();
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_within_folders_have_paths() {
        let xml = b"<xar><toc><file id=\"1\"><name>a &amp; b</name><type>directory</type><file id='2'><data>\
                    <length>5</length><offset>20</offset><size>9</size><encoding style=\"application/x-gzip\"/></data>\
                    <name>c.txt</name></file><file><name>e</name><type>file</type></file></file></toc></xar>";
        let entries = read(xml, 10, 100);
        assert_eq!(entries.len(), 2);
        assert_eq!((&*entries[1].name, entries[1].length), ("a & b/e", 0));
        let Entry { name, offset, length, size, encoding } = &entries[0];
        assert_eq!((&**name, *offset, *length, *size), ("a & b/c.txt", 20, 5, Some(9)));
        assert_eq!(&**encoding, "application/x-gzip");
    }
}
