//! Our congestion controller: a window from what is delivered and from delay. Nothing is ever sent again, so a single
//! loss says little. Only a share of losses that no working link has counts as congestion.
//!
//! The window is a gain times the bandwidth-delay product. The product is the highest delivery rate of the last rounds
//! times the lowest round trip of the last seconds. That round trip is lengthened by the time for which the receiver
//! gathers acknowledgements and by the spread of the path's own round trips.
//!
//! Slow start ends when the rate stops growing, or when the round trip grows before a queue overflows. A cycle of gains
//! follows: one round drains the queue, the next rounds hold, and the last one pushes to find more. The link is
//! contested when a queue remains after our queue has drained, or when the queue drops packets. The window is then
//! Cubic's, so that the flow shares with TCP, or it is bound by losses when the rivals ignore losses.

use std::any::Any;
use std::time::{Duration, Instant};

use quinn_proto::congestion::Controller;
use quinn_proto::RttEstimator;

use super::cubic::Cubic;
use super::gathering::Gathering;
use super::rate::RateSampler;
use super::rivals::{Chance, Rivals, Signs};
use super::round_trips::RoundTrips;
use super::{Path, PACING};

/// Packets in the first window. RFC 6928's ten are too few for a segment that should start at once.
const INITIAL_PACKETS: u64 = 32;
/// First window on a known path at most: the path may have more users than before.
const RESUMED_PACKETS_MAX: u64 = 64;
const MINIMUM_PACKETS: u64 = 16;
/// Among many flows a fair share may be smaller.
const MINIMUM_PACKETS_FAIR: u64 = 4;
/// Slow start ends after this many rounds in which the rate did not grow by a quarter.
const PLATEAU_ROUNDS: u32 = 3;
const PLATEAU_GROWTH: f64 = 1.25;
/// Slow start also ends when this many acknowledgements in a row show a queue. A few would show nothing: the packets
/// that leave together at the start queue for a moment. Only the newest packet of each acknowledgement counts, because
/// the other packets waited for it at the receiver.
const QUEUE_SAMPLES: u32 = 8;
/// The link's rate gets this margin when only these samples show it. A rate from half a round trip gets none.
const FEW_SAMPLES_MARGIN: f64 = 1.5;
/// This many rounds after slow start, the rate has been seen for a whole round.
const FIRST_ROUNDS: u64 = 3;
/// One gain per round; the last one pushes. A flow alone on a link stays below the round trip that shows rivals.
const GAINS: [f64; 8] = [0.9, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.5];
/// The gain at the end of slow start at most. Slow start doubles the window in a round trip.
const GAIN_DRAIN_MAX: f64 = 2.0;
/// After a push that overflowed the queue, the controller does not push for this many rounds.
const NO_PUSH_ROUNDS: u64 = 40;
/// The gain while losses show full queues.
const GAIN_UNDER_LOSS: f64 = 1.0;
/// Rounds between two looks for rivals while the link is contested.
const CONTEST_ROUNDS: u64 = 24;
/// Against rivals that ignore losses, the window grows by this many packets per round and shrinks by this part of each
/// lost packet. So two and a half packets per round are lost at any window, and a larger window loses a smaller share.
const DEAF_GROWTH: f64 = 1.0;
const DEAF_YIELD: f64 = 0.4;
/// The gain against such rivals at most.
const GAIN_DEAF: f64 = 2.2;
/// Random losses stay below this share. A queue that overflows soon exceeds it.
const LOSS_SHARE_MAX: f64 = 0.08;
/// Fewer lost packets in a round are chance.
const LOST_PACKETS_MIN: u64 = 8;
const ROUND_TRIP_MEMORY: Duration = Duration::from_secs(10);
/// Where rivals keep a queue, a round trip without a queue is rare.
const ROUND_TRIP_MEMORY_CONTESTED: Duration = Duration::from_secs(60);
/// When less of the window is in flight, the sender had too little to send.
const USED_SHARE: f64 = 0.8;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    SlowStart,
    Cycle,
}

