use std::{fmt, io, str::FromStr, sync::Arc, time::SystemTime};

use sha2::{Digest, Sha256};
use tool_core::TokenRecord;

/// Text of a static token, as its owner sends it: `tp_<id>_<secret><checksum>`, all in hexadecimal digits.
///
/// - The prefix `tp_` and the checksum let secret scanners find a token with few false alarms: the checksum is the first
///   four bytes of the SHA-256 of everything before it. GitHub's tokens have the same two parts.
/// - The id has 64 random bits. It is not secret: a store finds the record by it.
/// - The secret has 256 random bits. A store keeps only its SHA-256.
///
/// # Digest of the secret
/// A fast hash is sufficient here. Slow, salted hashes (RFC 9106, OWASP Password Storage Cheat Sheet) protect passwords,
/// because people choose them from a small set that an attacker with the digests can try out. A secret of 256 random bits
/// cannot be tried out: 2^256 guesses are out of reach at any speed, and equal secrets do not occur, so that a salt would
/// add nothing (NIST SP 800-63B revision 3, section 5.1.2.2, asks for a plain approved hash from 112 bits on). A slow hash would
/// however cost every request its time, and offer anonymous clients a way to exhaust the gateway.
///
/// # Examples
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use tool_policy::{NewToken, TokenText};
///
/// let mut token = NewToken::generate("ada", SystemTime::now())?;
/// token.record.expires_at = Some(SystemTime::now() + Duration::from_secs(30 * 86_400));
/// let sent: TokenText = token.text.expose().parse()?;
/// assert!(sent.matches(&token.record));
/// assert_eq!(format!("{sent:?}"), format!("TokenText({:?})", token.record.id));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TokenText {
    id: String,
    secret: [u8; SECRET],
}

/// New token: the record for a store, and the text for its owner.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewToken {
    /// Record without tenant, roles, label and expiry.
    pub record: TokenRecord,
    /// Text of the token, which cannot be shown again.
    pub text: TokenText,
}

const PREFIX: &str = "tp_";
/// Length of an id, in bytes.
const ID: usize = 8;
/// Length of a secret, in bytes.
const SECRET: usize = 32;
/// Length of a checksum, in bytes.
const CHECKSUM: usize = 4;

impl NewToken {
    /// Generates a token of a principal with randomness of the operating system.
    ///
    /// # Errors
    /// If the system has no randomness to give.
    pub fn generate(principal: impl Into<Arc<str>>, now: SystemTime) -> io::Result<Self> {
        let (mut id, mut secret) = ([0; ID], [0; SECRET]);
        getrandom::fill(&mut id).map_err(io::Error::other)?;
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let text = TokenText {
            id: to_hex(&id),
            secret,
        };
        let record = TokenRecord::new(text.id.as_str(), text.digest(), principal, now);
        Ok(Self { record, text })
    }
}

impl TokenText {
    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the whole text, with the secret.
    #[must_use]
    pub fn expose(&self) -> String {
        let body = format!("{PREFIX}{}_{}", self.id, to_hex(&self.secret));
        let checksum = to_hex(&checksum(&body));
        body + &checksum
    }

    /// Returns `true` if the secret is that of the record. Takes the same time for every pair.
    #[must_use]
    pub fn matches(&self, record: &TokenRecord) -> bool {
        self.has_digest(&record.secret_digest) && self.id == *record.id
    }

    /// Compares the digest of the secret in constant time.
    pub(super) fn has_digest(&self, digest: &[u8; 32]) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.digest()[..], &digest[..]).into()
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.secret).into()
    }
}

impl FromStr for TokenText {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        parse(text).ok_or(ParseTokenError)
    }
}

/// Error of a text that is not a token of toolplane: another prefix or length, or a wrong checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token of the form `tp_<id>_<secret>`")]
#[non_exhaustive]
pub struct ParseTokenError;

fn parse(text: &str) -> Option<TokenText> {
    // Upper-case digits would be a second spelling of the same token.
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let at = text.len().checked_sub(2 * CHECKSUM)?;
    let (body, sum) = text.split_at_checked(at)?;
    let mut given = [0; CHECKSUM];
    from_hex(sum, &mut given)?;
    if given != checksum(body) {
        return None;
    }
    let (id, secret) = body.strip_prefix(PREFIX)?.split_once('_')?;
    from_hex(id, &mut [0; ID])?;
    let mut bytes = [0; SECRET];
    from_hex(secret, &mut bytes)?;
    Some(TokenText {
        id: id.to_owned(),
        secret: bytes,
    })
}

fn checksum(body: &str) -> [u8; CHECKSUM] {
    let digest: [u8; 32] = Sha256::digest(body).into();
    digest[..CHECKSUM].try_into().expect("a digest has 32 bytes")
}

/// Formats bytes as lower-case hexadecimal digits.
fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads exactly as many digits as fill the bytes.
fn from_hex(digits: &str, bytes: &mut [u8]) -> Option<()> {
    if digits.len() != 2 * bytes.len() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(())
}

impl fmt::Debug for TokenText {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokenText").field(&self.id).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn new_token() -> NewToken {
        NewToken::generate("ada", SystemTime::UNIX_EPOCH).expect("randomness")
    }

    #[test]
    fn a_token_is_recognised_by_its_own_text_only() {
        let (one, other) = (new_token(), new_token());
        let text = one.text.expose();
        assert_eq!(text.len(), 3 + 16 + 1 + 64 + 8);
        let sent: TokenText = text.parse().expect("a token");
        assert!(sent.matches(&one.record));
        assert!(!sent.matches(&other.record));
        let mut stolen_id = one.record.clone();
        stolen_id.secret_digest = other.record.secret_digest;
        assert!(!sent.matches(&stolen_id));
    }

    #[test]
    fn the_digest_is_the_sha_256_of_the_secret() {
        let token = new_token();
        let text = token.text.expose();
        let mut secret = [0; SECRET];
        from_hex(&text[20..84], &mut secret).expect("digits");
        assert_eq!(Sha256::digest(secret)[..], token.record.secret_digest[..]);
    }

    #[test]
    fn the_secret_is_not_in_the_debug_output() {
        let token = new_token();
        let text = token.text.expose();
        assert!(!format!("{token:?}").contains(&text[20..40]));
    }

    proptest! {
        /// A mistyped token is refused by its checksum, before any store is asked.
        #[test]
        fn a_changed_character_is_noticed(at in 0..92usize, new in "[0-9a-zA-Z_]") {
            let text = new_token().text.expose();
            let mut changed = text.clone();
            changed.replace_range(at..=at, &new);
            prop_assume!(changed != text);
            prop_assert!(changed.parse::<TokenText>().is_err());
        }

        #[test]
        fn no_text_panics(text in ".*") {
            prop_assert!(text.parse::<TokenText>().is_err());
        }
    }
}
