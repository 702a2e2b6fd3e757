//! The critical scenarios of the layered architecture, its chaos test, and the tests that show them.

/// Each scenario, the file that shows it, and the tests there.
const SCENARIOS: [(&str, &str, &[&str]); 6] = [
    (
        "1. transient failures: fails twice, succeeds the third time",
        include_str!("chaos.rs"),
        &["transient_failures_are_tried_again_after_growing_pauses"],
    ),
    (
        "2. circuit breaker: opens past the threshold, and later calls fail fast",
        include_str!("chaos.rs"),
        &["a_breaker_opens_under_chaos_and_closes_when_it_is_over"],
    ),
    (
        "3. credential expiration: 401, one renewal, success",
        include_str!("credentials.rs"),
        &[
            "an_expired_token_is_renewed_once_and_the_call_succeeds",
            "a_token_that_cannot_be_renewed_switches_the_tool_off",
        ],
    ),
    (
        "4. graceful degradation: the primary fails, the fallback succeeds",
        include_str!("ladder.rs"),
        &["when_the_primary_fails_the_fallback_answers_and_it_is_told"],
    ),
    (
        "5. cache behaviour: identical requests within the time to live",
        include_str!("cache.rs"),
        &["an_identical_call_within_the_time_to_live_is_answered_from_the_cache"],
    ),
    (
        "the chaos test: 50 calls, a fifth of them failing, and latency",
        include_str!("chaos.rs"),
        &[
            "fifty_calls_at_a_fifth_of_failures",
            "with_retries_nearly_all_of_them_succeed",
        ],
    ),
];

#[test]
fn every_scenario_has_its_tests() {
    for (scenario, file, tests) in SCENARIOS {
        for test in tests {
            let mut lines = file.lines();
            let above = lines
                .by_ref()
                .take_while(|line| *line != format!("async fn {test}() {{"))
                .last();
            let is_test = above.is_some_and(|line| line.starts_with("#[tokio::test"));
            assert!(
                is_test && lines.next().is_some(),
                "{scenario}: there is no test `{test}`"
            );
        }
    }
}
