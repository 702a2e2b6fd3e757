use tool_core::{MAX_NAME, Pattern, check_name, outward_name};

#[test]
fn outward_names_stay_in_the_alphabet_and_apart() {
    let cases = [
        ("everything__echo", "everything__echo"),
        ("srv__read file/now", "srv__read_file_now"),
        ("ä", "_"),
        ("", "_"),
    ];
    for (name, expected) in cases {
        assert_eq!(outward_name(name), expected);
        assert!(check_name(&outward_name(name)).is_ok());
    }
    let (one, two) = (format!("{}1", "x".repeat(80)), format!("{}2", "x".repeat(80)));
    assert_eq!(outward_name(&one).len(), MAX_NAME);
    assert_ne!(outward_name(&one), outward_name(&two));
    // 55 characters, `_` and the first 8 digits of `printf 'x…1' | sha256sum`.
    assert_eq!(&outward_name(&one)[..56], format!("{}_", "x".repeat(55)));
    let exact = "y".repeat(MAX_NAME);
    assert_eq!(outward_name(&exact), exact);
}

#[test]
fn names_that_a_provider_would_not_take_are_refused() {
    for name in ["", "a b", "a.b", "a/b", "naïve", &"x".repeat(65)] {
        assert!(check_name(name).is_err(), "{name}");
    }
}

#[test]
fn patterns_match_whole_names() {
    let cases = [
        ("*", "anything", true),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*b*c", "axxbyyc", true),
        ("a*b*c", "acb", false),
        ("ab*ba", "aba", false),
        ("abc", "abcd", false),
        ("*b", "ba", false),
        ("A*", "abc", false),
    ];
    for (pattern, name, expected) in cases {
        assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} {name}");
    }
}
