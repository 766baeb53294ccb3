//! Congestion control for coded datagrams: a window from what is delivered and from delay. Nothing sent is ever sent
//again,
//! so a single loss says little; only a share of losses that no working link has counts as congestion.
//!
//! The window is a gain times the bandwidth-delay product: the highest delivery rate of the last rounds (sampled as in
//! draft-cheng-iccrg-delivery-rate-estimation) times the lowest round trip of the last seconds, and a little more time
//for
//! the receiver to gather acknowledgements and for what the path itself spreads round trips by. Slow start ends when
//the rate no
//! longer grows or, before a queue overflows, when the round trip does. Then the gain goes round in a cycle: a round
//that drains,
//! some in between, and a short push to find
//! more. Where a queue stays when ours has drained, or drops packets, the link is contested: the window is then
//Cubic's, so that
//! the flow shares with TCP, or one that losses bound where rivals heed none. QUIC paces at 5/4 of a window a round
//trip.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

use crate::cubic::Cubic;
use crate::rivals::{Chance, Rivals, Signs};
use crate::round_trips::RoundTrips;

/// Packets of a new connection's first window: RFC 6928's ten are few for a segment that should start at once.
const INITIAL_PACKETS: u64 = 32;
/// On a path that is known: it may have more users now.
const RESUMED_PACKETS_MAX: u64 = 64;
const MINIMUM_PACKETS: u64 = 16;
/// Among many others a fair share may be less.
const MINIMUM_PACKETS_FAIR: u64 = 4;
/// Of QUIC's receivers.
pub const ACK_TIME: Duration = Duration::from_millis(4);
/// A packet is lost when it has not come by then though a later one has. How many have overtaken it says nothing on a
/// path that reorders, and what counts as lost too early is neither delivered nor room in the window.
pub const LOST_AFTER_ROUND_TRIPS: f32 = 1.25;
/// QUIC and SCTP pace at so many windows a smoothed round trip: faster than the window, so that it is the window that
/// limits.
pub const PACING: f64 = 1.25;
/// Slow start ends after so many rounds without a quarter more.
const PLATEAU_ROUNDS: u32 = 3;
const PLATEAU_GROWTH: f64 = 1.25;
/// It also ends when so many acknowledgements one after another show a queue: the packets that leave together at the
/// start queue for a moment, which shows nothing. Of each the newest packet alone counts: the others have waited for it
/// at the receiver.
const QUEUE_SAMPLES: u32 = 8;
/// The link's rate as so few show it counts with this margin; as those of half a round trip do, with none.
const FEW_SAMPLES_MARGIN: f64 = 1.5;
/// So many rounds after slow start the rate has been seen for a whole one.
const FIRST_ROUNDS: u64 = 3;
/// One round each; the last is a push. Alone on a link the round trip stays under what a queue of others makes it.
const GAINS: [f64; 8] = [0.9, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.5];
/// At the end of slow start; it doubles in a round trip.
const GAIN_DRAIN_MAX: f64 = 2.0;
/// A push that overflowed the queue is not tried again for so many rounds.
const NO_PUSH_ROUNDS: u64 = 40;
/// The gain while losses say that queues are full.
const GAIN_UNDER_LOSS: f64 = 1.0;
/// Rounds from one such look to the next while the link is contested.
const CONTEST_ROUNDS: u64 = 24;
/// Against who heeds no losses the window grows by so many packets a round and shrinks by this part of each that is
/// lost: two and a half a round are, whatever the window is, so that a larger one loses the smaller share. At most this
/// gain.
const DEAF_GROWTH: f64 = 1.0;
const DEAF_YIELD: f64 = 0.4;
const GAIN_DEAF: f64 = 2.2;
/// Random losses stay below this share; a queue that overflows soon goes above it.
const LOSS_SHARE_MAX: f64 = 0.08;
/// Losses of fewer packets than this in a round are chance.
const LOST_PACKETS_MIN: u64 = 8;
/// Packets to an acknowledgement of TCP, and those beyond them that are made up for at most.
const GATHERED_PACKETS: u64 = 2;
const UNHEARD_PACKETS_MAX: u64 = 16;
/// The rate of so many rounds back is forgotten.
const RATE_ROUNDS: u64 = 8;
const ROUND_TRIP_MEMORY: Duration = Duration::from_secs(10);
/// Where others keep a queue there is no round trip without one.
const ROUND_TRIP_MEMORY_CONTESTED: Duration = Duration::from_secs(60);
/// With less of the window in flight there was too little to send.
const USED_SHARE: f64 = 0.8;
/// Packets in flight whose sending is remembered.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// What one connection has found of a path, for the next one to begin with (RFC 9002 section 6.2.2, and the idea of
/// draft-ietf-tsvwg-careful-resume).
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub round_trip: Duration,
    /// The bandwidth-delay product, in bytes.
    pub product: u64,
}

