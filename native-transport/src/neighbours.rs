//! The controller beside TCP, in simulation: flows of ours, of Cubic and of BBR (version 1) through one drop-tail
//bottleneck.
//! Models of the rivals, simple and whole enough to share as they do: RFC 9438 without its Reno-friendly region, and
//! draft-cardwell-iccrg-bbr-congestion-control-00. Test code only.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use quinn_proto::congestion::Controller;

use crate::congestion::{DeliveryController, ACK_TIME, LOST_AFTER_ROUND_TRIPS, PACING};

const PACKET: f64 = 1200.0;
const ROUND_TRIP: f64 = 0.04;
const RATE: f64 = 1_250_000.0;
const STEP: f64 = 50e-6;

/// Times in seconds, sizes in bytes.
trait Sender {
    /// How its receiver gathers acknowledgements: packets, seconds.
    fn gathers(&self) -> (usize, f64) {
        (1, 0.0)
    }
    /// Is a packet lost that has not come after so many seconds, though one that was sent so many later has?
    fn gives_up(&self, _seconds: f64, _round_trip: f64, overtaken: usize) -> bool {
        overtaken >= 3
    }
    fn window(&self) -> f64;
    fn pacing(&self, smoothed: f64) -> f64;
    fn sent(&mut self, now: f64);
    /// Packets that were sent at these times have arrived.
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
    /// Sent at, delivered by then, when.
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

fn ours() -> Box<dyn Sender> {
    ours_to_one_who_gathers((1, 0.0))
}

/// As Chromium does after its first hundred packets: ten of them, or a quarter of a round trip.
fn ours_to_a_browser() -> Box<dyn Sender> {
    ours_to_one_who_gathers((10, ROUND_TRIP / 4.0))
}

fn ours_to_one_who_gathers(gathers: (usize, f64)) -> Box<dyn Sender> {
    let start = Instant::now();
    Box::new(Ours { controller: DeliveryController::new(start, PACKET as u16, ACK_TIME), start, gathers })
}

fn cubic() -> Box<dyn Sender> {
    Box::new(Cubic { window: 10.0, threshold: f64::MAX, most: 0.0, epoch: -1.0 })
}

fn bbr() -> Box<dyn Sender> {
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

struct Flow {
    sender: Box<dyn Sender>,
    /// Its receiver acknowledges so many packets at once, or those of so many seconds.
    gathers: (usize, f64),
    from: f64,
    /// Sent at, arrives at (infinite: lost).
    in_flight: VecDeque<(f64, f64)>,
    next_send: f64,
    /// When the latest packet on its way comes.
    last_arrives: f64,
    smoothed: f64,
    delivered: f64,
    lost: f64,
}

struct Outcome {
    /// Bytes a second, per flow.
    rates: Vec<f64>,
    /// Shares of packets lost, per flow.
    losses: Vec<f64>,
    queue_mean: f64,
}

fn run(senders: Vec<Box<dyn Sender>>, queue_products: f64, seconds: f64, seed: u64) -> Outcome {
    run_with_jitter(senders, queue_products, seconds, seed, 0.0)
}

/// Runs the flows for `seconds` and tells of all but the first fifth. They start 300 ms apart. Queues in products. Each
/// packet comes up to twice `jitter` seconds later, by what two ways add, and none before one that was sent before it.
fn run_with_jitter(
    senders: Vec<Box<dyn Sender>>,
    queue_products: f64,
    seconds: f64,
    seed: u64,
    jitter: f64,
) -> Outcome {
    let mut flows: Vec<Flow> = senders
        .into_iter()
        .enumerate()
        .map(|(index, sender)| Flow {
            gathers: sender.gathers(),
            sender,
            from: 0.3 * index as f64,
            in_flight: VecDeque::new(),
            next_send: 0.0,
            last_arrives: 0.0,
            smoothed: ROUND_TRIP,
            delivered: 0.0,
            lost: 0.0,
        })
        .collect();
    let queue_bytes = queue_products * RATE * ROUND_TRIP;
    let (mut free_at, mut queue_sum, mut now, mut settled, mut turn) = (0.0f64, 0.0, 0.0f64, false, 0);
    let mut random = 88172645463325252u64 ^ seed.wrapping_mul(0x9e3779b97f4a7c15);
    while now < seconds {
        now += STEP;
        if !settled && now > seconds / 5.0 {
            settled = true;
            queue_sum = 0.0;
            flows.iter_mut().for_each(|flow| (flow.delivered, flow.lost) = (0.0, 0.0));
        }
        queue_sum += (free_at - now).max(0.0) * STEP;
        turn += 1;
        for at in 0..flows.len() {
            let count = flows.len();
            let flow = &mut flows[(at + turn) % count];
            acknowledge(flow, now);
            while now >= flow.from
                && flow.next_send <= now
                && (flow.in_flight.len() as f64 + 1.0) * PACKET <= flow.sender.window()
            {
                // Half a packet of chance, or flows that pace alike fall into step.
                let mut draw = || {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    (random >> 11) as f64 / (1u64 << 53) as f64
                };
                let (chance, late) = (draw(), if jitter > 0.0 { jitter * (draw() + draw()) } else { 0.0 });
                flow.sender.sent(now);
                let waiting = (free_at - now).max(0.0) * RATE;
                let mut arrives = f64::INFINITY;
                if waiting + PACKET <= queue_bytes {
                    free_at = free_at.max(now) + PACKET / RATE;
                    flow.last_arrives = flow.last_arrives.max(free_at + ROUND_TRIP + late);
                    arrives = flow.last_arrives;
                }
                flow.in_flight.push_back((now, arrives));
                flow.next_send =
                    flow.next_send.max(now - 0.002) + (0.5 + chance) * PACKET / flow.sender.pacing(flow.smoothed);
            }
        }
    }
    let span = seconds * 0.8;
    Outcome {
        rates: flows.iter().map(|flow| flow.delivered / span).collect(),
        losses: flows.iter().map(|flow| flow.lost / (flow.lost + flow.delivered).max(1.0)).collect(),
        queue_mean: queue_sum / span / ROUND_TRIP,
    }
}

/// A receiver that sees a gap tells of it at once.
fn is_gathering(flow: &Flow, now: f64) -> bool {
    let came = || flow.in_flight.iter().map(|&(_, at)| at).filter(|&at| at <= now);
    let sees_gap = flow.in_flight.front().is_some_and(|&(_, at)| at.is_infinite()) && came().count() >= 3;
    let (packets, seconds) = flow.gathers;
    (1..packets).contains(&came().count()) && !sees_gap && now < came().fold(f64::INFINITY, f64::min) + seconds
}

fn acknowledge(flow: &mut Flow, now: f64) {
    if is_gathering(flow, now) {
        return;
    }
    let Some(newest) = flow.in_flight.iter().rposition(|&(_, at)| at <= now) else {
        // A probe timeout: nothing of what is out has been heard of.
        while flow.in_flight.back().is_some_and(|&(sent, _)| now - sent > 3.0 * flow.smoothed) {
            let (sent, _) = flow.in_flight.pop_front().unwrap();
            flow.lost += PACKET;
            flow.sender.lost(now, sent);
        }
        return;
    };
    let latest = now - flow.in_flight[newest].0;
    let mut acked = Vec::new();
    let mut kept = VecDeque::new();
    for (index, (sent, at)) in std::mem::take(&mut flow.in_flight).into_iter().enumerate() {
        if at <= now {
            flow.smoothed += (now - sent - flow.smoothed) / 8.0;
            flow.delivered += PACKET;
            acked.push(sent);
        } else if index < newest && flow.sender.gives_up(now - sent, latest.max(flow.smoothed), newest - index) {
            flow.lost += PACKET;
            flow.sender.lost(now, sent);
        } else {
            kept.push_back((sent, at));
        }
    }
    flow.in_flight = kept;
    flow.sender.acked(now, &acked, flow.in_flight.len() as f64 * PACKET);
}

/// Flows of theirs, then of ours: the mean rate of one of ours over one of theirs.
fn tell(
    what: &str,
    theirs: Vec<Box<dyn Sender>>,
    ours: Vec<Box<dyn Sender>>,
    queue_products: f64,
    seed: u64,
) -> (f64, Outcome) {
    let split = theirs.len();
    let outcome = run(theirs.into_iter().chain(ours).collect(), queue_products, 60.0, seed);
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let ratio = mean(&outcome.rates[split..]) / mean(&outcome.rates[..split]);
    println!(
        "{what}, queue {queue_products}: ratio {ratio:.2}, rates {:.0?}, lost {:.3?}, queue {:.2}",
        outcome.rates, outcome.losses, outcome.queue_mean
    );
    (ratio, outcome)
}

/// Over eleven seeds: two flows come to one of several states at a seed's whim.
fn median_of(ratio: impl Fn(u64) -> f64) -> f64 {
    let mut ratios: Vec<f64> = (0..11).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[5]
}

/// The models of BBR take more from ours than the kernel's own does over lab/links, where the shares are measured.
#[test]
fn neither_starves_nor_is_starved_beside_one_flow_of_tcp() {
    let cases: [(&str, fn() -> Box<dyn Sender>, f64, f64, f64); 5] = [
        ("bbr", bbr, 1.0, 0.33, 1.0),
        ("bbr", bbr, 2.5, 0.5, 3.0),
        ("cubic", cubic, 0.5, 0.5, 2.0),
        ("cubic", cubic, 1.0, 0.5, 2.0),
        ("cubic", cubic, 2.5, 0.4, 2.0),
    ];
    for (name, rival, queue_products, least, most) in cases {
        let ratio = median_of(|seed| {
            let (ratio, outcome) = tell(name, vec![rival()], vec![ours()], queue_products, seed);
            assert!(outcome.losses[1] < 0.12, "{name}, queue {queue_products}: {:.3} of ours lost", outcome.losses[1]);
            ratio
        });
        assert!((least..=most).contains(&ratio), "{name}, queue {queue_products}: {ratio}");
    }
}

/// Beside BBR in a queue of one product such a flow has a quarter of its rate here, as one of Cubic has.
#[test]
fn gathered_acknowledgements_cost_little_beside_cubic() {
    for queue_products in [0.5, 1.0, 2.5] {
        let ratio = median_of(|seed| {
            tell("cubic, ours to a browser", vec![cubic()], vec![ours_to_a_browser()], queue_products, seed).0
        });
        assert!((0.38..=2.0).contains(&ratio), "queue {queue_products}: {ratio}");
    }
}

#[test]
fn gathered_acknowledgements_leave_no_link_idle() {
    for queue_products in [1.0, 2.5] {
        let outcome = run(vec![ours_to_a_browser()], queue_products, 60.0, 0);
        println!(
            "alone to a browser, queue {queue_products}: {:.3}, queue {:.2}",
            outcome.rates[0] / RATE,
            outcome.queue_mean
        );
        assert!(
            outcome.rates[0] > 0.96 * RATE && outcome.queue_mean < 0.5,
            "queue {queue_products}: {:?}, queue {}",
            outcome.rates,
            outcome.queue_mean
        );
    }
}

/// What heeds no losses in a crowd starves those who do.
#[test]
fn a_crowd_of_tcp_is_joined_as_one_more_each() {
    for queue_products in [1.0, 2.5] {
        let (ratio, outcome) =
            tell("cubic and ours", vec![cubic(), cubic(), cubic()], vec![ours(), ours(), ours()], queue_products, 0);
        assert!((0.5..=2.2).contains(&ratio), "queue {queue_products}: {ratio}");
        assert!(outcome.losses.iter().all(|&lost| lost < 0.05), "queue {queue_products}: {:.3?} lost", outcome.losses);
    }
}

#[test]
fn flows_of_ours_share_alike_and_lose_little() {
    for (queue_products, count) in [(1.0, 2), (2.5, 2), (1.0, 3)] {
        let (ratio, outcome) = tell("ours", vec![ours()], (1..count).map(|_| ours()).collect(), queue_products, 0);
        assert!((0.5..=2.0).contains(&ratio), "queue {queue_products}: {ratio}");
        assert!(outcome.losses.iter().all(|&lost| lost < 0.03), "queue {queue_products}: {:.3?} lost", outcome.losses);
    }
}

/// Two of ours must not take each other for flows that heed nothing.
#[test]
fn several_beside_bbr_lose_no_more_than_one() {
    for (theirs, count) in [(1, 2), (2, 1)] {
        let (ratio, outcome) =
            tell("bbr and ours", (0..theirs).map(|_| bbr()).collect(), (0..count).map(|_| ours()).collect(), 1.0, 0);
        assert!((0.3..=1.5).contains(&ratio), "{ratio}");
        assert!(outcome.losses.iter().all(|&lost| lost < 0.15), "{:.3?} lost", outcome.losses);
    }
}

/// The models are what they are models of.
#[test]
fn rivals_alone_fill_the_link_and_share_with_each_other() {
    for rival in [bbr, cubic] {
        let outcome = run(vec![rival(), rival()], 1.0, 60.0, 0);
        let ratio = outcome.rates[1] / outcome.rates[0];
        assert!((0.4..=2.5).contains(&ratio), "{ratio}");
        assert!(outcome.rates.iter().sum::<f64>() > 0.9 * RATE, "{:?}", outcome.rates);
    }
}

/// A way whose packets take now more and now less time, as over radio, needs more in flight than its lowest round trip
/// says.
#[test]
fn jitter_leaves_no_link_idle() {
    for (jitter, least) in [(0.01, 0.93), (0.02, 0.9), (0.04, 0.75), (0.07, 0.5)] {
        let share = median_of(|seed| run_with_jitter(vec![ours()], 2.5, 2.0, seed, jitter).rates[0] / RATE);
        println!("alone, jitter {jitter}: {share:.3} of the link in the first two seconds");
        assert!(share > least, "jitter {jitter}: {share}");
    }
}
