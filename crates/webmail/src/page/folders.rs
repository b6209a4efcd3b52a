//! Folders: made, given another name, deleted.

use alloc::format;

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::mail::{Failure, Purpose};
use crate::reply::Reply;

use super::{Pages, Told, size};

impl Pages<'_> {
    /// The page of folders.
    pub fn folders(&mut self, call: &Call) -> Reply {
        let mut main = Html::default();
        let (used, most) = self.mail.quota();
        put!(main, "<h1>Folders</h1><p class=\"soft\">Your mail takes ", Text(&size(used)));
        if most > 0 {
            put!(main, " of ", Text(&size(most)));
        }
        put!(main, ".</p><h2>New folder</h2>");
        self.form(&mut main, "action=\"/folders\" class=\"bar\"");
        put!(main, "<input name=\"name\" aria-label=\"Name of the new folder\" required maxlength=\"200\"> ");
        put!(main, "<button name=\"do\" value=\"create\">Create</button></form><h2>Your folders</h2>");
        for folder in self.folders.iter().filter(|folder| folder.purpose == Purpose::Other) {
            self.form(&mut main, "action=\"/folders\" class=\"bar\"");
            put!(
                main,
                "<input type=\"hidden\" name=\"folder\" value=\"",
                folder.number,
                "\"><input name=\"name\" required maxlength=\"200\" "
            );
            put!(main, "aria-label=\"Name of ", Text(&folder.name), "\" value=\"", Text(&folder.name), "\"> ");
            put!(main, "<button name=\"do\" value=\"rename\">Rename</button></form>");
            self.form(&mut main, "action=\"/folders\" class=\"bar\"");
            put!(
                main,
                "<input type=\"hidden\" name=\"folder\" value=\"",
                folder.number,
                "\"><label><input type=\"checkbox\" name=\"sure\" required> "
            );
            put!(
                main,
                "Delete <bdi>",
                Text(&folder.name),
                "</bdi> with its ",
                folder.count,
                if folder.count == 1 { " message</label> " } else { " messages</label> " }
            );
            put!(main, "<button name=\"do\" value=\"delete\">Delete</button></form>");
        }
        if !self.folders.iter().any(|folder| folder.purpose == Purpose::Other) {
            put!(main, "<p class=\"soft\">None but those that every mailbox has.</p>");
        }
        self.page("Folders", None, Told::of(call), main)
    }

    /// Changes a folder.
    pub fn change_folder(&mut self, call: &Call) -> Reply {
        let name = call.form.get("name").trim();
        let number = || {
            let number = call.form.get("folder").parse().ok();
            let folder = number.and_then(|number| self.folder(number)).ok_or(Failure::Gone)?;
            if folder.purpose == Purpose::Other { Ok(folder.number) } else { Err(Failure::Inbox) }
        };
        let outcome = match call.form.get("do") {
            "create" => self.mail.create(name),
            "rename" => number().and_then(|number| self.mail.rename(number, name)),
            "delete" if call.form.has("sure") => number().and_then(|number| self.mail.delete(number)),
            _ => Err(Failure::Gone),
        };
        match outcome {
            Ok(()) => Reply::see(&format!("/folders?told={}", "kept")),
            Err(failure) => self.failed(failure),
        }
    }
}
