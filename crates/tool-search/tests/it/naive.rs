//! Comparison with a direct implementation of the formula, which reads all documents for each query.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*, sample::select};
use tool_search::{
    FieldWeights, SearchRequest, SearchScope, ToolDocument, ToolIndex, raw_json::RawJson, stem, tokens,
};

const WORDS: &[&str] = &[
    "weather",
    "forecasts",
    "city",
    "create",
    "issue",
    "repository",
    "searching",
    "the",
    "mail",
    "send",
    "GitHub",
    "file",
    "read",
    "of",
    "pullRequest",
    "s3",
];

fn text(max: usize) -> impl Strategy<Value = String> {
    vec(select(WORDS), 0..max).prop_map(|words| words.join(" "))
}

fn words(max: usize) -> impl Strategy<Value = Vec<String>> {
    vec(select(WORDS).prop_map(str::to_owned), 0..max)
}

prop_compose! {
    fn document()(
        name in vec(select(WORDS), 1..4),
        description in text(12),
        server in proptest::option::of(select(WORDS)),
        parameters in vec((select(WORDS), text(4)), 0..3),
        tags in words(3),
        capabilities in words(3),
        aliases in words(2),
        examples in vec(text(5), 0..2),
    ) -> ToolDocument {
        let mut document = ToolDocument::new(name.join("_"));
        document.description = description;
        document.server = server.map(Into::into);
        let properties: Vec<_> = parameters
            .iter()
            .map(|(name, text)| (*name, RawJson::from_members(&[("description", RawJson::from(text.as_str()))])))
            .collect();
        let schema = RawJson::from_members(&[("properties", RawJson::from_members(&properties))]);
        document.add_schema(&schema);
        (document.tags, document.capabilities) = (tags, capabilities);
        (document.aliases, document.examples) = (aliases, examples);
        document
    }
}

/// Returns the terms of each field, in the order of [`weights`].
fn fields(document: &ToolDocument) -> Vec<Vec<String>> {
    let stems = |text: &str, keeps_stop_words: bool| -> Vec<String> {
        let tokens = tokens(text).into_iter();
        tokens
            .filter_map(|token| stem(&token).or_else(|| keeps_stop_words.then_some(token)))
            .collect()
    };
    let join = |texts: &[String]| texts.join(" ");
    let parameters = &document.parameters;
    vec![
        stems(&document.name, true),
        stems(&join(&document.aliases), true),
        stems(&document.description, false),
        stems(
            &join(&parameters.iter().map(|p| p.name.clone()).collect::<Vec<_>>()),
            false,
        ),
        stems(
            &join(
                &parameters
                    .iter()
                    .map(|p| p.description.clone())
                    .collect::<Vec<_>>(),
            ),
            false,
        ),
        stems(document.server.as_deref().unwrap_or_default(), false),
        stems(&join(&document.tags), false),
        stems(&join(&document.capabilities), false),
        stems(&join(&document.examples), false),
    ]
}

fn weights(weights: &FieldWeights) -> [f32; 9] {
    [
        weights.name,
        weights.alias,
        weights.description,
        weights.parameter,
        weights.parameter_description,
        weights.server,
        weights.tag,
        weights.capability,
        weights.example,
    ]
}

