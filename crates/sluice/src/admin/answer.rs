//! From a request of a browser to a page or a reply.

use std::net::IpAddr;

use edge::quarantine::is_id;
use webmail::html::Html;
use webmail::session::is_same;
use webmail::{Call, Reply, passkey};

use super::access::{Entry, origin};
use super::fault::Fault;
use super::history::{EVERY, Span};
use super::page::frame::{self, View};
use super::page::kept::{self, Act, Done};
use super::page::{accounts, domains, overview, queue, record, sets, settings, you};
use super::role::Right;
use super::site::Site;

/// The cookie of a session: not the webmail's, which may be on the same host.
pub const COOKIE: &str = "sluice-admin";

/// The cookie of a browser that logs in by a passkey.
pub const PASSKEY_COOKIE: &str = "sluice-admin-passkey";

/// Answers a browser.
pub fn answer(site: &Site, call: &Call, client: IpAddr) -> Reply {
    let segments = call.segments();
    match (&segments[..], call.is_post) {
        (["style.css"], false) => return frame::style(),
        (["passkey.js"], false) => return Reply::script(passkey::SCRIPT),
        (["enter"], false) => return enter(site, call.query.get("token"), client),
        (["login"], true) if !call.is_foreign => return log_in(site, call, client),
        (["login", "passkey"], false) => return ask_for_passkey(site, ""),
        (["login", "passkey"], true) if !call.is_foreign => return log_in_by_passkey(site, call, client),
        _ => {}
    }
    let Some((session, who)) = site.access.session(call.cookie.as_deref(), client) else {
        return frame::closed(site.access.people().is_some(), "");
    };
    let view = View { site, who: &who, session: &session, call };
    if !call.is_post {
        return page(&view, &segments);
    }
    if call.is_foreign || !is_same(call.form.get("token"), &session.token) {
        return frame::plain(
            403,
            "Not done",
            "This form is not of your session. Open the page again and repeat what you did.",
        );
    }
    match segments[..] {
        ["leave"] => {
            site.access.leave(call.cookie.as_deref());
            frame::plain(200, "Logged out", "A new link is printed when `sluice admin serve` starts anew.")
        }
        ["kept"] => act(&view),
        ["accounts"] => accounts::act(&view),
        ["queue"] => queue::act(&view),
        ["domains"] => domains::add(&view),
        ["rules"] => sets::update(&view),
        ["you"] => you::act(&view),
        _ => frame::plain(404, "Not found", "There is no such page."),
    }
}

fn enter(site: &Site, token: &str, client: IpAddr) -> Reply {
    let Some(token) = site.access.enter(token) else {
        return frame::plain(403, "Closed", "This link was used already, or is too old.");
    };
    begun(site, &token, client)
}

fn log_in(site: &Site, call: &Call, client: IpAddr) -> Reply {
    let name = call.form.get("name").trim();
    match site.access.log_in(client, &call.form, &origin(call)) {
        Entry::In(token) => begun(site, &token, client),
        Entry::Step { challenge, passkeys } => frame::step(name, &challenge, &passkeys),
        Entry::Wrong => {
            let _ = site.note_stranger(name, client);
            frame::closed(true, "The name, the password, the code or the passkey is wrong.")
        }
    }
}

fn ask_for_passkey(site: &Site, told: &str) -> Reply {
    let Some((challenge, token)) = site.access.alone() else {
        return frame::plain(503, "Not done", "There is no randomness.");
    };
    let mut reply = frame::passkey(&challenge, told);
    reply.set("Set-Cookie", format!("{PASSKEY_COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=300"));
    reply
}

fn log_in_by_passkey(site: &Site, call: &Call, client: IpAddr) -> Reply {
    match site.access.log_in_by_passkey(client, &call.form, call.passkey.as_deref(), &origin(call)) {
        Entry::In(token) => begun(site, &token, client),
        Entry::Step { .. } | Entry::Wrong => {
            let _ = site.note_stranger("a passkey", client);
            ask_for_passkey(site, "This passkey does not log in here.")
        }
    }
}

