//! Zones: names below which data sets are asked.
//!
//! A zone is as many data sets as are configured for its name, in that order. The longest zone that a name is in answers
//! for it, alone. A combined data set is asked below its longest subzone that the name is in.

pub mod above;
pub mod asked;
pub mod dataset;
pub mod generic;
mod ids;
pub mod ip4;
pub mod ip6;
mod level;
pub mod loader;
pub mod names;
pub mod reader;
pub mod value;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use asked::{Asked, is_mapped};
use dataset::{Access, Body, Dataset, Kind, Sink};
use proto::dns::{Name, Soa, kind};
use value::{Key, ValueId};

/// A zone as it is configured: `NAME:TYPE:FILE[,FILE]`, as for rbldnsd. The name is left out for an `acl` that counts for
/// all zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The zone, or none for all of them.
    pub zone: Option<Name>,
    /// Kind of data set.
    pub kind: Kind,
    /// Its files.
    pub files: Vec<String>,
}

impl core::str::FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        let mut parts = text.splitn(3, ':');
        let (Some(zone), Some(kind_name), Some(files)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("{text:?} is no zone: NAME:TYPE:FILE[,FILE]"));
        };
        let kind = Kind::from_name(kind_name.as_bytes())
            .ok_or_else(|| format!("{text:?}: there is no type {kind_name:?} of data set"))?;
        let zone = match zone {
            "" if kind == Kind::Acl => None,
            "" => return Err(format!("{text:?}: the zone has no name")),
            name => Some(name.parse::<Name>().map_err(|error| format!("{text:?}: {error}"))?),
        };
        let files: Vec<String> = files.split(',').filter(|file| !file.is_empty()).map(str::to_owned).collect();
        if files.is_empty() {
            return Err(format!("{text:?}: the zone has no file"));
        }
        Ok(Spec { zone, kind, files })
    }
}

/// All zones that are served.
#[derive(Debug, Default)]
pub struct Zones {
    zones: Vec<Zone>,
    by_name: HashMap<Vec<u8>, usize, BuildHasherDefault<Fnv>>,
    labels_max: usize,
    everywhere: Option<Arc<Dataset>>,
}

/// FNV-1a. The names in the table come from the operator, so collisions cannot be forced; every query is looked up.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A zone.
#[derive(Debug)]
pub struct Zone {
    /// Its name, as it was configured.
    pub name: Name,
    /// Its data sets, in order.
    pub datasets: Vec<Arc<Dataset>>,
    /// Access lists of clients.
    pub acl: Option<Arc<Dataset>>,
    /// Where its authority starts, and for how long that is known.
    pub soa: Option<(u32, Soa)>,
    /// Its name servers, and for how long they are known.
    pub servers: Option<(u32, Vec<Name>)>,
    /// The addresses of those name servers that lie in zones of ours.
    pub glue: Vec<Glue>,
    /// Seconds since 1970 until which its data counts.
    pub expires: Option<u64>,
    /// Whether all of its data sets could be read.
    pub is_loaded: bool,
}

/// The address of a name server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glue {
    /// Name of the server.
    pub server: Name,
    /// The time to live, in seconds.
    pub ttl: u32,
    /// Where it is.
    pub address: [u8; 4],
}

impl Zones {
    /// Puts zones together. A data set that could not be read is `None`: its zone answers that it cannot.
    pub fn new(parts: Vec<(Option<Name>, Option<Arc<Dataset>>)>) -> Zones {
        let mut zones = Zones::default();
        for (name, dataset) in parts {
            match name {
                Some(name) => zones.add(name, dataset),
                None => zones.everywhere = zones.everywhere.take().or(dataset),
            }
        }
        for index in 0..zones.zones.len() {
            zones.zones[index].glue = zones.glue_of(index);
        }
        zones
    }

    fn add(&mut self, name: Name, dataset: Option<Arc<Dataset>>) {
        let key = name.to_lowercase().as_wire().to_vec();
        self.labels_max = self.labels_max.max(name.labels().count());
        let index = *self.by_name.entry(key).or_insert_with(|| {
            self.zones.push(Zone::new(name));
            self.zones.len() - 1
        });
        let zone = &mut self.zones[index];
        match dataset {
            None => zone.is_loaded = false,
            Some(dataset) => zone.add(dataset),
        }
    }

    fn glue_of(&self, index: usize) -> Vec<Glue> {
        // All of them live as long as the shortest, as rbldnsd has it.
        let (mut glue, mut ttl_min): (Vec<Glue>, u32) = (Vec::new(), u32::MAX);
        let servers = self.zones[index].servers.iter().flat_map(|(_, servers)| servers);
        for server in servers {
            let wire = server.to_lowercase().as_wire().to_vec();
            let Some((zone, below)) = self.find(&wire) else { continue };
            let mut addresses = Addresses::default();
            zone.find(&Asked::new(below), &mut addresses);
            for (ttl, address) in addresses.found {
                ttl_min = ttl_min.min(ttl);
                let each = Glue { server: server.clone(), ttl, address };
                if !glue.iter().any(|glue| glue.server == each.server && glue.address == each.address) {
                    glue.push(each);
                }
            }
        }
        glue.iter_mut().for_each(|glue| glue.ttl = ttl_min);
        glue
    }

