//! What was sent and what became of it, as the other end's acknowledgements tell (RFC 9260 sections 6.2.1 and 6.3, with
//the
//! loss detection of RFC 9002 section 6); when the next packet may go (RFC 9002 section 7.7). How much may be under way
//at
//! once is the controller's affair, not SCTP's.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use quinn_proto::congestion::Controller;

use super::wire::{u16_at, u32_at, unwrapped};
use crate::congestion::{Delivery, LOST_AFTER_ROUND_TRIPS, PACING};
use crate::events::Stats;

/// So many are remembered that the other end has not acknowledged together with all before them.
const REMEMBERED_MAX: usize = 8192;
/// What is on the path besides an SCTP packet: headers of IP, UDP and DTLS.
pub const OUTSIDE_BYTES: u64 = 28 + 37;
pub const PATH_BYTES: u16 = 1200;
/// A pause is made up for by packets at once as far as this time goes, by so many at least and at most: browsers keep
/// what has come in a queue of 64 KB.
const BURST: Duration = Duration::from_millis(2);
const BURST_PACKETS: [u32; 2] = [10, 32];
/// A receiver acknowledges each second packet.
const SACK_TIME: Duration = Duration::from_millis(1);
/// As long as none is measured.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// The other end may keep an acknowledgement back for so long.
const ACK_DELAY: Duration = Duration::from_millis(200);
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Flying,
    Arrived,
    Lost,
}

struct Sent {
    at: Instant,
    bytes: u64,
    fate: Fate,
    /// A DATA chunk's body that must arrive.
    again: Option<Vec<u8>>,
}

pub struct Flight {
    controller: Delivery,
    /// The number of the first that is not acknowledged together with all before it.
    first: u64,
    sent: VecDeque<Sent>,
    /// None of so many is flying.
    settled: usize,
    flying_bytes: u64,
    peer_window_bytes: u64,
    smoothed: Option<Duration>,
    deviation: Duration,
    next_send: Instant,
    /// The last one that was sent, or that an acknowledgement spoke of.
    moved: Instant,
    timeouts: u32,
    forward_told: Option<(u64, Instant)>,
    sent_packets: u64,
    lost_packets: u64,
}

impl Flight {
    pub fn new(first: u32, peer_window_bytes: u32, now: Instant) -> Self {
        Self {
            controller: Delivery::new(now, PATH_BYTES, SACK_TIME),
            first: (1 << 32) + u64::from(first),
            sent: VecDeque::new(),
            settled: 0,
            flying_bytes: 0,
            peer_window_bytes: peer_window_bytes.into(),
            smoothed: None,
            deviation: Duration::ZERO,
            next_send: now,
            moved: now,
            timeouts: 0,
            forward_told: None,
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

    /// When a packet of so many bytes may go; None as long as too much is under way.
    pub fn opens_at(&self, bytes: usize) -> Option<Instant> {
        let bytes = bytes as u64 + OUTSIDE_BYTES;
        let most = self.controller.window().min(self.peer_window_bytes);
        let is_open = self.sent.len() < REMEMBERED_MAX && (self.flying_bytes == 0 || self.flying_bytes + bytes <= most);
        is_open.then_some(self.next_send)
    }

    /// A packet with the next TSN has gone. `again`: the DATA chunk's body, if it must arrive.
    pub fn note_sent(&mut self, now: Instant, bytes: usize, again: Option<Vec<u8>>) {
        let bytes = bytes as u64 + OUTSIDE_BYTES;
        self.controller.on_sent(now, bytes, self.first + self.sent.len() as u64);
        self.sent.push_back(Sent { at: now, bytes, fate: Fate::Flying, again });
        if self.flying_bytes == 0 {
            self.moved = now;
        }
        self.flying_bytes += bytes;
        self.sent_packets += 1;
        let each = self.round_trip().mul_f64(f64::from(PATH_BYTES) / (PACING * self.controller.window() as f64));
        let [least, most] = BURST_PACKETS.map(|packets| packets * each);
        let earliest = now.checked_sub(BURST.clamp(least, most)).unwrap_or(now);
        self.next_send = self.next_send.max(earliest) + each.mul_f64(bytes as f64 / f64::from(PATH_BYTES));
    }

    /// The body of a SACK. False when it makes no sense.
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
            self.controller.on_end_acks(now, self.flying_bytes, false, None);
        }
        self.sent.drain(..all);
        self.first = self.first.max(end);
        self.settled = self.settled.saturating_sub(all);
        while self.sent.get(self.settled).is_some_and(|sent| sent.fate != Fate::Flying) {
            self.settled += 1;
        }
        true
    }

    /// When nothing has been heard for so long that all that is under way counts as lost.
    pub fn times_out_at(&self) -> Option<Instant> {
        let patience = self.round_trip() + (4 * self.deviation).max(ACK_DELAY);
        (self.flying_bytes > 0).then(|| self.moved + (patience * 2u32.pow(self.timeouts.min(8))).min(TIMEOUT_MAX))
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.timeouts += 1;
        let is_persistent = self.timeouts > 1;
        (self.settled..self.sent.len()).for_each(|at| self.note_loss(now, at, is_persistent));
        self.moved = now;
    }

