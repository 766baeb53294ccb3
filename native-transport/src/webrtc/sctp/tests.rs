//! An association against a scripted client, and two associations against each other.

use std::time::{Duration, Instant};

use super::wire::{self, u32_at, Header, Packet};
use super::*;

const TAG: u32 = 0x0102_0304;
const PEER_TAG: u32 = 0x0a0b_0c0d;
const PEER_TSN: u32 = u32::MAX;
const STREAM: u16 = 6;

/// The connecting end. It sends what a test tells it to send.
struct Client {
    association: Association,
    now: Instant,
    tsn: u32,
}

/// Type, flags and body of a chunk.
type Seen = (u8, u8, Vec<u8>);

impl Client {
    fn new() -> Self {
        let random = [&[9; 16][..], &TAG.to_be_bytes(), &(u32::MAX - 1).to_be_bytes()].concat();
        let association = Association::new(Secrets::new(random.try_into().unwrap()));
        Self { association, now: Instant::now(), tsn: PEER_TSN }
    }

    /// A client whose channel is open.
    fn connected() -> Self {
        let mut client = Self::new();
        client.say(0, &[(wire::INIT, 0, init())]);
        client.now += Duration::from_millis(40);
        let open = client.data(wire::WHOLE, CONTROL, &[DATA_CHANNEL_OPEN, 0x81, 0, 0]);
        let (events, _) = client.say(TAG, &[(wire::COOKIE_ECHO, 0, vec![9; 16]), open]);
        assert_eq!(events, [Event::Opened]);
        client
    }

    fn data(&mut self, flags: u8, protocol: u32, message: &[u8]) -> Seen {
        let body =
            [&self.tsn.to_be_bytes()[..], &STREAM.to_be_bytes(), &[0; 2], &protocol.to_be_bytes(), message].concat();
        self.tsn = self.tsn.wrapping_add(1);
        (wire::DATA, flags, body)
    }

    fn say(&mut self, tag: u32, chunks: &[Seen]) -> (Vec<Event>, Vec<Seen>) {
        let mut packet = Packet::new(&Header { source: 5000, destination: 5001, tag }, 64);
        chunks.iter().for_each(|(kind, flags, body)| packet.add(*kind, *flags, &[body]));
        let events = self.association.handle(self.now, &packet.finish());
        (events, self.heard())
    }

