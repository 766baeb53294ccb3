//! The packets that were sent and their fates, from the other end's acknowledgements (RFC 9260 sections 6.2.1 and 6.3,
//! with the loss detection of RFC 9002 section 6), and the time of the next packet (RFC 9002 section 7.7). Our
//! congestion controller decides how much may be in flight, not SCTP.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use quinn_proto::congestion::Controller;

use super::wire::{u16_at, u32_at, unwrapped};
use crate::congestion::{DeliveryController, LOST_AFTER_ROUND_TRIPS, PACING};
use crate::events::Stats;

/// Limit of packets beyond the last cumulative acknowledgement. Nothing more is sent then.
const REMEMBERED_MAX: usize = 8192;
/// The headers of IP, UDP and DTLS around a packet of SCTP.
pub const OUTSIDE_BYTES: u64 = 28 + 37;
pub const PATH_BYTES: u16 = 1200;
/// After a pause, the packets of this time leave in one burst.
const BURST: Duration = Duration::from_millis(2);
/// The least and the most packets of a burst. Browsers keep arriving packets in a queue of 64 KB.
const BURST_PACKETS: [u32; 2] = [10, 32];
/// A receiver acknowledges each second packet, which takes about this time.
const SACK_TIME: Duration = Duration::from_millis(1);
/// The round trip until one is measured.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// The other end may delay an acknowledgement by this time (RFC 9260 section 6.2).
const ACK_DELAY: Duration = Duration::from_millis(200);
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    InFlight,
    Arrived,
    Lost,
}

struct Sent {
    at: Instant,
    bytes: u64,
    fate: Fate,
    /// The body of a DATA chunk that must arrive. It is sent again when it is lost.
    resend: Option<Vec<u8>>,
}

pub struct Flight {
    controller: DeliveryController,
    /// The TSN of the first packet in `sent`, which is the first one beyond the last cumulative acknowledgement.
    first: u64,
    sent: VecDeque<Sent>,
    /// This many packets at the front of `sent` have arrived or are lost.
    settled: usize,
    in_flight_bytes: u64,
    peer_window_bytes: u64,
    smoothed: Option<Duration>,
    deviation: Duration,
    next_send: Instant,
    /// The timeout counts from here: the last acknowledgement, or the first packet in flight.
    moved: Instant,
    timeouts: u32,
    /// The last FORWARD-TSN, and when it was sent.
    forwarded: Option<(u64, Instant)>,
    sent_packets: u64,
    lost_packets: u64,
}

impl Flight {
    pub fn new(first: u32, peer_window_bytes: u32, now: Instant) -> Self {
        Self {
            controller: DeliveryController::new(now, PATH_BYTES, SACK_TIME),
            first: (1 << 32) + u64::from(first),
            sent: VecDeque::new(),
            settled: 0,
            in_flight_bytes: 0,
            peer_window_bytes: peer_window_bytes.into(),
            smoothed: None,
            deviation: Duration::ZERO,
            next_send: now,
            moved: now,
            timeouts: 0,
            forwarded: None,
            sent_packets: 0,
            lost_packets: 0,
        }
    }

    pub fn stats(&self) -> Stats {
        let Self { sent_packets, lost_packets, .. } = *self;
        Stats { rtt: self.round_trip(), sent_packets, lost_packets, window_bytes: self.controller.window() }
    }

    pub fn next_tsn(&self) -> u32 {
        (self.first + self.sent.len() as u64) as u32
    }

    /// When a packet of this length may be sent. None when the window is full.
    pub fn opens_at(&self, bytes: usize) -> Option<Instant> {
        let bytes = bytes as u64 + OUTSIDE_BYTES;
        let most = self.controller.window().min(self.peer_window_bytes);
        let is_open =
            self.sent.len() < REMEMBERED_MAX && (self.in_flight_bytes == 0 || self.in_flight_bytes + bytes <= most);
        is_open.then_some(self.next_send)
    }

