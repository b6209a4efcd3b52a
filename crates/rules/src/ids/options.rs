//! Options of one rule: each goes to the head, to its state, or to the section of the buffer at hand.
//!
//! Contents with a modifier of a buffer behind them, as Snort before 3 has them, go to the same sections as those behind a
//! sticky keyword.

mod buffer;
mod state;

use super::buffer::{App, Buffer, Direction};
use super::condition;
use super::keywords;
use super::lexer::{BEHIND_QUOTES, Opt, items, negated, only_quoted, text};
use super::limits::Limits;
use super::rate;
use super::rule::{Condition, Content, Order, Port, Rule, Section, Sizes, Test, Value};
use super::sets::Sets;
use super::transform::{Transform, excluding};
use super::values::{self, Names};

/// Why a rule does not load.
#[derive(Debug)]
pub(super) enum Stop {
    /// Its requirements are not met.
    Skip(String),
    /// A keyword, and what is wrong with it.
    Fault { keyword: String, reason: String },
}

/// Names of bits, in the order of their numbers.
pub(super) type BitNames = std::collections::HashMap<String, u32>;

/// State that the rules of a set share while they are read.
pub(super) struct Shared<'s> {
    pub limits: &'s Limits,
    pub bits: &'s mut BitNames,
    pub sets: &'s mut Sets,
    pub classes: &'s std::collections::BTreeMap<String, (String, u32)>,
    pub is_snort3: bool,
    pub suffixes: &'s std::sync::Arc<crate::web::Suffixes>,
}

/// Reads options into a rule.
pub(super) struct Options<'r, 's> {
    rule: &'r mut Rule,
    shared: &'r mut Shared<'s>,
    names: Names,
    /// The buffer at hand, and what is derived from it.
    buffer: Buffer,
    way: Option<Direction>,
    transforms: Vec<Transform>,
    /// Whether the address of the source or the destination is at hand in place of a buffer.
    address: Option<Port>,
    /// Whether the next test begins a section of its own.
    is_fresh: bool,
    /// Whether tests go to the Base64 that was decoded last.
    in_base64: bool,
    /// The section of the last test.
    last: Option<usize>,
    /// That of the last content.
    content_at: Option<usize>,
    /// Sections that no later option adds to.
    whole: Vec<Section>,
    has_priority: bool,
}

