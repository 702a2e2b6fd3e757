use std::sync::Arc;

use raw_json::{JsonKind, RawJson};

use super::{FormatError, ProviderFormat, ToolDefinitions, member, object, string, text};

/// Turn of a model: what it says, and the tools that it calls.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AssistantTurn {
    /// Text for the user; empty if there is none.
    pub text: String,
    /// Calls of tools, in their order.
    pub calls: Vec<ModelCall>,
    /// Reason for the end of the turn.
    pub stop: StopReason,
    /// Messages to append to the history, as the provider wrote them: also what only the provider understands, such as encrypted
    /// reasoning.
    pub messages: Vec<RawJson>,
    /// Tokens of the request and the turn, if they are told.
    pub usage: Option<TokenUsage>,
}

/// Call of a tool by a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelCall {
    /// Id by which the result refers to the call. Formats without ids number the calls of a turn.
    pub id: String,
    /// Name of the tool; `None` if the model calls one that it was not offered.
    pub tool: Option<Arc<str>>,
    /// Name as the model wrote it.
    pub name: String,
    /// Arguments, in the model's own text; what is no JSON object as a text.
    pub arguments: RawJson,
    /// `true` if the id is a number that the provider does not know.
    is_numbered: bool,
}

/// Reason for the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model is done.
    End,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The limit of tokens was reached: the turn, and the arguments of its last call, may be incomplete.
    MaxTokens,
    /// It refused, or a filter did.
    Refusal,
    /// Another reason, as the provider names it.
    Other(String),
}

/// Number of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the turn.
    pub output: u64,
}

impl ModelCall {
    /// Makes a call from what a model wrote.
    pub(crate) fn new(definitions: &ToolDefinitions, id: String, name: String, arguments: RawJson) -> Self {
        let tool = definitions.names().tool(&name).cloned();
        let arguments = match &tool {
            Some(tool) => definitions.arguments(tool, arguments),
            None => arguments,
        };
        Self {
            id,
            tool,
            name,
            arguments,
            is_numbered: false,
        }
    }

    /// Writes the call for a store.
    pub(crate) fn to_json(&self) -> RawJson {
        let mut members = vec![
            ("id", text(&self.id)),
            ("name", text(&self.name)),
            ("arguments", self.arguments.clone()),
            ("numbered", RawJson::from(self.is_numbered)),
        ];
        members.extend(self.tool.as_deref().map(|tool| ("tool", text(tool))));
        object(&members)
    }

    /// Reads a stored call.
    pub(crate) fn from_json(stored: &RawJson) -> Option<Self> {
        Some(Self {
            id: string(stored, "id")?,
            name: string(stored, "name")?,
            arguments: stored.get("arguments")?,
            tool: string(stored, "tool").map(Arc::from),
            is_numbered: stored.get("numbered").is_some_and(|is| is.as_str() == "true"),
        })
    }

    /// Says that the provider gave the call no id.
    fn numbered(mut self, is_numbered: bool) -> Self {
        self.is_numbered = is_numbered;
        self
    }

    /// Returns the id that the provider gave the call.
    pub(super) fn given_id(&self) -> Option<String> {
        (!self.is_numbered).then(|| self.id.clone())
    }

    /// Returns `true` if the arguments are an object, as every tool takes them.
    #[must_use]
    pub fn has_valid_arguments(&self) -> bool {
        self.arguments.kind() == JsonKind::Object
    }
}

/// Reads arguments that are a JSON text. An empty text is an empty object; a text that is no JSON stays one.
pub(super) fn arguments_of_text(written: &str) -> RawJson {
    if written.trim().is_empty() {
        return RawJson::object();
    }
    RawJson::parse(written.to_owned()).unwrap_or_else(|_| text(written))
}

impl AssistantTurn {
    /// Reads a whole response of a provider. `definitions` are those that its request had.
    ///
    /// The last call of a turn that was cut off is only valid if it has arguments: see [`ModelCall::has_valid_arguments`].
    ///
    /// # Errors
    /// If it is not in the format of the provider.
    pub fn read(definitions: &ToolDefinitions, response: &RawJson) -> Result<Self, FormatError> {
        let mut turn = match definitions.format() {
            ProviderFormat::OpenAiChat => openai_chat(definitions, response),
            ProviderFormat::OpenAiResponses => openai_responses(definitions, response),
            ProviderFormat::Anthropic => anthropic(definitions, response),
            ProviderFormat::Gemini => gemini(definitions, response),
            ProviderFormat::Ollama => ollama(definitions, response),
        }?;
        let is_cut = matches!(turn.stop, StopReason::MaxTokens | StopReason::Refusal);
        if let Some(last) = turn.calls.last_mut().filter(|_| is_cut)
            && last.has_valid_arguments()
            && last.arguments.members().next().is_none()
        {
            // The arguments may be missing.
            last.arguments = text("");
        }
        Ok(turn)
    }

