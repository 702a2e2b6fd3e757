use std::{fmt, time::Duration};

use crate::{ToolVectors, UsageIndex};

/// Circumstances of a search besides the request: the tools that its caller may find, and what is known about them.
#[derive(Clone, Copy, Default)]
#[must_use]
pub struct SearchScope<'a> {
    admits: Option<&'a dyn Fn(usize) -> bool>,
    measured: Option<&'a dyn Fn(usize) -> MeasuredTool>,
    pub(crate) usage: Option<&'a UsageIndex>,
    pub(crate) vectors: Option<(&'a ToolVectors, &'a [Vec<f32>])>,
}

/// Measurements of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct MeasuredTool {
    /// Share of successful calls, in percent; `None` without enough calls.
    pub sla: Option<f64>,
    /// Usual latency; `None` without enough calls.
    pub latency: Option<Duration>,
}

impl MeasuredTool {
    /// Creates the measurements of a tool.
    #[must_use]
    pub const fn new(sla: Option<f64>, latency: Option<Duration>) -> Self {
        Self { sla, latency }
    }
}

impl<'a> SearchScope<'a> {
    /// Finds only tools for which this function returns `true`, by their position. All by default.
    ///
    /// The other tools still count in the frequencies of words, and thus in scores. An index of the admitted tools alone leaves
    /// no trace of them.
    pub fn admit(mut self, admits: &'a dyn Fn(usize) -> bool) -> Self {
        self.admits = Some(admits);
        self
    }

    /// Sets the source of measurements, by the position of the tool.
    pub fn measured(mut self, measured: &'a dyn Fn(usize) -> MeasuredTool) -> Self {
        self.measured = Some(measured);
        self
    }

    /// Sets the queries that led to successful calls.
    pub fn usage(mut self, usage: &'a UsageIndex) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the vectors of the tools, and those of the request's queries in the same order. A query without a vector is searched
    /// by its words.
    pub fn vectors(mut self, tools: &'a ToolVectors, queries: &'a [Vec<f32>]) -> Self {
        self.vectors = Some((tools, queries));
        self
    }

    pub(crate) fn admits(&self, document: usize) -> bool {
        self.admits.is_none_or(|admits| admits(document))
    }

    pub(crate) fn measure(&self, document: usize) -> MeasuredTool {
        self.measured
            .map(|measured| measured(document))
            .unwrap_or_default()
    }
}

impl fmt::Debug for SearchScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchScope")
            .field("usage", &self.usage)
            .field("has_vectors", &self.vectors.is_some())
            .finish_non_exhaustive()
    }
}
