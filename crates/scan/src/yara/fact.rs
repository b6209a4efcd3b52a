//! Facts about an object besides its bytes, for conditions: its name, and the head of a PE file.
//!
//! The external variables are those that public rules use, as the scanners that they were written for give them:
//! `filename`, `filepath` (the folder, with the names of the containers before it), `extension` (with its dot) and
//! `filetype` (the name of the type, in capitals). An object without a name has empty ones.
//!
//! After the YARA manual, "PE module".

use super::id::{NodeId, TextId};
use super::regex::Expression;
use crate::layout::exports::Exported;
use crate::layout::version;
use crate::signed::signers::SignedBy;

/// A text that is known of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    FileName,
    FilePath,
    Extension,
    FileType,
    /// The digest of what a PE file imports.
    ImportHash,
    SectionName(NodeId),
    /// The name of the section of an ELF file with that number.
    ElfSectionName(NodeId),
    /// Fact about the signer of a PE file with that number.
    Signer(OfSigner, NodeId),
    /// Version information under this name.
    Version(TextId),
}

/// A number in the head of a PE file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    IsPe,
    Is32Bit,
    Is64Bit,
    IsDll,
    Machine,
    Characteristics,
    Timestamp,
    Subsystem,
    Checksum,
    ImageBase,
    /// The offset of its entry point.
    EntryPoint,
    /// How many functions it exports.
    Exports,
    /// How many signatures it has.
    Signatures,
    /// Where what stands behind its sections begins, and how much that is.
    OverlayOffset,
    OverlaySize,
    /// How many libraries it imports something of.
    Libraries,
    /// How many functions it imports.
    Functions,
    /// How many resources it has.
    Resources,
}

/// Facts about a signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfSigner {
    Issuer,
    Subject,
    Serial,
}

/// A number in the head of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfSection {
    Address,
    AddressLength,
    Offset,
    Length,
    Characteristics,
}

/// How two texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) how: How,
    pub(crate) caseless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Equal,
    NotEqual,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
}

/// A text in a condition.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Plain(Box<[u8]>),
    Expression(Box<Expression>),
}

impl Comparison {
    /// Reads an operator.
    pub(crate) fn parse(word: &str) -> Option<Comparison> {
        let (how, caseless) = match word {
            "==" => (How::Equal, false),
            "!=" => (How::NotEqual, false),
            "contains" => (How::Contains, false),
            "icontains" => (How::Contains, true),
            "startswith" => (How::StartsWith, false),
            "istartswith" => (How::StartsWith, true),
            "endswith" => (How::EndsWith, false),
            "iendswith" => (How::EndsWith, true),
            "iequals" => (How::Equal, true),
            "matches" => (How::Matches, false),
            _ => return None,
        };
        Some(Comparison { how, caseless })
    }

    pub(crate) fn holds(self, text: &[u8], with: &Text) -> bool {
        match with {
            Text::Plain(with) if self.caseless => self.compare(&text.to_ascii_lowercase(), &with.to_ascii_lowercase()),
            Text::Plain(with) => self.compare(text, with),
            Text::Expression(expression) => expression.is_in(text),
        }
    }

    fn compare(self, text: &[u8], with: &[u8]) -> bool {
        match self.how {
            How::Equal => text == with,
            How::NotEqual => text != with,
            How::Contains => memchr::memmem::find(text, with).is_some(),
            How::StartsWith => text.starts_with(with),
            How::EndsWith => text.ends_with(with),
            How::Matches => false,
        }
    }
}

/// Names given to an object from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Called {
    pub(crate) name: Box<str>,
    pub(crate) path: Box<str>,
    pub(crate) extension: Box<str>,
    pub(crate) file_type: Box<str>,
}

impl Called {
    /// Names of an object in containers of these names.
    pub(crate) fn new(containers: &[&str], name: &str) -> Called {
        let (folder, base) = name.rsplit_once(['/', '\\']).unwrap_or(("", name));
        let path: Vec<&str> = containers.iter().copied().chain([folder]).filter(|part| !part.is_empty()).collect();
        let dot = base.rfind('.').filter(|dot| *dot > 0);
        Called {
            name: base.into(),
            path: path.join("/").into(),
            extension: dot.map_or("", |dot| &base[dot..]).into(),
            file_type: Box::default(),
        }
    }

    /// With the name of its type.
    pub(crate) fn of_type(self, file_type: &str) -> Called {
        let file_type = if file_type == "pe" { "EXE".to_owned() } else { file_type.to_ascii_uppercase() };
        Called { file_type: file_type.into(), ..self }
    }
}

/// Tables of a PE file, as far as conditions ask for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    pub(crate) import_hash: Option<Box<str>>,
    /// Libraries and functions, in lower case.
    pub(crate) imports: Vec<(Box<str>, Box<str>)>,
    pub(crate) exports: Option<Exported>,
    /// Signers, if they can be read.
    pub(crate) signers: Option<Vec<SignedBy>>,
    pub(crate) version: Vec<version::Text>,
    /// How many libraries it imports something of, and how many resources it has, if that can be read.
    pub(crate) libraries: Option<u32>,
    /// How many functions it imports, if that can be read.
    pub(crate) functions: Option<u32>,
    pub(crate) resources: Option<u32>,
    /// Whether something could not be read because of a bound.
    pub(crate) cut: bool,
}

impl Tables {
    /// Tables of a PE file without imports and resources. The digest of nothing is that of an empty text.
    pub(crate) fn of_nothing() -> Tables {
        let import_hash = Some("d41d8cd98f00b204e9800998ecf8427e".into());
        Tables { import_hash, libraries: Some(0), functions: Some(0), resources: Some(0), ..Tables::default() }
    }
}

/// Tables of a PE file that conditions ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) imports: bool,
    pub(crate) exports: bool,
    pub(crate) version: bool,
    pub(crate) signers: bool,
    pub(crate) resources: bool,
}

impl Asked {
    pub(crate) const fn or(self, other: Asked) -> Asked {
        Asked {
            imports: self.imports || other.imports,
            exports: self.exports || other.exports,
            version: self.version || other.version,
            signers: self.signers || other.signers,
            resources: self.resources || other.resources,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart() {
        let called = Called::new(&["mail.eml", "a.zip"], "docs\\x/Report.final.DOC").of_type("pe");
        assert_eq!((&*called.name, &*called.extension, &*called.file_type), ("Report.final.DOC", ".DOC", "EXE"));
        assert_eq!(&*called.path, "mail.eml/a.zip/docs\\x");
        let called = Called::new(&[], ".profile").of_type("text");
        assert_eq!((&*called.name, &*called.path, &*called.extension), (".profile", "", ""));
    }
}
