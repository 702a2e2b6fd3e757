use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use crate::RedactionMode;
use raw_json::RawJson;
use regex::Regex;
use tool_core::{
    Ask, AskError, Asker, Body, BoxFuture, CallContext, ClientKey, HIDDEN, Invoke, Layer, NamedLayer,
    Outcome, Progress, Question, RedactedFields, Reply, Settings, ToolError, hide_fields,
    hide_fields_in_text, hide_fields_of_question, hide_fields_of_questions, hide_fields_of_report,
    hide_fields_of_result,
};

use super::Redactor;

/// Hides secrets in what a tool returns: in its result, its questions, its progress reports and log messages, and its error.
///
/// Acts on every call, and hides the secrets that its [`Redactor`] knows. [`RedactionMode`] in the `Settings` of the tool changes
/// how much is hidden, and [`RedactedFields`] names fields that are hidden in results and in the data of errors. The message of an error, which operators read as well, never holds anything that looks like a
/// credential.
///
/// # Order
/// Inside every layer that keeps or shares results, so that no layer above sees a secret. Around the validation of results, whose
/// messages may quote them.
///
/// # Examples
/// ```
/// use tool_core::Layer;
/// use tool_policy::{RedactionLayer, Redactor};
///
/// # fn stack<S>(executor: S) {
/// let redactor = Redactor::default();
/// let stack = RedactionLayer::new(redactor.clone()).layer(executor);
/// redactor.learn("hunter2hunter2");
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RedactionLayer {
    redactor: Redactor,
}

/// Service of [`RedactionLayer`].
#[derive(Debug, Clone)]
pub struct Redaction<S> {
    redactor: Redactor,
    inner: S,
}

impl RedactionLayer {
    /// Creates a layer that hides the secrets which this redactor knows.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }
}

impl NamedLayer for RedactionLayer {
    const NAME: &'static str = "redaction";
}

impl<S> Layer<S> for RedactionLayer {
    type Invoke = Redaction<S>;

    fn layer(self, inner: S) -> Redaction<S> {
        Redaction {
            redactor: self.redactor,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Redaction<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let (progress, ask) = self.intercept(cx);
        let result = self.inner.invoke(cx).await;
        cx.origin.progress = progress.or(cx.origin.progress.take());
        cx.origin.ask = ask.or(cx.origin.ask.take());
        let settings = cx.tool().settings();
        let (redaction, fields) = (mode(settings), settings.redacted_fields());
        let has_secrets = !self.redactor.is_empty();
        if result.is_ok() && !(has_secrets || redaction == RedactionMode::Credentials || !fields.is_empty()) {
            return result;
        }
        let hider = Hider {
            redactor: &self.redactor,
            fields,
            // A tool may return secrets to its caller, but its errors also reach logs, alerts and traces.
            secrets: redaction != RedactionMode::Off || result.is_err(),
            credentials: redaction == RedactionMode::Credentials,
        };
        match result {
            Ok(mut outcome) => {
                if hider.outcome(&mut outcome) {
                    cx.explain(RedactionLayer::NAME, || "hid secrets in the result".to_owned());
                }
                Ok(outcome)
            }
            Err(error) => {
                let hidden = hider.error(error);
                Err(hidden)
            }
        }
    }
}

impl<S> Redaction<S> {
    /// Puts a redacting sink before the receivers of reports, questions and log messages, if something may have to be hidden.
    /// Returns the original receivers.
    fn intercept(&self, cx: &mut CallContext) -> (Option<Arc<dyn Progress>>, Option<Asker>) {
        let settings = cx.tool().settings();
        let redaction = mode(settings);
        let credentials = redaction == RedactionMode::Credentials;
        let hides_secrets = redaction != RedactionMode::Off && (!self.redactor.is_empty() || credentials);
        let fields = settings.get::<RedactedFields>().cloned().unwrap_or_default().0;
        if !hides_secrets && fields.is_empty() {
            return (None, None);
        }
        let (progress, ask) = (cx.origin.progress.clone(), cx.origin.ask.clone());
        let redactor = &self.redactor;
        cx.origin.progress = progress.clone().map(|inner| {
            Arc::new(RedactingSink {
                redactor: hides_secrets.then(|| redactor.clone()),
                credentials,
                fields: fields.clone(),
                inner,
            }) as _
        });
        cx.origin.ask = ask.clone().map(|asker| {
            let inner = Arc::clone(asker.client());
            asker.through(Arc::new(RedactingSink {
                redactor: hides_secrets.then(|| redactor.clone()),
                credentials,
                fields,
                inner,
            }))
        });
        (progress, ask)
    }
}

/// Returns the redaction mode of a tool.
fn mode(settings: &Settings) -> RedactionMode {
    settings.get().copied().unwrap_or_default()
}

/// Redacts progress reports, questions and log messages that are sent while the tool runs.
struct RedactingSink<T> {
    /// Known secrets. `None` if secrets are not hidden.
    redactor: Option<Redactor>,
    credentials: bool,
    /// Fields that the tool's settings name.
    fields: Arc<[String]>,
    inner: T,
}

impl<T> RedactingSink<T> {
    fn without_secrets(&self, raw: RawJson) -> RawJson {
        let redactor = self.redactor.as_ref();
        let hidden = redactor.and_then(|redactor| without_secrets(redactor, self.credentials, &raw));
        hidden.unwrap_or(raw)
    }

