//! Rspamd: a client hands over a mail by HTTP, with what it knows of it, and is told its score, the rules that hit, what to do,
//! and which header fields to change.
//!
//! What signatures and the other findings ask for is told as an action too, under the listener's policy, with the finding as a
//! symbol: a client that asks here needs no other scanner.

use std::borrow::Cow;

use flow::{Action, Field, Flow, Points, Protocol, Score, Verdict};
use proto::rspamd::{self, Answer, Command, Description, Request, Server, ServerEvent};
use serde_json::{Map, Value, json};

use super::{Announced, Dialect, Event, Mail, Refusal, Telling};
use crate::message::memory::What;
use crate::message::{spam, trace};

/// The symbol of what was found by something else than rules of spam.
const FOUND: &str = "SLUICE_FOUND";

/// The field by which a mail is known.
const MESSAGE_ID: &str = "message-id";

/// The field that a tag changes.
const SUBJECT: &str = "subject";

/// From which score on Rspamd refuses, where nothing else is set: what is shown, not what is done.
const USUAL_REJECT: Points = Points(15_000);

impl Dialect for Server {
    type Request = Request;

    const FIELDS: &[Cow<'static, str>] = &[Cow::Borrowed(MESSAGE_ID), Cow::Borrowed(SUBJECT)];

    const NEEDS_PASSWORD: bool = true;
    const SCORES_NOTHING: bool = false;

    fn step(&mut self, input: &[u8]) -> (usize, Event<Request>) {
        let (taken, event) = Server::step(self, input);
        let ServerEvent::Asked(mut request) = event else { return (taken, event.into()) };
        if let Some(metadata) = request.metadata.take() {
            match description(&metadata) {
                Ok(description) => request.describe(description),
                Err(why) => return (taken, Server::refuse(self, &rspamd::Refusal::Malformed(why)).into()),
            }
        }
        (taken, Event::Asked(*request))
    }

    fn finish(&mut self) -> Event<Request> {
        Server::finish(self).into()
    }

    fn user(request: &Request) -> Option<&str> {
        request.user.as_deref()
    }

    fn telling(request: &Request) -> Option<Telling> {
        let what = match request.command {
            Command::LearnSpam => What::Spam,
            Command::LearnHam => What::Ham,
            _ => return None,
        };
        Some(Telling { what: Some(what), password: request.password.as_deref().map(Into::into) })
    }

    fn told(&mut self, _: &Request, has_changed: bool) {
        Server::learned(self, has_changed);
    }

    fn announced(request: &Request) -> Announced {
        let flow = Flow {
            protocol: Protocol::Rspamd,
            client: request.ip,
            hello: (*request.helo).into(),
            login: request.user.as_deref().map(Into::into),
            sender: (*request.from).into(),
            recipients: request.rcpt.iter().map(|rcpt| (**rcpt).into()).collect(),
            ..Flow::default()
        };
        Announced {
            flow,
            length: request.length,
            is_compressed: false,
            gives_back: false,
            has_text: false,
            has_links: true,
        }
    }

    fn answer(&mut self, mail: &mut Mail<Request>, verdict: &Verdict, score: &Score) -> Result<(), &'static str> {
        let reject = mail.spam.scoring.reject.unwrap_or(USUAL_REJECT);
        let symbols: Vec<&str> = score.hits.iter().map(|hit| &*hit.rule).collect();
        let told = mail.told(verdict, score);
        let told = if mail.request.command == Command::CheckDefault { below_default(told, score) } else { told };
        let json = told.to_string();
        let answer = Answer {
            is_spam: score.is_spam(),
            scores: [score.points, score.required, reject].map(Points::value),
            action: mail.action(verdict, score),
            symbols: &symbols,
            json: json.as_bytes(),
        };
        Server::answer(self, &answer);
        Ok(())
    }

    fn refuse(&mut self, refusal: Refusal) {
        Server::refuse(
            self,
            &match refusal {
                Refusal::Malformed(why) => rspamd::Refusal::Malformed(why),
                Refusal::Untold => rspamd::Refusal::Unavailable("learning is not enabled here".into()),
                Refusal::Forbidden => rspamd::Refusal::Forbidden,
                Refusal::TooLarge => rspamd::Refusal::TooLarge,
                Refusal::Unavailable(why) => rspamd::Refusal::Unavailable(why),
                Refusal::Late => rspamd::Refusal::Unavailable("the inspection took too long".into()),
            },
        );
    }

