/// Limits of a conversation. Policies of the tools apply as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLimits {
    /// Maximum number of turns of the model for one message of the user. In the last one it may call no tools.
    pub max_rounds: u32,
    /// Maximum number of calls of one turn; more are refused.
    pub max_calls_per_turn: u32,
    /// Maximum number of calls of the conversation; more are refused.
    pub max_calls: u32,
    /// Maximum number of calls of one tool with the same arguments; more are refused.
    pub max_identical_calls: u32,
    /// Maximum number of tokens of one result, with [`AgentLimits::BYTES_PER_TOKEN`] bytes for each; what is longer is cut, and says
    /// so. `None` for no limit.
    pub max_result_tokens: Option<usize>,
}

impl AgentLimits {
    /// Number of bytes of text that count as a token. Tokenizers of models differ; this is about right for English and JSON.
    pub const BYTES_PER_TOKEN: usize = 4;
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_rounds: 20,
            max_calls_per_turn: 20,
            max_calls: 100,
            max_identical_calls: 3,
            max_result_tokens: None,
        }
    }
}