#[derive(Default)]
pub struct DeliveryConfig {
    pub path: Option<Path>,
}

impl ControllerFactory for DeliveryConfig {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mut controller = Delivery::new(now, current_mtu, ACK_TIME);
        if let Some(Path { product, .. }) = self.path {
            controller.window = product.clamp(controller.window, RESUMED_PACKETS_MAX * controller.mtu);
        }
        Box::new(controller)
    }
}

/// What was known when a packet was sent.
#[derive(Clone, Copy)]
struct Sending {
    sent: Instant,
    /// Bytes delivered by then, and when the last of them was acknowledged and had been sent.
    delivered: u64,
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

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    SlowStart,
    Cycle,
}

#[derive(Clone)]
pub struct Delivery {
    mtu: u64,
    ack_time: Duration,
    window: u64,
    phase: Phase,
    sendings: VecDeque<Sending>,
    /// Bytes acknowledged since the start.
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    newest_acked: Option<Sending>,
    rate: RateFilter,
    /// A round ends when what was sent at its start is acknowledged.
    round: u64,
    round_ends_at: u64,
    /// The round in which the cycle of gains began.
    cycle_from: u64,
    /// The bandwidth-delay product as slow start's queue showed it: it counts in the first rounds of the cycle, until
    /// one has shown the rate.
    first_product: f64,
    round_acked: u64,
    round_lost: u64,
    /// Of these, sent since the last cut.
    round_lost_anew: u64,
    /// When the window was last made smaller for others, and in which round.
    cut_at: Instant,
    cut_round: u64,
    chance: Chance,
    no_push_until: u64,
    round_app_limited: bool,
    /// Acknowledged since the last `on_end_acks`.
    batch_acked: u64,
    /// The most that one acknowledgement told of, in this round and in the one before.
    gathered: [u64; 2],
    /// Acknowledgements in this round, and what one told of in the mean of the round before.
    round_acks: u64,
    gathered_mean: u64,
    /// Of the newest packet of the last acknowledgement.
    newest_round_trip: Duration,
    queue_samples: u32,
    /// The first of them, and what was delivered by then.
    queue_since: (Instant, u64),
    plateau_rounds: u32,
    plateau_rate: f64,
    /// Rounds that the gain stays low for.
    loss_rounds: usize,
    round_trips: RoundTrips,
    rivals: Rivals,
    signs: Signs,
}

