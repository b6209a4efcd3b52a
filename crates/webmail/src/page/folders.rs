//! Folders: made, given another name, deleted.

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::language::fill;
use crate::mail::{Failure, Purpose};
use crate::reply::Reply;

use super::Pages;

impl Pages<'_> {
    /// The page of folders.
    pub fn folders(&mut self, call: &Call) -> Reply {
        let (words, mut main) = (&self.words.folders, Html::default());
        let (used, most) = self.mail.quota();
        put!(main, "<h1>", self.words.common.folders, "</h1><p class=\"soft\">");
        main.say(if most > 0 { words.used_of } else { words.used }, &[&self.words.size(used), &self.words.size(most)]);
        put!(main, "</p><h2>", words.new, "</h2>");
        self.form(&mut main, "action=\"/folders\" class=\"bar\"");
        put!(
            main,
            "<input name=\"name\" aria-label=\"",
            words.new_name,
            "\" required maxlength=\"200\"> <button name=\"do\" "
        );
        put!(main, "value=\"create\">", words.create, "</button></form><h2>", words.own, "</h2>");
        for folder in self.folders.iter().filter(|folder| folder.purpose == Purpose::Other) {
            self.form(&mut main, "action=\"/folders\" class=\"bar\"");
            put!(
                main,
                "<input type=\"hidden\" name=\"folder\" value=\"",
                folder.number,
                "\"><input name=\"name\" required maxlength=\"200\" "
            );
            put!(
                main,
                "aria-label=\"",
                Text(&fill(words.name_of, &[&folder.name])),
                "\" value=\"",
                Text(&folder.name),
                "\"> "
            );
            put!(main, "<button name=\"do\" value=\"rename\">", words.rename, "</button></form>");
            self.form(&mut main, "action=\"/folders\" class=\"bar\"");
            put!(
                main,
                "<input type=\"hidden\" name=\"folder\" value=\"",
                folder.number,
                "\"><label><input type=\"checkbox\" name=\"sure\" required> "
            );
            let sentence = self.words.numbers.form_of(words.delete, folder.count as u64);
            main.say(sentence, &[&self.words.number(folder.count), &folder.name]);
            put!(main, "</label> <button name=\"do\" value=\"delete\">", self.words.common.delete, "</button></form>");
        }
        if !self.folders.iter().any(|folder| folder.purpose == Purpose::Other) {
            put!(main, "<p class=\"soft\">", words.none, "</p>");
        }
        self.page(self.words.common.folders, None, self.told(call), main)
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
            Ok(()) => Reply::see("/folders?told=kept"),
            Err(failure) => self.failed(failure),
        }
    }
}
