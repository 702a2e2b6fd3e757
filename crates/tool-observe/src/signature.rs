use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a secret begins with whose rest is its bytes in base64.
const PREFIX: &str = "whsec_";

/// With or without padding: services give secrets out in both ways.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret that cannot be what it says it is: nothing is signed with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "its secret begins with `whsec_`, and what follows is no base64; copy it again, or leave the prefix out to sign with the text itself"
)]
pub struct InvalidWebhookSecret;

/// The `webhook-signature` of a message as Standard Webhooks say: HMAC with SHA-256 over id, time and body.
///
/// A secret that begins with `whsec_` stands for the bytes that follow in base64; any other for its own.
pub(crate) fn signature(
    secret: &str,
    id: &str,
    timestamp: u64,
    body: &str,
) -> Result<String, InvalidWebhookSecret> {
    let key = match secret.strip_prefix(PREFIX) {
        Some(text) => LENIENT.decode(text.trim_end()).map_err(|_| InvalidWebhookSecret)?,
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

    /// RFC 4231, test cases 1, 2 and 6.
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

    /// The example of the Standard Webhooks specification.
    #[test]
    fn messages_are_signed_as_receivers_expect() {
        let signed = |secret| {
            let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
            signature(secret, id, 1_614_265_330, r#"{"test": 2432232314}"#)
        };
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signed(secret).as_deref(), Ok(expected));
        // Four bytes, padded and not.
        assert_eq!(signed("whsec_dGVzdA=="), signed("whsec_dGVzdA"));
        assert_eq!(signed("whsec_dGVzdA=="), signed("test"));
        for odd in ["whsec_not base64", "whsec_a"] {
            assert_eq!(signed(odd), Err(InvalidWebhookSecret), "{odd}");
        }
    }
}
