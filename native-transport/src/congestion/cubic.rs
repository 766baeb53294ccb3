//! The window of a TCP flow under Cubic (RFC 9438). A flow that loses and grows as TCP does gets the same share of a
//! link. It counts in TCP's segments, not in our smaller packets. controller.rs decides when to use it.

use std::time::{Duration, Instant};

/// Payload of a TCP segment on Ethernet, in bytes.
const SEGMENT: f64 = 1448.0;
/// Segments per second cubed (RFC 9438 section 4.1).
const SCALING: f64 = 0.4;
/// A loss leaves this share of the window (section 4.6).
const KEPT: f64 = 0.7;
/// Growth per round trip that is fair to Reno (section 4.3).
const FRIENDLY: f64 = 3.0 * (1.0 - KEPT) / (1.0 + KEPT);
const WINDOW_MIN: f64 = 4.0 * SEGMENT;

#[derive(Clone)]
pub struct Cubic {
    /// All in bytes.
    window: f64,
    most: f64,
    friendly: f64,
    epoch: Instant,
    /// Seconds from the epoch until `most` is reached again.
    plateau: f64,
}

impl Cubic {
    /// Continues from a flow's window, in bytes.
    pub fn new(now: Instant, window: u64) -> Self {
        let window = (window as f64).max(WINDOW_MIN);
        Self { window, most: window, friendly: window, epoch: now, plateau: 0.0 }
    }

    pub fn window(&self) -> u64 {
        self.window as u64
    }

    pub fn acked(&mut self, now: Instant, bytes: u64, round_trip: Duration) {
        let share = bytes as f64 / self.window;
        let elapsed = (now.duration_since(self.epoch) + round_trip).as_secs_f64() - self.plateau;
        let target = SCALING * elapsed.powi(3) * SEGMENT + self.most;
        self.friendly += FRIENDLY * SEGMENT * share;
        let growth = (target.max(self.friendly) - self.window).clamp(0.0, 0.5 * self.window);
        self.window += growth * share.min(1.0);
    }

    /// The time in which the sender had too little to send does not count.
    pub fn paused(&mut self, time: Duration) {
        self.epoch += time;
    }

    /// Packets were lost. Call it at most once per round trip.
    pub fn cut(&mut self, now: Instant) {
        // A flow that has less than before makes room for other flows (section 4.7).
        self.most = if self.window < self.most { self.window * (1.0 + KEPT) / 2.0 } else { self.window };
        self.window = (self.window * KEPT).max(WINDOW_MIN);
        self.friendly = self.window;
        self.plateau = ((self.most - self.window).max(0.0) / SEGMENT / SCALING).cbrt();
        self.epoch = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges one window per round trip of 40 ms. Returns the time afterwards.
    fn run(cubic: &mut Cubic, from: Instant, seconds: f64) -> Instant {
        let mut now = from;
        let round_trip = Duration::from_millis(40);
        while now < from + Duration::from_secs_f64(seconds) {
            now += round_trip;
            cubic.acked(now, cubic.window(), round_trip);
        }
        now
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_the_window_recovers_after_the_plateau_time() {
        let start = Instant::now();
        let mut cubic = Cubic::new(start, 300 * SEGMENT as u64);
        let lost_at = start + Duration::from_millis(100);
        cubic.cut(lost_at);
        assert_eq!(cubic.window(), (210.0 * SEGMENT) as u64);
        // RFC 9438 figure 2: K = cbrt(300 x 0.3 / 0.4) = 6.08 s.
        run(&mut cubic, lost_at, 6.1);
        assert!((295.0..305.0).contains(&(cubic.window() as f64 / SEGMENT)), "{}", cubic.window() as f64 / SEGMENT);
    }

    #[test]
    fn a_small_window_grows_as_a_window_of_reno() {
        let start = Instant::now();
        let mut cubic = Cubic::new(start, 20 * SEGMENT as u64);
        cubic.cut(start);
        run(&mut cubic, start, 0.4);
        let grown = cubic.window() as f64 / SEGMENT - 14.0;
        assert!((4.0..7.5).contains(&grown), "{grown}");
    }

    #[test]
    fn a_flow_that_has_less_than_before_makes_room() {
        let start = Instant::now();
        let mut cubic = Cubic::new(start, 100 * SEGMENT as u64);
        for round in 1..=2 {
            let at = start + Duration::from_secs(round);
            cubic.cut(at);
        }
        assert!(cubic.most < 70.0 * SEGMENT);
    }
}
