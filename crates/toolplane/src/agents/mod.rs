//! Agents on the tools of a toolplane.

#[cfg(feature = "outbound")]
mod http_model;
mod recording;
mod tools;

#[cfg(feature = "outbound")]
pub use self::http_model::{HttpModel, HttpModelSettings};
pub use self::tools::ConversationTools;
