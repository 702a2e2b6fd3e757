//! Search by two callers: what one may not call leaves no trace in what it finds.

use std::sync::Arc;

use toolplane::{
    CallRequest, FoundTools, Toolplane,
    core::{BoxFuture, Caller, EmbedError, Embedder},
    search::{MemoryUsageLog, SearchFilter, SearchOrder, SearchRequest, UsageLog},
};

/// Tools that everybody may call.
const SHARED: &str = "
  get_weather:
    description: The weather at a place.
    tags: [production-ready]
    capabilities: [forecast]
    executor: {kind: mock, result: 1}
  open_ticket:
    description: Opens a ticket about a problem at a place.
    tags: [production-ready]
    sla: 99%
    executor: {kind: mock, result: 1}
  send_mail:
    description: Sends a mail to people.
    required_permissions: [mail]
    executor: {kind: mock, result: 1}
";

/// Tools that only some may call, and some that nobody may call. They share words with the others, and have more of them.
const SECRET: &str = "
  open_vault:
    description: Opens the vault, the vault of tickets, mails and weather, at a place of people.
    tags: [vault, production-ready]
    capabilities: [vaulting, forecast]
    aliases: [get_weather_of_the_vault]
    examples: [open the vault about a problem]
    sla: 100%
    executor: {kind: mock, result: 1}
  payroll_weather:
    description: Weather weather weather. The payroll at a place.
    tags: [payroll]
    required_permissions: [payroll.read]
    executor: {kind: mock, result: 1}
  blocked_mail:
    description: Sends a mail. Mail, mail and mail to people.
    tags: [blocked]
    executor: {kind: mock, result: 1}
";

const POLICY: &str = "
policy:
  blocklist: ['blocked_*']
  required_permissions: {'open_v*': [vault.open]}
";

/// Embedder that counts letters: texts with the same letters are near.
struct Letters;

impl Embedder for Letters {
    fn model(&self) -> &str {
        "letters"
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let vector = |text: &String| {
                let count = |letter: u8| text.bytes().filter(|byte| *byte == letter).count() as f32;
                let counts: Vec<f32> = (b'a'..=b'z').map(count).collect();
                let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
                counts.iter().map(|count| count / length.max(1.0)).collect()
            };
            Ok(texts.iter().map(vector).collect())
        })
    }
}

fn plane(tools: &str, usage: &Arc<MemoryUsageLog>, has_embedder: bool) -> Toolplane {
    let builder = Toolplane::builder()
        .yaml(format!("{POLICY}tools:{tools}"))
        .expect("usable")
        .usage_log(usage.clone());
    let builder = match has_embedder {
        true => builder.embedder(Arc::new(Letters)),
        false => builder,
    };
    builder.build().expect("usable")
}

fn caller(name: &str, permissions: &[&str]) -> Caller {
    let mut caller = Caller::new(name);
    caller
        .permissions
        .extend(permissions.iter().map(|permission| Arc::from(*permission)));
    caller
}

fn guest() -> Caller {
    caller("guest", &["mail"])
}

fn keeper() -> Caller {
    caller("keeper", &["mail", "vault.open", "payroll.read"])
}

fn filter(tag: &str, capability: &str, permission: &str, server: &str) -> SearchFilter {
    let words = |word: &str| (!word.is_empty()).then(|| word.to_owned()).into_iter();
    let mut filter = SearchFilter::default();
    filter.tags.extend(words(tag));
    filter.capabilities.extend(words(capability));
    filter.permissions.extend(words(permission));
    filter.servers.extend(words(server));
    filter
}

/// Requests by words, by names, by filters and orders; some fit only tools that the guest may not call.
fn requests() -> Vec<SearchRequest> {
    let by_words = [
        "weather at a place",
        "open_vault",
        "get_weather",
        "open",
        "the vault",
        "payroll",
        "weather weather of the vault",
        "mail to people about a ticket",
        "knit a pullover",
        "blocked mail",
        "tickets and mails of people",
    ];
    let mut requests: Vec<_> = by_words.into_iter().map(SearchRequest::new).collect();
    requests.push(
        SearchRequest::new("open the vault")
            .query("send a mail")
            .query("payroll")
            .limit(3),
    );
    for filter in [
        filter("vault", "", "", ""),
        filter("payroll", "", "", ""),
        filter("production-ready", "", "", ""),
        filter("", "forecast", "", ""),
        filter("", "vaulting", "", ""),
        filter("", "", "vault.open", ""),
        filter("", "", "payroll.read", ""),
        filter("", "", "mail", ""),
        filter("vault", "forecast", "", "none"),
    ] {
        requests.push(
            SearchRequest::all()
                .filter(filter.clone())
                .order(SearchOrder::Sla),
        );
        requests.push(SearchRequest::new("weather at a place").filter(filter.clone()));
        requests.push(SearchRequest::new("the vault").filter(filter));
    }
    requests
}

