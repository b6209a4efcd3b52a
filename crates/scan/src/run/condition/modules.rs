//! Values of the modules `pe` and `math`.

use std::borrow::Cow;

use super::{BYTES_OF_STEP, Evaluator, Loops, Value, compared};
use crate::layout::PeHead;
use crate::layout::exports::Exported;
use crate::yara::fact::{Field, Head, OfSection, OfSigner, Text};
use crate::yara::id::{NodeId, TextId};
use crate::yara::math::{Histogram, Measure, Over, monte_carlo_pi, serial_correlation};
use crate::yara::node::{Node, Operator};

impl<'a> Evaluator<'a, '_, '_> {
    /// Evaluates a number that may have a fraction.
    pub(super) fn float(&self, id: NodeId, loops: Loops<'_>) -> Option<f64> {
        match self.facts.table.arena.get(id) {
            Node::Float(bits) => Some(f64::from_bits(bits)),
            Node::Measure(measure, over) => self.measure(measure, over, loops),
            Node::FloatNegative(of) => Some(-self.float(of, loops)?),
            Node::FloatPair(operator, left, right) => {
                self.step(1)?;
                let (left, right) = (self.float(left, loops)?, self.float(right, loops)?);
                match operator {
                    Operator::Add => Some(left + right),
                    Operator::Subtract => Some(left - right),
                    Operator::Multiply => Some(left * right),
                    _ => Some(left / right),
                }
            }
            _ => self.value(id, loops).map(|value| value as f64),
        }
    }

    /// Compares numbers one of which has a fraction. `<` with an undefined number is false, as in YARA 4.2, which takes the number
    /// for a NaN there; other comparisons are undefined, and so is one that was given up.
    pub(super) fn fractions(&self, operator: Operator, left: NodeId, right: NodeId, loops: Loops<'_>) -> Value {
        let lost = self.verdicts.lost();
        let sides = self.float(left, loops).zip(self.float(right, loops));
        match sides {
            Some((left, right)) => Some(compared(operator, left, right).into()),
            None if operator == Operator::Less && !self.waits.get() && self.verdicts.lost() == lost => Some(0),
            None => None,
        }
    }

    fn measure(&self, measure: Measure, over: Over, loops: Loops<'_>) -> Option<f64> {
        let histogram = |act: &dyn Fn(Histogram) -> f64| self.over(over, loops, |bytes| act(Histogram::of(bytes)));
        match measure {
            Measure::Entropy => histogram(&|all| all.entropy()),
            Measure::Mean => histogram(&|all| all.mean()),
            Measure::SerialCorrelation => self.over(over, loops, serial_correlation),
            Measure::MonteCarloPi => self.over(over, loops, monte_carlo_pi)?,
            Measure::Deviation(mean) => {
                let mean = self.float(mean, loops)?;
                histogram(&|all| all.deviation(mean))
            }
            Measure::Percentage(byte) => {
                let byte = u8::try_from(self.value(byte, loops)?).ok()?;
                histogram(&|all| all.percentage(byte))
            }
        }
    }

