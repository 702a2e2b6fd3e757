use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// What a secret begins with whose rest is its bytes in base64.
const PREFIX: &str = "whsec_";
const BLOCK: usize = 64;

/// The `webhook-signature` of a message as Standard Webhooks say: HMAC with SHA-256 over id, time and body.
///
/// A secret that begins with `whsec_` stands for the bytes that follow in base64; any other for its own.
pub(crate) fn signature(secret: &str, id: &str, timestamp: u64, body: &str) -> String {
    let decoded = secret
        .strip_prefix(PREFIX)
        .and_then(|text| STANDARD.decode(text).ok());
    let key = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let signed = format!("{id}.{timestamp}.{body}");
    format!("v1,{}", STANDARD.encode(hmac(&key, signed.as_bytes())))
}

/// HMAC with SHA-256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36))
        .chain_update(message)
        .finalize();
    Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize()
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
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signed = signature(
            secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
