//! One bottleneck with a drop-tail queue, and the flows through it.

use std::collections::VecDeque;

use super::senders::Sender;

pub const PACKET: f64 = 1200.0;
pub const ROUND_TRIP: f64 = 0.04;
pub const RATE: f64 = 1_250_000.0;
const STEP: f64 = 50e-6;

struct Flow {
    sender: Box<dyn Sender>,
    /// See `Sender::gathers`.
    gathers: (usize, f64),
    from: f64,
    /// For each packet: when it was sent, and when it arrives (infinite: it is lost).
    in_flight: VecDeque<(f64, f64)>,
    next_send: f64,
    /// When the last packet in flight arrives.
    last_arrives: f64,
    smoothed: f64,
    delivered: f64,
    lost: f64,
}

pub struct Outcome {
    /// Bytes a second, per flow.
    pub rates: Vec<f64>,
    /// Shares of packets lost, per flow.
    pub losses: Vec<f64>,
    /// In bandwidth-delay products.
    pub queue_mean: f64,
}

pub fn run(senders: Vec<Box<dyn Sender>>, queue_products: f64, seconds: f64, seed: u64) -> Outcome {
    run_with_jitter(senders, queue_products, seconds, seed, 0.0)
}

/// Runs the flows for `seconds` and counts all but the first fifth. Each flow starts 300 ms after the one before it.
/// The queue's size is in bandwidth-delay products. Each packet is late by up to twice `jitter` seconds (the sum of
/// two draws), but packets stay in order.
pub fn run_with_jitter(
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
                // Up to half a packet of randomness keeps flows with equal pacing from falling into step.
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

/// Whether the receiver still waits for more packets before it acknowledges. It reports a gap at once.
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
        // A probe timeout: no packet in flight has arrived.
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
