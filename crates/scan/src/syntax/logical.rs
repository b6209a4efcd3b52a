//! Reading logical signatures: `name;TDB;expression;subsignature0;...`.

use stream::FileType;

use crate::syntax::compare::Compare;
use crate::syntax::expression::{Expression, SUBSIGNATURES_MAX};
use crate::syntax::line::ICONS;
use crate::syntax::line::number;
use crate::syntax::line::{FUNCTIONALITY_LEVEL, Reject};
use crate::syntax::pcre::Pcre;
use crate::syntax::picture::Picture;
use crate::syntax::signature::{self, Logic, Macro, Signature, target_number};
use crate::syntax::style::Style;
use crate::target::Container;

/// The most containers that a signature may name.
const INTERMEDIATES_MAX: usize = 16;

/// Stands for any body in [`Logic::source`].
const SOME_BODY: &str = "00";

/// The target description block.
#[derive(Debug, Default)]
struct Description {
    target: Option<u8>,
    file_size: Option<(u64, u64)>,
    entry_point: Option<(u64, u64)>,
    sections: Option<(u64, u64)>,
    container: Option<Container>,
    intermediates: Vec<Option<FileType>>,
}

/// The fields of a signature. Behind the first `heads` a semicolon between the slashes of a regular expression ends none.
pub(crate) fn fields(text: &str, heads: usize) -> Vec<&str> {
    let (mut fields, mut begin, mut is_expression, mut before) = (Vec::new(), 0, false, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b';' if !is_expression => {
                fields.push(&text[begin..at]);
                begin = at + 1;
            }
            b'/' if fields.len() >= heads && before != b'\\' => is_expression = !is_expression,
            _ => {}
        }
        before = byte;
    }
    fields.push(&text[begin..]);
    fields
}

/// Reads what follows the name.
pub(crate) fn parse(fields: &[&str]) -> Result<Signature, Reject> {
    let [description, expression, subs @ ..] = fields else {
        return Err(Reject::Malformed("fewer than four fields".to_owned()));
    };
    let mut source = vec![*description, *expression];
    let description = Description::parse(description)?;
    let target = description.target.ok_or_else(|| "the target description has no Target".to_owned())?;
    if (description.entry_point.is_some() || description.sections.is_some()) && !matches!(target, 1 | 6 | 9) {
        return Err(Reject::Malformed("EntryPoint and NumberOfSections need an executable target".to_owned()));
    }
    let expression = Expression::parse(expression).map_err(Reject::Unsupported)?;
    let subs = subs.strip_suffix(&[""]).unwrap_or(subs);
    if subs.is_empty() || subs.len() > SUBSIGNATURES_MAX {
        return Err(Reject::Malformed(format!("{} subsignatures", subs.len())));
    }
    if expression.subsignatures() != subs.len() {
        let spoken = expression.subsignatures();
        return Err(Reject::Malformed(format!(
            "the expression speaks of {spoken} subsignatures and there are {}",
            subs.len()
        )));
    }
    let mut all = Subsignatures::default();
    for (sub, number) in subs.iter().zip(0u8..) {
        let bodies = all.bodies.len();
        all.read(sub, target, number)?;
        source.push(if all.bodies.len() > bodies { SOME_BODY } else { sub });
    }
    Ok(Signature {
        target,
        bodies: all.bodies,
        logic: Some(Logic {
            expression,
            subs: subs.len() as u8,
            file_size: description.file_size,
            entry_point: description.entry_point,
            sections: description.sections,
            container: description.container,
            intermediates: description.intermediates,
            compares: all.compares,
            macros: all.macros,
            expressions: all.expressions,
            pictures: all.pictures,
            source: source.join(";").into(),
        }),
    })
}

impl Description {
    fn parse(text: &str) -> Result<Description, Reject> {
        let mut all = Description::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) =
                pair.split_once(':').ok_or_else(|| format!("{pair:?} in the target description is no Key:Value"))?;
            match key {
                "Engine" => {
                    let (min, max) = range(value)?;
                    if !(min..=max).contains(&u64::from(FUNCTIONALITY_LEVEL)) {
                        return Err(Reject::OtherEngine);
                    }
                }
                "Target" => all.target = Some(target_number(value)?),
                "FileSize" => all.file_size = Some(range(value)?),
                "EntryPoint" => all.entry_point = Some(range(value)?),
                "NumberOfSections" => all.sections = Some(range(value)?),
                "Container" => all.container = Some(Container::parse(value).map_err(Reject::Unsupported)?),
                // ClamAV reads the object again as that type, and tells the signature like any other.
                "HandlerType" if value.starts_with("CL_TYPE_") => {}
                "Intermediates" => all.intermediates = intermediates(value)?,
                "IconGroup1" | "IconGroup2" => return Err(Reject::Unsupported(ICONS.to_owned())),
                _ => {
                    return Err(Reject::Unsupported(format!("{key} in the target description")));
                }
            }
        }
        Ok(all)
    }
}

/// Reads a range; as with clamscan a bound that is not there is 0, and nothing may be within.
fn range(text: &str) -> Result<(u64, u64), Reject> {
    let bound = |text: &str| if text.is_empty() { Ok(0) } else { number(text) };
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    Ok((bound(min)?, bound(max)?))
}

