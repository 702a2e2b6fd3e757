//! Parts of a result.

use raw_json::RawJson;

use crate::formats::{object, string, text};

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

impl ContentPart {
    /// Writes the part as a block of MCP, which [`ContentPart::of_block`] reads.
    pub(super) fn to_json(&self) -> RawJson {
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

    /// Reads a block of an MCP result (MCP 2025-11-25, "Tool Result").
    pub(super) fn of_block(block: RawJson) -> Self {
        let data = || Some((string(&block, "mimeType")?, string(&block, "data")?));
        let part = match string(&block, "type").as_deref() {
            Some("text") => string(&block, "text").map(Self::Text),
            Some("image") => data().map(|(mime, data)| Self::Image { mime, data }),
            Some("audio") => data().map(|(mime, data)| Self::Audio { mime, data }),
            Some("resource") => block.get("resource").and_then(|resource| {
                if let Some(words) = string(&resource, "text") {
                    return Some(Self::Text(words));
                }
                Some(Self::File {
                    uri: string(&resource, "uri")?,
                    mime: string(&resource, "mimeType")
                        .unwrap_or_else(|| "application/octet-stream".to_owned()),
                    data: string(&resource, "blob")?,
                })
            }),
            _ => None,
        };
        part.unwrap_or(Self::Other(block))
    }

    /// Names a part that cannot be shown.
    pub(super) fn placeholder(&self) -> String {
        match self {
            Self::Text(words) => words.clone(),
            Self::Image { mime, data } => format!("[image: {mime}, {} bytes]", size(data)),
            Self::Audio { mime, data } => format!("[sound: {mime}, {} bytes]", size(data)),
            Self::File { uri, mime, data } => format!("[file: {uri}, {mime}, {} bytes]", size(data)),
            Self::Other(block) => block.as_str().to_owned(),
        }
    }
}

/// Returns the number of bytes of data in base64.
fn size(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}