#[derive(Clone)]
pub struct DeliveryController {
    mtu: u64,
    ack_time: Duration,
    window: u64,
    phase: Phase,
    rate: RateSampler,
    gathering: Gathering,
    /// A round ends when a packet sent after its start is acknowledged.
    round: u64,
    round_ends_at: u64,
    /// The round in which the cycle of gains began.
    cycle_from: u64,
    /// The bandwidth-delay product that slow start's queue showed. It counts in the first rounds of the cycle, until a
    /// round has shown the rate.
    first_product: f64,
    round_acked: u64,
    round_lost: u64,
    /// The part of `round_lost` that was sent after the last cut.
    round_lost_after_cut: u64,
    /// When the window was last made smaller for rivals, and in which round.
    cut_at: Instant,
    cut_round: u64,
    chance: Chance,
    no_push_until: u64,
    round_app_limited: bool,
    /// Round trip of the newest packet of the last acknowledgement.
    newest_round_trip: Duration,
    queue_samples: u32,
    /// When the first of these samples came, and the bytes delivered by then.
    queue_since: (Instant, u64),
    plateau_rounds: u32,
    plateau_rate: f64,
    /// The gain stays low for this many rounds.
    loss_rounds: usize,
    round_trips: RoundTrips,
    rivals: Rivals,
    signs: Signs,
}

impl DeliveryController {
    /// `ack_time`: receivers gather acknowledgements for this time. The controller adds what is sent in that time to
    /// the bandwidth-delay product. Otherwise the window would be too small on a path of less than a millisecond.
    pub fn new(now: Instant, mtu: u16, ack_time: Duration) -> Self {
        Self {
            mtu: mtu.into(),
            ack_time,
            window: INITIAL_PACKETS * u64::from(mtu),
            phase: Phase::SlowStart,
            rate: RateSampler::new(now),
            gathering: Gathering::default(),
            round: 0,
            round_ends_at: 0,
            cycle_from: 0,
            first_product: 0.0,
            round_acked: 0,
            round_lost: 0,
            round_lost_after_cut: 0,
            cut_at: now,
            cut_round: 0,
            chance: Chance::default(),
            no_push_until: 0,
            round_app_limited: false,
            newest_round_trip: Duration::ZERO,
            queue_samples: 0,
            queue_since: (now, 0),
            plateau_rounds: 0,
            plateau_rate: 0.0,
            loss_rounds: 0,
            round_trips: RoundTrips::new(now),
            rivals: Rivals::None,
            signs: Signs::new(),
        }
    }

    /// Starts with what an earlier connection learned about the path.
    pub fn resume(&mut self, path: Path) {
        self.window = path.product.clamp(self.window, RESUMED_PACKETS_MAX * self.mtu);
    }

    /// What the next connection can start with. None until the path has shown its rate.
    pub fn path(&self) -> Option<Path> {
        (self.phase == Phase::Cycle)
            .then(|| Path { round_trip: self.round_trips.min(), product: self.product() as u64 })
    }

    /// A packet that was sent at `sent` has arrived.
    pub(crate) fn acked(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.round_acked += bytes;
        self.gathering.note_acked(bytes);
        let memory = if self.is_contested() { ROUND_TRIP_MEMORY_CONTESTED } else { ROUND_TRIP_MEMORY };
        self.round_trips.note(now, now.duration_since(sent), memory);
        self.rate.note_acked(sent, bytes);
    }