    fn is_refused(&self) -> bool {
        Server::is_refused(self)
    }

    fn outbox(&self) -> &[u8] {
        Server::outbox(self)
    }

    fn sent(&mut self) {
        Server::sent(self);
    }
}

impl From<ServerEvent> for Event<Request> {
    fn from(event: ServerEvent) -> Event<Request> {
        match event {
            ServerEvent::Idle => Event::Idle,
            ServerEvent::Asked(request) => Event::Asked(*request),
            ServerEvent::Content => Event::Content,
            ServerEvent::End => Event::End,
            ServerEvent::Closed => Event::Closed,
        }
    }
}

/// A Message-ID without brackets, and without what stands around them.
fn bare_id(field: &str) -> &str {
    let id = field.split_once('<').map_or(field, |(_, behind)| behind.split('>').next().unwrap_or_default());
    id.trim_matches(['<', '>', ' '])
}

impl Mail<Request> {
    /// Action, in Rspamd's words.
    fn action(&self, verdict: &Verdict, score: &Score) -> &'static str {
        match verdict.action.max(self.spam.scoring.action(score.points)) {
            Action::Reject | Action::Blank => "reject",
            Action::Quarantine => "quarantine",
            _ if score.is_spam() && !self.spam.subject_tag.is_empty() => "rewrite subject",
            Action::Tag => "add header",
            Action::Pass if score.is_spam() => "add header",
            Action::Pass => "no action",
        }
    }

    /// The answer, as Rspamd's page of its protocol has it.
    fn told(&self, verdict: &Verdict, score: &Score) -> Value {
        let action = self.action(verdict, score);
        let mut symbols: Map<String, Value> = score.hits.iter().map(|hit| symbol(&hit.rule, hit.points, &[])).collect();
        if verdict.action > Action::Pass {
            symbols.extend([symbol(FOUND, Points(0), &[&self.passage.reason(verdict)])]);
        }
        let fields = spam::fields(&self.spam, score, "\n");
        let removed: Map<String, Value> = fields.iter().map(|(name, _)| (name.clone(), json!(0))).collect();
        let message_id = self.passage.message_id();
        let mut told = json!({
            "is_skipped": false,
            "score": score.points.value(),
            "required_score": self.spam.scoring.reject.unwrap_or(USUAL_REJECT).value(),
            "action": action,
            "thresholds": self.thresholds(score),
            "symbols": symbols,
            "messages": {},
            "message-id": message_id.as_deref().map_or("undef", bare_id),
            "time_real": self.passage.age().as_secs_f64(),
            "milter": { "add_headers": added(fields), "remove_headers": removed },
        });
        if let Some(links) = &score.links
            && !(links.hosts.is_empty() && links.addresses.is_empty())
        {
            told["urls"] = json!(links.hosts);
            told["emails"] = json!(links.addresses);
        }
        if action == "reject" {
            told["messages"] = json!({ "smtp_message": trace::printable(&self.passage.refusal(verdict)) });
        }
        if action == "rewrite subject" {
            let fields = self.passage.fields();
            let field = fields.iter().find(|field| field.name().eq_ignore_ascii_case(SUBJECT.as_bytes()));
            told["subject"] = json!(subject(&self.spam.subject_tag, field));
        }
        told
    }

    /// From which score on what is done.
    fn thresholds(&self, score: &Score) -> Value {
        let mark = if self.spam.subject_tag.is_empty() { "add header" } else { "rewrite subject" };
        let mut thresholds = json!({ mark: score.required.value() });
        let scoring = &self.spam.scoring;
        for (name, bound) in [("quarantine", scoring.quarantine), ("reject", scoring.reject)] {
            if let Some(bound) = bound {
                thresholds[name] = json!(bound.value());
            }
        }
        thresholds
    }
}

/// The fields to add, as Rspamd has them without a place: a text, or a list where several have one name.
fn added(fields: Vec<(String, String)>) -> Map<String, Value> {
    let mut added = Map::new();
    for (name, value) in fields {
        match added.entry(name).or_insert(Value::Null) {
            Value::Array(values) => values.push(value.into()),
            one @ Value::Null => *one = value.into(),
            one => *one = json!([one.take(), value]),
        }
    }
    added
}

