use raw_json::{canonical, digest};

use crate::raw;

fn check(text: &str, expected: &str) {
    assert_eq!(canonical(&raw(text)), expected, "{text}");
    assert_eq!(
        canonical(&raw(expected)),
        expected,
        "the canonical form is its own"
    );
}

/// RFC 8785 section 3.2.2, except for the first number: it has more digits than its double, so it keeps them.
#[test]
fn the_first_example_of_the_standard() {
    check(
        r#"{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"#,
        r#"{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
}

/// RFC 8785 section 3.2.3: keys are sorted by their UTF-16 code units.
#[test]
fn the_sorting_example_of_the_standard() {
    check(
        r#"{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

/// RFC 8785 appendix B.
#[test]
fn the_numbers_of_the_standard() {
    let table: &[(u64, &str)] = &[
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, expected) in table {
        let double = f64::from_bits(*bits);
        assert_eq!(expected.parse::<f64>().unwrap(), double, "{expected}");
        check(expected, expected);
        if *expected == "1424953923781206.2" {
            // Halfway between two shortest forms, so the other one is a different number.
            check("1424953923781206.3", "1424953923781206.3");
            continue;
        }
        for text in [format!("{double:e}"), format!("{double:E}"), format!("{double}")] {
            check(&text, expected);
        }
    }
}

#[test]
fn one_number_has_one_form() {
    for (texts, expected) in [
        (&["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000", "100E-2"][..], "1"),
        (&["0", "-0", "0.0", "-0.0e5", "0e99"], "0"),
        (&["100", "1e2", "1E+2", "100.0"], "100"),
        (&["0.1", "1e-1", "0.10"], "0.1"),
        (&["1e21", "1000000000000000000000"], "1e+21"),
        (&["-1.50", "-15e-1"], "-1.5"),
        (&["123456789012345", "123456789012345.0"], "123456789012345"),
        (&["9007199254740991"], "9007199254740991"),
    ] {
        for text in texts {
            check(text, expected);
        }
    }
}

#[test]
fn what_no_double_holds_stays_as_it_is() {
    for text in [
        "9007199254740993",
        "123456789012345678901234567890",
        "123456789012345678901234567891",
        "-12345678901234567890123",
        "0.1000000000000000055511151231257827",
        "1e400",
        "-1e400",
        "1e-400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "333333333.33333329",
    ] {
        check(text, text);
    }
    assert_ne!(
        digest(&raw("123456789012345678901234567890")),
        digest(&raw("123456789012345678901234567891"))
    );
}

#[test]
fn strings_have_the_fewest_escapes() {
    for (text, expected) in [
        (r#""\u0061""#, r#""a""#),
        (r#""\/""#, r#""/""#),
        (r#""\u0008\u0009\u000a\u000c\u000d""#, r#""\b\t\n\f\r""#),
        (r#""\u001F\u0000""#, r#""\u001f\u0000""#),
        (r#""\u007f""#, "\"\u{7f}\""),
        (r#""\u2028\ud83d\ude00""#, "\"\u{2028}😀\""),
        (r#""\u0022\u005c""#, r#""\"\\""#),
        // A lone surrogate has no decoded text, so it keeps its spelling.
        (r#""\uD800""#, r#""\uD800""#),
    ] {
        check(text, expected);
    }
}

#[test]
fn objects_are_sorted_at_every_level_and_arrays_never() {
    check(
        r#" { "b" : [ { "d":1 , "c":2 } , [ ] , { } ] , "a" : { "z" : { "y":1, "x":2 } } } "#,
        r#"{"a":{"z":{"x":2,"y":1}},"b":[{"c":2,"d":1},[],{}]}"#,
    );
    check(
        r#"{"a":1,"aa":2,"":0,"A":3,"\u0061b":4}"#,
        r#"{"":0,"A":3,"a":1,"aa":2,"ab":4}"#,
    );
}

#[test]
fn keys_that_are_no_text_stay_apart() {
    // A lone surrogate, and the six characters that spell it.
    let [lone, spelled] = [r#"{"\ud800":1}"#, r#"{"\\ud800":1}"#];
    assert_eq!(canonical(&raw(lone)), lone);
    assert_eq!(canonical(&raw(spelled)), spelled);
    assert_ne!(digest(&raw(lone)), digest(&raw(spelled)));
}

#[test]
fn digests_go_by_meaning() {
    let same = [r#"{"a":1,"b":[2,"c"]}"#, r#"{ "b":[2.0,"\u0063"], "a":1e0 }"#];
    assert_eq!(digest(&raw(same[0])), digest(&raw(same[1])));
    for other in [r#"{"a":1,"b":["c",2]}"#, r#"{"a":"1","b":[2,"c"]}"#, r#"{"a":1}"#] {
        assert_ne!(digest(&raw(same[0])), digest(&raw(other)));
    }
}
