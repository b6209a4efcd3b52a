//! Runs the scripts of imaptest, where they are (`SLUICE_DATA`): a command, the answer that it must have, and what must or must
//! not be told meanwhile.
//!
//! ```text
//!   capabilities: SORT          what the server has to offer, or the script does not count
//!   connections: 2              1 ok fetch 1 uid       this connection, this answer, this command
//!   messages: all               * 1 fetch (uid $uid1)  told; an unknown variable takes its value
//!   state: auth                 ! 1 fetch (uid $x)     not told
//! ```

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Client, Door, Server};

const MAILBOX: &str = "imaptest";

/// A value in a reply or a script.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Atom(String),
    Literal(Vec<u8>),
    List(Vec<Value>),
    Code(Vec<Value>),
}

/// An untagged reply; of one that is about a message, the number that this had when the command was sent.
#[derive(Debug)]
struct Told {
    values: Vec<Value>,
    was: Option<u32>,
}

struct Connection {
    client: Client,
    capabilities: String,
    /// The numbers that messages had when the last command was sent.
    were: Vec<u32>,
    told: Vec<Told>,
    /// Answers that have come before they were asked for.
    answers: Vec<(String, String)>,
    tags: u32,
}

struct Script {
    head: HashMap<String, String>,
    /// A command and what follows from it.
    steps: Vec<(String, Vec<String>)>,
    mails: Vec<(String, Vec<u8>)>,
}

struct Run {
    script: Script,
    connections: Vec<Connection>,
    variables: HashMap<String, String>,
    appended: usize,
}

fn tokens(text: &[u8], at: &mut usize, end: Option<u8>) -> Vec<Value> {
    let mut values = Vec::new();
    while let Some(&byte) = text.get(*at) {
        match byte {
            _ if Some(byte) == end => {
                *at += 1;
                return values;
            }
            b' ' => *at += 1,
            b'(' | b'[' => {
                *at += 1;
                let list = tokens(text, at, Some(if byte == b'(' { b')' } else { b']' }));
                values.push(if byte == b'(' { Value::List(list) } else { Value::Code(list) });
            }
            b'"' => {
                let mut string = Vec::new();
                *at += 1;
                while let Some(&byte) = text.get(*at).filter(|&&byte| byte != b'"') {
                    *at += if byte == b'\\' { 1 } else { 0 };
                    string.extend(text.get(*at));
                    *at += 1;
                }
                *at += 1;
                values.push(Value::Atom(String::from_utf8_lossy(&string).into_owned()));
            }
            b'{' | b'~' if literal(&text[*at..]).is_some() => {
                let (length, mark) = literal(&text[*at..]).unwrap();
                *at += mark;
                values.push(Value::Literal(text[*at..*at + length].to_vec()));
                *at += length;
            }
            _ => values.push(Value::Atom(atom(text, at, end))),
        }
    }
    values
}

/// Up to a blank or the end of what it is in; brackets within it belong to it.
fn atom(text: &[u8], at: &mut usize, end: Option<u8>) -> String {
    let (start, mut depth) = (*at, 0);
    while let Some(&byte) = text.get(*at) {
        match byte {
            b'[' => depth += 1,
            b']' if depth > 0 => depth -= 1,
            b' ' | b'(' | b')' if depth == 0 => break,
            _ if Some(byte) == end && depth == 0 => break,
            _ => {}
        }
        *at += 1;
    }
    // What stands alone is passed over.
    *at += usize::from(*at == start);
    String::from_utf8_lossy(&text[start..*at]).into_owned()
}

/// The length of a literal, and of its mark.
fn literal(text: &[u8]) -> Option<(usize, usize)> {
    let skip = usize::from(text.starts_with(b"~"));
    let digits: String =
        text.get(skip + 1..)?.iter().map(|&byte| char::from(byte)).take_while(char::is_ascii_digit).collect();
    let mark = skip + 1 + digits.len();
    let is_one = text.get(skip) == Some(&b'{') && text.get(mark..)?.starts_with(b"}\r\n");
    is_one.then(|| Some((digits.parse().ok()?, mark + 3)))?
}

