use std::{fmt, time::Duration};

use mcp_wire::{Line, LineDecoder, SseDecoder, SseItem, bytes::Bytes};
use reqwest::{Client, Response, StatusCode};
use tokio::{sync::OnceCell, time::sleep};
use tool_agent::{AssistantTurn, Model, ModelError, ModelRequest, ProviderFormat, TurnStream};
use tool_core::{BoxFuture, Clock as _, Jitter, RawJson, RetryAfter, Secret, SystemClock};

use crate::outgoing::client::{streaming_client, words};

/// Settings of a model that is reached over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpModelSettings {
    /// Format of the provider.
    pub format: ProviderFormat,
    /// Name of the model.
    pub model: String,
    /// Address of the provider, without the path of a request.
    pub base_url: String,
    /// Key.
    pub api_key: Option<Secret>,
    /// Maximum number of tokens of a turn.
    pub max_tokens: Option<u32>,
    /// Maximum time between two pieces of an answer.
    pub timeout: Duration,
    /// Maximum number of attempts of a request, the first included.
    pub max_attempts: u32,
}

impl HttpModelSettings {
    /// Creates the settings of a model at the provider's own address.
    #[must_use]
    pub fn new(format: ProviderFormat, model: impl Into<String>) -> Self {
        let base_url = match format {
            ProviderFormat::OpenAiChat | ProviderFormat::OpenAiResponses => "https://api.openai.com",
            ProviderFormat::Anthropic => "https://api.anthropic.com",
            ProviderFormat::Gemini => "https://generativelanguage.googleapis.com",
            _ => "http://127.0.0.1:11434",
        };
        Self {
            format,
            model: model.into(),
            base_url: base_url.to_owned(),
            api_key: None,
            max_tokens: None,
            timeout: Duration::from_secs(120),
            max_attempts: 3,
        }
    }

    /// Sets the address of the provider, without the path of a request.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_api_key(mut self, api_key: Secret) -> Self {
        self.api_key = Some(api_key);
        self
    }
}

/// A model that is reached over HTTP, by streams.
///
/// A request is attempted again after a failure to connect and after the statuses 408, 409, 429 and 5xx, with the pause that the
/// provider asks for, and never after a piece of the answer has arrived.
pub struct HttpModel {
    settings: HttpModelSettings,
    /// Made on first use.
    client: OnceCell<Client>,
    jitter: Jitter,
}

/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 32 << 20;
/// Maximum size of the answer to a request that failed, in bytes.
const MAX_FAILURE: usize = 64 << 10;
/// Maximum pause before the second attempt. It doubles with each further one.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum pause that a provider may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Failure of one attempt.
struct Failure {
    message: String,
    /// Consequence.
    next: Next,
}

/// Consequence of a failed attempt.
#[derive(Clone, Copy)]
enum Next {
    /// Nothing.
    End,
    /// Another attempt, after a pause by our own rule.
    Again,
    /// Another attempt, after the pause that the provider asks for.
    After(Duration),
}

impl HttpModel {
    /// Creates a model.
    #[must_use]
    pub fn new(settings: HttpModelSettings) -> Self {
        Self {
            client: OnceCell::new(),
            settings,
            jitter: Jitter::default(),
        }
    }

    async fn client(&self) -> Result<&Client, Failure> {
        let timeout = self.settings.timeout;
        let make = || async move {
            let failure = |message: String| Failure {
                message,
                next: Next::End,
            };
            let made = tokio::task::spawn_blocking(move || streaming_client(timeout)).await;
            made.map_err(|error| failure(error.to_string()))?
                .map_err(|error| failure(error.to_string()))
        };
        self.client.get_or_try_init(make).await
    }

    async fn attempt(&self, request: &ModelRequest<'_>) -> Result<AssistantTurn, Failure> {
        let HttpModelSettings {
            model,
            base_url,
            api_key,
            max_tokens,
            ..
        } = &self.settings;
        let url = format!("{}{}", base_url.trim_end_matches('/'), request.path(model, true));
        let mut call = self
            .client()
            .await?
            .post(url)
            .header("content-type", "application/json");
        if let Some(key) = api_key {
            call = match self.settings.format {
                ProviderFormat::Anthropic => call.header("x-api-key", key.expose()),
                ProviderFormat::Gemini => call.header("x-goog-api-key", key.expose()),
                _ => call.bearer_auth(key.expose()),
            };
        }
        if self.settings.format == ProviderFormat::Anthropic {
            call = call.header("anthropic-version", ANTHROPIC_VERSION);
        }
        let body = request.body(model, *max_tokens, true);
        let answer = call.body(body.as_str().to_owned()).send().await;
        let answer = answer.map_err(|error| Failure {
            next: if error.is_connect() || error.is_timeout() {
                Next::Again
            } else {
                Next::End
            },
            message: words(&error),
        })?;
        if !answer.status().is_success() {
            return Err(self.refused(answer).await);
        }
        self.read(request, answer).await.map_err(|message| Failure {
            message,
            next: Next::End,
        })
    }

