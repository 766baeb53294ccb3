//! Events on their way to JavaScript. Any thread adds events. The event loop is woken once and then takes all of them,
//! so a burst of datagrams costs one crossing. The received datagrams of a session wait in one bounded buffer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use crate::runtime::lock;

/// Limit of the datagrams of a session that wait for JavaScript. More datagrams are dropped, as on any path.
const INBOX_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Received datagrams, end to end.
#[derive(Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    pub lengths: Vec<u32>,
}

pub enum Change {
    /// The session carries datagrams of up to `datagram_bytes_max` to a peer at `address`.
    Opened {
        datagram_bytes_max: u32,
        address: Option<IpAddr>,
    },
    /// The session's queue has room again.
    Writable,
    Closed {
        reason: String,
    },
}

/// A session as its congestion control sees it.
#[derive(Clone, Copy)]
pub struct Stats {
    pub rtt: Duration,
    pub sent_packets: u64,
    pub lost_packets: u64,
    pub window_bytes: u64,
}

/// What happened since the last `take`.
#[derive(Default)]
pub struct Pending {
    /// In the order in which they happened, with the session's number.
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
        lock(&self.pending).changes.push((session, change));
        self.wake();
    }

    pub fn received(&self, session: u32, datagram: &[u8]) {
        let mut pending = lock(&self.pending);
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
        std::mem::take(&mut *lock(&self.pending))
    }

    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }
}
