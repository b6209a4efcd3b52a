//! Identities: the name and the signature of each address of the user. Those of the settings count where one has none.

use alloc::string::String;

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::mail::Identity;
use crate::reply::Reply;

use super::Pages;

/// Characters of a name.
const NAME_MAX: usize = 100;

/// Characters of a signature.
const SIGNATURE_MAX: usize = 2_000;

impl Pages<'_> {
    /// The page of identities.
    pub fn identities(&mut self, call: &Call) -> Reply {
        let all = self.mail.identities();
        if all.is_empty() {
            return self.missing();
        }
        let (words, common) = (&self.words.settings, &self.words.common);
        let mut main = Html::default();
        put!(main, "<h1>", words.identities, "</h1><p class=\"soft\">", words.identities_note, "</p>");
        for (at, identity) in all.iter().enumerate() {
            put!(main, "<section class=\"card\"><h2><bdi>", Text(&identity.address), "</bdi></h2>");
            self.form(&mut main, "action=\"/identities\" class=\"wide\"");
            put!(main, "<input type=\"hidden\" name=\"address\" value=\"", Text(&identity.address), "\">");
            put!(
                main,
                "<div class=\"field\"><label for=\"name",
                at,
                "\">",
                common.name,
                "</label><input id=\"name",
                at,
                "\" name=\"name\" "
            );
            put!(main, "dir=\"auto\" maxlength=\"", NAME_MAX, "\" value=\"", Text(&identity.name), "\"></div>");
            put!(
                main,
                "<div class=\"field short\"><label for=\"signature",
                at,
                "\">",
                words.signature,
                "</label><textarea id=\"signature"
            );
            put!(main, at, "\" name=\"signature\" rows=\"4\" dir=\"auto\" maxlength=\"", SIGNATURE_MAX, "\">\n");
            put!(
                main,
                Text(&identity.signature),
                "</textarea></div><div class=\"bar\"><button>",
                common.save,
                "<span class=\"skip\">: "
            );
            put!(main, Text(&identity.address), "</span></button></div></form></section>");
        }
        self.page(words.identities, None, self.told(call), main)
    }

    /// Keeps an identity.
    pub fn change_identity(&mut self, call: &Call) -> Reply {
        let form = &call.form;
        let is_kept = |c: &char| !text::hazard::is_hazard(*c);
        let name: String = form.get("name").chars().filter(is_kept).take(NAME_MAX).collect();
        let signature = form.get("signature").replace("\r\n", "\n").chars().take(SIGNATURE_MAX).collect();
        let identity = Identity { address: form.get("address").into(), name: name.trim().into(), signature };
        if !self.mail.addresses().contains(&identity.address) {
            return self.missing();
        }
        match self.mail.set_identity(identity) {
            Ok(()) => Reply::see("/identities?told=kept"),
            Err(failure) => self.failed(failure),
        }
    }

    /// The identity of an address, with the values of the settings where it has none.
    pub fn identity(&mut self, address: &str) -> Identity {
        let found = self.mail.identities().into_iter().find(|known| known.address.eq_ignore_ascii_case(address));
        let Identity { name, signature, .. } = found.unwrap_or_default();
        let or = |own: String, usual: &String| if own.trim().is_empty() { usual.clone() } else { own };
        Identity {
            address: address.into(),
            name: or(name, &self.settings.name),
            signature: or(signature, &self.settings.signature),
        }
    }
}
