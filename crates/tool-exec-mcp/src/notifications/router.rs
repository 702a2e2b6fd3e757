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

/// Whom a server's news of tasks and pages are for: what it says on one connection, it says by ids of its own.
#[derive(Default)]
pub(crate) struct NotificationRouter(Mutex<Routes>);

#[derive(Default)]
struct Routes {
    /// What answers requests about the tasks that callers follow.
    tasks: HashMap<Arc<str>, Weak<dyn DynBackend>>,
    /// The pages that users were sent to, the oldest first.
    pages: VecDeque<(String, ClientKey)>,
}

/// The way of news that a connection brings.
#[derive(Clone)]
pub(crate) struct NotificationSink {
    pub(crate) notifier: Arc<Notifier>,
    /// The clients that alone are served by the connection.
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

/// How many pages are remembered: nobody says when one is given up.
const MAX_PAGES: usize = 256;
/// The longest id of a page that is remembered.
const MAX_ID_BYTES: usize = 1024;

impl NotificationRouter {
    /// Takes what a server tells: log messages, news of resources, and what is for those who follow a task or were sent to a
    /// page.
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

    /// Notes a task that a caller follows.
    pub(crate) fn follow_task(&self, id: &Arc<str>, runner: &Arc<dyn DynBackend>) {
        self.0.lock().tasks.insert(Arc::clone(id), Arc::downgrade(runner));
    }

    /// Nobody follows a task any more, unless another one has its id by now.
    pub(crate) fn forget_task(&self, id: &str) {
        let tasks = &mut self.0.lock().tasks;
        if tasks.get(id).is_some_and(|runner| runner.strong_count() == 0) {
            tasks.remove(id);
        }
    }

    /// Notes the page of a question, if it is one that sends the user to a page.
    pub(crate) fn record_question(&self, question: &Question, client: &ClientKey) {
        if question.method == method::ELICITATION_CREATE
            && let Some(params) = &question.params
        {
            self.record_page(params, client);
        }
    }

    /// Notes the pages that a call's client is sent to by an error.
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
        let mut known = self.0.lock();
        if known.pages.len() >= MAX_PAGES {
            known.pages.pop_front();
        }
        known.pages.push_back((id, client.clone()));
    }

    /// What a notification is to those whom it is for; nothing when that is nobody.
    pub(crate) fn update_for(&self, method: &str, params: &RawJson) -> Option<Update> {
        match method {
            method::TASKS_STATUS => {
                let id = params.get("taskId")?.string()?;
                let known = self.0.lock();
                let (id, runner) = known.tasks.get_key_value(&*id)?;
                let task = Task {
                    id: Arc::clone(id),
                    runner: runner.upgrade()?,
                };
                // What is dropped with the last of it would want the lock.
                drop(known);
                Some(Update::Task {
                    task,
                    state: params.clone(),
                })
            }
            method::ELICITATION_COMPLETE => {
                let id = params.get("elicitationId")?.string()?;
                let mut known = self.0.lock();
                let place = known.pages.iter().position(|(page, _)| *page == id)?;
                let (_, client) = known.pages.remove(place)?;
                let params = params.clone();
                Some(Update::PageVisited { client, params })
            }
            _ => None,
        }
    }
}

/// What a modern server tells, without the mark of our subscription: clients have subscriptions of their own, or none.
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
