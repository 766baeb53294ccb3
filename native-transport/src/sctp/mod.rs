//! SCTP over DTLS (RFC 8261) as far as one data channel of short messages needs it (RFC 8831, RFC 8832), from the end that is
//! connected to: messages of one packet each, unordered and never sent again, under a congestion control of our own. Knows
//! no sockets and keeps no clock.

mod flight;
mod receipts;
mod wire;

use std::time::Instant;

use flight::Flight;
use receipts::Receipts;
use wire::{u16_at, u32_at, Header, Packet, DATA_HEADER_BYTES};

use crate::events::Stats;

/// Payload protocols (RFC 8831 section 8).
const CONTROL: u32 = 50;
const BINARY: u32 = 53;
/// Messages of RFC 8832.
const OPEN: u8 = 3;
const OPENED: u8 = 2;
/// Parameters of INIT ACK: the cookie, what more than RFC 9260 is understood.
const COOKIE: u16 = 7;
const EXTENSIONS: u16 = 0x8008;
const FORWARDS: u16 = 0xc000;
/// Parameters of RE-CONFIG (RFC 6525 section 4).
const STREAMS_END: u16 = 13;
const ANSWER: u16 = 16;
const DONE: u32 = 1;
const STREAMS: u16 = u16::MAX;
/// Of a packet with one message, besides that.
pub const PACKET_OVERHEAD_BYTES: usize = 12 + 4 + DATA_HEADER_BYTES;

/// What the other end did.
#[derive(Debug, PartialEq)]
pub enum Happening {
    /// It opened its channel.
    Opened,
    Message(Vec<u8>),
    Closed(&'static str),
}

/// What is random about an association.
pub struct Secrets {
    pub tag: u32,
    pub first_tsn: u32,
    pub cookie: [u8; 16],
}

/// The other end, since its INIT.
struct Link {
    header: Header,
    receipts: Receipts,
    flight: Flight,
    greeted: Instant,
    is_up: bool,
    /// Of its channel.
    stream: Option<u16>,
}

pub struct Association {
    secrets: Secrets,
    link: Option<Link>,
    /// To be sent, in their order.
    pub packets: Vec<Vec<u8>>,
}

impl Association {
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, link: None, packets: Vec::new() }
    }

    pub fn stats(&self) -> Option<Stats> {
        self.link.as_ref().map(|link| link.flight.stats())
    }

    /// A packet has come. What is none, or not for us, is passed over.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Vec<Happening> {
        let mut happenings = Vec::new();
        let Some((header, chunks)) = wire::parse(packet) else { return happenings };
        for chunk in chunks {
            if chunk.kind == wire::INIT {
                self.greet(now, &header, chunk.body);
                continue;
            }
            let Some(link) = self.link.as_mut().filter(|_| header.tag == self.secrets.tag) else { break };
            if chunk.kind == wire::COOKIE_ECHO {
                if chunk.body == self.secrets.cookie {
                    self.packets.push(link.welcome(now));
                }
            } else if link.is_up {
                link.handle(now, &chunk, &mut self.packets, &mut happenings);
            }
        }
        self.advance(now);
        happenings
    }

    /// When a message of so many bytes may be sent; None as long as too much is under way, or no channel is open.
    pub fn opens_at(&self, bytes: usize) -> Option<Instant> {
        let link = self.link.as_ref().filter(|link| link.stream.is_some())?;
        link.flight.opens_at(PACKET_OVERHEAD_BYTES + bytes)
    }

    /// Of a message that fits a packet. `is_last`: none follows at once, so the other end should not keep its answer back.
    pub fn send(&mut self, now: Instant, message: &[u8], is_last: bool) {
        let Some((link, stream)) = self.link.as_mut().and_then(|link| link.stream.map(|stream| (link, stream))) else { return };
        let mut packet = Packet::new(&link.header, 64 + PACKET_OVERHEAD_BYTES + message.len());
        link.add_due(now, &mut packet);
        let tsn = link.flight.next_tsn().to_be_bytes();
        let flags = wire::WHOLE | wire::UNORDERED | if is_last { wire::AT_ONCE } else { 0 };
        packet.add(wire::DATA, flags, &[&tsn, &stream.to_be_bytes(), &[0; 2], &BINARY.to_be_bytes(), message]);
        link.flight.note_sent(now, packet.len(), None);
        self.packets.push(packet.finish());
    }

    /// Does what time asks for: see `due`.
    pub fn advance(&mut self, now: Instant) {
        let Some(link) = self.link.as_mut().filter(|link| link.is_up) else { return };
        if link.flight.times_out_at().is_some_and(|at| at <= now) {
            link.flight.handle_timeout(now);
        }
        let mut packet = Packet::new(&link.header, 64);
        link.add_due(now, &mut packet);
        if let Some(body) = link.flight.again(now) {
            packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&body]);
        }
        if !packet.is_empty() {
            self.packets.push(packet.finish());
        }
    }

    pub fn due(&self) -> Option<Instant> {
        let link = self.link.as_ref().filter(|link| link.is_up)?;
        [link.receipts.due(), link.flight.times_out_at()].into_iter().flatten().min()
    }

    /// Tells the other end that it is over.
    pub fn abort(&mut self) {
        if let Some(link) = self.link.take() {
            let mut packet = Packet::new(&link.header, 4);
            packet.add(wire::ABORT, 0, &[]);
            self.packets.push(packet.finish());
        }
    }

    /// INIT; again when our answer got lost.
    fn greet(&mut self, now: Instant, header: &Header, body: &[u8]) {
        let (Some(tag), Some(window), Some(streams), Some(tsn)) = (u32_at(body, 0), u32_at(body, 4), u16_at(body, 10), u32_at(body, 12)) else {
            return;
        };
        if tag == 0 || self.link.as_ref().is_some_and(|link| link.is_up) {
            return;
        }
        let header = Header { source: header.destination, destination: header.source, tag };
        let Secrets { tag: own, first_tsn, cookie } = &self.secrets;
        let mut packet = Packet::new(&header, 64);
        packet.add(wire::INIT_ACK, 0, &[
            &own.to_be_bytes(), &receipts::WINDOW_BYTES.to_be_bytes(), &streams.to_be_bytes(), &STREAMS.to_be_bytes(), &first_tsn.to_be_bytes(),
            &wire::parameter(COOKIE, cookie), &wire::parameter(FORWARDS, &[]), &wire::parameter(EXTENSIONS, &[wire::RE_CONFIG, wire::FORWARD_TSN]),
        ]);
        self.packets.push(packet.finish());
        let (receipts, flight) = (Receipts::new(tsn), Flight::new(*first_tsn, window, now));
        self.link = Some(Link { header, receipts, flight, greeted: now, is_up: false, stream: None });
    }
}

