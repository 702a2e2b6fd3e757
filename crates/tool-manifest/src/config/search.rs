use std::{path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Template;
use tool_settings::{Field, NodeId, Period, longer_than_zero};

use crate::{document::place::Cx, servers::transport};

/// Settings of the search over tools.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchSpec {
    /// Model that embeds tools and queries; searches compare words alone if absent.
    pub embeddings: Option<EmbeddingsSpec>,
}

/// Model that turns texts into vectors.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EmbeddingsSpec {
    /// Service with the API of OpenAI.
    #[non_exhaustive]
    Service {
        /// URL of the endpoint, such as `https://api.example.com/v1/embeddings`.
        url: Template,
        /// Name of the model.
        model: String,
        /// Key that is sent as a bearer token.
        api_key: Option<Template>,
        /// Time limit of a request.
        timeout: Duration,
    },
    /// Directory with a model: `config.json`, `tokenizer.json` and `model.safetensors`.
    Directory(PathBuf),
}

/// Search over tools: `tools search`, and `tool_search` of the gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Search")]
pub(crate) struct SearchBody {
    /// Model that compares meanings in addition to words, also for semantic caches; none by default.
    embeddings: Field<EmbeddingsBody>,
}

/// Model that turns texts into vectors: a service (`url` and `model`) or a `directory`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Embeddings")]
struct EmbeddingsBody {
    /// Endpoint with the API of OpenAI, such as `http://127.0.0.1:8080/v1/embeddings`. It receives the definitions of
    /// tools, the queries, and the arguments that semantic caches compare.
    url: Field<String>,
    /// Name of the model at the endpoint.
    model: Field<String>,
    /// Key that is sent as a bearer token, such as `${secret:EMBEDDINGS}`.
    api_key: Field<String>,
    /// Time limit of a request for the vectors of tools; 30s by default. A search waits no longer than 2s.
    timeout: Field<Period>,
    /// Directory with a BERT model, such as all-MiniLM-L6-v2: `config.json`, `tokenizer.json` and
    /// `model.safetensors`. Needs a build with the feature `embed-local`.
    directory: Field<String>,
}

pub(crate) fn search(cx: Cx<'_>, body: SearchBody) -> SearchSpec {
    SearchSpec {
        embeddings: body
            .embeddings
            .located()
            .and_then(|(at, body)| embeddings(cx, at, body)),
    }
}

/// Reads a model. Returns `None` if it is not usable, which is then reported.
fn embeddings(cx: Cx<'_>, at: NodeId, body: EmbeddingsBody) -> Option<EmbeddingsSpec> {
    let mut timeout = Duration::from_secs(30);
    longer_than_zero(cx.words(), body.timeout, &mut timeout);
    match (body.url.located(), body.directory.located()) {
        (Some(_), Some((second, _))) => {
            cx.key_error(
                second,
                "`url` and `directory` name two models",
                "remove one of them",
            );
            None
        }
        (None, Some((_, directory))) => Some(EmbeddingsSpec::Directory(
            cx.document.source.directory.join(directory),
        )),
        (None, None) => {
            let hint = "write `{url: .., model: ..}` or `{directory: ..}`";
            cx.key_error(at, "the embeddings name no model", hint);
            None
        }
        (Some((url_at, url)), None) => {
            if !["https://", "http://", "${"]
                .iter()
                .any(|start| url.starts_with(start))
            {
                cx.error(url_at, "an endpoint is a URL with `https://` or `http://`", "");
                return None;
            }
            let Some(model) = body.model.get() else {
                cx.key_error(
                    at,
                    "the embeddings have no `model`",
                    "write the name of the model at the endpoint",
                );
                return None;
            };
            let api_key = match body.api_key.located() {
                Some((at, key)) => {
                    let key = transport::parse(cx, at, &key)?;
                    if key.references().next().is_none() {
                        cx.warning(
                            at,
                            "the key stands in the file for everyone to read",
                            "use `${env:NAME}`, `${file:PATH}` or `${secret:NAME}`",
                        );
                    }
                    Some(key)
                }
                None => None,
            };
            Some(EmbeddingsSpec::Service {
                url: transport::parse(cx, url_at, &url)?,
                model,
                api_key,
                timeout,
            })
        }
    }
}
