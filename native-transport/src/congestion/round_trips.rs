//! What round trips show about the queue at the bottleneck. The queue is empty at the lowest round trip of the last
//! seconds and full at the highest. The lowest round trip of a round represents the round, because a short pause of the
//! receiver does not change it. On some paths, such as radio, round trips vary without a queue. The mean of a round is
//! then far above its lowest: this difference is the path's spread.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The queue is empty when a round trip exceeds the lowest one by no more than this share and this time.
const EMPTY_SHARE: u32 = 8;
const EMPTY_TIME_MIN: Duration = Duration::from_millis(4);
/// Rivals have filled the queue when a round trip exceeds the lowest one by more than this share and this time
/// together.
const CONTEST_SHARE: f64 = 0.3;
const CONTEST_TIME: Duration = Duration::from_millis(2);
/// The spread is the third quartile of this many rounds, so pauses of the receiver in one or two rounds do not count.
const SPREAD_ROUNDS: usize = 8;
/// A round of fewer samples shows no spread.
const SPREAD_SAMPLES_MIN: u32 = 8;
/// A queue explains a rise of this many times `fed`, because the link may have become slower.
const QUEUE_MARGIN: f64 = 2.0;
/// A single packet takes longer than the mean.
const SPREAD_MARGIN: f64 = 1.5;

/// The round trips of one round, in seconds, in the order in which they were seen.
#[derive(Clone, Default)]
struct Samples {
    count: u32,
    sum: f64,
    least: f64,
    last: f64,
    /// The sum of their rises beyond what a queue explains, and the sum of their falls.
    risen: f64,
    fallen: f64,
}

impl Samples {
    /// `fed`: the link needed this many seconds for the bytes that came with the sample. A queue makes a round trip
    /// longer by no more than that.
    fn add(&mut self, sample: f64, fed: f64) {
        if self.count == 0 {
            (self.least, self.last) = (sample, sample);
        }
        self.risen += (sample - self.last - QUEUE_MARGIN * fed).max(0.0);
        self.fallen += (self.last - sample).max(0.0);
        self.least = self.least.min(sample);
        self.last = sample;
        self.sum += sample;
        self.count += 1;
    }

    /// How far the mean is above the lowest without a queue. Round trips also rise when the link becomes slower, but
    /// then they do not fall.
    fn spread(&self) -> Option<Duration> {
        let mean = self.sum / f64::from(self.count.max(1));
        (self.count >= SPREAD_SAMPLES_MIN)
            .then(|| Duration::from_secs_f64((mean - self.least).clamp(0.0, self.risen.min(self.fallen))))
    }
}

#[derive(Clone)]
pub struct RoundTrips {
    /// The lowest round trip, and the highest of the rounds' lowest ones. Each covers this half of the memory and the
    /// half before.
    least: [Duration; 2],
    most: [Duration; 2],
    half_since: Instant,
    /// The lowest round trip of this round and of the round before.
    round: [Duration; 2],
    samples: Samples,
    /// The spreads of the last rounds.
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

    /// Takes the round trip of the newest packet in an acknowledgement. The other packets waited for it at the
    /// receiver. `fed`: the acknowledged bytes keep the link busy for this many seconds.
    pub fn note_newest(&mut self, sample: Duration, fed: f64) {
        self.samples.add(sample.as_secs_f64(), fed);
    }

    /// None until there are enough samples.
    fn known_spread(&self) -> Option<Duration> {
        if self.spreads.is_empty() {
            return self.samples.spread();
        }
        let mut sorted = Vec::from_iter(self.spreads.iter().copied());
        sorted.sort();
        Some(sorted[(sorted.len() - 1) * 3 / 4])
    }

    /// How much longer than the lowest round trip a packet takes on average without a queue.
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

    /// True when this packet's round trip is longer than the path's spread explains.
    pub fn is_queued(&self, round_trip: Duration) -> bool {
        !self.is_empty(round_trip)
            && self.known_spread().is_some_and(|spread| round_trip > self.min() + spread.mul_f64(SPREAD_MARGIN))
    }

    /// True when this round trip shows a longer queue than our flow alone makes.
    pub fn is_contested(&self, round_trip: Duration) -> bool {
        let least = self.min();
        round_trip > least + least.mul_f64(CONTEST_SHARE) + CONTEST_TIME
    }

    /// The queue's level: 0 at the lowest round trip, 1 at the highest of the last rounds.
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