    /// Used until the rate was seen for a whole round. What comes out of a queue comes at the link's rate.
    fn look_for_queue(&mut self, now: Instant) {
        let sample = self.newest_round_trip;
        if !self.round_trips.is_queued(sample) {
            self.queue_samples = 0;
            return;
        }
        if self.queue_samples == 0 {
            self.queue_since = (now, self.rate.delivered());
        }
        self.queue_samples += 1;
        if self.queue_samples < QUEUE_SAMPLES {
            return;
        }
        let (since, delivered) = self.queue_since;
        let (time, least) = (now.duration_since(since), self.round_trips.min());
        let product =
            (self.rate.delivered() - delivered) as f64 * self.empty_time().as_secs_f64() / time.as_secs_f64().max(1e-6);
        match self.phase {
            // These few samples may have come late or together, so the product gets a margin. The limit is the window
            // without the queue.
            Phase::SlowStart => self.end_slow_start(
                (FEW_SAMPLES_MARGIN * product).min(self.window as f64 * least.as_secs_f64() / sample.as_secs_f64()),
            ),
            Phase::Cycle if 2 * time >= least => self.first_product = product,
            Phase::Cycle => (),
        }
    }

    fn end_round(&mut self, now: Instant) {
        self.round += u64::from(!self.round_app_limited);
        self.round_ends_at = self.rate.delivered() + 1;
        let total = (self.round_acked + self.round_lost).max(1);
        let lost = self.round_lost as f64 / total as f64;
        let congested = lost > LOSS_SHARE_MAX && self.round_lost >= LOST_PACKETS_MIN * self.mtu;
        match self.phase {
            Phase::SlowStart => {
                if self.has_plateaued() || congested {
                    self.end_slow_start(0.0);
                }
            }
            Phase::Cycle => {
                if !self.round_trips.is_empty(self.round_trips.of_round()) {
                    self.first_product = 0.0;
                }
                self.weigh_losses(now);
                self.loss_rounds = if congested { GAINS.len() } else { self.loss_rounds.saturating_sub(1) };
                // The packets of the round that drains are acknowledged by the end of the next round.
                if self.place_in_cycle() == 2 {
                    self.look_for_rivals(now);
                }
            }
        }
        self.round_trips.end_round();
        self.gathering.end_round(self.round_acked);
        (self.round_acked, self.round_lost, self.round_lost_after_cut) = (0, 0, 0);
        self.round_app_limited = false;
    }

    /// The cycle begins with the round that drains slow start's queue.
    fn end_slow_start(&mut self, first_product: f64) {
        self.first_product = first_product;
        self.phase = Phase::Cycle;
        self.cycle_from = self.round;
    }

    fn has_plateaued(&mut self) -> bool {
        if self.round_app_limited {
            return false;
        }
        let rate = self.rate.max();
        if rate >= self.plateau_rate * PLATEAU_GROWTH {
            (self.plateau_rate, self.plateau_rounds) = (rate, 0);
            return false;
        }
        self.plateau_rounds += 1;
        self.plateau_rounds >= PLATEAU_ROUNDS
    }

    /// The queue is empty after a round trip without sending, so the cycle skips the round that drains.
    fn skip_drain(&mut self, now: Instant) {
        let is_idle = now.duration_since(self.rate.delivered_at()) > self.round_trips.min();
        if is_idle && self.phase == Phase::Cycle && self.place_in_cycle() == 0 && !self.is_contested() {
            self.round += 1;
            self.window = self.window.max(self.window_in_cycle());
        }
    }

    fn is_contested(&self) -> bool {
        !matches!(self.rivals, Rivals::None)
    }

