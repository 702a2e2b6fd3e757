//! Traces for an OpenTelemetry collector, where the environment names one.

use std::time::Duration;

use toolplane::{
    Builder,
    observe::{Otlp, OtlpEnvironment, Sampler},
};

use crate::{config::variable, output::Console};

/// The running export of traces, if there is one.
pub(crate) struct Telemetry(Option<(Otlp, Sampler)>);

impl Telemetry {
    /// Begins to export if the variables of OpenTelemetry ask for it. Needs a runtime.
    pub(crate) fn start(console: Console) -> Self {
        let asked = OtlpEnvironment::read(env!("CARGO_PKG_VERSION"), variable);
        asked.problems.iter().for_each(|problem| console.warn(problem));
        let export = asked
            .settings
            .map(|settings| (Otlp::start(settings), asked.sampler));
        Self(export)
    }

    /// Has the toolplane traced, if traces are exported at all: otherwise nothing is made of a call.
    pub(crate) fn of(&self, builder: Builder) -> Builder {
        match &self.0 {
            Some((otlp, sampler)) => builder.tracer(otlp.tracer(*sampler)),
            None => builder.tracer(None),
        }
    }

    /// Exports what is left, within this time.
    pub(crate) async fn shutdown(self, limit: Duration) {
        if let Some((otlp, _)) = self.0 {
            otlp.shutdown(limit).await;
        }
    }
}
