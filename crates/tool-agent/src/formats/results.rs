use raw_json::{JsonKind, RawJson};
use tool_core::{Body, Reply, ToolError};

use super::{ModelCall, ProviderFormat, member, object, string, text};

/// Result of a tool call, for the model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallOutput {
    /// Id of the call; `None` where the format has none, and the order of the results tells.
    pub call: Option<String>,
    /// Name of the tool, as the model wrote it.
    pub name: String,
    /// Content, in its order.
    pub content: Vec<ContentPart>,
    /// Structured result, beside or instead of the content.
    pub structured: Option<RawJson>,
    /// `true` if the call failed.
    pub is_error: bool,
}

/// Part of the content of a result. Data are in base64.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContentPart {
    /// Text.
    Text(String),
    /// Image.
    Image {
        /// MIME type.
        mime: String,
        /// Data.
        data: String,
    },
    /// Sound.
    Audio {
        /// MIME type.
        mime: String,
        /// Data.
        data: String,
    },
    /// File.
    File {
        /// URI.
        uri: String,
        /// MIME type.
        mime: String,
        /// Data.
        data: String,
    },
    /// Anything else, as the tool wrote it.
    Other(RawJson),
}

/// Messages with the results of the calls of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ResultMessages {
    /// Messages to append to the history, in this order.
    pub messages: Vec<RawJson>,
    /// Notes about parts that the format cannot express: the name of the tool, and a fragment.
    pub notes: Vec<(String, String)>,
}

impl CallOutput {
    /// Makes the result of a call that was answered.
    #[must_use]
    pub fn of_reply(call: &ModelCall, reply: &Reply) -> Self {
        let content = reply
            .raw()
            .get("content")
            .filter(|content| content.kind() == JsonKind::Array && matches!(reply.body, Body::Result(_)));
        let parts = match &content {
            Some(content) => content.items().map(part_of).collect(),
            None => vec![ContentPart::Text(reply.text())],
        };
        Self {
            call: call.given_id(),
            name: call.name.clone(),
            content: parts,
            structured: reply
                .structured()
                .filter(|_| content.is_some() || is_tree(reply.raw())),
            is_error: reply.is_error,
        }
    }

    /// Makes the result of a call that failed: with the words for models, and without internals.
    #[must_use]
    pub fn of_error(call: &ModelCall, error: &ToolError) -> Self {
        let message = format!("{}: {}. {}", error.kind(), error.message(), error.advice());
        Self {
            call: call.given_id(),
            name: call.name.clone(),
            content: vec![ContentPart::Text(message)],
            structured: None,
            is_error: true,
        }
    }

    /// Cuts the texts of a result to this number of bytes together, and says so. A structured result that is longer becomes a text.
    #[must_use]
    pub fn cut(mut self, max_bytes: usize) -> Self {
        let mut left = max_bytes;
        let has_text = self
            .content
            .iter()
            .any(|part| matches!(part, ContentPart::Text(_)));
        if let Some(structured) = self.structured.take_if(|structured| structured.len() > max_bytes)
            && !has_text
        {
            self.content
                .push(ContentPart::Text(structured.as_str().to_owned()));
        }
        for part in &mut self.content {
            let ContentPart::Text(words) = part else { continue };
            if words.len() <= left {
                left -= words.len();
                continue;
            }
            let end = (0..=left)
                .rev()
                .find(|end| words.is_char_boundary(*end))
                .unwrap_or_default();
            let n_cut = words.len() - end;
            words.truncate(end);
            words.push_str(&format!("\n[cut: {n_cut} more bytes were left out]"));
            left = 0;
        }
        self
    }

    /// Writes the result for a store.
    pub(crate) fn to_json(&self) -> RawJson {
        let parts: Vec<_> = self.content.iter().map(ContentPart::to_json).collect();
        let mut members = vec![
            ("name", text(&self.name)),
            ("content", RawJson::from_items(&parts)),
            ("is_error", RawJson::from(self.is_error)),
        ];
        members.extend(self.call.as_deref().map(|call| ("call", text(call))));
        members.extend(
            self.structured
                .clone()
                .map(|structured| ("structured", structured)),
        );
        object(&members)
    }

