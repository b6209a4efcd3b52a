//! Doubt in a reader that was set on an object by a guess, within or beside the object's own type.
//!
//! Such a reader may read what no program would: constants of a program, or packed bytes of another format in which
//! stored blocks show pieces of files. Its content is content all the same; its accusations wait, or are dropped.

use stream::Class;

/// Doubt in a reader: when its findings count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Doubt {
    /// They count.
    #[default]
    None,
    /// Accusations count once a member with content has come.
    UntilContent,
    /// Accusations do not count, nor do those of readers of its members.
    Always,
}

/// Whether a finding of this class says that the object itself is faulty, or beyond what can be read.
pub const fn is_accusation(class: Class) -> bool {
    matches!(class, Class::Ambiguous | Class::Unopened | Class::Limit | Class::Malformed | Class::Truncated)
}

/// Name endings and media types by which programs choose a reader. An object that is named so is read so, whatever else
/// it is: then the reader is no guess.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    pub endings: &'static [&'static str],
    /// Parts of media types.
    pub media_types: &'static [&'static str],
}

pub(crate) const NO_NAMES: Names = Names { endings: &[], media_types: &[] };

pub(crate) const ZIP_NAMES: Names = Names {
    endings: &[
        "zip", "zipx", "jar", "war", "ear", "apk", "aar", "ipa", "docx", "docm", "dotx", "dotm", "xlsx", "xlsm",
        "xltx", "xltm", "xlsb", "xlam", "pptx", "pptm", "potx", "potm", "ppsx", "ppsm", "ppam", "vsdx", "odt", "ods",
        "odp", "odg", "ott", "ots", "otp", "epub", "xpi", "crx", "kmz", "nupkg", "whl", "msix", "appx", "xps", "cbz",
    ],
    media_types: &["zip", "openxmlformats", "opendocument", "java-archive", "android.package", "macroenabled"],
};

pub(crate) const ARC_NAMES: Names = Names { endings: &["arc", "ark"], media_types: &["arc"] };

pub(crate) const RAR_NAMES: Names = Names { endings: &["rar", "cbr", "arj", "r00"], media_types: &["rar", "arj"] };

pub(crate) const DISC_NAMES: Names =
    Names { endings: &["iso", "img", "udf", "bin", "cdr"], media_types: &["iso9660", "cd-image"] };

pub(crate) const PDF_NAMES: Names = Names { endings: &["pdf", "ai", "fdf"], media_types: &["pdf"] };

impl Names {
    /// Whether an object is named so.
    pub fn include(&self, name: Option<&str>, media_type: Option<&str>) -> bool {
        let name = name.unwrap_or_default().trim_end_matches(['.', ' ', '"']);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        self.endings.iter().any(|own| own.eq_ignore_ascii_case(ending))
            || media_type.is_some_and(|media_type| self.media_types.iter().any(|own| media_type.contains(own)))
    }
}
