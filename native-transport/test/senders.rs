//! Senders on a shared link: the product's controller, and simple models of TCP. The models share a link as the real
//! ones do: Cubic is RFC 9438 without its Reno-friendly region, BBR is version 1
//! (draft-cardwell-iccrg-bbr-congestion-control-00).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quinn_proto::congestion::Controller;

use super::bottleneck::{PACKET, ROUND_TRIP};
use crate::congestion::{DeliveryController, ACK_TIME, LOST_AFTER_ROUND_TRIPS, PACING};

/// Times in seconds, sizes in bytes.
pub trait Sender {
    /// The receiver acknowledges this many packets at once, or those of this many seconds.
    fn gathers(&self) -> (usize, f64) {
        (1, 0.0)
    }
    /// Whether a packet counts as lost after `seconds`, when the packet sent `overtaken` packets later has arrived.
    fn gives_up(&self, _seconds: f64, _round_trip: f64, overtaken: usize) -> bool {
        overtaken >= 3
    }
    fn window(&self) -> f64;
    fn pacing(&self, smoothed: f64) -> f64;
    fn sent(&mut self, now: f64);
    /// `sent`: when the packets that arrived were sent.
    fn acked(&mut self, now: f64, sent: &[f64], in_flight: f64);
    fn lost(&mut self, now: f64, sent: f64);
}

struct Ours {
    controller: DeliveryController,
    start: Instant,
    gathers: (usize, f64),
}

impl Ours {
    fn at(&self, time: f64) -> Instant {
        self.start + Duration::from_secs_f64(time)
    }
}

impl Sender for Ours {
    fn gathers(&self) -> (usize, f64) {
        self.gathers
    }

    fn gives_up(&self, seconds: f64, round_trip: f64, _overtaken: usize) -> bool {
        seconds > f64::from(LOST_AFTER_ROUND_TRIPS) * round_trip
    }

    fn window(&self) -> f64 {
        self.controller.window() as f64
    }

    fn pacing(&self, smoothed: f64) -> f64 {
        PACING * self.window() / smoothed
    }

    fn sent(&mut self, now: f64) {
        self.controller.on_sent(self.at(now), PACKET as u64, 0);
    }

    fn acked(&mut self, now: f64, sent: &[f64], in_flight: f64) {
        for &time in sent {
            self.controller.acked(self.at(now), self.at(time), PACKET as u64);
        }
        self.controller.on_end_acks(self.at(now), in_flight as u64, false, None);
    }

    fn lost(&mut self, now: f64, sent: f64) {
        self.controller.on_congestion_event(self.at(now), self.at(sent), false, PACKET as u64);
    }
}

struct Cubic {
    window: f64,
    threshold: f64,
    most: f64,
    epoch: f64,
}

impl Sender for Cubic {
    fn window(&self) -> f64 {
        self.window * PACKET
    }

    fn pacing(&self, smoothed: f64) -> f64 {
        2.0 * self.window() / smoothed
    }

    fn sent(&mut self, _now: f64) {}

    fn acked(&mut self, now: f64, sent: &[f64], _in_flight: f64) {
        for _ in sent {
            if self.window < self.threshold {
                self.window += 1.0;
                continue;
            }
            let back = (self.most * 0.3 / 0.4).cbrt();
            let target = 0.4 * (now + ROUND_TRIP - self.epoch - back).powi(3) + self.most;
            self.window += (target - self.window).clamp(0.01, 0.5 * self.window) / self.window;
        }
    }

    fn lost(&mut self, now: f64, sent: f64) {
        if sent < self.epoch {
            return;
        }
        self.most = self.window;
        self.window = (self.window * 0.7).max(2.0);
        (self.threshold, self.epoch) = (self.window, now);
    }
}

struct Bbr {
    /// For each packet: when it was sent, the bytes delivered by then, and when those were delivered.
    flights: VecDeque<(f64, f64, f64)>,
    delivered: f64,
    delivered_at: f64,
    rates: VecDeque<(u64, f64)>,
    round: u64,
    round_end: f64,
    least: f64,
    least_at: f64,
    probe_until: f64,
    phase: usize,
    phase_at: f64,
    full: (f64, u32),
    startup: bool,
}