    /// Writes a turn as messages of a provider, as a history from elsewhere needs it. A turn that this provider made has its own
    /// [`messages`](Self::messages).
    #[must_use]
    pub fn write(definitions: &ToolDefinitions, said: &str, calls: &[ModelCall]) -> Vec<RawJson> {
        let name = |call: &ModelCall| {
            let known = call
                .tool
                .as_ref()
                .and_then(|tool| definitions.names().of_tool(tool));
            text(known.map_or(&call.name, |known| known))
        };
        match definitions.format() {
            ProviderFormat::OpenAiChat => write_openai_chat(said, calls, &name),
            ProviderFormat::OpenAiResponses => write_openai_responses(said, calls, &name),
            ProviderFormat::Anthropic => write_anthropic(said, calls, &name),
            ProviderFormat::Gemini => write_gemini(said, calls, &name),
            ProviderFormat::Ollama => write_ollama(said, calls, &name),
        }
    }
}

fn write_openai_chat(said: &str, calls: &[ModelCall], name: &dyn Fn(&ModelCall) -> RawJson) -> Vec<RawJson> {
    let calls: Vec<_> = calls
        .iter()
        .map(|call| {
            let function = object(&[("name", name(call)), ("arguments", text(call.arguments.as_str()))]);
            object(&[
                ("id", text(&call.id)),
                ("type", text("function")),
                ("function", function),
            ])
        })
        .collect();
    let mut message = vec![("role", text("assistant")), ("content", text(said))];
    if !calls.is_empty() {
        message.push(("tool_calls", RawJson::from_items(&calls)));
    }
    vec![object(&message)]
}

fn write_openai_responses(
    said: &str,
    calls: &[ModelCall],
    name: &dyn Fn(&ModelCall) -> RawJson,
) -> Vec<RawJson> {
    let message = (!said.is_empty()).then(|| object(&[("role", text("assistant")), ("content", text(said))]));
    let calls = calls.iter().map(|call| {
        object(&[
            ("type", text("function_call")),
            ("call_id", text(&call.id)),
            ("name", name(call)),
            ("arguments", text(call.arguments.as_str())),
        ])
    });
    message.into_iter().chain(calls).collect()
}

fn write_anthropic(said: &str, calls: &[ModelCall], name: &dyn Fn(&ModelCall) -> RawJson) -> Vec<RawJson> {
    let said = (!said.is_empty()).then(|| object(&[("type", text("text")), ("text", text(said))]));
    let calls = calls.iter().map(|call| {
        object(&[
            ("type", text("tool_use")),
            ("id", text(&call.id)),
            ("name", name(call)),
            ("input", as_object(&call.arguments)),
        ])
    });
    let content: Vec<_> = said.into_iter().chain(calls).collect();
    vec![object(&[
        ("role", text("assistant")),
        ("content", RawJson::from_items(&content)),
    ])]
}

fn write_gemini(said: &str, calls: &[ModelCall], name: &dyn Fn(&ModelCall) -> RawJson) -> Vec<RawJson> {
    let said = (!said.is_empty()).then(|| object(&[("text", text(said))]));
    let calls = calls.iter().map(|call| {
        let mut members = Vec::new();
        members.extend(call.given_id().map(|id| ("id", text(&id))));
        members.push(("name", name(call)));
        members.push(("args", as_object(&call.arguments)));
        object(&[("functionCall", object(&members))])
    });
    let parts: Vec<_> = said.into_iter().chain(calls).collect();
    vec![object(&[
        ("role", text("model")),
        ("parts", RawJson::from_items(&parts)),
    ])]
}

fn write_ollama(said: &str, calls: &[ModelCall], name: &dyn Fn(&ModelCall) -> RawJson) -> Vec<RawJson> {
    let calls: Vec<_> = calls
        .iter()
        .map(|call| {
            let function = object(&[("name", name(call)), ("arguments", as_object(&call.arguments))]);
            object(&[("function", function)])
        })
        .collect();
    let mut message = vec![("role", text("assistant")), ("content", text(said))];
    if !calls.is_empty() {
        message.push(("tool_calls", RawJson::from_items(&calls)));
    }
    vec![object(&message)]
}

