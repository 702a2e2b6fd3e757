//! Texts with large values, whose members are found through the index: the result must equal that of unindexed text.

use proptest::{collection::vec, prelude::*};
use raw_json::{IndexedJson, JsonLimits, RawJson};
use serde_json::{Map, Value};

fn value() -> impl Strategy<Value = Value> {
    let string = prop_oneof![
        any::<String>(),
        (0..2_000_usize, "[a-z\"\\\\é\n]{1,4}").prop_map(|(count, piece)| piece.repeat(count)),
    ];
    let leaf = prop_oneof![any::<i64>().prop_map(Value::from), string.prop_map(Value::from)];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec(("[a-d]", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Lists every value of a text, outer values first.
fn all(raw: &RawJson) -> Vec<String> {
    let mut texts = vec![raw.to_string()];
    for (key, value) in raw.members() {
        texts.push(key.into_owned());
        texts.extend(all(&value));
    }
    texts.extend(raw.items().flat_map(|item| all(&item)));
    // Read the members again as borrowed values.
    let parts = raw.parts().flat_map(|(_, part)| part.parts().collect::<Vec<_>>());
    texts.extend(parts.map(|(key, part)| format!("{key}: {}", part.as_str())));
    texts
}

fn pretty(value: &Value) -> String {
    format!(
        "\n {}  ",
        serde_json::to_string_pretty(value).expect("it is JSON")
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn large_values_are_found_where_they_stand(value in value()) {
        let raw = RawJson::parse(pretty(&value)).unwrap();
        prop_assert_eq!(all(&raw), all(&raw.detached()));
        let parsed = IndexedJson::parse(pretty(&value), JsonLimits::RELAY).unwrap();
        prop_assert_eq!(all(parsed.raw()), all(&raw.detached()));
    }

    #[test]
    fn large_values_are_found_in_what_was_put_together(
        first in vec(("[a-d]", value()), 0..4), second in vec(("[a-f]", value()), 0..4), key in "[a-h]"
    ) {
        let object = |members: Vec<(String, Value)>| RawJson::parse(pretty(&Value::Object(members.into_iter().collect()))).unwrap();
        let (first, second) = (object(first), object(second));
        let members: Vec<_> = second.members().collect();
        let members: Vec<_> = members.iter().map(|(key, value)| (&**key, value.clone())).collect();
        let with = first.with_members(&members).unwrap();
        let made = [
            with.with_new_member("new", &second).unwrap(),
            with.with_members(&[(&*key, with.clone())]).unwrap(),
            with.with_members_in(&key, &members).unwrap(),
            with.without_members(&[&*key]).unwrap(),
            with,
        ];
        for made in made {
            prop_assert_eq!(all(&made), all(&RawJson::parse(made.to_string()).unwrap().detached()));
        }
    }
}
