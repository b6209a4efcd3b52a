//! The texts of the interface, a struct for each family of pages: a language that lacks one does not compile.
//!
//! A text is written into pages as it stands, so none has a character of markup. `{0}` and `{1}` are places for values.

use super::numbers::{Dates, Numbers, Plural};

/// All texts of a language, and its rules.
#[derive(Debug)]
pub(crate) struct Words {
    /// The tag of BCP 47, as `lang` has it.
    pub tag: &'static str,
    /// Its own name.
    pub name: &'static str,
    /// `ltr` or `rtl`
    pub direction: &'static str,
    pub numbers: Numbers,
    pub dates: Dates,
    pub common: Common,
    pub told: Outcomes,
    pub failures: Failures,
    pub faults: Faults,
    pub login: Login,
    pub folders: Folders,
    pub list: List,
    pub read: Read,
    pub write: Write,
    pub contacts: Contacts,
    pub filters: Filters,
    pub vacation: Vacation,
    pub settings: Settings,
    pub security: Security,
}

/// Words of several pages.
#[derive(Debug)]
pub(crate) struct Common {
    pub skip: &'static str,
    pub search_mail: &'static str,
    pub search: &'static str,
    pub log_out: &'static str,
    pub write: &'static str,
    pub folders: &'static str,
    pub folder: &'static str,
    pub contacts: &'static str,
    pub settings: &'static str,
    pub save: &'static str,
    pub delete: &'static str,
    pub done: &'static str,
    pub name: &'static str,
    pub subject: &'static str,
    pub text: &'static str,
    pub from: &'static str,
    pub to: &'static str,
    pub cc: &'static str,
    pub bcc: &'static str,
    pub reply_to: &'static str,
    pub date: &'static str,
    pub attachments: &'static str,
    pub no_subject: &'static str,
    pub mark: &'static str,
    /// `{0}`: a subject, or the name of a contact.
    pub mark_one: &'static str,
    pub flag: &'static str,
    pub unflag: &'static str,
    pub unread: &'static str,
    pub move_to: &'static str,
    pub move_now: &'static str,
    /// Between the items of a list.
    pub comma: &'static str,
    pub unread_messages: Plural,
    pub back: &'static str,
    pub not_done: &'static str,
    pub not_found: &'static str,
    pub no_such_page: &'static str,
}

/// Outcomes of forms.
#[derive(Debug)]
pub(crate) struct Outcomes {
    pub sent: &'static str,
    pub draft: &'static str,
    pub moved: &'static str,
    pub deleted: &'static str,
    pub marked: &'static str,
    pub junk: &'static str,
    pub ended: &'static str,
    pub left: &'static str,
    pub kept: &'static str,
}

/// Things that could not be done, by the names of [`crate::mail::Failure`] and [`crate::Refusal`].
#[derive(Debug)]
pub(crate) struct Failures {
    pub gone: &'static str,
    pub quota: &'static str,
    pub store: &'static str,
    pub name: &'static str,
    pub exists: &'static str,
    pub inbox: &'static str,
    pub code: &'static str,
    pub password: &'static str,
    pub program: &'static str,
    pub passkey: &'static str,
    pub passkeys: &'static str,
    pub last_passkey: &'static str,
    pub no_relay: &'static str,
    pub elsewhere: &'static str,
    pub too_large: &'static str,
    pub unsigned: &'static str,
    pub unreached: &'static str,
    pub queue: &'static str,
    pub rate: &'static str,
    pub form_too_large: &'static str,
    pub files_too_large: &'static str,
    pub connections: &'static str,
    pub busy: &'static str,
    pub closed: &'static str,
    pub other_session: &'static str,
    pub other_site: &'static str,
    pub method: &'static str,
    pub no_address: &'static str,
}

/// Faults in forms, by the names of [`crate::fault::Fault`].
#[derive(Debug)]
pub(crate) struct Faults {
    /// `{0}`: what was typed.
    pub address: &'static str,
    /// `{0}`: a number.
    pub recipients: &'static str,
    pub no_recipient: &'static str,
    pub sender: &'static str,
    pub files: &'static str,
    pub files_again: &'static str,
    pub file_gone: &'static str,
    pub not_sent: &'static str,
    /// `{0}`: a number.
    pub contact_addresses: &'static str,
    pub contact_empty: &'static str,
    /// `{0}`: a number of contacts, `{1}`: a size.
    pub contacts_full: &'static str,
    pub no_cards: &'static str,
    pub rule_empty: &'static str,
    pub rule_nothing: &'static str,
    pub rule_own: &'static str,
    pub rule_forward: &'static str,
    /// `{0}`: a number.
    pub rules: &'static str,
    /// `{0}`: a size.
    pub script: &'static str,
    pub day: &'static str,
    pub days: &'static str,
    pub vacation_empty: &'static str,
}

