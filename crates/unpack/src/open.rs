//! Table of readers.
//!
//! An object is read by every reader that its claim calls for: the reader of its type by content, of its type by the
//! magic of a database, of a second type that its head shows, of the type that its container declares or its name
//! implies, and by searches for content that its own reader skips. [`ROWS`] has the conditions, in the order in which
//! readers are added to an object; a new format is its module, a row, and its place in `recognise`.

use ::stream::FileType::{self, *};
use ::stream::{Limits, Stage};

use crate::archive::{
    alz, appledouble, ar, arc, arj, cab, cpio, dar, lha, macbinary, mbox, rar, rpm, sevenz, tar, xar, zip,
};
use crate::disk::{cramfs, dmg, hfs, image, iso, jffs2, squashfs, wim};
use crate::document::{
    chm, cms, download, html, lines, lnk, makeself, ole2, onenote, openpgp, pdf, relationships, rtf, runs, script,
    shar, tnef, utf16,
};
use crate::frame::archive::Archive;
use crate::frame::compressed::Compressed;
use crate::frame::doubt::{ARC_NAMES, DISC_NAMES, Doubt, NO_NAMES, Names, PDF_NAMES, RAR_NAMES, ZIP_NAMES};
use crate::frame::password::Passwords;
use crate::frame::reader::Reading;
use crate::program::{autoit, executable, installshield, nsis, packed, pyinstaller, sis};
use crate::recognise::head::recognise_second;
use crate::recognise::stowaway::Stowaway;
use crate::recognise::{carried, sealed, unopened};
use crate::stream::{
    activemime, brotli, bzip2, gzip, lz4, lzip, lzma_alone, lzop, lzw, snappy, swf, szdd, xz, zisofs, zlib, zstd,
};

/// Facts about an object before it is read.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// Its type by its content ([`recognise`](crate::recognise)).
    pub content: FileType,
    /// Its type by the magic of a database; the same where that says nothing else.
    pub magic: FileType,
    /// Its name.
    pub name: Option<&'a str>,
    /// The media type that its container declares.
    pub media_type: Option<&'a str>,
    /// Whether it follows an archive, or lies between its members ([`Kind::Rest`](stream::Kind::Rest)): then more
    /// archives may follow each other.
    pub is_rest: bool,
    /// The first bytes of the object, as many as [`head_bytes`](crate::head_bytes) needs.
    pub head: &'a [u8],
    /// Whether the object itself is one by a guess ([`Object::is_guess`](stream::Object::is_guess)).
    pub is_guess: bool,
}

impl Claim<'_> {
    /// Makes the claim of an object with a known type only.
    pub const fn of(content: FileType) -> Claim<'static> {
        Claim { content, magic: content, name: None, media_type: None, is_rest: false, head: &[], is_guess: false }
    }

    const fn doubt(&self) -> Doubt {
        if self.is_guess { Doubt::UntilContent } else { Doubt::None }
    }
}

/// A reader to be set on an object.
pub struct Opener {
    /// Its name: of its type, or of its row.
    pub name: &'static str,
    /// Why it is due.
    pub due: Due,
    /// Whether it makes more out of its input than it is given.
    pub expands: bool,
    /// When its findings count.
    pub doubt: Doubt,
    /// The reader, at its beginning.
    pub stage: Box<dyn Stage>,
}

/// Why a reader is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// By the type that the magic of a database tells.
    Magic,
    /// By all else that is known of the object.
    Claim,
}

/// A row of the table.
pub struct Row {
    /// Name of the reader; `None` for the readers of types, which have the names of their types.
    pub name: &'static str,
    /// When it is due.
    pub when: When,
    /// Whether it makes more out of its input than it is given.
    pub expands: bool,
    doubt: Doubt,
    /// The names of objects in which it is no guess.
    sure: Names,
    make: fn(&Limits, &Passwords) -> Box<dyn Stage>,
}

