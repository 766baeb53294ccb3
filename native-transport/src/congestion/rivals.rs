//! Finds out from losses and from the queue which other flows are on the link. It sets no window: that is
//! controller.rs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::cubic::Cubic;

#[derive(Clone)]
pub enum Rivals {
    None,
    /// Flows of TCP, or flows that behave like TCP. Our flow then behaves like TCP too.
    Fair {
        cubic: Cubic,
        used_at: Instant,
    },
    /// Flows that ignore losses, such as BBR with a short queue. `window` is in bytes.
    Deaf {
        window: f64,
    },
}

/// A stretch has this many packets. The path's random loss is the lowest share of the last stretches. Losses in a queue
/// come in bursts, so one stretch has none of them. Random losses are in every stretch.
const STRETCH_PACKETS: f64 = 200.0;
const STRETCHES: usize = 5;
const CHANCE_MAX: f64 = 0.04;
/// The share that is assumed until the first stretch is complete. Otherwise one loss in a round would count as a
/// rival's.
const CHANCE_SUPPOSED: f64 = 0.02;
/// The assumption ends after this many packets.
const SUPPOSED_PACKETS: f64 = 500.0;
/// Losses in a round with a queue come from the queue when they exceed the random losses by this factor.
const CHANCE_FACTOR: f64 = 3.0;

/// The losses that the path has without a queue.
#[derive(Clone, Default)]
pub struct Chance {
    seen_packets: f64,
    packets: f64,
    lost: f64,
    shares: VecDeque<f64>,
}

impl Chance {
    /// Takes a round. `is_empty`: there was no queue.
    pub fn note(&mut self, packets: f64, lost: f64, is_empty: bool) {
        self.seen_packets += packets;
        if !is_empty {
            return;
        }
        self.packets += packets;
        self.lost += lost;
        if self.packets < STRETCH_PACKETS {
            return;
        }
        self.shares.push_back(self.lost / self.packets);
        if self.shares.len() > STRETCHES {
            self.shares.pop_front();
        }
        (self.packets, self.lost) = (0.0, 0.0);
    }

    /// The share of packets that is lost at random. 0 until a stretch is complete.
    pub fn share(&self) -> f64 {
        self.shares.iter().copied().reduce(f64::min).unwrap_or(0.0).min(CHANCE_MAX)
    }

    /// True when random losses explain the losses of a round.
    pub fn explains(&self, packets: f64, lost: f64) -> bool {
        let is_unknown = self.shares.is_empty() && self.seen_packets < SUPPOSED_PACKETS;
        let share = if is_unknown { CHANCE_SUPPOSED } else { self.share() };
        lost <= CHANCE_FACTOR * share * packets
    }
}

/// Beside flows that respect losses, the lost share stays below this.
const HARM_SHARE: f64 = 0.03;
/// Once rivals have been recognised, they count as present down to this share.
const HARM_SHARE_LEFT: f64 = 0.015;
/// The lost share is a moving average over about this many packets.
const HARM_PACKETS: f64 = 400.0;
/// The levels of a queue that is neither full nor empty.
const HALF_FULL: std::ops::Range<f64> = 0.2..0.6;
/// A higher share of rounds at these levels shows flows that yield one after another.
const HALF_FULL_SHARE: f64 = 0.11;
/// That share is a moving average over about this many rounds.
const HALF_FULL_ROUNDS: f64 = 64.0;
/// BBR empties the queue for 200 ms every ten seconds to measure the round trip, so this many rounds in a row are
/// empty. A crowd of flows that yield together may empty it for one round.
const EMPTIED_ROUNDS: u32 = 3;
const EMPTIED_MEMORY: Duration = Duration::from_secs(12);

/// The signs of rivals that ignore losses. Many packets are lost although our flow yields. The queue is full, or
/// suddenly empty while the rivals measure, but seldom in between. And it does become empty, which does not happen with
/// a crowd.
#[derive(Clone)]
pub struct Signs {
    packets: f64,
    lost: f64,
    half_full: f64,
    empty_rounds: u32,
    emptied_at: Option<Instant>,
}

