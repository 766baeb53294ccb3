//! What round trips tell of the queue at the bottleneck: it is empty at the lowest of the last seconds, and full at the
//! highest. A round counts by its lowest, which a hiccup of the receiver does not reach.

use std::time::{Duration, Instant};

/// With no more than this above the lowest the queue is empty.
const EMPTY_SHARE: u32 = 8;
const EMPTY_TIME_MIN: Duration = Duration::from_millis(4);
/// A queue of others is one of this share of the lowest and this time.
const CONTEST_SHARE: f64 = 0.3;
const CONTEST_TIME: Duration = Duration::from_millis(2);

#[derive(Clone)]
pub struct RoundTrips {
    /// The lowest, and the highest of the rounds' lowest, in this and the last half of the memory.
    least: [Duration; 2],
    most: [Duration; 2],
    half_since: Instant,
    /// The lowest of this round, and of the one before.
    round: [Duration; 2],
}

impl RoundTrips {
    pub fn new(now: Instant) -> Self {
        Self { least: [Duration::MAX; 2], most: [Duration::ZERO; 2], half_since: now, round: [Duration::MAX; 2] }
    }

    pub fn note(&mut self, now: Instant, sample: Duration, memory: Duration) {
        if now.duration_since(self.half_since) > memory / 2 {
            self.least = [Duration::MAX, self.least[0]];
            self.most = [Duration::ZERO, self.most[0]];
            self.half_since = now;
        }
        self.least[0] = self.least[0].min(sample);
        self.round[0] = self.round[0].min(sample);
    }

    pub fn end_round(&mut self) {
        if self.round[0] < Duration::MAX {
            self.most[0] = self.most[0].max(self.round[0]);
        }
        self.round = [Duration::MAX, self.round[0]];
    }

    pub fn min(&self) -> Duration {
        self.least[0].min(self.least[1])
    }

    pub fn of_round(&self) -> Duration {
        self.round[0]
    }

    pub fn of_two_rounds(&self) -> Duration {
        self.round[0].min(self.round[1])
    }

    pub fn is_empty(&self, round_trip: Duration) -> bool {
        let least = self.min();
        round_trip <= least + (least / EMPTY_SHARE).max(EMPTY_TIME_MIN)
    }

    /// Does this round trip show a queue longer than ours alone makes it?
    pub fn is_contested(&self, round_trip: Duration) -> bool {
        let least = self.min();
        round_trip > least + least.mul_f64(CONTEST_SHARE) + CONTEST_TIME
    }

    /// From 0, the lowest, to 1, the highest of the rounds before.
    pub fn level(&self, round_trip: Duration) -> f64 {
        let (least, most) = (self.min(), self.most[0].max(self.most[1]));
        let span = most.saturating_sub(least).as_secs_f64();
        if span > 0.0 { round_trip.saturating_sub(least).as_secs_f64() / span } else { 0.0 }
    }
}
