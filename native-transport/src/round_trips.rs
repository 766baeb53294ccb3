//! What round trips tell of the queue at the bottleneck: it is empty at the lowest of the last seconds, and full at the
//! highest. A round counts by its lowest, which a hiccup of the receiver does not reach. Where packets take now more
//and now less
//! time, as over radio, the mean of a round is far above its lowest, though no queue is there: that is the path's
//spread.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// With no more than this above the lowest the queue is empty.
const EMPTY_SHARE: u32 = 8;
const EMPTY_TIME_MIN: Duration = Duration::from_millis(4);
/// A queue of others is one of this share of the lowest and this time.
const CONTEST_SHARE: f64 = 0.3;
const CONTEST_TIME: Duration = Duration::from_millis(2);
/// The spread is the third quartile of so many rounds: a receiver that pauses in one or two of them is not counted.
/// Rounds of fewer samples tell none.
const SPREAD_ROUNDS: usize = 8;
const SPREAD_SAMPLES_MIN: u32 = 8;
/// The link may be slower than it was.
const QUEUE_MARGIN: f64 = 2.0;
/// Single packets take longer than the mean.
const SPREAD_MARGIN: f64 = 1.5;

/// The round trips of one round, in seconds, in the order they were seen.
#[derive(Clone, Default)]
struct Samples {
    count: u32,
    sum: f64,
    least: f64,
    last: f64,
    /// What they have leapt up by, together, beyond what a queue explains, and come down by.
    leapt: f64,
    fallen: f64,
}

impl Samples {
    /// `fed`: how long the link took for what came with it. A queue makes round trips longer by no more.
    fn add(&mut self, sample: f64, fed: f64) {
        if self.count == 0 {
            (self.least, self.last) = (sample, sample);
        }
        self.leapt += (sample - self.last - QUEUE_MARGIN * fed).max(0.0);
        self.fallen += (self.last - sample).max(0.0);
        self.least = self.least.min(sample);
        self.last = sample;
        self.sum += sample;
        self.count += 1;
    }

    /// By how much their mean is above the lowest, as far as that is no queue: where the link has become slower, they
    /// go up in leaps, too, but do not come down.
    fn spread(&self) -> Option<Duration> {
        let mean = self.sum / f64::from(self.count.max(1));
        (self.count >= SPREAD_SAMPLES_MIN)
            .then(|| Duration::from_secs_f64((mean - self.least).clamp(0.0, self.leapt.min(self.fallen))))
    }
}

#[derive(Clone)]
pub struct RoundTrips {
    /// The lowest, and the highest of the rounds' lowest, in this and the last half of the memory.
    least: [Duration; 2],
    most: [Duration; 2],
    half_since: Instant,
    /// The lowest of this round, and of the one before.
    round: [Duration; 2],
    samples: Samples,
    /// Of the last rounds, how much longer their packets took in the mean than the fastest of them.
    spreads: VecDeque<Duration>,
}

impl RoundTrips {
    pub fn new(now: Instant) -> Self {
        Self {
            least: [Duration::MAX; 2],
            most: [Duration::ZERO; 2],
            half_since: now,
            round: [Duration::MAX; 2],
            samples: Samples::default(),
            spreads: VecDeque::new(),
        }
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

    /// Of the newest packet that an acknowledgement tells of: the others have waited for it at the receiver. `fed`: for
    /// so many seconds what it tells of keeps the link busy.
    pub fn note_newest(&mut self, sample: Duration, fed: f64) {
        self.samples.add(sample.as_secs_f64(), fed);
    }

    /// None until enough have come to tell.
    fn known_spread(&self) -> Option<Duration> {
        if self.spreads.is_empty() {
            return self.samples.spread();
        }
        let mut sorted = Vec::from_iter(self.spreads.iter().copied());
        sorted.sort();
        Some(sorted[(sorted.len() - 1) * 3 / 4])
    }

    /// How much longer than the lowest round trip packets take in the mean, without a queue.
    pub fn spread(&self) -> Duration {
        self.known_spread().unwrap_or(Duration::ZERO)
    }

    pub fn end_round(&mut self) {
        if let Some(spread) = std::mem::take(&mut self.samples).spread() {
            self.spreads.push_back(spread);
            if self.spreads.len() > SPREAD_ROUNDS {
                self.spreads.pop_front();
            }
        }
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

    /// Is this one packet's round trip longer than the path's spread explains?
    pub fn is_queued(&self, round_trip: Duration) -> bool {
        !self.is_empty(round_trip)
            && self.known_spread().is_some_and(|spread| round_trip > self.min() + spread.mul_f64(SPREAD_MARGIN))
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
        if span > 0.0 {
            round_trip.saturating_sub(least).as_secs_f64() / span
        } else {
            0.0
        }
    }
}