    /// What the other end need not wait for: the TSN up to which all have arrived or are lost for good, to be told it
    /// now.
    pub fn forward(&mut self, now: Instant) -> Option<u32> {
        if self.sent.front().is_none_or(|sent| sent.fate != Fate::Lost) {
            return None;
        }
        let over = self
            .sent
            .iter()
            .take_while(|sent| sent.fate != Fate::Flying && (sent.fate == Fate::Arrived || sent.again.is_none()));
        let forward = self.first + over.count() as u64;
        let was_told = self.forward_told.is_some_and(|(told, at)| told >= forward && now < at + self.round_trip());
        if was_told || forward == self.first {
            return None;
        }
        self.forward_told = Some((forward, now));
        Some((forward - 1) as u32)
    }

    /// A lost packet that must arrive: its DATA chunk's body, which counts as sent again now.
    pub fn again(&mut self, now: Instant) -> Option<Vec<u8>> {
        let sent = self.sent.iter_mut().find(|sent| sent.fate == Fate::Lost && sent.again.is_some())?;
        (sent.at, sent.fate) = (now, Fate::Flying);
        self.flying_bytes += sent.bytes;
        self.settled = 0;
        sent.again.clone()
    }

    fn round_trip(&self) -> Duration {
        self.smoothed.unwrap_or(ROUND_TRIP)
    }

    /// A round trip was seen, be it of SCTP's handshake (RFC 9002 section 5.3).
    pub fn measure(&mut self, sample: Duration) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.deviation) = (Some(sample), sample / 2);
            return;
        };
        self.deviation = (3 * self.deviation + smoothed.abs_diff(sample)) / 4;
        self.smoothed = Some((7 * smoothed + sample) / 8);
    }

    /// The places that a SACK's gap blocks speak of; None when one of them was never sent.
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
        let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.fate == Fate::Flying) else { return };
        sent.fate = Fate::Arrived;
        self.flying_bytes -= sent.bytes;
        // Of what was sent again nobody knows which of them has come.
        if sent.again.is_none() {
            self.controller.acked(now, sent.at, sent.bytes);
            *newest = Some((place, sent.at));
        }
    }

    fn note_loss(&mut self, now: Instant, place: usize, is_persistent: bool) {
        let Some(sent) = self.sent.get_mut(place).filter(|sent| sent.fate == Fate::Flying) else { return };
        sent.fate = Fate::Lost;
        self.flying_bytes -= sent.bytes;
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
    fn what_is_acknowledged_is_no_longer_under_way() {
        let (mut flight, now) = flight_of(10, u32::MAX - 3);
        assert!(flight.handle_sack(now, &sack(0, &[(2, 3)])));
        assert_eq!(flight.sent.len(), 5);
        assert_eq!(flight.flying_bytes, 3 * (BYTES as u64 + OUTSIDE_BYTES));
        assert_eq!(flight.stats().rtt, Duration::from_millis(40));
        assert!(flight.handle_sack(now, &sack(5, &[])));
        assert_eq!((flight.flying_bytes, flight.next_tsn(), flight.times_out_at()), (0, 6, None));
    }

    #[test]
    fn what_later_ones_have_overtaken_for_long_is_lost_and_the_receiver_told_not_to_wait() {
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
    fn what_must_arrive_is_sent_again_and_holds_the_receiver() {
        let now = Instant::now();
        let mut flight = Flight::new(1, 1_000_000, now);
        flight.note_sent(now, BYTES, Some(vec![7]));
        flight.note_sent(now + Duration::from_millis(20), BYTES, None);
        let now = now + Duration::from_millis(40);
        assert!(flight.handle_sack(now, &sack(0, &[(2, 2)])));
        assert_eq!(flight.forward(now), None);
        assert_eq!(flight.again(now), Some(vec![7]));
        assert_eq!(flight.again(now), None);
    }

    #[test]
    fn silence_counts_all_as_lost_and_lets_more_go() {
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
    fn what_was_never_sent_cannot_be_acknowledged() {
        let (mut flight, now) = flight_of(3, 1);
        for wrong in [sack(4, &[]), sack(0, &[(2, 4)]), sack(0, &[(1, u16::MAX)]), vec![0; 9]] {
            assert!(!flight.handle_sack(now, &wrong));
        }
        assert_eq!(flight.flying_bytes, 3 * (BYTES as u64 + OUTSIDE_BYTES));
        assert!(flight.handle_sack(now, &sack(3, &[])));
        assert!(flight.handle_sack(now, &sack(1, &[])), "an old one is late, not wrong");
        assert_eq!(flight.sent.len(), 0);
    }

    #[test]
    fn packets_are_spread_over_a_round_trip() {
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
