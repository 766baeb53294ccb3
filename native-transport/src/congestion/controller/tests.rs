//! The controller in simulation: one flow over one bottleneck.

use std::collections::VecDeque;

use super::super::ACK_TIME;
use super::*;

const PACKET: u64 = 1200;

/// A bottleneck with a drop-tail queue.
struct Link {
    bytes_per_sec: f64,
    round_trip: Duration,
    queue_bytes: f64,
    /// The share of packets that is lost at random.
    loss: f64,
}

#[derive(Default)]
struct Seen {
    sent: u64,
    delivered: u64,
    lost: u64,
    queue_bytes_max: f64,
}

/// A sender that always has data and is paced as quinn paces.
struct World {
    controller: DeliveryController,
    start: Instant,
    now: Duration,
    /// When the bottleneck's queue will be empty.
    free_at: Duration,
    /// When each packet was sent, and when it is acknowledged (None: it is lost).
    in_flight: VecDeque<(Duration, Option<Duration>)>,
    next_send: Duration,
    smoothed: f64,
    random: u64,
    /// The receiver acknowledges nothing before this time.
    ack_from: Duration,
}

impl World {
    fn new() -> Self {
        let start = Instant::now();
        Self {
            controller: DeliveryController::new(start, PACKET as u16, ACK_TIME),
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

    /// Runs for `time` over `link`, in steps of 50 µs.
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

    /// Acknowledgements come in order. A packet counts as lost when three later packets have arrived.
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
fn keeps_its_rate_under_random_loss() {
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
fn a_pause_of_the_receiver_does_not_end_slow_start() {
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
fn the_rate_does_not_dip_after_slow_start() {
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
                let path = format!("{bytes_per_sec} bytes/s, {milliseconds} ms, queue of {queue_products} products");
                assert!(got > 0.9, "{got} of the link in round {round}: {path}");
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
fn after_a_pause_no_round_drains_an_empty_queue() {
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
fn slow_start_after_an_outage_ignores_the_queue_of_the_slow_start_before() {
    let (link, mut world) = (link(2.5, 0.0), World::new());
    world.run(&link, Duration::from_secs(1));
    world.controller.on_congestion_event(world.start + world.now, world.start + world.now, true, 0);
    world.controller.newest_round_trip = Duration::from_secs(1);
    world.controller.look_for_queue(world.start + world.now);
    assert_eq!(world.controller.phase, Phase::SlowStart);
}

#[test]
fn the_rate_recovers_within_ten_rounds_after_an_outage() {
    let round_trip = Duration::from_millis(40);
    let (link, mut world) =
        (Link { bytes_per_sec: 10e6, round_trip, queue_bytes: 2.5 * 10e6 * 0.04, loss: 0.0 }, World::new());
    world.run(&link, Duration::from_secs(2));
    world.run(&Link { queue_bytes: 0.0, ..link }, Duration::from_secs(2));
    // QUIC reports an outage in this order: a probe is acknowledged, then all earlier packets are lost.
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
fn beside_tcp_the_window_does_not_grow_during_a_pause() {
    let (link, mut world) = (link(2.5, 0.0), World::new());
    world.run(&link, Duration::from_secs(2));
    world.controller.join(world.start + world.now);
    world.controller.cut(world.start + world.now);
    world.run(&link, Duration::from_millis(100));
    let window = |world: &World| match &world.controller.rivals {
        Rivals::Fair { cubic, .. } => cubic.window() as f64,
        _ => panic!("the flow has no rivals"),
    };
    let before = window(&world);
    let pause = Duration::from_secs(10);
    world.next_send = world.now + pause;
    world.run(&link, pause + Duration::from_millis(120));
    let after = window(&world);
    assert!((0.9..1.2).contains(&(after / before)), "{before}, then {after}");
}

#[test]
fn fills_a_link_with_a_queue_of_one_product_and_loses_little() {
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
fn the_queue_of_a_link_that_falls_to_a_tenth_does_not_count_as_spread() {
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
    let mut controller = DeliveryController::new(start, PACKET as u16, ACK_TIME);
    let before = controller.window();
    for round in 0..100 {
        let sent = start + Duration::from_millis(50 * round);
        controller.on_sent(sent, PACKET, round);
        controller.acked(sent + Duration::from_millis(40), sent, PACKET);
        controller.on_end_acks(sent + Duration::from_millis(40), 0, true, None);
    }
    assert_eq!(controller.window(), before);
}