    /// Called at a round's end. When there is a queue and losses exceed the path's own losses, the queue dropped these
    /// packets, and a TCP flow would slow down.
    fn weigh_losses(&mut self, now: Instant) {
        let in_packets = |bytes: u64| bytes as f64 / self.mtu as f64;
        let (packets, lost, after_cut) = (
            in_packets(self.round_acked + self.round_lost),
            in_packets(self.round_lost),
            in_packets(self.round_lost_after_cut),
        );
        let (round_trip, place) = (self.round_trips.of_round(), self.place_in_cycle());
        let (is_empty, level) = (self.round_trips.is_empty(round_trip), self.round_trips.level(round_trip));
        // The losses of a push show when the next round has drained the queue. They are not chance, and the losses of
        // slow start are not chance either.
        let has_pushed = place == 0 && !self.is_contested();
        if self.round >= self.cycle_from + FIRST_ROUNDS && !has_pushed {
            self.chance.note(packets, lost, is_empty);
        }
        self.signs.note(now, packets, lost, level, if is_empty && place <= 2 { None } else { Some(is_empty) });
        self.tell_deaf_from_fair(now, lost);
        if !has_pushed && (is_empty || level <= 0.5) || after_cut < 0.5 || self.chance.explains(packets, after_cut) {
            return;
        }
        match &self.rivals {
            // The round that pushes, and the round that sees its losses.
            Rivals::None if place <= 1 => self.no_push_until = self.round + NO_PUSH_ROUNDS,
            Rivals::None => {
                self.join(now);
                self.cut(now);
            }
            Rivals::Fair { .. } => self.cut(now),
            Rivals::Deaf { .. } => self.cut_round = self.round,
        }
    }

    fn tell_deaf_from_fair(&mut self, now: Instant, lost: f64) {
        let (product, mtu, chance) = (self.product(), self.mtu as f64, self.chance.share());
        match &mut self.rivals {
            Rivals::Deaf { .. } if !self.signs.are_still_deaf(now, chance) => self.join(now),
            Rivals::Deaf { window } => {
                *window = (*window + (DEAF_GROWTH - DEAF_YIELD * lost) * mtu).clamp(product, GAIN_DEAF * product)
            }
            Rivals::Fair { .. } if self.signs.are_deaf(now, chance) => {
                self.rivals = Rivals::Deaf { window: self.window as f64 }
            }
            _ => (),
        }
    }

    /// A flow that has yielded since the last look has rivals, even when the queue is empty.
    fn look_for_rivals(&mut self, now: Instant) {
        let round_trip = self.round_trips.of_two_rounds();
        let has_yielded = self.is_contested() && self.round < self.cut_round + CONTEST_ROUNDS;
        match &self.rivals {
            Rivals::None if self.round_trips.is_contested(round_trip) => self.join(now),
            _ if self.round_trips.is_empty(round_trip) && !has_yielded => self.rivals = Rivals::None,
            _ => (),
        }
    }

    /// Behaves as one TCP flow among others from here on.
    fn join(&mut self, now: Instant) {
        self.rivals = Rivals::Fair { cubic: Cubic::new(now, self.window), used_at: now };
    }

    /// Rounds since the last round that drains.
    fn place_in_cycle(&self) -> usize {
        let length = if self.is_contested() { CONTEST_ROUNDS } else { GAINS.len() as u64 };
        ((self.round - self.cycle_from) % length) as usize
    }

    /// The time for which packets are in flight without a queue. Beside rivals the spread does not count, because their
    /// queue spreads round trips too.
    fn empty_time(&self) -> Duration {
        let spread = if self.is_contested() { Duration::ZERO } else { self.round_trips.spread() };
        self.round_trips.min().saturating_add(self.ack_time).saturating_add(spread)
    }

    /// The bandwidth-delay product, in bytes.
    fn product(&self) -> f64 {
        let seen = self.rate.max() * self.empty_time().as_secs_f64();
        if self.is_first() {
            seen.max(self.first_product)
        } else {
            seen
        }
    }

    fn is_first(&self) -> bool {
        self.first_product > 0.0 && self.round < self.cycle_from + FIRST_ROUNDS
    }

