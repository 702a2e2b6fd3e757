//! Results as messages of each provider.

use raw_json::RawJson;

use super::{CallOutput, ContentPart, ERROR, ResultMessages};
use crate::{
    ProviderFormat,
    formats::{object, text},
};

impl CallOutput {
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

    /// Returns the text of the result. Parts that `is_elsewhere` are left out; the other parts that are no text are named.
    fn words(&self, is_elsewhere: impl Fn(&ContentPart) -> bool) -> String {
        let mut words = Vec::new();
        for part in self.content.iter().filter(|part| !is_elsewhere(part)) {
            words.push(match part {
                ContentPart::Text(words) => words.clone(),
                other => other.placeholder(),
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
                    blocks.push(block(&other.placeholder()));
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
        let key = if self.is_error { "error" } else { "output" };
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
                    object(&[("type", text("text")), ("text", text(&other.placeholder()))])
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
            let note = format!("the model gets `{}` instead", part.placeholder());
            self.notes.push((result.name.clone(), note));
        }
    }
}

fn data_url(mime: &str, data: &str) -> String {
    format!("data:{mime};base64,{data}")
}

/// Returns the last segment of a URI.
fn file_name(uri: &str) -> &str {
    let name = uri.rsplit('/').find(|segment| !segment.is_empty());
    name.unwrap_or("file")
}