/// When a reader is due.
pub enum When {
    /// The object is a mail that begins so.
    Mail(&'static [u8]),
    /// The object's container declares this.
    Declared(&'static str),
    /// The object is of this type.
    Type(FileType),
    /// The object is of a type that has no reader of its own, but for these.
    OtherTypeThan(&'static [FileType]),
    /// The object is of one of these types by its content, beside the reader of that type.
    Beside(&'static [FileType]),
    /// The object is of any type by its content but for these, beside the reader of that type.
    BesideAllBut(&'static [FileType]),
    /// The object is of one of these types by its content, and follows no archive, beside the reader of that type.
    Whole(&'static [FileType]),
    /// Programs show the object as a page ([`is_page`]), and it is of any type by its content but for these.
    PageBut(&'static [FileType]),
    /// The object's name (without one, an empty one) and its type by content tell so.
    Named(fn(&str, FileType) -> bool),
}

const STREAMS: &[FileType] = &[Gzip, ActiveMime, FlashPacked, Bzip2, Xz, Lzip, Zstd, Szdd, Lz4, Snappy, Lzop, Zisofs];
/// Streams that begin with few bytes of their own, or none: other data may look like one up to where it is not valid.
const WEAK: &[FileType] = &[Lzma, Zlib, Compress];
/// Containers that cut their content into sectors, or pack it.
const SECTORED: &[FileType] = &[Ole2, Chm];
const DOCUMENTS: &[FileType] = &[Pdf, Rtf, Tnef, OneNote, Cms, Html, Xml, FileType::Text, Lnk];
/// Images with little certain magic: they are also searched like files of no type.
const IMAGES: &[FileType] = &[Squashfs, Cramfs, Jffs2, Wim, VirtualDisk];
const TEXTS: &[FileType] = &[FileType::Text, Html, Xml];
const SCRIPTS: &[FileType] = &[FileType::Text, Html, Xml, Binary, Pdf];

/// The table: declared types, the readers of types, then the readers beside them.
pub const ROWS: &[Row] = &[
    of(When::Mail(mbox::MARK), "mbox", |_, _| Box::new(Reading::new(mbox::Mbox::new()))).verbatim(),
    declared(brotli::MEDIA_TYPE, |limits, _| Box::new(Compressed::new(brotli::Brotli::new(limits)))),
    declared(pdf::OBJECTS, |limits, _| Box::new(Reading::new(pdf::Pdf::objects(limits)))),
    declared(nsis::SOLID, |limits, _| Box::new(Archive::new(nsis::Solid::new(limits), limits))),
    declared(autoit::SCRIPT, |_, _| Box::new(Reading::new(autoit::AutoIt::new()))),
    declared(openpgp::COMPRESSED, |limits, _| Box::new(Compressed::new(openpgp::compressed::Packed::new(limits)))),
    declared(rtf::OLE1, |limits, _| Box::new(Reading::new(rtf::ole1::Ole1::new(limits)))),
    typed(Gzip, |limits, _| Box::new(Compressed::new(gzip::Gzip::new(limits)))),
    typed(Zlib, |_, _| Box::new(Compressed::new(zlib::Zlib::new()))),
    typed(Bzip2, |limits, _| Box::new(Compressed::new(bzip2::Bzip2::new(limits)))),
    typed(Xz, |limits, _| Box::new(Compressed::new(xz::Xz::new(limits)))),
    typed(Lzma, |limits, _| Box::new(Compressed::new(lzma_alone::LzmaAlone::new(limits)))),
    typed(Lzip, |limits, _| Box::new(Compressed::new(lzip::Lzip::new(limits)))),
    typed(Compress, |_, _| Box::new(Compressed::new(lzw::Compress::new()))),
    typed(Zstd, |limits, _| Box::new(Compressed::new(zstd::Zstd::new(limits)))),
    typed(Lz4, |_, _| Box::new(Compressed::new(lz4::Lz4::new()))),
    typed(Snappy, |_, _| Box::new(Compressed::new(snappy::Snappy::new()))),
    typed(Lzop, |limits, _| Box::new(Compressed::new(lzop::Lzop::new(limits)))),
    typed(Zisofs, |limits, _| Box::new(Compressed::new(zisofs::Zisofs::new(limits)))),
    typed(Szdd, |_, _| Box::new(Compressed::new(szdd::Szdd::new()))),
    typed(ActiveMime, |_, _| Box::new(Compressed::new(activemime::ActiveMime::new()))),
    typed(FlashPacked, |limits, _| Box::new(Compressed::new(swf::Swf::new(limits)))),
    typed(Tar, |limits, _| Box::new(tar::Tar::new(limits))),
    typed(SevenZip, |limits, passwords| Box::new(Reading::new(sevenz::SevenZip::new(limits, passwords)))),
    typed(Ar, |limits, _| Box::new(Archive::new(ar::Ar::new(limits), limits))),
    typed(Arc, |limits, _| Box::new(Archive::new(arc::Arc::new(limits), limits))),
    typed(Arj, |limits, _| Box::new(Archive::new(arj::Arj::new(limits), limits))),
    typed(Cab, |limits, _| Box::new(Archive::new(cab::Cab::new(limits), limits))),
    typed(Cpio, |limits, _| Box::new(Archive::new(cpio::Cpio::new(limits), limits))),
    typed(Rar, |limits, passwords| Box::new(Archive::new(rar::Rar::new(limits, passwords), limits))),
    typed(Lha, |limits, _| Box::new(Archive::new(lha::Lha::new(limits), limits))),
    typed(Rpm, |limits, _| Box::new(Archive::new(rpm::Rpm::new(), limits))),
    typed(Xar, |limits, _| Box::new(Archive::new(xar::Xar::new(limits), limits))),
    typed(Alz, |limits, _| Box::new(Archive::new(alz::Alz::new(limits), limits))),
    typed(Nsis, |limits, _| Box::new(Archive::new(nsis::Nsis::new(limits), limits))),
    typed(Sis, |limits, _| Box::new(Archive::new(sis::Sis::new(limits), limits))),
    typed(InstallShield, |limits, _| Box::new(Archive::new(installshield::InstallShield::new(limits), limits))),
    typed(InstallShieldCab, |limits, _| Box::new(Archive::new(installshield::Cabinet::new(), limits))),
    typed(AppleDouble, |limits, _| Box::new(Archive::new(appledouble::AppleDouble::new(limits), limits))),
    typed(MacBinary, |limits, _| Box::new(Archive::new(macbinary::MacBinary::new(limits), limits))),
    typed(Chm, |limits, _| Box::new(Reading::new(chm::Chm::new(limits)))),
    typed(Lnk, |_, _| Box::new(Reading::new(lnk::Lnk::new()))),
    typed(Hfs, |limits, _| Box::new(Reading::new(hfs::Hfs::new(limits)))),
    typed(VirtualDisk, |limits, _| Box::new(Reading::new(image::DiskImage::new(limits)))),
    typed(Disk, |limits, _| Box::new(Reading::new(image::DiskImage::new(limits)))),
    typed(Squashfs, |limits, _| Box::new(Reading::new(squashfs::Squashfs::new(limits)))),
    typed(Cramfs, |limits, _| Box::new(Reading::new(cramfs::Cramfs::new(limits)))),
    typed(Jffs2, |limits, _| Box::new(Reading::new(jffs2::Jffs2::new(limits)))),
    typed(Wim, |limits, _| Box::new(Reading::new(wim::Wim::new(limits)))),
    typed(Iso, |limits, _| Box::new(Reading::new(iso::Iso::new(limits)))),
    typed(Zip, |limits, passwords| Box::new(zip::Zip::new(limits, passwords))),
    typed(Ole2, |limits, passwords| Box::new(Reading::new(ole2::Ole2::new(limits, passwords)))),
    typed(Pdf, |limits, passwords| Box::new(Reading::new(pdf::Pdf::new(limits, passwords)))),
    typed(Pe, |limits, _| Box::new(Reading::new(executable::Executable::new(limits)))),
    typed(OneNote, |_, _| Box::new(Reading::new(onenote::OneNote::new()))),
    typed(Cms, |_, _| Box::new(Reading::new(cms::Cms::new()))),
    typed(Html, |_, _| Box::new(Reading::new(html::Html::new()))),
    typed(Xml, |_, _| Box::new(Reading::new(html::Html::new()))),
    typed(FileType::Text, |_, _| Box::new(Reading::new(html::Html::new()))),
    typed(FileType::Rtf, |_, _| Box::new(Reading::new(rtf::Rtf::new()))),
    typed(Tnef, |limits, _| Box::new(Reading::new(tnef::Tnef::new(limits)))),
    // Pages whose first bytes are those of a picture, say.
    of(When::PageBut(&[Empty, Mail, Html, Xml, FileType::Text]), "page", |_, _| {
        Box::new(Reading::new(html::Html::new()))
    }),
    // Zip archives in content without a reader, or after it.
    of(When::OtherTypeThan(&[Empty, Mail]), "", searching).guess(ZIP_NAMES),
    // Zip archives in parts that the reader of the type skips: between the objects of a document, in the header of a
    // compressed stream, in its compressed bytes, in a cabinet's reserved areas.
    of(When::Beside(WEAK), "search", searching).guess(ZIP_NAMES),
    of(When::Beside(STREAMS), "search", searching).in_packed(ZIP_NAMES),
    of(When::Beside(SECTORED), "search", searching).in_packed(ZIP_NAMES),
    of(When::Beside(DOCUMENTS), "search", searching).guess(ZIP_NAMES),
    of(When::Beside(&[Cab, Arc, Arj, Rar, SevenZip, Lha, Alz, Xar]), "search", searching).in_packed(ZIP_NAMES),
    of(When::Beside(&[Pe]), "search", searching).guess(ZIP_NAMES),
    of(When::Beside(IMAGES), "search", searching).guess(ZIP_NAMES),
    // Brotli has no magic, and disk images of macOS have theirs at the end.
    of(When::Named(dmg::may_be), "named", |limits, _| Box::new(Reading::new(dmg::Dmg::new(limits)))),
    of(When::Named(brotli::may_be), "named", |limits, _| Box::new(Compressed::new(brotli::Brotli::new(limits)))),
    // Parts of a document with statements about the document.
    of(When::Named(relationships::may_be), "relationships", |_, _| {
        Box::new(Reading::new(relationships::Relationships::new()))
    })
    .verbatim(),
    // Messages of OpenPGP have no magic.
    of(When::BesideAllBut(&[Empty, Mail]), "openpgp", |_, _| Box::new(Reading::new(openpgp::OpenPgp::new())))
        .verbatim(),
    // Scripts with archives in them, whose beginning may be binary; bundles of Python; slices of dar.
    of(When::Beside(SCRIPTS), "shar", |_, _| Box::new(Reading::new(shar::Shar::new()))).verbatim(),
    of(When::Beside(SCRIPTS), "makeself", |_, _| Box::new(Reading::new(makeself::Makeself::new()))).verbatim(),
    of(When::Beside(&[Pe, Elf, MachO]), "pyinstaller", |_, _| Box::new(Reading::new(pyinstaller::reader()))),
    of(When::Beside(&[Binary]), "dar", |_, _| Box::new(Reading::new(dar::reader()))),
    // Disc images may begin with anything.
    of(When::BesideAllBut(&[Empty, Mail, Iso]), "image", |limits, _| Box::new(Reading::new(iso::Iso::new(limits))))
        .guess(DISC_NAMES),
    // Other archives than zip where they are carried: in executables, and behind pictures; RAR and ARJ archives in anything
    // that has no members of its own.
    of(When::Beside(&[Pe, Elf, MachO, Image]), "stowaway", |limits, passwords| {
        Box::new(Stowaway::new(reader, limits, passwords))
    }),
    of(When::Beside(SECTORED), "stowaway", anywhere).in_packed(RAR_NAMES),
    of(When::Beside(DOCUMENTS), "stowaway", anywhere),
    of(When::Whole(WEAK), "stowaway", anywhere),
    of(When::Whole(STREAMS), "stowaway", anywhere).in_packed(RAR_NAMES),
    of(When::Beside(&[Binary, Flash, JavaClass]), "stowaway", anywhere),
    of(When::Beside(IMAGES), "stowaway", anywhere),
    // Archives and compressed streams that 7-Zip opens after any other data, if the file itself is not one.
    of(When::Beside(SECTORED), "archive", others).in_packed(NO_NAMES),
    of(When::Beside(DOCUMENTS), "archive", others),
    of(When::Beside(&[Binary, Flash, JavaClass]), "archive", others),
    of(When::Whole(WEAK), "archive", others),
    of(When::Beside(IMAGES), "archive", others),
    of(When::Beside(&[Elf, MachO, Image]), "archive", |limits, passwords| {
        Box::new(Stowaway::behind_picture(reader, limits, passwords))
    }),
    // Formats that are known and not opened.
    of(When::Beside(&[Binary]), "unopened", |_, _| Box::new(Reading::new(unopened::reader()))).verbatim(),
    // Encrypted files of other programs than archivers.
    of(When::Beside(&[Binary, Disk]), "sealed", |_, _| Box::new(Reading::new(sealed::reader()))).verbatim(),
    of(When::Beside(TEXTS), "sealed", |_, _| Box::new(Reading::new(sealed::reader()))).verbatim(),
    // Executables that may be packed, the compiled scripts that are in them or that a file is; strings of scripts.
    of(When::Beside(&[Pe, Elf, Binary]), "packed", |limits, _| Box::new(Reading::new(packed::Packed::new(limits)))),
    of(When::Beside(TEXTS), "packed", |_, _| Box::new(Reading::new(script::Script::new()))),
    of(When::Beside(&[Html, Xml]), "download", |_, _| Box::new(Reading::new(download::Download::new()))).verbatim(),
    of(When::Beside(TEXTS), "utf-16", |_, _| Box::new(Reading::new(utf16::Utf16::default()))),
    of(When::Beside(&[Binary]), "utf-16", |_, _| Box::new(Reading::new(utf16::Utf16::default()))),
    // Executables as they are, and encoded files in text.
    of(When::Beside(&[Binary, Pe, Elf, MachO, Image]), "carried", |_, _| {
        Box::new(Reading::new(carried::Carried::default()))
    }),
    of(When::Beside(IMAGES), "carried", |_, _| Box::new(Reading::new(carried::Carried::default()))),
    of(When::Whole(WEAK), "carried", |_, _| Box::new(Reading::new(carried::Carried::default()))),
    of(When::Beside(TEXTS), "carried", |_, _| Box::new(Reading::new(runs::Runs::new()))),
    of(When::Beside(TEXTS), "lines", |_, _| Box::new(Reading::new(lines::Lines::new()))),
];

const fn of(when: When, name: &'static str, make: fn(&Limits, &Passwords) -> Box<dyn Stage>) -> Row {
    Row { name, when, expands: true, doubt: Doubt::None, sure: NO_NAMES, make }
}

const fn typed(file_type: FileType, make: fn(&Limits, &Passwords) -> Box<dyn Stage>) -> Row {
    of(When::Type(file_type), "", make)
}

const fn declared(media_type: &'static str, make: fn(&Limits, &Passwords) -> Box<dyn Stage>) -> Row {
    of(When::Declared(media_type), "part", make)
}

fn searching(limits: &Limits, passwords: &Passwords) -> Box<dyn Stage> {
    Box::new(zip::Zip::searching(limits, passwords))
}

fn anywhere(limits: &Limits, passwords: &Passwords) -> Box<dyn Stage> {
    Box::new(Stowaway::anywhere(reader, limits, passwords))
}

fn others(limits: &Limits, passwords: &Passwords) -> Box<dyn Stage> {
    Box::new(Stowaway::others(reader, limits, passwords))
}

impl Row {
    /// The same of a reader that tells no more than it is given.
    const fn verbatim(self) -> Row {
        Row { expands: false, ..self }
    }

    /// The same of a reader that looks for a format in a file of another type, unless that is named so.
    const fn guess(self, sure: Names) -> Row {
        Row { doubt: Doubt::UntilContent, sure, ..self }
    }

    /// The same where the file's own reader opens the bytes that this one looks at.
    const fn in_packed(self, sure: Names) -> Row {
        Row { doubt: Doubt::Always, sure, ..self }
    }

    fn doubt_in(&self, claim: &Claim<'_>) -> Doubt {
        // An object without a name may get any.
        let may_be_named = claim.name.is_none() && self.doubt == Doubt::UntilContent;
        let is_sure = may_be_named || self.sure.include(claim.name, claim.media_type);
        if is_sure { Doubt::None } else { self.doubt }
    }
}

/// Returns the readers of an object, in the order in which they are added to it. Encrypted content is opened with the
/// right one of `passwords`.
pub fn open(claim: &Claim<'_>, limits: &Limits, passwords: &Passwords) -> Vec<Opener> {
    let set = |row: &Row, name, due| Opener {
        name,
        due,
        expands: row.expands,
        doubt: row.doubt_in(claim).max(claim.doubt()),
        stage: (row.make)(limits, passwords),
    };
    let typed = |file_type: FileType, due| {
        let opener = row_of(file_type).map(|row| set(row, file_type.name(), due))?;
        let is_chance =
            file_type == Arc && !ARC_NAMES.include(claim.name, claim.media_type) && !arc::is_plausible(claim.head);
        Some(if is_chance { Opener { doubt: Doubt::Always, ..opener } } else { opener })
    };
    let named = |row: &Row| set(row, row.name, Due::Claim);
    if claim.content == Mail {
        return ROWS.iter().filter(|row| row.is_mail(claim)).map(named).collect();
    }
    let own = match claim.is_rest && Stowaway::reads(claim.content) {
        true => {
            let stage = Box::new(Stowaway::in_a_row(reader, limits, passwords));
            Some(Opener { name: claim.content.name(), due: Due::Claim, expands: true, doubt: claim.doubt(), stage })
        }
        false => typed(claim.content, Due::Claim),
    };
    let magic = (claim.magic != claim.content).then_some(claim.magic).and_then(|magic| typed(magic, Due::Magic));
    let second = recognise_second(claim.head, claim.content)
        .and_then(|second| Some(Opener { doubt: doubt_in_second(claim, second), ..typed(second, Due::Claim)? }));
    magic
        .into_iter()
        .chain(ROWS.iter().filter(|row| row.is_declared(claim)).map(named))
        .chain(own)
        .chain(second)
        .chain(ROWS.iter().filter(|row| row.is_beside(claim)).map(named))
        .collect()
}

/// Doubt in the reader of the second type of an object. The document at the front of a file of members is one of them.
fn doubt_in_second(claim: &Claim<'_>, second: FileType) -> Doubt {
    let is_member = second == Pdf && matches!(claim.content, Zip | Tar | Cpio | Ar | Gzip | SevenZip | Rar | Zstd | Xz);
    match is_member && !PDF_NAMES.include(claim.name, claim.media_type) {
        true => Doubt::Always,
        false => claim.doubt(),
    }
}

/// Whether programs show an object as a page of HTML whatever its first bytes are: by its media type, or by its name.
pub fn is_page(media_type: Option<&str>, name: Option<&str>) -> bool {
    const ENDINGS: [&str; 7] = ["html", "htm", "xhtml", "xht", "shtml", "hta", "svg"];
    let ending = name.and_then(|name| name.rsplit_once('.')).map_or("", |(_, ending)| ending);
    matches!(media_type, Some("text/html" | "application/xhtml+xml" | "image/svg+xml"))
        || ENDINGS.iter().any(|page| ending.eq_ignore_ascii_case(page))
}

/// The reader of a type alone, or `None` where there is nothing to open.
///
/// Types without a reader of their own are searched for zip archives inside of them or behind them.
pub fn reader(file_type: FileType, limits: &Limits, passwords: &Passwords) -> Option<Box<dyn Stage>> {
    row_of(file_type).map(|row| (row.make)(limits, passwords))
}

fn row_of(file_type: FileType) -> Option<&'static Row> {
    ROWS.iter().find(|row| match row.when {
        When::Type(own) => own == file_type,
        When::OtherTypeThan(without) => !without.contains(&file_type),
        _ => false,
    })
}

impl Row {
    fn is_mail(&self, claim: &Claim<'_>) -> bool {
        matches!(self.when, When::Mail(mark) if claim.head.starts_with(mark))
    }

    fn is_declared(&self, claim: &Claim<'_>) -> bool {
        matches!(self.when, When::Declared(media_type) if claim.media_type == Some(media_type))
    }

    fn is_beside(&self, claim: &Claim<'_>) -> bool {
        match self.when {
            When::Beside(types) => types.contains(&claim.content),
            When::BesideAllBut(types) => !types.contains(&claim.content),
            When::Whole(types) => types.contains(&claim.content) && !claim.is_rest,
            When::PageBut(types) => !types.contains(&claim.content) && is_page(claim.media_type, claim.name),
            When::Named(tells) => tells(claim.name.unwrap_or_default(), claim.content),
            _ => false,
        }
    }
}
