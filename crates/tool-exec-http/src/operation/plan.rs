use std::{borrow::Cow, time::Duration};

use http::{HeaderMap, HeaderName, StatusCode, header::LOCATION};
use raw_json::RawJson;
use tool_core::{Arguments, ErrorKind, ToolError, format_duration};
use tool_settings::Period;
use url::Url;

use super::settings::OperationSettings;
use crate::{
    compile::{Problems, ResultSelection},
    mapping::Mapping,
    response::ResponsePath,
    template::{Scope, TextTemplate, UrlTemplate, check_parsed},
};

/// Compiled settings of work that goes on after the API answered.
pub(crate) struct OperationPlan {
    pub status_url: StatusUrl,
    /// Time between two requests for the status.
    pub interval: Duration,
    /// Time after which the work is given up.
    pub lifetime: Duration,
    /// `true` if the API sends the last answer to a callback URL.
    pub takes_callback: bool,
    done: Option<Mapping>,
    failed: Option<Mapping>,
    /// Selects the result from the last answer; `None` if the tool's own selection does.
    pub result: Option<ResultSelection>,
}

/// Place of the URL of the status.
pub(crate) enum StatusUrl {
    /// A header of the answer.
    Header,
    /// A value in the answer.
    Path(ResponsePath),
    /// A URL with members of the answer in it.
    Template(UrlTemplate),
    /// None: the API calls back.
    Absent,
}

/// State of the work, as an answer says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Working,
    Done,
    Failed,
}

/// Placeholder for the callback URL.
pub(crate) const CALLBACK_URL: &str = "callback_url";

const DEFAULT_INTERVAL: Duration = Duration::from_secs(2);
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(100);
pub(crate) const MAX_INTERVAL: Duration = Duration::from_secs(60 * 60);
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60 * 60);
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Header with the URL of the status, of several cloud APIs. It takes precedence over `Location`, which may be that of the
/// result.
const OPERATION_LOCATION: HeaderName = HeaderName::from_static("operation-location");

impl OperationPlan {
    /// Compiles the settings, and records the problems in them. `address` is the URL of the tool.
    pub(crate) fn compile(
        settings: &OperationSettings,
        address: Option<&UrlTemplate>,
        problems: &mut Problems,
    ) -> Self {
        let mut mapping = |key: &str, text: &Option<String>| {
            let text = text.as_deref()?;
            problems.keep(&format!("/async/{key}"), Mapping::parse(text))
        };
        let (done, failed) = (
            mapping("done", &settings.done),
            mapping("failed", &settings.failed),
        );
        let result = settings.result.as_deref();
        let result = result.and_then(|text| problems.keep("/async/result", ResponsePath::parse(text)));
        let interval = period("interval", settings.interval.as_deref(), problems).unwrap_or(DEFAULT_INTERVAL);
        let is_usable = (MIN_INTERVAL..=MAX_INTERVAL).contains(&interval);
        if !is_usable {
            problems.add("/async/interval", "must be at least `100ms` and at most `1h`");
        }
        let lifetime = period("expires", settings.expires.as_deref(), problems).unwrap_or(DEFAULT_LIFETIME);
        if is_usable && (lifetime <= interval || lifetime > MAX_LIFETIME) {
            let shown = format_duration(interval);
            problems.add(
                "/async/expires",
                format!("must be longer than the interval of {shown}, and at most `1d`"),
            );
        }
        Self {
            status_url: StatusUrl::compile(settings, address, problems),
            interval,
            lifetime,
            takes_callback: settings.callback,
            done,
            failed,
            result: result.map(ResultSelection::Path),
        }
    }

    /// Returns the texts of the URL of the status.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &TextTemplate> {
        let template = match &self.status_url {
            StatusUrl::Template(url) => Some(url),
            _ => None,
        };
        template.into_iter().flat_map(UrlTemplate::texts)
    }

    /// Says what an answer with an expected status says about the work. `is_first` is the answer to the tool's own request.
    ///
    /// # Errors
    /// If `done` or `failed` cannot be applied to the answer.
    pub(crate) fn progress(
        &self,
        status: StatusCode,
        answer: &RawJson,
        is_first: bool,
    ) -> Result<Progress, ToolError> {
        if let Some(failed) = &self.failed
            && is_true(failed, answer)?
        {
            return Ok(Progress::Failed);
        }
        let is_done = match &self.done {
            _ if status == StatusCode::ACCEPTED => false,
            Some(done) => is_true(done, answer)?,
            // An API that calls back only confirms the request.
            None => !(is_first && self.takes_callback),
        };
        Ok(if is_done {
            Progress::Done
        } else {
            Progress::Working
        })
    }

    /// Returns the URL of the status from the first answer, or `None` if the API only calls back.
    ///
    /// # Errors
    /// If the answer has no usable URL of the status, or one of another origin.
    pub(crate) fn status_url(
        &self,
        request: &Url,
        headers: &HeaderMap,
        answer: &RawJson,
        scope: &Scope<'_>,
    ) -> Result<Option<Url>, ToolError> {
        let url = match &self.status_url {
            StatusUrl::Absent => return Ok(None),
            StatusUrl::Header => {
                let header = headers.get(OPERATION_LOCATION).or_else(|| headers.get(LOCATION));
                let header = header.and_then(|header| header.to_str().ok());
                join(
                    request,
                    header.ok_or_else(|| {
                        unusable("has neither `Operation-Location` nor `Location`: set `async.status_url`")
                    })?,
                )?
            }
            StatusUrl::Path(path) => {
                let value = answer.to().map_err(|_| unusable("is no usable JSON"))?;
                let found = path.apply(answer, &value).ok().and_then(|found| found.string());
                join(
                    request,
                    &found.ok_or_else(|| unusable("has no text at `async.status_url`"))?,
                )?
            }
            StatusUrl::Template(url) => render(url, answer, scope)?,
        };
        if url.origin() != request.origin() {
            return Err(unusable(
                "names a URL of another origin, to which the headers of the tool are not sent",
            ));
        }
        Ok(Some(url))
    }
}