const BBR_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

impl Bbr {
    fn rate(&self) -> f64 {
        self.rates.iter().map(|&(_, rate)| rate).fold(10.0 * PACKET / ROUND_TRIP, f64::max)
    }

    fn end_round(&mut self) {
        self.round += 1;
        self.round_end = self.delivered + 1.0;
        if self.startup {
            let rate = self.rate();
            self.full = if rate > self.full.0 * 1.25 { (rate, 0) } else { (self.full.0, self.full.1 + 1) };
            self.startup = self.full.1 < 3;
        }
    }
}

impl Sender for Bbr {
    fn window(&self) -> f64 {
        let product = self.rate() * self.least.min(10.0);
        if self.probe_until > 0.0 {
            4.0 * PACKET
        } else {
            (product * if self.startup { 2.89 } else { 2.0 }).max(4.0 * PACKET)
        }
    }

    fn pacing(&self, _smoothed: f64) -> f64 {
        self.rate() * if self.startup { 2.89 } else { BBR_GAINS[self.phase] }
    }

    fn sent(&mut self, now: f64) {
        if self.flights.is_empty() {
            self.delivered_at = now;
        }
        self.flights.push_back((now, self.delivered, self.delivered_at));
    }

    fn acked(&mut self, now: f64, sent: &[f64], in_flight: f64) {
        self.delivered += PACKET * sent.len() as f64;
        self.delivered_at = now;
        let Some(&newest) = sent.last() else { return };
        while self.flights.front().is_some_and(|flight| flight.0 < newest) {
            self.flights.pop_front();
        }
        let Some(&(_, delivered, at)) = self.flights.front() else { return };
        let sample = (self.delivered - delivered) / (now - at).max(1e-3);
        self.rates.push_back((self.round, sample));
        while self.rates.front().is_some_and(|&(round, _)| round + 10 < self.round) {
            self.rates.pop_front();
        }
        if delivered >= self.round_end {
            self.end_round();
        }
        let trip = now - newest;
        if trip <= self.least {
            (self.least, self.least_at) = (trip, now);
        } else if now - self.least_at > 10.0 && self.probe_until == 0.0 {
            self.probe_until = now + 0.2 + trip;
            self.least = trip;
        }
        if self.probe_until > 0.0 && now > self.probe_until {
            (self.probe_until, self.least_at) = (0.0, now);
        }
        if now - self.phase_at > self.least
            && (self.phase != 0
                || in_flight > 1.25 * self.rate() * self.least
                || now - self.phase_at > 2.0 * self.least)
        {
            self.phase = (self.phase + 1) % BBR_GAINS.len();
            self.phase_at = now;
        }
    }

    fn lost(&mut self, _now: f64, _sent: f64) {}
}

pub fn ours() -> Box<dyn Sender> {
    ours_to((1, 0.0))
}

/// Chromium acknowledges ten packets at once, or those of a quarter of a round trip, after its first hundred packets.
pub fn ours_to_a_browser() -> Box<dyn Sender> {
    ours_to((10, ROUND_TRIP / 4.0))
}

fn ours_to(gathers: (usize, f64)) -> Box<dyn Sender> {
    let start = Instant::now();
    Box::new(Ours { controller: DeliveryController::new(start, PACKET as u16, ACK_TIME), start, gathers })
}

pub fn cubic() -> Box<dyn Sender> {
    Box::new(Cubic { window: 10.0, threshold: f64::MAX, most: 0.0, epoch: -1.0 })
}

pub fn bbr() -> Box<dyn Sender> {
    Box::new(Bbr {
        flights: VecDeque::new(),
        delivered: 0.0,
        delivered_at: 0.0,
        rates: VecDeque::new(),
        round: 0,
        round_end: 0.0,
        least: f64::MAX,
        least_at: 0.0,
        probe_until: 0.0,
        phase: 2,
        phase_at: 0.0,
        full: (0.0, 0),
        startup: true,
    })
}
