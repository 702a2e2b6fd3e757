//! Embedder that calls a service with the API of OpenAI.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;
use tool_core::{BoxFuture, EmbedError, Embedder, Template};

use super::client::Outbound;

/// Maximum size of an answer, in bytes: 64 vectors of 4,096 numbers take about 5 MB.
const MAX_ANSWER: usize = 32 << 20;

/// Endpoint `/v1/embeddings` of a service.
pub(crate) struct EmbeddingService {
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) url: Template,
    pub(crate) model: String,
    pub(crate) api_key: Option<Template>,
    pub(crate) timeout: Duration,
}

#[derive(Deserialize)]
struct ServiceAnswer {
    data: Vec<ServiceVector>,
}

#[derive(Deserialize)]
struct ServiceVector {
    index: usize,
    embedding: Vec<f32>,
}

impl Embedder for EmbeddingService {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let body = json!({"model": self.model, "input": texts, "encoding_format": "float"}).to_string();
            let (url, key) = (&self.url, self.api_key.as_ref());
            let answer = self
                .outbound
                .post_json(url, key, body, self.timeout, MAX_ANSWER)
                .await;
            let answer =
                answer.map_err(|message| EmbedError::new(format!("the embeddings endpoint: {message}")))?;
            vectors(&answer, texts.len())
        })
    }
}

/// Reads the vectors of an answer, in the order of the texts, and gives them the length 1.
fn vectors(answer: &[u8], n_texts: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let answer: ServiceAnswer = serde_json::from_slice(answer).map_err(|error| {
        EmbedError::new(format!(
            "the embeddings endpoint sent an unusable answer: {error}"
        ))
    })?;
    let mut vectors = vec![Vec::new(); n_texts];
    for ServiceVector { index, embedding } in answer.data {
        let length = embedding
            .iter()
            .map(|component| component * component)
            .sum::<f32>()
            .sqrt();
        match vectors.get_mut(index) {
            Some(slot) if length.is_finite() && length > 0.0 => {
                *slot = embedding.iter().map(|component| component / length).collect();
            }
            _ => {
                return Err(EmbedError::new(format!(
                    "the embeddings endpoint sent an unusable vector {index}"
                )));
            }
        }
    }
    match vectors.iter().position(Vec::is_empty) {
        Some(missing) => Err(EmbedError::new(format!(
            "the embeddings endpoint sent no vector {missing}"
        ))),
        None => Ok(vectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_put_in_order_and_have_the_length_one() {
        let answer = br#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}],"model":"m"}"#;
        assert_eq!(
            vectors(answer, 2).expect("usable"),
            [vec![0.6, 0.8], vec![0.0, 1.0]]
        );
    }

    #[test]
    fn unusable_answers_are_errors_that_say_why() {
        for (answer, expected) in [
            ("{}", "missing field `data`"),
            (r#"{"data":[]}"#, "no vector 0"),
            (r#"{"data":[{"index":7,"embedding":[1]}]}"#, "unusable vector 7"),
            (r#"{"data":[{"index":0,"embedding":[]}]}"#, "unusable vector 0"),
            (r#"{"data":[{"index":0,"embedding":[0,0]}]}"#, "unusable vector 0"),
        ] {
            let error = vectors(answer.as_bytes(), 1).expect_err(answer).to_string();
            assert!(error.contains(expected), "{answer}: {error}");
        }
    }
}