    /// Finds the longest zone of a name (in wire form, in lower case). Returns it with the labels below it.
    pub fn find<'n>(&self, name: &'n [u8]) -> Option<(&Zone, &'n [u8])> {
        let (index, below) = self.find_index(name)?;
        Some((&self.zones[index], below))
    }

    fn find_index<'n>(&self, name: &'n [u8]) -> Option<(usize, &'n [u8])> {
        let mut starts = [0_u8; 128];
        let (mut count, mut at) = (0, 0);
        while let Some(&len) = name.get(at).filter(|&&len| len > 0) {
            starts[count] = u8::try_from(at).ok()?;
            count += 1;
            at += usize::from(len) + 1;
        }
        let first = count.saturating_sub(self.labels_max);
        starts[first..count].iter().find_map(|&start| {
            let (below, zone) = name.split_at(usize::from(start));
            self.by_name.get(zone).map(|&index| (index, below))
        })
    }

    /// All zones.
    pub fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Access of a client to a zone. The narrower of both lists counts, and among equals that for all zones.
    pub fn access<'a>(&'a self, zone: &'a Zone, client: core::net::IpAddr) -> Option<(Access, &'a Dataset)> {
        let lists = [self.everywhere.as_deref(), zone.acl.as_deref()];
        let found = lists.into_iter().flatten().filter_map(|list| Some((list.access(client)?, list)));
        found.min_by_key(|(access, _)| match access {
            Access::Ignore => 0,
            Access::Refuse => 1,
            Access::Empty => 2,
            Access::Listed(_) => 3,
            Access::Pass => 4,
        })
    }
}

impl Zone {
    fn new(name: Name) -> Zone {
        Zone {
            name,
            datasets: Vec::new(),
            acl: None,
            soa: None,
            servers: None,
            glue: Vec::new(),
            expires: None,
            is_loaded: true,
        }
    }

    fn add(&mut self, dataset: Arc<Dataset>) {
        if let Some(expires) = dataset.head.expires {
            self.expires = Some(self.expires.map_or(expires, |other| other.min(expires)));
        }
        if matches!(dataset.body, Body::Acl { .. }) {
            self.acl.get_or_insert(dataset);
            return;
        }
        if let (None, Some(line)) = (&self.soa, &dataset.head.soa) {
            let mut soa = line.soa.clone();
            if soa.serial == 0 {
                // Seconds since 1970 fit until 2106, and serial numbers wrap anyway.
                soa.serial = (dataset.changed & 0xffff_ffff) as u32;
            }
            self.soa = Some((line.ttl, soa));
        }
        if let (None, Some(line)) = (&self.servers, &dataset.head.servers)
            && !line.servers.is_empty()
        {
            self.servers = Some((line.ttl, line.servers.clone()));
        }
        self.datasets.push(dataset);
    }

    /// Whether it can be asked at `now`, in seconds since 1970.
    pub fn is_served(&self, now: u64) -> bool {
        self.is_loaded && !self.datasets.is_empty() && self.expires.is_none_or(|expires| now <= expires)
    }

    /// Tells `sink` all about a name. Returns whether the name exists.
    pub fn find(&self, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        let mut found = asked.name.is_empty();
        let plain = self.datasets.iter().filter(|dataset| !matches!(dataset.body, Body::Combined(_)));
        let direct = narrowed(asked, plain.clone().any(|dataset| dataset.families().0));
        for dataset in &self.datasets {
            found |= match &dataset.body {
                Body::Combined(sections) => find_in_sections(sections, asked, sink),
                _ => dataset.find(&direct, sink),
            };
        }
        found
    }

    /// Whether a name spells an address of a family that data sets there have, or, for names, anything.
    pub fn is_listable(&self, asked: &Asked<'_>) -> bool {
        self.each_dataset(asked, |dataset, asked| {
            let (ip4, ip6) = dataset.families();
            let names = matches!(dataset.body, Body::Names(_)) && !asked.name.is_empty();
            (ip4 && asked.ip4.is_some()) || (ip6 && asked.ip6.is_some()) || names
        })
    }

    /// Whether a name has records of a `generic` data set, or is that of a subzone.
    pub fn is_fixed(&self, asked: &Asked<'_>) -> bool {
        let subzone = self.datasets.iter().any(|dataset| match &dataset.body {
            Body::Combined(sections) => subzone(sections, asked.name).is_some_and(|(_, rest)| rest.is_empty()),
            _ => false,
        });
        subzone
            || asked.name.is_empty()
            || self.each_dataset(asked, |dataset, asked| match &dataset.body {
                Body::Generic(table) => !table.find(asked.name).is_empty(),
                _ => false,
            })
    }

