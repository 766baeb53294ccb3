//! SCTP over DTLS (RFC 8261), at either end, as far as one data channel of short messages needs it (RFC 8831, RFC
//! 8832). A message takes one packet, is unordered, and is never sent again. Our own congestion controller limits what
//! is sent. Pure: time arrives as `now`, randomness as `Secrets`, packets as bytes. It knows no sockets. In: connect,
//! handle, send, advance. Out: `packets`, events, due.

mod flight;
mod link;
mod receipts;
#[cfg(test)]
mod tests;
mod wire;

use std::time::{Duration, Instant};

use flight::Flight;
use link::Link;
use receipts::Receipts;
use wire::{u16_at, u32_at, Header, Packet, DATA_HEADER_BYTES};

use crate::events::Stats;

/// Payload protocols (RFC 8831 section 8).
const CONTROL: u32 = 50;
const BINARY: u32 = 53;
/// Messages of the data channel establishment protocol (RFC 8832 section 8.2.1).
const DATA_CHANNEL_ACK: u8 = 2;
const DATA_CHANNEL_OPEN: u8 = 3;
/// The message that opens our channel (RFC 8832 section 5.1): unordered, without retransmissions, no priority, the
/// label "mutp", no protocol.
const OPEN_MESSAGE: [u8; 16] = *b"\x03\x81\0\0\0\0\0\0\0\x04\0\0mutp";
/// Our channel's stream. The end that begins DTLS uses even streams (RFC 8832 section 6).
const OWN_STREAM: u16 = 0;
/// Both ends use this port, inside DTLS (RFC 8841 section 5).
const PORT: u16 = 5000;
/// A packet of the handshake is repeated after this time, then after twice that time, and so on up to the maximum.
const REPEAT_AFTER: Duration = Duration::from_millis(300);
const REPEAT_AFTER_MAX: Duration = Duration::from_secs(3);
/// Parameters of INIT and INIT ACK (RFC 9260 section 3.3.3, RFC 5061 section 4.2.7, RFC 3758 section 3.1).
const STATE_COOKIE: u16 = 7;
const SUPPORTED_EXTENSIONS: u16 = 0x8008;
const FORWARD_TSN_SUPPORTED: u16 = 0xc000;
/// Parameters of RE-CONFIG (RFC 6525 section 4).
const OUTGOING_RESET: u16 = 13;
const RESET_RESPONSE: u16 = 16;
/// The result in a reset response: performed.
const PERFORMED: u32 = 1;
/// The parameter of HEARTBEAT.
const HEARTBEAT_INFO: u16 = 1;
/// When this many packets wait to be sent, HEARTBEATs get no answer. Otherwise a client that asks and does not read
/// could fill the memory.
const ANSWERS_MAX: usize = 32;
const STREAMS: u16 = u16::MAX;
/// Bytes of INIT and INIT ACK before their parameters.
const INIT_BYTES: usize = 16;
/// Bytes of a packet with one message, besides the message.
const PACKET_OVERHEAD_BYTES: usize = 12 + 4 + DATA_HEADER_BYTES;
/// The longest message whose packet, padded, fits every path. The protocol names it `channelMessageBytesMax`.
pub const MESSAGE_BYTES_MAX: usize =
    (flight::PATH_BYTES as usize - flight::OUTSIDE_BYTES as usize - PACKET_OVERHEAD_BYTES) & !3;

/// What the other end did.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// The channel is open.
    Opened,
    Message(Vec<u8>),
    /// The nonce of a probe has come back.
    ProbeAnswered(Vec<u8>),
    Closed(&'static str),
}

/// The random numbers of an association.
pub struct Secrets {
    tag: u32,
    first_tsn: u32,
    cookie: [u8; 16],
}

impl Secrets {
    pub fn draw() -> Result<Self, String> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        Ok(Self::new(random))
    }

    fn new(random: [u8; 24]) -> Self {
        let number = |at: usize| u32_at(&random, at).unwrap_or_default();
        let [cookie @ .., _, _, _, _, _, _, _, _] = random;
        Self { tag: number(16).max(1), first_tsn: number(20), cookie }
    }
}

/// A packet of the handshake that is repeated until the other end answers.
struct Unanswered {
    packet: Vec<u8>,
    since: Instant,
    due: Instant,
    wait: Duration,
}

impl Unanswered {
    fn new(packet: Vec<u8>, now: Instant) -> Self {
        Self { packet, since: now, due: now + REPEAT_AFTER, wait: REPEAT_AFTER }
    }

