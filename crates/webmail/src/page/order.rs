//! The order of a folder: the newest first, or by a column, either way. Of a folder with more than [`SORTED_MAX`] messages the newest are sorted.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::envelope::Envelope;
use crate::form::Form;
use crate::html::{Html, Text, put};
use crate::mail::{Mail, Row};

/// Messages that are sorted.
const SORTED_MAX: usize = 10_000;

/// Characters of a name or a subject that are compared.
const KEY_CHARACTERS_MAX: usize = 100;

/// A column of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    People,
    Subject,
    Date,
    Size,
}

/// A column, and which end of it is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub column: Column,
    pub is_down: bool,
}

impl Column {
    const ALL: [(&'static str, Column); 4] =
        [("from", Column::People), ("subject", Column::Subject), ("date", Column::Date), ("size", Column::Size)];

    fn name(self) -> &'static str {
        Column::ALL.iter().find(|(_, column)| *column == self).map_or("", |(name, _)| name)
    }

    /// Whether the first look at it begins at its end: dates and sizes.
    fn is_down(self) -> bool {
        matches!(self, Column::Date | Column::Size)
    }
}

impl Order {
    /// The order of a list that nobody has sorted.
    pub const USUAL: Order = Order { column: Column::Date, is_down: true };

    /// The order that a URL asks for.
    pub fn read(query: &Form) -> Order {
        let asked = query.get("sort");
        let column = Column::ALL.iter().find(|(name, _)| *name == asked).map(|(_, column)| *column);
        column.map_or(Order::USUAL, |column| Order { column, is_down: query.get("order") == "down" })
    }

    /// A page of so many messages of a folder in this order, the last one if it has fewer pages, and whether there are more.
    pub fn rows(
        self,
        mail: &mut dyn Mail,
        folder: u32,
        is_out: bool,
        (page, count): (usize, usize),
    ) -> (Vec<Row>, bool) {
        let mut rows = mail.rows(folder, u32::MAX, SORTED_MAX);
        match self.column {
            Column::Date => rows.sort_by_key(|row| (row.date, row.uid)),
            Column::Size => rows.sort_by_key(|row| (row.size, row.uid)),
            Column::People | Column::Subject => rows.sort_by_cached_key(|row| (self.text(row, is_out), row.uid)),
        }
        if self.is_down {
            rows.reverse();
        }
        let last = rows.len().saturating_sub(1).checked_div(count).unwrap_or(0);
        let skip = count.saturating_mul(page.min(last));
        let has_more = rows.len() > skip.saturating_add(count);
        (rows.into_iter().skip(skip).take(count).collect(), has_more)
    }

    fn text(self, row: &Row, is_out: bool) -> String {
        let (subject, people) = Envelope::line(&row.envelope, is_out);
        let bounded = |text: &str| text.chars().take(KEY_CHARACTERS_MAX).collect::<String>();
        match self.column {
            Column::People => bounded(people.first().map_or("", |one| one.label())).to_lowercase(),
            _ => text::subject::base(&bounded(&subject)).0.to_lowercase(),
        }
    }

    /// The query of the page that has this order.
    pub fn query(self) -> String {
        format!("sort={}&order={}", self.column.name(), if self.is_down { "down" } else { "up" })
    }

    /// Writes the head of a column, which leads to the list in its order; in the other direction, if the list is in its order.
    pub fn head(self, into: &mut Html, folder: u32, column: Column, title: &'static str) {
        let is_this = self.column == column;
        let next = Order { column, is_down: if is_this { !self.is_down } else { column.is_down() } };
        put!(into, "<a href=\"/m/", folder);
        if next != Order::USUAL {
            put!(into, "?", Text(&next.query()));
        }
        put!(into, "\">", title);
        if is_this {
            into.put(if self.is_down { " \u{2193}" } else { " \u{2191}" });
        }
        into.put("</a>");
    }
}