/// Reads all options of a rule.
pub(super) fn read(rule: &mut Rule, options: &[Opt<'_>], shared: &mut Shared<'_>) -> Result<(), Stop> {
    let mut reader = Options {
        rule,
        shared,
        names: Names::default(),
        buffer: Buffer::Payload,
        way: None,
        transforms: Vec::new(),
        address: None,
        is_fresh: false,
        in_base64: false,
        last: None,
        content_at: None,
        whole: Vec::new(),
        has_priority: false,
    };
    // Keywords that are not known stand in rules that require a newer version.
    for requirement in options.iter().filter(|option| option.name == "requires") {
        keywords::requires(&text(requirement.value.unwrap_or_default())).map_err(Stop::Skip)?;
    }
    for option in options.iter().filter(|option| option.name != "requires") {
        let fault = |reason| Stop::Fault { keyword: option.name.into(), reason };
        reader.option(option).map_err(fault)?;
    }
    reader.finish().map_err(|(keyword, reason)| Stop::Fault { keyword: keyword.into(), reason })
}

impl Options<'_, '_> {
    fn option(&mut self, option: &Opt<'_>) -> Result<(), String> {
        let value = option.value.unwrap_or_default();
        if self.head(option.name, value)? || self.modifier(option.name, value)? || self.state(option.name, value)? {
            return Ok(());
        }
        if let Some(transform) = Transform::read(option.name, option.value) {
            self.transforms.push(transform?.with_suffixes(self.shared.suffixes));
            return Ok(());
        }
        if self.section(option)? || self.choose_buffer(option) || self.test(option.name, value)? {
            return Ok(());
        }
        if keywords::is_idle(option.name) {
            self.rule.idle.get_or_insert_with(|| option.name.into());
            return Ok(());
        }
        Err(keywords::advice(option.name))
    }

    /// Options that are about the rule.
    fn head(&mut self, name: &str, value: &[u8]) -> Result<bool, String> {
        let parse = |value: &[u8]| text(value).trim().parse::<u32>().map_err(|_| "no number".to_string());
        match name {
            "msg" => self.rule.message = message(only_quoted(value)?),
            "sid" => self.rule.sid = parse(value)?,
            "gid" => self.rule.gid = parse(value)?,
            "rev" => self.rule.rev = parse(value)?,
            "priority" => {
                self.rule.priority = parse(value)?;
                self.has_priority = true;
            }
            "classtype" => {
                if let Some((category, priority)) = self.shared.classes.get(text(value).trim()) {
                    self.rule.category.clone_from(category);
                    if !self.has_priority {
                        self.rule.priority = *priority;
                    }
                }
            }
            "reference" | "metadata" | "target" | "service" | "rem" | "logto" | "soid" => {}
            // They say what else is done, or how the rule is best selected.
            "prefilter" | "tag" | "bypass" | "replace" | "stream_reassemble" | "nfq_set_mark" | "resp" | "react"
            | "session" | "tls_store" | "tls.store" => {}
            "enable" if value == b"no" => _ = self.rule.idle.get_or_insert_with(|| name.into()),
            "enable" => {}
            "flow" => self.flow(value)?,
            "noalert" => self.rule.is_silent = true,
            "alert" => self.rule.tells = true,
            "app-layer-protocol" => match condition::app(value)? {
                Some(condition) => self.rule.conditions.push(condition),
                None => _ = self.rule.idle.get_or_insert_with(|| name.into()),
            },
            "ip_proto" => match condition::carried(value)? {
                Some(condition) => self.rule.conditions.push(condition),
                None => _ = self.rule.idle.get_or_insert_with(|| name.into()),
            },
            "sameip" => self.rule.conditions.push(Condition::SameAddress),
            "stream_size" => self.rule.conditions.push(condition::stream(value)?),
            "threshold" | "detection_filter" => {
                self.rule.thresholds.push(rate::read(value, name == "detection_filter")?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn flow(&mut self, value: &[u8]) -> Result<(), String> {
        for item in items(value) {
            let direction = match &*item.to_ascii_lowercase() {
                b"to_server" | b"from_client" => Direction::ToServer,
                b"to_client" | b"from_server" => Direction::ToClient,
                b"established" | b"stateless" | b"only_stream" | b"no_frag" => continue,
                b"no_stream" => {
                    self.rule.is_about_packets = true;
                    continue;
                }
                b"not_established" | b"only_frag" => {
                    self.rule.idle.get_or_insert_with(|| "flow".into());
                    continue;
                }
                _ => return Err(format!("{} is not known", text(item))),
            };
            if self.rule.direction.replace(direction).is_some_and(|before| before != direction) {
                return Err("both ways at once".into());
            }
        }
        Ok(())
    }

    /// Options that change the content before them.
    fn modifier(&mut self, name: &str, value: &[u8]) -> Result<bool, String> {
        // Snort 3 has its buffers before the contents.
        if !self.shared.is_snort3
            && value.is_empty()
            && let Some(buffer) = Buffer::modifier(name)
        {
            self.move_to(buffer)?;
            return Ok(true);
        }
        if !matches!(
            name,
            "nocase"
                | "depth"
                | "offset"
                | "distance"
                | "within"
                | "startswith"
                | "endswith"
                | "fast_pattern"
                | "rawbytes"
        ) {
            return Ok(false);
        }
        let names = std::mem::take(&mut self.names);
        let done = modify(self.last_content()?, name, &text(value), &names);
        self.names = names;
        done.map(|()| true)
    }

    fn last_tests(&mut self) -> Option<&mut Vec<Test>> {
        let in_base64 = self.in_base64;
        let section = self.rule.sections.get_mut(self.last?)?;
        if !in_base64 {
            return Some(&mut section.tests);
        }
        section.tests.iter_mut().rev().find_map(|test| match test {
            Test::Base64 { tests, .. } => Some(tests),
            _ => None,
        })
    }

    fn last_content(&mut self) -> Result<&mut Content, String> {
        self.last = self.content_at;
        let contents = self.last_tests().into_iter().flat_map(|tests| tests.iter_mut().rev());
        let mut contents = contents.filter_map(|test| match test {
            Test::Content(content) => Some(&mut **content),
            _ => None,
        });
        contents.next().ok_or_else(|| "no content before it".into())
    }

    fn test(&mut self, name: &str, value: &[u8]) -> Result<bool, String> {
        if let Some(end) = self.address
            && self.test_address(end, name, value)?
        {
            return Ok(true);
        }
        let test = match name {
            "content" | "uricontent" => return self.content(name, value).map(|()| true),
            "pcre" | "regex" => {
                let (pcre, buffer) = values::pcre(value)?;
                match buffer {
                    Some(buffer) if !self.shared.is_snort3 => self.push_to(buffer, &[], Test::Pcre(Box::new(pcre))),
                    _ => self.push(Test::Pcre(Box::new(pcre)))?,
                }
                return Ok(true);
            }
            "byte_test" | "byte_jump" | "byte_extract" | "byte_math" => {
                if items(value).any(|item| item == b"dce") {
                    // Later options may use its value.
                    let list: Vec<&[u8]> = items(value).filter(|item| *item != b"dce").collect();
                    values::bytes(name, &list.join(&b','), &mut self.names)?;
                    self.rule.idle.get_or_insert_with(|| "dce".into());
                    return Ok(true);
                }
                Test::Bytes(Box::new(values::bytes(name, value, &mut self.names)?))
            }
            "isdataat" => self.data_at(value)?,
            "bsize" | "bufferlen" => Test::Size(values::sizes(items(value).next().unwrap_or_default())?),
            "urilen" => return self.uri_length(value).map(|()| true),
            "dsize" => return self.packet_size(value).map(|()| true),
            "base64_decode" => base64(value)?,
            "dataset" | "datarep" => {
                let test = self.shared.sets.read(name, value, self.shared.limits)?;
                self.push(test)?;
                return Ok(true);
            }
            "absent" => Test::Absent { or_else: text(value).trim() == "or_else" },
            _ => return Ok(false),
        };
        let follows_content = matches!(
            test,
            Test::DataAt { is_relative: true, .. } | Test::Base64 { is_relative: true, .. } | Test::Bytes(_)
        );
        if follows_content && self.buffer == Buffer::Payload && !self.in_base64 && !self.shared.is_snort3 {
            self.follow(test);
        } else {
            self.push(test)?;
        }
        Ok(true)
    }

    /// A test of an address: data sets have them, as bytes no rule looks at them.
    fn test_address(&mut self, end: Port, name: &str, value: &[u8]) -> Result<bool, String> {
        match name {
            "dataset" | "datarep" => {
                let test = self.shared.sets.read(name, value, self.shared.limits)?;
                if self.rule.conditions.len() >= self.shared.limits.tests_max {
                    return Err("too many tests".into());
                }
                self.rule.conditions.push(Condition::Address { end, test: Box::new(test) });
            }
            "content" | "pcre" | "bsize" | "byte_test" | "byte_jump" | "byte_extract" | "byte_math" | "isdataat" => {
                self.rule.idle.get_or_insert_with(|| "ip.src".into());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds a relative test where the last content went: modifiers have no buffer at hand.
    fn follow(&mut self, test: Test) {
        let place = self.last.and_then(|at| self.rule.sections.get(at));
        match place.filter(|_| test.is_relative()).map(|section| section.buffer) {
            Some(buffer) => self.push_to(buffer, &[], test),
            None => self.push_to(Buffer::Payload, &[], test),
        }
    }

    fn content(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let (content, rest) = values::content(value)?;
        if name == "uricontent" {
            self.push_to(Buffer::Uri, &[], Test::Content(Box::new(content)));
        } else {
            self.push(Test::Content(Box::new(content)))?;
        }
        let rest = rest.strip_prefix(b",").unwrap_or(rest);
        if !rest.is_empty() && !self.shared.is_snort3 {
            return Err(BEHIND_QUOTES.into());
        }
        for item in items(rest).filter(|item| !item.is_empty()) {
            let item = text(item);
            let (word, value) = item.split_once(char::is_whitespace).unwrap_or((&item, ""));
            let names = std::mem::take(&mut self.names);
            let done = match word {
                "fast_pattern_offset" | "fast_pattern_length" => Ok(()),
                _ => modify(self.last_content()?, word, value.trim(), &names),
            };
            self.names = names;
            done?;
        }
        Ok(())
    }

    fn data_at(&self, value: &[u8]) -> Result<Test, String> {
        let (is_negated, value) = negated(value);
        let list: Vec<&[u8]> = items(value).collect();
        let (is_negated, count) = match list.first().copied().map(negated) {
            Some((inner, count)) => (is_negated || inner, self.names.value(&text(count))?),
            None => return Err("no number".into()),
        };
        let is_relative = list.contains(&&b"relative"[..]);
        Ok(Test::DataAt { count, is_relative, is_negated })
    }

    /// The size of a packet. All texts of the rule are looked for in packets then. One that carries nothing has no other size than 0.
    fn packet_size(&mut self, value: &[u8]) -> Result<(), String> {
        let sizes = values::sizes(value)?;
        // Relative tests behind it follow the content before it.
        let at_hand = (self.last, self.is_fresh);
        if matches!(sizes, Sizes::Compared(Order::NotEqual, _)) {
            self.push_to(Buffer::Packet, &[], Test::Size(Sizes::Compared(Order::Greater, 0)));
        }
        self.push_to(Buffer::Packet, &[], Test::Size(sizes));
        (self.last, self.is_fresh) = at_hand;
        Ok(())
    }

    fn uri_length(&mut self, value: &[u8]) -> Result<(), String> {
        let mut list = items(value);
        let sizes = values::sizes(list.next().unwrap_or_default())?;
        let is_raw = list.next() == Some(b"raw");
        let buffer = if is_raw { Buffer::UriRaw } else { Buffer::Uri };
        self.push_to(buffer, &[], Test::Size(sizes));
        Ok(())
    }

    /// Looks at the rule as a whole.
    fn finish(self) -> Result<(), (&'static str, String)> {
        let rule = self.rule;
        rule.sections.extend(self.whole);
        rule.variables = self.names.len();
        let is_of_bytes = rule.sections.iter().all(|section| section.buffer == Buffer::Payload);
        if rule.is_of_packet() || rule.is_about_packets && is_of_bytes {
            look_at_packets(rule);
        }
        if rule.sid == 0 {
            return Err(("sid", "is missing".into()));
        }
        for section in &mut rule.sections {
            section.tests = super::order::cheap_first(std::mem::take(&mut section.tests));
            let tests = section.tests.as_slice();
            if tests.iter().any(|test| matches!(test, Test::Absent { or_else: false })) && tests.len() > 1 {
                return Err(("absent", "stands with other tests of its buffer".into()));
            }
            let impossible = tests.iter().find_map(|test| match test {
                Test::Content(content) => bounds(content).err(),
                _ => None,
            });
            let excluded = tests.iter().find_map(|test| match test {
                Test::Content(content) if !content.is_negated && !content.is_caseless => {
                    excluding(&section.transforms, &content.bytes)
                }
                _ => None,
            });
            if let Some(transform) = excluded {
                return Err(("content", format!("is in nothing that {} makes", transform.name())));
            }
            let is_unclear = tests.windows(2).any(|pair| match pair {
                [Test::Pcre(pcre), next] => pcre.is_ungreedy && next.is_relative(),
                _ => false,
            });
            if is_unclear {
                return Err(("pcre", "the letter G is not supported in front of a relative test".into()));
            }
            if let Some(reason) = impossible {
                return Err(("content", reason));
            }
        }
        // The protocol of a buffer is that of the rule.
        if rule.head.apps.is_empty() && rule.sections.iter().any(|section| !section.buffer.apps().is_empty()) {
            let mut apps: Vec<App> = Vec::new();
            rule.sections.iter().for_each(|section| apps.extend(section.buffer.apps()));
            rule.head.apps = apps;
        }
        Ok(())
    }
}

/// Turns tests of the stream into tests of packets. A rule that looks into other buffers besides never matches.
fn look_at_packets(rule: &mut Rule) {
    for section in &mut rule.sections {
        match section.buffer {
            Buffer::Packet => {}
            Buffer::Payload => section.buffer = Buffer::Packet,
            _ => _ = rule.idle.get_or_insert_with(|| "dsize".into()),
        }
    }
}

/// A part of the name of a file, or its end behind a dot, whatever the case.
fn part_of_name(value: &[u8], dot: &str) -> Result<Content, String> {
    let (content, _) = values::content(value)?;
    let bytes = [dot.as_bytes(), &content.bytes].concat().to_ascii_lowercase();
    Ok(Content { bytes, is_caseless: true, at_end: !dot.is_empty(), ..content })
}

/// A content that can occur.
fn bounds(content: &Content) -> Result<(), String> {
    let length = i64::try_from(content.bytes.len()).unwrap_or(i64::MAX);
    for bound in [content.depth, content.within] {
        if let Some(Value::Number(bound)) = bound
            && bound < length
        {
            return Err(format!("is longer than the {bound} bytes that it may stand in"));
        }
    }
    Ok(())
}

fn modify(content: &mut Content, name: &str, value: &str, names: &Names) -> Result<(), String> {
    match name {
        "nocase" => {
            content.is_caseless = true;
            content.bytes.make_ascii_lowercase();
        }
        "offset" => content.offset = Some(names.value(value)?),
        "depth" => content.depth = Some(names.value(value)?),
        "distance" => content.distance = Some(names.value(value)?),
        "within" => content.within = Some(names.value(value)?),
        "startswith" => {
            content.offset = Some(Value::Number(0));
            content.depth = Some(Value::Number(i64::try_from(content.bytes.len()).unwrap_or(i64::MAX)));
        }
        "endswith" => content.at_end = true,
        "rawbytes" => {}
        "fast_pattern" => {
            content.is_fast = true;
            if let Some((offset, length)) = value.split_once(',') {
                let part = (offset.trim().parse().ok(), length.trim().parse().ok());
                let (Some(offset), Some(length)) = part else { return Err("no numbers".into()) };
                content.fast_part =
                    content.bytes.get(offset..).and_then(|rest| rest.get(..length)).map(|_| (offset, length));
            }
        }
        _ => return Err(format!("{name} is not known")),
    }
    Ok(())
}

fn base64(value: &[u8]) -> Result<Test, String> {
    let (mut bytes, mut offset, mut is_relative) = (0, 0, false);
    for item in items(value).filter(|item| !item.is_empty()) {
        let item = text(item);
        let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((&item, ""));
        let parsed = rest.trim().parse::<usize>();
        match (word, parsed) {
            ("relative", _) => is_relative = true,
            ("bytes", Ok(count)) => bytes = count,
            ("offset", Ok(count)) => offset = count,
            _ => return Err(format!("{item} is not known")),
        }
    }
    Ok(Test::Base64 { bytes, offset, is_relative, tests: Vec::new() })
}

fn message(text: &[u8]) -> String {
    super::lexer::text(text).replace("\\;", ";").replace("\\\"", "\"").replace("\\:", ":").replace("\\\\", "\\")
}