/// Reads the containers around an object, the innermost last: names with `>` between them.
fn intermediates(text: &str) -> Result<Vec<Option<FileType>>, Reject> {
    let containers = text.split('>').map(|name| match Container::parse(name).map_err(Reject::Unsupported)? {
        Container::Root => Ok(None),
        Container::Is(file_type) => Ok(Some(file_type)),
    });
    let containers: Vec<_> = containers.collect::<Result<_, Reject>>()?;
    if containers.len() > INTERMEDIATES_MAX {
        return Err(Reject::Malformed(format!("{} intermediates", containers.len())));
    }
    Ok(containers)
}

/// Subsignatures by kind.
#[derive(Default)]
struct Subsignatures {
    bodies: Vec<signature::Body>,
    compares: Vec<Compare>,
    macros: Vec<Macro>,
    expressions: Vec<Pcre>,
    pictures: Vec<Picture>,
}

impl Subsignatures {
    /// Reads one subsignature.
    fn read(&mut self, text: &str, target: u8, sub: u8) -> Result<(), Reject> {
        if Pcre::looks_like_one(text) {
            self.expressions.push(Pcre::parse(text, sub)?);
        } else if text.starts_with("${") {
            self.macros.push(Macro::parse(text, sub)?);
        } else if Compare::looks_like_one(text) {
            self.compares.push(Compare::parse(text, sub).map_err(Reject::Unsupported)?);
        } else if Picture::looks_like_one(text) {
            self.pictures.push(Picture::parse(text, sub)?);
        } else {
            self.body(text, target, sub)?;
        }
        Ok(())
    }

    /// Reads one that is a body, or the same body in two styles.
    fn body(&mut self, text: &str, target: u8, sub: u8) -> Result<(), Reject> {
        let (text, modifiers) = text.split_once("::").unwrap_or((text, ""));
        let (offset, hex) = text.rsplit_once(':').unwrap_or(("*", text));
        let mut style = Style::default();
        let mut ascii = false;
        for modifier in modifiers.chars() {
            match modifier {
                'i' => style.caseless = true,
                'w' => style.wide = true,
                'f' => style.fullword = true,
                'a' => ascii = true,
                ':' => return Err(Reject::Unsupported(format!("the modifiers {modifiers:?}"))),
                _ => return Err(Reject::Malformed(format!("there is no modifier {modifier:?}"))),
            }
        }
        self.bodies.push(signature::body(offset, hex, target, style, sub)?);
        if style.wide && ascii {
            style.wide = false;
            self.bodies.push(signature::body(offset, hex, target, style, sub)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Signature, Reject> {
        parse(&fields(line, 2))
    }

    #[test]
    fn a_signature_of_every_supported_key_and_modifier_is_read() {
        let line = "Engine:51-255,Target:1,FileSize:10-2000,Container:CL_TYPE_ZIP;(0&1)>2,2|2;EP+0:6162::i;10,5:6263::wa;6465*6667::f";
        let signature = read(line).expect("a signature");
        assert_eq!(signature.bodies.len(), 4);
        let logic = signature.logic.expect("logical");
        assert_eq!((logic.subs, logic.file_size), (3, Some((10, 2000))));
    }

    #[test]
    fn subsignatures_that_are_no_bodies_are_read() {
        let line = "Target:0,HandlerType:CL_TYPE_HTML,Intermediates:CL_TYPE_ANY>CL_TYPE_ZIP;0&1&2&3;6162;${6-7}12$;0(>>5#ib2#=512);0&1/x.*y/i";
        let signature = read(line).expect("a signature");
        let logic = signature.logic.expect("logical");
        assert_eq!((logic.macros.len(), logic.compares.len(), logic.expressions.len()), (1, 1, 1));
        assert!(logic.lies_in(&[FileType::Mail, FileType::Zip]) && !logic.lies_in(&[FileType::Zip]));
    }

    #[test]
    fn a_semicolon_in_a_regular_expression_ends_no_field() {
        for (line, subs) in [
            ("Target:0;0&1;6162;0/MARK;ALPHA/", 2),
            (r"Target:0;0&1&2;6162;0/yy\/a;[;:]b/i;6364", 3),
            ("Target:0;0&1&2;6162;0/a;b/;0/c;d/", 3),
        ] {
            assert_eq!(read(line).expect("a signature").logic.map(|logic| logic.subs), Some(subs), "{line}");
        }
        assert_eq!(fields("a/b;Target:0;0;6162", 3), ["a/b", "Target:0", "0", "6162"], "a name with a slash");
    }

    #[test]
    fn unsupported_forms_are_told_apart_from_malformed_ones() {
        for line in [
            "Target:0;0;fuzzy_img#af2ad01ed42993c7#1",
            "Target:1,IconGroup1:X;0;6162",
            "Target:15;0;6162",
            "Target:0;0>=1;6162",
            "Target:0;0;${1-2}3$",
            "Target:0;0;6162{5-3}6364",
            "Target:0;0;5,x:6162",
            "Target:0;0;6162::i::w",
        ] {
            assert!(matches!(read(line), Err(Reject::Unsupported(_))), "{line}");
        }
        for line in [
            "Target:0;0",
            "Engine:51-255;0;6162",
            "Target:0;0&1;6162",
            "Target:0;0;6162::q",
            "Target:x;0;6162",
            "Target:0,EntryPoint:1-3;0;6162",
        ] {
            assert!(matches!(read(line), Err(Reject::Malformed(_))), "{line}");
        }
        for line in ["Engine:999-1000,Target:0;0;6162", "Engine:51-,Target:0;0;6162"] {
            assert_eq!(read(line).err(), Some(Reject::OtherEngine), "{line}");
        }
    }
}
