//! The names that pages give to the files that they hold: of a link with `download="NAME"` and the file in its `data:` address,
//! in either order. The file itself is told by `html`; the name is that of an empty member.
//!
//! Bounds: [`NAME_BYTES_MAX`] of a name, [`ADDRESS_BYTES_MAX`] of an address.

use stream::{Kind, Object, ReadAt};
use text::html::reference::{Place, decode};
use text::html::{Token, Tokeniser};

use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader};

const NAME_BYTES_MAX: usize = 1024;
const ADDRESS_BYTES_MAX: usize = 64;

/// A reader of pages.
pub(crate) struct Download {
    tokens: Tokeniser,
    link: Link,
}

/// The link that is being read.
#[derive(Default)]
struct Link {
    attribute: Attribute,
    name: Vec<u8>,
    address: Vec<u8>,
}

#[derive(Default)]
enum Attribute {
    #[default]
    Other,
    Name,
    Address,
}

impl Download {
    pub fn new() -> Download {
        Download { tokens: Tokeniser::new(), link: Link::default() }
    }
}

impl Link {
    fn token(&mut self, token: Token<'_>, outbox: &mut Outbox) {
        match token {
            Token::Open(_) => *self = Link::default(),
            Token::Attribute(b"download") => self.attribute = Attribute::Name,
            Token::Attribute(b"href" | b"xlink:href") => self.attribute = Attribute::Address,
            Token::Attribute(_) => self.attribute = Attribute::Other,
            Token::Value(bytes) => {
                let (value, bytes_max) = match self.attribute {
                    Attribute::Other => return,
                    Attribute::Name => (&mut self.name, NAME_BYTES_MAX),
                    Attribute::Address => (&mut self.address, ADDRESS_BYTES_MAX),
                };
                let room = bytes_max.saturating_sub(value.len());
                value.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Token::End { .. } => std::mem::take(self).tell(outbox),
            _ => {}
        }
    }

    /// The tag is over.
    fn tell(self, outbox: &mut Outbox) {
        let address = decode(&self.address, Place::Value);
        let is_file = address.trim_ascii_start().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"));
        if is_file && !self.name.is_empty() {
            let name = Some(name::utf8_or_latin1(&decode(&self.name, Place::Value)));
            outbox.open(Object { kind: Kind::Member, name, size: Some(0), ..Object::default() });
            outbox.close();
        }
    }
}

impl Reader for Download {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let link = &mut self.link;
        self.tokens.read(input, &mut |_, token| link.token(token, outbox));
        outbox.worked(input.len());
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, _: &mut Outbox) -> Ended {
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::reader::Reading;
    use stream::law::{self, Told};

    fn names(page: &str) -> Vec<Box<str>> {
        let make = || Reading::new(Download::new());
        law::holds(make, page.as_bytes());
        law::holds_at_every_cut(make, page.as_bytes());
        let told = law::tell(make(), page.as_bytes()).into_iter();
        told.filter_map(|told| if let Told::Open(object) = told { object.name } else { None }).collect()
    }

    #[test]
    fn a_link_to_a_file_in_the_page_has_its_name() {
        for page in [
            "<a download=\"evil.exe\" href=\"data:application/octet-stream;base64,AAAA\">",
            "<a href='data&colon;,AAAA' class=x download='evil&period;exe'>",
            "<A HREF= data:,AAAA DOWNLOAD=evil.exe >here</A>",
        ] {
            assert_eq!(names(page), ["evil.exe".into()], "{page}");
        }
        for page in [
            "<a download=\"report.exe\" href=\"https://x.test/\">",
            "<a download href=\"data:,A\">",
            "<a href='data:,A'><a download='a'>",
        ] {
            assert_eq!(names(page), Vec::<Box<str>>::new(), "{page}");
        }
    }
}
