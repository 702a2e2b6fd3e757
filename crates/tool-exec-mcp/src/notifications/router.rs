use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
};

use mcp_client::ConnectionEvent;
use mcp_wire::{RpcError, code, meta, meta_key, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{ClientGroup, ClientKey, DynBackend, Question, Task, Update};

use super::Notifier;

/// Routes notifications of one connection about tasks and visited pages to the clients that they concern. Servers
/// identify both by ids of their own.
#[derive(Default)]
pub(crate) struct NotificationRouter(Mutex<Routes>);

#[derive(Default)]
struct Routes {
    /// Backends of the tasks that callers follow.
    tasks: HashMap<Arc<str>, Weak<dyn DynBackend>>,
    /// Pages that users were sent to, with their clients, the oldest first.
    pages: VecDeque<(String, ClientKey)>,
}

/// Destination of the notifications of one connection.
#[derive(Clone)]
pub(crate) struct NotificationSink {
    pub(crate) notifier: Arc<Notifier>,
    /// The only clients that the connection serves. `None` for the shared connection.
    pub(crate) clients: Option<ClientGroup>,
}

impl NotificationSink {
    fn resource_update(&self, params: RawJson) -> Update {
        match self.clients.clone() {
            Some(clients) => Update::ClientResource { clients, params },
            None => Update::Resource(params),
        }
    }
}

/// Maximum number of remembered pages: nobody reports that a page is given up.
const MAX_PAGES: usize = 256;
/// Maximum length of the id of a remembered page, in bytes.
const MAX_ID_BYTES: usize = 1024;

impl NotificationRouter {
    /// Routes a notification of the server. Log messages go to `log`, and updates of resources, tasks and pages to the
    /// listeners.
    pub(crate) fn route(&self, event: &ConnectionEvent, sink: &NotificationSink, log: impl FnOnce(&RawJson)) {
        let Some(params) = event.params.as_ref().map(unmarked) else {
            return;
        };
        let params = &params;
        match event.method.as_str() {
            method::LOG_MESSAGE => log(params),
            method::RESOURCES_UPDATED => sink.notifier.notify(&sink.resource_update(params.clone())),
            other => {
                if let Some(update) = self.update_for(other, params) {
                    sink.notifier.notify(&update);
                }
            }
        }
    }

    /// Records a task that a caller follows.
    pub(crate) fn follow_task(&self, id: &Arc<str>, backend: &Arc<dyn DynBackend>) {
        self.0
            .lock()
            .tasks
            .insert(Arc::clone(id), Arc::downgrade(backend));
    }

    /// Forgets a task that nobody follows any more, unless another task has its id by now.
    pub(crate) fn forget_task(&self, id: &str) {
        let tasks = &mut self.0.lock().tasks;
        if tasks.get(id).is_some_and(|backend| backend.strong_count() == 0) {
            tasks.remove(id);
        }
    }

    /// Records the page of a question, if the question sends the user to a page.
    pub(crate) fn record_question(&self, question: &Question, client: &ClientKey) {
        if question.method == method::ELICITATION_CREATE
            && let Some(params) = &question.params
        {
            self.record_page(params, client);
        }
    }

    /// Records the pages to which an error sends the call's client.
    pub(crate) fn record_url_error(&self, error: &RpcError, client: &ClientKey) {
        let data = error
            .data
            .as_ref()
            .filter(|_| error.code == code::URL_ELICITATION_REQUIRED);
        if let Some(pages) = data.and_then(|data| data.get("elicitations")) {
            pages.items().for_each(|page| self.record_page(&page, client));
        }
    }

    fn record_page(&self, page: &RawJson, client: &ClientKey) {
        let id = page.get("elicitationId").and_then(|id| id.string());
        let Some(id) = id.filter(|id| id.len() <= MAX_ID_BYTES) else {
            return;
        };
        let mut routes = self.0.lock();
        if routes.pages.len() >= MAX_PAGES {
            routes.pages.pop_front();
        }
        routes.pages.push_back((id, client.clone()));
    }

    /// Converts a notification into an update for the clients that it concerns. Returns `None` if it concerns none.
    pub(crate) fn update_for(&self, method: &str, params: &RawJson) -> Option<Update> {
        match method {
            method::TASKS_STATUS => {
                let id = params.get("taskId")?.string()?;
                let routes = self.0.lock();
                let (id, backend) = routes.tasks.get_key_value(&*id)?;
                let task = Task::new(Arc::clone(id), backend.upgrade()?);
                // Before the upgraded backend is dropped: its `Drop` takes the lock.
                drop(routes);
                Some(Update::Task {
                    task,
                    state: params.clone(),
                })
            }
            method::ELICITATION_COMPLETE => {
                let id = params.get("elicitationId")?.string()?;
                let mut routes = self.0.lock();
                let index = routes.pages.iter().position(|(page, _)| *page == id)?;
                let (_, client) = routes.pages.remove(index)?;
                let params = params.clone();
                Some(Update::PageVisited { client, params })
            }
            _ => None,
        }
    }
}

/// Returns the params of a modern server's notification without our subscription id: clients have subscriptions of
/// their own, or none.
fn unmarked(params: &RawJson) -> RawJson {
    let Some(marked) = meta(params).filter(|meta| meta.get(meta_key::SUBSCRIPTION_ID).is_some()) else {
        return params.clone();
    };
    let rest = marked.without_members(&[meta_key::SUBSCRIPTION_ID]);
    let rest = rest.expect("`_meta` is an object");
    let unmarked = match rest.parts().next() {
        Some(_) => params.with_members(&[("_meta", rest)]),
        None => params.without_members(&["_meta"]),
    };
    unmarked.expect("what has `_meta` is an object")
}
