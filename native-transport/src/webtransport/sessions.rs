//! The open sessions of a server or a client, by the numbers that JavaScript knows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::http3::Connection;
use super::session::Session;
use crate::congestion::Path;
use crate::events::{Change, Events};
use crate::runtime::lock;

#[derive(Default)]
pub struct Sessions {
    open: Mutex<HashMap<u32, Arc<Session>>>,
    last_id: AtomicU32,
}

impl Sessions {
    pub fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn get(&self, id: u32) -> Option<Arc<Session>> {
        lock(&self.open).get(&id).cloned()
    }

    pub fn count(&self) -> usize {
        lock(&self.open).len()
    }

    pub fn remove(&self, id: u32) {
        lock(&self.open).remove(&id);
    }

    /// Runs a session to its end. `first`: the message that came with the request for the session. Returns what the
    /// session has learned about its path.
    pub async fn run(
        &self,
        id: u32,
        connection: Connection,
        first: Option<Vec<u8>>,
        events: &Arc<Events>,
    ) -> Option<Path> {
        let session = Session::start(id, connection, Arc::clone(events));
        lock(&self.open).insert(id, Arc::clone(&session));
        if let Some(message) = first {
            events.received(id, &message);
        }
        let reason = session.receive().await;
        self.remove(id);
        events.change(id, Change::Closed { reason });
        session.path()
    }
}
