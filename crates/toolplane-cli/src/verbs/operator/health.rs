use std::{net::SocketAddr, time::Duration};

use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Request,
    body::Bytes,
    client::conn::http1,
    header::{AUTHORIZATION, HOST},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use toolplane::{
    RawJson,
    core::{SourceState, hide_credentials},
    manifest::{Configuration, Loaded},
};

use crate::{
    command::{Health, Options},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, table::Table, text},
    process::runtime::block_on,
    verbs::on_plane,
};

/// Time limit for the answer of a gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the answer, in bytes.
const MAX_ANSWER: usize = 16 << 20;

pub(crate) fn run(options: &Options, health: &Health, console: Console) -> Result<Exit, CliError> {
    if health.direct {
        return direct(options, console);
    }
    let address = match health.address {
        Some(address) => address,
        None => configured(options, console)?,
    };
    block_on(async {
        let answer = timeout(ANSWER_TIMEOUT, ask(address)).await.unwrap_or_else(|_| {
            Err(CliError::new(
                Exit::Unavailable,
                "timeout",
                format!(
                    "the gateway at `{address}` did not answer within {}",
                    text::time(ANSWER_TIMEOUT)
                ),
            ))
        });
        show(&answer?, console)
    })
}

/// Returns the address of the configured gateway, or the default without a configuration.
fn configured(options: &Options, console: Console) -> Result<SocketAddr, CliError> {
    let Ok(files) = config::files(options) else {
        return Ok(Configuration::default().gateway.listen);
    };
    let loaded: Loaded = config::read(files, console)?;
    Ok(loaded.configuration.gateway.listen)
}

/// Runs all checks once, without a gateway.
fn direct(options: &Options, console: Console) -> Result<Exit, CliError> {
    on_plane(options, console, async |_, plane| {
        plane.view(&plane.local_caller()).await;
        let mut reasons = Vec::new();
        for checked in plane.check_health().await {
            if let Err(error) = checked.result {
                let cause = std::error::Error::source(&error);
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                let text = format!("{}: {error}{cause}", checked.subject);
                console.warn(&text::line(&hide_credentials(&text)));
                reasons.push(format!("the {} failed its check", checked.subject));
            }
        }
        for (name, status) in plane.sources() {
            if let SourceState::Failed(_) = status.state {
                reasons.push(format!("the server `{name}` failed"));
            }
        }
        let page = plane.health_page(&plane.local_caller());
        show(&with_reasons(page, &reasons), console)
    })
}

/// Adds reasons to a health page and marks it as not ready, even if a gateway would be.
fn with_reasons(page: RawJson, reasons: &[String]) -> RawJson {
    if reasons.is_empty() {
        return page;
    }
    let mut values: Value = page.to().unwrap_or_default();
    values["status"] = Value::from("not_ready");
    let mut all: Vec<Value> = list(&values["reasons"]).cloned().collect();
    all.extend(reasons.iter().map(|reason| Value::from(reason.as_str())));
    values["reasons"] = Value::from(all);
    RawJson::from(values)
}

/// Asks a gateway for its health page.
async fn ask(address: SocketAddr) -> Result<RawJson, CliError> {
    let failed = |what: &str, error: &(dyn std::error::Error + 'static)| {
        let message = format!("the gateway at `{address}` {what}");
        CliError::new(Exit::Unavailable, "unavailable", message).with_source(error)
    };
    let stream = TcpStream::connect(address).await.map_err(|error| {
        failed("cannot be reached", &error)
            .with_hint("`toolplane serve` starts one; `--address` names another, `--direct` asks none")
    })?;
    let broke = |error: hyper::Error| failed("closed the connection", &error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broke)?;
    let request = request(address)?;
    let exchange = async move {
        let answer = sender.send_request(request).await.map_err(broke)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| failed("closed the connection", &*error))?;
        Ok::<_, CliError>((status, body.to_bytes()))
    };
    // The connection ends with the sender; its result shows in the answer.
    let (answered, _) = tokio::join!(exchange, connection);
    let (status, body) = answered?;
    if !status.is_success() {
        let message = format!("the server at `{address}` answered with HTTP status {status}");
        return Err(
            CliError::new(Exit::Unavailable, "unavailable", message).with_hint(format!(
                "it may not be a gateway; one that authenticates its clients needs a token in `${TOKEN}`"
            )),
        );
    }
    RawJson::parse(body).map_err(|error| failed("did not answer in JSON", &error))
}

/// Variable with the token for a gateway that authenticates its clients.
const TOKEN: &str = "TOOLPLANE_TOKEN";

fn request(address: SocketAddr) -> Result<Request<Empty<Bytes>>, CliError> {
    let mut request = Request::get("/health").header(HOST, address.to_string());
    if let Some(token) = config::variable(TOKEN) {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
    }
    // The address is a header in any case, and the error does not contain the value.
    request.body(Empty::new()).map_err(|error| {
        CliError::usage(format!("the value of `${TOKEN}` is no bearer token")).with_source(&error)
    })
}

fn show(page: &RawJson, console: Console) -> Result<Exit, CliError> {
    let values: Value = page.to().unwrap_or_default();
    console.value(page, || render_table(&values, console))?;
    let is_ready = values["status"] == "ready";
    Ok(if is_ready { Exit::Done } else { Exit::Failed })
}

/// Formats the page as a table.
fn render_table(page: &Value, console: Console) -> String {
    let text = |value: &Value| text::line(value.as_str().unwrap_or_default()).into_owned();
    let mut lines = vec![text(&page["status"]).replace('_', " ")];
    lines.extend(list(&page["reasons"]).map(|reason| format!("  {}", text(reason))));
    if let Some(seed) = page["chaos"]["seed"].as_u64() {
        lines.push(format!("CHAOS: faults are injected on purpose, with seed {seed}"));
    }
    let rows: Vec<_> = list(&page["servers"])
        .map(|row| cells("server", row, &text(&row["state"])))
        .chain(list(&page["tools"]).map(|row| cells("tool", row, "")))
        .collect();
    if !rows.is_empty() {
        let header = [
            "KIND", "NAME", "STATE", "STATUS", "CALLS", "SUCCESS", "MEAN", "P50", "P95", "P99", "CHECK",
        ];
        let table = Table::new(console.stdout_color(), text::terminal_width());
        lines.push(String::new());
        lines.push(table.header(header).rows(rows).to_string());
    }
    lines.join("\n")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn cells(kind: &str, row: &Value, state: &str) -> [String; 11] {
    let word = |key: &str| text::line(row[key].as_str().unwrap_or_default()).into_owned();
    let time = |key: &str| {
        let milliseconds = row[key].as_f64();
        milliseconds.map_or_else(String::new, |ms| {
            text::time(Duration::from_secs_f64(ms.max(0.0) / 1000.0))
        })
    };
    let rate = row["success_rate"].as_f64();
    let check = row["check"]["failures_in_row"].as_u64();
    [
        kind.to_owned(),
        word("name"),
        state.to_owned(),
        word("status"),
        row["calls"].to_string(),
        rate.map_or_else(String::new, |rate| format!("{:.1}%", rate * 100.0)),
        time("mean_ms"),
        time("p50_ms"),
        time("p95_ms"),
        time("p99_ms"),
        check.map_or_else(String::new, |n_failures| match n_failures {
            0 => "ok".to_owned(),
            n => format!("failed {n}x"),
        }),
    ]
}