impl Script {
    fn read(path: &Path) -> Script {
        let text = fs::read_to_string(path).unwrap();
        // What stands between {{{ and }}} is a literal, lines and all.
        let mut whole = String::new();
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once("{{{\n") {
            let (inside, behind) = behind.split_once("}}}").unwrap();
            let inside = inside.strip_suffix('\n').unwrap_or(inside);
            // What is binary stands there byte for byte.
            let (length, inside) = match before.ends_with('~') {
                true => (inside.len(), inside.replace('\n', "\u{2}")),
                false => (inside.replace('\n', "\r\n").len(), inside.replace('\n', "\u{1}")),
            };
            whole += &format!("{before}{{{length}}}\u{1}{inside}");
            rest = behind;
        }
        whole += rest;
        let (mut head, mut steps) = (HashMap::new(), Vec::<(String, Vec<String>)>::new());
        for line in whole.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let line = line.replace('\u{1}', "\r\n").replace('\u{2}', "\n");
            match line.split_once(": ") {
                Some((key, value)) if steps.is_empty() && !key.contains(' ') => {
                    head.insert(key.to_owned(), value.trim().to_owned());
                }
                _ if line.starts_with("* ") || line.starts_with("! ") => steps.last_mut().unwrap().1.push(line),
                // The answer of a command that had none in front of it.
                Some(_) | None if line.starts_with("no [") => {
                    let last = &mut steps.last_mut().unwrap().0;
                    *last = format!("no {last}");
                }
                _ => steps.push((line, Vec::new())),
            }
        }
        Script { head, steps, mails: mails(&path.with_extension("mbox")) }
    }

    fn number(&self, key: &str) -> Option<usize> {
        self.head.get(key)?.parse().ok()
    }
}

/// The mails of an mbox, each with the date when it came.
fn mails(path: &Path) -> Vec<(String, Vec<u8>)> {
    let text = fs::read_to_string(path).unwrap_or_else(|_| {
        (1..=9).map(|at| format!("From x  Fri Feb 22 0{at}:00:00 2008\nSubject: {at}\n\nText {at}\n\n")).collect()
    });
    let text = text.replace("\r\n", "\n");
    let mut mails: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("From ") {
            Some(rest) if mails.last().is_none_or(|(_, mail)| mail.is_empty() || mail.ends_with("\n\n")) => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                let date = format!("{:0>2}-{}-{} {} +0000", words[3], words[2], words[5], words[4]);
                mails.push((date, String::new()));
            }
            _ => mails.last_mut().unwrap().1.push_str(line),
        }
    }
    let count = mails.len();
    let whole = |(at, (date, mail)): (usize, (String, String))| {
        // The empty line in front of the next.
        let mail = if at + 1 < count { mail.strip_suffix('\n').unwrap_or(&mail).to_owned() } else { mail };
        (date, mail.replace('\n', "\r\n").into_bytes())
    };
    mails.into_iter().enumerate().map(whole).collect()
}

impl Connection {
    async fn new(server: &Server) -> Connection {
        let mut client = server.connect(Door::Imap);
        let greeting = client.line().await;
        assert!(greeting.starts_with("* OK"), "{greeting}");
        let (were, told, answers) = (Vec::new(), Vec::new(), Vec::new());
        let mut connection = Connection { client, capabilities: String::new(), were, told, answers, tags: 0 };
        connection.ask("LOGIN ann secret").await;
        connection.ask("CAPABILITY").await;
        connection.capabilities = format!("{:?}", connection.told).to_ascii_uppercase();
        connection
    }

    /// A command to which the answer is OK.
    async fn ask(&mut self, command: &str) {
        let tag = self.send(command.as_bytes()).await;
        let answer = self.answer(&tag).await;
        assert!(answer.starts_with("OK"), "{command}: {answer}");
    }

    async fn send(&mut self, command: &[u8]) -> String {
        self.tags += 1;
        let tag = format!("t{}", self.tags);
        self.told.clear();
        self.were = (1..=u32::try_from(self.were.len()).unwrap()).collect();
        self.client.send(&[tag.as_bytes(), b" ", command, b"\r\n"].concat()).await;
        tag
    }

