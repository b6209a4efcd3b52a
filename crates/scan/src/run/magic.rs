//! Type of a file by the magic of databases.
//!
//! Looked at are the first [`HEAD_BYTES`], as clamscan does.

use pattern::State;
use stream::FileType;

use crate::run::follow::{Context, Follower};
use crate::table::database::{Database, Name};
use crate::table::magic::Magic;

/// How much of a file is looked at.
const HEAD_BYTES: usize = 1024;

impl Magic {
    /// The lines that fit a head: rank (the highest counts), number of the name, type.
    fn fitting(&self, head: &[u8]) -> Vec<((u8, u32), u32, FileType)> {
        let (mut state, mut follower, mut hits) = (State::default(), Follower::default(), Vec::new());
        let context = Context { table: &self.table, layout: None, containers: &[] };
        let patterns = &self.table.patterns;
        patterns.scan(&mut state, head, &mut |found| follower.on_match(context, found, &mut hits));
        patterns.finish(&mut state, &mut |found| follower.on_match(context, found, &mut hits));
        let ranked = hits.iter().filter_map(|hit| {
            let &[place, certain] = self.types.get(hit.signature as usize)?;
            let name = self.table.signatures.get(hit.signature as usize)?.name;
            Some(((certain, hit.signature), name, *FileType::ALL.get(usize::from(place))?))
        });
        ranked.collect()
    }
}

impl Database {
    /// Type of a file that begins with `head`, by the magic of its databases, if they have any. The type `by_content`
    /// counts where only a body is asked for: that is searched for in text and in content of no known type.
    pub fn recognise(&self, head: &[u8], by_content: FileType) -> Option<FileType> {
        let head = &head[..head.len().min(HEAD_BYTES)];
        let is_open = matches!(by_content, FileType::Text | FileType::Html | FileType::Xml | FileType::Binary);
        let layers = self.layers().enumerate();
        let fitting = layers.filter_map(|(layer, database)| Some((layer, database.magic.as_ref()?.fitting(head))));
        let fitting = fitting.flat_map(|(layer, all)| all.into_iter().map(move |one| (layer, one)));
        let counting = fitting.filter(|(layer, ((certain, ..), number, _))| {
            (*certain == 1 || is_open) && self.name(Name { layer: *layer, number: *number }).is_some()
        });
        counting.max_by_key(|(layer, (rank, ..))| (*rank, *layer)).map(|(_, (_, _, file_type))| file_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use crate::syntax::line::Reject;
    use crate::table::magic::parse;

    fn recognise(lines: &str, head: &[u8]) -> Option<FileType> {
        let mut builder = Builder::new();
        builder.add("t.ftm", lines.as_bytes()).expect("magic");
        builder.build().recognise(head, FileType::Text)
    }

    #[test]
    fn a_file_is_what_its_magic_says() {
        let lines = "0:0:7a7a:x:CL_TYPE_ANY:CL_TYPE_PDF\n1:*:6e6565:y:CL_TYPE_ANY:CL_TYPE_GIF:1\n";
        assert_eq!(recognise(lines, b"zz need"), Some(FileType::Pdf));
        assert_eq!(recognise(lines, b"a need"), Some(FileType::Image));
        assert_eq!(recognise(lines, b"a zz"), None);
        let later = format!("{lines}0:1:7a61:z:CL_TYPE_ANY:CL_TYPE_SWF:1:99\n0:1:7a61:z:CL_TYPE_ANY:CL_TYPE_SWF\n");
        assert_eq!(recognise(&later, b"zza"), Some(FileType::Flash), "the last line counts");
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_name() {
        for line in [
            "4:1024:482b:x:CL_TYPE_ANY:CL_TYPE_PART_HFSPLUS",
            "0:0:7a7a:x:CL_TYPE_ANY:CL_TYPE_IGNORED",
            "1:EOF-3:7a7a:x:CL_TYPE_ANY:CL_TYPE_PDF",
        ] {
            assert!(matches!(parse(line), Err(Reject::Unsupported(_))), "{line}");
        }
        for line in ["0:0:7a??:x:CL_TYPE_ANY:CL_TYPE_PDF", "7:0:7a7a:x:CL_TYPE_ANY:CL_TYPE_PDF", "0:0:7a7a:x"] {
            assert!(matches!(parse(line), Err(Reject::Malformed(_))), "{line}");
        }
    }
}
