//! Counts the bytes in the queue that JavaScript fills and a session empties. Queued data cannot be recalled, so the
//! queue is kept to a few milliseconds of the present rate. The datagrams themselves are elsewhere.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The queue holds the bytes that the path carries in this time.
const TIME: Duration = Duration::from_millis(8);
const BYTES_MIN: usize = 8 * 1024;
const BYTES_MAX: usize = 512 * 1024;

pub struct Room {
    queued: AtomicUsize,
    most: AtomicUsize,
    /// JavaScript found the queue full and waits for `Writable`.
    blocked: AtomicBool,
}

impl Default for Room {
    fn default() -> Self {
        Self { queued: AtomicUsize::new(0), most: AtomicUsize::new(BYTES_MIN), blocked: AtomicBool::new(false) }
    }
}

impl Room {
    pub fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::AcqRel);
    }

    /// True when JavaScript waits and must be told that there is room again.
    pub fn remove(&self, bytes: usize) -> bool {
        let left = self.queued.fetch_sub(bytes, Ordering::AcqRel) - bytes;
        left * 2 < self.most.load(Ordering::Acquire) && self.blocked.swap(false, Ordering::AcqRel)
    }

    /// How many more bytes the queue takes: below 0 when it holds too many. When the result is not above 0, `remove`
    /// says when there is room again.
    pub fn left(&self) -> i64 {
        let (_, left) = self.look();
        if left > 0 {
            return left;
        }
        self.blocked.store(true, Ordering::Release);
        // The session may have emptied the queue between the two looks, before JavaScript was marked as waiting.
        let (most, left) = self.look();
        if 2 * left > most && self.blocked.swap(false, Ordering::AcqRel) {
            return left;
        }
        left.min(0)
    }

    /// Sets the queue's length by the present rate.
    pub fn follow(&self, bytes_per_sec: f64) {
        let bytes = (bytes_per_sec * TIME.as_secs_f64()) as usize;
        self.most.store(bytes.clamp(BYTES_MIN, BYTES_MAX), Ordering::Release);
    }

    /// The queue's length, and how many more bytes it takes.
    fn look(&self) -> (i64, i64) {
        let most = self.most.load(Ordering::Acquire) as i64;
        (most, most - self.queued.load(Ordering::Acquire) as i64)
    }
}
