//! Users' preferences for scores: a folder of files, read anew for each mail.
//!
//! A file is called as the user, or as the recipient's address; SpamAssassin's `user_prefs`. Here it is read and not understood:
//! the inspection does that, and says what is wrong with it. A mail for several recipients has the site's scores, unless all of
//! them have the same file. Bounds: `BYTES_MAX` of a file, and `RECIPIENTS_MAX` recipients, beyond which the site's count.

use std::io;
use std::path::Path;

use flow::Preferences;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use crate::settings::Spam;

/// One byte more than the bound, so that a longer file is noticed.
const BYTES_MAX: u64 = (64 << 10) + 1;

/// Recipients of a mail that are looked at.
const RECIPIENTS_MAX: usize = 20;

/// Preferences of these recipients, or this user; none without a folder or a file in it.
pub async fn find(spam: Option<&Spam>, names: &[&str]) -> Option<Box<Preferences>> {
    let folder = spam?.preferences.as_deref()?;
    let (first, others) = names.split_first().filter(|_| names.len() <= RECIPIENTS_MAX)?;
    let found = of(folder, first).await?;
    for other in others {
        if of(folder, other).await?.name != found.name {
            return None;
        }
    }
    Some(Box::new(found))
}

/// The file of one user: by the whole address, or else by what stands before the `@`.
async fn of(folder: &Path, name: &str) -> Option<Preferences> {
    let name = name.to_ascii_lowercase();
    let local = name.rsplit_once('@').map(|(local, _)| local);
    for name in [Some(&*name), local].into_iter().flatten().filter(|name| is_file_name(name)) {
        let path = folder.join(name);
        match read(&path).await {
            Ok(text) => return Some(Preferences { name: path.to_string_lossy().into(), text: text.into() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(file = %path.display(), %error, "preferences of a user cannot be read"),
        }
    }
    None
}

/// Whether a name is a plain file name: it cannot lead out of the folder, and is not hidden.
fn is_file_name(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 255;
    let is_fit = |byte: u8| !byte.is_ascii_control() && byte != b'/';
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_fit)
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path).await?;
    if !file.metadata().await?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).await?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SpamSettings;

    #[test]
    fn a_file_is_found_by_address_or_name_and_nothing_outside_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::create_dir_all(own.join("sub")).unwrap();
        for (name, text) in [("own/joe@a.example", "address"), ("own/joe", "name"), ("own/.hidden", "x"), ("out", "x")]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let settings: SpamSettings = toml::from_str(&format!("preferences = '{}'", own.display())).unwrap();
        let spam = settings.under([None, None]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = |names: &[&str]| {
            let found = runtime.block_on(find(spam.as_ref(), names));
            found.map(|found| String::from_utf8(found.text.into()).unwrap())
        };
        for (names, wanted) in [
            (&["Joe@A.example"][..], Some("address")),
            (&["joe@b.example"], Some("name")),
            (&["joe"], Some("name")),
            (&["joe@b.example", "joe@c.example"], Some("name")),
            (&["joe@a.example", "joe@b.example"], None),
            (&["joe", "ann"], None),
            (&["ann"], None),
            (&[".hidden"], None),
            (&["../out"], None),
            (&["sub"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(found(names).as_deref(), wanted, "{names:?}");
        }
        assert_eq!(runtime.block_on(find(None, &["joe"])), None);
    }
}
