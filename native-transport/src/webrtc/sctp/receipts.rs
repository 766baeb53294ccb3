//! What has come from the other end, and when to acknowledge it (RFC 9260 sections 6.2 and 6.7).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::wire::unwrapped;

/// An acknowledgement waits this long for a second packet.
const DELAY: Duration = Duration::from_millis(20);
/// A packet further beyond the first missing one is not taken.
const AHEAD_MAX: u64 = 4096;
/// Gap blocks per SACK.
const BLOCKS_MAX: usize = 64;
/// The receive window that we announce.
pub const WINDOW_BYTES: u32 = 256 * 1024;

pub struct Receipts {
    /// Every packet up to here has come, or will not come.
    cumulative: u64,
    beyond: BTreeSet<u64>,
    /// Packets since the last SACK.
    unacknowledged: u32,
    due: Option<Instant>,
}

impl Receipts {
    /// `first`: the number of the other end's first packet.
    pub fn new(first: u32) -> Self {
        Self { cumulative: (1 << 32) + u64::from(first) - 1, beyond: BTreeSet::new(), unacknowledged: 0, due: None }
    }

    /// Returns false when the packet has come before or is not taken. `at_once`: the sender asks for an acknowledgement
    /// without delay.
    pub fn note(&mut self, tsn: u32, now: Instant, at_once: bool) -> bool {
        let tsn = unwrapped(tsn, self.cumulative);
        let is_new = tsn > self.cumulative && tsn <= self.cumulative + AHEAD_MAX && self.beyond.insert(tsn);
        if is_new {
            self.advance();
        }
        self.unacknowledged += 1;
        let is_urgent = at_once || !is_new || !self.beyond.is_empty() || self.unacknowledged >= 2;
        self.due = Some(if is_urgent { now } else { self.due.unwrap_or(now + DELAY) });
        is_new
    }

    /// The other end says that it sends nothing more up to `tsn`.
    pub fn skip_to(&mut self, tsn: u32, now: Instant) {
        let tsn = unwrapped(tsn, self.cumulative);
        if tsn > self.cumulative && tsn <= self.cumulative + AHEAD_MAX {
            self.cumulative = tsn;
            self.beyond = self.beyond.split_off(&(tsn + 1));
            self.advance();
        }
        self.due = Some(now);
    }

    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The body of a SACK. Nothing is due afterwards.
    pub fn sack(&mut self) -> Vec<u8> {
        (self.due, self.unacknowledged) = (None, 0);
        let blocks = self.blocks();
        let mut body = Vec::with_capacity(12 + 4 * blocks.len());
        body.extend_from_slice(&(self.cumulative as u32).to_be_bytes());
        body.extend_from_slice(&WINDOW_BYTES.to_be_bytes());
        body.extend_from_slice(&(blocks.len() as u16).to_be_bytes());
        body.extend_from_slice(&[0; 2]);
        for (first, last) in blocks {
            body.extend_from_slice(&first.to_be_bytes());
            body.extend_from_slice(&last.to_be_bytes());
        }
        body
    }

    fn advance(&mut self) {
        while self.beyond.first() == Some(&(self.cumulative + 1)) {
            self.beyond.pop_first();
            self.cumulative += 1;
        }
    }

    /// The gap blocks: runs of packets that have come, as distances from `cumulative`.
    fn blocks(&self) -> Vec<(u16, u16)> {
        let mut blocks: Vec<(u16, u16)> = Vec::new();
        for &tsn in &self.beyond {
            if blocks.len() == BLOCKS_MAX {
                break;
            }
            let at = (tsn - self.cumulative) as u16;
            let runs_on = blocks.last().is_some_and(|&(_, last)| last + 1 == at);
            match blocks.last_mut() {
                Some((_, last)) if runs_on => *last = at,
                _ => blocks.push((at, at)),
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cumulative TSN and the gap blocks of a SACK.
    fn sack(receipts: &mut Receipts) -> (u32, Vec<(u16, u16)>) {
        let blocks = receipts.blocks();
        (u32::from_be_bytes(receipts.sack()[..4].try_into().unwrap()), blocks)
    }

    #[test]
    fn acknowledges_packets_across_the_wrap_of_tsns() {
        let now = Instant::now();
        let mut receipts = Receipts::new(u32::MAX);
        assert!(receipts.note(u32::MAX, now, false));
        assert_eq!(receipts.due(), Some(now + DELAY));
        assert!(receipts.note(0, now, false));
        assert_eq!(receipts.due(), Some(now));
        assert_eq!(sack(&mut receipts), (0, vec![]));
        for tsn in [2, 3, 6] {
            assert!(receipts.note(tsn, now, false));
        }
        assert_eq!(sack(&mut receipts), (0, vec![(2, 3), (6, 6)]));
        assert!(!receipts.note(3, now, false) && !receipts.note(0, now, false));
        receipts.skip_to(4, now);
        assert_eq!(sack(&mut receipts), (4, vec![(2, 2)]));
        assert!(receipts.note(5, now, false));
        assert_eq!(sack(&mut receipts), (6, vec![]));
        assert_eq!(receipts.due(), None);
    }

    #[test]
    fn takes_no_packet_that_is_too_far_ahead() {
        let now = Instant::now();
        let mut receipts = Receipts::new(1);
        assert!(receipts.note(AHEAD_MAX as u32, now, false));
        assert!(!receipts.note(AHEAD_MAX as u32 + 1, now, false));
        receipts.skip_to(1 << 30, now);
        assert_eq!(sack(&mut receipts).0, 0);
    }
}
