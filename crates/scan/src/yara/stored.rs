//! Rules in a compiled database: the texts of their files, read anew when it is loaded.
//!
//! That takes some tens of milliseconds for two thousand rules, and what it makes is not shared between processes.

use std::io;

use pattern::flat::{Flat, Reader, Unfit, Writer};

use super::rules::Rules;
use super::table::{Source, Table, TableBuilder};

/// Writes rules, or that there are none.
pub(crate) fn store(table: Option<&Table>, writer: &mut Writer<'_>) -> io::Result<()> {
    let sources = table.map_or(&[][..], |table| table.sources.as_slice());
    writer.texts(sources.iter().map(|source| &*source.text))?;
    writer.array(&sources.iter().map(|source| source.names.len() as u64).collect::<Vec<_>>())?;
    writer.array(&sources.iter().flat_map(|source| source.names.iter().copied()).collect::<Vec<u32>>())
}

/// Reads what was stored; names are below `names_end`.
pub(crate) fn load(reader: &mut Reader, names_end: u32) -> Result<Option<Table>, Unfit> {
    let texts = reader.texts()?;
    let counts: Flat<u64> = reader.array()?;
    let names: Flat<u32> = reader.array()?;
    if counts.len() != texts.len() || names.iter().any(|&name| name >= names_end) {
        return Err(Unfit::Malformed);
    }
    let mut rest = &names[..];
    let mut table = TableBuilder::default();
    for (text, &count) in texts.into_iter().zip(counts.iter()) {
        let (names, after) = rest.split_at_checked(count as usize).ok_or(Unfit::Malformed)?;
        rest = after;
        let source = Source { text: text.into(), names: names.to_vec() };
        read(&source, &mut table).ok_or(Unfit::Malformed)?;
        table.add_source(source);
    }
    Ok((!table.is_empty()).then(|| table.build(|name| name, |_| false)))
}

/// Reads the rules of a file again; nothing if they are not as many as they were.
fn read(source: &Source, table: &mut TableBuilder) -> Option<()> {
    let mut names = source.names.iter();
    let mut rules = Rules::new(source.text.as_bytes());
    while let Some((_, read)) = rules.next(table) {
        if let Ok((rule, _)) = read {
            table.call(rule, *names.next()?);
        }
    }
    names.next().is_none().then_some(())
}