    /// Reads up to the answer with this tag.
    async fn answer(&mut self, tag: &str) -> String {
        loop {
            if let Some(at) = self.answers.iter().position(|(known, _)| known == tag) {
                return self.answers.remove(at).1;
            }
            let mut reply = self.client.line().await.into_bytes();
            assert!(!reply.is_empty(), "the server has hung up");
            while let Some(length) = announced(&reply) {
                reply.extend_from_slice(b"\r\n");
                reply.extend(self.client.exactly(length).await);
                reply.extend(self.client.line().await.into_bytes());
            }
            match reply.strip_prefix(b"* ") {
                Some(untagged) => self.hear(tokens(untagged, &mut 0, None)),
                None if reply.starts_with(b"+") => {}
                None => {
                    let text = String::from_utf8_lossy(&reply).into_owned();
                    let (tag, answer) = text.split_once(' ').unwrap();
                    self.answers.push((tag.into(), answer.into()));
                }
            }
        }
    }

    fn hear(&mut self, values: Vec<Value>) {
        let (mut was, mut number) = (None, None);
        if let [Value::Atom(first), Value::Atom(word), ..] = values.as_slice() {
            number = first.parse::<usize>().ok().map(|number| (number, word.to_ascii_uppercase()));
        }
        match number {
            Some((count, word)) if word == "EXISTS" => self.were.resize(count, 0),
            Some((number, word)) if word == "EXPUNGE" => was = Some(self.were.remove(number - 1)),
            Some((number, word)) if word == "FETCH" => was = self.were.get(number - 1).copied(),
            _ => {}
        }
        self.told.push(Told { values, was });
    }
}

fn announced(line: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(line.strip_suffix(b"}")?).ok()?;
    text.rsplit_once('{')?.1.parse().ok()
}

