use std::{
    collections::VecDeque,
    mem,
    task::{Context, Poll, Waker},
};

use mcp_wire::method;
use parking_lot::{Mutex, MutexGuard};
use raw_json::RawJson;

/// What a client could not be told at once, since as much waited for it already: of each list, resource and task the
/// latest, in the order in which they were missed. So there is an end to it, however long the client takes.
#[derive(Debug, Default)]
pub(crate) struct Missed(Mutex<Waiting>);

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    notices: VecDeque<Notice>,
    reader: Option<Waker>,
}

/// A notice of which the latest says all that those before it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// That a list has changed, by the name of the notification.
    List(String),
    /// That a resource has changed, by its URI.
    Resource(String),
    /// How a task is, by its id and in the words of the whole message.
    Task(String, Vec<u8>),
}

/// How many resources and how many tasks may wait, which is as many as a client may watch. Of more resources, which are
/// parts of those, each one that the client watches is said to have changed.
const MOST: usize = 1024;
/// The longest URI or id that waits.
const LONGEST: usize = 8 * 1024;

impl Notice {
    /// What a notification says, in `frame` as this client gets it; nothing if it is of another kind.
    pub(crate) fn of(method: &str, params: Option<&RawJson>, frame: &[u8]) -> Option<Self> {
        let about = |key: &str| params?.get(key)?.string();
        match method {
            method::TOOLS_LIST_CHANGED | method::PROMPTS_LIST_CHANGED | method::RESOURCES_LIST_CHANGED => {
                Some(Self::List(method.to_owned()))
            }
            method::RESOURCES_UPDATED => about("uri").map(Self::Resource),
            method::TASKS_CHANGED | method::TASKS_STATUS => {
                about("taskId").map(|id| Self::Task(id, frame.to_vec()))
            }
            _ => None,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(id, _), Self::Task(other, _)) => id == other,
            _ => self == other,
        }
    }

    fn has_room(&self, waiting: &Waiting) -> bool {
        match self {
            // There are few.
            Self::List(_) => true,
            Self::Resource(name) | Self::Task(name, _) => {
                let is_alike = |other: &&Self| mem::discriminant(*other) == mem::discriminant(self);
                name.len() <= LONGEST && waiting.notices.iter().filter(is_alike).count() < MOST
            }
        }
    }
}

impl Missed {
    /// What waits, while nothing can be added or taken.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock()
    }
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.notices.is_empty()
    }

    /// Has a notice wait; `watched` are the resources that the client watches.
    pub(crate) fn add(&mut self, notice: Notice, watched: impl FnOnce() -> Vec<String>) {
        if let Some(before) = self.notices.iter_mut().find(|before| before.is_same(&notice)) {
            *before = notice;
        } else if notice.has_room(self) {
            self.notices.push_back(notice);
        } else if let Notice::Resource(_) = notice {
            for whole in watched().into_iter().map(Notice::Resource) {
                if !self.notices.contains(&whole) {
                    self.notices.push_back(whole);
                }
            }
        }
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// The notice that waits longest.
    pub(crate) fn take(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Waits until there is something to take.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(uri: &str) -> Notice {
        Notice::Resource(uri.to_owned())
    }

    #[test]
    fn of_each_subject_the_latest_waits_in_its_place() {
        let mut waiting = Waiting::default();
        let task = |status: &str| Notice::Task("t".to_owned(), status.into());
        let list = || Notice::List("tools".to_owned());
        for notice in [task("one"), resource("a"), list(), task("two"), resource("a")] {
            waiting.add(notice, Vec::new);
        }
        let mut left = Vec::new();
        while let Some(notice) = waiting.take() {
            left.push(notice);
        }
        assert_eq!(left, [task("two"), resource("a"), list()]);
    }

    #[test]
    fn where_there_is_no_room_each_resource_that_is_watched_has_changed() {
        let mut waiting = Waiting::default();
        let watched = || vec!["box:0".to_owned(), "box".to_owned()];
        for number in 0..5 * MOST {
            waiting.add(resource(&format!("box:{number}")), watched);
        }
        assert_eq!(waiting.notices.len(), MOST + 1);
        assert_eq!(waiting.notices.back(), Some(&resource("box")));
        // A task is told of all the same.
        waiting.add(Notice::Task("t".to_owned(), Vec::new()), watched);
        assert_eq!(waiting.notices.len(), MOST + 2);
        // One with a name that is too long as well.
        let mut waiting = Waiting::default();
        waiting.add(resource(&"x".repeat(LONGEST + 1)), watched);
        assert_eq!(waiting.notices, [resource("box:0"), resource("box")]);
    }
}