impl Delivery {
    /// `ack_time`: for so long receivers gather acknowledgements. What is sent meanwhile comes on top of the
    /// bandwidth-delay product, which a path of less than a millisecond would otherwise leave too small to keep busy.
    pub fn new(now: Instant, mtu: u16, ack_time: Duration) -> Self {
        Self {
            mtu: mtu.into(),
            ack_time,
            window: INITIAL_PACKETS * u64::from(mtu),
            phase: Phase::SlowStart,
            sendings: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            first_sent: now,
            newest_acked: None,
            rate: RateFilter::default(),
            round: 0,
            round_ends_at: 0,
            cycle_from: 0,
            first_product: 0.0,
            round_acked: 0,
            round_lost: 0,
            round_lost_anew: 0,
            cut_at: now,
            cut_round: 0,
            chance: Chance::default(),
            no_push_until: 0,
            round_app_limited: false,
            batch_acked: 0,
            gathered: [0; 2],
            round_acks: 0,
            gathered_mean: 0,
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

    /// As long as no rate was seen for a whole round: what comes out of a queue comes at the link's rate.
    fn look_for_queue(&mut self, now: Instant) {
        let sample = self.newest_round_trip;
        if !self.round_trips.is_queued(sample) {
            self.queue_samples = 0;
            return;
        }
        if self.queue_samples == 0 {
            self.queue_since = (now, self.delivered);
        }
        self.queue_samples += 1;
        if self.queue_samples < QUEUE_SAMPLES {
            return;
        }
        let (since, delivered) = self.queue_since;
        let (time, least) = (now.duration_since(since), self.round_trips.min());
        let product =
            (self.delivered - delivered) as f64 * self.empty_time().as_secs_f64() / time.as_secs_f64().max(1e-6);
        match self.phase {
            // So few may have been late or come together: rather more, and the window without the queue at most.
            Phase::SlowStart => self.end_slow_start(
                (FEW_SAMPLES_MARGIN * product).min(self.window as f64 * least.as_secs_f64() / sample.as_secs_f64()),
            ),
            Phase::Cycle if 2 * time >= least => self.first_product = product,
            Phase::Cycle => (),
        }
    }

    /// The rate between the sending of the newest acknowledged packet and now.
    fn sample_rate(&mut self, now: Instant, packet: Sending, app_limited: bool) {
        let acked_in = now.duration_since(packet.delivered_at);
        let sent_in = packet.sent.duration_since(packet.first_sent);
        let interval = acked_in.max(sent_in).as_secs_f64();
        if interval <= 0.0 {
            return;
        }
        let rate = (self.delivered - packet.delivered) as f64 / interval;
        // With too little to send the path shows less than it can.
        if !app_limited || rate > self.rate.max() {
            self.rate.add(self.round, rate);
        }
    }

    fn end_round(&mut self, now: Instant) {
        self.round += u64::from(!self.round_app_limited);
        self.round_ends_at = self.delivered + 1;
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
                // What was sent in the round that drains is acknowledged by the end of the next.
                if self.place_in_cycle() == 2 {
                    self.look_for_rivals(now);
                }
            }
        }
        self.round_trips.end_round();
        self.gathered = [0, self.gathered[0]];
        self.gathered_mean = self.round_acked / self.round_acks.max(1);
        self.round_acks = 0;
        (self.round_acked, self.round_lost, self.round_lost_anew) = (0, 0, 0);
        self.round_app_limited = false;
    }

    /// The cycle begins with the round that drains what slow start has queued.
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

    /// Where nothing was sent for a round trip, what was queued is gone.
    fn skip_drain(&mut self, now: Instant) {
        let is_idle = now.duration_since(self.delivered_at) > self.round_trips.min();
        if is_idle && self.phase == Phase::Cycle && self.place_in_cycle() == 0 && !self.is_contested() {
            self.round += 1;
            self.window = self.window.max(self.window_in_cycle());
        }
    }

    fn is_contested(&self) -> bool {
        !matches!(self.rivals, Rivals::None)
    }

