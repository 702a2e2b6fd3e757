use std::collections::BTreeMap;

use raw_json::RawJson;

use super::{AssistantTurn, FormatError, ProviderFormat, ToolDefinitions, member, object, string, text};

/// Turn of a model that arrives in pieces: the events of a stream, put together as the response that a request without a stream gets.
///
/// # Examples
/// ```
/// use tool_agent::{DefinitionOptions, ProviderFormat, RawJson, ToolDefinitions, TurnStream, serde_json::json};
///
/// let definitions = ToolDefinitions::new(ProviderFormat::OpenAiChat, &[], DefinitionOptions::default());
/// let mut stream = TurnStream::new(&definitions);
/// for piece in ["Hel", "lo"] {
///     let chunk = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
///     assert_eq!(stream.push(&RawJson::from(chunk))?, piece);
/// }
/// let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
/// stream.push(&RawJson::from(end))?;
/// assert_eq!(stream.finish()?.text, "Hello");
/// # Ok::<(), tool_agent::FormatError>(())
/// ```
#[derive(Debug)]
pub struct TurnStream<'a> {
    definitions: &'a ToolDefinitions,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    /// Members of the response or message, as they come in pieces.
    said: String,
    /// Further members of the message, by their names: texts that grow.
    others: BTreeMap<String, String>,
    calls: BTreeMap<u64, PartialCall>,
    /// Blocks of Anthropic, by their index.
    blocks: BTreeMap<u64, Block>,
    /// Parts of Gemini, in their order.
    parts: Vec<RawJson>,
    /// Calls of Ollama, in their order.
    whole_calls: Vec<RawJson>,
    stop: Option<String>,
    /// `true` once the provider has said that the turn is over.
    is_over: bool,
    usage: Option<RawJson>,
    input_tokens: Option<RawJson>,
    /// The whole response, where the last event has it.
    whole: Option<RawJson>,
}

#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    arguments: String,
}

/// A block of content of Anthropic.
#[derive(Debug)]
struct Block {
    start: RawJson,
    /// Texts that grow, by the member that they belong to.
    grown: BTreeMap<&'static str, String>,
}

impl<'a> TurnStream<'a> {
    /// Begins a turn. `definitions` are those that its request had.
    #[must_use]
    pub fn new(definitions: &'a ToolDefinitions) -> Self {
        Self {
            definitions,
            state: State::default(),
        }
    }

    /// Takes the data of the next event, as JSON. Returns the text for the user in it; empty if there is none.
    ///
    /// # Errors
    /// If the event reports a failure.
    pub fn push(&mut self, event: &RawJson) -> Result<String, FormatError> {
        if let Some(error) = member(event, "error") {
            let kind = string(&error, "type")
                .or_else(|| string(&error, "status"))
                .unwrap_or_default();
            return Err(FormatError::new(format!("the provider reports an error: {kind}")));
        }
        let state = &mut self.state;
        let said = match self.definitions.format() {
            ProviderFormat::OpenAiChat => state.openai_chat(event),
            ProviderFormat::OpenAiResponses => state.openai_responses(event)?,
            ProviderFormat::Anthropic => state.anthropic(event),
            ProviderFormat::Gemini => state.gemini(event),
            ProviderFormat::Ollama => state.ollama(event),
        };
        state.said.push_str(&said);
        Ok(said)
    }

    /// Ends the turn.
    ///
    /// # Errors
    /// If the stream ended too early, or is not in the format of the provider.
    pub fn finish(self) -> Result<AssistantTurn, FormatError> {
        let Self { definitions, state } = self;
        // Calls of a turn that was cut off are not made: a call without arguments looks like one whose arguments did not arrive.
        if !state.is_over && state.stop.is_none() && state.whole.is_none() {
            return Err(FormatError::new("the stream ended before the turn was complete"));
        }
        let response = match definitions.format() {
            ProviderFormat::OpenAiChat => state.into_openai_chat(),
            ProviderFormat::OpenAiResponses => state.whole.unwrap_or_else(RawJson::null),
            ProviderFormat::Anthropic => state.into_anthropic()?,
            ProviderFormat::Gemini => state.into_gemini(),
            ProviderFormat::Ollama => state.into_ollama(),
        };
        AssistantTurn::read(definitions, &response)
    }
}

