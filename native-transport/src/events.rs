//! Events on their way to JavaScript. Any thread adds; the event loop is woken once and then takes all there is, so
//that a
//! burst of datagrams costs one crossing. What a session has received waits in one buffer with a bound.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Datagrams of a session that wait for JavaScript; what comes beyond it is dropped, as on any path.
const INBOX_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Received datagrams, end to end.
#[derive(Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    pub lengths: Vec<u32>,
}

pub enum Change {
    /// A session is there; the largest datagram it carries.
    Opened {
        datagram_bytes_max: u32,
    },
    /// The session's queue has become short.
    Writable,
    Closed {
        reason: String,
    },
}

/// Of a session, as its congestion control sees it.
#[derive(Clone, Copy)]
pub struct Stats {
    pub rtt: Duration,
    pub sent_packets: u64,
    pub lost_packets: u64,
    pub window_bytes: u64,
}

/// What happened since the last `take`: changes in their order, then what was received.
#[derive(Default)]
pub struct Pending {
    pub changes: Vec<(u32, Change)>,
    pub received: HashMap<u32, Batch>,
}

pub struct Events {
    pending: Mutex<Pending>,
    woken: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Events {
    /// `wake` is called from any thread, at most once between two calls of `take`.
    pub fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { pending: Mutex::default(), woken: AtomicBool::new(false), wake }
    }

    pub fn change(&self, session: u32, change: Change) {
        self.lock().changes.push((session, change));
        self.wake();
    }

    pub fn received(&self, session: u32, datagram: &[u8]) {
        let mut pending = self.lock();
        let batch = pending.received.entry(session).or_default();
        if batch.bytes.len() + datagram.len() > INBOX_BYTES_MAX {
            return;
        }
        batch.bytes.extend_from_slice(datagram);
        batch.lengths.push(datagram.len() as u32);
        drop(pending);
        self.wake();
    }

    pub fn take(&self) -> Pending {
        self.woken.store(false, Ordering::Release);
        std::mem::take(&mut *self.lock())
    }

    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
