//! Values as the columns hold them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tool_core::{Clock, Instant};
use tool_registry::{Deprecation, VersionState};

use crate::SqlError;

/// Returns a time as milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
    }
}

/// Returns the time of these milliseconds since 1970.
pub(crate) fn time(millis: i64) -> SystemTime {
    let since = Duration::from_millis(millis.unsigned_abs());
    let time = match millis {
        0.. => UNIX_EPOCH.checked_add(since),
        _ => UNIX_EPOCH.checked_sub(since),
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// Returns the time of day of an instant.
pub(crate) fn wall_of(clock: &dyn Clock, instant: Instant) -> SystemTime {
    let (now, wall) = (clock.now(), clock.wall());
    let time = match instant >= now {
        true => wall.checked_add(instant.since(now)),
        false => wall.checked_sub(now.since(instant)),
    };
    time.unwrap_or(wall)
}

/// Returns the instant of a time of day.
pub(crate) fn instant_of(clock: &dyn Clock, time: SystemTime) -> Instant {
    let (now, wall) = (clock.now(), clock.wall());
    match time.duration_since(wall) {
        Ok(left) => now + left,
        Err(past) => Instant::since_start(now.since(Instant::since_start(past.duration()))),
    }
}

/// Reads a stored JSON value.
pub(crate) fn json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, SqlError> {
    serde_json::from_str(text).map_err(|error| SqlError::Corrupt(format!("{what} cannot be read: {error}")))
}

/// Reads the hexadecimal digits of a SHA-256.
pub(crate) fn digest(text: &str) -> Result<[u8; 32], SqlError> {
    let invalid = || SqlError::Corrupt(format!("`{}` is no SHA-256", text.escape_debug()));
    let mut digest = [0; 32];
    if text.len() != 2 * digest.len() {
        return Err(invalid());
    }
    for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digits.iter().try_fold(0, |byte, digit| {
            let digit = char::from(*digit).to_digit(16).ok_or_else(invalid)?;
            Ok(byte << 4 | u8::try_from(digit).map_err(|_| invalid())?)
        })?;
    }
    Ok(digest)
}

/// Returns the details of a state as JSON.
pub(crate) fn state_detail(state: &VersionState) -> Option<String> {
    let detail = match state {
        VersionState::Deprecated(deprecation) => json!({
            "replacement": deprecation.replacement,
            "until": deprecation.until,
            "reason": deprecation.reason,
        }),
        VersionState::Yanked { reason } => json!({"reason": reason}),
        _ => return None,
    };
    Some(detail.to_string())
}

/// Reads a state with its details.
pub(crate) fn state(word: &str, detail: Option<&str>) -> Result<VersionState, SqlError> {
    let detail: Value = match detail {
        Some(detail) => serde_json::from_str(detail)
            .map_err(|error| SqlError::Corrupt(format!("the details of a state are no JSON: {error}")))?,
        None => Value::Null,
    };
    let text = |name: &str| detail[name].as_str().map(str::to_owned);
    Ok(match word {
        "draft" => VersionState::Draft,
        "published" => VersionState::Published,
        "deprecated" => VersionState::Deprecated(
            Deprecation::default()
                .with_replacement(text("replacement"))
                .with_until(text("until"))
                .with_reason(text("reason")),
        ),
        "yanked" => VersionState::Yanked {
            reason: text("reason").unwrap_or_default(),
        },
        other => {
            return Err(SqlError::Corrupt(format!(
                "unknown state `{}`",
                other.escape_debug()
            )));
        }
    })
}