    fn repeat(&mut self, now: Instant) -> Vec<u8> {
        self.wait = (2 * self.wait).min(REPEAT_AFTER_MAX);
        self.due = now + self.wait;
        self.packet.clone()
    }
}

pub struct Association {
    secrets: Secrets,
    unanswered: Option<Unanswered>,
    link: Option<Link>,
    /// Packets to send, in order. The caller takes them.
    pub packets: Vec<Vec<u8>>,
}

impl Association {
    /// An association that does not call `connect` waits for the other end's INIT.
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, unanswered: None, link: None, packets: Vec::new() }
    }

    /// Connects to the other end and opens the channel.
    pub fn connect(&mut self, now: Instant) {
        let mut packet = Packet::new(&Header { source: PORT, destination: PORT, tag: 0 }, 64);
        packet.add(wire::INIT, 0, &[&self.init(STREAMS)]);
        self.send_until_answered(now, packet.finish());
    }

    pub fn stats(&self) -> Option<Stats> {
        self.link.as_ref().map(|link| link.flight.stats())
    }

    /// Takes a packet. Ignores bytes that are no packet of this association.
    pub fn handle(&mut self, now: Instant, packet: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let Some((header, chunks)) = wire::parse(packet) else { return events };
        for chunk in chunks {
            if chunk.kind == wire::INIT {
                self.handle_init(now, &header, chunk.body);
                continue;
            }
            if header.tag != self.secrets.tag {
                break;
            }
            if chunk.kind == wire::INIT_ACK {
                self.handle_init_ack(now, &header, chunk.body);
                continue;
            }
            let Some(link) = self.link.as_mut() else { break };
            if chunk.kind == wire::COOKIE_ECHO {
                if !link.is_client && chunk.body == self.secrets.cookie {
                    self.packets.push(link.cookie_ack(now));
                }
            } else if chunk.kind == wire::COOKIE_ACK {
                if let Some(unanswered) = self.unanswered.take_if(|_| link.is_client) {
                    link.is_up = true;
                    link.flight.measure(now.duration_since(unanswered.since));
                }
            } else if link.is_up {
                link.handle(now, &chunk, &mut self.packets, &mut events);
            }
        }
        self.advance(now);
        events
    }

    /// When a message of this length may be sent. None when the window is full or no channel is open.
    pub fn opens_at(&self, bytes: usize) -> Option<Instant> {
        let link = self.link.as_ref().filter(|link| link.stream.is_some())?;
        link.flight.opens_at(PACKET_OVERHEAD_BYTES + bytes)
    }

    /// Sends a message that fits a packet. `is_last`: no message follows at once, so the other end should acknowledge
    /// without delay.
    pub fn send(&mut self, now: Instant, message: &[u8], is_last: bool) {
        let Some((link, stream)) = self.link.as_mut().and_then(|link| link.stream.map(|stream| (link, stream))) else {
            return;
        };
        let mut packet = Packet::new(&link.header, PACKET_OVERHEAD_BYTES + message.len());
        let tsn = link.flight.next_tsn().to_be_bytes();
        let flags = wire::WHOLE | wire::UNORDERED | if is_last { wire::AT_ONCE } else { 0 };
        packet.add(wire::DATA, flags, &[&tsn, &stream.to_be_bytes(), &[0; 2], &BINARY.to_be_bytes(), message]);
        link.flight.note_sent(now, packet.len(), None);
        self.packets.push(packet.finish());
    }

    /// A packet that makes the other end send `nonce` back. None when no channel is open.
    pub fn probe(&self, nonce: &[u8]) -> Option<Vec<u8>> {
        let link = self.link.as_ref().filter(|link| link.stream.is_some())?;
        let mut packet = Packet::new(&link.header, 64);
        packet.add(wire::HEARTBEAT, 0, &[&wire::parameter(HEARTBEAT_INFO, nonce)]);
        Some(packet.finish())
    }

    /// Does what is due. See `due`.
    pub fn advance(&mut self, now: Instant) {
        if let Some(unanswered) = self.unanswered.as_mut().filter(|unanswered| unanswered.due <= now) {
            self.packets.push(unanswered.repeat(now));
        }
        let Some(link) = self.link.as_mut().filter(|link| link.is_up) else { return };
        if link.flight.times_out_at().is_some_and(|at| at <= now) {
            link.flight.handle_timeout(now);
        }
        let mut packet = Packet::new(&link.header, 64);
        if link.receipts.due().is_some_and(|due| due <= now) {
            packet.add(wire::SACK, 0, &[&link.receipts.sack()]);
        }
        if let Some(tsn) = link.flight.forward(now) {
            packet.add(wire::FORWARD_TSN, 0, &[&tsn.to_be_bytes()]);
        }
        if let Some(body) = link.flight.resend(now) {
            packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&body]);
        }
        if !packet.is_empty() {
            self.packets.push(packet.finish());
        }
    }

    /// When `advance` must be called next.
    pub fn due(&self) -> Option<Instant> {
        let link = self.link.as_ref().filter(|link| link.is_up);
        let of_link = link.map(|link| [link.receipts.due(), link.flight.times_out_at()]).unwrap_or_default();
        of_link.into_iter().chain([self.unanswered.as_ref().map(|unanswered| unanswered.due)]).flatten().min()
    }

    /// Tells the other end that the association is over.
    pub fn abort(&mut self) {
        if let Some(link) = self.link.take() {
            let mut packet = Packet::new(&link.header, 4);
            packet.add(wire::ABORT, 0, &[]);
            self.packets.push(packet.finish());
        }
    }

    fn send_until_answered(&mut self, now: Instant, packet: Vec<u8>) {
        self.packets.push(packet.clone());
        self.unanswered = Some(Unanswered::new(packet, now));
    }

    /// The body that INIT and INIT ACK share.
    fn init(&self, streams: u16) -> Vec<u8> {
        let Secrets { tag, first_tsn, .. } = &self.secrets;
        [
            &tag.to_be_bytes()[..],
            &receipts::WINDOW_BYTES.to_be_bytes(),
            &streams.to_be_bytes(),
            &STREAMS.to_be_bytes(),
            &first_tsn.to_be_bytes(),
            &wire::parameter(FORWARD_TSN_SUPPORTED, &[]),
            &wire::parameter(SUPPORTED_EXTENSIONS, &[wire::RE_CONFIG, wire::FORWARD_TSN]),
        ]
        .concat()
    }

    /// Answers INIT. INIT comes again when our answer was lost.
    fn handle_init(&mut self, now: Instant, header: &Header, body: &[u8]) {
        let (Some(mut link), Some(streams)) = (self.link_to(now, header, body), u16_at(body, 10)) else { return };
        if self.unanswered.is_some() || self.link.as_ref().is_some_and(|link| link.is_up) {
            return;
        }
        link.is_client = false;
        let mut packet = Packet::new(&link.header, 64);
        packet.add(wire::INIT_ACK, 0, &[&self.init(streams), &wire::parameter(STATE_COOKIE, &self.secrets.cookie)]);
        self.packets.push(packet.finish());
        self.link = Some(link);
    }

    /// Answers the first INIT ACK: sends its cookie back, and opens the channel in the same packet.
    fn handle_init_ack(&mut self, now: Instant, header: &Header, body: &[u8]) {
        if self.unanswered.is_none() || self.link.is_some() {
            return;
        }
        let Some(mut link) = self.link_to(now, header, body) else { return };
        let mut parameters = wire::parameters(body.get(INIT_BYTES..).unwrap_or_default());
        let Some((_, cookie)) = parameters.find(|&(kind, _)| kind == STATE_COOKIE) else { return };
        let opening = [
            &link.flight.next_tsn().to_be_bytes()[..],
            &OWN_STREAM.to_be_bytes(),
            &[0; 2],
            &CONTROL.to_be_bytes(),
            &OPEN_MESSAGE,
        ]
        .concat();
        let mut packet = Packet::new(&link.header, 128 + cookie.len());
        packet.add(wire::COOKIE_ECHO, 0, &[cookie]);
        packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&opening]);
        link.flight.note_sent(now, packet.len(), Some(opening));
        self.link = Some(link);
        self.send_until_answered(now, packet.finish());
    }

    /// The other end as its INIT or INIT ACK describes it.
    fn link_to(&self, now: Instant, header: &Header, body: &[u8]) -> Option<Link> {
        let (tag, window, tsn) = (u32_at(body, 0).filter(|&tag| tag != 0)?, u32_at(body, 4)?, u32_at(body, 12)?);
        let header = Header { source: header.destination, destination: header.source, tag };
        let flight = Flight::new(self.secrets.first_tsn, window, now);
        Some(Link::new(header, Receipts::new(tsn), flight, now))
    }
}