    /// Does something with bytes of the object, or of a text. What begins behind the end is undefined.
    pub(super) fn over<T>(&self, over: Over, loops: Loops<'_>, act: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let (at, length) = match over {
            Over::Text(text) => return self.plain(text).map(act),
            Over::Object => (0, self.facts.size),
            Over::Range(at, length) => {
                let (at, length) = (self.value(at, loops)?, self.value(length, loops)?);
                (u64::try_from(at).ok()?, u64::try_from(length).ok()?)
            }
        };
        let left = self.facts.size.checked_sub(at).filter(|left| *left > 0)?;
        let length = length.min(left);
        self.step(1 + length / BYTES_OF_STEP)?;
        let (tail_at, tail) = self.facts.tail;
        let in_tail = at.checked_sub(tail_at).and_then(|skip| tail.get(usize::try_from(skip).ok()?..));
        if let Some(bytes) = in_tail.and_then(|tail| tail.get(..usize::try_from(length).ok()?)) {
            return Some(act(bytes));
        }
        let bytes = self.content.borrow().range(at, length);
        if bytes.is_none() {
            self.lose();
        }
        bytes.as_deref().map(act)
    }

    /// A text that is known of the object.
    pub(super) fn text(&self, field: Field, loops: Loops<'_>) -> Option<Cow<'a, [u8]>> {
        let (called, tables) = (self.facts.called, self.facts.tables);
        let text: &[u8] = match field {
            Field::FileName => called.name.as_bytes(),
            Field::FilePath => called.path.as_bytes(),
            Field::Extension => called.extension.as_bytes(),
            Field::FileType => called.file_type.as_bytes(),
            Field::ImportHash => return self.or_cut(tables.import_hash.as_ref()).map(|text| text.as_bytes().into()),
            Field::SectionName(index) => {
                let index = usize::try_from(self.value(index, loops)?).ok()?;
                self.pe()?.sections.get(index)?.name()
            }
            Field::ElfSectionName(index) => return self.elf_section_name(self.value(index, loops)?).map(Cow::Owned),
            Field::Signer(of, index) => {
                let index = usize::try_from(self.value(index, loops)?).ok()?;
                let signer = tables.signers.as_ref()?.get(index)?;
                match of {
                    OfSigner::Issuer => signer.issuer.as_bytes(),
                    OfSigner::Subject => signer.subject.as_bytes(),
                    OfSigner::Serial => signer.serial.as_bytes(),
                }
            }
            Field::Version(name) => {
                let name = self.plain(name)?;
                let text = tables.version.iter().find(|text| text.name.as_bytes() == name)?;
                text.value.as_bytes()
            }
        };
        Some(text.into())
    }

    /// A text that stands in a condition.
    pub(super) fn plain(&self, text: TextId) -> Option<&'a [u8]> {
        match self.facts.table.arena.text(text)? {
            Text::Plain(text) => Some(text),
            Text::Expression(_) => None,
        }
    }

    pub(super) fn pe(&self) -> Option<&'a PeHead> {
        self.facts.layout?.pe.as_deref()
    }

    /// Counts a table that could not be read because of a bound.
    fn or_cut<T>(&self, found: Option<T>) -> Option<T> {
        if found.is_none() && self.facts.tables.cut {
            self.lose();
        }
        found
    }

    pub(super) fn exported(&self) -> Option<&'a Exported> {
        // A file without a table exports nothing.
        static NOTHING: Exported = Exported { count: 0, names: Vec::new() };
        let tables = self.facts.tables;
        let readable = self.pe()?.exports.is_some() && (tables.exports.is_some() || tables.cut);
        if readable { self.or_cut(tables.exports.as_ref()) } else { Some(&NOTHING) }
    }

    pub(super) fn head(&self, head: Head) -> Value {
        let Some(pe) = self.pe() else {
            return (head == Head::IsPe).then_some(0);
        };
        Some(match head {
            Head::IsPe => 1,
            Head::Is32Bit => (!pe.wide).into(),
            Head::Is64Bit => pe.wide.into(),
            Head::IsDll => (pe.characteristics & 0x2000 != 0).into(),
            Head::Machine => pe.machine.into(),
            Head::Characteristics => pe.characteristics.into(),
            Head::Timestamp => pe.timestamp.into(),
            Head::Subsystem => pe.subsystem.into(),
            Head::Checksum => pe.checksum.into(),
            Head::ImageBase => pe.image_base.cast_signed(),
            // One that stands for no byte of the file is -1.
            Head::EntryPoint => {
                let entry = self.facts.layout?.entry.filter(|entry| *entry < self.facts.size);
                entry.map_or(-1, |entry| i64::try_from(entry).unwrap_or(-1))
            }
            Head::Exports => self.exported()?.count.into(),
            Head::OverlayOffset => self.overlay(pe).map_or(0, |(offset, _)| offset),
            Head::OverlaySize => self.overlay(pe).map_or(0, |(_, size)| size),
            Head::Libraries => self.facts.tables.libraries?.into(),
            Head::Functions => self.or_cut(self.facts.tables.functions)?.into(),
            Head::Resources => self.or_cut(self.facts.tables.resources)?.into(),
            Head::Signatures => self.facts.tables.signers.as_ref()?.len() as i64,
        })
    }

    /// Where what stands behind the sections begins, and how much that is.
    fn overlay(&self, pe: &PeHead) -> Option<(i64, i64)> {
        let ends = pe.sections.iter().map(|section| i64::from(section.offset) + i64::from(section.length));
        let (end, size) = (ends.max()?, i64::try_from(self.facts.size).ok()?);
        (end > 0 && size > end).then_some((end, size - end))
    }

    pub(super) fn section(&self, of: OfSection, index: i64) -> Value {
        let index = usize::try_from(index).ok()?;
        let section = self.pe()?.sections.get(index)?;
        Some(match of {
            OfSection::Address => section.address.into(),
            OfSection::AddressLength => section.address_length.into(),
            OfSection::Offset => section.offset.into(),
            OfSection::Length => section.length.into(),
            OfSection::Characteristics => section.characteristics.into(),
        })
    }

    pub(super) fn imports(&self, library: TextId, function: Option<TextId>) -> Value {
        self.pe()?;
        let library = self.plain(library)?;
        let function = match function {
            Some(function) => Some(self.plain(function)?),
            None => None,
        };
        let means = |(of, name): &&(Box<str>, Box<str>)| {
            of.as_bytes().eq_ignore_ascii_case(library)
                && function.is_none_or(|function| name.as_bytes().eq_ignore_ascii_case(function))
        };
        match self.facts.tables.imports.iter().find(means) {
            None => self.or_cut((!self.facts.tables.cut).then_some(0)),
            Some(_) => Some(1),
        }
    }
}