/// The new subject: clients take it whole, since Rspamd expands its template itself.
///
/// Octets that are not UTF-8 are read as Latin-1, as JSON has characters alone.
fn subject(tag: &str, field: Option<&Field>) -> String {
    let Some(field) = field else { return tag.to_owned() };
    let value = field.value();
    let text = match str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        // The field is reported up to a bound, which may divide a character.
        Err(error) if error.error_len().is_none() && field.0.len() >= Field::BYTES_MAX => {
            String::from_utf8_lossy(&value[..error.valid_up_to()]).into_owned()
        }
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect(),
    };
    let line: String = text.chars().filter(|letter| *letter == '\t' || !letter.is_control()).collect();
    format!("{tag} {line}")
}

/// Reads metadata: an object, of which other values than texts are passed over, as Rspamd does.
fn description(metadata: &[u8]) -> Result<Description, &'static str> {
    let Ok(Value::Object(mut said)) = serde_json::from_slice(metadata) else {
        return Err("the metadata are no object of JSON");
    };
    if said.contains_key("file") || said.contains_key("shm") {
        return Err("no files are read here: send the message");
    }
    let mut text = |name: &str| match said.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let mut description = Description {
        ip: text("ip"),
        helo: text("helo"),
        from: text("from"),
        user: text("user"),
        queue_id: text("queue_id"),
        rcpt: Vec::new(),
    };
    let of_rcpt = match said.remove("rcpt") {
        Some(Value::Array(all)) => all,
        one => one.into_iter().collect(),
    };
    description.rcpt = of_rcpt.into_iter().filter_map(|rcpt| rcpt.as_str().map(str::to_owned)).collect();
    Ok(description)
}

/// A rule that hit, by its name.
fn symbol(name: &str, points: Points, options: &[&str]) -> (String, Value) {
    let points = points.value();
    let mut value = json!({ "name": name, "score": points, "metric_score": points });
    if !options.is_empty() {
        value["options"] = json!(options);
    }
    (name.into(), value)
}

/// The answer in the form of before `/checkv2`: what is said of the score, and the symbols by their names, below `default`.
fn below_default(mut told: Value, score: &Score) -> Value {
    let Some(fields) = told.as_object_mut() else { return told };
    let mut below = Map::from_iter([("is_spam".to_owned(), json!(score.is_spam()))]);
    for name in ["is_skipped", "score", "required_score", "action"] {
        below.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    if let Some(Value::Object(symbols)) = fields.remove("symbols") {
        below.extend(symbols);
    }
    fields.insert("default".to_owned(), Value::Object(below));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_subject_is_told_whole() {
        for (field, wanted) in [
            (&b"Subject: buy now\r\n"[..], "[SPAM] buy now"),
            (b"subject :buy\r\n\tnow\r\n", "[SPAM] buy\tnow"),
            (b"Subject: Gr\xc3\xbc\xc3\x9fe %s\n", "[SPAM] Gr\u{fc}\u{df}e %s"),
            (b"Subject: Gr\xfc\xdfe\0\n", "[SPAM] Gr\u{fc}\u{df}e"),
            (b"Subject:\r\n", "[SPAM] "),
        ] {
            assert_eq!(subject("[SPAM]", Some(&Field(field.into()))), wanted);
        }
        assert_eq!(subject("[SPAM]", None), "[SPAM]");
        let long = format!("Subject: {}", "\u{fc}".repeat(600));
        let cut = Field(long.as_bytes()[..Field::BYTES_MAX].into());
        assert_eq!(subject("*", Some(&cut)), format!("* {}", "\u{fc}".repeat(507)));
    }

    #[test]
    fn fields_to_add_are_texts_and_lists_where_several_have_a_name() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let fields =
            vec![field("X-Spam-A", "1"), field("X-Spam-B", "2"), field("X-Spam-A", "3"), field("X-Spam-A", "4")];
        assert_eq!(Value::Object(added(fields)), json!({ "X-Spam-A": ["1", "3", "4"], "X-Spam-B": "2" }));
    }

    #[test]
    fn a_message_id_is_what_stands_in_brackets() {
        for field in ["<a@b>", "a@b", "<a@b> (c)", "(c) <a@b>", "<a@b", "< a@b >", "a@b>"] {
            assert_eq!(bare_id(field), "a@b", "{field}");
        }
        assert_eq!((bare_id("<>"), bare_id("(c)")), ("", "(c)"));
    }
}