impl StatusUrl {
    fn compile(settings: &OperationSettings, address: Option<&UrlTemplate>, problems: &mut Problems) -> Self {
        let place = "/async/status_url";
        let Some(text) = &settings.status_url else {
            return if settings.callback {
                Self::Absent
            } else {
                Self::Header
            };
        };
        if text.starts_with('$') && !text.starts_with("${") {
            let path = problems.keep(place, ResponsePath::parse(text));
            return path.map_or(Self::Absent, Self::Path);
        }
        let Some(url) = problems.keep(place, UrlTemplate::parse(text)) else {
            return Self::Absent;
        };
        let own = address.and_then(UrlTemplate::constant);
        if let (Some(own), Some(other)) = (own, url.constant())
            && own.origin() != other.origin()
        {
            problems.hint(
                place,
                "must have the scheme, host and port of `url`, since the headers of the tool are sent to it",
                "make a tool of its own for another API",
            );
        }
        Self::Template(url)
    }
}

/// Renders the URL of the status: a placeholder is a member of the answer, or else an argument.
fn render(url: &UrlTemplate, answer: &RawJson, scope: &Scope<'_>) -> Result<Url, ToolError> {
    let mut arguments: Vec<(Cow<'_, str>, RawJson)> = answer.members().collect();
    arguments.extend(scope.arguments.iter().cloned());
    let scope = Scope {
        arguments: &arguments,
        values: scope.values,
    };
    let failed = || unusable("has no usable value for a placeholder of `async.status_url`");
    let mut rendered = url.render(&scope).map_err(|_| failed())?;
    let mut query = String::new();
    for pair in &url.query {
        pair.push_to(&mut query, &scope).map_err(|_| failed())?;
    }
    if !query.is_empty() {
        rendered.set_query(Some(&query));
    }
    Ok(rendered)
}

fn join(request: &Url, text: &str) -> Result<Url, ToolError> {
    let failed = || unusable("has no valid URL of its status");
    let mut url = request.join(text).map_err(|_| failed())?;
    url.set_fragment(None);
    check_parsed(&url).map_err(|_| failed())?;
    Ok(url)
}

fn unusable(what: &str) -> ToolError {
    let message = format!("the upstream accepted the work, but its answer {what}");
    ToolError::new(ErrorKind::Protocol, message)
}

/// Evaluates a condition. As in JMESPath, an empty text, list or object is false, and so is null.
fn is_true(condition: &Mapping, answer: &RawJson) -> Result<bool, ToolError> {
    // Longer than any value that is false.
    const LIMIT: usize = 64 << 10;
    let failed = |reason: String| {
        let message = format!("the upstream's answer does not fit `async`: {reason}");
        ToolError::new(ErrorKind::ResultInvalid, message)
    };
    let value = answer.to().map_err(|error| failed(error.to_string()))?;
    match condition.apply(&value, LIMIT) {
        Ok(found) => Ok(!matches!(found.as_str(), "false" | "null" | "\"\"" | "[]" | "{}")),
        Err(crate::mapping::MappingError::TooLarge) => Ok(true),
        Err(crate::mapping::MappingError::Failed(reason)) => Err(failed(reason)),
    }
}

fn period(key: &str, text: Option<&str>, problems: &mut Problems) -> Option<Duration> {
    let text = text?;
    let period = Period::parse(text);
    if period.is_none() {
        let message = format!("`{}` is no time with its unit", text.escape_debug());
        problems.hint(
            format!("/async/{key}"),
            message,
            "write it like `500ms`, `30s` or `1m`",
        );
    }
    period.map(|Period(period)| period)
}

/// Returns the arguments of a call, with the callback URL among them. It replaces an argument of that name.
pub(crate) fn with_callback_url<'a>(
    arguments: &'a Arguments,
    callback_url: Option<&Url>,
) -> Vec<(Cow<'a, str>, RawJson)> {
    let members = arguments.raw().members();
    let Some(url) = callback_url else {
        return members.collect();
    };
    let mut members: Vec<_> = members.filter(|(name, _)| name != CALLBACK_URL).collect();
    members.push((CALLBACK_URL.into(), RawJson::from(url.as_str())));
    members
}
