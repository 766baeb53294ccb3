//! The other end of an association, from its INIT or INIT ACK on: what it sends once the association is up, and our
//! answers. The handshake before is in mod.rs.

use std::time::Instant;

use super::flight::Flight;
use super::receipts::Receipts;
use super::wire::{self, u16_at, u32_at, Header, Packet, SctpChunk, DATA_HEADER_BYTES};
use super::{
    Event, ANSWERS_MAX, BINARY, CONTROL, DATA_CHANNEL_ACK, DATA_CHANNEL_OPEN, OUTGOING_RESET, PERFORMED, RESET_RESPONSE,
};

pub struct Link {
    /// The header of our packets.
    pub header: Header,
    pub receipts: Receipts,
    pub flight: Flight,
    init_at: Instant,
    pub is_up: bool,
    /// We connected, so we open the channel.
    pub is_client: bool,
    /// The channel's stream. None until the channel is open.
    pub stream: Option<u16>,
}

impl Link {
    pub fn new(header: Header, receipts: Receipts, flight: Flight, now: Instant) -> Self {
        Self { header, receipts, flight, init_at: now, is_up: false, is_client: true, stream: None }
    }

    /// COOKIE ACK. COOKIE ECHO comes again when our answer was lost.
    pub fn cookie_ack(&mut self, now: Instant) -> Vec<u8> {
        if !self.is_up {
            self.is_up = true;
            self.flight.measure(now.duration_since(self.init_at));
        }
        let mut packet = Packet::new(&self.header, 4);
        packet.add(wire::COOKIE_ACK, 0, &[]);
        packet.finish()
    }

    pub fn handle(&mut self, now: Instant, chunk: &SctpChunk, packets: &mut Vec<Vec<u8>>, events: &mut Vec<Event>) {
        let may_answer = packets.len() < ANSWERS_MAX;
        let mut answer = |kind: u8, body: &[&[u8]]| {
            let mut packet = Packet::new(&self.header, 64);
            packet.add(kind, 0, body);
            packets.push(packet.finish());
        };
        match chunk.kind {
            wire::DATA => {
                let Some(event) = self.handle_data(now, chunk) else { return };
                if event == Event::Opened && !self.is_client {
                    packets.push(self.channel_ack(now));
                }
                events.push(event);
            }
            wire::SACK => drop(self.flight.handle_sack(now, chunk.body)),
            wire::FORWARD_TSN => {
                if let Some(tsn) = u32_at(chunk.body, 0) {
                    self.receipts.skip_to(tsn, now);
                }
            }
            wire::HEARTBEAT if may_answer => answer(wire::HEARTBEAT_ACK, &[chunk.body]),
            wire::HEARTBEAT_ACK => events.extend(chunk.body.get(4..).map(|nonce| Event::ProbeAnswered(nonce.to_vec()))),
            wire::RE_CONFIG if u16_at(chunk.body, 0) == Some(OUTGOING_RESET) => {
                let Some(request) = chunk.body.get(4..8) else { return };
                let response = [request, &PERFORMED.to_be_bytes()].concat();
                answer(wire::RE_CONFIG, &[&wire::parameter(RESET_RESPONSE, &response)]);
                events.push(Event::Closed("the other end closed the channel"));
            }
            wire::SHUTDOWN => {
                answer(wire::SHUTDOWN_ACK, &[]);
                events.push(Event::Closed("the other end shut the association down"));
            }
            wire::ABORT | wire::SHUTDOWN_COMPLETE => events.push(Event::Closed("the other end ended the association")),
            _ => (),
        }
    }

    /// Ignores messages of more than one packet: our protocol sends none.
    fn handle_data(&mut self, now: Instant, chunk: &SctpChunk) -> Option<Event> {
        let (tsn, stream, protocol) = (u32_at(chunk.body, 0)?, u16_at(chunk.body, 4)?, u32_at(chunk.body, 8)?);
        let message = chunk.body.get(DATA_HEADER_BYTES..)?;
        let is_new = self.receipts.note(tsn, now, chunk.flags & wire::AT_ONCE != 0);
        if !is_new || chunk.flags & wire::WHOLE != wire::WHOLE {
            return None;
        }
        let expected = if self.is_client { DATA_CHANNEL_ACK } else { DATA_CHANNEL_OPEN };
        match protocol {
            BINARY if self.stream.is_some() && !message.is_empty() => Some(Event::Message(message.to_vec())),
            CONTROL if self.stream.is_none() && message.first() == Some(&expected) => {
                self.stream = Some(stream);
                Some(Event::Opened)
            }
            _ => None,
        }
    }

    /// Tells the other end that its channel is open here too.
    fn channel_ack(&mut self, now: Instant) -> Vec<u8> {
        let stream = self.stream.unwrap_or_default().to_be_bytes();
        let tsn = self.flight.next_tsn().to_be_bytes();
        let body = [&tsn[..], &stream, &[0; 2], &CONTROL.to_be_bytes(), &[DATA_CHANNEL_ACK]].concat();
        let mut packet = Packet::new(&self.header, 64);
        packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&body]);
        self.flight.note_sent(now, packet.len(), Some(body));
        packet.finish()
    }
}
