//! Options of one rule: each goes to the head, to its state, or to the section of the buffer at hand.
//!
//! Contents with a modifier of a buffer behind them, as Snort before 3 has them, go to the same sections as those behind a
//! sticky keyword.

use super::buffer::{App, Buffer, Direction, Side};
use super::condition;
use super::events::event_named;
use super::handshake;
use super::keywords;
use super::lexer::{BEHIND_QUOTES, Opt, items, negated, only_quoted, text};
use super::limits::Limits;
use super::rate;
use super::rule::{Amount, BitVerb, Bits, Condition, Content, Order, Port, Rule, Scope, Section, Sizes, Test, Value};
use super::sets::Sets;
use super::transform::{Transform, excluding};
use super::values::{self, Names, number};

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

    /// Moves the last test to the section of a buffer.
    fn move_to(&mut self, buffer: Buffer) -> Result<(), String> {
        let from = self.last.ok_or("no content before it")?;
        let section = self.rule.sections.get_mut(from).ok_or("no content before it")?;
        if section.buffer == buffer {
            return Ok(());
        }
        let test = section.tests.pop().ok_or("no content before it")?;
        if !matches!(test, Test::Content(_) | Test::DataAt { .. } | Test::Pcre(_)) {
            return Err("no content before it".into());
        }
        if section.tests.is_empty() {
            self.rule.sections.remove(from);
        }
        self.push_to(buffer, &[], test);
        Ok(())
    }

    /// Adds a test to the section of a buffer; the first of its kind is made.
    fn push_to(&mut self, buffer: Buffer, transforms: &[Transform], test: Test) {
        self.push_of(None, buffer, transforms, test);
    }

    fn push_of(&mut self, way: Option<Direction>, buffer: Buffer, transforms: &[Transform], test: Test) {
        let is_one = |one: &Section| one.buffer == buffer && one.transforms == transforms && one.way == way;
        let known = self.rule.sections.iter().rposition(is_one);
        let at = known.filter(|_| !self.is_fresh).unwrap_or_else(|| {
            self.rule.sections.push(Section { buffer, way, transforms: transforms.to_vec(), tests: Vec::new() });
            self.rule.sections.len() - 1
        });
        self.is_fresh = false;
        self.last = Some(at);
        if matches!(test, Test::Content(_)) {
            self.content_at = Some(at);
        }
        self.rule.sections[at].tests.push(test);
    }

    fn push(&mut self, test: Test) -> Result<(), String> {
        if self.rule.tests() >= self.shared.limits.tests_max {
            return Err("too many tests".into());
        }
        if self.in_base64 {
            let is_content = matches!(test, Test::Content(_));
            self.last_tests().ok_or("no base64_decode before it")?.push(test);
            if is_content {
                self.content_at = self.last;
            }
            return Ok(());
        }
        let transforms = std::mem::take(&mut self.transforms);
        self.push_of(self.way, self.buffer, &transforms, test);
        self.transforms = transforms;
        Ok(())
    }

    /// Options that are a section of their own: about the file that a message carries, and Suricata's older ones about certificates.
    fn section(&mut self, option: &Opt<'_>) -> Result<bool, String> {
        let (buffer, test) = match (option.name, option.value) {
            ("filename", Some(value)) => (Buffer::FileName, Test::Content(Box::new(part_of_name(value, "")?))),
            ("fileext", Some(value)) => (Buffer::FileName, Test::Content(Box::new(part_of_name(value, ".")?))),
            ("filesize", Some(value)) => (Buffer::FileData, Test::Size(values::sizes(value)?)),
            // There is a file.
            ("filestore", _) => {
                let (count, is_relative, is_negated) = (Value::Number(0), false, false);
                (Buffer::FileData, Test::DataAt { count, is_relative, is_negated })
            }
            ("app-layer-event", Some(value)) => {
                let Some(event) = event_named(&text(value)) else { return Ok(false) };
                let content =
                    Content { bytes: event.into(), at_end: true, offset: Some(Value::Number(0)), ..Content::default() };
                (Buffer::Event, Test::Content(Box::new(content)))
            }
            (name @ ("filemd5" | "filesha1" | "filesha256"), Some(value)) => {
                (Buffer::FileDigest, self.shared.sets.read_digests(name, value, self.shared.limits)?)
            }
            ("tls.cert_chain_len", Some(value)) => (Buffer::TlsChain, Test::Size(values::sizes(value)?)),
            ("tls.version" | "ssl_version" | "ssl_state" | "tls_cert_valid" | "tls_cert_expired", _) => {
                let Some(facts) = facts_of_tls(option) else { return Ok(false) };
                (Buffer::TlsFact, Test::Pcre(Box::new(values::pcre(format!("/^(?:{facts})$/").as_bytes())?.0)))
            }
            ("tls.subject", Some(value)) => (Buffer::TlsSubject, Test::Content(Box::new(values::content(value)?.0))),
            ("tls.issuerdn", Some(value)) => (Buffer::TlsIssuer, Test::Content(Box::new(values::content(value)?.0))),
            ("tls.fingerprint", Some(value)) => {
                let mut content = part_of_name(value, "")?;
                modify(&mut content, "startswith", "", &self.names)?;
                (Buffer::TlsFingerprint, Test::Content(Box::new(Content { at_end: true, ..content })))
            }
            _ => return Ok(false),
        };
        if self.whole.len() >= self.shared.limits.tests_max {
            return Err("too many tests".into());
        }
        self.whole.push(Section { buffer, way: None, transforms: Vec::new(), tests: vec![test] });
        Ok(true)
    }

    /// A keyword that stands before contents.
    fn choose_buffer(&mut self, option: &Opt<'_>) -> bool {
        if option.name == "base64_data" {
            self.in_base64 = true;
            return true;
        }
        let address = match option.name {
            "ip.src" => Some(Port::Source),
            "ip.dst" => Some(Port::Target),
            _ => None,
        };
        if address.is_some() {
            (self.address, self.in_base64) = (address, false);
            return true;
        }
        let Some(buffer) = Buffer::sticky(option.name) else { return false };
        let way = match option.value {
            Some(b"to_server") => Some(Direction::ToServer),
            Some(b"to_client") => Some(Direction::ToClient),
            _ => None,
        };
        let narrowed = match option.value.filter(|_| way.is_none()) {
            None => Some((buffer, part_of_random(option.name))),
            Some(b"mime") if option.name == "file_data" => Some((buffer, None)),
            Some(value) if option.name.starts_with("http_") => narrowed(buffer, value),
            Some(_) => None,
        };
        let Some((buffer, part)) = narrowed else { return false };
        (self.buffer, self.in_base64, self.is_fresh) = (buffer, false, buffer.is_multi());
        (self.way, self.address) = (way.filter(|_| buffer.side() == Side::Both), None);
        self.transforms = part.into_iter().collect();
        true
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

    /// Options about bits and numbers of flows.
    fn state(&mut self, name: &str, value: &[u8]) -> Result<bool, String> {
        let value = text(value);
        match name {
            "flowbits" | "hostbits" => self.flow_bits(name, &value)?,
            "xbits" => self.x_bits(&value)?,
            "flowint" => self.flow_number(&value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn bit(&mut self, family: &str, name: &str) -> u32 {
        let next = u32::try_from(self.shared.bits.len()).unwrap_or(u32::MAX);
        *self.shared.bits.entry(format!("{family} {}", name.trim())).or_insert(next)
    }

    fn flow_bits(&mut self, family: &str, value: &str) -> Result<(), String> {
        let mut list = value.split(',').map(str::trim);
        let verb = match list.next().unwrap_or_default() {
            "noalert" => {
                self.rule.is_silent = true;
                return Ok(());
            }
            "reset" => return Ok(()),
            verb => bit_verb(verb).ok_or_else(|| format!("no verb {verb}"))?,
        };
        let name = list.next().filter(|name| !name.is_empty()).ok_or("no name")?;
        if name.split(['|', '&']).any(|name| name.trim().contains(char::is_whitespace)) {
            return Err(format!("{name:?} is no name; a ; may be missing"));
        }
        let is_any = name.contains('|');
        let separator = if is_any { '|' } else { '&' };
        let names: Vec<u32> = name.split(separator).map(|name| self.bit(family, name)).collect();
        let scope = match (family, list.next()) {
            ("hostbits", Some("dst")) => Scope::Target,
            ("hostbits", Some("both")) => Scope::Pair,
            ("hostbits", _) => Scope::Source,
            _ => Scope::Flow,
        };
        if is_any {
            self.rule.bits.push(Bits { is_xbits: false, scope, names, verb });
        } else {
            self.rule.bits.extend(names.into_iter().map(|name| Bits {
                is_xbits: false,
                scope,
                names: vec![name],
                verb,
            }));
        }
        Ok(())
    }

    fn x_bits(&mut self, value: &str) -> Result<(), String> {
        let (mut scope, mut expire) = (Scope::Source, 30);
        let mut list = value.split(',').map(str::trim);
        let verb = list.next().unwrap_or_default();
        if verb == "noalert" {
            self.rule.is_silent = true;
            return Ok(());
        }
        let name = list.next().ok_or("no name")?;
        for item in list {
            let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
            match (word, rest.trim()) {
                ("track", "ip_src") => scope = Scope::Source,
                ("track", "ip_dst") => scope = Scope::Target,
                ("track", "ip_pair") => scope = Scope::Pair,
                ("track", "tx") => scope = Scope::Transaction,
                ("expire" | "expire:", seconds) => expire = seconds.parse().map_err(|_| "no number of seconds")?,
                _ => return Err(format!("{item} is not known")),
            }
        }
        let verb = match bit_verb(verb).ok_or_else(|| format!("no verb {verb}"))? {
            BitVerb::Set(_) => BitVerb::Set(expire),
            verb => verb,
        };
        let name = self.bit("xbits", name);
        self.rule.bits.push(Bits { is_xbits: true, scope, names: vec![name], verb });
        Ok(())
    }

    fn flow_number(&mut self, value: &str) -> Result<(), String> {
        let list: Vec<&str> = value.split(',').map(str::trim).collect();
        let (Some(name), Some(verb)) = (list.first(), list.get(1)) else { return Err("no name and verb".into()) };
        let named = |name: &&&str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '-');
        let amount = match list.get(2) {
            Some(value) => number(value)
                .map(Amount::Number)
                .or_else(|| Some(value).filter(named).map(|name| Amount::Named(self.bit("flowint", name)))),
            None => None,
        };
        let verb = match (*verb, amount) {
            ("=", Some(amount)) => BitVerb::Put(amount),
            ("+", Some(amount)) => BitVerb::Add(amount),
            ("-", Some(amount)) => BitVerb::Subtract(amount),
            ("isset", _) => BitVerb::IsSet,
            ("notset" | "isnotset", _) => BitVerb::IsNotSet,
            (order, Some(amount)) => {
                BitVerb::Compare(Order::named(order.as_bytes()).ok_or("an order that is not known")?, amount)
            }
            _ => return Err("no number and no name of one".into()),
        };
        let name = self.bit("flowint", name);
        self.rule.bits.push(Bits { is_xbits: false, scope: Scope::Flow, names: vec![name], verb });
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

/// The buffer that Snort 3's words behind a keyword choose, and the part of it: a field of a head, a part of a URI.
/// The part of the random bytes of TLS that a keyword means.
fn part_of_random(name: &str) -> Option<Transform> {
    let expression: &[u8] = match name {
        "tls.random_time" => b"\"(?s)^(.{4})\"",
        "tls.random_bytes" => b"\"(?s)^.{4}(.{28})\"",
        _ => return None,
    };
    Transform::read("pcrexform", Some(expression))?.ok()
}

/// The facts of a handshake that an option asks for, as an expression; none where they are not known.
fn facts_of_tls(option: &Opt<'_>) -> Option<String> {
    let value = option.value.map(text);
    let version = |name: &str| handshake::version_named(name.trim()).map(|number| format!("version {number}"));
    let state = |name: &str| {
        let is_known = matches!(name.trim(), "client_hello" | "server_hello" | "server_keyx");
        is_known.then(|| format!("state {}", name.trim()))
    };
    let all = match (option.name, value.as_deref()) {
        ("tls_cert_valid", None) => Some(vec!["certificate valid".into()]),
        ("tls_cert_expired", None) => Some(vec!["certificate expired".into()]),
        ("tls.version", Some(name)) => version(name).map(|fact| vec![fact]),
        ("ssl_version", Some(names)) => match names.trim().strip_prefix('!') {
            Some(names) => {
                let excluded: Vec<String> = names.split(',').map(version).collect::<Option<_>>()?;
                let others = handshake::VERSIONS.iter().filter_map(|(name, _)| version(name));
                Some(others.filter(|fact| !excluded.contains(fact)).collect())
            }
            None => names.split(',').map(version).collect(),
        },
        ("ssl_state", Some(names)) => names.split([',', '|']).map(state).collect::<Option<Vec<String>>>(),
        _ => None,
    };
    all.map(|all| all.join("|"))
}

fn narrowed(buffer: Buffer, words: &[u8]) -> Option<(Buffer, Option<Transform>)> {
    let mut chosen = (buffer, None);
    for item in items(words) {
        let item = text(item);
        let (word, name) = item.split_once(char::is_whitespace).unwrap_or((&item, ""));
        chosen = match (buffer, word) {
            // They say when the rule is tried.
            (_, "request" | "with_header" | "with_body" | "with_trailer") => continue,
            (Buffer::Header | Buffer::HeaderRaw, "field") => match Buffer::of_field(name.trim().as_bytes()) {
                Some(of_field) => (of_field, None),
                None => (buffer, Some(Transform::Field(name.trim().into()))),
            },
            // What is in front of the path is in the URI as it was sent.
            (Buffer::Uri | Buffer::UriRaw, "scheme" | "host" | "port") => {
                (Buffer::UriRaw, Transform::part_of_uri(word))
            }
            (Buffer::Uri | Buffer::UriRaw, "path" | "query" | "fragment") => (buffer, Transform::part_of_uri(word)),
            _ => return None,
        };
    }
    Some(chosen)
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

fn bit_verb(name: &str) -> Option<BitVerb> {
    Some(match name {
        "set" | "setx" => BitVerb::Set(0),
        "unset" => BitVerb::Unset,
        "toggle" => BitVerb::Toggle,
        "isset" => BitVerb::IsSet,
        "isnotset" => BitVerb::IsNotSet,
        _ => return None,
    })
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
