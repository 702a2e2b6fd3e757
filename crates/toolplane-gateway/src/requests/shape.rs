use mcp_server::RequestContext;
use mcp_wire::{Era, Revision, extension};
use raw_json::JsonKind;

use super::subject::Subject;

/// Kind of exchange by which a request is answered. It is decided once, when the request arrives, from the revision, the
/// parameters and the capabilities of the client.
///
/// | request | shape |
/// |---|---|
/// | of the legacy era | `Legacy` |
/// | of the modern era, brings `requestState` or `inputResponses` | `Dialogue` |
/// | of the modern era, may be answered with questions, and its client can be asked some | `Dialogue` |
/// | any other of the modern era | `Direct` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestShape {
    /// The call ends with the request. While it runs, the client is asked by requests of the gateway.
    Legacy {
        /// `true` if the client wants the call run as a task, which is possible in 2025-11-25 only.
        as_task: bool,
    },
    /// The call ends with the request, and the client cannot be asked anything.
    Direct {
        /// `true` if the call may become a task.
        allows_task: bool,
    },
    /// The request is one round of a call, which may end with questions to the client.
    Dialogue {
        /// `true` if the call may become a task.
        allows_task: bool,
        /// `true` if the client can be asked during this round. A round that only brings answers may forbid it.
        can_ask: bool,
    },
}

impl RequestShape {
    /// Decides on the shape of a request.
    pub(super) fn new(subject: &Subject, cx: &RequestContext) -> Self {
        let is_tool = *subject == Subject::Tool;
        if cx.era() == Era::Legacy {
            let as_task = is_tool
                && cx.revision() == Revision::V2025_11_25
                && cx.task().is_some_and(|task| task.kind() == JsonKind::Object);
            return Self::Legacy { as_task };
        }
        let allows_task = is_tool && cx.declares_extension(extension::TASKS);
        let can_ask = subject.may_ask() && cx.is_askable();
        if can_ask || cx.request_state().is_some() || cx.input_responses().is_some() {
            return Self::Dialogue { allows_task, can_ask };
        }
        Self::Direct { allows_task }
    }

    /// Returns `true` if the call may become a task although its client did not request one.
    pub(crate) fn allows_task(self) -> bool {
        match self {
            Self::Direct { allows_task } | Self::Dialogue { allows_task, .. } => allows_task,
            Self::Legacy { .. } => false,
        }
    }
}
