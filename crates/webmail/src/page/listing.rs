//! The list that a user looks at: a page of a folder in an order, a conversation, a search. Its URL goes with forms and links that lead back.

use alloc::format;
use alloc::string::String;

use crate::form::Form;
use crate::html::{Html, Text, put};
use crate::percent::encoded;

use super::order::Order;

/// Characters of a search.
const SEARCH_MAX: usize = 200;

/// A list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listing {
    /// A folder, the newest first, from the message before this one on.
    Folder { folder: u32, before: u32 },
    /// A page of a folder in another order.
    Sorted { folder: u32, order: Order, page: usize },
    /// The conversation of a message.
    Conversation { folder: u32, uid: u32 },
    /// What was found by these words.
    Search(String),
}

impl Listing {
    /// A folder from its newest message on.
    pub fn newest(folder: u32) -> Listing {
        Listing::Folder { folder, before: u32::MAX }
    }

    /// The page of a folder that a URL asks for.
    pub fn of_folder(folder: u32, query: &Form) -> Listing {
        let number = |name| query.get(name).parse::<u32>().ok();
        match Order::read(query) {
            Order::USUAL => Listing::Folder { folder, before: number("before").unwrap_or(u32::MAX) },
            order => Listing::Sorted { folder, order, page: number("page").unwrap_or(0) as usize },
        }
    }

    /// The words that a URL searches for.
    pub fn of_search(query: &Form) -> Listing {
        Listing::Search(query.get("q").chars().take(SEARCH_MAX).collect())
    }

    /// The list that a form or a link leads back to.
    pub fn back(fields: &Form) -> Option<Listing> {
        let url = fields.get("back");
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query = Form::of_fields(query.as_bytes());
        match path.strip_prefix("/m/") {
            None => (path == "/search").then(|| Listing::of_search(&query)),
            Some(place) => match place.strip_suffix("/conversation").and_then(|place| place.split_once('/')) {
                Some((folder, uid)) => {
                    Some(Listing::Conversation { folder: folder.parse().ok()?, uid: uid.parse().ok()? })
                }
                None => Some(Listing::of_folder(place.parse().ok()?, &query)),
            },
        }
    }

    /// Its folder and its order, if it is of one folder.
    pub fn of(&self) -> Option<(u32, Order)> {
        match self {
            Listing::Folder { folder, .. } => Some((*folder, Order::USUAL)),
            Listing::Sorted { folder, order, .. } => Some((*folder, *order)),
            Listing::Conversation { .. } | Listing::Search(_) => None,
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        match self {
            Listing::Folder { folder, before: u32::MAX } => format!("/m/{folder}"),
            Listing::Folder { folder, before } => format!("/m/{folder}?before={before}"),
            Listing::Sorted { folder, order, page: 0 } => format!("/m/{folder}?{}", order.query()),
            Listing::Sorted { folder, order, page } => format!("/m/{folder}?{}&page={page}", order.query()),
            Listing::Conversation { folder, uid } => format!("/m/{folder}/{uid}/conversation"),
            Listing::Search(words) => format!("/search?q={}", encoded(words)),
        }
    }

    /// Its URL with an outcome.
    pub fn told(&self, outcome: &str) -> String {
        let url = self.url();
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}told={outcome}")
    }

    /// Writes the field of a form that leads back to it.
    pub fn field(&self, into: &mut Html) {
        put!(into, "<input type=\"hidden\" name=\"back\" value=\"", Text(&self.url()), "\">");
    }

    /// Writes the query of a link to a message of this folder. The newest messages of the folder need none.
    pub fn query(&self, into: &mut Html, of: u32, first: &'static str) {
        if *self != Listing::newest(of) {
            put!(into, first, "back=", Text(&encoded(&self.url())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_found_again_by_its_url_and_nothing_else_is() {
        let back = |url: &str| Listing::back(&Form::of_fields(format!("back={}", encoded(url)).as_bytes()));
        for url in [
            "/m/7",
            "/m/7?before=120",
            "/m/7?sort=from&order=down",
            "/m/7?sort=size&order=up&page=3",
            "/m/7/12/conversation",
            "/search?q=a%26b%20%C3%A4%25%22",
        ] {
            assert_eq!(back(url).map(|list| list.url()).as_deref(), Some(url));
        }
        assert_eq!(Listing::Search("a".into()).told("x"), "/search?q=a&told=x");
        assert_eq!(Listing::newest(7).told("x"), "/m/7?told=x");
        let hostile = [
            "",
            "//a.example/",
            "https://a.example",
            "/m/x",
            "/m/7/8",
            "/m/7/\r\nx/conversation",
            "/logout",
            "/m//a.example",
        ];
        for url in hostile {
            assert_eq!(back(url), None, "{url}");
        }
    }
}
