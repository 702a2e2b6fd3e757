//! Random texts, compared with a reference reader that takes one byte at a time: verdict, message and offset must be
//! equal.

use std::collections::HashSet;

use proptest::{collection::vec, prelude::*};
use raw_json::{DuplicateKeys, IndexedJson, JsonLimits, validate};

struct Reader<'a> {
    text: &'a str,
    at: usize,
    limits: JsonLimits,
}

impl<'a> Reader<'a> {
    fn read(text: &'a str, limits: JsonLimits) -> Result<(), String> {
        let mut reader = Reader { text, at: 0, limits };
        reader.space();
        reader.value(0)?;
        reader.space();
        match reader.peek() {
            None => Ok(()),
            Some(_) => reader.refuse("text after the value"),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn takes(&mut self, bytes: &[u8]) -> bool {
        let is_there = self.peek().is_some_and(|byte| bytes.contains(&byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn space(&mut self) {
        while self.takes(b" \n\r\t") {}
    }

    fn refuse<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("invalid JSON: {what} at byte {}", self.at))
    }

    fn value(&mut self, depth: usize) -> Result<(), String> {
        match self.peek() {
            Some(b'{' | b'[') if depth == self.limits.depth => {
                Err(format!("nested deeper than {depth} levels at byte {}", self.at))
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            None => self.refuse("unexpected end of text, expected a value"),
            Some(_) => {
                let rest = &self.text.as_bytes()[self.at..];
                let word = ["true", "false", "null"]
                    .into_iter()
                    .find(|word| rest.starts_with(word.as_bytes()));
                let Some(word) = word else {
                    return self.refuse("expected a value");
                };
                self.at += word.len();
                Ok(())
            }
        }
    }

    /// Reads the separator after a value. Returns `true` if another value follows.
    fn goes_on(&mut self, end: u8) -> Result<bool, String> {
        self.space();
        if self.takes(b",") {
            self.space();
            return Ok(true);
        }
        if self.takes(&[end]) {
            return Ok(false);
        }
        match (self.peek(), end) {
            (None, _) => self.refuse("unexpected end of text inside a value"),
            (_, b']') => self.refuse("expected `,` or `]`"),
            _ => self.refuse("expected `,` or `}`"),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.takes(b"]") {
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), String> {
        self.at += 1;
        self.space();
        if self.takes(b"}") {
            return Ok(());
        }
        let mut keys = HashSet::new();
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return self.refuse("expected a key in double quotes");
            }
            let key = self.string()?;
            if self.limits.duplicate_keys == DuplicateKeys::Refuse {
                let Ok(key) = serde_json::from_str::<String>(key) else {
                    return Err(format!("invalid JSON: lone surrogate in a key at byte {start}"));
                };
                if !keys.insert(key.clone()) {
                    return Err(format!("duplicate key `{key}` at byte {start}"));
                }
            }
            self.space();
            if !self.takes(b":") {
                return self.refuse("expected `:` after a key");
            }
            self.space();
            self.value(depth + 1)?;
            if !self.goes_on(b'}')? {
                return Ok(());
            }
        }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at]);
                }
                Some(b'\\') => self.escape()?,
                Some(0..0x20) => return self.refuse("control character in a string"),
                Some(_) => self.at += 1,
                None => return self.refuse("unterminated string"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let is_hexadecimal = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
        match rest {
            [b'u', digits @ ..] if digits.len() >= 4 && is_hexadecimal(&digits[..4]) => self.at += 6,
            [b'u', ..] => return self.refuse("invalid \\u escape"),
            [byte, ..] if b"\"\\/bfnrt".contains(byte) => self.at += 2,
            _ => return self.refuse("invalid escape"),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        self.takes(b"-");
        if self.takes(b"0") {
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.refuse("number with a leading zero");
            }
        } else {
            self.digits()?;
        }
        if self.takes(b".") {
            self.digits()?;
        }
        if self.takes(b"eE") {
            self.takes(b"+-");
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), String> {
        if !self.takes(b"0123456789") {
            return self.refuse("expected a digit");
        }
        while self.takes(b"0123456789") {}
        Ok(())
    }
}

/// Text between the quotes of a key: few distinct keys, long and short, some of which differ in one byte.
fn key() -> impl Strategy<Value = String> {
    let start = prop_oneof![
        Just(""),
        Just("a"),
        Just("name"),
        Just("letters"),
        Just("a prefix/"),
        Just("another prefix/"),
        Just("\\u006e"),
        Just("é"),
    ];
    (
        start,
        "[ab]?",
        prop_oneof![Just(""), Just(""), Just(" and so on"), Just("\\n")],
    )
        .prop_map(|(start, middle, end)| format!("{start}{middle}{end}"))
}

/// Text between the quotes of a string.
fn content() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        (0..90_usize).prop_map(|count| "x".repeat(count)),
        Just("\\\"".to_owned()),
        Just("\\u00e9\\ud800".to_owned()),
        Just("é".to_owned()),
        Just("\\\\".to_owned()),
    ];
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn space() -> BoxedStrategy<&'static str> {
    prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t \r")].boxed()
}

/// Value that may contain duplicate keys.
fn value(space: BoxedStrategy<&'static str>) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("null".to_owned()),
        "(-?[0-9]|[1-9][0-9]{0,12})(\\.[0-9]{1,3})?(e[+-]?[0-9])?",
        content().prop_map(|content| format!("\"{content}\"")),
        content().prop_map(|content| format!("\"{content}\"")),
    ];
    leaf.prop_recursive(5, 80, 40, move |inner| {
        let items = vec((inner.clone(), space.clone()), 0..5);
        let member = (key(), space.clone(), space.clone(), inner).prop_map(|(key, before, behind, value)| {
            format!("\"{key}\"{before}:{behind}{value}")
        });
        let members = vec((member, space.clone()), 0..5);
        let many = (0..45_usize, key(), 0..90_usize).prop_map(|(count, key, again)| {
            let key = |number: usize| format!("\"{key}{number}\":0");
            let again = (again < count).then(|| key(again));
            let members: Vec<String> = (0..count).map(key).chain(again).collect();
            format!("{{{}}}", members.join(","))
        });
        let join = |parts: Vec<(String, &str)>| {
            let parts: Vec<String> = parts.into_iter().map(|(part, space)| part + space).collect();
            parts.join(",")
        };
        prop_oneof![
            2 => (space.clone(), items).prop_map(move |(space, items)| format!("[{space}{}]", join(items))),
            6 => (space.clone(), members).prop_map(move |(space, members)| format!("{{{space}{}}}", join(members))),
            1 => many,
        ]
    })
}