    /// A packet with the next TSN was sent. `resend`: the body of its DATA chunk, if it must arrive.
    pub fn note_sent(&mut self, now: Instant, bytes: usize, resend: Option<Vec<u8>>) {
        let bytes = bytes as u64 + OUTSIDE_BYTES;
        self.controller.on_sent(now, bytes, self.first + self.sent.len() as u64);
        self.sent.push_back(Sent { at: now, bytes, fate: Fate::InFlight, resend });
        if self.in_flight_bytes == 0 {
            self.moved = now;
        }
        self.in_flight_bytes += bytes;
        self.sent_packets += 1;
        let each = self.round_trip().mul_f64(f64::from(PATH_BYTES) / (PACING * self.controller.window() as f64));
        let [least, most] = BURST_PACKETS.map(|packets| packets * each);
        let earliest = now.checked_sub(BURST.clamp(least, most)).unwrap_or(now);
        self.next_send = self.next_send.max(earliest) + each.mul_f64(bytes as f64 / f64::from(PATH_BYTES));
    }

    /// Takes the body of a SACK. Returns false when it is wrong.
    pub fn handle_sack(&mut self, now: Instant, body: &[u8]) -> bool {
        let (Some(cumulative), Some(window), Some(blocks)) = (u32_at(body, 0), u32_at(body, 4), u16_at(body, 8)) else {
            return false;
        };
        let end = unwrapped(cumulative, self.first) + 1;
        if end > self.first + self.sent.len() as u64 {
            return false;
        }
        let all = end.saturating_sub(self.first) as usize;
        let Some(arrived) = self.arrived(end, body.get(12..).unwrap_or_default(), blocks.into()) else { return false };
        self.peer_window_bytes = window.into();
        let mut newest = None;
        for places in std::iter::once(0..all).chain(arrived) {
            places.for_each(|place| self.note_arrival(now, place, &mut newest));
        }
        if let Some((place, sent_at)) = newest {
            (self.moved, self.timeouts) = (now, 0);
            let latest = now.saturating_duration_since(sent_at);
            self.measure(latest);
            let patience = latest.max(self.round_trip()).mul_f32(LOST_AFTER_ROUND_TRIPS);
            for at in self.settled..place {
                if now.saturating_duration_since(self.sent[at].at) > patience {
                    self.note_loss(now, at, false);
                }
            }
            self.controller.on_end_acks(now, self.in_flight_bytes, false, None);
        }
        self.sent.drain(..all);
        self.first = self.first.max(end);
        self.settled = self.settled.saturating_sub(all);
        while self.sent.get(self.settled).is_some_and(|sent| sent.fate != Fate::InFlight) {
            self.settled += 1;
        }
        true
    }

    /// When all packets in flight count as lost, because no acknowledgement has come.
    pub fn times_out_at(&self) -> Option<Instant> {
        let patience = self.round_trip() + (4 * self.deviation).max(ACK_DELAY);
        (self.in_flight_bytes > 0).then(|| self.moved + (patience * 2u32.pow(self.timeouts.min(8))).min(TIMEOUT_MAX))
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.timeouts += 1;
        let is_persistent = self.timeouts > 1;
        (self.settled..self.sent.len()).for_each(|at| self.note_loss(now, at, is_persistent));
        self.moved = now;
    }

    /// The FORWARD-TSN to send now: the TSN up to which all packets have arrived or are lost and not sent again. None
    /// when there is nothing to tell.
    pub fn forward(&mut self, now: Instant) -> Option<u32> {
        if self.sent.front().is_none_or(|sent| sent.fate != Fate::Lost) {
            return None;
        }
        let over = self
            .sent
            .iter()
            .take_while(|sent| sent.fate != Fate::InFlight && (sent.fate == Fate::Arrived || sent.resend.is_none()));
        let forward = self.first + over.count() as u64;
        let is_known = self.forwarded.is_some_and(|(told, at)| told >= forward && now < at + self.round_trip());
        if is_known || forward == self.first {
            return None;
        }
        self.forwarded = Some((forward, now));
        Some((forward - 1) as u32)
    }

