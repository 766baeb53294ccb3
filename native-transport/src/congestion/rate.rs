//! Samples a path's delivery rate from acknowledgements (draft-cheng-iccrg-delivery-rate-estimation) and keeps the
//! highest rate of the last rounds. It sets no window: that is controller.rs.

use std::collections::VecDeque;
use std::time::Instant;

/// A rate sample counts for this many rounds.
const RATE_ROUNDS: u64 = 8;
/// The sampler remembers this many packets in flight.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// What was known when a packet was sent.
#[derive(Clone, Copy)]
pub struct Sending {
    pub sent: Instant,
    /// Bytes delivered by then.
    pub delivered: u64,
    /// When the last of those bytes was acknowledged, and when it had been sent.
    delivered_at: Instant,
    first_sent: Instant,
}

/// The maximum over the last rounds.
#[derive(Clone, Default)]
struct RateFilter {
    samples: VecDeque<(u64, f64)>,
}

impl RateFilter {
    fn add(&mut self, round: u64, rate: f64) {
        while self.samples.back().is_some_and(|&(_, older)| older <= rate) {
            self.samples.pop_back();
        }
        self.samples.push_back((round, rate));
        while self.samples.front().is_some_and(|&(then, _)| then + RATE_ROUNDS < round) {
            self.samples.pop_front();
        }
    }

    fn max(&self) -> f64 {
        self.samples.front().map_or(0.0, |&(_, rate)| rate)
    }
}

#[derive(Clone)]
pub struct RateSampler {
    sendings: VecDeque<Sending>,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    newest_acked: Option<Sending>,
    filter: RateFilter,
}

impl RateSampler {
    pub fn new(now: Instant) -> Self {
        Self {
            sendings: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            first_sent: now,
            newest_acked: None,
            filter: RateFilter::default(),
        }
    }

    /// Bytes acknowledged since the start.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    pub fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// The highest rate of the last rounds, in bytes per second.
    pub fn max(&self) -> f64 {
        self.filter.max()
    }

    /// True when no packet is in flight.
    pub fn is_idle(&self) -> bool {
        self.sendings.is_empty()
    }

    /// Sending starts again after an idle time, which does not count.
    pub fn resume(&mut self, now: Instant) {
        (self.delivered_at, self.first_sent) = (now, now);
    }

    pub fn note_sent(&mut self, now: Instant) {
        let Self { delivered, delivered_at, first_sent, .. } = *self;
        self.sendings.push_back(Sending { sent: now, delivered, delivered_at, first_sent });
        if self.sendings.len() > IN_FLIGHT_MAX {
            self.sendings.pop_front();
        }
    }

    pub fn note_acked(&mut self, sent: Instant, bytes: u64) {
        self.delivered += bytes;
        let from = self.sendings.partition_point(|sending| sending.sent < sent);
        let is_newest = self.newest_acked.is_none_or(|newest| sent >= newest.sent);
        match self.sendings.get(from) {
            Some(&packet) if packet.sent == sent && is_newest => self.newest_acked = Some(packet),
            _ => (),
        }
    }

    /// The newest packet that was acknowledged since the last call.
    pub fn take_newest(&mut self) -> Option<Sending> {
        self.newest_acked.take()
    }

    /// Samples the rate between the sending of the newest acknowledged packet and now.
    pub fn sample(&mut self, now: Instant, packet: Sending, round: u64, app_limited: bool) {
        self.delivered_at = now;
        self.first_sent = packet.sent;
        let acked_in = now.duration_since(packet.delivered_at);
        let sent_in = packet.sent.duration_since(packet.first_sent);
        let interval = acked_in.max(sent_in).as_secs_f64();
        if interval <= 0.0 {
            return;
        }
        let rate = (self.delivered - packet.delivered) as f64 / interval;
        // A sender that has too little to send sees less than the path can carry.
        if !app_limited || rate > self.filter.max() {
            self.filter.add(round, rate);
        }
    }

    /// Packets sent up to `sent` are acknowledged or lost. `in_flight`: bytes that remain.
    pub fn forget_sent_until(&mut self, sent: Instant, in_flight: u64) {
        let gone = self.sendings.partition_point(|sending| sending.sent <= sent);
        self.sendings.drain(..gone);
        if in_flight == 0 {
            self.sendings.clear();
        }
    }

    pub fn forget_rates(&mut self) {
        self.filter = RateFilter::default();
    }
}