impl Signs {
    pub fn new() -> Self {
        Self { packets: 0.0, lost: 0.0, half_full: 2.0 * HALF_FULL_SHARE, empty_rounds: 0, emptied_at: None }
    }

    /// Takes a round. `level`: the queue's level. `is_empty`: there was no queue. `None`: our own flow drained it.
    pub fn note(&mut self, now: Instant, packets: f64, lost: f64, level: f64, is_empty: Option<bool>) {
        let kept = (1.0 - 1.0 / HARM_PACKETS).powf(packets);
        self.packets = self.packets * kept + packets;
        self.lost = self.lost * kept + lost;
        self.half_full += (f64::from(u8::from(HALF_FULL.contains(&level))) - self.half_full) / HALF_FULL_ROUNDS;
        match is_empty {
            Some(true) => self.empty_rounds += 1,
            Some(false) => self.empty_rounds = 0,
            None => (),
        }
        if self.empty_rounds >= EMPTIED_ROUNDS {
            self.emptied_at = Some(now);
        }
    }

    fn loses(&self, share: f64) -> bool {
        self.packets > HARM_PACKETS / 2.0 && self.lost > share * self.packets
    }

    fn has_emptied(&self, now: Instant) -> bool {
        self.emptied_at.is_some_and(|at| now.duration_since(at) < EMPTIED_MEMORY)
    }

    pub fn are_deaf(&self, now: Instant, chance: f64) -> bool {
        self.loses(HARM_SHARE + chance) && self.half_full < HALF_FULL_SHARE && self.has_emptied(now)
    }

    pub fn are_still_deaf(&self, now: Instant, chance: f64) -> bool {
        self.loses(HARM_SHARE_LEFT + chance) && self.has_emptied(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_losses_are_chance_and_bursts_are_not() {
        let (mut random, mut bursts) = (Chance::default(), Chance::default());
        for round in 0..100 {
            random.note(30.0, if round % 10 == 9 { 0.0 } else { 1.0 }, true);
            bursts.note(30.0, if round % 10 == 9 { 9.0 } else { 0.0 }, true);
        }
        assert!((0.025..0.035).contains(&random.share()), "{}", random.share());
        assert_eq!(bursts.share(), 0.0);
        let mut unknown = Chance::default();
        unknown.note(460.0, 10.0, false);
        assert!(unknown.explains(46.0, 2.0) && !unknown.explains(46.0, 3.0));
        unknown.note(46.0, 1.0, false);
        assert!(!unknown.explains(46.0, 1.0), "the assumption counts only for the first packets");
        assert!(random.explains(30.0, 2.0) && !random.explains(30.0, 4.0) && !bursts.explains(30.0, 1.0));
    }

    /// 200 rounds of 40 packets that lose two packets each, with the queue at these levels in turn. The queue was empty
    /// in the first `emptied_rounds`.
    fn after(emptied_rounds: usize, levels: &[f64]) -> (Signs, Instant) {
        let (mut signs, start) = (Signs::new(), Instant::now());
        for round in 0..200 {
            signs.note(start, 40.0, 2.0, levels[round % levels.len()], Some(round < emptied_rounds));
        }
        (signs, start)
    }

    #[test]
    fn only_a_queue_that_is_full_or_empty_shows_rivals_that_ignore_losses() {
        let (signs, now) = after(3, &[0.9, 0.95, 1.0]);
        assert!(signs.are_deaf(now, 0.0));
        assert!(!signs.are_deaf(now, 0.03), "random losses explain it");
        assert!(
            !signs.are_deaf(now + EMPTIED_MEMORY, 0.0) && !signs.are_still_deaf(now + EMPTIED_MEMORY, 0.0),
            "it never empties"
        );
        let (signs, now) = after(3, &[0.9, 0.95, 1.0, 0.4, 0.7]);
        assert!(!signs.are_deaf(now, 0.0), "it is half full at times");
        let (signs, now) = after(2, &[0.9, 0.95, 1.0]);
        assert!(!signs.are_deaf(now, 0.0), "it was empty for a moment");
    }
}