    /// Reads a stored result.
    pub(crate) fn from_json(stored: &RawJson) -> Option<Self> {
        Some(Self {
            call: string(stored, "call"),
            name: string(stored, "name")?,
            content: stored.get("content")?.items().map(part_of).collect(),
            structured: stored.get("structured"),
            is_error: stored.get("is_error").is_some_and(|is| is.as_str() == "true"),
        })
    }

    /// Writes the results of the calls of one turn as messages of a provider.
    #[must_use]
    pub fn write(format: ProviderFormat, results: &[Self]) -> ResultMessages {
        let mut made = ResultMessages::default();
        match format {
            ProviderFormat::OpenAiChat => openai_chat(results, &mut made),
            ProviderFormat::OpenAiResponses => {
                for result in results {
                    let output = result.openai_output(&mut made);
                    made.messages.push(object(&[
                        ("type", text("function_call_output")),
                        ("call_id", text(result.call.as_deref().unwrap_or_default())),
                        ("output", output),
                    ]));
                }
            }
            ProviderFormat::Anthropic => {
                let blocks: Vec<_> = results.iter().map(|result| result.anthropic(&mut made)).collect();
                made.messages.push(object(&[
                    ("role", text("user")),
                    ("content", RawJson::from_items(&blocks)),
                ]));
            }
            ProviderFormat::Gemini => {
                let parts: Vec<_> = results.iter().map(|result| result.gemini(&mut made)).collect();
                made.messages.push(object(&[
                    ("role", text("user")),
                    ("parts", RawJson::from_items(&parts)),
                ]));
            }
            ProviderFormat::Ollama => {
                for result in results {
                    let mut images = Vec::new();
                    for part in &result.content {
                        match part {
                            ContentPart::Image { data, .. } => images.push(text(data)),
                            other => made.note_placeholder(result, other),
                        }
                    }
                    let mut message = vec![
                        ("role", text("tool")),
                        ("tool_name", text(&result.name)),
                        (
                            "content",
                            text(&result.words(|part| matches!(part, ContentPart::Image { .. }))),
                        ),
                    ];
                    if !images.is_empty() {
                        message.push(("images", RawJson::from_items(&images)));
                    }
                    made.messages.push(object(&message));
                }
            }
        }
        made
    }

