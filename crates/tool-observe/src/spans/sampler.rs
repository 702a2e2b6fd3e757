use tool_core::TraceContext;

/// Head sampler: chooses which traces are recorded when they begin, like OpenTelemetry's `ParentBased` around
/// `TraceIdRatioBased`.
///
/// # Examples
///
/// ```
/// use tool_observe::Sampler;
///
/// /// Records the traces that the caller samples, and one in a hundred of those that begin here.
/// const SAMPLER: Sampler = Sampler::DEFAULT.with_ratio(0.01);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Sampler {
    /// `true` if the decision of the caller holds, where it made one.
    pub is_parent_based: bool,
    /// Share of the other traces that is recorded, from 0 to 1. The decision depends on the trace id alone, so all
    /// samplers with this ratio that decide by the id agree.
    pub ratio: f64,
}

impl Sampler {
    /// Records what the caller records, and every trace that begins here.
    pub const DEFAULT: Self = Self {
        is_parent_based: true,
        ratio: 1.0,
    };

    /// Sets if the decision of the caller holds, where it made one.
    #[must_use]
    pub const fn with_parent_based(mut self, is_parent_based: bool) -> Self {
        self.is_parent_based = is_parent_based;
        self
    }

    /// Sets the share of the other traces that is recorded, from 0 to 1.
    #[must_use]
    pub const fn with_ratio(mut self, ratio: f64) -> Self {
        self.ratio = ratio;
        self
    }

    pub(super) fn is_sampled(self, parent: Option<&TraceContext>, trace_id: u128) -> bool {
        if let Some(parent) = parent.filter(|_| self.is_parent_based) {
            return parent.is_sampled();
        }
        // The last 63 bits of the id as a fraction of their range, as `TraceIdRatioBased` of OpenTelemetry's SDKs does.
        let share = (trace_id as u64 >> 1) as f64 / (1_u64 << 63) as f64;
        share < self.ratio
    }
}
