//! Search through the facade: callers, changes, usage and embedders.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use toolplane::{
    CallRequest, FoundTools, Toolplane,
    core::{BoxFuture, Caller, EmbedError, Embedder},
    manifest::{LoadOptions, Loaded, Syntax, load},
    search::{CategoryKind, MemoryUsageLog, SearchFilter, SearchOrder, SearchRequest, UsageLog, UsageRecord},
};

const TOOLS: &str = "
tools:
  get_weather:
    description: The weather at a place.
    input_schema: {type: object, properties: {city: {type: string, description: Name of the town}}}
    tags: [production-ready]
    capabilities: [forecast]
    aliases: [wetterbericht]
    examples: [do I need an umbrella in Oslo?]
    sla: 99%
    executor: {kind: mock, result: {sky: clear}}
  weather_archive:
    description: Past weather at a place.
    tags: [production-ready]
    capabilities: [forecast]
    sla: 99.9%
    executor: {kind: mock, result: 1}
  pay_invoice:
    description: Pays an invoice by bank transfer.
    required_permissions: [pay]
    executor: {kind: mock, result: 1}
";

fn loaded(yaml: &str) -> Loaded {
    load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable")
}

fn plane(yaml: &str) -> Toolplane {
    Toolplane::from_yaml(yaml).expect("usable")
}

fn names(found: &FoundTools) -> Vec<&str> {
    found.tools.iter().map(|found| &**found.tool.name()).collect()
}

async fn found(plane: &Toolplane, query: &str) -> Vec<String> {
    let found = plane
        .search(&SearchRequest::new(query), &plane.local_caller())
        .await;
    names(&found).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn tools_are_found_by_all_that_a_configuration_says_about_them() {
    let plane = plane(TOOLS);
    for (query, first) in [
        ("weather at my place", "get_weather"),
        ("which town", "get_weather"),
        ("Wetterbericht", "get_weather"),
        ("umbrella for Oslo", "get_weather"),
        ("WEATHER_ARCHIVE", "weather_archive"),
        ("past weather", "weather_archive"),
    ] {
        assert_eq!(
            found(&plane, query).await.first().map(String::as_str),
            Some(first),
            "{query}"
        );
    }
}

#[tokio::test]
async fn tools_are_found_by_capability_in_the_order_of_their_sla() {
    let plane = plane(TOOLS);
    let mut filter = SearchFilter::default();
    filter.capabilities = vec!["forecast".to_owned()];
    filter.tags = vec!["production-ready".to_owned()];
    let request = SearchRequest::all().filter(filter).order(SearchOrder::Sla);
    let found = plane.search(&request, &plane.local_caller()).await;
    assert_eq!(names(&found), ["weather_archive", "get_weather"]);
}

#[tokio::test]
async fn only_tools_that_the_caller_may_call_are_found() {
    let plane = plane(TOOLS);
    let mut clerk = Caller::new("clerk");
    clerk.permissions.insert("pay".into());
    let request = SearchRequest::new("pay an invoice");
    assert_eq!(names(&plane.search(&request, &clerk).await), ["pay_invoice"]);
    let other = plane.search(&request, &Caller::new("guest")).await;
    assert!(other.tools.is_empty());
    assert_eq!(other.unmatched, [0]);
    // The categories count what the caller may call as well.
    let tags: Vec<_> = other
        .nearest
        .iter()
        .filter(|category| category.kind == CategoryKind::Tag)
        .collect();
    assert_eq!(tags.len(), 1);
    assert_eq!((&*tags[0].name, tags[0].n_tools), ("production-ready", 2));
    plane.disable("get_weather", None).await.expect("it exists");
    assert_eq!(found(&plane, "weather").await, ["weather_archive"]);
}

#[tokio::test]
async fn a_reload_changes_what_is_found() {
    let plane = plane(TOOLS);
    assert_eq!(found(&plane, "send a mail").await, [""; 0]);
    plane
        .reload(&loaded(
            "tools: {send_mail: {description: Sends a mail., executor: {kind: mock, result: 1}}}",
        ))
        .expect("usable");
    assert_eq!(found(&plane, "send a mail").await, ["send_mail"]);
    assert_eq!(found(&plane, "weather at a place").await, [""; 0]);
}

#[tokio::test]
async fn a_successful_call_of_a_found_tool_is_recorded_once_for_its_query() {
    let usage = Arc::new(MemoryUsageLog::default());
    let plane = Toolplane::builder()
        .yaml(TOOLS)
        .expect("usable")
        .usage_log(usage.clone())
        .build()
        .expect("usable");
    let call = async |tool: &str| plane.call(CallRequest::new(tool)).await;
    // Nobody searched yet.
    call("get_weather").await.expect("a reply");
    found(&plane, "is it raining, weather").await;
    assert!(usage.records("default").is_empty());
    // A dry run is no call, and a refused call is no success.
    plane.dry_run(CallRequest::new("get_weather")).await;
    assert!(call("pay_invoice").await.is_err());
    assert!(usage.records("default").is_empty());
    call("get_weather").await.expect("a reply");
    call("get_weather").await.expect("a reply");
    let expected = UsageRecord::new("get_weather", "is it raining, weather", 1);
    assert_eq!(usage.records("default"), [expected]);
    assert!(usage.records("other").is_empty());
    // A search of another principal is not attributed to this one.
    plane
        .search(&SearchRequest::new("past weather"), &Caller::new("eve"))
        .await;
    call("weather_archive").await.expect("a reply");
    assert_eq!(
        usage.records("default").len(),
        2,
        "it was among the results of the first search"
    );
    assert_eq!(&*usage.records("default")[1].query, "is it raining, weather");
}

/// Embedder that knows two meanings, and fails on demand.
#[derive(Default)]
struct TwoMeanings {
    is_broken: AtomicBool,
    n_texts: AtomicUsize,
}

impl Embedder for TwoMeanings {
    fn model(&self) -> &str {
        "two meanings"
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            if self.is_broken.load(Ordering::SeqCst) {
                return Err(EmbedError::new("out of order"));
            }
            self.n_texts.fetch_add(texts.len(), Ordering::SeqCst);
            let vector = |text: &String| match text.contains("invoice") || text.contains("debts") {
                true => vec![1.0, 0.0],
                false => vec![0.0, 1.0],
            };
            Ok(texts.iter().map(vector).collect())
        })
    }
}

