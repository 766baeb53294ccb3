//! One WebTransport session. It takes batches of datagrams into a short queue, moves them to QUIC when the congestion
//! window allows, and hands received datagrams to `Events`. It opens no connection: that is server.rs and client.rs.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;
use wtransport::quinn;

use super::http3::Connection;
use crate::congestion::{DeliveryController, Path};
use crate::events::{Change, Events, Stats};
use crate::room::Room;

/// QUIC's own queue behind ours holds the bytes of this time at the present rate. Datagrams there cannot be recalled.
const QUIC_QUEUE_TIME: Duration = Duration::from_millis(2);
const QUIC_QUEUE_BYTES_MIN: usize = 4 * 1024;
/// The length that QUIC is configured for. The share of it that is used follows the rate.
pub const QUIC_QUEUE_BYTES_MAX: usize = 256 * 1024;
/// Time between two looks at QUIC's queue while it is full.
const LOOK_TIME_MIN: Duration = Duration::from_millis(1);
const LOOK_TIME_MAX: Duration = Duration::from_millis(3);
/// The session looks at the rate once per this many datagrams.
const RATE_EVERY: u32 = 32;

pub struct Session {
    pub id: u32,
    connection: Connection,
    queue: mpsc::UnboundedSender<Bytes>,
    room: Room,
    events: Arc<Events>,
}

impl Session {
    /// Announces the session and starts its sending task, which ends with the connection.
    pub fn start(id: u32, connection: Connection, events: Arc<Events>) -> Arc<Self> {
        let (queue, waiting) = mpsc::unbounded_channel();
        let session = Arc::new(Self { id, connection, queue, room: Room::default(), events });
        let datagram_bytes_max = session.connection.message_bytes_max() as u32;
        let address = Some(session.connection.quic().remote_address().ip());
        session.events.change(id, Change::Opened { datagram_bytes_max, address });
        tokio::spawn(Arc::clone(&session).send_queued(waiting));
        session
    }

    /// Queues datagrams that lie end to end in `bytes`. Returns how many more bytes the queue takes: below 0 when it
    /// holds too many. When the result is not above 0, `Writable` follows.
    pub fn send(&self, bytes: &[u8], lengths: &[u32]) -> i64 {
        let prefix = self.connection.prefix();
        let mut batch = BytesMut::with_capacity(bytes.len() + prefix.len() * lengths.len());
        let mut at = 0;
        for &length in lengths {
            let end = (at + length as usize).min(bytes.len());
            batch.put_slice(prefix);
            batch.put_slice(&bytes[at..end]);
            at = end;
        }
        self.room.add(batch.len());
        let mut batch = batch.freeze();
        for &length in lengths {
            let datagram = batch.split_to((prefix.len() + length as usize).min(batch.len()));
            if let Err(refused) = self.queue.send(datagram) {
                self.room.remove(refused.0.len());
            }
        }
        self.room.left()
    }

    pub fn stats(&self) -> Stats {
        let stats = self.connection.quic().stats();
        Stats {
            rtt: stats.path.rtt,
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            window_bytes: stats.path.cwnd,
        }
    }

    /// What the session has learned about its path. None under quinn's own congestion controllers.
    pub fn path(&self) -> Option<Path> {
        self.connection.quic().congestion_state().into_any().downcast::<DeliveryController>().ok()?.path()
    }

    pub fn close(&self, reason: &str) {
        self.connection.close(reason);
    }

    /// Receives until the connection ends. Returns the reason.
    pub async fn receive(&self) -> String {
        loop {
            match self.connection.receive().await {
                Ok(message) => self.events.received(self.id, &message),
                Err(reason) => return reason,
            }
        }
    }

    async fn send_queued(self: Arc<Self>, mut waiting: mpsc::UnboundedReceiver<Bytes>) {
        let quic = self.connection.quic();
        let mut closed = pin!(quic.closed());
        let mut until_rate = 0;
        let (mut quic_queue_bytes, mut bytes_per_sec) = (QUIC_QUEUE_BYTES_MIN, 0.0);
        loop {
            let datagram = tokio::select! {
                datagram = waiting.recv() => datagram,
                _ = &mut closed => None,
            };
            let Some(datagram) = datagram else { return };
            if until_rate == 0 {
                until_rate = RATE_EVERY;
                (quic_queue_bytes, bytes_per_sec) = self.follow_rate();
            }
            until_rate -= 1;
            let size = datagram.len();
            loop {
                let queued = QUIC_QUEUE_BYTES_MAX.saturating_sub(quic.datagram_send_buffer_space());
                if queued <= quic_queue_bytes {
                    break;
                }
                tokio::time::sleep(time_of(queued - quic_queue_bytes, bytes_per_sec)).await;
                if quic.close_reason().is_some() {
                    return;
                }
            }
            if let Err(quinn::SendDatagramError::ConnectionLost(_)) = quic.send_datagram(datagram) {
                return;
            }
            if self.room.remove(size) {
                self.events.change(self.id, Change::Writable);
            }
        }
    }

    /// Sets the queue's length by the present rate. Returns how many bytes of QUIC's queue to use, and the rate in
    /// bytes per second.
    fn follow_rate(&self) -> (usize, f64) {
        let stats = self.connection.quic().stats();
        let bytes_per_sec = stats.path.cwnd as f64 / stats.path.rtt.as_secs_f64().max(1e-4);
        self.room.follow(bytes_per_sec);
        let bytes = (bytes_per_sec * QUIC_QUEUE_TIME.as_secs_f64()) as usize;
        (bytes.clamp(QUIC_QUEUE_BYTES_MIN, QUIC_QUEUE_BYTES_MAX / 2), bytes_per_sec)
    }
}

/// The likely time to send these bytes. It is capped, because the rate may rise and QUIC's queue must not run empty.
fn time_of(bytes: usize, bytes_per_sec: f64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / bytes_per_sec.max(1.0)).clamp(LOOK_TIME_MIN, LOOK_TIME_MAX)
}
