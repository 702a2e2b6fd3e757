//! Tools that operators switch off by hand.

use std::sync::{Arc, Mutex};

use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, ErrorKind, Event, Feature, Observe},
    manifest::{LoadOptions, Loaded, Syntax, load},
};

const CONFIGURATION: &str = r#"
tools:
  search: {description: Searches., executor: {kind: mock, result: found}}
  other:
    description: Asks search first.
    on_failure: [{fallback: search}]
    executor: {kind: mock, error: {kind: unavailable, message: down}}
"#;

fn loaded(text: &str) -> Loaded {
    load(&LoadOptions::new().text("c", Syntax::Yaml, text)).expect("usable")
}

#[derive(Default)]
struct Switches(Mutex<Vec<String>>);

impl Observe for Switches {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Switched {
            tool, is_on, reason, ..
        } = event
        {
            let said = format!("{tool} {is_on} {}", reason.unwrap_or("-"));
            self.0.lock().expect("no test panics with it").push(said);
        }
    }
}

async fn names(plane: &Toolplane) -> Vec<String> {
    let view = plane.view(&Caller::local()).await;
    view.tools().iter().map(|tool| tool.name().to_string()).collect()
}

#[tokio::test]
async fn a_tool_that_is_switched_off_is_not_listed_and_not_called_until_it_is_on_again() {
    let switches = Arc::new(Switches::default());
    let builder = Toolplane::builder().loaded(&loaded(CONFIGURATION));
    let plane = builder.observer(switches.clone()).build().expect("usable");
    let revision = || plane.cached_view(&Caller::local()).revision_of(Feature::Tool);
    let before = revision();
    plane
        .disable("search", Some("it is\nbroken"))
        .await
        .expect("it is there");
    assert!(revision() > before, "clients are told");
    assert_eq!(names(&plane).await, ["other"]);
    let error = plane
        .call(CallRequest::new("search"))
        .await
        .expect_err("it is off");
    assert_eq!(
        (error.kind(), error.allows_retry()),
        (ErrorKind::Unavailable, false)
    );
    let said = "`search` is switched off: an operator switched it off: it is\\nbroken";
    assert_eq!(error.message(), said);
    let error = plane
        .tool("search", &Caller::local())
        .await
        .expect_err("it is off");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // It is no fallback either.
    let error = plane
        .call(CallRequest::new("other"))
        .await
        .expect_err("both fail");
    assert_eq!(error.kind(), ErrorKind::Unavailable);

    // A switch of an operator survives a reload, even one that changes rules.
    let other_rules = format!("{CONFIGURATION}policy: {{blocklist: [nothing]}}\n");
    for text in [CONFIGURATION, &other_rules] {
        plane.reload(&loaded(text)).expect("usable");
        assert_eq!(names(&plane).await, ["other"]);
    }
    let records = plane.disabled_records();
    assert_eq!(
        (records.len(), &records[0]["tool"], &records[0]["by"]),
        (1, &"search".into(), &"operator".into())
    );
    assert!(
        records[0].get("retry_in_ms").is_none() && records[0]["digest"].is_string(),
        "{records:?}"
    );

    let before = revision();
    assert!(plane.enable("search") && !plane.enable("search"));
    assert!(revision() > before, "clients are told");
    assert_eq!(names(&plane).await, ["other", "search"]);
    plane.call(CallRequest::new("search")).await.expect("it is on");
    assert!(plane.disabled_records().is_empty());
    let told = switches.0.lock().expect("no test panics with it").clone();
    assert_eq!(told, ["search false it is\\nbroken", "search true -"]);
}

#[tokio::test]
async fn what_is_not_there_is_not_switched_off() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    let error = plane.disable("serch", None).await.expect_err("there is none");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("did you mean `search`?"), "{error}");
    assert!(plane.disabled_by_operator().is_empty());
}

#[tokio::test]
async fn the_reason_of_a_tool_that_is_off_can_be_replaced() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    plane.disable("search", Some("first")).await.expect("it is there");
    let since = plane.disabled_by_operator()[0].1.since;
    plane.disable("search", None).await.expect("it is there");
    let (name, off) = plane.disabled_by_operator().remove(0);
    assert_eq!((&*name, off.reason, off.since), ("search", None, since));
}