#[tokio::test]
async fn an_embedder_finds_by_meaning_and_a_broken_one_leaves_the_words() {
    let embedder = Arc::new(TwoMeanings::default());
    let plane = Toolplane::builder()
        .yaml(TOOLS)
        .expect("usable")
        .embedder(embedder.clone())
        .build()
        .expect("usable");
    let mut clerk = Caller::new("clerk");
    clerk.permissions.insert("pay".into());
    let request = SearchRequest::new("settle my debts");
    embedder.is_broken.store(true, Ordering::SeqCst);
    let by_words = plane.search(&SearchRequest::new("weather archive"), &clerk).await;
    assert_eq!(names(&by_words)[0], "weather_archive");
    assert!(
        by_words.warnings[0].contains("by words alone"),
        "{:?}",
        by_words.warnings
    );
    embedder.is_broken.store(false, Ordering::SeqCst);
    // The tools are embedded in the background.
    let by_meaning = async {
        loop {
            let found = plane.search(&request, &clerk).await;
            if found.warnings.is_empty() {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let by_meaning = tokio::time::timeout(Duration::from_secs(60), by_meaning)
        .await
        .expect("they are embedded");
    assert_eq!(names(&by_meaning)[0], "pay_invoice");
    let n_texts = embedder.n_texts.load(Ordering::SeqCst);
    plane.search(&request, &clerk).await;
    assert_eq!(
        embedder.n_texts.load(Ordering::SeqCst),
        n_texts + 1,
        "tools are embedded once"
    );
    // Not even a meaning shows a tool that the caller may not call.
    assert!(!names(&plane.search(&request, &Caller::new("guest")).await).contains(&"pay_invoice"));
    embedder.is_broken.store(true, Ordering::SeqCst);
    let found = plane.search(&SearchRequest::new("weather archive"), &clerk).await;
    assert_eq!(names(&found)[0], "weather_archive");
    assert_eq!(found.warnings, ["searched by words alone: out of order"]);
}

/// The vectors of so many tools are compared on another thread.
#[tokio::test]
async fn meanings_are_found_among_many_tools() {
    let many: String = (0..2_500)
        .map(|number| format!("  tool_{number}: {{description: Weather of place {number}., executor: {{kind: mock, result: 1}}}}\n"))
        .collect();
    let plane = Toolplane::builder()
        .yaml(format!("{TOOLS}{many}"))
        .expect("usable")
        .embedder(Arc::new(TwoMeanings::default()))
        .build()
        .expect("usable");
    let mut clerk = Caller::new("clerk");
    clerk.permissions.insert("pay".into());
    let request = SearchRequest::new("settle my debts");
    let by_meaning = async {
        loop {
            let found = plane.search(&request, &clerk).await;
            if found.warnings.is_empty() {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let by_meaning = tokio::time::timeout(Duration::from_secs(120), by_meaning)
        .await
        .expect("they are embedded");
    assert_eq!(names(&by_meaning)[0], "pay_invoice");
}

#[tokio::test]
async fn pinned_patterns_that_match_nothing_are_reported() {
    let plane = plane(
        "gateway: {pinned: [get_*, sned_mail]}\ntools: {get_a: {description: A., executor: {kind: mock, result: 1}}, send_mail: {description: B., executor: {kind: mock, result: 1}}}",
    );
    let idle: Vec<String> = plane.idle_rules().iter().map(ToString::to_string).collect();
    assert_eq!(
        idle,
        ["`gateway.pinned` has `sned_mail`, which matches no tool, prompt or resource"]
    );
    assert_eq!(plane.idle_rules()[0].suggestion.as_deref(), Some("send_mail"));
}