    /// Reads the results in a message of a history; empty if it has none.
    #[must_use]
    pub fn read(format: ProviderFormat, message: &RawJson) -> Vec<Self> {
        let of_text = |call: Option<String>, name: Option<String>, words: String| Self {
            call,
            name: name.unwrap_or_default(),
            is_error: words.starts_with(ERROR),
            content: vec![ContentPart::Text(words)],
            structured: None,
        };
        match format {
            ProviderFormat::OpenAiChat if is_role(message, "tool") => {
                let words = texts(message.get("content").as_ref());
                vec![of_text(string(message, "tool_call_id"), None, words)]
            }
            ProviderFormat::OpenAiResponses
                if string(message, "type").as_deref() == Some("function_call_output") =>
            {
                let output = message.get("output");
                let mut result = of_text(
                    string(message, "call_id"),
                    string(message, "name"),
                    texts(output.as_ref()),
                );
                let images = output.iter().flat_map(RawJson::items).filter_map(|part| {
                    let (mime, data) = of_data_url(&string(&part, "image_url")?)?;
                    Some(ContentPart::Image { mime, data })
                });
                result.content.extend(images);
                vec![result]
            }
            ProviderFormat::Anthropic => read_anthropic(message),
            ProviderFormat::Gemini => read_gemini(message),
            ProviderFormat::Ollama if is_role(message, "tool") => {
                let words = texts(message.get("content").as_ref());
                vec![of_text(None, string(message, "tool_name"), words)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the text of the result. Parts that `is_elsewhere` are left out; the other parts that are no text are named.
    fn words(&self, is_elsewhere: impl Fn(&ContentPart) -> bool) -> String {
        let mut words = Vec::new();
        for part in self.content.iter().filter(|part| !is_elsewhere(part)) {
            words.push(match part {
                ContentPart::Text(words) => words.clone(),
                other => placeholder(other),
            });
        }
        let has_text = words.iter().any(|words| !words.is_empty());
        if let Some(structured) = self.structured.as_ref().filter(|_| !has_text) {
            words.push(structured.as_str().to_owned());
        }
        let words = words.join("\n");
        if self.is_error && !words.starts_with(ERROR) {
            return format!("{ERROR}{words}");
        }
        words
    }

    fn openai_output(&self, made: &mut ResultMessages) -> RawJson {
        let is_elsewhere =
            |part: &ContentPart| matches!(part, ContentPart::Image { .. } | ContentPart::File { .. });
        let words = self.words(is_elsewhere);
        let mut parts = Vec::new();
        for part in &self.content {
            match part {
                ContentPart::Image { mime, data } => parts.push(object(&[
                    ("type", text("input_image")),
                    ("image_url", text(&data_url(mime, data))),
                ])),
                ContentPart::File { uri, mime, data } => parts.push(object(&[
                    ("type", text("input_file")),
                    ("filename", text(file_name(uri))),
                    ("file_data", text(&data_url(mime, data))),
                ])),
                other => made.note_placeholder(self, other),
            }
        }
        if parts.is_empty() {
            return text(&words);
        }
        if !words.is_empty() {
            parts.insert(0, object(&[("type", text("input_text")), ("text", text(&words))]));
        }
        RawJson::from_items(&parts)
    }

    fn anthropic(&self, made: &mut ResultMessages) -> RawJson {
        const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];
        let source = |mime: &str, data: &str| {
            object(&[
                ("type", text("base64")),
                ("media_type", text(mime)),
                ("data", text(data)),
            ])
        };
        let block = |words: &str| object(&[("type", text("text")), ("text", text(words))]);
        let mut blocks = Vec::new();
        for part in &self.content {
            match part {
                // Anthropic refuses empty texts.
                ContentPart::Text(words) if words.is_empty() => {}
                ContentPart::Text(words) => blocks.push(block(words)),
                ContentPart::Image { mime, data } if IMAGES.contains(&mime.as_str()) => {
                    blocks.push(object(&[("type", text("image")), ("source", source(mime, data))]));
                }
                ContentPart::File { mime, data, .. } if mime == "application/pdf" => {
                    blocks.push(object(&[
                        ("type", text("document")),
                        ("source", source(mime, data)),
                    ]));
                }
                other => {
                    made.note_placeholder(self, other);
                    blocks.push(block(&placeholder(other)));
                }
            }
        }
        let has_text = self
            .content
            .iter()
            .any(|part| matches!(part, ContentPart::Text(words) if !words.is_empty()));
        if let Some(structured) = self.structured.as_ref().filter(|_| !has_text) {
            blocks.push(block(structured.as_str()));
        }
        let mut result = vec![
            ("type", text("tool_result")),
            ("tool_use_id", text(self.call.as_deref().unwrap_or_default())),
            ("content", RawJson::from_items(&blocks)),
        ];
        if self.is_error {
            result.push(("is_error", RawJson::from(true)));
        }
        object(&result)
    }

    fn gemini(&self, made: &mut ResultMessages) -> RawJson {
        let is_inline = |part: &ContentPart| !matches!(part, ContentPart::Text(_) | ContentPart::Other(_));
        let mut inline = Vec::new();
        for part in &self.content {
            match part {
                ContentPart::Image { mime, data }
                | ContentPart::Audio { mime, data }
                | ContentPart::File { mime, data, .. } => inline.push(object(&[(
                    "inlineData",
                    object(&[("mimeType", text(mime)), ("data", text(data))]),
                )])),
                other => made.note_placeholder(self, other),
            }
        }
        let value = match (&self.structured, self.is_error) {
            (Some(structured), false) => structured.clone(),
            _ => text(&self.words(is_inline)),
        };
        let key = if self.is_error { "error" } else { "result" };
        let mut response = Vec::new();
        response.extend(self.call.as_ref().map(|id| ("id", text(id))));
        response.push(("name", text(&self.name)));
        response.push(("response", object(&[(key, value)])));
        if !inline.is_empty() {
            response.push(("parts", RawJson::from_items(&inline)));
        }
        object(&[("functionResponse", object(&response))])
    }
}

/// Reads the results in a message of Anthropic.
fn read_anthropic(message: &RawJson) -> Vec<CallOutput> {
    let blocks = message.get("content");
    let blocks = blocks.iter().flat_map(RawJson::items);
    let results = blocks.filter(|block| string(block, "type").as_deref() == Some("tool_result"));
    results
        .map(|block| {
            let content = block.get("content");
            let parts = match content.as_ref().map(RawJson::kind) {
                Some(JsonKind::Array) => content
                    .iter()
                    .flat_map(RawJson::items)
                    .map(of_anthropic)
                    .collect(),
                _ => vec![ContentPart::Text(texts(content.as_ref()))],
            };
            CallOutput {
                call: string(&block, "tool_use_id"),
                name: String::new(),
                content: parts,
                structured: None,
                is_error: block
                    .get("is_error")
                    .is_some_and(|is_error| is_error.as_str() == "true"),
            }
        })
        .collect()
}

/// Reads the results in a message of Gemini.
fn read_gemini(message: &RawJson) -> Vec<CallOutput> {
    let parts = message.get("parts");
    let parts = parts.iter().flat_map(RawJson::items);
    parts
        .filter_map(|part| {
            let response = part.get("functionResponse")?;
            let said = response.get("response").unwrap_or(RawJson::object());
            let error = member(&said, "error");
            let value = error.clone().or_else(|| member(&said, "result")).unwrap_or(said);
            let mut content = Vec::new();
            if let Some(words) = value.string() {
                content.push(ContentPart::Text(words));
            }
            let inline = response.get("parts");
            content.extend(inline.iter().flat_map(RawJson::items).filter_map(|part| {
                let data = part.get("inlineData").or_else(|| part.get("inline_data"))?;
                let mime = string(&data, "mimeType").or_else(|| string(&data, "mime_type"));
                Some(media(mime?, string(&data, "data")?))
            }));
            Some(CallOutput {
                call: string(&response, "id"),
                name: string(&response, "name").unwrap_or_default(),
                structured: value.string().is_none().then_some(value),
                content,
                is_error: error.is_some(),
            })
        })
        .collect()
}

/// Beginning of the text of a failed call, in formats that have no mark for it.
const ERROR: &str = "Error: ";

/// Messages of Chat Completions take texts from tools alone. Images, sounds and files follow in a message of the user.
fn openai_chat(results: &[CallOutput], made: &mut ResultMessages) {
    let mut media = Vec::new();
    for result in results {
        let is_elsewhere = |part: &ContentPart| !matches!(part, ContentPart::Text(_) | ContentPart::Other(_));
        let id = result.call.as_deref().unwrap_or_default();
        made.messages.push(object(&[
            ("role", text("tool")),
            ("tool_call_id", text(id)),
            ("content", text(&result.words(is_elsewhere))),
        ]));
        for part in &result.content {
            let moved = match part {
                ContentPart::Image { mime, data } => object(&[
                    ("type", text("image_url")),
                    ("image_url", object(&[("url", text(&data_url(mime, data)))])),
                ]),
                ContentPart::Audio { mime, data } if matches!(mime.as_str(), "audio/wav" | "audio/mpeg") => {
                    let format = if mime == "audio/wav" { "wav" } else { "mp3" };
                    object(&[
                        ("type", text("input_audio")),
                        (
                            "input_audio",
                            object(&[("data", text(data)), ("format", text(format))]),
                        ),
                    ])
                }
                ContentPart::File { uri, mime, data } => object(&[
                    ("type", text("file")),
                    (
                        "file",
                        object(&[
                            ("filename", text(file_name(uri))),
                            ("file_data", text(&data_url(mime, data))),
                        ]),
                    ),
                ]),
                ContentPart::Text(_) => continue,
                other => {
                    made.note_placeholder(result, other);
                    object(&[("type", text("text")), ("text", text(&placeholder(other)))])
                }
            };
            let about = format!("From the result of the tool call {id}:");
            media.push(object(&[("type", text("text")), ("text", text(&about))]));
            media.push(moved);
            made.notes.push((
                result.name.clone(),
                "media follow the result in a message of the user".to_owned(),
            ));
        }
    }
    if !media.is_empty() {
        made.messages.push(object(&[
            ("role", text("user")),
            ("content", RawJson::from_items(&media)),
        ]));
    }
}

impl ResultMessages {
    /// Notes that a part is named and not shown.
    fn note_placeholder(&mut self, result: &CallOutput, part: &ContentPart) {
        if !matches!(part, ContentPart::Text(_)) {
            let note = format!("the model gets `{}` instead", placeholder(part));
            self.notes.push((result.name.clone(), note));
        }
    }
}

impl ContentPart {
    /// Writes the part as a block of MCP, which [`part_of`] reads.
    fn to_json(&self) -> RawJson {
        let media = |kind: &str, mime: &str, data: &str| {
            object(&[
                ("type", text(kind)),
                ("mimeType", text(mime)),
                ("data", text(data)),
            ])
        };
        match self {
            Self::Text(words) => object(&[("type", text("text")), ("text", text(words))]),
            Self::Image { mime, data } => media("image", mime, data),
            Self::Audio { mime, data } => media("audio", mime, data),
            Self::File { uri, mime, data } => {
                let resource = [("uri", text(uri)), ("mimeType", text(mime)), ("blob", text(data))];
                object(&[("type", text("resource")), ("resource", object(&resource))])
            }
            Self::Other(block) => block.clone(),
        }
    }
}

/// Names a part that cannot be shown.
fn placeholder(part: &ContentPart) -> String {
    match part {
        ContentPart::Text(words) => words.clone(),
        ContentPart::Image { mime, data } => format!("[image: {mime}, {} bytes]", size(data)),
        ContentPart::Audio { mime, data } => format!("[sound: {mime}, {} bytes]", size(data)),
        ContentPart::File { uri, mime, data } => format!("[file: {uri}, {mime}, {} bytes]", size(data)),
        ContentPart::Other(block) => block.as_str().to_owned(),
    }
}

/// Returns the number of bytes of data in base64.
fn size(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

fn of_data_url(url: &str) -> Option<(String, String)> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime.to_owned(), data.to_owned()))
}

/// Returns the last segment of a URI.
fn file_name(uri: &str) -> &str {
    let name = uri.rsplit('/').find(|segment| !segment.is_empty());
    name.unwrap_or("file")
}

/// Returns `true` for JSON that has a structure of its own.
fn is_tree(value: &RawJson) -> bool {
    matches!(value.kind(), JsonKind::Object | JsonKind::Array)
}

fn is_role(message: &RawJson, role: &str) -> bool {
    string(message, "role").as_deref() == Some(role)
}

/// Returns the texts of content that is a text, or a list of parts.
fn texts(content: Option<&RawJson>) -> String {
    let Some(content) = content else {
        return String::new();
    };
    content.string().unwrap_or_else(|| {
        let texts: Vec<_> = content.items().filter_map(|part| string(&part, "text")).collect();
        texts.join("\n")
    })
}

fn media(mime: String, data: String) -> ContentPart {
    match mime.split('/').next() {
        Some("image") => ContentPart::Image { mime, data },
        Some("audio") => ContentPart::Audio { mime, data },
        _ => ContentPart::File {
            uri: String::new(),
            mime,
            data,
        },
    }
}

/// Reads a block of an MCP result (MCP 2025-11-25, "Tool Result").
fn part_of(block: RawJson) -> ContentPart {
    let data = || Some((string(&block, "mimeType")?, string(&block, "data")?));
    let part = match string(&block, "type").as_deref() {
        Some("text") => string(&block, "text").map(ContentPart::Text),
        Some("image") => data().map(|(mime, data)| ContentPart::Image { mime, data }),
        Some("audio") => data().map(|(mime, data)| ContentPart::Audio { mime, data }),
        Some("resource") => block.get("resource").and_then(|resource| {
            if let Some(words) = string(&resource, "text") {
                return Some(ContentPart::Text(words));
            }
            Some(ContentPart::File {
                uri: string(&resource, "uri")?,
                mime: string(&resource, "mimeType").unwrap_or_else(|| "application/octet-stream".to_owned()),
                data: string(&resource, "blob")?,
            })
        }),
        _ => None,
    };
    part.unwrap_or(ContentPart::Other(block))
}

fn of_anthropic(block: RawJson) -> ContentPart {
    let source = block.get("source");
    let data = source.and_then(|source| Some((string(&source, "media_type")?, string(&source, "data")?)));
    match (string(&block, "type").as_deref(), data) {
        (Some("text"), _) => ContentPart::Text(string(&block, "text").unwrap_or_default()),
        (Some("image" | "document"), Some((mime, data))) => media(mime, data),
        _ => ContentPart::Other(block),
    }
}
