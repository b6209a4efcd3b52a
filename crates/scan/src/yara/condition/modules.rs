//! Fields and functions of the modules `pe`, `elf` and `math`.

use super::Reader;
use crate::syntax::line::Reject;
use crate::yara::constant;
use crate::yara::fact::{Comparison, Field, Head, How, OfSection, OfSigner, Text};
use crate::yara::header::{Entry, OfElf, OfHeader};
use crate::yara::id::{NodeId, TextId};
use crate::yara::lexer::Token;
use crate::yara::math::{Measure, Over};
use crate::yara::node::{Node, Operator};
use crate::yara::regex;

impl<'a, 's> Reader<'a, 's> {
    /// Compares a text field of a module with a string.
    pub(super) fn compare(&mut self, field: Field) -> Result<Node, Reject> {
        let comparison = match self.peek()? {
            Token::Word(word) | Token::Symbol(word) => Comparison::parse(word),
            _ => None,
        };
        let Some(comparison) = comparison else {
            return Ok(Node::Has(field));
        };
        self.lexer.next()?;
        let text = match self.lexer.next()? {
            Token::Text(text) if comparison.how != How::Matches => Text::Plain(text.into()),
            Token::Regex(text, flags) if comparison.how == How::Matches => {
                Text::Expression(Box::new(regex::of_text(text, flags)?))
            }
            _ => return Err(Reject::Unsupported("a text that is compared with what is none".to_owned())),
        };
        Ok(Node::Compare(field, comparison, self.arena.add_text(text)))
    }

    pub(super) fn of_pe(&mut self) -> Result<Node, Reject> {
        self.expect(".")?;
        let Token::Word(name) = self.lexer.next()? else {
            return Err(Reject::Malformed("pe without a name".to_owned()));
        };
        let is_asked = |name: &str| Reject::Unsupported(format!("pe.{name}"));
        Ok(match name {
            "entry_point" => Node::Head(Head::EntryPoint),
            "number_of_imports" => Node::Head(Head::Libraries),
            "number_of_imported_functions" => Node::Head(Head::Functions),
            "number_of_resources" => Node::Head(Head::Resources),
            "overlay" => {
                self.expect(".")?;
                match self.lexer.next()? {
                    Token::Word("offset") => Node::Head(Head::OverlayOffset),
                    Token::Word("size") => Node::Head(Head::OverlaySize),
                    _ => return Err(Reject::Unsupported("pe.overlay".to_owned())),
                }
            }
            "section_index" => {
                self.expect("(")?;
                let node = match self.peek()? {
                    Token::Text(_) => Node::SectionNamed(self.text("pe.section_index")?),
                    _ => Node::SectionAt(self.integer(5)?),
                };
                self.expect(")")?;
                node
            }
            "number_of_signatures" => Node::Head(Head::Signatures),
            "signatures" => return self.of_signer(),
            "number_of_sections" => Node::Sections,
            "number_of_exports" => Node::Head(Head::Exports),
            "is_pe" => Node::Head(Head::IsPe),
            "is_32bit" => self.of_call(Head::Is32Bit)?,
            "is_64bit" => self.of_call(Head::Is64Bit)?,
            "is_dll" => self.of_call(Head::IsDll)?,
            "machine" => Node::Head(Head::Machine),
            "characteristics" => Node::Head(Head::Characteristics),
            "timestamp" => Node::Head(Head::Timestamp),
            "subsystem" => Node::Head(Head::Subsystem),
            "checksum" => Node::Head(Head::Checksum),
            "image_base" => Node::Head(Head::ImageBase),
            "imphash" => {
                self.expect("(")?;
                self.expect(")")?;
                self.compare(Field::ImportHash)?
            }
            "sections" => return self.of_section(),
            "version_info" => {
                self.expect("[")?;
                let key = self.text("pe.version_info")?;
                self.expect("]")?;
                self.compare(Field::Version(key))?
            }
            "imports" => {
                self.expect("(")?;
                let library = self.text("pe.imports")?;
                let function = if self.takes(&Token::Symbol(","))? { Some(self.text("pe.imports")?) } else { None };
                self.expect(")")?;
                Node::Imports(library, function)
            }
            "exports" => {
                self.expect("(")?;
                let name = self.text("pe.exports")?;
                self.expect(")")?;
                Node::Exports(name)
            }
            "data_directories" => return self.of_directory(),
            "linker_version" | "os_version" | "image_version" | "subsystem_version" => {
                self.expect(".")?;
                let Token::Word(part) = self.lexer.next()? else {
                    return Err(Reject::Malformed("a version without a part".to_owned()));
                };
                Node::Header(OfHeader::named(&format!("{name}.{part}")).ok_or_else(|| is_asked(name))?)
            }
            name => match OfHeader::named(name) {
                Some(field) => Node::Header(field),
                None => Node::Number(constant::pe(name).ok_or_else(|| is_asked(name))?),
            },
        })
    }