/// The login page, and what it answers.
#[derive(Debug)]
pub(crate) struct Login {
    pub log_in: &'static str,
    pub name: &'static str,
    pub password: &'static str,
    pub code: &'static str,
    pub enter_code: &'static str,
    pub wrong: &'static str,
    pub late: &'static str,
    pub expired: &'static str,
    pub go_on: &'static str,
    pub wrong_passkey: &'static str,
    pub away: &'static str,
    pub busy: &'static str,
    pub to_mail: &'static str,
    pub passkey: &'static str,
    pub or_passkey: &'static str,
    pub use_passkey: &'static str,
}

/// Folders that every mailbox has, and the page of folders.
#[derive(Debug)]
pub(crate) struct Folders {
    pub inbox: &'static str,
    pub drafts: &'static str,
    pub sent: &'static str,
    pub archive: &'static str,
    pub junk: &'static str,
    pub trash: &'static str,
    /// `{0}`: a size.
    pub used: &'static str,
    /// `{0}`: a size, `{1}`: the largest.
    pub used_of: &'static str,
    pub new: &'static str,
    pub new_name: &'static str,
    pub create: &'static str,
    pub own: &'static str,
    /// `{0}`: the folder.
    pub name_of: &'static str,
    pub rename: &'static str,
    /// `{0}`: the number of messages, `{1}`: the folder.
    pub delete: Plural,
    pub none: &'static str,
}

/// Lists of messages.
#[derive(Debug)]
pub(crate) struct List {
    pub empty: &'static str,
    pub newest: &'static str,
    pub older: &'static str,
    pub messages: Plural,
    pub drafts: &'static str,
    pub conversation: Plural,
    pub conversation_cut: Plural,
    /// `{0}`: the words.
    pub search: &'static str,
    pub nothing: &'static str,
    pub unfinished: &'static str,
    pub found: Plural,
    pub found_cut: Plural,
    pub folder_date: &'static str,
    pub nobody: &'static str,
    pub flagged: &'static str,
    pub answered: &'static str,
    pub files: &'static str,
    pub actions: &'static str,
    pub seen: &'static str,
    pub junk: &'static str,
    pub not_junk: &'static str,
    pub empty_folder: &'static str,
    pub size: &'static str,
    pub more: &'static str,
}

/// A message, its pictures and its mailing list.
#[derive(Debug)]
pub(crate) struct Read {
    pub reply: &'static str,
    pub reply_all: &'static str,
    pub reply_list: &'static str,
    pub forward: &'static str,
    pub source: &'static str,
    pub print: &'static str,
    pub no_text: &'static str,
    pub more_parts: &'static str,
    pub view: &'static str,
    pub as_text: &'static str,
    pub frame: &'static str,
    pub others: Plural,
    pub pictures_left: Plural,
    pub pictures_lost: Plural,
    pub pictures_show: &'static str,
    pub pictures_hide: &'static str,
    /// `{0}`: an address.
    pub pictures_always: &'static str,
    pub pictures: &'static str,
    pub pictures_note: &'static str,
    pub pictures_forget: &'static str,
    pub unsubscribe: &'static str,
    /// `{0}`: a host.
    pub at_once: &'static str,
    /// `{0}`: an address.
    pub by_mail: &'static str,
    /// `{0}`: a host.
    pub on_page: &'static str,
}

/// A mail that is written.
#[derive(Debug)]
pub(crate) struct Write {
    pub attach: &'static str,
    pub kept_files: &'static str,
    pub send: &'static str,
    pub save_draft: &'static str,
    /// `{0}`: a date, `{1}`: a person. In the mail, before what is quoted.
    pub wrote: &'static str,
    /// In the mail, before what is forwarded.
    pub forwarded: &'static str,
}

/// Contacts.
#[derive(Debug)]
pub(crate) struct Contacts {
    pub search: &'static str,
    pub new: &'static str,
    pub one: &'static str,
    pub empty: &'static str,
    pub exchange: &'static str,
    pub details: &'static str,
    pub file: &'static str,
    pub import: &'static str,
    pub export: &'static str,
    /// `{0}`: a number.
    pub version: &'static str,
    pub addresses: &'static str,
    pub addresses_typed: &'static str,
    pub phone: &'static str,
    pub note: &'static str,
    pub collected: &'static str,
    pub write: &'static str,
    pub count: Plural,
    /// `{0}`: the number of contacts in words, `{1}`: a number.
    pub cut: &'static str,
}

