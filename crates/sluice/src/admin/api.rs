//! The HTTP interface: JSON under `/api/v1`, by a token or, to read, by the session of a browser. `openapi.json` describes it.
//!
//! [`ROUTES`] has all of it: a test compares the table with the description.

use std::cell::OnceCell;
use std::sync::LazyLock;

use edge::quarantine::is_id;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use webmail::{Call, Form, Reply};

use super::fault::{Fault, Outcome};
use super::page::kept::{self, Act};
use super::page::settings;
use super::role::{Right, Who};
use super::site::Site;
use super::work::{accounts, domains, queue, record, sets};
use crate::quarantine::place::object;

/// The description of all that is here.
pub const DESCRIPTION: &str = include_str!("openapi.json");

/// The same, read.
static DESCRIBED: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(DESCRIPTION).unwrap_or_default());

/// Bytes of a body, and of a form of a page: ids, and what is done with them.
pub const FORM_BYTES_MAX: usize = 64 << 10;

/// Messages of one answer.
const MESSAGES_MAX: usize = 1_000;

/// A request of a program.
pub struct Ask<'a> {
    pub site: &'a Site,
    pub who: &'a Who,
    pub call: &'a Call,
    /// The body, as it came.
    pub body: &'a [u8],
    /// The parts of the path that a route has in braces.
    names: OnceCell<Vec<&'a str>>,
}

/// A method and a path, and what answers them.
pub struct Route {
    method: &'static str,
    path: &'static str,
    work: fn(&Ask) -> Outcome,
}

const fn get(path: &'static str, work: fn(&Ask) -> Outcome) -> Route {
    Route { method: "GET", path, work }
}

const fn post(path: &'static str, work: fn(&Ask) -> Outcome) -> Route {
    Route { method: "POST", path, work }
}

const fn delete(path: &'static str, work: fn(&Ask) -> Outcome) -> Route {
    Route { method: "DELETE", path, work }
}

/// All of the interface.
pub const ROUTES: [Route; 28] = [
    get("/openapi.json", |_| Ok(DESCRIBED.clone())),
    get("/numbers", numbers),
    get("/configuration", configuration),
    get("/quarantine", list),
    get("/quarantine/{id}", show),
    post("/quarantine/{id}/release", |ask| act(ask, Act::Release)),
    delete("/quarantine/{id}", |ask| act(ask, Act::Delete)),
    get("/accounts", |ask| accounts::list(ask.site, ask.who)),
    post("/accounts", |ask| accounts::add(ask.site, ask.who, ask.read()?)),
    get("/accounts/{name}", |ask| accounts::one(ask.site, ask.who, ask.name())),
    Route {
        method: "PATCH",
        path: "/accounts/{name}",
        work: |ask| accounts::set(ask.site, ask.who, ask.name(), ask.read()?),
    },
    delete("/accounts/{name}", |ask| accounts::remove(ask.site, ask.who, ask.name())),
    Route {
        method: "PUT",
        path: "/accounts/{name}/password",
        work: |ask| accounts::set_password(ask.site, ask.who, ask.name(), ask.read()?),
    },
    delete("/accounts/{name}/second", |ask| accounts::reset_second(ask.site, ask.who, ask.name())),
    get("/queue", |ask| queue::list(ask.site, ask.who, &queue::request(&ask.call.query)?)),
    get("/queue/{mail}", |ask| queue::one(ask.site, ask.who, ask.name())),
    post("/queue/{mail}/hold", |ask| queue::act(ask.site, ask.who, "hold", ask.name())),
    post("/queue/{mail}/release", |ask| queue::act(ask.site, ask.who, "release", ask.name())),
    post("/queue/{mail}/retry", |ask| queue::act(ask.site, ask.who, "retry", ask.name())),
    post("/queue/{mail}/bounce", |ask| queue::act(ask.site, ask.who, "bounce", ask.name())),
    delete("/queue/{mail}", |ask| queue::act(ask.site, ask.who, "delete", ask.name())),
    get("/domains", |ask| domains::list(ask.site, ask.who)),
    post("/domains", |ask| domains::add(ask.site, ask.who, &ask.read()?)),
    get("/domains/{name}", |ask| domains::check(ask.site, ask.who, ask.name())),
    get("/rules", |ask| sets::list(ask.site, ask.who)),
    post("/update", |ask| sets::update(ask.site, ask.who)),
    get("/certificates", |ask| sets::certificates(ask.site, ask.who)),
    get("/audit", |ask| record::list(ask.site, ask.who)),
];