    /// Whether names below a name exist that are listed or have records.
    pub fn is_above(&self, asked: &Asked<'_>) -> bool {
        self.is_above_subzone(asked.name) || self.each_dataset(asked, Dataset::is_above)
    }

    /// The same, of names that exist for every client ([`Zone::is_fixed`]).
    pub fn is_above_fixed(&self, asked: &Asked<'_>) -> bool {
        let is_above = |dataset: &Dataset, asked: &Asked<'_>| match &dataset.body {
            Body::Generic(table) => table.is_above(asked.name),
            _ => false,
        };
        self.is_above_subzone(asked.name) || self.each_dataset(asked, is_above)
    }

    /// The same, of names that may be listed ([`Zone::is_listable`]).
    pub fn is_above_listable(&self, asked: &Asked<'_>) -> bool {
        self.each_dataset(asked, |dataset, asked| {
            let ((ip4, ip6), (spells4, spells6)) = (dataset.families(), above::spells(asked));
            ip4 && spells4 || ip6 && spells6
        })
    }

    fn is_above_subzone(&self, name: &[u8]) -> bool {
        let sections = self.datasets.iter().filter_map(|dataset| match &dataset.body {
            Body::Combined(sections) => Some(sections),
            _ => None,
        });
        let mut subzones = sections.flatten().flat_map(|section| &section.subzones);
        subzones.any(|subzone| below(subzone, name).is_some_and(|front| !front.is_empty()))
    }

    /// Whether `each` holds for a data set of a subzone, or, if that is empty, of the zone itself; false without such a
    /// subzone.
    pub fn any_dataset_of(&self, subzone: &[u8], mut each: impl FnMut(&Dataset) -> bool) -> bool {
        self.datasets.iter().any(|dataset| match &dataset.body {
            Body::Combined(sections) => {
                let inside = sections.iter().filter(|section| section.subzones.iter().any(|name| name == subzone));
                inside.map(|section| &section.dataset).any(|dataset| each(dataset))
            }
            _ => subzone.is_empty() && each(dataset),
        })
    }

    /// Whether `each` says yes to a data set that is asked for a name.
    fn each_dataset(&self, asked: &Asked<'_>, mut each: impl FnMut(&Dataset, &Asked<'_>) -> bool) -> bool {
        self.datasets.iter().any(|dataset| match &dataset.body {
            Body::Combined(sections) => subzone(sections, asked.name).is_some_and(|(subzone, rest)| {
                let asked = Asked::new(rest);
                let mut inside = sections.iter().filter(|section| section.subzones.iter().any(|each| each == subzone));
                inside.any(|section| each(&section.dataset, &asked))
            }),
            _ => each(dataset, asked),
        })
    }
}

/// Where IPv4 data sets are asked, an IPv4 address in IPv6's clothes is nothing else.
const fn narrowed<'a>(asked: &Asked<'a>, has_ip4: bool) -> Asked<'a> {
    match asked.ip6 {
        Some(address) if has_ip4 && is_mapped(address) => Asked { ip6: None, ..*asked },
        _ => *asked,
    }
}

fn find_in_sections(sections: &[dataset::Section], asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
    let Some((subzone, rest)) = subzone(sections, asked.name) else {
        return false;
    };
    let inside = sections.iter().filter(|section| section.subzones.iter().any(|each| each == subzone));
    let has_ip4 = inside.clone().any(|section| section.dataset.families().0);
    let below = narrowed(&Asked::new(rest), has_ip4);
    let mut found = rest.is_empty();
    for section in inside {
        found |= section.dataset.find(&below, sink);
    }
    found
}

/// Finds the longest subzone of a name. Returns it with the labels below it.
fn subzone<'s, 'n>(sections: &'s [dataset::Section], name: &'n [u8]) -> Option<(&'s [u8], &'n [u8])> {
    let all = sections.iter().flat_map(|section| &section.subzones);
    let matching = all.filter_map(|subzone| Some((subzone.as_slice(), below(name, subzone)?)));
    matching.max_by_key(|(subzone, _)| subzone.len())
}

/// Part of a name below a subzone, both in wire form without root.
fn below<'n>(name: &'n [u8], subzone: &[u8]) -> Option<&'n [u8]> {
    let at = name.len().checked_sub(subzone.len())?;
    let (front, back) = name.split_at(at);
    let mut start = 0;
    while start < at {
        start += usize::from(*name.get(start)?) + 1;
    }
    (start == at && back == subzone).then_some(front)
}

/// Collects addresses, for glue.
#[derive(Debug, Default)]
struct Addresses {
    found: Vec<(u32, [u8; 4])>,
}

impl Sink for Addresses {
    fn listed(&mut self, dataset: &Dataset, value: ValueId, _: Key<'_>) {
        let address = dataset.values.get(value).map(|value| value.address);
        self.found.extend(address.map(|address| (dataset.head.ttl(), address)));
    }

    fn record(&mut self, record: &generic::Record) {
        if record.kind == kind::A
            && let Ok(address) = <[u8; 4]>::try_from(&record.data[..])
        {
            self.found.push((record.ttl, address));
        }
    }
}