/// Filters.
#[derive(Debug)]
pub(crate) struct Filters {
    pub title: &'static str,
    pub note: &'static str,
    pub new: &'static str,
    pub one: &'static str,
    /// `{0}`: its number.
    pub unnamed: &'static str,
    pub as_text: &'static str,
    pub foreign: &'static str,
    pub empty: &'static str,
    pub inactive: &'static str,
    pub change: &'static str,
    pub up: &'static str,
    pub down: &'static str,
    pub mails: &'static str,
    pub tests: &'static str,
    pub all: &'static str,
    pub any: &'static str,
    pub done: &'static str,
    pub mark_seen: &'static str,
    pub forward: &'static str,
    pub last: &'static str,
    pub usual: &'static str,
    pub nowhere: &'static str,
    pub sender: &'static str,
    pub recipient: &'static str,
    pub subject: &'static str,
    pub list: &'static str,
    pub contains: &'static str,
    pub lacks: &'static str,
    pub is: &'static str,
    /// `{0}`: a number.
    pub test_field: &'static str,
    /// `{0}`: a number.
    pub test_how: &'static str,
    /// `{0}`: a number.
    pub test_value: &'static str,
    /// A test in words. `{0}`: the field, `{1}`: the value.
    pub does_contain: &'static str,
    pub does_lack: &'static str,
    pub does_equal: &'static str,
    pub and: &'static str,
    pub or: &'static str,
    /// A rule in words. `{0}`: its tests, `{1}`: what is done.
    pub summary: &'static str,
    /// `{0}`: a folder.
    pub into: &'static str,
    pub deleted: &'static str,
    /// `{0}`: an address.
    pub copied: &'static str,
    pub seen: &'static str,
    pub flagged: &'static str,
    pub stops: &'static str,
    pub text_note: &'static str,
    pub script: &'static str,
    pub rules: &'static str,
}

/// The answer of who is away.
#[derive(Debug)]
pub(crate) struct Vacation {
    pub title: &'static str,
    pub note: &'static str,
    pub on: &'static str,
    pub from: &'static str,
    pub until: &'static str,
}

/// Settings and identities.
#[derive(Debug)]
pub(crate) struct Settings {
    pub name: &'static str,
    pub signature: &'static str,
    pub language: &'static str,
    pub browser_language: &'static str,
    pub rows: &'static str,
    pub threaded: &'static str,
    pub zone: &'static str,
    pub pictures: &'static str,
    pub sessions: &'static str,
    pub second: &'static str,
    pub identities: &'static str,
    pub identities_note: &'static str,
}

/// Sessions, app passwords, the second step.
#[derive(Debug)]
pub(crate) struct Security {
    pub sessions: &'static str,
    pub sessions_note: &'static str,
    /// `{0}`, `{1}`: dates.
    pub used: &'static str,
    /// `{0}`: a date.
    pub unused: &'static str,
    pub this_browser: &'static str,
    pub end: &'static str,
    pub end_others: &'static str,
    pub apps: &'static str,
    pub apps_note: &'static str,
    pub app_new: &'static str,
    pub app_name: &'static str,
    pub protocols: &'static str,
    /// What a protocol is for. `{0}`: its name.
    pub reads: &'static str,
    pub fetches: &'static str,
    pub sends: &'static str,
    pub changes_filters: &'static str,
    pub reads_and_sends: &'static str,
    pub password_now: &'static str,
    pub app_make: &'static str,
    pub app_withdraw: &'static str,
    pub app_made: &'static str,
    pub app_shown: &'static str,
    /// `{0}`: the name.
    pub app_login: &'static str,
    pub second: &'static str,
    pub second_set: &'static str,
    /// `{0}`: a number.
    pub second_left: &'static str,
    pub second_code: &'static str,
    pub second_end: &'static str,
    pub second_unset: &'static str,
    pub second_picture: &'static str,
    pub second_passkeys: &'static str,
    pub programs: &'static str,
    pub programs_closed: &'static str,
    pub programs_open: &'static str,
    pub sessions_end: &'static str,
    pub second_begin: &'static str,
    pub second_done: &'static str,
    pub recovery: &'static str,
    pub recovery_note: &'static str,
    pub passkeys: &'static str,
    pub passkeys_note: &'static str,
    pub passkey_new: &'static str,
    pub passkey_name: &'static str,
    pub passkey_make: &'static str,
    pub passkey_remove: &'static str,
    pub passkey_lack: &'static str,
    pub passkey_failed: &'static str,
}
