//! Keys of dictionaries that decide how bytes are read.

use super::layer::Entry;

/// Keys that are understood: entries of dictionaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    None,
    Other,
    Length,
    /// `N`: how many objects an object stream has.
    Count,
    /// `First`: where the objects of an object stream begin.
    First,
    /// `W`: the widths of fields in a stream of references.
    Widths,
    Filter,
    Parameters,
    Predictor,
    Colors,
    Bits,
    Columns,
    EarlyChange,
    Type,
    Subtype,
    JavaScript,
    /// `F`, `UF` and their kin: a file name, or in `EF` the stream.
    File,
    EmbeddedFile,
    Encrypt,
    Id,
    Version,
    Revision,
    Permissions,
    Owner,
    User,
    OwnerFile,
    UserFile,
    CryptFilters,
    Method,
    StreamFilter,
    StringFilter,
    EmbeddedFilter,
    EncryptMetadata,
    Name,
}

impl Key {
    pub fn of(word: &[u8]) -> Key {
        match word {
            b"Length" => Key::Length,
            b"N" => Key::Count,
            b"First" => Key::First,
            b"W" => Key::Widths,
            b"Filter" => Key::Filter,
            b"DecodeParms" | b"DP" => Key::Parameters,
            b"Predictor" => Key::Predictor,
            b"Colors" => Key::Colors,
            b"BitsPerComponent" => Key::Bits,
            b"Columns" => Key::Columns,
            b"EarlyChange" => Key::EarlyChange,
            b"Type" => Key::Type,
            b"Subtype" => Key::Subtype,
            b"JS" => Key::JavaScript,
            b"F" | b"UF" | b"DOS" | b"Mac" | b"Unix" => Key::File,
            b"EF" => Key::EmbeddedFile,
            b"Encrypt" => Key::Encrypt,
            b"ID" => Key::Id,
            b"V" => Key::Version,
            b"R" => Key::Revision,
            b"P" => Key::Permissions,
            b"O" => Key::Owner,
            b"U" => Key::User,
            b"OE" => Key::OwnerFile,
            b"UE" => Key::UserFile,
            b"CF" => Key::CryptFilters,
            b"CFM" => Key::Method,
            b"StmF" => Key::StreamFilter,
            b"StrF" => Key::StringFilter,
            b"EFF" => Key::EmbeddedFilter,
            b"EncryptMetadata" => Key::EncryptMetadata,
            b"Name" => Key::Name,
            _ => Key::Other,
        }
    }

    /// The number in `DecodeParms` that it stands for.
    pub fn entry(self) -> Option<Entry> {
        match self {
            Key::Predictor => Some(Entry::Predictor),
            Key::Colors => Some(Entry::Colors),
            Key::Bits => Some(Entry::Bits),
            Key::Columns => Some(Entry::Columns),
            Key::EarlyChange => Some(Entry::EarlyChange),
            _ => None,
        }
    }
}
