//! The threads that all endpoints of the process share, and locks that survive a panic.

use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::available_parallelism;

use tokio::runtime::Runtime;

/// A second thread helps only with a third processor. Node's own thread uses one processor, and two threads on one
/// other processor would wake each other for each packet.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let processors = available_parallelism().map_or(1, NonZero::get);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(if processors > 2 { 2 } else { 1 })
            .thread_name("transport")
            .enable_all()
            .build()
            .expect("threads can be started")
    })
}

/// Takes the value as it is when a task panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
