use std::{collections::HashSet, fmt, sync::Arc};

/// Trace context of a call (W3C Trace Context): its trace, and the parent span of whatever follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace id; never 0.
    pub trace_id: u128,
    /// Span id; never 0.
    pub span_id: u64,
    /// Flags of `traceparent`; see [`TraceContext::SAMPLED`].
    pub flags: u8,
    /// Valid members of `tracestate`, as received; each belongs to a tracing system.
    pub tracestate: Option<Arc<str>>,
}

/// Maximum length of a `tracestate`: the length that the standard requires everyone to propagate. A longer one is
/// dropped.
const MAX_STATE: usize = 512;
/// Maximum number of members of a `tracestate`.
const MAX_STATE_MEMBERS: usize = 32;

impl TraceContext {
    /// Flag of a sampled trace.
    pub const SAMPLED: u8 = 1;

    /// Parses the two headers. Returns `None` if `traceparent` is invalid: by the standard, the caller then has no
    /// trace. An oversized `tracestate` and its invalid members are dropped.
    ///
    /// # Examples
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
        // A later version may append fields to these.
        let fits = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let context = Self {
            trace_id,
            span_id: u64::try_from(span_id).ok()?,
            flags: u8::try_from(flags).ok()?,
            tracestate: tracestate.and_then(read_state),
        };
        (fits && context.trace_id != 0 && context.span_id != 0).then_some(context)
    }

    /// Returns `true` if the caller samples the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }
}

/// Parses exactly `length` lower-case hexadecimal digits.
fn hex(digits: &str, length: usize) -> Option<u128> {
    let are_digits = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits.len() == length && are_digits).then_some(())?;
    u128::from_str_radix(digits, 16).ok()
}

/// Reads a `tracestate` (W3C Trace Context, section 3.3.1). Returns `None` if no member of it is valid or it is too long.
fn read_state(state: &str) -> Option<Arc<str>> {
    let members = state.split(',').map(|member| member.trim_matches([' ', '\t']));
    let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
    if state.len() > MAX_STATE || members.len() > MAX_STATE_MEMBERS {
        return None;
    }
    let mut keys = HashSet::new();
    let valid = members.iter().filter_map(|member| {
        let (key, value) = member.split_once('=')?;
        (is_state_key(key) && is_state_value(value) && keys.insert(key)).then_some(*member)
    });
    let valid: Vec<&str> = valid.collect();
    if valid.len() == members.len() && !state.contains('\t') {
        return (!valid.is_empty()).then(|| state.into());
    }
    (!valid.is_empty()).then(|| valid.join(",").into())
}

/// Returns `true` for a valid key of a `tracestate`: simple, or of a tenant of a system.
fn is_state_key(key: &str) -> bool {
    let is_part = |part: &str, most: usize, may_be_digit: bool| {
        let is_first = |byte: &u8| byte.is_ascii_lowercase() || (may_be_digit && byte.is_ascii_digit());
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(&byte);
        part.len() <= most && part.as_bytes().first().is_some_and(is_first) && part.bytes().all(is_letter)
    };
    match key.split_once('@') {
        None => is_part(key, 256, false),
        Some((tenant, system)) => is_part(tenant, 241, true) && is_part(system, 14, false),
    }
}

/// Returns `true` for a valid value of a `tracestate`: printable, without `,` and `=`, and without a trailing space.
fn is_state_value(value: &str) -> bool {
    let is_letter = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    (1..=256).contains(&value.len()) && value.bytes().all(is_letter) && !value.ends_with(' ')
}

/// Writes the context as a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every outgoing call writes this, so the digits bypass the number formatter.
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hex(&mut text[3..35], self.trace_id);
        write_hex(&mut text[36..52], self.span_id.into());
        // Only known flags are propagated.
        write_hex(&mut text[53..], (self.flags & 3).into());
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Fills a slice with the lowest hexadecimal digits of a number.
fn write_hex(place: &mut [u8], mut number: u128) {
    for digit in place.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 0xf) as usize];
        number >>= 4;
    }
}
