use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use crate::RedactionMode;
use raw_json::RawJson;
use regex::Regex;
use tool_core::{
    Ask, AskError, Asker, Body, BoxFuture, CallContext, ClientKey, HIDDEN, Invoke, Layer, Outcome, Progress,
    Question, RedactedFields, Reply, Settings, ToolError, hide_fields, hide_fields_in_text,
    hide_fields_of_question, hide_fields_of_questions, hide_fields_of_report, hide_fields_of_result,
};

use super::Redactor;

/// Hides secrets in what a tool gives back: in its result, in what it asks for, reports and logs meanwhile, and in its error.
/// How much is the tool's setting, see [`RedactionMode`]. In results and in the data of errors it hides the fields as well that the tool's settings
/// name. The message of an error, which operators read as well, is without anything that looks like a credential.
///
/// # Order
/// It stands inside everything that keeps or shares results, so that nobody above ever sees what is hidden, and around
/// the checks of results, whose words may quote them.
#[derive(Debug, Clone, Default)]
pub struct RedactionLayer {
    redactor: Redactor,
}

/// The layer of [`RedactionLayer`].
#[derive(Debug, Clone)]
pub struct Redaction<S> {
    redactor: Redactor,
    inner: S,
}

impl RedactionLayer {
    /// A layer that hides what is known there.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }
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
        let (progress, ask) = self.stand_before(cx);
        let result = self.inner.invoke(cx).await;
        cx.origin.progress = progress.or(cx.origin.progress.take());
        cx.origin.ask = ask.or(cx.origin.ask.take());
        let settings = cx.tool().settings();
        let (redaction, fields) = (mode(settings), settings.redacted_fields());
        let knows = !self.redactor.is_empty();
        if result.is_ok() && !(knows || redaction == RedactionMode::Credentials || !fields.is_empty()) {
            return result;
        }
        let hide = Hide {
            redactor: &self.redactor,
            fields,
            // A tool may give secrets back to whoever calls it; its errors go to logs, alerts and traces as well.
            secrets: redaction != RedactionMode::Off || result.is_err(),
            credentials: redaction == RedactionMode::Credentials,
        };
        match result {
            Ok(mut outcome) => {
                if hide.outcome(&mut outcome) {
                    cx.explain("redact", || "secrets were hidden in the result".to_owned());
                }
                Ok(outcome)
            }
            Err(error) => {
                let hidden = hide.error(error);
                Err(hidden)
            }
        }
    }
}

impl<S> Redaction<S> {
    /// Has what the tool reports, asks and logs while it runs come through here, where anything may have to be hidden; gives
    /// what stood there.
    fn stand_before(&self, cx: &mut CallContext) -> (Option<Arc<dyn Progress>>, Option<Asker>) {
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
        cx.origin.progress = progress.clone().map(|to| {
            Arc::new(Between {
                redactor: hides_secrets.then(|| redactor.clone()),
                credentials,
                fields: fields.clone(),
                to,
            }) as _
        });
        cx.origin.ask = ask.clone().map(|asker| {
            let to = Arc::clone(asker.client());
            asker.through(Arc::new(Between {
                redactor: hides_secrets.then(|| redactor.clone()),
                credentials,
                fields,
                to,
            }))
        });
        (progress, ask)
    }
}

fn mode(settings: &Settings) -> RedactionMode {
    settings.get().copied().unwrap_or_default()
}

/// Stands between a tool that runs and whoever is told meanwhile.
struct Between<T> {
    /// The known secrets, where they are hidden.
    redactor: Option<Redactor>,
    credentials: bool,
    /// The fields that the tool's settings name.
    fields: Arc<[String]>,
    to: T,
}

impl<T> Between<T> {
    fn without_secrets(&self, raw: RawJson) -> RawJson {
        let redactor = self.redactor.as_ref();
        let hidden = redactor.and_then(|redactor| hidden(redactor, self.credentials, &raw));
        hidden.unwrap_or(raw)
    }

    /// A report or a message for a log.
    fn report_without_secrets(&self, report: &RawJson) -> RawJson {
        self.without_secrets(hide_fields_of_report(report, &self.fields))
    }
}

impl Progress for Between<Arc<dyn Progress>> {
    fn report(&self, report: RawJson) {
        self.to.report(self.report_without_secrets(&report));
    }
}

impl Ask for Between<Arc<dyn Ask>> {
    fn client(&self) -> ClientKey {
        self.to.client()
    }

    fn capabilities(&self) -> RawJson {
        self.to.capabilities()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        let params = question
            .params
            .map(|params| self.without_secrets(hide_fields_of_question(&params, &self.fields)));
        self.to.ask(Question { params, ..question })
    }

    fn takes_rounds(&self) -> bool {
        self.to.takes_rounds()
    }

    fn log_level(&self) -> Option<Arc<str>> {
        self.to.log_level()
    }

    fn log(&self, message: &RawJson) {
        self.to.log(&self.report_without_secrets(message));
    }
}

struct Hide<'a> {
    redactor: &'a Redactor,
    fields: &'a [String],
    secrets: bool,
    credentials: bool,
}

impl Hide<'_> {
    /// Whether something was hidden.
    fn outcome(&self, outcome: &mut Outcome) -> bool {
        match outcome {
            Outcome::Reply(reply) => self.reply(reply),
            Outcome::NeedsInput(needed) => {
                let without = hide_fields_of_questions(&needed.requests, self.fields);
                let is_less = without != needed.requests;
                needed.requests = without;
                self.json(&mut needed.requests) || is_less
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
        let is_less = without != *raw;
        if is_less {
            *raw = without;
        }
        self.json(raw) || is_less
    }

    /// Whether there were secrets.
    fn json(&self, raw: &mut RawJson) -> bool {
        if !self.secrets {
            return false;
        }
        hidden(self.redactor, self.credentials, raw)
            .map(|hidden| *raw = hidden)
            .is_some()
    }

    fn error(&self, error: ToolError) -> ToolError {
        let message = hide_fields_in_text(error.message(), self.fields);
        let text = self.redactor.text(&message);
        let text = if self.credentials {
            CREDENTIALS.replace_all(&text, HIDDEN).into_owned()
        } else {
            text.into_owned()
        };
        let mut detail = error.detail().map(|detail| hide_fields(detail, self.fields));
        let is_less = detail.as_ref() != error.detail();
        let is_detail_hidden = detail.as_mut().is_some_and(|detail| self.json(detail)) || is_less;
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

/// The same without secrets, if there were any.
fn hidden(redactor: &Redactor, credentials: bool, raw: &RawJson) -> Option<RawJson> {
    let mut hidden = redactor.json(raw);
    if credentials {
        let text = hidden.as_ref().unwrap_or(raw).as_str();
        if let Cow::Owned(text) = CREDENTIALS.replace_all(text, HIDDEN) {
            // What is found has none of the characters that end a string, so it stands within one.
            hidden = RawJson::parse(text).ok().or(hidden);
        }
    }
    hidden
}

/// Well-known kinds of credentials by their forms, as their issuers document them: keys of AWS, GitHub, GitLab, Slack,
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
