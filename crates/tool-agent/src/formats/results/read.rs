//! Results in messages of each provider.

use raw_json::{JsonKind, RawJson};

use super::{CallOutput, ContentPart, ERROR};
use crate::{
    ProviderFormat,
    formats::{member, string},
};

impl CallOutput {
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
                let parts = output.iter().flat_map(RawJson::items);
                let is_media = |part: &RawJson| string(part, "type").as_deref() != Some("input_text");
                result.content.extend(parts.filter(is_media).map(of_openai));
                vec![result]
            }
            ProviderFormat::Anthropic => read_anthropic(message),
            ProviderFormat::Gemini => read_gemini(message),
            ProviderFormat::Ollama if is_role(message, "tool") => {
                let words = texts(message.get("content").as_ref());
                let mut result = of_text(None, string(message, "tool_name"), words);
                let images = member(message, "images");
                let images = images.iter().flat_map(RawJson::items);
                result
                    .content
                    .extend(images.filter_map(|image| image.string()).map(of_ollama));
                vec![result]
            }
            _ => Vec::new(),
        }
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
            // `output` is the documented key; Google's examples also write `result`.
            let output = || member(&said, "output").or_else(|| member(&said, "result"));
            let value = error.clone().or_else(output).unwrap_or(said);
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

fn of_anthropic(block: RawJson) -> ContentPart {
    let source = block.get("source");
    let data = source.and_then(|source| Some((string(&source, "media_type")?, string(&source, "data")?)));
    match (string(&block, "type").as_deref(), data) {
        (Some("text"), _) => ContentPart::Text(string(&block, "text").unwrap_or_default()),
        (Some("image" | "document"), Some((mime, data))) => media(mime, data),
        _ => ContentPart::Other(block),
    }
}

/// Reads a part of a result of Responses that is no text.
fn of_openai(part: RawJson) -> ContentPart {
    let url = string(&part, "image_url").or_else(|| string(&part, "file_data"));
    match url.and_then(|url| of_data_url(&url)) {
        Some((mime, data)) if string(&part, "type").as_deref() == Some("input_file") => ContentPart::File {
            uri: string(&part, "filename").unwrap_or_default(),
            mime,
            data,
        },
        Some((mime, data)) => ContentPart::Image { mime, data },
        None => ContentPart::Other(part),
    }
}

/// Reads an image of Ollama, which has no type: that of the data, by the beginning of its base64.
fn of_ollama(data: String) -> ContentPart {
    const BEGINNINGS: [(&str, &str); 4] = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ];
    let known = BEGINNINGS
        .iter()
        .find(|(beginning, _)| data.starts_with(beginning));
    let mime = known.map_or("application/octet-stream", |(_, mime)| mime);
    ContentPart::Image {
        mime: mime.to_owned(),
        data,
    }
}

fn of_data_url(url: &str) -> Option<(String, String)> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime.to_owned(), data.to_owned()))
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
