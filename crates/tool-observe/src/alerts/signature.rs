use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Prefix of a secret that is written in base64.
const PREFIX: &str = "whsec_";

/// Base64 with optional padding, since services issue secrets in both forms.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Error for a webhook secret that begins with `whsec_` and is not base64. No message is signed with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid base64 after `whsec_` in its secret; copy the secret again, or remove the prefix to sign with the text itself"
)]
pub struct InvalidWebhookSecret;

/// Returns the header `webhook-signature` of a message: HMAC-SHA-256 over id, time and body, as the Standard Webhooks
/// specification defines it.
///
/// The key of a secret that begins with `whsec_` is the rest, decoded as base64. The key of any other secret is its text.
pub(super) fn signature(
    secret: &str,
    id: &str,
    timestamp: u64,
    body: &str,
) -> Result<String, InvalidWebhookSecret> {
    let key = match secret.strip_prefix(PREFIX) {
        Some(text) => LENIENT
            .decode(text.trim_end())
            .map_err(|_| InvalidWebhookSecret)?,
        None => secret.as_bytes().to_vec(),
    };
    let signed = format!("{id}.{timestamp}.{body}");
    Ok(format!("v1,{}", STANDARD.encode(hmac(&key, signed.as_bytes()))))
}

/// Returns the HMAC-SHA-256 of a message (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    Hmac::<Sha256>::new_from_slice(key)
        .expect("HMAC takes keys of any length")
        .chain_update(message)
        .finalize()
        .into_bytes()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn codes_are_those_of_the_standard() {
        let long = "Test Using Larger Than Block-Size Key - Hash Key First";
        for (key, message, expected) in [
            (
                vec![0x0b; 20],
                "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                long,
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(raw_json::hex(&hmac(&key, message.as_bytes())), expected);
        }
    }

    /// Example of the Standard Webhooks specification.
    #[test]
    fn messages_are_signed_as_receivers_expect() {
        let signed = |secret| {
            let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
            signature(secret, id, 1_614_265_330, r#"{"test": 2432232314}"#)
        };
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signed(secret).as_deref(), Ok(expected));
        // Four bytes, with and without padding.
        assert_eq!(signed("whsec_dGVzdA=="), signed("whsec_dGVzdA"));
        assert_eq!(signed("whsec_dGVzdA=="), signed("test"));
        for odd in ["whsec_not base64", "whsec_a"] {
            assert_eq!(signed(odd), Err(InvalidWebhookSecret), "{odd}");
        }
    }
}
