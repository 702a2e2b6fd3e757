use std::fmt;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use minisign_verify::{Error, PublicKey, Signature};

use crate::{CatalogError, CatalogErrorKind, foreign::shown};

/// Endings of the files with signatures: the name of a bundle is followed by one of them.
pub const SIGNATURE_ENDINGS: &[(SignatureFile, &str)] = &[
    (SignatureFile::Minisign, ".minisig"),
    (SignatureFile::Ed25519, ".sig"),
];

/// Beginning of an ed25519 key in the form of X.509 (RFC 8410, section 4).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// Kind of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SignatureFile {
    /// Signature of the program minisign.
    Minisign,
    /// Raw signature by ed25519 (RFC 8032), of 64 bytes or in Base64.
    Ed25519,
}

/// Public key of whoever signs the bundles of a catalog.
///
/// # Examples
/// ```
/// use tool_catalog::CatalogKey;
///
/// // Section 7.1 of RFC 8032, test 3.
/// let key: CatalogKey = "/FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU=".parse()?;
/// key.verify("a.json", &[0xaf, 0x82], b"YpHWV97sJAJIJ+acOr4BowzlSKKEdDpEXjaA19taw6wY/5tTjRbykK5n92CYTcZZSnwV6XFu0o3AJ77O6h7ECg==")
///     ?;
/// # Ok::<(), tool_catalog::CatalogError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogKey {
    kind: KeyKind,
    text: String,
}

#[derive(Clone, PartialEq, Eq)]
enum KeyKind {
    Minisign(PublicKey),
    Ed25519([u8; 32]),
}

/// Result of the check of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureCheck {
    /// No key is configured: nothing was checked.
    NotChecked,
    /// The signature is the key's.
    Valid {
        /// Comment that minisign signs with the content.
        comment: Option<String>,
    },
}

impl SignatureCheck {
    /// Returns `true` if a signature was checked.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        matches!(self, Self::Valid { .. })
    }
}

impl CatalogKey {
    /// Returns the word for the kind of key: `minisign` or `ed25519`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.kind {
            KeyKind::Minisign(_) => "minisign",
            KeyKind::Ed25519(_) => "ed25519",
        }
    }

    /// Returns the kind of signature that this key checks.
    #[must_use]
    pub fn signature_file(&self) -> SignatureFile {
        match self.kind {
            KeyKind::Minisign(_) => SignatureFile::Minisign,
            KeyKind::Ed25519(_) => SignatureFile::Ed25519,
        }
    }

    /// Checks a detached signature: the text of a `.minisig` file, legacy or with BLAKE2b, or a raw signature by ed25519, of 64 bytes
    /// or in Base64. `place` is the name of the content for messages.
    ///
    /// # Errors
    /// If the signature cannot be read, or is not the one of this key over these bytes.
    pub fn verify(
        &self,
        place: &str,
        content: &[u8],
        signature: &[u8],
    ) -> Result<SignatureCheck, CatalogError> {
        match &self.kind {
            KeyKind::Minisign(key) => verify_minisign(place, key, content, signature),
            KeyKind::Ed25519(key) => verify_ed25519(place, key, content, signature),
        }
    }

    /// Returns the error of a bundle without a signature of this kind.
    pub(crate) fn missing(&self, place: &str) -> CatalogError {
        let kind = self.kind();
        let ending = SIGNATURE_ENDINGS
            .iter()
            .find(|(file, _)| *file == self.signature_file());
        let ending = ending.map(|(_, ending)| *ending).unwrap_or_default();
        let problem = format!("it has no {kind} signature, and the catalog has a key: nothing of it is used");
        CatalogError::new(CatalogErrorKind::Signature, place, problem)
            .with_hint(format!("ask whoever publishes the catalog for `{place}{ending}`"))
    }
}

fn refused(place: &str, problem: impl Into<String>) -> CatalogError {
    CatalogError::new(CatalogErrorKind::Signature, place, problem)
        .with_hint("ask whoever publishes the catalog which key signs it")
}

fn verify_minisign(
    place: &str,
    key: &PublicKey,
    content: &[u8],
    signature: &[u8],
) -> Result<SignatureCheck, CatalogError> {
    let unreadable = || refused(place, "its signature is no signature of minisign");
    let text = std::str::from_utf8(signature).map_err(|_| unreadable())?;
    let signature = Signature::decode(text).map_err(|_| unreadable())?;
    key.verify(content, &signature, true)
        .map_err(|error| match error {
            Error::UnexpectedKeyId => refused(place, "it is signed by another key than the catalog's"),
            _ => refused(
                place,
                "its signature is wrong: the content is not what was signed",
            ),
        })?;
    Ok(SignatureCheck::Valid {
        comment: Some(signature.trusted_comment().to_owned()),
    })
}

fn verify_ed25519(
    place: &str,
    key: &[u8; 32],
    content: &[u8],
    signature: &[u8],
) -> Result<SignatureCheck, CatalogError> {
    let raw = match signature.len() {
        64 => Some(signature.to_vec()),
        _ => {
            let text = std::str::from_utf8(signature).unwrap_or_default();
            STANDARD.decode(text.trim()).ok().filter(|raw| raw.len() == 64)
        }
    };
    let raw = raw.ok_or_else(|| refused(place, "its signature has not the 64 bytes of ed25519"))?;
    let key = UnparsedPublicKey::new(&ED25519, key);
    key.verify(content, &raw).map_err(|_| {
        refused(
            place,
            "its signature is wrong: the content, or the key, is not what was signed",
        )
    })?;
    Ok(SignatureCheck::Valid { comment: None })
}

impl std::str::FromStr for CatalogKey {
    type Err = CatalogError;

    /// Reads a public key: the text or the second line of a minisign key, or an ed25519 key in Base64 or PEM.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || {
            let problem = format!("`{}` is no public key", shown(text.trim()));
            CatalogError::invalid("", problem).with_hint(
                "write a key of minisign, which begins with `RW`, or an ed25519 key in Base64 or PEM",
            )
        };
        if text.len() > 4096 {
            return Err(invalid());
        }
        // The lines that are no Base64: comments of minisign, and the borders of PEM.
        let lines = text.lines().map(str::trim);
        let body: String = lines
            .filter(|line| !line.starts_with("untrusted comment:") && !line.starts_with("-----"))
            .collect();
        let bytes = STANDARD.decode(&body).map_err(|_| invalid())?;
        let kind = match (bytes.len(), bytes.strip_prefix(&SPKI)) {
            (42, _) => KeyKind::Minisign(PublicKey::from_base64(&body).map_err(|_| invalid())?),
            (44, Some(key)) => KeyKind::Ed25519(key.try_into().map_err(|_| invalid())?),
            (32, _) => KeyKind::Ed25519(bytes.as_slice().try_into().map_err(|_| invalid())?),
            _ => return Err(invalid()),
        };
        let text = match &kind {
            KeyKind::Minisign(_) => body,
            KeyKind::Ed25519(key) => STANDARD.encode(key),
        };
        Ok(Self { kind, text })
    }
}

impl fmt::Display for CatalogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for CatalogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.kind()).field(&self.text).finish()
    }
}
