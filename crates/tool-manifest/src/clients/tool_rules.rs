use tool_core::Pattern;

/// Allowed and denied tools of one server, from rules over the qualified names of tools of which the last that matches counts.
///
/// Where rules cannot be expressed by two lists, fewer tools are allowed, never more.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ToolRules {
    /// Patterns of the only tools that are allowed; all tools if absent.
    pub(crate) include: Option<Vec<String>>,
    /// Patterns of tools that are denied.
    pub(crate) exclude: Vec<String>,
    /// `true` if a rule allows tools that stay denied.
    pub(crate) is_stricter: bool,
}

impl ToolRules {
    /// Adds a rule. `pattern` is a pattern with `*` and `?` over qualified names, which begin with `prefix`.
    pub(crate) fn add(&mut self, pattern: &str, prefix: &str, allows: bool) {
        let has_one = pattern.contains('?');
        if allows && has_one {
            self.is_stricter = true;
            return;
        }
        // `*` for `?` denies more.
        let patterns = remainders(&pattern.replace('?', "*"), prefix);
        let is_all = patterns
            .iter()
            .any(|pattern| pattern.bytes().all(|byte| byte == b'*'));
        match (allows, is_all) {
            _ if patterns.is_empty() => {}
            (false, true) => {
                self.include = Some(Vec::new());
                self.exclude.clear();
            }
            (false, false) => self.exclude.extend(patterns),
            (true, true) => {
                *self = Self {
                    is_stricter: self.is_stricter,
                    ..Self::default()
                };
            }
            (true, false) => {
                self.is_stricter |= !self.exclude.is_empty();
                if let Some(include) = &mut self.include {
                    include.extend(patterns);
                }
            }
        }
    }
}

/// Returns the patterns of the names of tools of which the qualified names match.
fn remainders(pattern: &str, prefix: &str) -> Vec<String> {
    let remainders = Pattern::new(pattern).after(prefix);
    remainders
        .into_iter()
        .map(|pattern| pattern.as_str().to_owned())
        .filter(|pattern| !pattern.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::RngSeed};

    use super::*;

    #[test]
    fn rules_of_one_server() {
        let rules = |rules: &[(&str, bool)]| {
            let mut all = ToolRules::default();
            for (pattern, allows) in rules {
                all.add(pattern, "db_", *allows);
            }
            let exclude: Vec<_> = all.exclude.iter().map(String::as_str).collect();
            let include = all.include.as_ref().map(|include| include.join(" "));
            format!("{include:?} {exclude:?} {}", all.is_stricter)
        };
        assert_eq!(rules(&[("db_*", false)]), r#"Some("") [] false"#);
        assert_eq!(
            rules(&[("d*", false), ("db_read*", true)]),
            r#"Some("read*") [] false"#
        );
        assert_eq!(
            rules(&[("*_drop", false)]),
            r#"None ["_drop", "*_drop", "drop"] false"#
        );
        assert_eq!(rules(&[("web_*", false)]), "None [] false");
        assert_eq!(rules(&[("db_x", false), ("db_*", true)]), "None [] false");
        assert_eq!(rules(&[("db_x*", false), ("db_xy", true)]), r#"None ["x*"] true"#);
    }

    /// Returns `true` if a text matches a pattern with `*` and `?`, by recursion.
    fn matches(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), _) => {
                matches(&pattern[1..], text) || !text.is_empty() && matches(pattern, &text[1..])
            }
            (Some(b'?'), Some(_)) => matches(&pattern[1..], &text[1..]),
            (Some(one), Some(other)) if one == other => matches(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(26),
            failure_persistence: None,
            ..ProptestConfig::with_cases(1024)
        })]

        /// No tool is allowed that the rules deny, and without exceptions to denials the two agree.
        #[test]
        fn never_more_than_the_rules(
            rules in prop::collection::vec(("[ab_*?]{1,5}", any::<bool>()), 0..5),
            tool in "[ab_]{1,4}",
        ) {
            let mut all = ToolRules::default();
            for (pattern, allows) in &rules {
                all.add(pattern, "a_", *allows);
            }
            let name = format!("a_{tool}");
            let last = rules.iter().rev().find(|(pattern, _)| matches(pattern.as_bytes(), name.as_bytes()));
            let expected = last.is_none_or(|(_, allows)| *allows);
            let any = |patterns: &[String]| patterns.iter().any(|pattern| Pattern::new(pattern.as_str()).matches(&tool));
            let allowed = all.include.as_deref().is_none_or(any) && !any(&all.exclude);
            prop_assert!(!allowed || expected, "{rules:?} {tool} {all:?}");
            if !all.is_stricter && !rules.iter().any(|(pattern, _)| pattern.contains('?')) {
                prop_assert_eq!(allowed, expected, "{:?} {} {:?}", rules, tool, all);
            }
        }
    }
}