    fn window_in_cycle(&self) -> u64 {
        let (product, place, under_loss) = (self.product(), self.place_in_cycle(), self.loss_rounds > 0);
        if self.is_first() {
            // Pacing follows the round trip with slow start's queue. The gain makes up for it, so that the queue drains
            // no faster than pacing allows.
            let queued = self.newest_round_trip.as_secs_f64() / self.round_trips.min().as_secs_f64();
            return (product * (queued / PACING).clamp(GAINS[1], GAIN_DRAIN_MAX)) as u64;
        }
        let gain = match &self.rivals {
            _ if place == 0 => GAINS[0],
            Rivals::Fair { cubic, .. } => return cubic.window() + self.gathering.most_unheard(self.mtu),
            Rivals::None if under_loss => GAIN_UNDER_LOSS,
            Rivals::None if self.round < self.no_push_until => GAINS[place].min(GAINS[1]),
            Rivals::None => GAINS[place],
            Rivals::Deaf { window } => return *window as u64 + self.gathering.most_unheard(self.mtu),
        };
        // The round that drains must leave no queue.
        let unheard = if place == 0 { 0 } else { self.gathering.mean_unheard(self.mtu) };
        (product * gain) as u64 + unheard
    }

    /// A window that is not used does not grow.
    fn set_window(&mut self, now: Instant, acked: u64, in_flight: u64) {
        let is_used = 2 * (in_flight + acked) >= self.window;
        let round_trip = self.round_trips.min();
        if let Rivals::Fair { cubic, used_at } = &mut self.rivals {
            if is_used {
                cubic.acked(now, acked, round_trip);
            } else {
                cubic.paused(now.duration_since(*used_at));
            }
            *used_at = now;
        }
        let window = match self.phase {
            Phase::SlowStart if is_used => self.window + acked,
            Phase::SlowStart => self.window,
            Phase::Cycle => self.window_in_cycle(),
        };
        let least = if matches!(self.rivals, Rivals::Fair { .. }) { MINIMUM_PACKETS_FAIR } else { MINIMUM_PACKETS };
        self.window = window.max(least * self.mtu);
    }

    fn cut(&mut self, now: Instant) {
        let Rivals::Fair { cubic, .. } = &mut self.rivals else { return };
        cubic.cut(now);
        (self.cut_at, self.cut_round) = (now, self.round);
    }
}

impl Controller for DeliveryController {
    fn on_sent(&mut self, now: Instant, _bytes: u64, _last_packet_number: u64) {
        if self.rate.is_idle() {
            self.skip_drain(now);
            if let Rivals::Fair { cubic, used_at } = &mut self.rivals {
                cubic.paused(now.duration_since(*used_at));
                *used_at = now;
            }
            self.rate.resume(now);
        }
        self.rate.note_sent(now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        self.acked(now, sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        let Some(packet) = self.rate.take_newest() else { return };
        let acked = self.gathering.end_ack();
        // QUIC's `_app_limited` does not help: QUIC's queue is so short that it is often empty for a moment.
        let app_limited = ((in_flight + acked) as f64) < USED_SHARE * self.window as f64;
        self.round_app_limited |= app_limited;
        self.rate.sample(now, packet, self.round, app_limited);
        self.newest_round_trip = now.duration_since(packet.sent);
        self.round_trips.note_newest(self.newest_round_trip, acked as f64 / self.rate.max());
        if self.phase == Phase::SlowStart || self.is_first() {
            self.look_for_queue(now);
        }
        if packet.delivered >= self.round_ends_at {
            self.end_round(now);
        }
        self.set_window(now, acked, in_flight);
        self.rate.forget_sent_until(packet.sent, in_flight);
    }

    fn on_congestion_event(&mut self, _now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.round_lost += lost_bytes;
        if sent > self.cut_at {
            self.round_lost_after_cut += lost_bytes;
        }
        if is_persistent {
            self.rate.forget_rates();
            self.window = MINIMUM_PACKETS * self.mtu;
            (self.phase, self.queue_samples) = (Phase::SlowStart, 0);
            (self.plateau_rounds, self.plateau_rate) = (0, 0.0);
            // The losses of the outage say nothing about the slow start that follows.
            (self.round_acked, self.round_lost, self.round_lost_after_cut) = (0, 0, 0);
            self.rivals = Rivals::None;
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn initial_window(&self) -> u64 {
        INITIAL_PACKETS * self.mtu
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
