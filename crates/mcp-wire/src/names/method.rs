//! Names of methods and notifications of both eras.

/// Opens a legacy connection.
pub const INITIALIZE: &str = "initialize";
/// Ends the opening of a legacy connection.
pub const INITIALIZED: &str = "notifications/initialized";
/// Asks a modern server for its identity and capabilities.
pub const DISCOVER: &str = "server/discover";
/// Checks that the other side is alive (legacy).
pub const PING: &str = "ping";
/// Lists tools, a page at a time.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to changes of a resource (legacy).
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
/// Asks for the state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Waits for the result of a task (2025-11-25).
pub const TASKS_RESULT: &str = "tasks/result";
/// Gives a task the input that it asked for (2026-07-28, an extension).
pub const TASKS_UPDATE: &str = "tasks/update";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Notifies of a changed task (2025-11-25).
pub const TASKS_STATUS: &str = "notifications/tasks/status";
/// Notifies of a changed task (2026-07-28, an extension).
pub const TASKS_CHANGED: &str = "notifications/tasks";
/// Opens a stream of notifications (modern).
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
/// Acknowledges a subscription with the filter that the server accepted of [`SUBSCRIPTIONS_LISTEN`] (modern).
pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Asks the client for its roots (legacy).
pub const ROOTS_LIST: &str = "roots/list";
/// Notifies the server of changed roots (legacy).
pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
/// Asks the client for a completion of its model (legacy).
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// Asks the user, through the client (legacy).
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// Notifies the client that the user has finished on the page that it was sent to (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Reports progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Cancels a request: its sender no longer wants the answer.
pub const CANCELLED: &str = "notifications/cancelled";
/// Carries a log message.
pub const LOG_MESSAGE: &str = "notifications/message";
/// Notifies of a changed list of tools.
pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
/// Notifies of a changed list of resources.
pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
/// Notifies of a changed resource.
pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
/// Notifies of a changed list of prompts.
pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