impl Run {
    /// With its values in place of known variables; what is unknown stays.
    fn expanded(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            out += before;
            if let Some(behind) = behind.strip_prefix('$') {
                (out, rest) = (out + "$", behind);
                continue;
            }
            let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
            let (name, after) = match behind.strip_prefix('{').and_then(|behind| behind.split_once('}')) {
                Some(braced) => braced,
                None => behind.split_at(behind.find(|character| !is_name(character)).unwrap_or(behind.len())),
            };
            match self.variables.get(name) {
                Some(value) => out += value,
                None => out += &format!("${name}"),
            }
            rest = after;
        }
        out + rest
    }

    /// Whether a reply is what the script has; then its unknown variables have their values.
    fn matches(&mut self, wanted: &str, told: &Told) -> bool {
        let before = self.variables.clone();
        let values = tokens(wanted.as_bytes(), &mut 0, None);
        let mut values = values.as_slice();
        let mut found = told.values.as_slice();
        if let Some(Value::Atom(number)) = values.first()
            && let Some(was) = number.strip_prefix('$').and_then(|digits| digits.parse::<u32>().ok())
        {
            if told.was != Some(was) {
                return false;
            }
            (values, found) = (&values[1..], &found[1..]);
        }
        let is_text = matches!(values.first(), Some(Value::Atom(word)) if word.eq_ignore_ascii_case("ok"));
        let is_same = (is_text || values.len() == found.len())
            && values.len() <= found.len()
            && values.iter().zip(found).all(|(wanted, found)| self.is(wanted, found));
        if !is_same {
            self.variables = before;
        }
        is_same
    }

    fn is(&mut self, wanted: &Value, found: &Value) -> bool {
        match (wanted, found) {
            (Value::Literal(wanted), Value::Literal(found)) => wanted == found,
            (Value::Literal(wanted), Value::Atom(found)) => wanted == found.as_bytes(),
            (Value::Code(wanted), Value::Code(found)) => {
                wanted.len() <= found.len() && wanted.iter().zip(found).all(|(wanted, found)| self.is(wanted, found))
            }
            (Value::List(wanted), Value::List(found)) => self.is_list(wanted, found),
            (Value::Atom(wanted), found) => {
                let expanded = self.expanded(wanted);
                if let Some(name) = expanded.strip_prefix('$').filter(|name| !name.is_empty() && **wanted == expanded) {
                    let value = match found {
                        Value::Atom(value) => value.clone(),
                        Value::Literal(value) => String::from_utf8_lossy(value).into_owned(),
                        _ => return false,
                    };
                    self.variables.insert(name.to_owned(), value);
                    return true;
                }
                matches!(found, Value::Atom(found) if found.eq_ignore_ascii_case(&expanded))
            }
            _ => false,
        }
    }

    /// Compares lists: flags and name-value pairs may hold more than wanted, in any order.
    fn is_list(&mut self, wanted: &[Value], found: &[Value]) -> bool {
        if matches!(wanted, [Value::Atom(word)] if word == "$!unordered") {
            return true;
        }
        let is_name = |value: &Value| matches!(value, Value::Atom(word) if word.starts_with(|character: char| character.is_ascii_alphabetic()));
        let is_flags = wanted.iter().all(|value| matches!(value, Value::Atom(word) if word.starts_with('\\')));
        if is_flags {
            return wanted.iter().all(|flag| found.iter().any(|found| self.clone_is(flag, found)));
        }
        let is_pairs = wanted.len().is_multiple_of(2) && wanted.iter().step_by(2).all(is_name);
        if !is_pairs {
            let pairs = wanted.iter().zip(found).collect::<Vec<_>>();
            return wanted.len() == found.len() && pairs.into_iter().all(|(wanted, found)| self.is(wanted, found));
        }
        wanted.chunks(2).all(|wanted| {
            found.chunks(2).any(|found| {
                matches!((&wanted[0], &found[0]), (Value::Atom(one), Value::Atom(other)) if one.eq_ignore_ascii_case(other))
                    && found.len() == 2
                    && self.is(&wanted[1], &found[1])
            })
        })
    }

    fn clone_is(&mut self, wanted: &Value, found: &Value) -> bool {
        self.is(wanted, found)
    }

    async fn append(&mut self, connection: usize, mailbox: &str, more: &str) -> String {
        let (date, mail) = self.script.mails[self.appended % self.script.mails.len()].clone();
        self.appended += 1;
        let more = if more.is_empty() { String::new() } else { format!("{more} ") };
        let command = format!("APPEND \"{mailbox}\" {more}\"{date}\" {{{}+}}\r\n", mail.len());
        let connection = &mut self.connections[connection];
        let tag = connection.send(&[command.as_bytes(), &mail].concat()).await;
        connection.answer(&tag).await
    }

    /// Everything up to the first command.
    async fn begin(&mut self) {
        let state = self.script.head.get("state").cloned().unwrap_or("selected".into());
        if state == "auth" || state == "nonauth" {
            return;
        }
        self.connections[0].ask(&format!("CREATE {MAILBOX}")).await;
        if state == "created" {
            return;
        }
        let all = self.script.mails.len();
        for _ in 0..self.script.number("messages").unwrap_or(all) {
            let answer = self.append(0, MAILBOX, "").await;
            assert!(answer.starts_with("OK"), "{answer}");
        }
        if state != "appended" {
            for connection in &mut self.connections {
                connection.ask(&format!("SELECT {MAILBOX}")).await;
            }
        }
    }

    /// One command, and what is to follow.
    async fn step(&mut self, line: &str, wanted: &[String]) -> Result<(), String> {
        let (mut connection, mut line) = (0, line);
        if self.connections.len() > 1 {
            let (number, rest) = line.split_once(' ').unwrap();
            (connection, line) = (number.parse::<usize>().unwrap() - 1, rest);
        }
        let (result, command) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(number) = result.strip_prefix("tag") {
            return self.piped(connection, number, command, wanted).await;
        }
        let command = self.expanded(command);
        let words: Vec<&str> = command.splitn(3, ' ').collect();
        let answer = match words.as_slice() {
            ["append"] => self.append(connection, MAILBOX, "").await,
            ["append", mailbox] => self.append(connection, mailbox, "").await,
            _ => {
                // Literals are not waited for, and are taken even if the command is refused.
                let command = if words[0] == "append" { command.replace("}\r\n", "+}\r\n") } else { command.clone() };
                let connection = &mut self.connections[connection];
                let tag = connection.send(command.as_bytes()).await;
                self.variables.insert("tag".into(), tag.clone());
                connection.answer(&tag).await
            }
        };
        if result != "\"\"" && !answer.to_ascii_lowercase().starts_with(&format!("{result} ")) {
            return Err(format!("{line}: {answer}"));
        }
        self.follows(connection, wanted).map_err(|error| format!("{line}: {error}"))
    }

    /// A command that is not waited for, or the answer to one.
    async fn piped(&mut self, at: usize, number: &str, command: &str, wanted: &[String]) -> Result<(), String> {
        let command = self.expanded(command);
        let connection = &mut self.connections[at];
        if ["ok", "no", "bad"].contains(&command.as_str()) {
            let answer = connection.answer(&format!("p{number}")).await;
            let is_right = answer.to_ascii_lowercase().starts_with(&command);
            return if is_right { Ok(()) } else { Err(format!("tag{number}: {answer}")) };
        }
        connection.client.send(format!("p{number} {command}\r\n").as_bytes()).await;
        if wanted.is_empty() {
            return Ok(());
        }
        let answer = connection.answer(&format!("p{number}")).await;
        connection.answers.push((format!("p{number}"), answer));
        self.follows(at, wanted)
    }

    fn follows(&mut self, connection: usize, wanted: &[String]) -> Result<(), String> {
        let mut told = std::mem::take(&mut self.connections[connection].told);
        for line in wanted {
            let (kind, reply) = line.split_at(2);
            let at = told.iter().position(|told| self.matches(reply, told));
            match (kind, at) {
                ("* ", Some(at)) => drop(told.remove(at)),
                ("! ", None) => {}
                ("* ", _) => return Err(format!("{reply:?} is not told, but {told:?}")),
                _ => return Err(format!("{reply:?} is told")),
            }
        }
        Ok(())
    }
}

