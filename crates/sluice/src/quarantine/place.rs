//! The folders of what is kept, as commands and the administrator's page reach them.
//!
//! A folder belongs to the service, and root looks at it: so root becomes the folder's owner before anything in it is looked at.
//! Messages are read one at a time, the oldest first; of a folder only the ids are held.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use edge::quarantine::{Kept, read};
use edge::settings::{Forward, Listener, Target};
use edge::upstream::route::Route;
use rustix::thread::CapabilitySet;

use crate::cli::{Quarantine, Selection};
use crate::config::Config;
use crate::output::Failure;
use crate::process::held::Held;
use crate::process::privileges::{self, owner_on_the_way};

/// Where messages are kept.
pub struct Place {
    /// The configuration that names them.
    pub config: Config,
    folders: Vec<Folder>,
}

/// A quarantine.
struct Folder {
    held: Held,
    /// The path by which it is reached: the way to its own may be closed to its owner.
    way: PathBuf,
}

/// Opens the quarantines; root becomes their owner.
fn enter(paths: &[PathBuf]) -> Result<Vec<Folder>, Failure> {
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let mut all = Vec::new();
    for path in paths {
        let path = std::path::absolute(path)?;
        let held = Held::open(&path).map_err(|error| failed(&path, error))?;
        all.push((held, owner_on_the_way(&path)));
    }
    let mut owners = all.iter().map(|(_, owner)| owner);
    let first = owners.next().cloned().flatten();
    if privileges::is_root() {
        if owners.any(|owner| *owner != first) {
            return Err("the quarantines belong to different users: name one with --folder".into());
        }
        first.iter().try_for_each(|owner| owner.assume(CapabilitySet::empty()))?;
    }
    Ok(all.into_iter().map(|(held, _)| Folder { way: held.way(), held }).collect())
}

impl Place {
    /// Opens the folders that a command names, or those of its configuration.
    ///
    /// # Errors
    /// When there is none, or one cannot be opened.
    pub fn find(args: &Quarantine) -> Result<Place, Failure> {
        if let Some(folder) = &args.folder {
            return Ok(Place { config: Config::default(), folders: enter(std::slice::from_ref(folder))? });
        }
        let place = Place::of(Config::read(&args.config)?)?;
        match place.folders.is_empty() {
            true => Err(format!("{}: no listener has a quarantine", args.config.display()).into()),
            false => Ok(place),
        }
    }

    /// Opens the folders of a configuration, which may have none.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn of(config: Config) -> Result<Place, Failure> {
        let mut folders: Vec<PathBuf> = config.quarantines().map(Path::to_path_buf).collect();
        folders.sort();
        folders.dedup();
        let folders = enter(&folders)?;
        Ok(Place { config, folders })
    }

    /// How many messages there are, as far as the folders can be read.
    pub fn count(&self) -> usize {
        self.folders.iter().filter_map(|folder| Kept::ids(&folder.way).ok()).map(|ids| ids.len()).sum()
    }

    /// The messages that are meant, the oldest first; each is read when its turn comes.
    pub fn meant<'p>(&'p self, selection: &'p Selection) -> Result<impl Iterator<Item = Kept> + use<'p>, Failure> {
        let now = SystemTime::now();
        let candidates = self.candidates(selection)?.into_iter();
        let opened = candidates.filter_map(|(id, folder)| self.open(folder, &id));
        Ok(opened.filter(move |kept| selection.means(kept, now)))
    }

    /// The messages that may be meant, as far as their ids say: these begin with the time, so theirs is the order of age.
    fn candidates(&self, selection: &Selection) -> Result<Vec<(String, &Folder)>, Failure> {
        let mut all = Vec::new();
        for folder in &self.folders {
            let ids = match &selection.ids[..] {
                [] => Kept::ids(&folder.way).map_err(|error| format!("{}: {error}", folder.held.path().display()))?,
                named => named.iter().filter(|id| Kept::is_there(&folder.way, id)).cloned().collect(),
            };
            all.extend(ids.into_iter().map(|id| (id, folder)));
        }
        fn age<'a>((id, _): &'a (String, &Folder)) -> (usize, &'a str) {
            (id.len(), id)
        }
        all.sort_by(|one, other| age(one).cmp(&age(other)));
        for id in &selection.ids {
            if all.binary_search_by(|candidate| age(candidate).cmp(&(id.len(), id))).is_err() {
                eprintln!("sluice: {id}: not in the quarantine");
            }
        }
        all.dedup_by(|one, other| one.0 == other.0 && std::ptr::eq(one.1, other.1));
        Ok(all)
    }

    fn open(&self, folder: &Folder, id: &str) -> Option<Kept> {
        match Kept::open(&folder.way, id) {
            Ok(kept) => Some(kept),
            // It went while we looked.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !Kept::is_there(&folder.way, id) => None,
            Err(error) => {
                eprintln!("sluice: {}: {error}", folder.held.path().join(format!("{id}.json")).display());
                None
            }
        }
    }

    /// The message with an id.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    pub fn one(&self, id: &str) -> Result<Kept, Failure> {
        let mut wrong = io::Error::from(io::ErrorKind::NotFound);
        for folder in &self.folders {
            match Kept::open(&folder.way, id) {
                Ok(kept) => return Ok(kept),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => wrong = error,
            }
        }
        Err(format!("{id}: {wrong}").into())
    }

    /// A path in a quarantine, as people know it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        let below = self.folders.iter().find_map(|folder| Some((folder, path.strip_prefix(&folder.way).ok()?)));
        below.map_or_else(|| path.to_path_buf(), |(folder, below)| folder.held.path().join(below))
    }

    /// The way to where a message would have gone, as its listener goes it, or to `to`. What stands beside a message may be
    /// written by whoever has taken over the service, so that is a next hop of the configuration.
    pub fn route(&self, kept: &Kept, to: Option<&Forward>) -> Result<Route, Failure> {
        let forward: Forward = match to {
            Some(forward) => forward.clone(),
            None => kept.facts.hop.parse()?,
        };
        if !forward.takes_mail() {
            return Err(format!("{forward} takes no mail").into());
        }
        let target =
            self.config.listeners.iter().find(|listener| listener.hop.forward == forward).map(Listener::target);
        if target.is_none() && to.is_none() {
            return Err(format!("{forward} is not a next hop of the configuration: give it with --hop").into());
        }
        let route = Route::new(&target.unwrap_or_else(|| Target::new(forward)), &self.config.tls)?;
        Ok(match &kept.facts.account {
            Some(account) if route.forward == Forward::Store => route.for_account(account),
            _ if kept.facts.inside => route.for_insider(),
            _ => route,
        })
    }
}

/// The first lines of a mail, up to the empty one.
///
/// # Errors
/// When it cannot be read.
pub fn header(kept: &Kept) -> io::Result<Vec<String>> {
    use std::io::Read as _;
    let mut start = Vec::new();
    read(&kept.mail())?.take(16 << 10).read_to_end(&mut start)?;
    let text = String::from_utf8_lossy(&start).into_owned();
    Ok(text.lines().take_while(|line| !line.is_empty()).map(String::from).collect())
}

/// Everything that is known of a message, and where it is.
///
/// # Errors
/// None: its facts are an object.
pub fn object(place: &Place, kept: &Kept) -> serde_json::Result<serde_json::Value> {
    let mut object = serde_json::to_value(&kept.facts)?;
    object["state"] = kept.facts.state().name().into();
    object["bytes"] = kept.bytes.into();
    object["mail"] = place.shown(&kept.mail()).display().to_string().into();
    Ok(object)
}
