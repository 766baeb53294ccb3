//! Who else is on the link, as far as losses and the queue tell of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::congestion::Cubic;

#[derive(Clone)]
pub enum Rivals {
    None,
    /// TCP, or who behaves like it: so do we.
    Fair {
        cubic: Cubic,
        used_at: Instant,
    },
    /// They heed no losses, as BBR in a short queue. `window` in bytes.
    Deaf {
        window: f64,
    },
}

/// The share of packets that the path loses when no queue is there: the lowest of so many stretches of so many packets.
/// What others lose in a queue comes in bursts, so that one stretch is without; what a path loses at random is in each.
const STRETCH_PACKETS: f64 = 200.0;
const STRETCHES: usize = 5;
const CHANCE_MAX: f64 = 0.04;
/// Supposed of so many first packets, as long as no stretch is complete: each round would take one loss for a rival's.
const CHANCE_SUPPOSED: f64 = 0.02;
const SUPPOSED_PACKETS: f64 = 500.0;
/// Losses in a round with a queue come from it if they are so many times those of chance.
const CHANCE_FACTOR: f64 = 3.0;

#[derive(Clone, Default)]
pub struct Chance {
    seen_packets: f64,
    packets: f64,
    lost: f64,
    shares: VecDeque<f64>,
}

impl Chance {
    /// A round; `is_empty`: without a queue.
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

    /// 0 as long as nothing is known.
    pub fn share(&self) -> f64 {
        self.shares.iter().copied().reduce(f64::min).unwrap_or(0.0).min(CHANCE_MAX)
    }

    pub fn explains(&self, packets: f64, lost: f64) -> bool {
        let is_unknown = self.shares.is_empty() && self.seen_packets < SUPPOSED_PACKETS;
        let share = if is_unknown { CHANCE_SUPPOSED } else { self.share() };
        lost <= CHANCE_FACTOR * share * packets
    }
}

/// What is lost beside flows that heed losses stays below this share of about so many packets; and above this one it
/// still is what others do.
const HARM_SHARE: f64 = 0.03;
const HARM_SHARE_LEFT: f64 = 0.015;
const HARM_PACKETS: f64 = 400.0;
/// The levels of a queue that is neither full nor empty, and the share of about so many rounds with one of them that
/// shows flows which yield one after another.
const HALF_FULL: std::ops::Range<f64> = 0.2..0.6;
const HALF_FULL_SHARE: f64 = 0.11;
const HALF_FULL_ROUNDS: f64 = 64.0;
/// BBR empties the queue for 200 ms every ten seconds, to measure the round trip: so many rounds one after another are
/// empty. A crowd that yields at once may do so for one.
const EMPTIED_ROUNDS: u32 = 3;
const EMPTIED_MEMORY: Duration = Duration::from_secs(12);

/// Signs of rivals that heed no losses: many are lost although we yield; the queue is full, or at once empty while they
/// measure, but seldom in between; and it does empty, which a crowd of others never lets it.
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

    /// A round of ours, with the queue at this level; `is_empty`: there was none, or `None` where it was ours to drain
    /// it.
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
    fn what_a_path_loses_at_random_is_chance_and_what_comes_in_bursts_is_not() {
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
        assert!(!unknown.explains(46.0, 1.0), "supposed of the first packets only");
        assert!(random.explains(30.0, 2.0) && !random.explains(30.0, 4.0) && !bursts.explains(30.0, 1.0));
    }

    /// 200 rounds of 40 packets, of which two are lost, with the queue at these levels in turn; the first ones it was
    /// empty.
    fn after(emptied_rounds: usize, levels: &[f64]) -> (Signs, Instant) {
        let (mut signs, start) = (Signs::new(), Instant::now());
        for round in 0..200 {
            signs.note(start, 40.0, 2.0, levels[round % levels.len()], Some(round < emptied_rounds));
        }
        (signs, start)
    }

    #[test]
    fn only_a_queue_that_is_full_or_empty_is_of_rivals_that_heed_no_losses() {
        let (signs, now) = after(3, &[0.9, 0.95, 1.0]);
        assert!(signs.are_deaf(now, 0.0));
        assert!(!signs.are_deaf(now, 0.03), "chance takes so many");
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
