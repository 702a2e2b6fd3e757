use std::{fmt, sync::Arc};

/// Where a call stands in a trace, as W3C Trace Context has it: the trace, and the span that what follows belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The span; never 0.
    pub span_id: u64,
    /// The flags of `traceparent`; see [`TraceContext::SAMPLED`].
    pub flags: u8,
    /// What tracing systems add, as received.
    pub tracestate: Option<Arc<str>>,
}

/// How long a `tracestate` may be: the least that the standard has everyone pass on. A longer one is left out.
const MAX_STATE: usize = 512;
/// How many members a `tracestate` may have.
const MAX_STATE_MEMBERS: usize = 32;

impl TraceContext {
    /// The flag of a trace that is recorded.
    pub const SAMPLED: u8 = 1;

    /// Reads the two headers. Nothing if `traceparent` is none: whoever sent it is not in a trace then, as the standard
    /// has it. A `tracestate` that cannot be passed on is left out.
    ///
    /// ```
    /// use tool_core::TraceContext;
    ///
    /// let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let context = TraceContext::parse(parent, None).unwrap();
    /// assert!(context.is_sampled());
    /// assert_eq!(context.to_string(), parent);
    /// ```
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let (known, rest) = traceparent.split_at_checked(55)?;
        let mut parts = known.split('-');
        let (version, trace_id) = (hex(parts.next()?, 2)?, hex(parts.next()?, 32)?);
        let (span_id, flags) = (hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
        // A later version may have more parts, and has these in front.
        let fits = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let context = Self {
            trace_id,
            span_id: u64::try_from(span_id).ok()?,
            flags: u8::try_from(flags).ok()?,
            tracestate: tracestate.filter(|state| is_state(state)).map(Into::into),
        };
        (fits && context.trace_id != 0 && context.span_id != 0).then_some(context)
    }

    /// Whether the trace is recorded where it comes from.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }
}

/// The value of so many hexadecimal digits, all of them small.
fn hex(digits: &str, length: usize) -> Option<u128> {
    let are_digits = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits.len() == length && are_digits).then_some(())?;
    u128::from_str_radix(digits, 16).ok()
}

fn is_state(state: &str) -> bool {
    let can_be_sent = state.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let n_members = state
        .split(',')
        .filter(|member| !member.trim().is_empty())
        .count();
    !state.trim().is_empty() && state.len() <= MAX_STATE && can_be_sent && n_members <= MAX_STATE_MEMBERS
}

/// As a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each call of a server is told this, so the digits are not formatted as numbers are.
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hex(&mut text[3..35], self.trace_id);
        write_hex(&mut text[36..52], self.span_id.into());
        // Of the flags only those that are known: what the others mean is not known either.
        write_hex(&mut text[53..], (self.flags & 3).into());
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Fills a place with the lowest hexadecimal digits of a number.
fn write_hex(place: &mut [u8], mut number: u128) {
    for digit in place.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 0xf) as usize];
        number >>= 4;
    }
}
