//! Wordings that agree, and the figures of the semantic cache on requests that were written for it.

use proptest::prelude::*;
use serde::Deserialize;

use super::{SemanticCacheSettings, wording::Wording};

fn agree(first: &str, second: &str) -> bool {
    let (first, second) = (Wording::of(first), Wording::of(second));
    let agree = first.agrees_with(&second);
    assert_eq!(
        agree,
        second.agrees_with(&first),
        "the order of two calls must not matter"
    );
    agree
}

#[test]
fn words_that_tell_nothing_may_differ() {
    for (first, second) in [
        (
            "What's the weather in Oslo?",
            "Please tell me the weather in Oslo",
        ),
        (
            "Find a local guide for a city tour in Barcelona",
            "local guide, Barcelona city tour",
        ),
        (
            "Book a table for four people at Roma",
            "I'd like to reserve a table for 4 people at Roma.",
        ),
        ("Show movies by Kubrick", "Can you find me some films by Kubrick?"),
        ("Calculate the area of a circle", "area of a circle"),
        (
            "I need the manual and the catalog of the pump",
            "catalog and manual of the pump",
        ),
        (
            "\"Convert 20,000 yen to euros\"",
            "Please convert 20000 yen to euros",
        ),
        ("my appointment on the 15th of March", "my appointment, 15 March"),
        ("Explain 'portfolio-web'", "explain \"portfolio-web\""),
        ("how many goals", "number of goals"),
        ("wetter in Bern", "Wetter in Bern"),
    ] {
        assert!(agree(first, second), "{first} | {second}");
    }
}

#[test]
fn words_that_tell_something_must_be_equal() {
    for (first, second) in [
        ("weather in Oslo", "weather in Rome"),
        ("flights from Oslo to Rome", "flights from Rome to Oslo"),
        ("convert 200 euros to dollars", "convert 200 dollars to euros"),
        (
            "players with a rating above 2300",
            "players with a rating below 2300",
        ),
        ("restaurants with a terrace", "restaurants without a terrace"),
        ("is it open", "is it not open"),
        ("is it open", "isn't it open"),
        ("buy 12 apples, and rice", "buy apples, and 12 rice"),
        (
            "a burger with no onions, extra cheese",
            "a burger with no cheese, extra onions",
        ),
        (
            "guitar shops with violin lessons",
            "violin shops with guitar lessons",
        ),
        ("roots of 5, 20 and -25", "roots of 5, -20 and -25"),
        ("compute (2 + 3) * 4", "compute 2 + (3 * 4)"),
        ("compute 5 - 3", "compute 5 + 3"),
        ("compile C code", "compile C++ code"),
        ("translate 'I want the dog'", "translate 'I need the dog'"),
        ("open /srv/a.txt", "open /srv/A.txt"),
        ("what was the price", "what is the price"),
        ("what will the price be", "what is the price"),
        ("emails to John", "emails about John"),
        ("what is my name", "what is your name"),
        ("the price on 1,500 items", "the price on 1,5 items"),
        (
            "give me background information",
            "give me information in the background",
        ),
        (
            "share a picture. Recommend a cute song",
            "share a cute song. Recommend a picture",
        ),
        ("call me at 5 pm", "call me at 5 am"),
        ("$500 for rent", "€500 for rent"),
        ("growth > 5%", "growth < 5%"),
        ("das Wetter von gestern", "das Wetter von morgen"),
        ("weather", "weather weather"),
        ("price of a can of beer", "price of a beer"),
        ("forecast in 5 days", "forecast for 5 days"),
        ("movies with few actors", "movies with actors"),
        ("is 5 mg too much", "is 5 mg much"),
        ("what is it", "can you show me"),
        ("?", "!"),
        ("compute ln(779)", "compute -ln(779)"),
        ("scramble the word 'PUZZLE'", "scramble the word 'PUZZLES'"),
        (
            "find attractions with discounts and suggest hotels",
            "find attractions and suggest hotels with discounts",
        ),
        (
            "steak with fried onions and pasta",
            "steak and pasta with fried onions",
        ),
        ("attractions, cheap new hotels", "cheap new attractions, hotels"),
        ("read http://example.com", "read https://example.com"),
        ("their likes and followers", "their likes and followings"),
        ("show me their recent matches", "show me my recent matches"),
        (
            "including the lower bound, excluding the upper bound",
            "excluding the lower bound, including the upper bound",
        ),
        ("weather in Oslo in May", "weather in Oslo"),
        ("weather in oslo in may", "weather in oslo"),
        ("jobs in IT", "jobs in it"),
        ("price in US dollars", "price in dollars"),
        ("foods with vitamin A", "foods with vitamin"),
        ("call at 5 am", "call at 5"),
        (
            "impact of inflation on stock prices",
            "impact of stock prices on inflation",
        ),
    ] {
        assert!(!agree(first, second), "{first} | {second}");
    }
}

proptest! {
    #[test]
    fn any_text_agrees_with_itself(text in any::<String>(), words in "[a-zA-Z0-9 .,:'\"?$+/()-]{0,80}") {
        for text in [text, words] {
            let is_empty = Wording::of(&text) == Wording::of("");
            prop_assert_eq!(agree(&text, &text), !is_empty);
        }
    }

    #[test]
    fn another_word_in_the_middle_is_another_request(before in "[b-df-hj-np-rt-z]{3,8}", after in "[b-df-hj-np-rt-z]{3,8}") {
        let text = format!("the {before} of the {after}");
        prop_assert!(!agree(&text, &format!("the {before} of the last {after}")), "{}", text);
    }
}

/// Request of a person, with texts that were written to mean the same, and texts that were written to mean almost the same.
#[derive(Deserialize)]
struct Request {
    part: String,
    query: String,
    paraphrases: Vec<Text>,
    near_misses: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    /// Cosine of its vector and that of the query, by all-MiniLM-L6-v2.
    cosine: f32,
}

/// Counts of texts by the answer of the cache.
#[derive(Debug, PartialEq)]
struct Figures {
    n_texts: usize,
    /// Paraphrases that are answered with the result of their query.
    n_hits: usize,
    /// Near misses that are answered with the result of their query.
    n_wrong: usize,
}

fn figures(requests: &[Request], part: &str) -> Figures {
    let mut figures = Figures {
        n_texts: 0,
        n_hits: 0,
        n_wrong: 0,
    };
    for request in requests.iter().filter(|request| request.part == part) {
        let query = Wording::of(&request.query);
        let is_hit = |text: &&Text| {
            let is_near = text.cosine >= SemanticCacheSettings::DEFAULT_THRESHOLD;
            is_near && query.agrees_with(&Wording::of(&text.text))
        };
        figures.n_texts += request.paraphrases.len() + request.near_misses.len();
        figures.n_hits += request.paraphrases.iter().filter(is_hit).count();
        for text in request.near_misses.iter().filter(is_hit) {
            println!("wrong: {} | {}", request.query, text.text);
            figures.n_wrong += 1;
        }
    }
    figures
}

/// The counts are those of the guide: whoever changes the rules measures again.
#[test]
fn the_figures_of_the_guide_hold() {
    let lines = include_str!("../../../tests/data/requests.jsonl").lines();
    let requests: Vec<Request> = lines
        .map(|line| serde_json::from_str(line).expect("a request"))
        .collect();
    for (part, n_texts, n_hits, n_wrong) in [("development", 6702, 296, 0), ("held_out", 1200, 30, 0)] {
        let expected = Figures {
            n_texts,
            n_hits,
            n_wrong,
        };
        assert_eq!(figures(&requests, part), expected, "{part}");
    }
}