/// Lets a browser in, once that is noted.
fn begun(site: &Site, token: &str, client: IpAddr) -> Reply {
    let noted = site.access.session(Some(token), client).map(|(_, who)| site.note(&who, "logged in", "the page", None));
    if !matches!(noted, Some(Ok(()))) {
        site.access.leave(Some(token));
        return frame::plain(503, "Not done", "The audit log cannot be written.");
    }
    let mut reply = Reply::see("/");
    reply.set("Set-Cookie", format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"));
    reply
}

fn page(view: &View, segments: &[&str]) -> Reply {
    let (site, who) = (view.site, view.who);
    let looks = |page: Reply| if who.may(Right::Look) { page } else { view.failed(&Fault::forbidden(), "/kept") };
    match segments {
        [] if !who.may(Right::Look) => Reply::see("/kept"),
        [] => overview(view),
        ["kept", ..] if !who.may(Right::Quarantine) => view.failed(&Fault::forbidden(), "/"),
        ["kept"] => {
            let mut main = Html::default();
            kept::list(&mut main, view);
            view.page("Quarantine", "/kept", main)
        }
        ["kept", id] if is_id(id) => match site.place.one(id) {
            Ok(one) => {
                let mut main = Html::default();
                kept::show(&mut main, view, &one);
                view.page("Message", "/kept", main)
            }
            Err(_) => frame::plain(404, "Not found", "There is no such message in the quarantine."),
        },
        ["kept", id, "mail"] if is_id(id) && who.may(Right::Release) => save(view, id),
        ["accounts"] => accounts::list(view),
        ["account"] => accounts::show(view),
        ["account", "remove"] => accounts::remove(view),
        ["queue"] => queue::list(view),
        ["queue", id] => queue::show(view, id),
        ["domains"] => domains::list(view),
        ["domain"] => domains::show(view),
        ["rules"] => sets::show(view),
        ["changes"] => record::show(view),
        ["you"] => you::show(view),
        ["settings"] => {
            let mut main = Html::default();
            settings::write(&mut main, &site.path, view.call.query.get("all") == "1");
            looks(view.page("Configuration", "/settings", main))
        }
        _ => frame::plain(404, "Not found", "There is no such page."),
    }
}

fn overview(view: &View) -> Reply {
    let (site, query) = (view.site, &view.call.query);
    let span = if query.get("span") == "day" { Span::Day } else { Span::Hour };
    let is_live = query.get("live") == "1";
    let mut main = Html::default();
    overview::write(&mut main, &site.history, span, is_live, site.place.count());
    let mut reply = view.page("Overview", "/", main);
    if is_live {
        reply.set("Refresh", EVERY.as_secs().to_string());
    }
    reply
}

fn save(view: &View, id: &str) -> Reply {
    let content = view.site.place.one(id).ok().and_then(|one| kept::mail(&one));
    let Some(content) = content else {
        return frame::plain(
            404,
            "Not found",
            "It is not there, or too large to be saved here: `sluice quarantine show --raw` prints it.",
        );
    };
    match view.site.note(view.who, "saved mail of the quarantine", id, None) {
        Ok(()) => Reply::saved(content, &format!("{id}.eml")),
        Err(error) => view.failed(&Fault::away(error), "/kept"),
    }
}

fn act(view: &View) -> Reply {
    let ids: Vec<&str> = view.call.form.all("id").filter(|id| is_id(id)).collect();
    let Some(act) = Act::named(view.call.form.get("do")) else {
        return frame::plain(403, "Not done", "There is no such action.");
    };
    let Done { done, failed } = match kept::act(view.site, view.who, act, &ids) {
        Ok(done) => done,
        Err(fault) => return view.failed(&fault, "/kept"),
    };
    let told = match (done, failed, act) {
        (0, 0, _) => "none",
        (_, 0, Act::Release) => "released",
        (_, 0, Act::Delete) => "deleted",
        _ => "part",
    };
    Reply::see(&format!("/kept?told={told}"))
}