/// Returns arguments for a history whose provider takes objects alone. Others were cut off, which the result of their call says.
fn as_object(arguments: &RawJson) -> RawJson {
    match arguments.kind() {
        JsonKind::Object => arguments.clone(),
        _ => RawJson::object(),
    }
}

fn missing(what: &str) -> FormatError {
    FormatError::new(format!("`{what}` is missing"))
}

/// Returns the numbers of tokens under these keys.
pub(super) fn usage(usage: Option<RawJson>, input: &str, output: &str) -> Option<TokenUsage> {
    let usage = usage?;
    let count = |key: &str| {
        usage
            .get(key)
            .and_then(|count| count.to().ok())
            .unwrap_or_default()
    };
    Some(TokenUsage {
        input: count(input),
        output: count(output),
    })
}

fn openai_chat(definitions: &ToolDefinitions, response: &RawJson) -> Result<AssistantTurn, FormatError> {
    let choice = response.get("choices").and_then(|choices| choices.items().next());
    let choice = choice.ok_or_else(|| missing("choices"))?;
    let message = choice.get("message").ok_or_else(|| missing("message"))?;
    let calls = member(&message, "tool_calls");
    let calls = calls.iter().flat_map(RawJson::items).filter_map(|call| {
        let function = call.get("function")?;
        let arguments = string(&function, "arguments").unwrap_or_default();
        Some(ModelCall::new(
            definitions,
            string(&call, "id")?,
            string(&function, "name")?,
            arguments_of_text(&arguments),
        ))
    });
    let calls: Vec<_> = calls.collect();
    let refusal = string(&message, "refusal");
    let stop = match string(&choice, "finish_reason").as_deref() {
        _ if refusal.is_some() => StopReason::Refusal,
        Some("content_filter") => StopReason::Refusal,
        Some("length") => StopReason::MaxTokens,
        // Some services that copy the format say `stop` after calls.
        _ if !calls.is_empty() => StopReason::ToolCalls,
        Some("stop") | None => StopReason::End,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    Ok(AssistantTurn {
        text: string(&message, "content").or(refusal).unwrap_or_default(),
        calls,
        stop,
        messages: vec![message],
        usage: usage(member(response, "usage"), "prompt_tokens", "completion_tokens"),
    })
}

fn openai_responses(definitions: &ToolDefinitions, response: &RawJson) -> Result<AssistantTurn, FormatError> {
    let output = response.get("output").ok_or_else(|| missing("output"))?;
    let (mut said, mut calls, mut has_refused) = (String::new(), Vec::new(), false);
    for item in output.items() {
        match string(&item, "type").as_deref() {
            Some("message") => {
                for part in item.get("content").iter().flat_map(RawJson::items) {
                    has_refused |= part.get("refusal").is_some();
                    let words = string(&part, "text").or_else(|| string(&part, "refusal"));
                    said.push_str(&words.unwrap_or_default());
                }
            }
            Some("function_call") => calls.push(ModelCall::new(
                definitions,
                string(&item, "call_id").ok_or_else(|| missing("call_id"))?,
                string(&item, "name").ok_or_else(|| missing("name"))?,
                arguments_of_text(&string(&item, "arguments").unwrap_or_default()),
            )),
            _ => {}
        }
    }
    let incomplete = member(response, "incomplete_details");
    let reason = incomplete.and_then(|details| string(&details, "reason"));
    let stop = match reason.as_deref() {
        _ if has_refused => StopReason::Refusal,
        Some("max_output_tokens") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        Some(other) => StopReason::Other(other.to_owned()),
        None if !calls.is_empty() => StopReason::ToolCalls,
        None => StopReason::End,
    };
    Ok(AssistantTurn {
        text: said,
        calls,
        stop,
        messages: output.items().collect(),
        usage: usage(member(response, "usage"), "input_tokens", "output_tokens"),
    })
}

fn anthropic(definitions: &ToolDefinitions, response: &RawJson) -> Result<AssistantTurn, FormatError> {
    let mut content = response.get("content").ok_or_else(|| missing("content"))?;
    let (mut said, mut calls) = (String::new(), Vec::new());
    let (mut blocks, mut is_cut) = (Vec::new(), false);
    for mut block in content.items() {
        match string(&block, "type").as_deref() {
            Some("text") => said.push_str(&string(&block, "text").unwrap_or_default()),
            Some("tool_use") => calls.push(ModelCall::new(
                definitions,
                string(&block, "id").ok_or_else(|| missing("id"))?,
                string(&block, "name").ok_or_else(|| missing("name"))?,
                member(&block, "input").unwrap_or(RawJson::object()),
            )),
            _ => {}
        }
        // A stream that was cut off leaves the text of the arguments, which the provider refuses in a history.
        if let Some(input) = block
            .get("input")
            .filter(|input| input.kind() != JsonKind::Object)
        {
            is_cut = true;
            let input = [("input", as_object(&input))];
            block = block.with_members(&input).map_err(|_| missing("input"))?;
        }
        blocks.push(block);
    }
    if is_cut {
        content = RawJson::from_items(&blocks);
    }
    let stop = match string(response, "stop_reason").as_deref() {
        Some("tool_use") => StopReason::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
        Some("refusal") => StopReason::Refusal,
        Some("end_turn" | "stop_sequence") | None => StopReason::End,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    Ok(AssistantTurn {
        text: said,
        calls,
        stop,
        messages: vec![object(&[("role", text("assistant")), ("content", content)])],
        usage: usage(member(response, "usage"), "input_tokens", "output_tokens"),
    })
}

fn gemini(definitions: &ToolDefinitions, response: &RawJson) -> Result<AssistantTurn, FormatError> {
    let candidate = response
        .get("candidates")
        .and_then(|candidates| candidates.items().next());
    let Some(candidate) = candidate else {
        let feedback = member(response, "promptFeedback").and_then(|told| string(&told, "blockReason"));
        return match feedback {
            Some(_) => Ok(AssistantTurn {
                text: String::new(),
                calls: Vec::new(),
                stop: StopReason::Refusal,
                messages: Vec::new(),
                usage: None,
            }),
            None => Err(missing("candidates")),
        };
    };
    let content = member(&candidate, "content").unwrap_or(RawJson::object());
    let (mut said, mut calls) = (String::new(), Vec::new());
    for part in content.get("parts").iter().flat_map(RawJson::items) {
        if let Some(call) = part.get("functionCall") {
            let id = string(&call, "id");
            let is_numbered = id.is_none();
            let id = id.unwrap_or_else(|| format!("call-{}", calls.len()));
            let name = string(&call, "name").ok_or_else(|| missing("name"))?;
            let arguments = member(&call, "args").unwrap_or(RawJson::object());
            calls.push(ModelCall::new(definitions, id, name, arguments).numbered(is_numbered));
        } else if part
            .get("thought")
            .is_none_or(|thought| thought.as_str() != "true")
        {
            said.push_str(&string(&part, "text").unwrap_or_default());
        }
    }
    let stop = match string(&candidate, "finishReason").as_deref() {
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        Some("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => StopReason::Refusal,
        _ if !calls.is_empty() => StopReason::ToolCalls,
        Some("STOP") | None => StopReason::End,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    Ok(AssistantTurn {
        text: said,
        calls,
        stop,
        messages: vec![content],
        usage: usage(
            member(response, "usageMetadata"),
            "promptTokenCount",
            "candidatesTokenCount",
        ),
    })
}

fn ollama(definitions: &ToolDefinitions, response: &RawJson) -> Result<AssistantTurn, FormatError> {
    let message = response.get("message").ok_or_else(|| missing("message"))?;
    let written = member(&message, "tool_calls");
    let mut calls = Vec::new();
    for call in written.iter().flat_map(RawJson::items) {
        let function = call.get("function").ok_or_else(|| missing("function"))?;
        let id = string(&call, "id");
        let is_numbered = id.is_none();
        let id = id.unwrap_or_else(|| format!("call-{}", calls.len()));
        let name = string(&function, "name").ok_or_else(|| missing("name"))?;
        let arguments = member(&function, "arguments").unwrap_or(RawJson::object());
        calls.push(ModelCall::new(definitions, id, name, arguments).numbered(is_numbered));
    }
    let stop = match string(response, "done_reason").as_deref() {
        Some("length") => StopReason::MaxTokens,
        _ if !calls.is_empty() => StopReason::ToolCalls,
        Some("stop") | None => StopReason::End,
        Some(other) => StopReason::Other(other.to_owned()),
    };
    let tokens = response
        .get("eval_count")
        .is_some()
        .then(|| usage(Some(response.clone()), "prompt_eval_count", "eval_count"));
    Ok(AssistantTurn {
        text: string(&message, "content").unwrap_or_default(),
        calls,
        stop,
        messages: vec![message],
        usage: tokens.flatten(),
    })
}