/// Everything that a search says, scores to the last bit.
fn everything(found: &FoundTools) -> String {
    let tools = found
        .tools
        .iter()
        .map(|found| {
            (
                found.tool.name().clone(),
                found.score.to_bits(),
                found.is_by_name,
                found.queries.clone(),
            )
        })
        .collect::<Vec<_>>();
    format!(
        "{tools:?} {:?} {:?} {:?} {:?}",
        found.unmatched, found.nearest, found.missing, found.warnings
    )
}

/// Searches until the tools are embedded.
async fn search(plane: &Toolplane, request: &SearchRequest, caller: &Caller) -> FoundTools {
    for _ in 0..100_000 {
        let found = plane.search(request, caller).await;
        if found.warnings.is_empty() {
            return found;
        }
        tokio::task::yield_now().await;
    }
    panic!("the tools are not embedded");
}

fn names(found: &FoundTools) -> Vec<&str> {
    found.tools.iter().map(|found| &**found.tool.name()).collect()
}

#[tokio::test]
async fn what_a_caller_may_not_call_changes_nothing_that_it_finds() {
    for has_embedder in [false, true] {
        let (usage, other_usage) = (
            Arc::new(MemoryUsageLog::default()),
            Arc::new(MemoryUsageLog::default()),
        );
        let with = plane(&format!("{SHARED}{SECRET}"), &usage, has_embedder);
        let without = plane(SHARED, &other_usage, has_embedder);
        // The other caller's use of its own tools is recorded.
        for query in ["the vault", "weather at a place", "mail to people"] {
            for tool in ["open_vault", "payroll_weather"] {
                usage.record("default", tool, query);
            }
        }
        for request in requests() {
            let found = search(&with, &request, &guest()).await;
            let expected = search(&without, &request, &guest()).await;
            assert_eq!(everything(&found), everything(&expected), "{request:?}");
        }
        // It is there for the one who may call it, and nobody finds what nobody may call.
        for (query, tool) in [("the vault", "open_vault"), ("payroll", "payroll_weather")] {
            let found = search(&with, &SearchRequest::new(query), &keeper()).await;
            assert_eq!(names(&found)[0], tool);
        }
        let found = search(&with, &SearchRequest::new("blocked mail"), &keeper()).await;
        assert!(!names(&found).contains(&"blocked_mail"), "{found:?}");
    }
}

#[tokio::test]
async fn a_filter_by_permission_knows_those_of_the_tool_and_those_of_the_policy() {
    let plane = plane(&format!("{SHARED}{SECRET}"), &Arc::default(), false);
    for (permission, of_keeper, of_guest) in [
        ("vault.open", &["open_vault"][..], &[][..]),
        ("payroll.read", &["payroll_weather"], &[]),
        ("mail", &["send_mail"], &["send_mail"]),
        ("none", &[], &[]),
    ] {
        let request = SearchRequest::all().filter(filter("", "", permission, ""));
        for (caller, expected) in [(keeper(), of_keeper), (guest(), of_guest)] {
            assert_eq!(
                names(&plane.search(&request, &caller).await),
                expected,
                "{permission}"
            );
        }
    }
}

#[tokio::test]
async fn measured_reliability_precedes_the_declared_one() {
    let plane = Toolplane::from_yaml(
        "
tools:
  a_promise:
    {description: Sends a letter., sla: 99.9%, executor: {kind: mock, error: {kind: upstream_error, message: no}}}
  b_proof: {description: Sends a letter., sla: 90%, executor: {kind: mock, result: 1}}
",
    )
    .expect("usable");
    let by_sla = SearchRequest::new("send a letter").order(SearchOrder::Sla);
    let order = async || {
        let found = plane.search(&by_sla, &plane.local_caller()).await;
        names(&found).join(" ")
    };
    assert_eq!(order().await, "a_promise b_proof");
    for n_calls in 1..=10 {
        // Nine calls prove nothing yet.
        assert_eq!(order().await, "a_promise b_proof", "{n_calls}");
        let failed = plane.call(CallRequest::new("a_promise")).await;
        assert!(failed.is_err(), "{failed:?}");
    }
    assert_eq!(order().await, "b_proof a_promise");
}

#[tokio::test]
async fn callers_with_other_tools_do_not_share_an_index_and_changed_permissions_apply_at_once() {
    let plane = plane(&format!("{SHARED}{SECRET}"), &Arc::default(), false);
    let request = SearchRequest::new("the vault");
    // More callers than there are indexes, in turns.
    for round in 0..2 {
        for number in 0..20 {
            let mut one = caller("one", &["vault.open"]);
            one.permissions.insert(format!("own.{number}").into());
            assert_eq!(
                names(&plane.search(&request, &one).await)[0],
                "open_vault",
                "{round}"
            );
            one.permissions.remove("vault.open");
            assert_eq!(names(&plane.search(&request, &one).await), [""; 0], "{round}");
        }
    }
    plane.disable("open_vault", None).await.expect("it exists");
    assert_eq!(names(&plane.search(&request, &keeper()).await), [""; 0]);
    assert!(plane.enable("open_vault"));
    assert_eq!(names(&plane.search(&request, &keeper()).await)[0], "open_vault");
}
