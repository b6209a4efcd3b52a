//! Results of the parser, and texts that it refuses.

use super::*;

fn wrong(text: &str) -> (usize, Wrong) {
    let error = parse(text.as_bytes(), Flags::NONE, 200, &mut Memo::default()).expect_err(text);
    (error.offset, error.wrong)
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    assert_eq!(wrong("a)"), (1, Wrong::StrayParenthesis));
    assert_eq!(wrong("ab(c"), (2, Wrong::OpenGroup));
    assert_eq!(wrong("a[b"), (1, Wrong::OpenBracket));
    assert_eq!(wrong("[]"), (0, Wrong::OpenBracket));
    assert_eq!(wrong("a|*"), (2, Wrong::NothingToRepeat));
    assert_eq!(wrong("a{2}{3}").1, Wrong::NestedQuantifier);
    assert_eq!(wrong("a**").1, Wrong::NestedQuantifier);
    assert_eq!(wrong("a{65535}").1, Wrong::CountTooBig);
    assert_eq!(wrong("x[z-a]"), (2, Wrong::BadRange));
    assert_eq!(wrong("[[:foo:]]").1, Wrong::UnknownClass);
    assert_eq!(wrong("a\\").1, Wrong::TrailingBackslash);
    assert_eq!(wrong("(a)\\2"), (4, Wrong::NoSuchGroup));
    assert_eq!(wrong("(?<a>x)\\k<b>").1, Wrong::NoSuchGroup);
    assert_eq!(wrong("(?z)").1, Wrong::UnknownFlag);
    assert_eq!(wrong("(?<=a*)b"), (0, Wrong::LongLookBehind));
    assert_eq!(wrong("(?<=a{256})b"), (0, Wrong::LongLookBehind));
    assert_eq!(wrong(&"(".repeat(300)).1, Wrong::TooDeep);
    for text in
        ["(?|a)", "(?R)", "(?1)", "(?&n)", "(?(1)a)", "(?{1})", "(*FAIL)", "\\K", "\\X", "\\p{L}", "\\b{wb}", "(?u)a"]
    {
        assert!(matches!(wrong(text).1, Wrong::Unsupported(_)), "{text}");
    }
}

#[test]
fn a_number_is_a_group_only_if_there_are_so_many() {
    let node = |text: &str| parse(text.as_bytes(), Flags::NONE, 200, &mut Memo::default()).expect(text).node;
    let has_reference = |node: Node| node.any(&mut |node| matches!(node, Node::Backreference { .. }));
    assert!(!has_reference(node("(a)\\10")));
    assert!(has_reference(node("(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)\\10")));
}
