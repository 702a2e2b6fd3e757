//! A model of one layer and eight words, written by the test.

use std::{collections::HashMap, fs, path::Path};

use candle_core::{Device, Tensor};
use tempfile::TempDir;
use tool_embed::{LocalEmbedder, tool_core::Embedder};

use crate::CONFIG;

/// Number of components of a vector.
const SIZE: usize = 4;

const TOKENIZER: &str = r###"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
    "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
    "pre_tokenizer":{"type":"BertPreTokenizer"},
    "post_processor":{"type":"TemplateProcessing",
        "single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
        "pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],
        "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
    "decoder":null,
    "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
        "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"weather":4,"mail":5,"place":6,"at":7}}}"###;

/// Writes weights that look random and are the same at each run.
fn write_weights(file: &Path) {
    let mut state = 1_u64;
    let mut tensor = |shape: &[usize]| {
        let components = (0..shape.iter().product()).map(|_| {
            // Knuth's generator (MMIX).
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
        });
        Tensor::from_vec(components.collect::<Vec<_>>(), shape, &Device::Cpu).expect("a tensor")
    };
    let mut weights = HashMap::new();
    for (name, rows) in [("word", 8), ("position", 8), ("token_type", 1)] {
        weights.insert(
            format!("embeddings.{name}_embeddings.weight"),
            tensor(&[rows, SIZE]),
        );
    }
    let layer = "encoder.layer.0";
    let dense = [
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
    ];
    for part in dense {
        weights.insert(format!("{layer}.{part}.weight"), tensor(&[SIZE, SIZE]));
        weights.insert(format!("{layer}.{part}.bias"), tensor(&[SIZE]));
    }
    let norms = [
        "embeddings.LayerNorm".to_owned(),
        format!("{layer}.attention.output.LayerNorm"),
        format!("{layer}.output.LayerNorm"),
    ];
    for norm in norms {
        weights.insert(format!("{norm}.weight"), tensor(&[SIZE]));
        weights.insert(format!("{norm}.bias"), tensor(&[SIZE]));
    }
    candle_core::safetensors::save(&weights, file).expect("written");
}

fn model() -> (TempDir, LocalEmbedder) {
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("config.json"), CONFIG).expect("written");
    fs::write(directory.path().join("tokenizer.json"), TOKENIZER).expect("written");
    write_weights(&directory.path().join("model.safetensors"));
    let embedder = LocalEmbedder::new(directory.path());
    (directory, embedder)
}

async fn embed(embedder: &LocalEmbedder, texts: &[&str]) -> Vec<Vec<f32>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    embedder.embed(&texts).await.expect("it can be used")
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[tokio::test]
async fn each_text_has_a_vector_of_length_1_whatever_it_is_embedded_with() {
    let (_directory, embedder) = model();
    // The fourth is longer than the model reads.
    let long = "weather ".repeat(50);
    let texts = [
        "weather at place",
        "mail",
        "Mail.",
        long.as_str(),
        "",
        "at at at at",
    ];
    let together = embed(&embedder, &texts).await;
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        assert_eq!(vector.len(), SIZE);
        let length: f32 = vector.iter().map(|component| component * component).sum();
        assert!((length - 1.0).abs() < 1e-4, "{text}: {vector:?}");
        let alone = embed(&embedder, &[text]).await;
        assert!(
            distance(&alone[0], vector) < 1e-4,
            "{text}: {vector:?} and {alone:?}"
        );
    }
    assert!(distance(&together[0], &together[1]) > 1e-2, "{together:?}");
}

#[tokio::test]
async fn a_directory_that_becomes_complete_is_used_from_then_on() {
    let (directory, _) = model();
    let (missing, aside) = (
        directory.path().join("model.safetensors"),
        directory.path().join("aside"),
    );
    fs::rename(&missing, &aside).expect("renamed");
    let embedder = LocalEmbedder::new(directory.path());
    let error = embedder
        .embed(&["mail".to_owned()])
        .await
        .expect_err("incomplete");
    assert!(
        error.to_string().contains("`model.safetensors` cannot be read"),
        "{error}"
    );
    fs::rename(&aside, &missing).expect("renamed");
    assert_eq!(embed(&embedder, &["mail"]).await[0].len(), SIZE);
    // It is read once.
    fs::remove_file(&missing).expect("removed");
    assert_eq!(embed(&embedder, &["mail"]).await[0].len(), SIZE);
}
