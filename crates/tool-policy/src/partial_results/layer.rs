use crate::{PartialRule, PartialSettings};
use raw_json::{JsonKind, RawJson};
use serde_json::json;
use tool_core::{Body, CallContext, ErrorKind, Invoke, Layer, NamedLayer, Outcome, Reply, ToolError};

/// Marks or refuses results that their tool declares to be incomplete.
///
/// Marks a result that its executor knows to be incomplete. Does nothing else for a tool until its `Settings` contain
/// [`PartialSettings`].
///
/// # How a tool declares an incomplete result
/// An executor may know it, as from status 206 of HTTP. A server may say it in its result, in `_meta` under
/// [`PartialSettings::META_KEY`]. A tool may say it in a field of its result that the operator names. The layer looks for the
/// last two only if the settings say how to handle them.
///
/// The field is searched for in a plain value or in the structured part of a result. Many servers send no structured part, but an
/// object in a text: if that text is all of the result, the field is searched for in it.
///
/// # Order
/// Inside the layers that judge attempts and cache results, so that an unwanted partial result is a failed attempt and an accepted
/// one is not cached. Inside the validation of results, whose message would be less clear.
///
/// # Examples
/// ```
/// use tool_core::Layer;
/// use tool_policy::PartialResultsLayer;
///
/// # fn stack<S>(executor: S) {
/// let stack = PartialResultsLayer.layer(executor);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct PartialResultsLayer;

/// Service of [`PartialResultsLayer`].
#[derive(Debug, Clone)]
pub struct PartialResults<S> {
    inner: S,
}

/// Place in which a result is declared to be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IncompleteMark<'a> {
    Executor,
    Meta,
    Field(&'a str),
}

impl NamedLayer for PartialResultsLayer {
    const NAME: &'static str = "partial results";
}

impl<S> Layer<S> for PartialResultsLayer {
    type Invoke = PartialResults<S>;

    fn layer(self, inner: S) -> PartialResults<S> {
        PartialResults { inner }
    }
}

impl<S: Invoke> Invoke for PartialResults<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let mut outcome = self.inner.invoke(cx).await?;
        let reply = match &mut outcome {
            Outcome::Reply(reply) => Some(reply),
            Outcome::Task(handle) => handle.result.as_mut(),
            _ => None,
        };
        if let Some(reply) = reply.filter(|reply| !reply.is_error) {
            apply_rule(cx, reply)?;
        }
        Ok(outcome)
    }
}

fn apply_rule(cx: &mut CallContext, reply: &mut Reply) -> Result<(), ToolError> {
    let tool = cx.tool().clone();
    let settings = tool.settings().get::<PartialSettings>();
    let Some(mark) = find_mark(settings, reply) else {
        return Ok(());
    };
    let by = mark.describe();
    if settings.is_some_and(|settings| settings.rule == PartialRule::Fail) {
        cx.explain(PartialResultsLayer::NAME, || {
            format!("refused: incomplete, by {by}")
        });
        let message = format!(
            "the result is incomplete, by {by}, and the tool's `partial: fail` requires a complete one"
        );
        return Err(ToolError::new(ErrorKind::ResultInvalid, message));
    }
    cx.explain(PartialResultsLayer::NAME, || format!("incomplete, by {by}"));
    reply.mark_partial();
    // A server's own mark is passed on unchanged.
    if mark != IncompleteMark::Meta {
        let meta = json!({"partial": true, "by": by});
        reply.add_meta(PartialSettings::META_KEY, RawJson::from(meta));
    }
    Ok(())
}

/// Finds the first mark of an incomplete result.
fn find_mark<'a>(settings: Option<&'a PartialSettings>, reply: &Reply) -> Option<IncompleteMark<'a>> {
    if reply.is_partial() {
        return Some(IncompleteMark::Executor);
    }
    let settings = settings?;
    if let Body::Result(result) = &reply.body
        && let Some(mark) = result
            .get("_meta")
            .and_then(|meta| meta.get(PartialSettings::META_KEY))
        && is_truthy(&mark)
    {
        return Some(IncompleteMark::Meta);
    }
    let field = settings.field.as_deref()?;
    let value = reply.structured().or_else(|| object_in_text(&reply.body))?;
    let mark = value_at(&value, field)?;
    is_truthy(&mark).then_some(IncompleteMark::Field(field))
}

/// Returns the object in the text of a result without a structured part, if the content is one text and that is JSON.
fn object_in_text(body: &Body) -> Option<RawJson> {
    let Body::Result(result) = body else {
        return None;
    };
    let content = result.get("content")?;
    let mut items = content.items();
    let item = items.next()?;
    if items.next().is_some() || item.get("type")?.text()? != "text" {
        return None;
    }
    let text = item.get("text")?.string()?;
    // Most texts are plain words. Only an object has fields.
    if !text.trim_start().starts_with('{') {
        return None;
    }
    RawJson::parse(text).ok()
}

/// Returns the value at a JSON Pointer (RFC 6901). It searches the text, since a parsed tree may be many times as large.
fn value_at(value: &RawJson, pointer: &str) -> Option<RawJson> {
    let steps = pointer.split('/').skip(1);
    steps
        .map(unescape)
        .try_fold(value.clone(), |value, step| match value.kind() {
            JsonKind::Array => value.items().nth(index(&step)?),
            _ => value.get(&step),
        })
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Parses the index in a step of a pointer: digits without leading zeros.
fn index(step: &str) -> Option<usize> {
    let is_index = step == "0" || !step.starts_with(['0', '+']);
    is_index.then(|| step.parse().ok()).flatten()
}

/// Returns `true` if a value is not `null`, `false`, zero or empty.
fn is_truthy(value: &RawJson) -> bool {
    match value.kind() {
        JsonKind::Null => false,
        JsonKind::Bool => value.as_str() == "true",
        JsonKind::Number => value.to::<f64>() != Ok(0.0),
        JsonKind::String => value.as_str() != r#""""#,
        JsonKind::Array => value.items().next().is_some(),
        JsonKind::Object => value.parts().next().is_some(),
    }
}

impl IncompleteMark<'_> {
    fn describe(self) -> String {
        match self {
            Self::Executor => "its status".to_owned(),
            Self::Meta => format!("`{}` of its `_meta`", PartialSettings::META_KEY),
            Self::Field(field) => format!("its field `{field}`"),
        }
    }
}