    /// At a round's end: losses beyond the path's own, with a queue, are this queue's, and a TCP flow would heed them.
    fn weigh_losses(&mut self, now: Instant) {
        let in_packets = |bytes: u64| bytes as f64 / self.mtu as f64;
        let (packets, lost, anew) = (
            in_packets(self.round_acked + self.round_lost),
            in_packets(self.round_lost),
            in_packets(self.round_lost_anew),
        );
        let (round_trip, place) = (self.round_trips.of_round(), self.place_in_cycle());
        let (is_empty, level) = (self.round_trips.is_empty(round_trip), self.round_trips.level(round_trip));
        // What was lost in a push is seen when the round has drained its queue, and like what slow start has lost no
        // chance.
        let has_pushed = place == 0 && !self.is_contested();
        if self.round >= self.cycle_from + FIRST_ROUNDS && !has_pushed {
            self.chance.note(packets, lost, is_empty);
        }
        self.signs.note(now, packets, lost, level, if is_empty && place <= 2 { None } else { Some(is_empty) });
        self.tell_deaf_from_fair(now, lost);
        if !has_pushed && (is_empty || level <= 0.5) || anew < 0.5 || self.chance.explains(packets, anew) {
            return;
        }
        match &self.rivals {
            // The push, and the round in which its losses are seen.
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

    /// Who has yielded since the last look is not alone, even if the queue is empty now.
    fn look_for_rivals(&mut self, now: Instant) {
        let round_trip = self.round_trips.of_two_rounds();
        let has_yielded = self.is_contested() && self.round < self.cut_round + CONTEST_ROUNDS;
        match &self.rivals {
            Rivals::None if self.round_trips.is_contested(round_trip) => self.join(now),
            _ if self.round_trips.is_empty(round_trip) && !has_yielded => self.rivals = Rivals::None,
            _ => (),
        }
    }

    /// From here on as one TCP flow among others.
    fn join(&mut self, now: Instant) {
        self.rivals = Rivals::Fair { cubic: Cubic::new(now, self.window), used_at: now };
    }

    /// Rounds since the one that drains.
    fn place_in_cycle(&self) -> usize {
        let length = if self.is_contested() { CONTEST_ROUNDS } else { GAINS.len() as u64 };
        ((self.round - self.cycle_from) % length) as usize
    }

    /// How long packets are in flight without a queue. Beside others their queue spreads round trips, too.
    fn empty_time(&self) -> Duration {
        let spread = if self.is_contested() { Duration::ZERO } else { self.round_trips.spread() };
        self.round_trips.min().saturating_add(self.ack_time).saturating_add(spread)
    }

    /// The bandwidth-delay product.
    fn product(&self) -> f64 {
        let seen = self.rate.max() * self.empty_time().as_secs_f64();
        if self.is_first() {
            seen.max(self.first_product)
        } else {
            seen
        }
    }

    /// None until it has shown its rate.
    pub fn path(&self) -> Option<Path> {
        (self.phase == Phase::Cycle)
            .then(|| Path { round_trip: self.round_trips.min(), product: self.product() as u64 })
    }

    fn is_first(&self) -> bool {
        self.first_product > 0.0 && self.round < self.cycle_from + FIRST_ROUNDS
    }

    fn window_in_cycle(&self) -> u64 {
        let (product, place, under_loss) = (self.product(), self.place_in_cycle(), self.loss_rounds > 0);
        if self.is_first() {
            // What slow start has queued is drained by no more than pacing bears: it goes by the round trip with that
            // queue.
            let queued = self.newest_round_trip.as_secs_f64() / self.round_trips.min().as_secs_f64();
            return (product * (queued / PACING).clamp(GAINS[1], GAIN_DRAIN_MAX)) as u64;
        }
        let gathered_most = self.gathered[0].max(self.gathered[1]);
        let gain = match &self.rivals {
            _ if place == 0 => GAINS[0],
            Rivals::Fair { cubic, .. } => return cubic.window() + self.delivered_unheard(gathered_most),
            Rivals::None if under_loss => GAIN_UNDER_LOSS,
            Rivals::None if self.round < self.no_push_until => GAINS[place].min(GAINS[1]),
            Rivals::None => GAINS[place],
            Rivals::Deaf { window } => return *window as u64 + self.delivered_unheard(gathered_most),
        };
        // The round that drains is to leave no queue.
        let unheard = if place == 0 { 0 } else { self.delivered_unheard(self.gathered_mean) };
        (product * gain) as u64 + unheard
    }

    /// What is still counted in flight though it has arrived, as its acknowledgement waits for more: browsers gather
    /// ten packets, TCP two. The link would see a window that is smaller by so much. Beside others it counts by the
    /// most that was `gathered` lately, or their queue takes what is missing; alone by the mean, since a receiver that
    /// paused once needs no larger window.
    fn delivered_unheard(&self, gathered: u64) -> u64 {
        gathered.saturating_sub(GATHERED_PACKETS * self.mtu).min(UNHEARD_PACKETS_MAX * self.mtu)
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
        self.window = match self.phase {
            Phase::SlowStart if is_used => self.window + acked,
            Phase::SlowStart => self.window,
            Phase::Cycle => self.window_in_cycle(),
        }
        .max(
            self.mtu * if matches!(self.rivals, Rivals::Fair { .. }) { MINIMUM_PACKETS_FAIR } else { MINIMUM_PACKETS },
        );
    }

    fn cut(&mut self, now: Instant) {
        let Rivals::Fair { cubic, .. } = &mut self.rivals else { return };
        cubic.cut(now);
        (self.cut_at, self.cut_round) = (now, self.round);
    }
}

impl Delivery {
    pub(crate) fn acked(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.delivered += bytes;
        self.round_acked += bytes;
        self.batch_acked += bytes;
        let memory = if self.is_contested() { ROUND_TRIP_MEMORY_CONTESTED } else { ROUND_TRIP_MEMORY };
        self.round_trips.note(now, now.duration_since(sent), memory);
        let from = self.sendings.partition_point(|sending| sending.sent < sent);
        let newer = self.newest_acked.is_none_or(|newest| sent >= newest.sent);
        match self.sendings.get(from) {
            Some(&packet) if packet.sent == sent && newer => self.newest_acked = Some(packet),
            _ => (),
        }
    }
}

impl Controller for Delivery {
    fn on_sent(&mut self, now: Instant, _bytes: u64, _last_packet_number: u64) {
        if self.sendings.is_empty() {
            self.skip_drain(now);
            if let Rivals::Fair { cubic, used_at } = &mut self.rivals {
                cubic.paused(now.duration_since(*used_at));
                *used_at = now;
            }
            (self.delivered_at, self.first_sent) = (now, now);
        }
        let (delivered, delivered_at, first_sent) = (self.delivered, self.delivered_at, self.first_sent);
        self.sendings.push_back(Sending { sent: now, delivered, delivered_at, first_sent });
        if self.sendings.len() > IN_FLIGHT_MAX {
            self.sendings.pop_front();
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        self.acked(now, sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        let Some(packet) = self.newest_acked.take() else { return };
        let acked = std::mem::take(&mut self.batch_acked);
        self.gathered[0] = self.gathered[0].max(acked);
        self.round_acks += 1;
        // QUIC's own word for it is of no use: its queue is kept so short that it is often empty for a moment.
        let app_limited = ((in_flight + acked) as f64) < USED_SHARE * self.window as f64;
        self.round_app_limited |= app_limited;
        self.delivered_at = now;
        self.first_sent = packet.sent;
        self.sample_rate(now, packet, app_limited);
        self.newest_round_trip = now.duration_since(packet.sent);
        self.round_trips.note_newest(self.newest_round_trip, acked as f64 / self.rate.max());
        if self.phase == Phase::SlowStart || self.is_first() {
            self.look_for_queue(now);
        }
        if packet.delivered >= self.round_ends_at {
            self.end_round(now);
        }
        self.set_window(now, acked, in_flight);
        let gone = self.sendings.partition_point(|sending| sending.sent <= packet.sent);
        self.sendings.drain(..gone);
        if in_flight == 0 {
            self.sendings.clear();
        }
    }

    fn on_congestion_event(&mut self, _now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.round_lost += lost_bytes;
        if sent > self.cut_at {
            self.round_lost_anew += lost_bytes;
        }
        if is_persistent {
            self.rate = RateFilter::default();
            self.window = MINIMUM_PACKETS * self.mtu;
            (self.phase, self.queue_samples) = (Phase::SlowStart, 0);
            (self.plateau_rounds, self.plateau_rate) = (0, 0.0);
            // What was lost in the outage says nothing of the slow start that follows.
            (self.round_acked, self.round_lost, self.round_lost_anew) = (0, 0, 0);
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
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const PACKET: u64 = 1200;

    /// A bottleneck with a drop-tail queue, a sender that always has data and is paced as quinn paces.
    struct Link {
        bytes_per_sec: f64,
        round_trip: Duration,
        queue_bytes: f64,
        /// One packet in so many is lost at random; 0 = none.
        loss: f64,
    }

    #[derive(Default)]
    struct Seen {
        sent: u64,
        delivered: u64,
        lost: u64,
        queue_bytes_max: f64,
    }

    struct World {
        controller: Delivery,
        start: Instant,
        now: Duration,
        /// When the bottleneck has sent what it holds.
        free_at: Duration,
        /// Sent at, acknowledged at (None = lost).
        in_flight: VecDeque<(Duration, Option<Duration>)>,
        next_send: Duration,
        smoothed: f64,
        random: u64,
        /// The receiver acknowledges nothing before.
        ack_from: Duration,
    }

    impl World {
        fn new() -> Self {
            let start = Instant::now();
            Self {
                controller: Delivery::new(start, PACKET as u16, ACK_TIME),
                start,
                now: Duration::ZERO,
                free_at: Duration::ZERO,
                in_flight: VecDeque::new(),
                next_send: Duration::ZERO,
                smoothed: 0.04,
                random: 88172645463325252,
                ack_from: Duration::ZERO,
            }
        }

        fn draw(&mut self) -> f64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Runs on for `time` over `link`, in steps of 50 us.
        fn run(&mut self, link: &Link, time: Duration) -> Seen {
            let mut seen = Seen::default();
            let end = self.now + time;
            while self.now < end {
                self.now += Duration::from_micros(50);
                self.acknowledge(&mut seen);
                while self.next_send <= self.now && self.in_flight.len() as u64 * PACKET < self.controller.window() {
                    self.send(link, &mut seen);
                }
                self.next_send = self.next_send.max(self.now.saturating_sub(Duration::from_millis(2)));
            }
            seen
        }

        fn send(&mut self, link: &Link, seen: &mut Seen) {
            self.controller.on_sent(self.start + self.now, PACKET, 0);
            seen.sent += PACKET;
            let queue_bytes = self.free_at.saturating_sub(self.now).as_secs_f64() * link.bytes_per_sec;
            seen.queue_bytes_max = seen.queue_bytes_max.max(queue_bytes);
            let fits = queue_bytes + PACKET as f64 <= link.queue_bytes;
            let mut acked_at = None;
            if fits {
                self.free_at = self.free_at.max(self.now) + Duration::from_secs_f64(PACKET as f64 / link.bytes_per_sec);
                acked_at = (self.draw() >= link.loss).then_some(self.free_at + link.round_trip);
            }
            self.in_flight.push_back((self.now, acked_at));
            self.next_send +=
                Duration::from_secs_f64(PACKET as f64 * self.smoothed / (PACING * self.controller.window() as f64));
        }

        /// Acknowledgements come in order; a packet counts as lost when three sent after it have arrived.
        fn acknowledge(&mut self, seen: &mut Seen) {
            let now = self.start + self.now;
            let is_due = |at: &Option<Duration>| at.is_some_and(|at| at <= self.now);
            let newest = self.in_flight.iter().rposition(|(_, at)| is_due(at));
            let Some(newest) = newest else { return };
            if self.now < self.ack_from {
                return;
            }
            let mut kept = VecDeque::new();
            for (index, (sent, at)) in std::mem::take(&mut self.in_flight).into_iter().enumerate() {
                if at.is_some_and(|at| at <= self.now) {
                    self.smoothed += ((self.now - sent).as_secs_f64() - self.smoothed) / 8.0;
                    seen.delivered += PACKET;
                    self.controller.acked(now, self.start + sent, PACKET);
                } else if index + 3 <= newest {
                    seen.lost += PACKET;
                    self.controller.on_congestion_event(now, self.start + sent, false, PACKET);
                } else {
                    kept.push_back((sent, at));
                }
            }
            self.in_flight = kept;
            self.controller.on_end_acks(now, self.in_flight.len() as u64 * PACKET, false, None);
        }
    }

    const PRODUCT: f64 = 896_000.0 * 0.04;

    fn link(queue_products: f64, loss: f64) -> Link {
        Link {
            bytes_per_sec: 896_000.0,
            round_trip: Duration::from_millis(40),
            queue_bytes: PRODUCT * queue_products,
            loss,
        }
    }

    fn share(seen: &Seen, link: &Link, time: Duration) -> f64 {
        seen.delivered as f64 / (link.bytes_per_sec * time.as_secs_f64())
    }

    #[test]
    fn fills_a_link_and_adds_at_most_one_and_a_half_products_of_queue() {
        let (link, mut world) = (link(2.5, 0.0), World::new());
        world.run(&link, Duration::from_secs(2));
        let time = Duration::from_secs(8);
        let seen = world.run(&link, time);
        assert!(share(&seen, &link, time) > 0.97, "share {}", share(&seen, &link, time));
        assert!(seen.queue_bytes_max < 1.5 * PRODUCT, "queue of {} products", seen.queue_bytes_max / PRODUCT);
        assert_eq!(seen.lost, 0);
    }

    #[test]
    fn does_not_collapse_under_random_loss() {
        for loss in [0.01, 0.03] {
            let (link, mut world) = (link(2.5, loss), World::new());
            world.run(&link, Duration::from_secs(2));
            let time = Duration::from_secs(10);
            let seen = world.run(&link, time);
            let got = share(&seen, &link, time) / (1.0 - loss);
            assert!(got > 0.95, "{got} of what {loss} leaves");
        }
    }

    #[test]
    fn slow_start_overflows_no_queue_of_one_product() {
        let (link, mut world) = (link(1.0, 0.0), World::new());
        let seen = world.run(&link, Duration::from_secs(1));
        assert!((seen.lost as f64) < 0.03 * seen.sent as f64, "{} of {} lost", seen.lost, seen.sent);
        assert!(share(&seen, &link, Duration::from_secs(1)) > 0.8);
    }

    #[test]
    fn a_receiver_that_pauses_ends_no_slow_start() {
        let round_trip = Duration::from_millis(50);
        let link = Link { bytes_per_sec: 896_000.0, round_trip, queue_bytes: 89_600.0, loss: 0.0 };
        let mut world = World { smoothed: 0.05, ..World::new() };
        world.run(&link, Duration::from_millis(55));
        world.ack_from = Duration::from_millis(75);
        world.run(&link, Duration::from_millis(45));
        let seen = world.run(&link, 4 * round_trip);
        let got = share(&seen, &link, 4 * round_trip);
        assert!(got > 0.87, "{got}");
    }

    #[test]
    fn slow_start_is_followed_by_no_dip() {
        for (bytes_per_sec, milliseconds) in [(896_000.0, 50), (896_000.0, 80), (896_000.0, 120), (1_792_000.0, 120)] {
            for queue_products in [1.0, 2.5] {
                let round_trip = Duration::from_millis(milliseconds);
                let queue_bytes = queue_products * bytes_per_sec * round_trip.as_secs_f64();
                let (link, mut world) = (Link { bytes_per_sec, round_trip, queue_bytes, loss: 0.0 }, World::new());
                world.smoothed = round_trip.as_secs_f64();
                world.run(&link, 4 * round_trip);
                for round in 5..=10 {
                    let seen = world.run(&link, round_trip);
                    let got = share(&seen, &link, round_trip);
                    assert!(got > 0.9, "{got} of {bytes_per_sec} bytes a second in round {round} of {milliseconds} ms, queue {queue_products}");
                }
            }
        }
    }

    #[test]
    fn slow_start_leaves_a_window_of_one_product() {
        for milliseconds in [20, 50, 100] {
            let round_trip = Duration::from_millis(milliseconds);
            let product = 896_000.0 * round_trip.as_secs_f64();
            let (link, mut world) =
                (Link { bytes_per_sec: 896_000.0, round_trip, queue_bytes: 4.0 * product, loss: 0.0 }, World::new());
            world.smoothed = round_trip.as_secs_f64();
            world.run(&link, 8 * round_trip);
            let window = world.controller.window() as f64 / product;
            let most = GAINS[1] * (round_trip + 2 * ACK_TIME).as_secs_f64() / round_trip.as_secs_f64();
            assert!((0.9..most).contains(&window), "{window} products after slow start at {milliseconds} ms");
        }
    }

    #[test]
    fn after_a_pause_no_round_drains_what_is_gone() {
        let (link, mut world) = (link(2.5, 0.0), World::new());
        world.run(&link, Duration::from_secs(2));
        for at_start in [true, false] {
            while (world.controller.place_in_cycle() == 0) == at_start {
                world.run(&link, Duration::from_millis(1));
            }
        }
        let pause = Duration::from_millis(200);
        world.next_send = world.now + pause;
        world.run(&link, pause - Duration::from_millis(1));
        let drained = world.controller.window() as f64;
        world.run(&link, Duration::from_millis(2));
        let window = world.controller.window() as f64;
        assert!(window > 1.2 * drained, "{drained}, then {window}");
    }

    #[test]
    fn a_slow_start_after_an_outage_does_not_end_by_the_queue_of_the_one_before() {
        let (link, mut world) = (link(2.5, 0.0), World::new());
        world.run(&link, Duration::from_secs(1));
        world.controller.on_congestion_event(world.start + world.now, world.start + world.now, true, 0);
        world.controller.newest_round_trip = Duration::from_secs(1);
        world.controller.look_for_queue(world.start + world.now);
        assert_eq!(world.controller.phase, Phase::SlowStart);
    }

    #[test]
    fn after_an_outage_the_rate_is_back_within_ten_rounds() {
        let round_trip = Duration::from_millis(40);
        let (link, mut world) =
            (Link { bytes_per_sec: 10e6, round_trip, queue_bytes: 2.5 * 10e6 * 0.04, loss: 0.0 }, World::new());
        world.run(&link, Duration::from_secs(2));
        world.run(&Link { queue_bytes: 0.0, ..link }, Duration::from_secs(2));
        // As QUIC tells it: a probe is acknowledged, and then that all before it is lost.
        let lost = world.in_flight.drain(..).len() as u64 * PACKET;
        world.send(&link, &mut Seen::default());
        world.now += round_trip + Duration::from_millis(1);
        world.acknowledge(&mut Seen::default());
        let now = world.start + world.now;
        world.controller.on_congestion_event(now, now, true, lost);
        world.run(&link, 10 * round_trip);
        let seen = world.run(&link, 4 * round_trip);
        let got = share(&seen, &link, 4 * round_trip);
        assert!(got > 0.9, "{got}");
    }

    #[test]
    fn beside_tcp_a_pause_is_no_time_to_grow_in() {
        let (link, mut world) = (link(2.5, 0.0), World::new());
        world.run(&link, Duration::from_secs(2));
        world.controller.join(world.start + world.now);
        world.controller.cut(world.start + world.now);
        world.run(&link, Duration::from_millis(100));
        let window = |world: &World| match &world.controller.rivals {
            Rivals::Fair { cubic, .. } => cubic.window() as f64,
            _ => panic!("it is alone again"),
        };
        let before = window(&world);
        let pause = Duration::from_secs(10);
        world.next_send = world.now + pause;
        world.run(&link, pause + Duration::from_millis(120));
        let after = window(&world);
        assert!((0.9..1.2).contains(&(after / before)), "{before}, then {after}");
    }

    #[test]
    fn a_queue_of_one_product_is_shared_without_much_loss() {
        let (link, mut world) = (link(1.0, 0.0), World::new());
        world.run(&link, Duration::from_secs(2));
        let time = Duration::from_secs(8);
        let seen = world.run(&link, time);
        assert!(share(&seen, &link, time) > 0.95);
        assert!((seen.lost as f64) < 0.01 * seen.sent as f64, "{} of {} lost", seen.lost, seen.sent);
    }

    #[test]
    fn backs_off_within_three_round_trips_when_the_link_halves() {
        let (before, mut world) = (link(2.5, 0.0), World::new());
        world.run(&before, Duration::from_secs(4));
        let after = Link { bytes_per_sec: before.bytes_per_sec / 2.0, ..before };
        world.run(&after, 3 * Duration::from_millis(100));
        let time = Duration::from_millis(500);
        let seen = world.run(&after, time);
        assert!((seen.sent as f64) < 1.15 * after.bytes_per_sec * time.as_secs_f64(), "sent {}", seen.sent);
    }

    #[test]
    fn the_queue_before_a_link_that_falls_to_a_tenth_is_no_spread_of_the_path() {
        let before = Link { round_trip: Duration::from_millis(100), ..link(100.0, 0.0) };
        let mut world = World { smoothed: 0.1, ..World::new() };
        world.run(&before, Duration::from_millis(190));
        let after = Link { bytes_per_sec: before.bytes_per_sec / 10.0, ..before };
        for _ in 0..20 {
            world.run(&after, Duration::from_millis(100));
            let spread = world.controller.round_trips.spread();
            assert!(spread < Duration::from_millis(4), "spread of {spread:?}");
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let start = Instant::now();
        let mut controller = Delivery::new(start, PACKET as u16, ACK_TIME);
        let before = controller.window();
        for round in 0..100 {
            let sent = start + Duration::from_millis(50 * round);
            controller.on_sent(sent, PACKET, round);
            controller.acked(sent + Duration::from_millis(40), sent, PACKET);
            controller.on_end_acks(sent + Duration::from_millis(40), 0, true, None);
        }
        assert_eq!(controller.window(), before);
    }
}
