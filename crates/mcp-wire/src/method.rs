//! Names of methods and notifications of both eras.

/// Opens a legacy connection.
pub const INITIALIZE: &str = "initialize";
/// Ends the opening of a legacy connection.
pub const INITIALIZED: &str = "notifications/initialized";
/// Asks a modern server what it is and can do.
pub const DISCOVER: &str = "server/discover";
/// Asks whether the other side is alive (legacy).
pub const PING: &str = "ping";
/// Lists tools, a page at a time.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists templates of resources.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Asks for news of a resource (legacy).
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends [`RESOURCES_SUBSCRIBE`] (legacy).
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Fills in a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Completes an argument.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Sets the lowest level of log messages (legacy).
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Lists the caller's tasks (2025-11-25).
pub const TASKS_LIST: &str = "tasks/list";
/// Asks how a task is.
pub const TASKS_GET: &str = "tasks/get";
/// Waits for the result of a task (2025-11-25).
pub const TASKS_RESULT: &str = "tasks/result";
/// Gives a task what it needed from the caller (2026-07-28, an extension).
pub const TASKS_UPDATE: &str = "tasks/update";
/// Ends a task before it is done.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// A task has changed (2025-11-25).
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// A task has changed (2026-07-28, an extension).
pub const TASKS_CHANGED: &str = "notifications/tasks";
/// Opens a stream of notifications (modern).
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// Says which of the notifications that [`SUBSCRIPTIONS_LISTEN`] asked for will come (modern).
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// A server asks for the client's roots (legacy).
pub const ROOTS_LIST: &str = "roots/list";
/// The client's roots have changed (legacy).
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// A server asks for a model's completion (legacy).
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// A server asks the user (legacy).
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// What the user was sent to a page for is done (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Progress of a request that is under way.
pub const PROGRESS: &str = "notifications/progress";
/// The caller no longer wants the answer to a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// A log message.
pub const LOG_MESSAGE: &str = "notifications/message";
/// The list of tools has changed.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// The list of resources has changed.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// A resource has changed.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
/// The list of prompts has changed.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
