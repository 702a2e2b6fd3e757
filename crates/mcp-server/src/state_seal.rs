use std::{fmt, time::Duration};

use mcp_wire::{Request, RpcError, code};
use raw_json::{RawJson, hex};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::RequestContext;

/// Seals the states that clients give back, so that none can be made up, changed, used by somebody else, for another
/// request, or too late.
///
/// A state can be read by its client: it is sealed, not hidden. The key lives as long as this value, and no longer.
pub struct StateSeal {
    key: [u8; 32],
    start: Instant,
    lifetime: Duration,
}

impl StateSeal {
    /// Makes a seal whose states are good for so long.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn new(lifetime: Duration) -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self {
            key,
            start: Instant::now(),
            lifetime,
        })
    }

    /// Seals a state for the client of a request, to be given back when it makes the same request again.
    #[must_use]
    pub fn seal(&self, state: &str, request: &Request, cx: &RequestContext) -> String {
        let expiry = self.now().saturating_add(self.lifetime.as_millis());
        format!(
            "{expiry:x}.{}.{state}",
            hex(&self.code(expiry, state, request, cx))
        )
    }

    /// The state within what a client gave back with a request.
    ///
    /// # Errors
    /// When it was not sealed here, for this principal and this request, or has expired.
    pub fn open(&self, sealed: &str, request: &Request, cx: &RequestContext) -> Result<String, RpcError> {
        let invalid = || RpcError::new(code::INVALID_PARAMS, "`requestState` is invalid or has expired");
        let mut parts = sealed.splitn(3, '.');
        let (Some(expiry), Some(code), Some(state)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(invalid());
        };
        let expiry = u128::from_str_radix(expiry, 16).map_err(|_| invalid())?;
        let expected = hex(&self.code(expiry, state, request, cx));
        if !is_equal(expected.as_bytes(), code.as_bytes()) || expiry < self.now() {
            return Err(invalid());
        }
        Ok(state.to_owned())
    }

    /// What binds a state to its expiry, its client and its request.
    fn code(&self, expiry: u128, state: &str, request: &Request, cx: &RequestContext) -> [u8; 32] {
        let none = RawJson::object();
        let params = request.params.as_ref().unwrap_or(&none);
        // What differs from round to round, and what differs in no way that matters.
        let asked = params
            .without_members(&["inputResponses", "requestState", "_meta"])
            .expect("parameters are an object");
        let principal = cx.principal().as_str();
        let lengths = [principal.len(), request.method.len()].map(|length| (length as u64).to_be_bytes());
        hmac(
            &self.key,
            &[
                &expiry.to_be_bytes(),
                // With the lengths in front, no two pairs of texts make the same bytes.
                lengths.as_flattened(),
                principal.as_bytes(),
                request.method.as_bytes(),
                &raw_json::digest(&asked),
                state.as_bytes(),
            ],
        )
    }

    fn now(&self) -> u128 {
        self.start.elapsed().as_millis()
    }
}

impl fmt::Debug for StateSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateSeal")
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

/// HMAC with SHA-256 (RFC 2104), for a key that is no longer than a block.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        for (padded, key) in block.iter_mut().zip(key) {
            *padded ^= key;
        }
        block
    };
    let mut inner = Sha256::new_with_prefix(pad(0x36));
    for part in parts {
        inner.update(part);
    }
    Sha256::new_with_prefix(pad(0x5c))
        .chain_update(inner.finalize())
        .finalize()
        .into()
}

/// Compares without telling by the time it takes how much is equal.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one
        .iter()
        .zip(other)
        .fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 4231 has no key of 32 bytes; zeros at its end do not change a shorter key.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        assert_eq!(
            hex(&hmac(&key, &[b"what do ya want ", b"for nothing?"])),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