impl<'a> Ask<'a> {
    /// A request, whose route is not known yet.
    pub fn new(site: &'a Site, who: &'a Who, call: &'a Call, body: &'a [u8]) -> Ask<'a> {
        Ask { site, who, call, body, names: OnceCell::new() }
    }

    /// The first part of the path that the route has in braces.
    fn name(&self) -> &str {
        self.names.get().and_then(|names| names.first()).copied().unwrap_or_default()
    }

    /// The body as a value.
    fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let body = if self.body.is_empty() { b"{}" } else { self.body };
        serde_json::from_slice(body)
            .map_err(|error| Fault::wrong(format!("the body is not what is described: {error}")))
    }
}

impl Route {
    /// Checks a query: it has parameters that are described, with values that are.
    fn check(&self, query: &Form) -> Result<(), Fault> {
        let described = &DESCRIBED["paths"][self.path][self.method.to_lowercase()]["parameters"];
        for (name, value) in query.fields() {
            let mut all = described.as_array().into_iter().flatten();
            let known = all.find(|one| one["in"] == "query" && one["name"] == name);
            let known = known.ok_or_else(|| Fault::wrong(format!("there is no parameter {name:?}")))?;
            let values = known["schema"]["enum"].as_array();
            if values.is_some_and(|values| !value.is_empty() && !values.iter().any(|one| one == value)) {
                let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
                return Err(Fault::wrong(format!("{name} is one of {}", values.join(", "))));
            }
        }
        Ok(())
    }

    /// The parts of a path that this route has in braces; `None` if it is another's.
    fn names<'p>(&self, segments: &[&'p str]) -> Option<Vec<&'p str>> {
        let mut wanted = self.path.split('/').skip(1);
        let mut names = Vec::new();
        for segment in segments {
            match wanted.next()? {
                part if part.starts_with('{') => names.push(*segment),
                part if part == *segment => {}
                _ => return None,
            }
        }
        wanted.next().is_none().then_some(names)
    }
}

/// Answers a program that may ask; `segments` are those behind `/api/v1`.
pub fn answer<'a>(method: &str, segments: &[&'a str], ask: &Ask<'a>) -> Reply {
    let all: Vec<_> = ROUTES.iter().filter_map(|route| Some((route, route.names(segments)?))).collect();
    let outcome = match all.iter().find(|(route, _)| route.method == method) {
        None if all.is_empty() => Err(Fault::missing("there is nothing")),
        None => return wrong_method(all.iter().map(|(route, _)| route.method)),
        Some((route, names)) => {
            ask.names.get_or_init(|| names.clone());
            route.check(&ask.call.query).and_then(|()| (route.work)(ask))
        }
    };
    outcome.map_or_else(|fault| failed(&fault), |value| Reply::json(200, value.to_string()))
}

fn failed(fault: &Fault) -> Reply {
    Reply::json(fault.status, json!({ "error": fault.text }).to_string())
}

/// A reply to a method that a path does not have (RFC 9110, section 15.5.6).
fn wrong_method(methods: impl Iterator<Item = &'static str>) -> Reply {
    let allowed: Vec<&str> = methods.flat_map(|one| if one == "GET" { vec![one, "HEAD"] } else { vec![one] }).collect();
    let allowed = allowed.join(", ");
    let mut reply = failed(&Fault { status: 405, text: format!("the method is one of {allowed}") });
    reply.set("Allow", allowed);
    reply
}

/// A reply to a request that is too large.
pub fn too_large() -> Reply {
    failed(&Fault { status: 413, text: format!("the body has more than {FORM_BYTES_MAX} bytes") })
}

