//! SCTP over DTLS (RFC 8261) as far as one data channel of short messages needs it (RFC 8831, RFC 8832), at either end:
//messages
//! of one packet each, unordered and never sent again, under a congestion control of our own. Knows no sockets and
//keeps no
//! clock.

mod flight;
mod receipts;
mod wire;

use std::time::{Duration, Instant};

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
/// What a channel of ours is: unordered, its messages never sent again, of no priority; its name, and no protocol.
const CHANNEL: [u8; 16] = *b"\x03\x81\0\0\0\0\0\0\0\x04\0\0mutp";
/// Its stream: the end that begins DTLS takes even ones (RFC 8832 section 6).
const OWN_STREAM: u16 = 0;
/// Both ends', inside DTLS (RFC 8841 section 5).
const PORT: u16 = 5000;
/// What is not answered is said again so much later; then after twice that time, and so on.
const CALL_AGAIN: Duration = Duration::from_millis(300);
const CALL_AGAIN_MAX: Duration = Duration::from_secs(3);
/// Parameters of INIT and INIT ACK: the cookie, what more than RFC 9260 is understood.
const COOKIE: u16 = 7;
const EXTENSIONS: u16 = 0x8008;
const FORWARDS: u16 = 0xc000;
/// Parameters of RE-CONFIG (RFC 6525 section 4).
const STREAMS_END: u16 = 13;
const ANSWER: u16 = 16;
const DONE: u32 = 1;
/// Of HEARTBEAT.
const PROBE: u16 = 1;
/// Packets that wait to be sent beyond which nothing is answered: a client that asks faster than it reads need not be.
const ANSWERS_MAX: usize = 32;
const STREAMS: u16 = u16::MAX;
/// Of INIT and INIT ACK, before their parameters.
const INIT_BYTES: usize = 16;
/// Of a packet with one message, besides that.
const PACKET_OVERHEAD_BYTES: usize = 12 + 4 + DATA_HEADER_BYTES;
/// The longest message whose packet, padded, fits every path: `channelMessageBytesMax` of the protocol.
pub const MESSAGE_BYTES_MAX: usize =
    (flight::PATH_BYTES as usize - flight::OUTSIDE_BYTES as usize - PACKET_OVERHEAD_BYTES) & !3;

/// What the other end did.
#[derive(Debug, PartialEq)]
pub enum Happening {
    /// The channel is open.
    Opened,
    Message(Vec<u8>),
    /// What a `probe` held has come back.
    Echoed(Vec<u8>),
    Closed(&'static str),
}

/// What is random about an association.
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

/// What the connecting end said last, until it is answered.
struct Call {
    packet: Vec<u8>,
    since: Instant,
    due: Instant,
    wait: Duration,
}

impl Call {
    fn new(packet: Vec<u8>, now: Instant) -> Self {
        Self { packet, since: now, due: now + CALL_AGAIN, wait: CALL_AGAIN }
    }

