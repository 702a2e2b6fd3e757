//! Tests of the views of Rust source text.

use xtask::SourceFile;

#[track_caller]
fn check_code(text: &str, expected: &str) {
    let source = SourceFile::new(text);
    assert_eq!(source.code(), expected);
    assert_eq!(source.code().len(), text.len(), "an offset means the same place");
}

#[test]
fn comments_and_literals_are_blanked() {
    check_code("a // b\nc", "a     \nc");
    check_code("a /* b /* c */ d */ e", "a                   e");
    check_code(r#"f("x // \" y", 'z')"#, r#"f("         ", ' ')"#);
    check_code(r##"r#"a "b" c"# + br"d\""##, r##"r#"       "# + br"  ""##);
    check_code("'\\'' 'a: loop { break 'a }", "'  ' 'a: loop { break 'a }");
    check_code("for<'a> Fn(&'a str) -> '{'", "for<'a> Fn(&'a str) -> ' '");
    check_code("\"é\"", "\"  \"");
    check_code("\"not closed", "\"          ");
}

#[test]
fn literals_stay_where_only_comments_go() {
    let source = SourceFile::new("call(\"jsonrpc\"); // jsonrpc\n");
    assert_eq!(source.uncommented(), "call(\"jsonrpc\");           \n");
}

#[test]
fn test_items_are_told_apart() {
    let text = "fn a() {\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    let source = SourceFile::new(text);
    assert!(source.is_test(text.find("fn b").unwrap()));
    assert!(!source.is_test(text.find("fn a").unwrap()));
    assert!(!source.is_test(text.find("fn c").unwrap()));
    assert_eq!(source.n_lines(), 3);
    assert_eq!(source.line(text.find("fn c").unwrap()), 7);
}
