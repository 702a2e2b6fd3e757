use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{
    Body, CallContext, ErrorKind, Invoke, Layer, Outcome, PartialRule, PartialSettings, Reply, ToolError,
};

/// Marks answers of which the tool says that they are not all of it, or has the call fail: see [`PartialSettings`].
///
/// # How a tool says so
/// What runs it may know, as it does of status 206 of HTTP. A server may say it in its result, in `_meta` under
/// [`PartialSettings::META_KEY`]; a tool in a field of its answer that the operator names. The last two are looked at only
/// where the settings say what is to be done.
///
/// # Order
/// Inside whatever judges attempts and keeps answers, so that a part that is not wanted is a failed attempt and one that is taken
/// is not kept; inside the validation of results, whose words would be less clear.
#[derive(Debug, Clone, Copy, Default)]
pub struct Partial;

/// The layer of [`Partial`].
#[derive(Debug, Clone)]
pub struct Parting<S> {
    inner: S,
}

/// How a tool says that its answer is not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign<'a> {
    Executor,
    Meta,
    Field(&'a str),
}

impl<S> Layer<S> for Partial {
    type Invoke = Parting<S>;

    fn layer(self, inner: S) -> Parting<S> {
        Parting { inner }
    }
}

impl<S: Invoke> Invoke for Parting<S> {
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
    let settings = tool.settings().partial.as_ref();
    let Some(sign) = sign(settings, reply) else {
        return Ok(());
    };
    let said = sign.words();
    if settings.is_some_and(|settings| settings.rule == PartialRule::Fail) {
        cx.note("partial", || format!("refused: not all of it, by {said}"));
        let message =
            format!("the tool answered in part only, by {said}, and its `partial: fail` wants all of it");
        return Err(ToolError::new(ErrorKind::ResultInvalid, message));
    }
    cx.note("partial", || format!("not all of it, by {said}"));
    reply.mark_partial();
    // A server's own mark goes on as it is.
    if sign != Sign::Meta {
        let mark = json!({"partial": true, "by": said});
        reply.add_meta(PartialSettings::META_KEY, RawJson::from(mark));
    }
    Ok(())
}

fn sign<'a>(settings: Option<&'a PartialSettings>, reply: &Reply) -> Option<Sign<'a>> {
    if reply.is_partial() {
        return Some(Sign::Executor);
    }
    let settings = settings?;
    if let Body::Result(result) = &reply.body
        && let Some(mark) = result
            .get("_meta")
            .and_then(|meta| meta.get(PartialSettings::META_KEY))
        && mark.to().is_ok_and(|mark| is_telling(&mark))
    {
        return Some(Sign::Meta);
    }
    let field = settings.field.as_deref()?;
    let value: Value = reply.structured()?.to().ok()?;
    value
        .pointer(field)
        .is_some_and(is_telling)
        .then_some(Sign::Field(field))
}

/// Whether a value says something.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_so) => *is_so,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

impl Sign<'_> {
    fn words(self) -> String {
        match self {
            Self::Executor => "its status".to_owned(),
            Self::Meta => format!("`{}` of its `_meta`", PartialSettings::META_KEY),
            Self::Field(field) => format!("its field `{field}`"),
        }
    }
}
