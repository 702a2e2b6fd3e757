use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
    time::Duration,
};

use mcp_client::{ChangeCounts, ListResult, OnStatus, ServerState};
use parking_lot::Mutex;
use tokio::{
    join,
    sync::watch,
    time::{Instant, timeout},
};
use tool_core::{Feature, hide_credentials};

use crate::{
    ServerSettings,
    connections::Connections,
    describe::describe,
    freshness::Freshness,
    line::Line,
    listing,
    own_lists::{Entry, OwnLists, entries},
    pace::{Pace, at},
    pool::Client,
};

/// The lists of one client's own connection, as far as they were read.
pub(crate) struct OwnListing {
    /// The state of the connection.
    states: watch::Sender<ServerState>,
    /// How many of the changes that the server told were followed by a reading of the list; `None` before the first.
    read: watch::Sender<Option<ChangeCounts>>,
    entries: Mutex<Option<Arc<HashSet<Entry>>>>,
}

/// How long a request waits for lists that are being read again.
const LONGEST_REFRESH: Duration = Duration::from_secs(2);

impl OwnListing {
    pub(crate) fn new() -> Self {
        Self {
            states: watch::Sender::new(ServerState::NotStarted),
            read: watch::Sender::default(),
            entries: Mutex::default(),
        }
    }

    /// The listener that tells it of the state of its connection.
    pub(crate) fn on_status(&self) -> OnStatus {
        let states = self.states.clone();
        OnStatus::new(move |status| {
            states.send_replace(status.state);
        })
    }

    /// Returns `true` if the connection is known to list this.
    pub(crate) fn has(&self, entry: &Entry) -> bool {
        let entries = self.entries.lock();
        entries.as_ref().is_some_and(|entries| entries.contains(entry))
    }

    /// Waits until every list has been read again that the server has said to have changed.
    pub(crate) async fn refreshed(&self, line: &Line) {
        let told = *line.upstream.changes().borrow();
        let has_read = |read: &Option<ChangeCounts>| {
            read.is_some_and(|read| {
                read.tools >= told.tools && read.prompts >= told.prompts && read.resources >= told.resources
            })
        };
        let (mut read, mut states) = (self.read.subscribe(), self.states.subscribe());
        let waited = timeout(LONGEST_REFRESH, async {
            tokio::select! {
                _ = read.wait_for(has_read) => {}
                _ = states.wait_for(|state| *state != ServerState::Ready) => {}
            }
        });
        if waited.await.is_err() {
            tracing::debug!("the lists of a client's own connection are not read in time");
        }
    }

    fn set_entries(&self, entries: Option<HashSet<Entry>>) {
        let entries = entries.map(Arc::new);
        *self.entries.lock() = entries;
    }

    /// Notes that these lists were read after so many changes.
    fn note_read(&self, features: &[Feature], counted: ChangeCounts) {
        self.read.send_modify(|read| {
            let read = read.get_or_insert_default();
            for feature in features {
                match feature {
                    Feature::Tool => read.tools = counted.tools,
                    Feature::Prompt => read.prompts = counted.prompts,
                    _ => read.resources = counted.resources,
                }
            }
        });
    }
}

/// Reads the lists of one client's own connection whenever it is opened, and whenever the server says that they changed.
pub(crate) struct OwnListReader {
    pub(crate) settings: Arc<ServerSettings>,
    pub(crate) lists: Arc<OwnLists>,
    pub(crate) connections: Weak<Connections>,
    pub(crate) client: Client,
    /// Weak: the reader keeps no connection open.
    pub(crate) line: Weak<Line>,
    /// The order in which the connection was opened.
    pub(crate) number: u64,
}

impl OwnListReader {
    /// Reads until the connection is closed for good.
    pub(crate) async fn run(self) {
        let Some(mut states) = self.line.upgrade().map(|line| line.listing.states.subscribe()) else {
            return;
        };
        self.lists.announce(&self.client);
        let is_settled = |state: &ServerState| matches!(state, ServerState::Ready | ServerState::Stopped);
        while let Ok(ServerState::Ready) = states.wait_for(is_settled).await.map(|state| *state) {
            tokio::select! {
                ((), ()) = async { join!(self.follow(), self.resume_news()) } => {}
                _ = states.wait_for(|state| *state != ServerState::Ready) => {}
            }
            self.end();
        }
        self.end();
    }