/// Returns the score of each document, relative to the maximum.
fn naive(documents: &[ToolDocument], query: &str) -> Vec<f64> {
    let parameters = FieldWeights::default();
    let (k1, b) = (f64::from(parameters.k1), f64::from(parameters.b));
    let all: Vec<_> = documents.iter().map(fields).collect();
    let mean = |field: usize| {
        let lengths: Vec<_> = all
            .iter()
            .map(|fields| fields[field].len())
            .filter(|length| *length > 0)
            .collect();
        lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64
    };
    let mut terms: BTreeSet<String> = tokens(query).iter().filter_map(|token| stem(token)).collect();
    if terms.is_empty() {
        terms.extend(tokens(query));
    }
    let frequency = |term: &String| {
        let n = all
            .iter()
            .filter(|fields| fields.iter().flatten().any(|word| word == term))
            .count() as f64;
        ((all.len() as f64 - n + 0.5) / (n + 0.5)).ln_1p()
    };
    let maximum: f64 = terms.iter().map(frequency).sum();
    let score = |fields: &Vec<Vec<String>>| -> f64 {
        let of_term = |term: &String| {
            let in_field = |(field, words): (usize, &Vec<String>)| {
                let n = words.iter().filter(|word| *word == term).count() as f64;
                let length = words.len() as f64 / mean(field).max(f64::MIN_POSITIVE);
                match n > 0.0 {
                    true => f64::from(weights(&parameters)[field]) * n / (1.0 - b + b * length),
                    false => 0.0,
                }
            };
            let weighted: f64 = fields.iter().enumerate().map(in_field).sum();
            frequency(term) * weighted / (k1 + weighted)
        };
        terms.iter().map(of_term).sum::<f64>() / maximum
    };
    all.iter().map(score).collect()
}

proptest! {
    #[test]
    fn scores_are_those_of_the_formula_and_the_best_come_first(
        documents in vec(document(), 1..30),
        query in vec(select(WORDS), 2..6),
        limit in 1_usize..12,
    ) {
        let query = query.join(" ");
        let expected = naive(&documents, &query);
        let index = ToolIndex::build(documents);
        let results = index.search(&SearchRequest::new(query.as_str()).limit(limit), &SearchScope::default());
        let best = expected.iter().copied().fold(0.0, f64::max);
        if results.hits.is_empty() {
            prop_assert!(best < 0.25, "the best score is {best}");
        } else {
            let n_matching = expected.iter().filter(|score| **score > 0.0).count();
            prop_assert_eq!(results.hits.len(), n_matching.min(limit));
        }
        for hit in results.hits.iter().filter(|hit| !hit.is_by_name) {
            let score = expected[hit.document];
            prop_assert!((f64::from(hit.score) - score).abs() < 1e-4, "{} is {score}, not {}", hit.name, hit.score);
        }
        let found: Vec<_> = results.hits.iter().map(|hit| hit.document).collect();
        if let Some(last) = results.hits.iter().filter(|hit| !hit.is_by_name).map(|hit| expected[hit.document]).next_back() {
            let missed = expected.iter().enumerate().filter(|(document, _)| !found.contains(document));
            let better = missed.filter(|(_, score)| **score > last + 1e-4).count();
            prop_assert_eq!(better, 0);
        }
    }

    #[test]
    fn any_text_is_searched_without_a_panic(
        names in vec(".{0,40}", 0..8),
        texts in vec(".{0,80}", 0..8),
        query in ".{0,120}",
    ) {
        let documents = names.iter().zip(texts.iter().chain(std::iter::repeat(&query))).map(|(name, text)| {
            let mut document = ToolDocument::new(name.as_str());
            document.description = text.clone();
            document
        });
        let index = ToolIndex::build(documents);
        let results = index.search(&SearchRequest::new(query.as_str()), &SearchScope::default());
        prop_assert!(results.hits.len() <= 8);
    }

    #[test]
    fn a_tool_that_is_not_admitted_is_never_found(
        documents in vec(document(), 1..20),
        query in vec(select(WORDS), 1..4),
        forbidden in vec(any::<bool>(), 20),
    ) {
        let index = ToolIndex::build(documents);
        let admits = |document: usize| !forbidden[document];
        let scope = SearchScope::default().admit(&admits);
        let results = index.search(&SearchRequest::new(query.join(" ")).limit(20), &scope);
        prop_assert!(results.hits.iter().all(|hit| !forbidden[hit.document]));
        // Nothing is said about them either.
        let n_admitted = (0..index.len()).filter(|document| admits(*document)).count();
        prop_assert!(results.nearest.iter().all(|category| category.n_tools <= n_admitted));
    }
}