impl Link {
    /// COOKIE ACK, to the first COOKIE ECHO and to those that come because our answer got lost.
    fn welcome(&mut self, now: Instant) -> Vec<u8> {
        if !self.is_up {
            self.is_up = true;
            self.flight.measure(now.duration_since(self.greeted));
        }
        let mut packet = Packet::new(&self.header, 4);
        packet.add(wire::COOKIE_ACK, 0, &[]);
        packet.finish()
    }

    fn handle(&mut self, now: Instant, chunk: &wire::Chunk, packets: &mut Vec<Vec<u8>>, happenings: &mut Vec<Happening>) {
        let mut answer = |kind: u8, body: &[&[u8]]| {
            let mut packet = Packet::new(&self.header, 64);
            packet.add(kind, 0, body);
            packets.push(packet.finish());
        };
        match chunk.kind {
            wire::DATA => {
                let Some(happening) = self.take_data(now, chunk) else { return };
                if happening == Happening::Opened {
                    packets.push(self.confirm(now));
                }
                happenings.push(happening);
            }
            wire::SACK => drop(self.flight.handle_sack(now, chunk.body)),
            wire::FORWARD_TSN => {
                if let Some(tsn) = u32_at(chunk.body, 0) {
                    self.receipts.skip_to(tsn, now);
                }
            }
            wire::HEARTBEAT => answer(wire::HEARTBEAT_ACK, &[chunk.body]),
            wire::RE_CONFIG if u16_at(chunk.body, 0) == Some(STREAMS_END) => {
                let Some(request) = chunk.body.get(4..8) else { return };
                answer(wire::RE_CONFIG, &[&wire::parameter(ANSWER, &[request, &DONE.to_be_bytes()].concat())]);
                happenings.push(Happening::Closed("channel closed"));
            }
            wire::SHUTDOWN => {
                answer(wire::SHUTDOWN_ACK, &[]);
                happenings.push(Happening::Closed("association shut down"));
            }
            wire::ABORT | wire::SHUTDOWN_COMPLETE => happenings.push(Happening::Closed("association ended")),
            _ => (),
        }
    }

    /// Messages of more than one packet are none of ours.
    fn take_data(&mut self, now: Instant, chunk: &wire::Chunk) -> Option<Happening> {
        let (tsn, stream, protocol) = (u32_at(chunk.body, 0)?, u16_at(chunk.body, 4)?, u32_at(chunk.body, 8)?);
        let message = chunk.body.get(DATA_HEADER_BYTES..)?;
        let is_new = self.receipts.note(tsn, now, chunk.flags & wire::AT_ONCE != 0);
        if !is_new || chunk.flags & wire::WHOLE != wire::WHOLE {
            return None;
        }
        match protocol {
            BINARY if self.stream.is_some() => Some(Happening::Message(message.to_vec())),
            CONTROL if self.stream.is_none() && message.first() == Some(&OPEN) => {
                self.stream = Some(stream);
                Some(Happening::Opened)
            }
            _ => None,
        }
    }

    /// Its channel is open here too.
    fn confirm(&mut self, now: Instant) -> Vec<u8> {
        let stream = self.stream.unwrap_or_default().to_be_bytes();
        let body = [&self.flight.next_tsn().to_be_bytes()[..], &stream, &[0; 2], &CONTROL.to_be_bytes(), &[OPENED]].concat();
        let mut packet = Packet::new(&self.header, 64);
        packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&body]);
        self.flight.note_sent(now, packet.len(), Some(body));
        packet.finish()
    }

    /// What goes along with the next packet, or alone when there is none.
    fn add_due(&mut self, now: Instant, packet: &mut Packet) {
        if self.receipts.due().is_some_and(|due| due <= now) {
            packet.add(wire::SACK, 0, &[&self.receipts.sack()]);
        }
        if let Some(tsn) = self.flight.forward(now) {
            packet.add(wire::FORWARD_TSN, 0, &[&tsn.to_be_bytes()]);
        }
    }
}