    /// Forgets the lists of a connection that has ended: whoever starts the server again finds out what it offers then.
    fn end(&self) {
        if let Some(line) = self.line.upgrade() {
            line.listing.set_entries(None);
            line.listing.read.send_replace(None);
        }
        self.lists.end(&self.client, self.number);
        if let Some(connections) = self.connections.upgrade() {
            connections.own_connection_ended(&self.client);
        }
    }

    /// Asks for the news of resources that the client wants, now and whenever some may have been missed.
    async fn resume_news(&self) {
        let Some(mut changes) = self.line.upgrade().map(|line| line.upstream.changes()) else {
            return;
        };
        loop {
            let gaps = changes.borrow_and_update().gaps;
            let connection = self.line.upgrade().and_then(|line| line.upstream.ready());
            if let (Some(connection), Some(connections)) = (connection, self.connections.upgrade()) {
                connections.resume_news(&self.client, &connection).await;
            }
            if changes.wait_for(|now| now.gaps != gaps).await.is_err() {
                return;
            }
        }
    }

    /// Reads the lists of an open connection. Ends only with the connection.
    async fn follow(&self) {
        let Some(mut changes) = self.line.upgrade().map(|line| line.upstream.changes()) else {
            return;
        };
        let mut seen = *changes.borrow_and_update();
        let (mut pace, mut freshness) = (Pace::unread(), Freshness::default());
        let unread = self.read(&Feature::ALL, seen, &mut freshness).await;
        for feature in unread {
            pace.failed(feature, Instant::now());
        }
        loop {
            let now = *changes.borrow_and_update();
            for feature in listing::changed(seen, now) {
                pace.changed(feature, Instant::now());
            }
            seen = now;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
                () = at([pace.next(), freshness.next()].into_iter().flatten().min()) => {
                    let mut due = pace.take_due(Instant::now());
                    for feature in freshness.take_due(Instant::now()) {
                        if !due.contains(&feature) {
                            due.push(feature);
                        }
                    }
                    let counted = *changes.borrow();
                    let unread = self.read(&due, counted, &mut freshness).await;
                    pace.tried(&due, &unread, Instant::now());
                }
            }
        }
    }

    /// Reads these lists, after so many changes, and returns those that could not be read.
    async fn read(&self, features: &[Feature], counted: ChangeCounts, freshness: &mut Freshness) -> Vec<Feature> {
        let connection = self.line.upgrade().and_then(|line| line.upstream.ready());
        let Some(connection) = connection else {
            return features.to_vec();
        };
        let (mut lists, mut unread) = (HashMap::new(), Vec::new());
        let (settings, server) = (&*self.settings, connection.server());
        let limit = settings.start_timeout;
        let limits = &settings.list_limits;
        for (feature, list) in listing::read(&connection, features, limits, |_| limit).await {
            match list {
                Ok(ListResult {
                    entries, ttl, truncation: cut, ..
                }) => {
                    freshness.read(server, feature, ttl, settings.refresh_interval);
                    let mut described = describe(settings, server, feature, &entries);
                    described
                        .warnings
                        .extend(cut.map(|cut| listing::cut_warning(feature, cut, limits)));
                    lists.insert(feature, described);
                }
                Err(reason) => {
                    let (server, what) = (&settings.name, feature.as_str());
                    let reason = hide_credentials(&reason);
                    tracing::warn!(
                        server,
                        "the list of {what}s of a client's own connection cannot be read: {reason}"
                    );
                    unread.push(feature);
                }
            }
        }
        let read = self.lists.publish(&self.client, self.number, lists);
        if let Some(line) = self.line.upgrade() {
            line.listing.set_entries(Some(entries(&read)));
            line.listing.note_read(features, counted);
            // Calls may wait for a connection that is known to list what they call.
            line.calls.tell_free();
        }
        unread
    }
}
