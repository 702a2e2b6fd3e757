//! Models that cannot be used, and a tiny one. A real one is too large for the repository: `cargo xtask search-eval --model`
//! runs it.

mod tiny;

use std::fs;

use tempfile::TempDir;
use tool_embed::{LocalEmbedder, tool_core::Embedder};

const CONFIG: &str = r#"{"vocab_size":8,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":1,"intermediate_size":4,
    "hidden_act":"gelu","hidden_dropout_prob":0.1,"max_position_embeddings":8,"type_vocab_size":1,
    "initializer_range":0.02,"layer_norm_eps":1e-12,"pad_token_id":0,"position_embedding_type":"absolute"}"#;

async fn problem(files: &[(&str, &str)]) -> String {
    let directory = TempDir::new().expect("a directory");
    for (name, text) in files {
        let file = directory.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        fs::write(file, text).expect("written");
    }
    let embedder = LocalEmbedder::new(directory.path());
    let error = embedder
        .embed(&["text".to_owned()])
        .await
        .expect_err("not usable");
    let text = error.to_string();
    assert!(text.contains(&directory.path().display().to_string()), "{text}");
    text
}

#[tokio::test]
async fn an_unusable_directory_is_an_error_that_names_the_file() {
    for (files, expected) in [
        (&[][..], "`config.json` cannot be read"),
        (&[("config.json", "{}")][..], "`config.json` cannot be used"),
        (&[("config.json", CONFIG)][..], "`tokenizer.json` cannot be read"),
        (
            &[("config.json", CONFIG), ("tokenizer.json", "[]")][..],
            "`tokenizer.json` cannot be used",
        ),
        (
            &[
                ("config.json", CONFIG),
                ("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens":false}"#),
            ][..],
            "mean pooling",
        ),
    ] {
        let problem = problem(files).await;
        assert!(problem.contains(expected), "{problem}");
    }
}