/// A reply to who may not ask.
pub fn closed() -> Reply {
    let mut reply = failed(&Fault { status: 401, text: "a token is needed: Authorization: Bearer ...".into() });
    reply.set("WWW-Authenticate", "Bearer".into());
    reply
}

fn look(ask: &Ask, right: Right) -> Result<(), Fault> {
    if ask.who.may(right) { Ok(()) } else { Err(Fault::forbidden()) }
}

fn numbers(ask: &Ask) -> Outcome {
    look(ask, Right::Look)?;
    let numbers = ask.site.history.last().map_err(Fault::away)?;
    let named = numbers.into_iter().map(|(name, value)| (format!("sluice_{name}"), json!(value)));
    Ok(Value::Object(named.collect()))
}

fn configuration(ask: &Ask) -> Outcome {
    look(ask, Right::Look)?;
    let entries = settings::entries(&ask.site.path).map_err(|text| Fault { status: 500, text })?;
    let entry =
        |entry: &crate::config::shown::Entry| json!({ "key": entry.key, "value": entry.value, "place": entry.place });
    Ok(Value::Array(entries.iter().map(entry).collect()))
}

fn list(ask: &Ask) -> Outcome {
    look(ask, Right::Quarantine)?;
    let (all, count) = kept::meant(ask.site, &kept::selection(&ask.call.query), MESSAGES_MAX)
        .map_err(|text| Fault { status: 500, text })?;
    let messages: Vec<Value> = all.iter().filter_map(|one| object(&ask.site.place, one).ok()).collect();
    Ok(json!({ "count": count, "messages": messages }))
}

fn show(ask: &Ask) -> Outcome {
    look(ask, Right::Quarantine)?;
    let found = Some(ask.name()).filter(|id| is_id(id)).and_then(|id| ask.site.place.one(id).ok());
    found.and_then(|one| object(&ask.site.place, &one).ok()).ok_or_else(no_message)
}

fn act(ask: &Ask, what: Act) -> Outcome {
    look(ask, Right::Release)?;
    let id = ask.name();
    if !is_id(id) || ask.site.place.one(id).is_err() {
        return Err(no_message());
    }
    match kept::act(ask.site, ask.who, what, &[id])?.failed {
        0 => Ok(json!({ "id": id })),
        _ => Err(Fault { status: 502, text: "it could not be done: the audit log says why".into() }),
    }
}

fn no_message() -> Fault {
    Fault::missing("there is no such message")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_description_has_each_route_and_no_other() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let mut described = BTreeSet::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
            described.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
            let names: BTreeSet<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(item.get("parameters").is_some(), !names.is_empty(), "{path}");
        }
        let known: BTreeSet<_> = ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
        assert_eq!(known.len(), ROUTES.len(), "a route is there twice");
        assert_eq!(known, described);
    }

    #[test]
    fn a_query_has_the_values_that_are_described() {
        let route = |path: &str| ROUTES.iter().find(|route| route.path == path && route.method == "GET").unwrap();
        for (path, query, is_right) in [
            ("/quarantine", "state=held&from=a", true),
            ("/quarantine", "state=", true),
            ("/quarantine", "state=bogus", false),
            ("/quarantine", "limit=-1", false),
            ("/queue", "held=1&age=3h", true),
            ("/queue", "held=yes", false),
            ("/accounts", "after=x", false),
            ("/accounts", "", true),
        ] {
            let checked = route(path).check(&Form::of_fields(query.as_bytes()));
            assert_eq!(checked.map_err(|fault| fault.status).err(), (!is_right).then_some(400), "{path}?{query}");
        }
    }

    #[test]
    fn a_path_is_one_of_a_route_whole_or_not_at_all() {
        let route = delete("/accounts/{name}/password", |_| Ok(Value::Null));
        assert_eq!(route.names(&["accounts", "a/b", "password"]), Some(vec!["a/b"]));
        for other in
            [&["accounts"][..], &["accounts", "a"], &["accounts", "a", "password", "x"], &["queue", "a", "password"]]
        {
            assert_eq!(route.names(other), None, "{other:?}");
        }
    }
}
