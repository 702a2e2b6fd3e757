use std::{collections::HashMap, sync::Arc, time::Duration};

use mcp_server::{Principal, RequestContext};
use mcp_wire::Era;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use toolplane::core::{ClientKey, Task};
use uuid::Uuid;

use crate::{abort_on_drop::AbortOnDrop, client::client_key};

/// Tasks of all clients, by the ids that clients use. The gateway makes its own ids, which nobody can guess, since two servers
/// may use the same one.
#[derive(Debug, Default)]
pub(crate) struct TaskStore(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    by_id: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    record: TaskRecord,
    created: Instant,
    expires: Instant,
    /// Removes the entry when it has expired.
    _expiry: AbortOnDrop<()>,
    /// Polls the task for the clients that are subscribed to it.
    watcher: Option<AbortOnDrop<()>>,
}

/// Owner of a task. For all others the task does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    principal: Principal,
    /// Connection or session, if there is one: a principal such as `anonymous` may be many people.
    client: ClientKey,
    /// Era in which the task was created. Requests about it are in the same era.
    era: Era,
}

/// A task as the store knows it.
#[derive(Debug, Clone)]
pub(super) struct TaskRecord {
    /// Name of the tool that was called.
    pub(super) tool: Arc<str>,
    pub(super) task: Task,
    /// Last state that its client saw, unless it was larger than [`MAX_STATE`].
    pub(super) state: Option<RawJson>,
    /// Position in the order of creation.
    pub(super) number: u64,
}

/// Maximum number of tasks.
const MAX_TASKS: usize = 1024;
/// Maximum number of tasks of one principal.
const MAX_OF_PRINCIPAL: usize = 64;
/// Maximum lifetime of a task.
pub(super) const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum lifetime of a task, so that its result can be fetched.
const MIN_LIFETIME: Duration = Duration::from_secs(60);
/// Maximum size of a recorded state, in bytes.
const MAX_STATE: usize = 4 * 1024;

impl Owner {
    /// Returns the owner of the tasks that a request creates.
    pub(super) fn from_request(cx: &RequestContext) -> Self {
        Self {
            principal: cx.principal().clone(),
            client: client_key(cx),
            era: cx.era(),
        }
    }
}

impl TaskStore {
    /// Returns `true` if there is room for one more task of this owner.
    pub(super) fn has_room(&self, owner: &Owner) -> bool {
        self.table().has_room(owner)
    }

    /// Inserts a task for the lifetime that its server gives it, within limits. Returns the id for its owner, or `None` if
    /// there is no room.
    pub(super) fn insert(
        self: &Arc<Self>,
        owner: Owner,
        tool: Arc<str>,
        task: Task,
        lifetime: Option<Duration>,
    ) -> Option<String> {
        let mut table = self.table();
        if !table.has_room(&owner) {
            return None;
        }
        let id = Uuid::new_v4().simple().to_string();
        let created = Instant::now();
        let expires = created + bounded(lifetime);
        let (tasks, key) = (Arc::downgrade(self), id.clone());
        let expiry = tokio::spawn(async move {
            let mut at = expires;
            loop {
                sleep_until(at).await;
                let Some(tasks) = tasks.upgrade() else { return };
                match tasks.expire(&key) {
                    Some(later) => at = later,
                    None => return,
                }
            }
        });
        table.last += 1;
        let record = TaskRecord {
            tool,
            task,
            state: None,
            number: table.last,
        };
        let entry = Entry {
            owner,
            record,
            created,
            expires,
            _expiry: AbortOnDrop(expiry),
            watcher: None,
        };
        table.by_id.insert(id.clone(), entry);
        Some(id)
    }

    /// Returns a task of this owner by its id.
    pub(super) fn get(&self, id: &str, owner: &Owner) -> Option<TaskRecord> {
        let table = self.table();
        let entry = table.by_id.get(id).filter(|entry| entry.owner == *owner)?;
        Some(entry.record.clone())
    }

    /// Records the present state of a task, and the lifetime that its server gives it now.
    pub(super) fn record(&self, id: &str, state: &RawJson, lifetime: Option<Duration>) {
        let mut table = self.table();
        let Some(entry) = table.by_id.get_mut(id) else {
            return;
        };
        entry.expires = entry.created + bounded(lifetime);
        // A copy, since the state shares the buffer of the whole message and would keep it alive.
        let copy = (state.len() <= MAX_STATE).then(|| RawJson::parse(state.as_str().to_owned()));
        entry.record.state = copy.and_then(Result::ok);
    }

    /// Returns the id and the client of a task, by the task as its server identifies it.
    pub(crate) fn find(&self, task: &Task) -> Option<(String, ClientKey)> {
        let table = self.table();
        let is_same = |entry: &Entry| {
            Arc::ptr_eq(&entry.record.task.runner, &task.runner) && entry.record.task.id == task.id
        };
        let (id, entry) = table.by_id.iter().find(|(_, entry)| is_same(entry))?;
        Some((id.clone(), entry.owner.client.clone()))
    }

    /// Sets the watcher of a task, and ends the previous one.
    pub(super) fn set_watcher(&self, id: &str, watcher: JoinHandle<()>) {
        let watcher = AbortOnDrop(watcher);
        if let Some(entry) = self.table().by_id.get_mut(id) {
            entry.watcher = Some(watcher);
        }
    }

    /// Returns the tasks of an owner that were created after the one with this number, oldest first, with their ids.
    pub(super) fn list(&self, owner: &Owner, after: u64) -> Vec<(String, TaskRecord)> {
        let table = self.table();
        let own = table.by_id.iter().filter(|(_, entry)| entry.owner == *owner);
        let mut own: Vec<_> = own
            .filter(|(_, entry)| entry.record.number > after)
            .map(|(id, entry)| (id.clone(), entry.record.clone()))
            .collect();
        own.sort_by_key(|(_, record)| record.number);
        own
    }

    /// Removes the tasks of a client that has disconnected, since nobody else may request them.
    pub(crate) fn remove_of(&self, client: &ClientKey) {
        let mut table = self.table();
        table.by_id.retain(|_, entry| entry.owner.client != *client);
    }

    /// Removes a task if it has expired. Otherwise returns the time at which it expires.
    fn expire(&self, id: &str) -> Option<Instant> {
        let mut table = self.table();
        let expires = table.by_id.get(id)?.expires;
        if expires > Instant::now() {
            return Some(expires);
        }
        table.by_id.remove(id);
        None
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

impl Table {
    fn has_room(&self, owner: &Owner) -> bool {
        let all = self.by_id.values();
        let n_own = all
            .filter(|entry| entry.owner.principal == owner.principal)
            .count();
        self.by_id.len() < MAX_TASKS && n_own < MAX_OF_PRINCIPAL
    }
}

fn bounded(lifetime: Option<Duration>) -> Duration {
    lifetime.unwrap_or(MAX_LIFETIME).clamp(MIN_LIFETIME, MAX_LIFETIME)
}
