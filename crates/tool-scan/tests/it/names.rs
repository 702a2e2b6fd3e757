use proptest::prelude::*;
use tool_scan::{has_mixed_scripts, name_skeleton};

#[test]
fn names_that_look_alike_share_a_key() {
    for (a, b) in [
        ("Read_File", "read_file"),
        ("read-file", "read_file"),
        ("READ.FILE", "read/file"),
        ("list1", "listl"),
        ("listI", "list1"),
        ("g0", "gO"),
        ("t00l", "tool"),
        ("modern", "rnodern"),
        ("view", "vievv"),
        ("read_file", "rеаd_filе"),
        ("ｒead_file", "read_file"),
        ("read\u{200b}_file", "read_file"),
        ("ﬁle", "file"),
    ] {
        assert_eq!(name_skeleton(a), name_skeleton(b), "{a} {b}");
    }
    for (a, b) in [
        ("read_file", "read_files"),
        ("get_a", "get_b"),
        ("查询", "查找"),
        ("add", "sub"),
    ] {
        assert_ne!(name_skeleton(a), name_skeleton(b), "{a} {b}");
    }
}

#[test]
fn scripts_that_are_not_written_together_are_found() {
    for (name, is_mixed) in [
        ("read file 1", false),
        ("поиск", false),
        ("search_検索", false),
        ("rеad_file", true),
        ("αdd", true),
    ] {
        assert_eq!(has_mixed_scripts(name), is_mixed, "{name}");
    }
}

/// Letters, each with characters that look like it.
const ALIKE: [(char, &[&str]); 12] = [
    ('a', &["A", "а", "ａ", "𝐚"]),
    ('e', &["E", "е", "ｅ"]),
    ('o', &["O", "0", "о", "ο"]),
    ('l', &["L", "1", "I", "ⅼ"]),
    ('i', &["I", "1", "і"]),
    ('c', &["C", "с"]),
    ('p', &["P", "р"]),
    ('m', &["M", "rn", "ｍ"]),
    ('s', &["S", "ѕ"]),
    ('x', &["X", "х"]),
    ('_', &["-", ".", "_\u{200b}", " "]),
    ('w', &["W", "vv"]),
];

proptest! {
    #[test]
    fn any_mixture_of_look_alikes_is_found(name in "[a-z_]{1,20}", picks in prop::collection::vec(0usize..6, 20)) {
        let disguised: String = name.chars().zip(&picks).map(|(c, pick)| {
            let alike = ALIKE.iter().find(|(letter, _)| *letter == c).and_then(|(_, alike)| alike.get(*pick));
            alike.map_or_else(|| c.to_string(), |alike| (*alike).to_owned())
        }).collect();
        prop_assert_eq!(name_skeleton(&disguised), name_skeleton(&name), "{}", disguised);
    }
}