    fn again(&mut self, now: Instant) -> Vec<u8> {
        self.wait = (2 * self.wait).min(CALL_AGAIN_MAX);
        self.due = now + self.wait;
        self.packet.clone()
    }
}

/// The other end, since its INIT or INIT ACK.
struct Link {
    header: Header,
    receipts: Receipts,
    flight: Flight,
    greeted: Instant,
    is_up: bool,
    /// The channel is ours to open.
    is_caller: bool,
    /// Of the channel, once it is open.
    stream: Option<u16>,
}

pub struct Association {
    secrets: Secrets,
    call: Option<Call>,
    link: Option<Link>,
    /// To be sent, in their order.
    pub packets: Vec<Vec<u8>>,
}

impl Association {
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, call: None, link: None, packets: Vec::new() }
    }

    /// Connects to the other end, and opens the channel. One that does not call is connected to.
    pub fn call(&mut self, now: Instant) {
        let mut packet = Packet::new(&Header { source: PORT, destination: PORT, tag: 0 }, 64);
        packet.add(wire::INIT, 0, &[&self.introduction(STREAMS)]);
        self.say(now, packet.finish());
    }

    fn say(&mut self, now: Instant, packet: Vec<u8>) {
        self.packets.push(packet.clone());
        self.call = Some(Call::new(packet, now));
    }

    /// What INIT and INIT ACK tell of this end.
    fn introduction(&self, streams: u16) -> Vec<u8> {
        let Secrets { tag, first_tsn, .. } = &self.secrets;
        [
            &tag.to_be_bytes()[..],
            &receipts::WINDOW_BYTES.to_be_bytes(),
            &streams.to_be_bytes(),
            &STREAMS.to_be_bytes(),
            &first_tsn.to_be_bytes(),
            &wire::parameter(FORWARDS, &[]),
            &wire::parameter(EXTENSIONS, &[wire::RE_CONFIG, wire::FORWARD_TSN]),
        ]
        .concat()
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
            if header.tag != self.secrets.tag {
                break;
            }
            if chunk.kind == wire::INIT_ACK {
                self.proceed(now, &header, chunk.body);
                continue;
            }
            let Some(link) = self.link.as_mut() else { break };
            if chunk.kind == wire::COOKIE_ECHO {
                if !link.is_caller && chunk.body == self.secrets.cookie {
                    self.packets.push(link.welcome(now));
                }
            } else if chunk.kind == wire::COOKIE_ACK {
                if let Some(call) = self.call.take_if(|_| link.is_caller) {
                    link.is_up = true;
                    link.flight.measure(now.duration_since(call.since));
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

    /// Of a message that fits a packet. `is_last`: none follows at once, so the other end should not keep its answer
    /// back.
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

    /// A packet that the other end answers with what it holds; None when no channel is open.
    pub fn probe(&self, nonce: &[u8]) -> Option<Vec<u8>> {
        let link = self.link.as_ref().filter(|link| link.stream.is_some())?;
        let mut packet = Packet::new(&link.header, 64);
        packet.add(wire::HEARTBEAT, 0, &[&wire::parameter(PROBE, nonce)]);
        Some(packet.finish())
    }

    /// Does what time asks for: see `due`.
    pub fn advance(&mut self, now: Instant) {
        if let Some(call) = self.call.as_mut().filter(|call| call.due <= now) {
            self.packets.push(call.again(now));
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
        if let Some(body) = link.flight.again(now) {
            packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&body]);
        }
        if !packet.is_empty() {
            self.packets.push(packet.finish());
        }
    }

    pub fn due(&self) -> Option<Instant> {
        let link = self.link.as_ref().filter(|link| link.is_up);
        let of_link = link.map(|link| [link.receipts.due(), link.flight.times_out_at()]).unwrap_or_default();
        of_link.into_iter().chain([self.call.as_ref().map(|call| call.due)]).flatten().min()
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
        let (Some(mut link), Some(streams)) = (self.link_to(now, header, body), u16_at(body, 10)) else { return };
        if self.call.is_some() || self.link.as_ref().is_some_and(|link| link.is_up) {
            return;
        }
        link.is_caller = false;
        let mut packet = Packet::new(&link.header, 64);
        packet.add(wire::INIT_ACK, 0, &[&self.introduction(streams), &wire::parameter(COOKIE, &self.secrets.cookie)]);
        self.packets.push(packet.finish());
        self.link = Some(link);
    }

    /// INIT ACK, the first one: its cookie goes back, and with it the channel's opening.
    fn proceed(&mut self, now: Instant, header: &Header, body: &[u8]) {
        if self.call.is_none() || self.link.is_some() {
            return;
        }
        let Some(mut link) = self.link_to(now, header, body) else { return };
        let Some(cookie) =
            wire::parameters(body.get(INIT_BYTES..).unwrap_or_default()).find(|&(kind, _)| kind == COOKIE)
        else {
            return;
        };
        let opening = [
            &link.flight.next_tsn().to_be_bytes()[..],
            &OWN_STREAM.to_be_bytes(),
            &[0; 2],
            &CONTROL.to_be_bytes(),
            &CHANNEL,
        ]
        .concat();
        let mut packet = Packet::new(&link.header, 128 + cookie.1.len());
        packet.add(wire::COOKIE_ECHO, 0, &[cookie.1]);
        packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&opening]);
        link.flight.note_sent(now, packet.len(), Some(opening));
        self.link = Some(link);
        self.say(now, packet.finish());
    }

    /// The other end as its INIT or INIT ACK tells.
    fn link_to(&self, now: Instant, header: &Header, body: &[u8]) -> Option<Link> {
        let (tag, window, tsn) = (u32_at(body, 0).filter(|&tag| tag != 0)?, u32_at(body, 4)?, u32_at(body, 12)?);
        let header = Header { source: header.destination, destination: header.source, tag };
        let (receipts, flight) = (Receipts::new(tsn), Flight::new(self.secrets.first_tsn, window, now));
        Some(Link { header, receipts, flight, greeted: now, is_up: false, is_caller: true, stream: None })
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

    fn handle(
        &mut self,
        now: Instant,
        chunk: &wire::Chunk,
        packets: &mut Vec<Vec<u8>>,
        happenings: &mut Vec<Happening>,
    ) {
        let is_idle = packets.len() < ANSWERS_MAX;
        let mut answer = |kind: u8, body: &[&[u8]]| {
            let mut packet = Packet::new(&self.header, 64);
            packet.add(kind, 0, body);
            packets.push(packet.finish());
        };
        match chunk.kind {
            wire::DATA => {
                let Some(happening) = self.take_data(now, chunk) else { return };
                if happening == Happening::Opened && !self.is_caller {
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
            wire::HEARTBEAT if is_idle => answer(wire::HEARTBEAT_ACK, &[chunk.body]),
            wire::HEARTBEAT_ACK => happenings.extend(chunk.body.get(4..).map(|held| Happening::Echoed(held.to_vec()))),
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
            BINARY if self.stream.is_some() && !message.is_empty() => Some(Happening::Message(message.to_vec())),
            CONTROL
                if self.stream.is_none() && message.first() == Some(if self.is_caller { &OPENED } else { &OPEN }) =>
            {
                self.stream = Some(stream);
                Some(Happening::Opened)
            }
            _ => None,
        }
    }

    /// Its channel is open here too.
    fn confirm(&mut self, now: Instant) -> Vec<u8> {
        let stream = self.stream.unwrap_or_default().to_be_bytes();
        let body =
            [&self.flight.next_tsn().to_be_bytes()[..], &stream, &[0; 2], &CONTROL.to_be_bytes(), &[OPENED]].concat();
        let mut packet = Packet::new(&self.header, 64);
        packet.add(wire::DATA, wire::WHOLE | wire::AT_ONCE, &[&body]);
        self.flight.note_sent(now, packet.len(), Some(body));
        packet.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TAG: u32 = 0x0102_0304;
    const PEER_TAG: u32 = 0x0a0b_0c0d;
    const PEER_TSN: u32 = u32::MAX;
    const STREAM: u16 = 6;

    /// The connecting end, which says what a test lets it say.
    struct Client {
        association: Association,
        now: Instant,
        tsn: u32,
    }

    type Seen = (u8, u8, Vec<u8>);

    impl Client {
        fn new() -> Self {
            let random = [&[9; 16][..], &TAG.to_be_bytes(), &(u32::MAX - 1).to_be_bytes()].concat();
            let association = Association::new(Secrets::new(random.try_into().unwrap()));
            Self { association, now: Instant::now(), tsn: PEER_TSN }
        }

        /// With its channel open.
        fn connected() -> Self {
            let mut client = Self::new();
            client.say(0, &[(wire::INIT, 0, init())]);
            client.now += Duration::from_millis(40);
            let open = client.data(wire::WHOLE, CONTROL, &[OPEN, 0x81, 0, 0]);
            let (happenings, _) = client.say(TAG, &[(wire::COOKIE_ECHO, 0, vec![9; 16]), open]);
            assert_eq!(happenings, [Happening::Opened]);
            client
        }

        fn data(&mut self, flags: u8, protocol: u32, message: &[u8]) -> Seen {
            let body = [&self.tsn.to_be_bytes()[..], &STREAM.to_be_bytes(), &[0; 2], &protocol.to_be_bytes(), message]
                .concat();
            self.tsn = self.tsn.wrapping_add(1);
            (wire::DATA, flags, body)
        }

        fn say(&mut self, tag: u32, chunks: &[Seen]) -> (Vec<Happening>, Vec<Seen>) {
            let mut packet = Packet::new(&Header { source: 5000, destination: 5001, tag }, 64);
            chunks.iter().for_each(|(kind, flags, body)| packet.add(*kind, *flags, &[body]));
            let happenings = self.association.handle(self.now, &packet.finish());
            (happenings, self.heard())
        }

        /// Chunks that are for the client, in their order.
        fn heard(&mut self) -> Vec<Seen> {
            let mut seen = Vec::new();
            for packet in self.association.packets.drain(..) {
                let (header, chunks) = wire::parse(&packet).unwrap();
                assert_eq!((header.source, header.destination, header.tag), (5001, 5000, PEER_TAG));
                seen.extend(chunks.map(|chunk| (chunk.kind, chunk.flags, chunk.body.to_vec())));
            }
            seen
        }
    }

    fn init() -> Vec<u8> {
        [&PEER_TAG.to_be_bytes()[..], &1_000_000u32.to_be_bytes(), &[0, 16, 0, 16], &PEER_TSN.to_be_bytes()].concat()
    }

    fn sack(cumulative: u32, blocks: &[[u16; 2]]) -> Seen {
        let mut body =
            [&cumulative.to_be_bytes()[..], &1_000_000u32.to_be_bytes(), &(blocks.len() as u16).to_be_bytes(), &[0; 2]]
                .concat();
        blocks.iter().flatten().for_each(|edge| body.extend_from_slice(&edge.to_be_bytes()));
        (wire::SACK, 0, body)
    }

    fn kinds(seen: &[Seen]) -> Vec<u8> {
        seen.iter().map(|(kind, _, _)| *kind).collect()
    }

    #[test]
    fn a_message_is_as_long_as_the_protocol_says() {
        assert_eq!(MESSAGE_BYTES_MAX, 1104);
    }

    #[test]
    fn connects_though_every_answer_is_lost_once() {
        let mut client = Client::new();
        let open = client.data(wire::WHOLE, CONTROL, &[OPEN]);
        let (_, first) = client.say(0, &[(wire::INIT, 0, init())]);
        let (_, again) = client.say(0, &[(wire::INIT, 0, init())]);
        assert_eq!(kinds(&first), [wire::INIT_ACK]);
        assert_eq!(first, again);
        assert_eq!(u32_at(&first[0].2, 0), Some(TAG));
        assert_eq!(
            client.say(TAG, &[(wire::COOKIE_ECHO, 0, vec![8; 16]), open.clone()]),
            (vec![], vec![]),
            "a wrong cookie"
        );
        let cookie = (wire::COOKIE_ECHO, 0, vec![9; 16]);
        let (happenings, heard) = client.say(TAG, &[cookie.clone(), open.clone()]);
        assert_eq!((happenings, kinds(&heard)), (vec![Happening::Opened], vec![wire::COOKIE_ACK, wire::DATA]));
        let (happenings, heard) = client.say(TAG, &[cookie, open]);
        assert_eq!((happenings, kinds(&heard)), (vec![], vec![wire::COOKIE_ACK, wire::SACK]));
        assert_eq!(client.say(0, &[(wire::INIT, 0, init())]), (vec![], vec![]), "one that is up does not begin anew");
    }

    #[test]
    fn messages_go_both_ways_and_each_comes_once() {
        let mut client = Client::connected();
        let opened = client.heard();
        assert_eq!(opened.len(), 0, "{opened:?}");
        let message = client.data(wire::WHOLE | wire::UNORDERED, BINARY, b"hello");
        assert_eq!(client.say(TAG, &[message.clone(), message.clone()]).0, [Happening::Message(b"hello".to_vec())]);
        assert_eq!(client.say(TAG + 1, &[message]).0, [], "another association's");
        let part = client.data(wire::UNORDERED, BINARY, b"part");
        let text = client.data(wire::WHOLE, 51, b"text");
        assert_eq!(client.say(TAG, &[part, text]).0, []);
        assert!(client.association.opens_at(1000).is_some_and(|at| at <= client.now));
        client.association.send(client.now, b"answer", true);
        let heard = client.heard();
        let (_, flags, body) = heard.last().unwrap();
        assert_eq!(
            (*flags, &body[..4], &body[12..]),
            (wire::WHOLE | wire::UNORDERED | wire::AT_ONCE, &[0xff; 4][..], &b"answer"[..])
        );
    }

    #[test]
    fn a_lost_message_is_forgotten_and_the_lost_answer_to_an_open_comes_again() {
        let mut client = Client::connected();
        for _ in 0..5 {
            client.association.send(client.now, b"message", false);
        }
        client.heard();
        client.now += Duration::from_millis(100);
        client.association.send(client.now, b"message", false);
        client.heard();
        client.now += Duration::from_millis(50);
        // The first TSN is the answer's, the next the first message's.
        let (_, heard) = client.say(TAG, &[sack(u32::MAX - 2, &[[3, 7]])]);
        let answer = heard.iter().find(|(kind, ..)| *kind == wire::DATA).unwrap();
        assert_eq!(answer.2.last(), Some(&OPENED));
        let (_, heard) = client.say(TAG, &[sack(u32::MAX - 1, &[[2, 6]])]);
        assert_eq!(heard, [(wire::FORWARD_TSN, 0, 4u32.to_be_bytes().to_vec())]);
        let stats = client.association.stats().unwrap();
        assert_eq!((stats.lost_packets, stats.sent_packets), (2, 7));
    }

    #[test]
    fn a_probe_is_answered_and_comes_back() {
        let mut client = Client::connected();
        let (happenings, heard) = client.say(TAG, &[(wire::HEARTBEAT, 0, vec![0, 1, 0, 6, 7, 8])]);
        assert_eq!((happenings, heard), (vec![], vec![(wire::HEARTBEAT_ACK, 0, vec![0, 1, 0, 6, 7, 8])]));
        let probe = client.association.probe(&[5; 16]).unwrap();
        let (_, mut chunks) = wire::parse(&probe).unwrap();
        let held = chunks.next().unwrap().body.to_vec();
        assert_eq!(client.say(TAG, &[(wire::HEARTBEAT_ACK, 0, held)]).0, [Happening::Echoed(vec![5; 16])]);
        let flood: Vec<Seen> = (0..1000).map(|_| (wire::HEARTBEAT, 0, vec![])).collect();
        assert_eq!(client.say(TAG, &flood).1.len(), ANSWERS_MAX);
        assert_eq!(Client::new().association.probe(&[]), None);
    }

    #[test]
    fn an_end_is_told_and_answered() {
        for (chunk, answer) in [
            ((wire::ABORT, 0, vec![]), vec![]),
            ((wire::SHUTDOWN, 0, vec![0; 4]), vec![wire::SHUTDOWN_ACK]),
            (
                (wire::RE_CONFIG, 0, wire::parameter(STREAMS_END, &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 6])),
                vec![wire::RE_CONFIG],
            ),
        ] {
            let (happenings, heard) = Client::connected().say(TAG, &[chunk]);
            assert!(matches!(happenings[..], [Happening::Closed(_)]));
            assert_eq!(kinds(&heard), answer);
        }
        let mut client = Client::connected();
        client.association.abort();
        assert_eq!(kinds(&client.heard()), [wire::ABORT]);
        assert_eq!(client.association.opens_at(1), None);
    }

    /// Brings what one end has to say to the other; `lost` says of each packet, by its number, whether it gets lost.
    fn bring(
        from: &mut Association,
        to: &mut Association,
        now: Instant,
        mut lost: impl FnMut() -> bool,
    ) -> Vec<Happening> {
        from.packets.split_off(0).iter().filter(|_| !lost()).flat_map(|packet| to.handle(now, packet)).collect()
    }

    #[test]
    fn calls_and_opens_the_channel_whichever_packet_is_lost() {
        for (first, run) in (0..8).flat_map(|first| [(first, 1), (first, 2)]) {
            let [mut caller, mut called] = [1, 2].map(|fill| Association::new(Secrets::new([fill; 24])));
            let (mut now, mut count) = (Instant::now(), 0);
            let (mut of_caller, mut of_called) = (Vec::new(), Vec::new());
            let mut lost = || {
                count += 1;
                (first..first + run).contains(&(count - 1))
            };
            caller.call(now);
            for _ in 0..100 {
                of_called.extend(bring(&mut caller, &mut called, now, &mut lost));
                of_caller.extend(bring(&mut called, &mut caller, now, &mut lost));
                now += Duration::from_millis(50);
                caller.advance(now);
                called.advance(now);
            }
            assert_eq!(
                (of_caller, of_called),
                (vec![Happening::Opened], vec![Happening::Opened]),
                "{run} from {first} on"
            );
            caller.send(now, b"question", true);
            assert_eq!(bring(&mut caller, &mut called, now, || false), [Happening::Message(b"question".to_vec())]);
            called.send(now, b"answer", true);
            assert_eq!(bring(&mut called, &mut caller, now, || false), [Happening::Message(b"answer".to_vec())]);
        }
    }

    #[test]
    fn one_that_calls_is_not_called_and_goes_by_the_first_answer() {
        let now = Instant::now();
        let mut caller = Association::new(Secrets::new([1; 24]));
        caller.call(now);
        caller.packets.clear();
        let mut say = |tag: u32, kind: u8, body: &[u8]| {
            let mut packet = Packet::new(&Header { source: PORT, destination: PORT, tag }, 64);
            packet.add(kind, 0, &[body]);
            assert_eq!(caller.handle(now, &packet.finish()), []);
            std::mem::take(&mut caller.packets)
        };
        let tag = u32_at(&[1; 4], 0).unwrap();
        let answer = [&init()[..], &wire::parameter(COOKIE, &[3; 8])].concat();
        assert!(say(0, wire::INIT, &init()).is_empty());
        assert!(say(tag + 1, wire::INIT_ACK, &answer).is_empty(), "another association's");
        assert!(say(tag, wire::INIT_ACK, &init()).is_empty(), "no cookie");
        assert!(say(tag, wire::COOKIE_ACK, &[]).is_empty());
        let packets = say(tag, wire::INIT_ACK, &answer);
        let seen: Vec<_> = packets
            .iter()
            .flat_map(|packet| wire::parse(packet).unwrap().1)
            .map(|chunk| (chunk.kind, chunk.body.to_vec()))
            .collect();
        assert_eq!((seen.len(), &seen[0]), (2, &(wire::COOKIE_ECHO, vec![3; 8])));
        assert!(say(tag, wire::INIT_ACK, &answer).is_empty());
    }

    /// Whatever comes, nothing breaks: chunks of all kinds, with bytes and lengths that are wrong.
    #[test]
    fn garbage_breaks_nothing() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut draw = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 16) % below
        };
        for run in 0..400 {
            let mut client = if run < 300 { Client::connected() } else { Client::new() };
            if run >= 300 {
                client.association.call(client.now);
            }
            for _ in 0..200 {
                client.now += Duration::from_millis(draw(50));
                if client.association.opens_at(100).is_some() {
                    client.association.send(client.now, &[7; 100], draw(2) == 0);
                }
                let kind = [0, 1, 2, 3, 4, 7, 10, 11, 14, 130, 192][draw(11) as usize];
                let near = [PEER_TSN, u32::MAX - 1, 0, 1 << 31][draw(4) as usize].wrapping_add(draw(64) as u32);
                let mut body = near.to_be_bytes().to_vec();
                body.extend((0..draw(40)).map(|_| if draw(3) == 0 { draw(256) as u8 } else { 0 }));
                let mut packet = Packet::new(
                    &Header { source: 5000, destination: 5001, tag: if kind == wire::INIT { 0 } else { TAG } },
                    64,
                );
                packet.add(kind, draw(16) as u8, &[&body]);
                let mut bytes = packet.finish();
                if draw(4) == 0 {
                    let at = draw(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << draw(8);
                }
                client.association.handle(client.now, &bytes);
                let due = client.association.due();
                client.association.advance(client.now);
                assert!(due.is_none_or(|due| due <= client.now + Duration::from_secs(11)));
                client.association.packets.clear();
            }
        }
    }
}
