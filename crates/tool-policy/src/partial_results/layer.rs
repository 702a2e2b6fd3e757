use crate::{PartialRule, PartialSettings};
use raw_json::{JsonKind, RawJson};
use serde_json::json;
use tool_core::{Body, CallContext, ErrorKind, Invoke, Layer, Outcome, Reply, ToolError};

/// Marks answers of which the tool says that they are not all of it, or has the call fail: see [`PartialSettings`].
///
/// # How a tool says so
/// What runs it may know, as it does of status 206 of HTTP. A server may say it in its result, in `_meta` under
/// [`PartialSettings::META_KEY`]; a tool in a field of its answer that the operator names. The last two are looked at only
/// where the settings say what is to be done.
///
/// The field is looked for in the plain value or in the structured part of a result. Many servers have no structured part and
/// write their object into a text: where that is all that a result has, the field is looked for in there.
///
/// # Order
/// Inside whatever judges attempts and keeps answers, so that a part that is not wanted is a failed attempt and one that is taken
/// is not kept; inside the validation of results, whose words would be less clear.
#[derive(Debug, Clone, Copy, Default)]
pub struct PartialResultsLayer;

/// The layer of [`PartialResultsLayer`].
#[derive(Debug, Clone)]
pub struct PartialResults<S> {
    inner: S,
}

/// How a tool says that its answer is not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthSignal<'a> {
    Executor,
    Meta,
    Field(&'a str),
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
            judge(cx, reply)?;
        }
        Ok(outcome)
    }
}

fn judge(cx: &mut CallContext, reply: &mut Reply) -> Result<(), ToolError> {
    let tool = cx.tool().clone();
    let settings = tool.settings().get::<PartialSettings>();
    let Some(sign) = sign(settings, reply) else {
        return Ok(());
    };
    let said = sign.words();
    if settings.is_some_and(|settings| settings.rule == PartialRule::Fail) {
        cx.explain("partial", || format!("refused: not all of it, by {said}"));
        let message =
            format!("the tool answered in part only, by {said}, and its `partial: fail` wants all of it");
        return Err(ToolError::new(ErrorKind::ResultInvalid, message));
    }
    cx.explain("partial", || format!("not all of it, by {said}"));
    reply.mark_partial();
    // A server's own mark goes on as it is.
    if sign != HealthSignal::Meta {
        let mark = json!({"partial": true, "by": said});
        reply.add_meta(PartialSettings::META_KEY, RawJson::from(mark));
    }
    Ok(())
}

fn sign<'a>(settings: Option<&'a PartialSettings>, reply: &Reply) -> Option<HealthSignal<'a>> {
    if reply.is_partial() {
        return Some(HealthSignal::Executor);
    }
    let settings = settings?;
    if let Body::Result(result) = &reply.body
        && let Some(mark) = result
            .get("_meta")
            .and_then(|meta| meta.get(PartialSettings::META_KEY))
        && is_telling(&mark)
    {
        return Some(HealthSignal::Meta);
    }
    let field = settings.field.as_deref()?;
    let value = reply.structured().or_else(|| written(&reply.body))?;
    let mark = at(&value, field)?;
    is_telling(&mark).then_some(HealthSignal::Field(field))
}

/// The object that a result without a structured part has in the place of words: its content is one text, and that is JSON.
fn written(body: &Body) -> Option<RawJson> {
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
    // Most texts are words. What is not an object cannot have a field.
    if !text.trim_start().starts_with('{') {
        return None;
    }
    RawJson::parse(text).ok()
}

/// What stands at a JSON Pointer. Found in the text, since a tree of all of it may be many times as large.
fn at(value: &RawJson, pointer: &str) -> Option<RawJson> {
    let steps = pointer.split('/').skip(1);
    steps
        .map(unescaped)
        .try_fold(value.clone(), |value, step| match value.kind() {
            JsonKind::Array => value.items().nth(index(&step)?),
            _ => value.get(&step),
        })
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The index that a step of a pointer names: digits alone, and none before the first that counts.
fn index(step: &str) -> Option<usize> {
    let is_index = step == "0" || !step.starts_with(['0', '+']);
    is_index.then(|| step.parse().ok()).flatten()
}

/// Whether a value says something.
fn is_telling(value: &RawJson) -> bool {
    match value.kind() {
        JsonKind::Null => false,
        JsonKind::Bool => value.as_str() == "true",
        JsonKind::Number => value.to::<f64>() != Ok(0.0),
        JsonKind::String => value.as_str() != r#""""#,
        JsonKind::Array => value.items().next().is_some(),
        JsonKind::Object => value.parts().next().is_some(),
    }
}

impl HealthSignal<'_> {
    fn words(self) -> String {
        match self {
            Self::Executor => "its status".to_owned(),
            Self::Meta => format!("`{}` of its `_meta`", PartialSettings::META_KEY),
            Self::Field(field) => format!("its field `{field}`"),
        }
    }
}
