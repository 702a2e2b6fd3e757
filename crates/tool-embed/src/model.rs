//! The model: its files, and vectors of texts by it.

use std::{fmt, fs, path::Path};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use serde::Deserialize;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};
use tool_core::EmbedError;

/// Number of texts that pass the model at once.
const BATCH: usize = 16;
/// Maximum number of tokens of a text, if the model does not say. The rest is ignored.
const MAX_TOKENS: usize = 256;

/// Sentence model of the BERT architecture.
pub(crate) struct Model {
    bert: BertModel,
    tokenizer: Tokenizer,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

/// Content of `1_Pooling/config.json`.
#[derive(Deserialize)]
struct Pooling {
    pooling_mode_mean_tokens: bool,
}

/// Content of `sentence_bert_config.json`.
#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: usize,
}

impl Model {
    /// Reads the model of a directory.
    pub(crate) fn open(directory: &Path) -> Result<Self, EmbedError> {
        let config: Config = json(directory, "config.json")?;
        if let Some(pooling) = optional_json::<Pooling>(directory, "1_Pooling/config.json")?
            && !pooling.pooling_mode_mean_tokens
        {
            return Err(failed(
                directory,
                "it does not use mean pooling, which is the only supported one",
            ));
        }
        let sentence = optional_json::<SentenceConfig>(directory, "sentence_bert_config.json")?;
        let max_length = sentence.map_or(MAX_TOKENS, |sentence| sentence.max_seq_length);
        let mut tokenizer = Tokenizer::from_bytes(read(directory, "tokenizer.json")?)
            .map_err(|error| failed(directory, &format!("`tokenizer.json` cannot be used: {error}")))?;
        let truncation = TruncationParams {
            max_length: max_length.min(config.max_position_embeddings),
            ..TruncationParams::default()
        };
        tokenizer
            .with_padding(Some(PaddingParams::default()))
            .with_truncation(Some(truncation))
            .map_err(|error| failed(directory, &error.to_string()))?;
        let weights = read(directory, "model.safetensors")?;
        let in_directory = |error: candle_core::Error| failed(directory, &error.to_string());
        let weights =
            VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu).map_err(in_directory)?;
        let bert = BertModel::load(weights, &config).map_err(in_directory)?;
        Ok(Self { bert, tokenizer })
    }

    /// Returns the vectors of texts, each of length 1.
    pub(crate) fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        // Texts of similar length share a batch, so that little of it is padding.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| texts[*index].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in order.chunks(BATCH) {
            let of_batch: Vec<&str> = batch.iter().map(|index| texts[*index].as_str()).collect();
            let embedded = self.embed_batch(&of_batch)?;
            for (index, vector) in batch.iter().zip(embedded) {
                vectors[*index] = vector;
            }
        }
        Ok(vectors)
    }

    fn embed_batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let encoded = self.tokenizer.encode_batch(texts.to_vec(), true);
        let encoded = encoded.map_err(|error| EmbedError::new(format!("the text has no tokens: {error}")))?;
        let ids: Vec<Vec<u32>> = encoded.iter().map(|text| text.get_ids().to_vec()).collect();
        let mask: Vec<Vec<u32>> = encoded
            .iter()
            .map(|text| text.get_attention_mask().to_vec())
            .collect();
        self.forward(ids, mask)
            .map_err(|error| EmbedError::new(format!("the model failed: {error}")))
    }

    /// Mean of the hidden states of a text's tokens, with the length 1 (Reimers and Gurevych, "Sentence-BERT", 2019).
    fn forward(&self, ids: Vec<Vec<u32>>, mask: Vec<Vec<u32>>) -> candle_core::Result<Vec<Vec<f32>>> {
        let ids = Tensor::new(ids, &Device::Cpu)?;
        let mask = Tensor::new(mask, &Device::Cpu)?;
        let states = self.bert.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sums = states.broadcast_mul(&mask)?.sum(1)?;
        let means = sums.broadcast_div(&mask.sum(1)?)?;
        let lengths = means.sqr()?.sum_keepdim(1)?.sqrt()?;
        means.broadcast_div(&lengths)?.to_vec2()
    }
}

fn read(directory: &Path, name: &str) -> Result<Vec<u8>, EmbedError> {
    fs::read(directory.join(name))
        .map_err(|error| failed(directory, &format!("`{name}` cannot be read: {error}")))
}

fn json<T: for<'de> Deserialize<'de>>(directory: &Path, name: &str) -> Result<T, EmbedError> {
    serde_json::from_slice(&read(directory, name)?)
        .map_err(|error| failed(directory, &format!("`{name}` cannot be used: {error}")))
}

/// Reads a file that a model may lack.
fn optional_json<T: for<'de> Deserialize<'de>>(
    directory: &Path,
    name: &str,
) -> Result<Option<T>, EmbedError> {
    match directory.join(name).exists() {
        true => json(directory, name).map(Some),
        false => Ok(None),
    }
}

fn failed(directory: &Path, problem: &str) -> EmbedError {
    EmbedError::new(format!("the model in `{}`: {problem}", directory.display()))
}