impl State {
    fn openai_chat(&mut self, chunk: &RawJson) -> String {
        if let Some(usage) = member(chunk, "usage") {
            self.usage = Some(usage);
        }
        let choice = chunk.get("choices").and_then(|choices| choices.items().next());
        let Some(choice) = choice else {
            return String::new();
        };
        if let Some(reason) = string(&choice, "finish_reason") {
            self.stop = Some(reason);
        }
        let Some(delta) = choice.get("delta") else {
            return String::new();
        };
        for key in ["refusal", "reasoning_content"] {
            if let Some(piece) = string(&delta, key) {
                self.others.entry(key.to_owned()).or_default().push_str(&piece);
            }
        }
        for call in member(&delta, "tool_calls").iter().flat_map(RawJson::items) {
            let index = call.get("index").and_then(|index| index.to().ok());
            // A service that leaves the index out sends whole calls.
            let index = index.unwrap_or(self.calls.len() as u64);
            let known = self.calls.entry(index).or_default();
            if let Some(id) = string(&call, "id") {
                known.id = id;
            }
            let function = call.get("function").unwrap_or(RawJson::object());
            known
                .name
                .push_str(&string(&function, "name").unwrap_or_default());
            let arguments = string(&function, "arguments").unwrap_or_default();
            known.arguments.push_str(&arguments);
        }
        string(&delta, "content").unwrap_or_default()
    }

    fn into_openai_chat(self) -> RawJson {
        let calls: Vec<_> = self
            .calls
            .values()
            .map(|call| {
                let function = object(&[("name", text(&call.name)), ("arguments", text(&call.arguments))]);
                object(&[
                    ("id", text(&call.id)),
                    ("type", text("function")),
                    ("function", function),
                ])
            })
            .collect();
        let mut message = vec![("role", text("assistant")), ("content", text(&self.said))];
        if !calls.is_empty() {
            message.push(("tool_calls", RawJson::from_items(&calls)));
        }
        for (key, value) in &self.others {
            message.push((key, text(value)));
        }
        let stop = self.stop.map_or(RawJson::null(), |stop| text(&stop));
        let choice = object(&[("message", object(&message)), ("finish_reason", stop)]);
        let mut response = vec![("choices", RawJson::from_items(&[choice]))];
        response.extend(self.usage.map(|usage| ("usage", usage)));
        object(&response)
    }

    fn openai_responses(&mut self, event: &RawJson) -> Result<String, FormatError> {
        match string(event, "type").as_deref() {
            Some("response.output_text.delta") => Ok(string(event, "delta").unwrap_or_default()),
            Some("response.completed" | "response.incomplete") => {
                self.whole = event.get("response");
                Ok(String::new())
            }
            Some("response.failed" | "error") => Err(FormatError::new("the provider reports a failure")),
            _ => Ok(String::new()),
        }
    }

    fn anthropic(&mut self, event: &RawJson) -> String {
        let index: u64 = event
            .get("index")
            .and_then(|index| index.to().ok())
            .unwrap_or_default();
        match string(event, "type").as_deref() {
            Some("message_start") => {
                let usage = event.get("message").and_then(|message| message.get("usage"));
                self.input_tokens = usage.and_then(|usage| usage.get("input_tokens"));
            }
            Some("content_block_start") => {
                if let Some(start) = event.get("content_block") {
                    let grown = BTreeMap::new();
                    self.blocks.insert(index, Block { start, grown });
                }
            }
            Some("content_block_delta") => {
                let Some(delta) = event.get("delta") else {
                    return String::new();
                };
                let (key, piece) = match string(&delta, "type").as_deref() {
                    Some("text_delta") => ("text", string(&delta, "text")),
                    Some("input_json_delta") => ("input", string(&delta, "partial_json")),
                    Some("thinking_delta") => ("thinking", string(&delta, "thinking")),
                    Some("signature_delta") => ("signature", string(&delta, "signature")),
                    _ => return String::new(),
                };
                let piece = piece.unwrap_or_default();
                if let Some(block) = self.blocks.get_mut(&index) {
                    block.grown.entry(key).or_default().push_str(&piece);
                }
                if key == "text" {
                    return piece;
                }
            }
            Some("message_delta") => {
                let delta = event.get("delta");
                self.stop = delta.and_then(|delta| string(&delta, "stop_reason"));
                self.usage = member(event, "usage");
            }
            Some("message_stop") => self.is_over = true,
            _ => {}
        }
        String::new()
    }

