//! The order of tests in one section: sizes first, then texts that no other test depends on, and such expressions last.
//!
//! A test depends on the one whose end it begins at, so both stay where they are. The result is the same in any order; a size is
//! compared at once, and a text is found or not in a fraction of the time that an expression takes.

use super::rule::{Content, Test, Value, Verb};

/// Puts the cheapest tests first.
pub(super) fn cheap_first(tests: Vec<Test>) -> Vec<Test> {
    let is_free: Vec<bool> = (0..tests.len()).map(|at| is_free(&tests[at..])).collect();
    let (mut sizes, mut texts, mut others, mut expressions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (test, is_free) in tests.into_iter().zip(is_free) {
        match &test {
            Test::Size(_) | Test::DataAt { count: Value::Number(_), is_relative: false, .. } => sizes.push(test),
            Test::Content(content) if is_free && !content.is_negated && !has_variable(content) => texts.push(test),
            Test::Pcre(_) if is_free => expressions.push(test),
            _ => others.push(test),
        }
    }
    sizes.into_iter().chain(texts).chain(others).chain(expressions).collect()
}

/// Whether the first test begins at no other's end, and no test behind it at its own.
fn is_free(tests: &[Test]) -> bool {
    tests.split_first().is_some_and(|(first, behind)| !first.is_relative() && !begin_at_end(behind))
}

/// Whether one of these tests begins at the end of the test in front of them.
pub(super) fn begin_at_end(tests: &[Test]) -> bool {
    let decides = tests.iter().find(|test| test.is_relative() || moves(test));
    decides.is_some_and(Test::is_relative)
}

/// Whether tests behind it may begin at its end.
fn moves(test: &Test) -> bool {
    match test {
        Test::Content(content) => !content.is_negated,
        Test::Pcre(pcre) => !pcre.is_negated,
        Test::Bytes(bytes) => !matches!(bytes.verb, Verb::Test { .. }),
        _ => false,
    }
}

fn has_variable(content: &Content) -> bool {
    [content.offset, content.depth].into_iter().flatten().any(|value| matches!(value, Value::Variable(_)))
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::rule::Test;
    use super::super::set::Loader;

    fn order(options: &str) -> Vec<String> {
        let mut loader = Loader::new(Limits::default());
        loader.file("rules", format!("alert http any any -> any any (http.uri; {options} sid:1;)").as_bytes());
        let set = loader.finish();
        assert!(set.problems().is_empty(), "{:?}", set.problems());
        let name = |test: &Test| match test {
            Test::Content(content) => String::from_utf8_lossy(&content.bytes).into_owned(),
            Test::Pcre(_) => "/".into(),
            Test::DataAt { .. } => "@".into(),
            _ => "#".into(),
        };
        set.rules()[0].sections[0].tests.iter().map(name).collect()
    }

    #[test]
    fn texts_come_before_expressions_unless_one_begins_at_the_others_end() {
        assert_eq!(order(r#"pcre:"/a+/"; content:"b"; content:"c";"#), ["b", "c", "/"]);
        assert_eq!(order(r#"content:"b"; pcre:"/a+/R"; content:"c";"#), ["c", "b", "/"]);
        assert_eq!(order(r#"pcre:"/a+/"; content:"b"; within:3; content:"c";"#), ["c", "/", "b"]);
        assert_eq!(order(r#"pcre:"/a+/"; content:!"x"; content:"b"; within:3;"#), ["/", "x", "b"]);
        assert_eq!(order(r#"byte_extract:1,0,n; content:"b"; offset:n; content:"c";"#), ["c", "#", "b"]);
        assert_eq!(order(r#"content:"b"; isdataat:2,relative; content:"c"; isdataat:!9;"#), ["@", "c", "b", "@"]);
    }
}
