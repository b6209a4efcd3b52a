//! Target types and container types: ClamAV's names for kinds of files, and ours.

use stream::FileType;

/// One more than the highest target type.
pub(crate) const TARGETS: usize = 15;

/// The target type of a kind of file, besides 0, which is every kind's.
pub(crate) const fn target_of(file_type: FileType) -> u8 {
    match file_type {
        FileType::Pe => 1,
        FileType::Ole2 => 2,
        FileType::Html => 3,
        FileType::Mail => 4,
        FileType::Image => 5,
        FileType::Elf => 6,
        FileType::Text | FileType::Xml => 7,
        FileType::MachO => 9,
        FileType::Pdf => 10,
        FileType::Flash | FileType::FlashPacked => 11,
        FileType::JavaClass => 12,
        _ => 0,
    }
}

/// The targets whose signatures are looked for in one stream.
pub(crate) type Targets = [Option<u8>; 3];

/// The targets whose signatures are looked for in the bytes of a file of that kind, as they stand: every kind's, and its
/// own unless those are for a normalised view.
pub(crate) const fn targets_of(file_type: FileType) -> Targets {
    match target_of(file_type) {
        0 | HTML | TEXT => [Some(0), None, None],
        own => [Some(0), Some(own), None],
    }
}

/// Executables for Windows.
pub(crate) const EXECUTABLE: u8 = 1;
/// HTML, in normalised views.
pub(crate) const HTML: u8 = 3;
/// Text, in a normalised view.
pub(crate) const TEXT: u8 = 7;

/// Required container of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// The object has no container.
    Root,
    /// It is of this kind.
    Is(FileType),
}

impl Container {
    /// Reads a name of the form `CL_TYPE_ZIP`.
    pub(crate) fn parse(text: &str) -> Result<Container, String> {
        match text.strip_prefix("CL_TYPE_") {
            Some("ANY") => Ok(Container::Root),
            name => name.and_then(file_type).map(Container::Is).ok_or_else(|| format!("the container {text}")),
        }
    }

    /// Whether an object in `container` fits.
    pub(crate) fn admits(self, container: Option<FileType>) -> bool {
        match self {
            Container::Root => container.is_none(),
            Container::Is(wanted) => container == Some(wanted),
        }
    }
}

/// Reads what follows `CL_TYPE_`.
pub(crate) fn file_type(name: &str) -> Option<FileType> {
    Some(match name {
        "ZIP" | "ZIPSFX" => FileType::Zip,
        "GZ" => FileType::Gzip,
        "BZ" => FileType::Bzip2,
        "XZ" => FileType::Xz,
        "POSIX_TAR" | "OLD_TAR" => FileType::Tar,
        "7Z" | "7ZSFX" => FileType::SevenZip,
        "RAR" | "RARSFX" => FileType::Rar,
        "MSCAB" | "CABSFX" => FileType::Cab,
        "ARJ" | "ARJSFX" => FileType::Arj,
        "LHA_LZH" => FileType::Lha,
        "MAIL" | "MAILHTML" => FileType::Mail,
        "TNEF" => FileType::Tnef,
        "HTML" | "HTML_UTF16" => FileType::Html,
        "MSOLE2" => FileType::Ole2,
        "PDF" => FileType::Pdf,
        "RTF" => FileType::Rtf,
        "SWF" => FileType::Flash,
        "MSEXE" => FileType::Pe,
        "ELF" => FileType::Elf,
        "MACHO" | "MACHO_UNIBIN" => FileType::MachO,
        "CPIO_OLD" | "CPIO_ODC" | "CPIO_NEWC" | "CPIO_CRC" => FileType::Cpio,
        "MSCHM" => FileType::Chm,
        "ISO9660" | "UDF" => FileType::Iso,
        "MSSZDD" => FileType::Szdd,
        "ONENOTE" => FileType::OneNote,
        "JAVA" => FileType::JavaClass,
        "GRAPHICS" | "GIF" | "PNG" | "JPEG" | "TIFF" => FileType::Image,
        "TEXT_ASCII" | "TEXT_UTF8" | "TEXT_UTF16LE" | "TEXT_UTF16BE" | "SCRIPT" => FileType::Text,
        "BINARY_DATA" => FileType::Binary,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_read_and_compared() {
        let zip = Container::parse("CL_TYPE_ZIP").expect("a container");
        assert!(zip.admits(Some(FileType::Zip)) && !zip.admits(None));
        let root = Container::parse("CL_TYPE_ANY").expect("the root");
        assert!(root.admits(None) && !root.admits(Some(FileType::Zip)));
        assert!(Container::parse("CL_TYPE_NONE_SUCH").is_err());
    }
}