    fn into_anthropic(self) -> Result<RawJson, FormatError> {
        let mut content = Vec::with_capacity(self.blocks.len());
        for block in self.blocks.into_values() {
            let mut members = Vec::new();
            for (key, grown) in &block.grown {
                let value = match *key {
                    "input" if grown.is_empty() => RawJson::object(),
                    "input" => super::turn::arguments_of_text(grown),
                    key => {
                        let before = string(&block.start, key).unwrap_or_default();
                        text(&(before + grown))
                    }
                };
                members.push((*key, value));
            }
            let block = block.start.with_members(&members);
            content.push(block.map_err(|_| FormatError::new("a block of content is no object"))?);
        }
        let stop = self.stop.map_or(RawJson::null(), |stop| text(&stop));
        let output = self.usage.and_then(|usage| usage.get("output_tokens"));
        let zero = || RawJson::from(0_u64);
        let usage = object(&[
            ("input_tokens", self.input_tokens.unwrap_or_else(zero)),
            ("output_tokens", output.unwrap_or_else(zero)),
        ]);
        Ok(object(&[
            ("role", text("assistant")),
            ("content", RawJson::from_items(&content)),
            ("stop_reason", stop),
            ("usage", usage),
        ]))
    }

    fn gemini(&mut self, chunk: &RawJson) -> String {
        if let Some(usage) = member(chunk, "usageMetadata") {
            self.usage = Some(usage);
        }
        let candidate = chunk
            .get("candidates")
            .and_then(|candidates| candidates.items().next());
        let Some(candidate) = candidate else {
            self.whole = member(chunk, "promptFeedback")
                .map(|_| chunk.clone())
                .or(self.whole.take());
            return String::new();
        };
        if let Some(reason) = string(&candidate, "finishReason") {
            self.stop = Some(reason);
        }
        let mut said = String::new();
        let content = member(&candidate, "content").and_then(|content| content.get("parts"));
        for part in content.iter().flat_map(RawJson::items) {
            if part
                .get("thought")
                .is_none_or(|thought| thought.as_str() != "true")
            {
                said.push_str(&string(&part, "text").unwrap_or_default());
            }
            self.parts.push(part);
        }
        said
    }

    fn into_gemini(self) -> RawJson {
        if let Some(whole) = self.whole.filter(|_| self.parts.is_empty()) {
            return whole;
        }
        let content = object(&[
            ("role", text("model")),
            ("parts", RawJson::from_items(&self.parts)),
        ]);
        let mut candidate = vec![("content", content)];
        candidate.extend(self.stop.map(|stop| ("finishReason", text(&stop))));
        let mut response = vec![("candidates", RawJson::from_items(&[object(&candidate)]))];
        response.extend(self.usage.map(|usage| ("usageMetadata", usage)));
        object(&response)
    }

    fn ollama(&mut self, chunk: &RawJson) -> String {
        if let Some(reason) = string(chunk, "done_reason") {
            self.stop = Some(reason);
        }
        self.is_over |= chunk.get("done").is_some_and(|done| done.as_str() == "true");
        if chunk.get("eval_count").is_some() {
            self.usage = Some(chunk.clone());
        }
        let Some(message) = chunk.get("message") else {
            return String::new();
        };
        if let Some(piece) = string(&message, "thinking") {
            self.others
                .entry("thinking".to_owned())
                .or_default()
                .push_str(&piece);
        }
        let calls = member(&message, "tool_calls");
        self.whole_calls.extend(calls.iter().flat_map(RawJson::items));
        string(&message, "content").unwrap_or_default()
    }

    fn into_ollama(self) -> RawJson {
        let mut message = vec![("role", text("assistant")), ("content", text(&self.said))];
        for (key, value) in &self.others {
            message.push((key, text(value)));
        }
        if !self.whole_calls.is_empty() {
            message.push(("tool_calls", RawJson::from_items(&self.whole_calls)));
        }
        let mut response = vec![("message", object(&message))];
        response.extend(self.stop.map(|stop| ("done_reason", text(&stop))));
        for key in ["prompt_eval_count", "eval_count"] {
            response.extend(self.usage.as_ref().and_then(|usage| Some((key, usage.get(key)?))));
        }
        object(&response)
    }
}
