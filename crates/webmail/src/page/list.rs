//! Lists of messages: a folder, the newest first, and what was found by a search; and what is done to several at a time.

use alloc::format;
use alloc::vec::Vec;

use crate::call::Call;
use crate::envelope::Envelope;
use crate::html::{Html, Text, put};
use crate::language::fill;
use crate::mail::{Failure, Flag, Folder, Purpose, Row};
use crate::reply::Reply;

use super::listing::Listing;
use super::order::{Column, Order};
use super::{PAGE_BYTES, Pages, Place};

/// Messages that a search finds.
const FOUND_MAX: usize = 200;

/// Messages that a form names.
const MARKED_MAX: usize = 500;

impl Pages<'_> {
    /// A folder.
    pub fn list(&mut self, number: u32, call: &Call) -> Reply {
        let Some(folder) = self.folder(number).cloned() else { return self.missing() };
        let list = Listing::of_folder(number, &call.query);
        let before = match list {
            Listing::Folder { before, .. } => before,
            _ => return self.sorted(&list, call),
        };
        let count = self.settings.rows;
        let mut rows = match self.settings.is_threaded {
            true => self.mail.conversations(number, before, count.saturating_add(1)),
            false => self.mail.rows(number, before, count.saturating_add(1)),
        };
        let next = if rows.len() > count { rows.get(count.saturating_sub(1)).map(|row| row.uid) } else { None };
        rows.truncate(count);
        let (words, mut main) = (&self.words.list, self.listed(&folder, &rows, &list));
        put!(main, "<div class=\"bar\">");
        if before != u32::MAX {
            put!(main, "<a class=\"button\" href=\"/m/", number, "\">", words.newest, "</a>");
        }
        if let Some(next) = next {
            put!(
                main,
                "<a class=\"button\" rel=\"next\" href=\"/m/",
                number,
                "?before=",
                next,
                "\">",
                words.older,
                "</a>"
            );
        }
        self.foot(&mut main, &folder, Order::USUAL);
        if folder.purpose == Purpose::Drafts {
            put!(main, "<p class=\"soft\">", words.drafts, "</p>");
        }
        if let Some(newest) = rows.first().filter(|_| before == u32::MAX && is_emptied(folder.purpose)) {
            self.form(&mut main, "action=\"/act\" class=\"bar\"");
            list.field(&mut main);
            put!(main, "<input type=\"hidden\" name=\"upto\" value=\"", newest.uid, "\">");
            put!(main, "<button name=\"do\" value=\"empty\">", words.empty_folder, "</button></form>");
        }
        self.page(folder.label(self.words), Some(number), self.told(call), main)
    }

    /// A folder in the order of a column: its messages, each alone.
    fn sorted(&mut self, list: &Listing, call: &Call) -> Reply {
        let Listing::Sorted { folder: number, order, page } = *list else { return self.missing() };
        let Some(folder) = self.folder(number).cloned() else { return self.missing() };
        let (rows, has_more) = order.rows(self.mail, number, is_out(&folder), (page, self.settings.rows));
        let (words, mut main) = (&self.words.list, self.listed(&folder, &rows, list));
        put!(main, "<div class=\"bar\"><a class=\"button\" href=\"/m/", number, "\">", words.newest, "</a>");
        if has_more {
            let next = Listing::Sorted { folder: number, order, page: page.saturating_add(1) };
            put!(main, "<a class=\"button\" rel=\"next\" href=\"", Text(&next.url()), "\">", words.more, "</a>");
        }
        self.foot(&mut main, &folder, order);
        self.page(folder.label(self.words), Some(number), self.told(call), main)
    }

    /// The heading of a folder, and its messages.
    fn listed(&self, folder: &Folder, rows: &[Row], list: &Listing) -> Html {
        let mut main = Html::with_capacity(PAGE_BYTES);
        put!(main, "<h1><bdi>", Text(folder.label(self.words)), "</bdi></h1>");
        if rows.is_empty() {
            put!(main, "<p class=\"soft\">", self.words.list.empty, "</p>");
        } else {
            self.rows(&mut main, rows, is_out(folder), list);
        }
        main
    }

    /// The end of the bar below a list: its order by size, and the counts of the folder.
    fn foot(&self, main: &mut Html, folder: &Folder, order: Order) {
        put!(main, "<span class=\"end\">");
        order.head(main, folder.number, Column::Size, self.words.list.size);
        put!(main, self.words.common.comma, Text(&self.words.count(self.words.list.messages, folder.count)));
        put!(main, self.words.common.comma);
        put!(main, Text(&self.words.count(self.words.common.unread_messages, folder.unseen as usize)), "</span></div>");
    }

    /// The messages of a conversation, in this folder and others.
    pub fn conversation(&mut self, folder: u32, uid: u32, call: &Call) -> Reply {
        if self.folder(folder).is_none() {
            return self.missing();
        }
        let rows = self.mail.conversation(folder, uid, FOUND_MAX);
        let Some(first) = rows.first() else { return self.missing() };
        let subject = Envelope::parse(&first.envelope).subject;
        let subject = self.subject(&subject);
        let (words, mut main) = (&self.words.list, Html::with_capacity(PAGE_BYTES));
        put!(main, "<h1><bdi>", Text(subject), "</bdi></h1>");
        let note = if rows.len() >= FOUND_MAX { words.conversation_cut } else { words.conversation };
        put!(main, "<p class=\"soft\">", Text(&self.words.count(note, rows.len())), "</p>");
        self.rows(&mut main, &rows, false, &Listing::Conversation { folder, uid });
        self.page(subject, Some(folder), self.told(call), main)
    }

    /// A search.
    pub fn search(&mut self, call: &Call) -> Reply {
        let list = Listing::of_search(&call.query);
        let Listing::Search(asked) = &list else { return self.missing() };
        let has_words = !asked.trim().is_empty();
        let (rows, is_whole) = if has_words { self.mail.search(asked, FOUND_MAX) } else { (Vec::new(), true) };
        let (words, mut main) = (&self.words.list, Html::default());
        main.put("<h1>");
        main.say(words.search, &[asked]);
        main.put("</h1>");
        if !is_whole {
            put!(main, "<p class=\"soft\">", words.unfinished, "</p>");
        }
        match rows.len() {
            0 if !is_whole => {}
            0 => put!(main, "<p class=\"soft\">", words.nothing, "</p>"),
            count => {
                let note = if count >= FOUND_MAX { words.found_cut } else { words.found };
                put!(main, "<p class=\"soft\">", Text(&self.words.count(note, count)), "</p>");
                self.rows(&mut main, &rows, false, &list);
            }
        }
        self.page(self.words.common.search, None, self.told(call), main)
    }

    /// A table of messages in a form. Where they are of several folders, each row says of which it is.
    fn rows(&self, main: &mut Html, rows: &[Row], is_out: bool, list: &Listing) {
        let of_folder = list.of();
        let here = of_folder.map(|(folder, _)| folder);
        self.form(main, "action=\"/act\"");
        list.field(main);
        self.actions(main, here);
        let words = &self.words.common;
        put!(
            main,
            "<table class=\"list\"><thead><tr><th class=\"check\" scope=\"col\"><span class=\"skip\">",
            words.mark
        );
        main.put("</span></th>");
        let date = if here.is_some() { words.date } else { self.words.list.folder_date };
        for (class, column, title) in [
            ("from", Column::People, if is_out { words.to } else { words.from }),
            ("subject", Column::Subject, words.subject),
            ("date", Column::Date, date),
        ] {
            put!(main, "<th class=\"", class, "\" scope=\"col\">");
            match of_folder {
                Some((folder, order)) => order.head(main, folder, column, title),
                None => main.put(title),
            }
            main.put("</th>");
        }
        main.put("</tr></thead><tbody>");
        let shows_size = of_folder.is_some_and(|(_, order)| order.column == Column::Size);
        let drafts = self.folder_for(Purpose::Drafts);
        for row in rows {
            let is_draft = drafts == Some(row.folder);
            self.row(main, row, Shape { list, is_out, has_folder: here.is_none(), is_draft, shows_size });
        }
        put!(main, "</tbody></table></form>");
    }

    fn row(&self, main: &mut Html, row: &Row, Shape { list, is_out, has_folder, is_draft, shows_size }: Shape<'_>) {
        let (subject, people) = Envelope::line(&row.envelope, is_out);
        let (words, subject) = (&self.words.list, self.subject(&subject));
        let label = people.first().map_or(words.nobody, |one| one.label());
        put!(
            main,
            if row.flags.seen { "<tr>" } else { "<tr class=\"unseen\">" },
            "<td class=\"check\"><input type=\"checkbox\" "
        );
        put!(
            main,
            if row.count > 1 { "name=\"all\" value=\"" } else { "name=\"at\" value=\"" },
            row.folder,
            ".",
            row.uid,
            "\" aria-label=\"",
            Text(&fill(self.words.common.mark_one, &[subject])),
            "\"></td><td class=\"from\" title=\""
        );
        put!(main, Text(people.first().map_or("", |one| &one.address)), "\"><bdi>", Text(label), "</bdi>");
        if people.len() > 1 {
            put!(main, " <span class=\"soft\">+", Text(&self.words.number(people.len().saturating_sub(1))), "</span>");
        }
        put!(main, "</td><td class=\"subject\"><div class=\"line\">");
        if row.flags.flagged {
            put!(main, "<span class=\"star\" title=\"", words.flagged, "\">\u{2605}</span>");
        }
        if row.flags.answered {
            put!(main, "<span class=\"soft\" title=\"", words.answered, "\">\u{21a9}</span>");
        }
        match (is_draft, row.count) {
            (true, _) => put!(main, "<a href=\"/write?draft=", row.folder, ".", row.uid),
            (false, 2..) => put!(main, "<a href=\"/m/", row.folder, "/", row.uid, "/conversation"),
            (false, _) => {
                put!(main, "<a href=\"/m/", row.folder, "/", row.uid);
                list.query(main, row.folder, "?");
            }
        }
        put!(main, "\"><bdi>", Text(subject), "</bdi></a>");
        if row.count > 1 {
            main.put("<span class=\"tag\">");
            self.numeral(main, words.messages, row.count);
            main.put("</span>");
        }
        if row.has_attachment {
            put!(main, "<span class=\"tag\">", words.files, "</span>");
        }
        if shows_size {
            put!(main, "<span class=\"tag\">", Text(&self.words.size(row.size)), "</span>");
        }
        put!(main, "</div></td><td class=\"date\">");
        if let Some(folder) = self.folder(row.folder).filter(|_| has_folder) {
            put!(main, "<bdi>", Text(folder.label(self.words)), "</bdi> ");
        }
        put!(main, Text(&self.date(row.date)), "</td></tr>");
    }

    /// Buttons for the marked messages.
    pub fn actions(&self, main: &mut Html, here: Option<u32>) {
        let (words, common) = (&self.words.list, &self.words.common);
        put!(main, "<div class=\"bar\" role=\"group\" aria-label=\"", words.actions, "\">");
        let purpose = here.and_then(|here| self.folder(here)).map(|folder| folder.purpose);
        let is_junk = purpose == Some(Purpose::Junk);
        for (action, text) in [
            ("seen", words.seen),
            ("unseen", common.unread),
            ("flag", common.flag),
            ("unflag", common.unflag),
            if is_junk { ("ham", words.not_junk) } else { ("junk", words.junk) },
            ("delete", common.delete),
        ] {
            put!(main, "<button name=\"do\" value=\"", action, "\">", text, "</button>");
        }
        self.destinations(main, here);
        main.put("</div>");
    }

    /// The choice of a folder that messages are moved to, and its button.
    pub fn destinations(&self, main: &mut Html, here: Option<u32>) {
        let words = &self.words.common;
        put!(main, "<select name=\"to\" aria-label=\"", words.move_to, "\">");
        for folder in self.folders.iter().filter(|folder| Some(folder.number) != here) {
            let is_usual = folder.purpose == Purpose::Archive;
            put!(main, "<option value=\"", folder.number, if is_usual { "\" selected>" } else { "\">" });
            put!(main, Text(folder.label(self.words)), "</option>");
        }
        put!(main, "</select><button name=\"do\" value=\"move\">", words.move_now, "</button>");
    }

    /// A subject, or words for one that is empty.
    pub fn subject<'a>(&self, subject: &'a str) -> &'a str {
        if subject.is_empty() { self.words.common.no_subject } else { subject }
    }

    /// Does something to messages.
    pub fn act(&mut self, call: &Call) -> Reply {
        if call.form.get("do") == "empty" {
            return self.empty(call);
        }
        let mut places: Vec<Place> = call.form.all("at").filter_map(Place::parse).take(MARKED_MAX).collect();
        // A conversation is acted on where its row stands, not in other folders.
        let mut heads: Vec<Place> = call.form.all("all").filter_map(Place::parse).take(MARKED_MAX).collect();
        heads.sort_unstable_by_key(|place| place.folder);
        for of_folder in heads.chunk_by(|one, other| one.folder == other.folder) {
            let Some(folder) = of_folder.first().map(|place| place.folder) else { continue };
            let uids: Vec<u32> = of_folder.iter().map(|place| place.uid).collect();
            let whole = self.mail.of_conversations(folder, &uids);
            places.extend(uids.into_iter().chain(whole).map(|uid| Place { folder, uid }));
        }
        places.sort_unstable_by_key(|place| (place.folder, place.uid));
        places.dedup();
        let back = Listing::back(&call.form).map(|list| self.left(list, &places));
        let mut told = "";
        for of_folder in places.chunk_by(|one, other| one.folder == other.folder) {
            let Some(folder) = of_folder.first().map(|place| place.folder) else { continue };
            let uids: Vec<u32> = of_folder.iter().map(|place| place.uid).collect();
            match self.act_in(folder, &uids, call) {
                Ok(done) => told = done,
                Err(failure) => return self.failed(failure),
            }
        }
        Reply::see(&match back {
            Some(list) => list.told(told),
            None => format!("/?told={told}"),
        })
    }

    /// The list after these messages may have left it: a conversation goes on by another of its messages.
    fn left(&mut self, list: Listing, places: &[Place]) -> Listing {
        let Listing::Conversation { folder, uid } = list else { return list };
        let leaves = |place: Place| places.contains(&place);
        if !leaves(Place { folder, uid }) {
            return list;
        }
        let rows = self.mail.conversation(folder, uid, FOUND_MAX);
        let stays = rows.iter().map(|row| Place { folder: row.folder, uid: row.uid }).find(|place| !leaves(*place));
        stays.map_or(Listing::newest(folder), |Place { folder, uid }| Listing::Conversation { folder, uid })
    }

    /// Removes all messages of the trash or of junk, up to the newest one that the user has seen in the list.
    fn empty(&mut self, call: &Call) -> Reply {
        let folder = Listing::back(&call.form).and_then(|list| self.folder(list.of()?.0));
        let Some(folder) = folder.filter(|folder| is_emptied(folder.purpose)).map(|folder| folder.number) else {
            return self.failed(Failure::Gone);
        };
        match self.mail.empty(folder, call.form.get("upto").parse().unwrap_or(0)) {
            Ok(()) => Reply::see(&format!("/m/{folder}?told=deleted")),
            Err(failure) => self.failed(failure),
        }
    }

    fn act_in(&mut self, folder: u32, uids: &[u32], call: &Call) -> Result<&'static str, Failure> {
        let purpose = self.folder(folder).ok_or(Failure::Gone)?.purpose;
        let marks = |pages: &mut Self, flag, is_set| pages.mail.flag(folder, uids, flag, is_set).map(|()| "marked");
        match call.form.get("do") {
            "seen" => marks(self, Flag::Seen, true),
            "unseen" => marks(self, Flag::Seen, false),
            "flag" => marks(self, Flag::Flagged, true),
            "unflag" => marks(self, Flag::Flagged, false),
            "move" => {
                let to =
                    call.form.get("to").parse().ok().filter(|&to| self.folder(to).is_some()).ok_or(Failure::Gone)?;
                self.move_all(folder, uids, to).map(|()| "moved")
            }
            "junk" => {
                let to = self.provided(Purpose::Junk)?;
                self.move_all(folder, uids, to).map(|()| "junk")
            }
            "ham" => {
                let to = self.folder_for(Purpose::Inbox).ok_or(Failure::Gone)?;
                self.move_all(folder, uids, to).map(|()| "moved")
            }
            "delete" => {
                if purpose == Purpose::Trash {
                    self.mail.expunge(folder, uids)?;
                } else {
                    let trash = self.provided(Purpose::Trash)?;
                    self.mail.move_to(folder, uids, trash)?;
                }
                Ok("deleted")
            }
            _ => Err(Failure::Gone),
        }
    }

    fn move_all(&mut self, folder: u32, uids: &[u32], to: u32) -> Result<(), Failure> {
        if to == folder { Ok(()) } else { self.mail.move_to(folder, uids, to) }
    }
}

/// The circumstances of a row.
#[derive(Clone, Copy)]
struct Shape<'l> {
    list: &'l Listing,
    is_out: bool,
    has_folder: bool,
    is_draft: bool,
    shows_size: bool,
}

/// Whether a folder holds mail that its owner writes: its rows name recipients.
fn is_out(folder: &Folder) -> bool {
    matches!(folder.purpose, Purpose::Sent | Purpose::Drafts)
}

/// Whether a folder is emptied by one button.
fn is_emptied(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Junk | Purpose::Trash)
}
