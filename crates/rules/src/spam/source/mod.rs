//! Files and lines: the order of files, comments, languages, conditions, and what SpamAssassin itself knows.

pub(super) mod condition;
pub mod known;
pub(super) mod line;
pub(super) mod users;

/// Puts the names of a folder's files into the order in which they are read, and drops the others: files that end in
/// `.pre` first, those that end in `.cf` after them, each by the bytes of their names. What is read later overrides, so
/// `local.cf` overrides what comes before it. Of several folders the `.pre` of all come before the `.cf` of any.
pub fn order(names: &mut Vec<String>) {
    let kind = |name: &str| match name.rsplit_once('.') {
        Some((_, "pre")) => Some(0),
        Some((_, "cf")) => Some(1),
        _ => None,
    };
    names.retain(|name| kind(name).is_some());
    names.sort_by(|a, b| (kind(a), a.as_bytes()).cmp(&(kind(b), b.as_bytes())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loads_plugins_comes_first_and_names_are_ordered_by_bytes() {
        let mut names = ["local.cf", "v310.pre", "README", "20_a.cf", "init.pre", ".x.cf", "z.cf", "A.cf", "b.cfg"]
            .map(String::from)
            .to_vec();
        order(&mut names);
        assert_eq!(names, ["init.pre", "v310.pre", ".x.cf", "20_a.cf", "A.cf", "local.cf", "z.cf"]);
    }
}