/// Runs a script on a server of its own; what it was that the server does not offer.
async fn run(path: &Path) -> Result<Option<String>, String> {
    let server = Server::start();
    let script = Script::read(path);
    let mut connections = Vec::new();
    for _ in 0..script.number("connections").unwrap_or(1) {
        connections.push(Connection::new(&server).await);
    }
    let wanted = script.head.get("capabilities").cloned().unwrap_or_default().to_ascii_uppercase();
    let offered = &connections[0].capabilities;
    if let Some(missing) = wanted.split_whitespace().find(|word| !offered.contains(&format!("ATOM(\"{word}\")"))) {
        return Ok(Some(missing.to_owned()));
    }
    let variables = [("mailbox", MAILBOX), ("mailbox_url", MAILBOX), ("user", "ann"), ("password", "secret")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut run = Run { script, connections, variables, appended: 0 };
    run.begin().await;
    for (line, wanted) in std::mem::take(&mut run.script.steps) {
        run.step(&line, &wanted).await?;
    }
    Ok(None)
}

fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        match entry.is_dir() {
            true => scripts(&entry, found),
            false if entry.extension().is_none() => found.push(entry),
            false => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_of_imaptest_passes() {
    let Some(data) = std::env::var_os("SLUICE_DATA") else { return };
    let mut paths = Vec::new();
    if !Path::new(&data).join("protocols/imaptest").is_dir() {
        return println!("the scripts are not here");
    }
    scripts(&Path::new(&data).join("protocols/imaptest"), &mut paths);
    paths.sort();
    let (mut failed, mut passed, mut missing) = (Vec::new(), 0, Vec::new());
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match run(path).await {
            Ok(None) => passed += 1,
            Ok(Some(_)) => missing.push(name),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    println!("{passed} scripts passed; not offered: {missing:?}");
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
    assert!(missing.is_empty(), "not offered: {missing:?}");
}