fn judged_alike(text: &str) {
    for duplicate_keys in [DuplicateKeys::Refuse, DuplicateKeys::Allow] {
        for depth in [2, 128] {
            let limits = JsonLimits::RELAY
                .with_depth(depth)
                .with_duplicate_keys(duplicate_keys);
            let expected = Reader::read(text, limits);
            let found = validate(text, limits).map_err(|error| error.to_string());
            assert_eq!(found, expected, "{text:?} within {limits:?}");
            let parsed = IndexedJson::parse(text.to_owned(), limits).map(drop);
            assert_eq!(parsed.map_err(|error| error.to_string()), expected, "{text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn texts_without_space_are_judged_alike(text in value(Just("").boxed()), at in any::<prop::sample::Index>(), byte in 0_u8..128) {
        judged_alike(&text);
        judged_alike(&changed(&text, at.index(text.len()), byte));
    }

    #[test]
    fn texts_with_space_are_judged_alike(text in value(space()), before in space(), at in any::<prop::sample::Index>(), byte in 0_u8..128) {
        let text = format!("{before}{text}{before}");
        judged_alike(&text);
        judged_alike(&changed(&text, at.index(text.len()), byte));
    }
}

/// Returns a text with one byte replaced.
fn changed(text: &str, at: usize, byte: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes[at] = byte;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn messages_that_are_cut_or_changed_anywhere_are_judged_alike() {
    let compact = r#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"a\"b","arguments":{"text":"long enough for a word, or two, or three, and then some more of it: é","":[1.5e3,{"n":null}]}}}"#;
    let pretty = "{ \"id\" : -0 ,\n  \"a\" : [ ] ,\n \"result\": {\r\n\t\"isError\" : false , \"content\": [ { } ] } }\n";
    for text in [compact, pretty] {
        for at in 0..text.len() {
            if text.is_char_boundary(at) {
                judged_alike(&text[..at]);
            }
            for byte in *b"\"\\{}[]:,0e \n\x01n" {
                judged_alike(&changed(text, at, byte));
            }
        }
    }
}

#[test]
fn deep_texts_are_judged_alike() {
    // Arrays and objects alternate in an order that has no period of two or of 64.
    for depth in [1, 63, 64, 65, 127, 128, 129] {
        let is_object = |level: usize| level * level % 7 < 3;
        let open: String = (0..depth)
            .map(|level| if is_object(level) { "{\"a\":" } else { "[" })
            .collect();
        let end = |wrong: usize| -> String {
            let is_object = |level| is_object(level) ^ (level == wrong);
            (0..depth)
                .rev()
                .map(|level| if is_object(level) { '}' } else { ']' })
                .collect()
        };
        for wrong in 0..=depth {
            judged_alike(&format!("{open}1{}", end(wrong)));
        }
    }
}