    /// The body of a DATA chunk that must arrive and was lost. It counts as sent at `now`.
    pub fn resend(&mut self, now: Instant) -> Option<Vec<u8>> {
        let sent = self.sent.iter_mut().find(|sent| sent.fate == Fate::Lost && sent.resend.is_some())?;
        (sent.at, sent.fate) = (now, Fate::InFlight);
        self.in_flight_bytes += sent.bytes;
        self.settled = 0;
        sent.resend.clone()
    }

    fn round_trip(&self) -> Duration {
        self.smoothed.unwrap_or(ROUND_TRIP)
    }

    /// Takes a round trip, also that of SCTP's handshake (RFC 9002 section 5.3).
    pub fn measure(&mut self, sample: Duration) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.deviation) = (Some(sample), sample / 2);
            return;
        };
        self.deviation = (3 * self.deviation + smoothed.abs_diff(sample)) / 4;
        self.smoothed = Some((7 * smoothed + sample) / 8);
    }

    /// The places in `sent` that a SACK's gap blocks name. None when a block names a packet that was never sent.
    fn arrived(&self, end: u64, blocks: &[u8], count: usize) -> Option<Vec<Range<usize>>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        for block in blocks.chunks_exact(4).take(count) {
            let edge = |at: usize| u16_at(block, at).map(|offset| end - 1 + u64::from(offset));
            let (start, past) = (edge(0)?, edge(2)? + 1);
            if past > self.first + self.sent.len() as u64 {
                return None;
            }
            let place = |tsn: u64| tsn.saturating_sub(self.first) as usize;
            let from = places.last().map_or(0, |before| before.end);
            places.push(place(start).max(from)..place(past).max(from));
        }
        Some(places)
    }

    fn note_arrival(&mut self, now: Instant, place: usize, newest: &mut Option<(usize, Instant)>) {
        let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.fate == Fate::InFlight) else { return };
        sent.fate = Fate::Arrived;
        self.in_flight_bytes -= sent.bytes;
        // When a packet was sent twice, it is unknown which of the two has arrived, so it gives no sample.
        if sent.resend.is_none() {
            self.controller.acked(now, sent.at, sent.bytes);
            *newest = Some((place, sent.at));
        }
    }

    fn note_loss(&mut self, now: Instant, place: usize, is_persistent: bool) {
        let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.fate == Fate::InFlight) else { return };
        sent.fate = Fate::Lost;
        self.in_flight_bytes -= sent.bytes;
        self.lost_packets += 1;
        self.controller.on_congestion_event(now, sent.at, is_persistent, sent.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1000;

    fn sack(cumulative: u32, blocks: &[(u16, u16)]) -> Vec<u8> {
        let mut body = [cumulative.to_be_bytes(), 1_000_000u32.to_be_bytes()].concat();
        body.extend_from_slice(&(blocks.len() as u16).to_be_bytes());
        body.extend_from_slice(&[0; 2]);
        for (first, last) in blocks {
            body.extend_from_slice(&[first.to_be_bytes(), last.to_be_bytes()].concat());
        }
        body
    }

    fn flight_of(count: u32, first: u32) -> (Flight, Instant) {
        let now = Instant::now();
        let mut flight = Flight::new(first, 1_000_000, now);
        (0..count).for_each(|_| flight.note_sent(now, BYTES, None));
        (flight, now + Duration::from_millis(40))
    }

    #[test]
    fn an_acknowledged_packet_is_not_in_flight() {
        let (mut flight, now) = flight_of(10, u32::MAX - 3);
        assert!(flight.handle_sack(now, &sack(0, &[(2, 3)])));
        assert_eq!(flight.sent.len(), 5);
        assert_eq!(flight.in_flight_bytes, 3 * (BYTES as u64 + OUTSIDE_BYTES));
        assert_eq!(flight.stats().rtt, Duration::from_millis(40));
        assert!(flight.handle_sack(now, &sack(5, &[])));
        assert_eq!((flight.in_flight_bytes, flight.next_tsn(), flight.times_out_at()), (0, 6, None));
    }

    #[test]
    fn a_packet_that_was_overtaken_long_ago_is_lost_and_the_receiver_does_not_wait_for_it() {
        let (mut flight, now) = flight_of(10, 1);
        assert!(flight.handle_sack(now, &sack(2, &[(2, 8)])));
        assert_eq!((flight.lost_packets, flight.forward(now)), (0, None));
        flight.note_sent(now, BYTES, None);
        let now = now + Duration::from_millis(40);
        assert!(flight.handle_sack(now, &sack(2, &[(2, 9)])));
        assert_eq!(flight.lost_packets, 1);
        assert_eq!(flight.forward(now), Some(11));
        assert_eq!(flight.forward(now), None);
        assert_eq!(flight.forward(now + Duration::from_millis(41)), Some(11));
        assert!(flight.handle_sack(now, &sack(11, &[])));
        assert_eq!(flight.forward(now + Duration::from_secs(1)), None);
    }

    #[test]
    fn a_lost_packet_that_must_arrive_is_sent_again_and_the_receiver_waits_for_it() {
        let now = Instant::now();
        let mut flight = Flight::new(1, 1_000_000, now);
        flight.note_sent(now, BYTES, Some(vec![7]));
        flight.note_sent(now + Duration::from_millis(20), BYTES, None);
        let now = now + Duration::from_millis(40);
        assert!(flight.handle_sack(now, &sack(0, &[(2, 2)])));
        assert_eq!(flight.forward(now), None);
        assert_eq!(flight.resend(now), Some(vec![7]));
        assert_eq!(flight.resend(now), None);
    }

    #[test]
    fn a_timeout_counts_all_packets_as_lost_and_opens_the_window() {
        let (mut flight, now) = flight_of(32, 1);
        let due = flight.times_out_at().unwrap();
        assert!(due > now && flight.opens_at(50 * BYTES).is_none());
        flight.handle_timeout(due);
        assert_eq!((flight.lost_packets, flight.forward(due)), (32, Some(32)));
        assert!(flight.opens_at(BYTES).is_some());
        let before = flight.controller.window();
        flight.note_sent(due, BYTES, None);
        let again = flight.times_out_at().unwrap();
        assert!(again - due > due - now);
        flight.handle_timeout(again);
        assert!(flight.controller.window() < before);
    }

    #[test]
    fn refuses_an_acknowledgement_of_packets_that_were_never_sent() {
        let (mut flight, now) = flight_of(3, 1);
        for wrong in [sack(4, &[]), sack(0, &[(2, 4)]), sack(0, &[(1, u16::MAX)]), vec![0; 9]] {
            assert!(!flight.handle_sack(now, &wrong));
        }
        assert_eq!(flight.in_flight_bytes, 3 * (BYTES as u64 + OUTSIDE_BYTES));
        assert!(flight.handle_sack(now, &sack(3, &[])));
        assert!(flight.handle_sack(now, &sack(1, &[])), "an old acknowledgement is late, not wrong");
        assert_eq!(flight.sent.len(), 0);
    }

    #[test]
    fn spreads_packets_over_a_round_trip() {
        let start = Instant::now();
        let mut flight = Flight::new(1, 1_000_000, start);
        flight.measure(Duration::from_millis(40));
        let (mut now, mut last) = (start, start);
        while let Some(at) = flight.opens_at(BYTES) {
            now = now.max(at);
            last = now;
            flight.note_sent(now, BYTES, None);
        }
        let took = last - start;
        assert!(took > Duration::from_millis(20) && took < Duration::from_millis(32), "{took:?}");
    }
}
