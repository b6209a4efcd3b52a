//! The types of content that are told apart. Recognition by content lives in `unpack`.

macro_rules! file_types {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// The type of a stream, by its content and never by its name alone.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum FileType { $($(#[$doc])* $variant,)* }

        impl FileType {
            /// All of them.
            pub const ALL: &[FileType] = &[$(FileType::$variant,)*];

            /// A short lower-case name.
            pub const fn name(self) -> &'static str {
                match self { $(FileType::$variant => $name,)* }
            }
        }
    };
}

file_types! {
    /// No bytes at all.
    Empty "empty",
    /// Nothing known, not text.
    Binary "binary",
    /// Text in an ASCII-compatible or Unicode charset.
    Text "text",
    /// HTML or XHTML.
    Html "html",
    /// XML that is not HTML.
    Xml "xml",
    /// An RFC 5322 message.
    Mail "mail",
    /// A DOS, Windows or EFI executable.
    Pe "pe",
    /// An ELF object.
    Elf "elf",
    /// A Mach-O object, thin or fat.
    MachO "mach-o",
    /// A Java class file.
    JavaClass "java-class",
    /// A Portable Document Format file.
    Pdf "pdf",
    /// Rich Text Format.
    Rtf "rtf",
    /// An OLE2 compound file.
    Ole2 "ole2",
    /// Transport Neutral Encapsulation Format (winmail.dat).
    Tnef "tnef",
    /// A OneNote section.
    OneNote "onenote",
    /// A cryptographic message (S/MIME, PKCS #7).
    Cms "cms",
    /// A Flash film.
    Flash "flash",
    /// A compressed Flash film.
    FlashPacked "flash-packed",
    /// A PNG, JPEG, GIF, BMP, TIFF or WebP image.
    Image "image",
    /// A ZIP archive, OOXML, ODF and JAR among them.
    Zip "zip",
    /// A gzip stream.
    Gzip "gzip",
    /// A zlib stream.
    Zlib "zlib",
    /// A bzip2 stream.
    Bzip2 "bzip2",
    /// An xz stream.
    Xz "xz",
    /// A tar archive.
    Tar "tar",
    /// A 7z archive.
    SevenZip "7z",
    /// A RAR archive, any version.
    Rar "rar",
    /// A Microsoft cabinet.
    Cab "cab",
    /// An ARJ archive.
    Arj "arj",
    /// An archive of System Enhancement Associates' ARC.
    Arc "arc",
    /// An LHA archive.
    Lha "lha",
    /// A Zstandard stream.
    Zstd "zstd",
    /// An LZ4 frame.
    Lz4 "lz4",
    /// A lzip stream.
    Lzip "lzip",
    /// An LZMA stream in the format that `.lzma` files have.
    Lzma "lzma",
    /// A compress (.Z) stream.
    Compress "compress",
    /// MS-DOS's COMPRESS: SZDD or KWAJ.
    Szdd "szdd",
    /// A snappy stream in the framing format.
    Snappy "snappy",
    /// An lzop file.
    Lzop "lzop",
    /// A file of an ISO image that is compressed in it.
    Zisofs "zisofs",
    /// A cpio archive.
    Cpio "cpio",
    /// An ar archive, Debian packages among them.
    Ar "ar",
    /// An RPM package.
    Rpm "rpm",
    /// Compiled HTML help.
    Chm "chm",
    /// A XAR archive, packages of macOS among them.
    Xar "xar",
    /// An ALZ archive.
    Alz "alz",
    /// The archive behind the executable of a Nullsoft installer.
    Nsis "nsis",
    /// Files behind an InstallShield installer.
    InstallShield "installshield",
    /// An InstallShield cabinet.
    InstallShieldCab "installshield-cab",
    /// An installation file of Symbian.
    Sis "sis",
    /// A volume of HFS+ or HFSX.
    Hfs "hfs",
    /// AppleSingle or AppleDouble.
    AppleDouble "appledouble",
    /// A MacBinary file.
    MacBinary "macbinary",
    /// A shell link.
    Lnk "lnk",
    /// An ActiveMime file, which Office puts beside web pages.
    ActiveMime "activemime",
    /// An ISO 9660 or UDF image.
    Iso "iso",
    /// An image of a disk: a volume, a table of partitions, VHD or VHDX.
    Disk "disk",
    /// The disk of a virtual machine: qcow2, VMDK, VDI.
    VirtualDisk "virtual-disk",
    /// An image of squashfs, version 4.
    Squashfs "squashfs",
    /// An image of cramfs.
    Cramfs "cramfs",
    /// An image of JFFS2.
    Jffs2 "jffs2",
    /// An image of Windows: WIM or ESD.
    Wim "wim",
}
