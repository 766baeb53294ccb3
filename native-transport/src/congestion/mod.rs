//! Congestion control for coded datagrams, shared by WebTransport (through quinn's `Controller`) and by WebRTC (through
//! our SCTP). It takes times and byte counts and gives a window. It knows no sockets and keeps no clock.
//! Design and measurements: docs/adr/0006-delivery-rate-window.md.

mod controller;
mod cubic;
mod gathering;
mod rate;
mod rivals;
mod round_trips;

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller, ControllerFactory};

pub use controller::DeliveryController;

/// Receivers of QUIC gather acknowledgements for this time.
pub const ACK_TIME: Duration = Duration::from_millis(4);
/// A packet counts as lost when a later packet has arrived and this many round trips have passed since it was sent. The
/// number of packets that overtook it does not matter, because some paths reorder packets. A packet that counts as lost
/// too early adds nothing to the delivery rate and leaves the window too early.
pub const LOST_AFTER_ROUND_TRIPS: f32 = 1.25;
/// QUIC and SCTP send this many windows per smoothed round trip. Pacing is faster than the window, so that the window
/// is the limit.
pub const PACING: f64 = 1.25;

/// What one connection has learned about a path. The next connection on it starts from there (RFC 9002 section 6.2.2,
/// and the idea of draft-ietf-tsvwg-careful-resume).
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub round_trip: Duration,
    /// Bandwidth-delay product, in bytes.
    pub product: u64,
}

/// Makes a controller for each connection of quinn.
#[derive(Default)]
pub struct DeliveryConfig {
    pub path: Option<Path>,
}

impl ControllerFactory for DeliveryConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mut controller = DeliveryController::new(now, current_mtu, ACK_TIME);
        if let Some(path) = self.path {
            controller.resume(path);
        }
        Box::new(controller)
    }
}