    fn of_directory(&mut self) -> Result<Node, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Err(Reject::Unsupported("loops over what modules have".to_owned()));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        self.expect(".")?;
        match self.lexer.next()? {
            Token::Word("virtual_address") => Ok(Node::Directory(index, false)),
            Token::Word("size") => Ok(Node::Directory(index, true)),
            _ => Err(Reject::Malformed("a data directory without a field".to_owned())),
        }
    }

    pub(super) fn of_elf(&mut self) -> Result<Node, Reject> {
        self.expect(".")?;
        let Token::Word(name) = self.lexer.next()? else {
            return Err(Reject::Malformed("elf without a name".to_owned()));
        };
        if matches!(name, "sections" | "segments") {
            return self.of_elf_entry(name);
        }
        let constant = || constant::elf(name).map(Node::Number);
        let node = OfElf::named(name).map(Node::Elf).or_else(constant);
        node.ok_or_else(|| Reject::Unsupported(format!("elf.{name}")))
    }

    fn of_elf_entry(&mut self, table: &str) -> Result<Node, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Err(Reject::Unsupported("loops over what modules have".to_owned()));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        self.expect(".")?;
        let Token::Word(name) = self.lexer.next()? else {
            return Err(Reject::Malformed(format!("elf.{table}[] without a field")));
        };
        let entry = match (table, name) {
            ("sections", "name") => return self.compare(Field::ElfSectionName(index)),
            ("sections", name) => Entry::of_section(name),
            (_, name) => Entry::of_segment(name),
        };
        let node = entry.map(|entry| Node::ElfEntry(entry, index));
        node.ok_or_else(|| Reject::Unsupported(format!("elf.{table}[].{name}")))
    }

    pub(super) fn of_math(&mut self) -> Result<Node, Reject> {
        self.expect(".")?;
        let Token::Word(name) = self.lexer.next()? else {
            return Err(Reject::Malformed("math without a name".to_owned()));
        };
        if name == "MEAN_BYTES" {
            return Ok(Node::Float(127.5f64.to_bits()));
        }
        self.expect("(")?;
        let node = match name {
            "entropy" => Node::Measure(Measure::Entropy, self.over()?),
            "mean" => Node::Measure(Measure::Mean, self.over()?),
            "serial_correlation" => Node::Measure(Measure::SerialCorrelation, self.over()?),
            "monte_carlo_pi" => Node::Measure(Measure::MonteCarloPi, self.over()?),
            "deviation" => {
                let over = self.over()?;
                Node::Measure(Measure::Deviation(self.float_behind_comma()?), over)
            }
            "percentage" => {
                let byte = self.integer(5)?;
                Node::Measure(Measure::Percentage(byte), self.over_behind_comma()?)
            }
            "count" => {
                let byte = self.integer(5)?;
                Node::CountByte(byte, self.over_behind_comma()?)
            }
            "mode" if self.peek()? == Token::Symbol(")") => Node::Mode(Over::Object),
            "mode" => Node::Mode(self.over()?),
            "in_range" => Node::InRange(self.float()?, self.float_behind_comma()?, self.float_behind_comma()?),
            "min" => Node::Least(self.integer(5)?, self.integer_behind_comma()?),
            "max" => Node::Most(self.integer(5)?, self.integer_behind_comma()?),
            "abs" => Node::Absolute(self.integer(5)?),
            "to_number" => {
                let truth = self.expression(0)?;
                if !self.arena.is_truth(truth) {
                    return Err(Reject::Malformed("math.to_number of a number".to_owned()));
                }
                let (one, zero) = (self.arena.add(Node::Number(1)), self.arena.add(Node::Not(truth)));
                Node::Pair(Operator::Subtract, one, zero)
            }
            name => return Err(Reject::Unsupported(format!("math.{name}"))),
        };
        self.expect(")")?;
        Ok(node)
    }

    /// A number with a fraction.
    fn float(&mut self) -> Result<NodeId, Reject> {
        let id = self.expression(5)?;
        match self.arena.is_float(id) {
            true => Ok(id),
            false => Err(Reject::Malformed("a number without a fraction where one belongs".to_owned())),
        }
    }

    fn float_behind_comma(&mut self) -> Result<NodeId, Reject> {
        self.expect(",")?;
        self.float()
    }

    fn integer_behind_comma(&mut self) -> Result<NodeId, Reject> {
        self.expect(",")?;
        self.integer(5)
    }

    /// The bytes that something is asked of: a text, or an offset and a length.
    fn over(&mut self) -> Result<Over, Reject> {
        if let Token::Text(_) = self.peek()? {
            return Ok(Over::Text(self.text("math")?));
        }
        Ok(Over::Range(self.integer(5)?, self.integer_behind_comma()?))
    }

    /// The range behind a comma; all of the object, if there is none.
    fn over_behind_comma(&mut self) -> Result<Over, Reject> {
        match self.peek()? {
            Token::Symbol(",") => Ok(Over::Range(self.integer_behind_comma()?, self.integer_behind_comma()?)),
            _ => Ok(Over::Object),
        }
    }

    fn of_call(&mut self, head: Head) -> Result<Node, Reject> {
        self.expect("(")?;
        self.expect(")")?;
        Ok(Node::Head(head))
    }

    fn of_section(&mut self) -> Result<Node, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Err(Reject::Unsupported("loops over what modules have".to_owned()));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        self.field_of_section(index)
    }

    /// Reads the field after a section.
    pub(super) fn field_of_section(&mut self, index: NodeId) -> Result<Node, Reject> {
        self.expect(".")?;
        let of = match self.lexer.next()? {
            Token::Word("name") => return self.compare(Field::SectionName(index)),
            Token::Word("virtual_address") => OfSection::Address,
            Token::Word("virtual_size") => OfSection::AddressLength,
            Token::Word("raw_data_offset") => OfSection::Offset,
            Token::Word("raw_data_size") => OfSection::Length,
            Token::Word("characteristics") => OfSection::Characteristics,
            Token::Word(name) => return Err(Reject::Unsupported(format!("pe.sections[].{name}"))),
            _ => return Err(Reject::Malformed("a section without a field".to_owned())),
        };
        Ok(Node::Section(of, index))
    }

    fn of_signer(&mut self) -> Result<Node, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Err(Reject::Unsupported("loops over what modules have".to_owned()));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        self.field_of_signer(index)
    }

    /// Reads the field after a signature.
    pub(super) fn field_of_signer(&mut self, index: NodeId) -> Result<Node, Reject> {
        self.expect(".")?;
        let of = match self.lexer.next()? {
            Token::Word("issuer") => OfSigner::Issuer,
            Token::Word("subject") => OfSigner::Subject,
            Token::Word("serial") => OfSigner::Serial,
            Token::Word(name) => return Err(Reject::Unsupported(format!("pe.signatures[].{name}"))),
            _ => return Err(Reject::Malformed("a signature without a field".to_owned())),
        };
        self.compare(Field::Signer(of, index))
    }

    /// The text that something is asked for.
    fn text(&mut self, of: &str) -> Result<TextId, Reject> {
        match self.lexer.next()? {
            Token::Text(text) => Ok(self.arena.add_text(Text::Plain(text.into()))),
            _ => Err(Reject::Unsupported(format!("{of} with what is no text"))),
        }
    }
}
