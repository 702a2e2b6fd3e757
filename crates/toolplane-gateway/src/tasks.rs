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

use crate::{client, parked::Owned};

/// The tasks that clients may come back for, by the ids that clients know: ours, which nobody can guess. Those of the
/// servers may be the same on two of them.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    by_id: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    known: Known,
    made: Instant,
    expires: Instant,
    /// Takes the entry out when its time is over.
    _expiry: Owned<()>,
    /// Looks at the task for those who watch it.
    follower: Option<Owned<()>>,
}

/// Whose a task is: nobody else gets at it, and to others it is as if it had never been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    principal: Principal,
    /// The connection or session, where there is one: principals such as `anonymous` are many people.
    client: ClientKey,
    /// A task is followed in the words of the era in which it was made.
    era: Era,
}

/// What is known of a task.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The tool that was called.
    pub(crate) tool: Arc<str>,
    pub(crate) task: Task,
    /// What was last told of it, unless that is large.
    pub(crate) told: Option<RawJson>,
    /// Its place among all of them, from the oldest.
    pub(crate) number: u64,
}

/// How many tasks are kept in all.
const MAX_TASKS: usize = 1024;
/// How many tasks of one principal are kept.
const MAX_OF_PRINCIPAL: usize = 64;
/// How long a task is kept at most.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a task is kept at least, so that its result can be fetched.
const SHORTEST: Duration = Duration::from_secs(60);
/// How large a description of a task may be to be kept.
const MAX_TOLD: usize = 4 * 1024;

impl Owner {
    pub(crate) fn of(cx: &RequestContext) -> Self {
        Self {
            principal: cx.principal().clone(),
            client: client::key(cx),
            era: cx.era(),
        }
    }
}

impl Tasks {
    /// Whether there is room for one more task of this owner.
    pub(crate) fn have_room(&self, owner: &Owner) -> bool {
        self.table().has_room(owner)
    }

    /// Keeps a task for as long as its server does, which `lifetime` says if it says so. Returns the id that its owner
    /// is told; nothing if there is no room.
    pub(crate) fn keep(
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
        let made = Instant::now();
        let expires = made + bounded(lifetime);
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
        let known = Known {
            tool,
            task,
            told: None,
            number: table.last,
        };
        let entry = Entry {
            owner,
            known,
            made,
            expires,
            _expiry: Owned(expiry),
            follower: None,
        };
        table.by_id.insert(id.clone(), entry);
        Some(id)
    }

    /// A task by the id that its owner was told.
    pub(crate) fn get(&self, id: &str, owner: &Owner) -> Option<Known> {
        let table = self.table();
        let entry = table.by_id.get(id).filter(|entry| entry.owner == *owner)?;
        Some(entry.known.clone())
    }

    /// Takes note of what a server says of a task now, and of how long it keeps it.
    pub(crate) fn note(&self, id: &str, told: &RawJson, lifetime: Option<Duration>) {
        let mut table = self.table();
        let Some(entry) = table.by_id.get_mut(id) else {
            return;
        };
        entry.expires = entry.made + bounded(lifetime);
        // A copy of its own, so that the task does not keep the whole message alive.
        let copy = (told.len() <= MAX_TOLD).then(|| RawJson::parse(told.as_str().to_owned()));
        entry.known.told = copy.and_then(Result::ok);
    }

    /// The id of a task that its server tells of, and whose it is.
    pub(crate) fn told_of(&self, task: &Task) -> Option<(String, ClientKey)> {
        let table = self.table();
        let is_it = |entry: &Entry| {
            Arc::ptr_eq(&entry.known.task.runner, &task.runner) && entry.known.task.id == task.id
        };
        let (id, entry) = table.by_id.iter().find(|(_, entry)| is_it(entry))?;
        Some((id.clone(), entry.owner.client.clone()))
    }

    /// Has a task followed by this for those who watch it, in place of what did before.
    pub(crate) fn follow(&self, id: &str, follower: JoinHandle<()>) {
        let follower = Owned(follower);
        if let Some(entry) = self.table().by_id.get_mut(id) {
            entry.follower = Some(follower);
        }
    }

    /// The tasks of an owner after this number, the oldest first.
    pub(crate) fn of(&self, owner: &Owner, after: u64) -> Vec<(String, Known)> {
        let table = self.table();
        let own = table.by_id.iter().filter(|(_, entry)| entry.owner == *owner);
        let mut own: Vec<_> = own
            .filter(|(_, entry)| entry.known.number > after)
            .map(|(id, entry)| (id.clone(), entry.known.clone()))
            .collect();
        own.sort_by_key(|(_, known)| known.number);
        own
    }

    /// A client is gone, and with it who could come back for its tasks.
    pub(crate) fn forget(&self, client: &ClientKey) {
        let mut table = self.table();
        table.by_id.retain(|_, entry| entry.owner.client != *client);
    }

    /// Takes a task out whose time is over; says when to look again if it is not.
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
    lifetime.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
}