    /// Redacts a progress report or a log message.
    fn report_without_secrets(&self, report: &RawJson) -> RawJson {
        self.without_secrets(hide_fields_of_report(report, &self.fields))
    }
}

impl Progress for RedactingSink<Arc<dyn Progress>> {
    fn report(&self, report: RawJson) {
        self.inner.report(self.report_without_secrets(&report));
    }
}

impl Ask for RedactingSink<Arc<dyn Ask>> {
    fn client(&self) -> ClientKey {
        self.inner.client()
    }

    fn capabilities(&self) -> RawJson {
        self.inner.capabilities()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        let hide = |params| self.without_secrets(hide_fields_of_question(&params, &self.fields));
        let params = question.params.map(hide);
        self.inner.ask(Question::new(question.method, params))
    }

    fn takes_rounds(&self) -> bool {
        self.inner.takes_rounds()
    }

    fn log_level(&self) -> Option<Arc<str>> {
        self.inner.log_level()
    }

    fn log(&self, message: &RawJson) {
        self.inner.log(&self.report_without_secrets(message));
    }
}

/// Redacts one outcome or error.
struct Hider<'a> {
    redactor: &'a Redactor,
    fields: &'a [String],
    secrets: bool,
    credentials: bool,
}

impl Hider<'_> {
    /// Redacts an outcome. Returns `true` if something was hidden.
    fn outcome(&self, outcome: &mut Outcome) -> bool {
        match outcome {
            Outcome::Reply(reply) => self.reply(reply),
            Outcome::NeedsInput(needed) => {
                let without = hide_fields_of_questions(&needed.requests, self.fields);
                let has_hidden_fields = without != needed.requests;
                needed.requests = without;
                self.json(&mut needed.requests) || has_hidden_fields
            }
            Outcome::Task(handle) => {
                let is_in_state = self.json(&mut handle.state);
                handle.result.as_mut().is_some_and(|reply| self.reply(reply)) || is_in_state
            }
            _ => false,
        }
    }

    fn reply(&self, reply: &mut Reply) -> bool {
        let (raw, without) = match &mut reply.body {
            Body::Value(raw) => {
                let without = hide_fields(raw, self.fields);
                (raw, without)
            }
            Body::Result(raw) => {
                let without = hide_fields_of_result(raw, self.fields);
                (raw, without)
            }
        };
        let has_hidden_fields = without != *raw;
        if has_hidden_fields {
            *raw = without;
        }
        self.json(raw) || has_hidden_fields
    }

    /// Hides secrets in JSON. Returns `true` if there were any.
    fn json(&self, raw: &mut RawJson) -> bool {
        if !self.secrets {
            return false;
        }
        without_secrets(self.redactor, self.credentials, raw)
            .map(|hidden| *raw = hidden)
            .is_some()
    }

    fn error(&self, error: ToolError) -> ToolError {
        let message = hide_fields_in_text(error.message(), self.fields);
        let text = self.redactor.hide_in_text(&message);
        let text = if self.credentials {
            CREDENTIALS.replace_all(&text, HIDDEN).into_owned()
        } else {
            text.into_owned()
        };
        let mut detail = error.detail().map(|detail| hide_fields(detail, self.fields));
        let has_hidden_fields = detail.as_ref() != error.detail();
        let is_detail_hidden = detail.as_mut().is_some_and(|detail| self.json(detail)) || has_hidden_fields;
        let error = if text == error.message() {
            error
        } else {
            error.with_message(text)
        };
        match detail {
            Some(detail) if is_detail_hidden => error.with_detail(detail),
            _ => error,
        }
    }
}

/// Returns the JSON without secrets, or `None` if it holds none.
fn without_secrets(redactor: &Redactor, credentials: bool, raw: &RawJson) -> Option<RawJson> {
    let mut hidden = redactor.hide_in_json(raw);
    if credentials {
        let text = hidden.as_ref().unwrap_or(raw).as_str();
        if let Cow::Owned(text) = CREDENTIALS.replace_all(text, HIDDEN) {
            // A match holds no character that ends a string, so it lies within a string.
            hidden = RawJson::parse(text).ok().or(hidden);
        }
    }
    hidden
}

/// Patterns of well-known kinds of credentials, as their issuers document them: keys of AWS, GitHub, GitLab, Slack,
/// OpenAI and Anthropic, Google, Stripe and npm, JSON Web Tokens (RFC 7519), private keys in PEM (RFC 7468) and bearer
/// tokens (RFC 6750).
static CREDENTIALS: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = [
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b",
        r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b",
        r"\bglpat-[A-Za-z0-9_-]{20,}",
        r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
        r"\bsk-[A-Za-z0-9_-]{20,}",
        r"\bAIza[A-Za-z0-9_-]{35}",
        r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
        r"\bnpm_[A-Za-z0-9]{36}\b",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        r#"-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?-----END [A-Z ]*PRIVATE KEY-----"#,
        r"\b[Bb]earer [A-Za-z0-9._~+/-]{20,}=*",
    ];
    Regex::new(&kinds.join("|")).expect("the pattern is valid, which a test shows")
});
