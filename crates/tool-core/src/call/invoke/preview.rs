use raw_json::RawJson;

/// Request that an executor would send for a call. It holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// Request as one object, for programs. Its members depend on the backend.
    pub request: RawJson,
    /// Request as lines of text, for people.
    pub text: String,
}

/// Subject of an approval that the arguments of a call only name, such as a draft that is to be published. The approval is for
/// this subject alone: a call about another one needs another approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalSubject {
    /// Text for the person who decides.
    pub text: String,
    /// SHA-256 of the subject.
    pub digest: [u8; 32],
}

impl ApprovalSubject {
    /// Creates a subject from its text and its SHA-256.
    #[must_use]
    pub fn new(text: impl Into<String>, digest: [u8; 32]) -> Self {
        Self {
            text: text.into(),
            digest,
        }
    }
}

impl Preview {
    /// Creates a preview from a request for programs and its text for people.
    #[must_use]
    pub fn new(request: RawJson, text: impl Into<String>) -> Self {
        Self {
            request,
            text: text.into(),
        }
    }

    /// Marker that replaces a secret.
    pub const HIDDEN: &'static str = "[redacted]";

    /// Returns the preview as one object with the members `request` and `text`.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let members = [
            ("request", self.request.clone()),
            ("text", RawJson::from(self.text.as_str())),
        ];
        RawJson::from_members(&members)
    }

    /// Reads the object that [`Preview::to_json`] returns.
    #[must_use]
    pub fn from_json(json: &RawJson) -> Option<Self> {
        Some(Self {
            request: json.get("request")?,
            text: json.get("text")?.string()?,
        })
    }
}
