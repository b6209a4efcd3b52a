//! Fields of a header, of a mail or of a part.

/// A field of a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// The name as it is written, without blanks behind it.
    pub name: Box<[u8]>,
    /// What stands behind the colon, as it came, folded, with the line feed that ends it: what `:raw` gives.
    pub raw: Box<[u8]>,
    /// Unfolded, decoded to UTF-8, with a line feed that ends it: what rules look at.
    pub value: Box<[u8]>,
}

impl Field {
    /// Whether this is the field of that name, whatever its case.
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}
