use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
};

use mcp_wire::{RpcError, code, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{ClientKey, DynBackend, Question, Task, Update};

/// Whom a server's news of tasks and pages are for: what it says on one connection, it says by ids of its own.
#[derive(Default)]
pub(crate) struct Addressees(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// What answers requests about the tasks that callers follow.
    tasks: HashMap<Arc<str>, Weak<dyn DynBackend>>,
    /// The pages that users were sent to, the oldest first.
    pages: VecDeque<(String, ClientKey)>,
}

/// How many pages are remembered: nobody says when one is given up.
const MOST_PAGES: usize = 256;
/// The longest id of a page that is remembered.
const LONGEST_ID: usize = 1024;

impl Addressees {
    /// Notes a task that a caller follows.
    pub(crate) fn follow(&self, id: &Arc<str>, runner: &Arc<dyn DynBackend>) {
        self.0.lock().tasks.insert(Arc::clone(id), Arc::downgrade(runner));
    }

    /// Nobody follows a task any more, unless another one has its id by now.
    pub(crate) fn forget(&self, id: &str) {
        let tasks = &mut self.0.lock().tasks;
        if tasks.get(id).is_some_and(|runner| runner.strong_count() == 0) {
            tasks.remove(id);
        }
    }

    /// Notes the page of a question, if it is one that sends the user to a page.
    pub(crate) fn asked(&self, question: &Question, client: &ClientKey) {
        if question.method == method::ELICITATION_CREATE
            && let Some(params) = &question.params
        {
            self.sent(params, client);
        }
    }

    /// Notes the pages that a call's client is sent to by an error.
    pub(crate) fn refused(&self, error: &RpcError, client: &ClientKey) {
        let data = error
            .data
            .as_ref()
            .filter(|_| error.code == code::URL_ELICITATION_REQUIRED);
        if let Some(pages) = data.and_then(|data| data.get("elicitations")) {
            pages.items().for_each(|page| self.sent(&page, client));
        }
    }

    fn sent(&self, page: &RawJson, client: &ClientKey) {
        let id = page.get("elicitationId").and_then(|id| id.string());
        let Some(id) = id.filter(|id| id.len() <= LONGEST_ID) else {
            return;
        };
        let mut known = self.0.lock();
        if known.pages.len() >= MOST_PAGES {
            known.pages.pop_front();
        }
        known.pages.push_back((id, client.clone()));
    }

    /// What a notification is to those whom it is for; nothing when that is nobody.
    pub(crate) fn update(&self, method: &str, params: &RawJson) -> Option<Update> {
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
