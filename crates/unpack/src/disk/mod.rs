//! Images of discs and disks, and the file systems in them.

pub(crate) mod cramfs;
pub(crate) mod dmg;
pub(crate) mod hfs;
pub(crate) mod image;
pub(crate) mod iso;
pub(crate) mod jffs2;
pub(crate) mod kept;
pub(crate) mod paths;
pub(crate) mod squashfs;
mod whole;
pub(crate) mod wim;
