use std::{
    fmt, io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use mcp_wire::{Request, RpcError, code, param_key};
use raw_json::RawJson;
use sha2::Sha256;
use tokio::time::Instant;

use crate::RequestContext;

/// Seals the states that clients return, so that none can be forged, changed, used by another client, for another request,
/// or too late.
///
/// The client can read the state: it is authenticated (HMAC-SHA-256), not encrypted. Servers with one [`StateKey`] open the states
/// of each other, also after a restart: expiries are times of day.
pub struct StateSeal {
    key: StateKey,
    /// Time of day when the seal was created. From then on, the monotonic clock counts: a change of the time of day does not
    /// make states of this server expire.
    created: SystemTime,
    start: Instant,
    lifetime: Duration,
}

/// Secret key of a [`StateSeal`], 256 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey([u8; 32]);

impl StateKey {
    /// Creates a key from random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Creates a random key.
    ///
    /// # Errors
    /// Fails if the system has no randomness to give.
    pub fn random() -> io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        Ok(Self(key))
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(..)")
    }
}

impl StateSeal {
    /// Creates a seal with a random key, whose states expire after `lifetime`.
    ///
    /// # Errors
    /// Fails if the system has no randomness to give.
    pub fn new(lifetime: Duration) -> io::Result<Self> {
        StateKey::random().map(|key| Self::with_key(key, lifetime))
    }

    /// Creates a seal with this key, whose states expire after `lifetime`.
    #[must_use]
    pub fn with_key(key: StateKey, lifetime: Duration) -> Self {
        Self {
            key,
            created: SystemTime::now(),
            start: Instant::now(),
            lifetime,
        }
    }

    /// Seals a state for the client of a request, to be returned when it makes the same request again.
    #[must_use]
    pub fn seal(&self, state: &str, request: &Request, cx: &RequestContext) -> String {
        let expiry = self.now().saturating_add(self.lifetime.as_millis());
        let code = self.code(expiry, state, request, cx).finalize().into_bytes();
        format!("{expiry:x}.{}.{state}", URL_SAFE_NO_PAD.encode(code))
    }

    /// Returns the state in the text that a client returned with a request.
    ///
    /// # Errors
    /// Fails if the text was not sealed here, for this principal and this request, or has expired.
    pub fn open(&self, sealed: &str, request: &Request, cx: &RequestContext) -> Result<String, RpcError> {
        let invalid = || RpcError::new(code::INVALID_PARAMS, "`requestState` is invalid or has expired");
        let mut parts = sealed.splitn(3, '.');
        let (Some(expiry), Some(code), Some(state)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(invalid());
        };
        let expiry = u128::from_str_radix(expiry, 16).map_err(|_| invalid())?;
        let code = URL_SAFE_NO_PAD.decode(code).map_err(|_| invalid())?;
        let expected = self.code(expiry, state, request, cx);
        expected.verify_slice(&code).map_err(|_| invalid())?;
        if expiry < self.now() {
            return Err(invalid());
        }
        Ok(state.to_owned())
    }

    /// Returns the code (HMAC-SHA-256) that binds a state to its expiry, its client and its request.
    fn code(&self, expiry: u128, state: &str, request: &Request, cx: &RequestContext) -> Hmac<Sha256> {
        let none = RawJson::object();
        let params = request.params.as_ref().unwrap_or(&none);
        // Without the members that differ from round to round, and without `_meta`, whose differences do not matter.
        let asked = params
            .without_members(param_key::PER_ROUND)
            .expect("parameters are an object");
        let principal = cx.principal().as_str();
        let lengths = [principal.len(), request.method.len()].map(|length| (length as u64).to_be_bytes());
        Hmac::<Sha256>::new_from_slice(&self.key.0)
            .expect("HMAC takes keys of any length")
            .chain_update(expiry.to_be_bytes())
            // With the lengths first, no two pairs of texts have the same bytes.
            .chain_update(lengths.as_flattened())
            .chain_update(principal)
            .chain_update(&request.method)
            .chain_update(raw_json::digest(&asked))
            .chain_update(state)
    }

    /// Returns the time of day in milliseconds since 1970.
    fn now(&self) -> u128 {
        let created = self.created.duration_since(UNIX_EPOCH).unwrap_or_default();
        (created + self.start.elapsed()).as_millis()
    }
}

impl fmt::Debug for StateSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateSeal")
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}