    /// Reads the stream of a turn.
    async fn read(&self, request: &ModelRequest<'_>, mut answer: Response) -> Result<AssistantTurn, String> {
        let mut turn = TurnStream::new(request.definitions);
        let mut pieces = Pieces::new(self.settings.format);
        let mut n_bytes = 0;
        while let Some(chunk) = answer.chunk().await.map_err(|error| words(&error))? {
            n_bytes += chunk.len();
            if n_bytes > MAX_ANSWER {
                return Err(format!("its answer is larger than {MAX_ANSWER} bytes"));
            }
            pieces.push(&chunk);
            while let Some(event) = pieces.next()? {
                let said = turn.push(&event).map_err(|error| error.to_string())?;
                if !said.is_empty() {
                    (request.on_text)(&said);
                }
            }
        }
        if let Some(event) = pieces.last()? {
            let said = turn.push(&event).map_err(|error| error.to_string())?;
            (request.on_text)(&said);
        }
        turn.finish().map_err(|error| error.to_string())
    }

    /// Describes the answer to a request that failed.
    async fn refused(&self, mut answer: Response) -> Failure {
        let status = answer.status();
        let asked = answer
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|value| tool_core::retry_after(value, SystemClock::new().wall()));
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = answer.chunk().await
            && body.len() < MAX_FAILURE
        {
            body.extend_from_slice(&chunk);
        }
        let is_transient = status.is_server_error()
            || matches!(
                status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
            );
        let next = match asked {
            _ if !is_transient => Next::End,
            Some(RetryAfter::Never) => Next::End,
            Some(RetryAfter::In(pause)) if pause > MAX_PAUSE => Next::End,
            Some(RetryAfter::In(pause)) => Next::After(pause),
            _ => Next::Again,
        };
        let told = RawJson::parse(body).ok().and_then(|body| {
            let error = body.get("error")?;
            error
                .get("message")
                .and_then(|message| message.string())
                .or_else(|| error.string())
        });
        let mut message = format!("it answered {status}");
        if let Some(mut told) = told {
            if let Some(key) = &self.settings.api_key {
                told = told.replace(key.expose(), "[hidden]");
            }
            let told: String = told.chars().take(500).collect();
            message.push_str(&format!(": {told}"));
        }
        Failure { message, next }
    }
}

impl Model for HttpModel {
    fn format(&self) -> ProviderFormat {
        self.settings.format
    }

    fn turn<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<AssistantTurn, ModelError>> {
        Box::pin(async move {
            for attempt in 1.. {
                let failure = match self.attempt(&request).await {
                    Ok(turn) => return Ok(turn),
                    Err(failure) => failure,
                };
                if attempt >= self.settings.max_attempts {
                    return Err(ModelError::new(failure.message));
                }
                sleep(match failure.next {
                    Next::End => return Err(ModelError::new(failure.message)),
                    Next::Again => self.jitter.up_to(PAUSE * 2_u32.pow(attempt.min(6) - 1)),
                    Next::After(pause) => pause,
                })
                .await;
            }
            Err(ModelError::new("no attempt is allowed"))
        })
    }
}

/// Events of an answer that arrives in pieces: server-sent events, or lines of JSON.
enum Pieces {
    Sse(SseDecoder),
    Lines(LineDecoder),
}

impl Pieces {
    fn new(format: ProviderFormat) -> Self {
        match format {
            ProviderFormat::Ollama => Self::Lines(LineDecoder::default()),
            _ => Self::Sse(SseDecoder::default()),
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::Sse(decoder) => decoder.push(chunk),
            Self::Lines(decoder) => decoder.push(chunk),
        }
    }

    /// Returns the next event that is whole.
    fn next(&mut self) -> Result<Option<RawJson>, String> {
        match self {
            Self::Sse(decoder) => loop {
                match decoder.next_item() {
                    None => return Ok(None),
                    Some(SseItem::Oversize { .. }) => return Err(too_large()),
                    // The end of a stream of OpenAI, and events without data.
                    Some(SseItem::Event(event)) if matches!(event.data.trim_ascii(), b"" | b"[DONE]") => {}
                    Some(SseItem::Event(event)) => return event_of(event.data).map(Some),
                }
            },
            Self::Lines(decoder) => decoder.next_line().map(event_of_line).transpose(),
        }
    }

    /// Returns a last line without an end.
    fn last(&mut self) -> Result<Option<RawJson>, String> {
        match self {
            Self::Sse(_) => Ok(None),
            Self::Lines(decoder) => decoder.finish().map(event_of_line).transpose(),
        }
    }
}

fn event_of_line(line: Line) -> Result<RawJson, String> {
    match line {
        Line::Complete(line) => event_of(line),
        Line::Oversize { .. } => Err(too_large()),
    }
}

fn event_of(data: Bytes) -> Result<RawJson, String> {
    RawJson::parse(data).map_err(|_| "an event of its stream is no JSON".to_owned())
}

fn too_large() -> String {
    "an event of its stream is too large".to_owned()
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
