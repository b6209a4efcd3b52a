//! Keywords allowed in files of users: none with costs for the site, and none with an effect on others.

/// Keywords beside those of lists that a user may write.
const KEYWORDS: [&str; 19] = [
    "score",
    "required_score",
    "add_header",
    "remove_header",
    "clear_headers",
    "rewrite_header",
    "report",
    "unsafe_report",
    "report_template",
    "unsafe_report_template",
    "clear_report_template",
    "clear_unsafe_report_template",
    "report_safe",
    "report_contact",
    "fold_headers",
    "more_spam_to",
    "all_spam_to",
    "ok_locales",
    "ok_languages",
];

/// Whether a user may write a line of this keyword, as settings are called today.
pub fn is_of_users(keyword: &str) -> bool {
    let list = keyword.strip_prefix("un").unwrap_or(keyword);
    let is_list = list.starts_with("welcomelist_") || list.starts_with("blocklist_");
    is_list || KEYWORDS.contains(&keyword)
}
