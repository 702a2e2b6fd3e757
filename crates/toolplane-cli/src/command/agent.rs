use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::{Provider, Recording};

/// `toolplane agent`
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Let a model use the tools, and show each call as it happens: to try a configuration
    #[command(after_help = AGENT_HELP)]
    Run(RunAgent),
}

const AGENT_HELP: &str = "\
Examples:
  toolplane agent run --for anthropic --model claude-sonnet-5 'What changed in the repository today?'
  toolplane agent run --for ollama --model qwen3 --state talk.json 'Pay the bill'
  toolplane agent run --state talk.json --for ollama --model qwen3
  toolplane agent run --script turns.json 'What is the weather in Oslo?'";

/// `toolplane agent run`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["model", "script"])))]
pub(crate) struct RunAgent {
    /// Message to the model; not needed to go on with a conversation that waits
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
    /// Format of the provider
    #[arg(long = "for", value_enum, value_name = "PROVIDER", default_value = "openai")]
    pub(crate) provider: Provider,
    /// Name of the model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Follow this script instead of a model: a JSON list of turns, `{text, calls: [{tool, arguments}], expect: [..]}`
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Address of the provider, without the path of a request; its own by default
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
    /// Environment variable with the key; by default `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) key_env: Option<String>,
    /// Instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// File with the conversation: it is read if it is there, and written at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Maximum number of turns of the model
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_rounds: u32,
    /// Maximum number of tokens of one result, about; what is longer is cut
    #[arg(long, value_name = "N")]
    pub(crate) max_result_tokens: Option<usize>,
    /// Ask for arguments that satisfy their schema, where the provider has that and the schema allows it
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) recording: Recording,
}
