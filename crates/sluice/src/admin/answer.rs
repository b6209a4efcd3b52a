//! Which page or reply a browser gets.

use std::net::IpAddr;

use edge::quarantine::is_id;
use webmail::html::Html;
use webmail::session::{Session, is_same};
use webmail::{Call, Reply};

use super::history::{EVERY, Span};
use super::kept::{self, Act, Done};
use super::site::Site;
use super::{frame, overview, settings};

/// The cookie of a session: not the webmail's, which may be on the same host.
pub const COOKIE: &str = "sluice-admin";

/// Answers a browser.
pub fn answer(site: &Site, call: &Call, client: IpAddr) -> Reply {
    let segments = call.segments();
    match (&segments[..], call.is_post) {
        (["style.css"], false) => return frame::style(),
        (["enter"], false) => return enter(site, call.query.get("token")),
        _ => {}
    }
    let Some(session) = site.access.session(call.cookie.as_deref()) else {
        return frame::plain(
            403,
            "Closed",
            "Open the link that `sluice admin serve` has printed. It is good for one browser.",
        );
    };
    if !call.is_post {
        return page(site, &segments, &session, call);
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
        ["kept"] => act(site, call, client),
        _ => frame::plain(404, "Not found", "There is no such page."),
    }
}

fn enter(site: &Site, token: &str) -> Reply {
    let Some(token) = site.access.enter(token) else {
        return frame::plain(403, "Closed", "This link was used already, or is too old.");
    };
    let mut reply = Reply::see("/");
    reply.set("Set-Cookie", format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"));
    reply
}

fn page(site: &Site, segments: &[&str], session: &Session, call: &Call) -> Reply {
    let mut main = Html::default();
    let (title, here) = match segments {
        [] => {
            let span = if call.query.get("span") == "day" { Span::Day } else { Span::Hour };
            let is_live = call.query.get("live") == "1";
            overview::write(&mut main, &site.history, span, is_live, site.place.count());
            let mut reply = frame::page("Overview", "/", session, &site.hostname, call, main);
            if is_live {
                reply.set("Refresh", EVERY.as_secs().to_string());
            }
            return reply;
        }
        ["kept"] => {
            kept::list(&mut main, site, session, call);
            ("Quarantine", "/kept")
        }
        ["kept", id] if is_id(id) => match site.place.one(id) {
            Ok(one) => {
                kept::show(&mut main, site, session, &one);
                ("Message", "/kept")
            }
            Err(_) => return frame::plain(404, "Not found", "There is no such message in the quarantine."),
        },
        ["kept", id, "mail"] if is_id(id) && !site.access.is_read_only => {
            let content = site.place.one(id).ok().and_then(|one| kept::mail(&one));
            return match content {
                Some(content) => Reply::saved(content, &format!("{id}.eml")),
                None => frame::plain(
                    404,
                    "Not found",
                    "It is not there, or too large to be saved here: `sluice quarantine show --raw` prints it.",
                ),
            };
        }
        ["settings"] => {
            settings::write(&mut main, &site.path, call.query.get("all") == "1");
            ("Configuration", "/settings")
        }
        _ => return frame::plain(404, "Not found", "There is no such page."),
    };
    frame::page(title, here, session, &site.hostname, call, main)
}

fn act(site: &Site, call: &Call, client: IpAddr) -> Reply {
    let ids: Vec<&str> = call.form.all("id").filter(|id| is_id(id)).collect();
    let Some(act) = Act::named(call.form.get("do")).filter(|_| !site.access.is_read_only) else {
        return frame::plain(403, "Not done", "Nothing can be changed here.");
    };
    let Done { done, failed } = kept::act(site, &client.to_string(), act, &ids);
    let told = match (done, failed, act) {
        (0, 0, _) => "none",
        (_, 0, Act::Release) => "released",
        (_, 0, Act::Delete) => "deleted",
        _ => "part",
    };
    Reply::see(&format!("/kept?told={told}"))
}
