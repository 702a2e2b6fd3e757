use std::time::Duration;

use super::setting::SettingSlots;
use crate::{Descriptor, Overrides, RedactedFields, Setting, SettingLevel};

/// Settings of a tool after defaults: the ones that every backend and layer may need, and one slot for each layer's
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Time limit of a whole call.
    pub call_timeout: Duration,
    /// Time limit of one attempt.
    pub attempt_timeout: Duration,
    /// Maximum size of a result, in bytes; bounded by the backend if absent.
    pub max_result_bytes: Option<usize>,
    /// `true` if the operator configures how the idempotency key of a call is passed to the backend, which makes
    /// repeated calls safe.
    pub passes_key: bool,
    /// Way in which a call of the tool becomes a task, if no MCP server runs it.
    pub task_support: TaskSupport,
    /// `true` if the tool calls other tools: see [`Executor::calls_tools`](crate::Executor::calls_tools).
    pub calls_tools: bool,
    slots: SettingSlots,
}

/// Way in which a call becomes a [`Task`](crate::Task): see [`Executor::task_support`](crate::Executor::task_support).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TaskSupport {
    /// The call becomes no task, or a server says itself whether it does.
    #[default]
    None,
    /// The backend makes the task.
    Own,
    /// The backend knows no tasks: a layer runs it in the background.
    Background,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(60),
            attempt_timeout: Duration::from_secs(30),
            max_result_bytes: None,
            passes_key: false,
            task_support: TaskSupport::None,
            calls_tools: false,
            slots: SettingSlots::default(),
        }
    }
}

impl Settings {
    /// Returns the setting of this type; `None` if the layer has nothing to do, or uses its defaults.
    #[must_use]
    pub fn get<T: Setting>(&self) -> Option<&T> {
        self.slots.get()
    }

    /// Sets a setting, replacing the one of the same type.
    pub fn set<T: Setting>(&mut self, setting: T) {
        self.slots.set(setting);
    }

    /// Removes the setting of this type.
    pub fn remove<T: Setting>(&mut self) {
        self.slots.remove::<T>();
    }

    /// Returns the settings with the overrides of a more specific level.
    #[must_use]
    pub fn overridden(mut self, overrides: &Overrides, level: SettingLevel) -> Self {
        self.call_timeout = overrides.call_timeout.unwrap_or(self.call_timeout);
        self.slots.override_with(overrides.slots(), level);
        self
    }

    /// Returns the settings, each fitted to a tool or dropped: see [`Setting::settled`].
    #[must_use]
    pub fn settled(mut self, tool: &Descriptor) -> Self {
        self.slots.settle(tool);
        self
    }

    /// Returns `true` if attempts may run under contexts of their own: see [`Setting::forks_calls`].
    #[must_use]
    pub fn fork_calls(&self) -> bool {
        self.slots.fork_calls()
    }

    /// Returns the names of the fields that are hidden in the tool's results, and in its arguments where they are
    /// logged.
    #[must_use]
    pub fn redacted_fields(&self) -> &[String] {
        self.get::<RedactedFields>().map_or(&[], |fields| &fields.0)
    }
}