    /// The chunks for the client, in their order.
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
fn a_message_has_at_most_the_length_that_the_protocol_states() {
    assert_eq!(MESSAGE_BYTES_MAX, 1104);
}

#[test]
fn connects_when_every_answer_is_lost_once() {
    let mut client = Client::new();
    let open = client.data(wire::WHOLE, CONTROL, &[DATA_CHANNEL_OPEN]);
    let (_, first) = client.say(0, &[(wire::INIT, 0, init())]);
    let (_, again) = client.say(0, &[(wire::INIT, 0, init())]);
    assert_eq!(kinds(&first), [wire::INIT_ACK]);
    assert_eq!(first, again);
    assert_eq!(u32_at(&first[0].2, 0), Some(TAG));
    assert_eq!(
        client.say(TAG, &[(wire::COOKIE_ECHO, 0, vec![8; 16]), open.clone()]),
        (vec![], vec![]),
        "the cookie is wrong"
    );
    let cookie = (wire::COOKIE_ECHO, 0, vec![9; 16]);
    let (events, heard) = client.say(TAG, &[cookie.clone(), open.clone()]);
    assert_eq!((events, kinds(&heard)), (vec![Event::Opened], vec![wire::COOKIE_ACK, wire::DATA]));
    let (events, heard) = client.say(TAG, &[cookie, open]);
    assert_eq!((events, kinds(&heard)), (vec![], vec![wire::COOKIE_ACK, wire::SACK]));
    assert_eq!(
        client.say(0, &[(wire::INIT, 0, init())]),
        (vec![], vec![]),
        "an association that is up does not start again"
    );
}

#[test]
fn messages_travel_both_ways_and_each_arrives_once() {
    let mut client = Client::connected();
    let opened = client.heard();
    assert_eq!(opened.len(), 0, "{opened:?}");
    let message = client.data(wire::WHOLE | wire::UNORDERED, BINARY, b"hello");
    assert_eq!(client.say(TAG, &[message.clone(), message.clone()]).0, [Event::Message(b"hello".to_vec())]);
    assert_eq!(client.say(TAG + 1, &[message]).0, [], "the tag is another association's");
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
fn a_lost_message_is_not_sent_again_but_a_lost_channel_ack_is() {
    let mut client = Client::connected();
    for _ in 0..5 {
        client.association.send(client.now, b"message", false);
    }
    client.heard();
    client.now += Duration::from_millis(100);
    client.association.send(client.now, b"message", false);
    client.heard();
    client.now += Duration::from_millis(50);
    // The first TSN belongs to the channel's ACK, the next one to the first message.
    let (_, heard) = client.say(TAG, &[sack(u32::MAX - 2, &[[3, 7]])]);
    let answer = heard.iter().find(|(kind, ..)| *kind == wire::DATA).unwrap();
    assert_eq!(answer.2.last(), Some(&DATA_CHANNEL_ACK));
    let (_, heard) = client.say(TAG, &[sack(u32::MAX - 1, &[[2, 6]])]);
    assert_eq!(heard, [(wire::FORWARD_TSN, 0, 4u32.to_be_bytes().to_vec())]);
    let stats = client.association.stats().unwrap();
    assert_eq!((stats.lost_packets, stats.sent_packets), (2, 7));
}

#[test]
fn answers_probes_and_sees_the_answers_to_its_own() {
    let mut client = Client::connected();
    let (events, heard) = client.say(TAG, &[(wire::HEARTBEAT, 0, vec![0, 1, 0, 6, 7, 8])]);
    assert_eq!((events, heard), (vec![], vec![(wire::HEARTBEAT_ACK, 0, vec![0, 1, 0, 6, 7, 8])]));
    let probe = client.association.probe(&[5; 16]).unwrap();
    let (_, mut chunks) = wire::parse(&probe).unwrap();
    let held = chunks.next().unwrap().body.to_vec();
    assert_eq!(client.say(TAG, &[(wire::HEARTBEAT_ACK, 0, held)]).0, [Event::ProbeAnswered(vec![5; 16])]);
    let flood: Vec<Seen> = (0..1000).map(|_| (wire::HEARTBEAT, 0, vec![])).collect();
    assert_eq!(client.say(TAG, &flood).1.len(), ANSWERS_MAX);
    assert_eq!(Client::new().association.probe(&[]), None);
}

#[test]
fn answers_the_end_of_an_association_and_announces_its_own() {
    for (chunk, answer) in [
        ((wire::ABORT, 0, vec![]), vec![]),
        ((wire::SHUTDOWN, 0, vec![0; 4]), vec![wire::SHUTDOWN_ACK]),
        (
            (wire::RE_CONFIG, 0, wire::parameter(OUTGOING_RESET, &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 6])),
            vec![wire::RE_CONFIG],
        ),
    ] {
        let (events, heard) = Client::connected().say(TAG, &[chunk]);
        assert!(matches!(events[..], [Event::Closed(_)]));
        assert_eq!(kinds(&heard), answer);
    }
    let mut client = Client::connected();
    client.association.abort();
    assert_eq!(kinds(&client.heard()), [wire::ABORT]);
    assert_eq!(client.association.opens_at(1), None);
}

/// Carries the packets of one end to the other. `lost` says for each packet whether it is lost.
fn carry(from: &mut Association, to: &mut Association, now: Instant, mut lost: impl FnMut() -> bool) -> Vec<Event> {
    from.packets.split_off(0).iter().filter(|_| !lost()).flat_map(|packet| to.handle(now, packet)).collect()
}

#[test]
fn connects_and_opens_the_channel_when_any_packet_is_lost() {
    for (first, run) in (0..8).flat_map(|first| [(first, 1), (first, 2)]) {
        let [mut client, mut server] = [1, 2].map(|fill| Association::new(Secrets::new([fill; 24])));
        let (mut now, mut count) = (Instant::now(), 0);
        let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
        let mut lost = || {
            count += 1;
            (first..first + run).contains(&(count - 1))
        };
        client.connect(now);
        for _ in 0..100 {
            of_server.extend(carry(&mut client, &mut server, now, &mut lost));
            of_client.extend(carry(&mut server, &mut client, now, &mut lost));
            now += Duration::from_millis(50);
            client.advance(now);
            server.advance(now);
        }
        assert_eq!((of_client, of_server), (vec![Event::Opened], vec![Event::Opened]), "{run} from {first} on");
        client.send(now, b"question", true);
        assert_eq!(carry(&mut client, &mut server, now, || false), [Event::Message(b"question".to_vec())]);
        server.send(now, b"answer", true);
        assert_eq!(carry(&mut server, &mut client, now, || false), [Event::Message(b"answer".to_vec())]);
    }
}

#[test]
fn a_connecting_end_ignores_inits_and_takes_only_the_first_answer() {
    let now = Instant::now();
    let mut client = Association::new(Secrets::new([1; 24]));
    client.connect(now);
    client.packets.clear();
    let mut say = |tag: u32, kind: u8, body: &[u8]| {
        let mut packet = Packet::new(&Header { source: PORT, destination: PORT, tag }, 64);
        packet.add(kind, 0, &[body]);
        assert_eq!(client.handle(now, &packet.finish()), []);
        std::mem::take(&mut client.packets)
    };
    let tag = u32_at(&[1; 4], 0).unwrap();
    let answer = [&init()[..], &wire::parameter(STATE_COOKIE, &[3; 8])].concat();
    assert!(say(0, wire::INIT, &init()).is_empty());
    assert!(say(tag + 1, wire::INIT_ACK, &answer).is_empty(), "the tag is another association's");
    assert!(say(tag, wire::INIT_ACK, &init()).is_empty(), "the cookie is missing");
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

/// Chunks of all types, with wrong bytes and wrong lengths.
#[test]
fn survives_garbage() {
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
            client.association.connect(client.now);
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
