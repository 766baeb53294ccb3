//! The other end of a connection over WebRTC: DTLS and SCTP on top of what its datagrams bring, and the messages that
//wait to
//! be sent. A task of its own that ends with the connection; addresses and ports are the business of rtc.rs, where it
//is a
//! client, and of caller.rs, where it is a proxy.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Dtls, Output};
use tokio::sync::mpsc;

use crate::endpoint::lock;
use crate::events::{Change, Events, Stats};
use crate::room::Room;
use crate::rtc::{Route, Socket};
use crate::sctp::{Association, Happening, MESSAGE_BYTES_MAX};

/// One that is not heard for so long is gone (RFC 7675 asks browsers to be heard every few seconds).
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// From the offer to the open channel.
pub const OPENING_MAX: Duration = Duration::from_secs(15);
/// What one packet of DTLS surely fits in.
const BUFFER_BYTES: usize = 2048;
/// By what comes back of it a client shows that it is where it says; asked again so much later.
const NONCE_BYTES: usize = 16;
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Datagrams dealt with before it is our turn to send.
const TURN_MAX: usize = 64;
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// What the rest of the process asks of a peer.
pub enum Order {
    Send(Bytes),
    /// JavaScript has closed the session and wants to hear no more of it.
    Close,
}

/// What the rest of the process sees of a peer.
pub struct Handle {
    orders: mpsc::UnboundedSender<Order>,
    room: Arc<Room>,
    /// None until SCTP is there.
    stats: Arc<Mutex<Option<Stats>>>,
}

/// The peer's side of a handle.
pub struct Held {
    pub orders: mpsc::UnboundedReceiver<Order>,
    room: Arc<Room>,
    stats: Arc<Mutex<Option<Stats>>>,
}

impl Handle {
    pub fn new() -> (Self, Held) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let handle = Self { orders, room: Arc::default(), stats: Arc::default() };
        let held = Held { orders: ordered, room: Arc::clone(&handle.room), stats: Arc::clone(&handle.stats) };
        (handle, held)
    }

    /// Queues messages that lie end to end in `bytes`. Returns how many more bytes are welcome, less than 0 when there
    /// are too many already; when it is not positive, `Writable` follows.
    pub fn send(&self, bytes: &[u8], lengths: &[u32]) -> i64 {
        let mut all = Bytes::copy_from_slice(bytes);
        self.room.add(all.len());
        for &length in lengths {
            let message = all.split_to((length as usize).min(all.len()));
            let _ = self.orders.send(Order::Send(message));
        }
        self.room.left()
    }

    pub fn stats(&self) -> Option<Stats> {
        *lock(&self.stats)
    }

    /// Nothing more is told of it.
    pub fn close(&self) {
        let _ = self.orders.send(Order::Close);
    }
}

/// What came, and which way.
pub struct Arrival {
    pub route: Route,
    pub kind: ArrivalKind,
}

pub enum ArrivalKind {
    Datagram(Vec<u8>),
    /// A sign of life from ICE, perhaps of the way that the client wants to be used.
    Check {
        is_chosen: bool,
    },
}

pub struct Peer {
    pub id: u32,
    pub dtls: Dtls,
    pub association: Association,
    /// Where it is, if that is known and it is to be called there: it is a proxy.
    pub route: Option<Route>,
    /// SHA-256 of its certificate, as its offer or answer says.
    pub fingerprint: [u8; 32],
    pub socket: Arc<Socket>,
    pub held: Held,
    pub events: Arc<Events>,
}

/// Why a connection is over; None: JavaScript knows.
pub type End = Option<String>;

/// What changes while a peer runs.
struct State {
    /// Where it is: it has answered there.
    route: Option<Route>,
    /// Where it may be now: what it was asked there, and when.
    asked: Option<(Route, [u8; NONCE_BYTES], Instant)>,
    heard: Instant,
    is_trusted: bool,
    is_open: bool,
    queue: VecDeque<Bytes>,
    dtls_due: Instant,
    buffer: Vec<u8>,
}

impl Peer {
    /// Until the connection is over; returns why.
    pub async fn run(mut self, mut arrivals: mpsc::Receiver<Arrival>) -> End {
        let now = Instant::now();
        let mut state = State {
            route: self.route,
            asked: None,
            heard: now,
            is_trusted: false,
            is_open: false,
            queue: VecDeque::new(),
            dtls_due: now,
            buffer: vec![0; BUFFER_BYTES],
        };
        let opening_ends = now + OPENING_MAX;
        let reason = loop {
            match self.step(&mut state, &mut arrivals, opening_ends).await {
                Ok(()) => (),
                Err(reason) => break reason,
            }
        };
        self.association.abort();
        let _ = self.send_packets(&mut state);
        if self.dtls.close().is_ok() {
            let _ = self.poll_dtls(&mut state, Instant::now());
        }
        reason
    }

    /// Waits for something to happen and deals with it.
    async fn step(
        &mut self,
        state: &mut State,
        arrivals: &mut mpsc::Receiver<Arrival>,
        opening_ends: Instant,
    ) -> Result<(), End> {
        let due = self.due(state);
        tokio::select! {
            biased;
            arrival = arrivals.recv() => self.take(state, arrival.ok_or_else(|| Some("the port was closed".to_owned()))?)?,
            order = self.held.orders.recv() => obey(state, order)?,
            () = tokio::time::sleep_until(due.into()) => (),
        }
        for _ in 0..TURN_MAX {
            let Ok(arrival) = arrivals.try_recv() else { break };
            self.take(state, arrival)?;
        }
        while let Ok(order) = self.held.orders.try_recv() {
            obey(state, Some(order))?;
        }
        let now = Instant::now();
        if now > state.heard + SILENCE_MAX || !state.is_open && now > opening_ends {
            return Err(Some("the other end was not heard any more".to_owned()));
        }
        if state.dtls_due <= now {
            self.dtls.handle_timeout(now).map_err(|error| Some(error.to_string()))?;
            self.poll_dtls(state, now)?;
        }
        self.association.advance(now);
        self.send_queue(state, now);
        self.send_packets(state)?;
        *lock(&self.held.stats) = self.association.stats();
        Ok(())
    }

    fn due(&self, state: &State) -> Instant {
        let queued = state.queue.front().and_then(|message| self.association.opens_at(message.len()));
        let due = [Some(state.dtls_due), self.association.due(), queued].into_iter().flatten().min();
        let latest = Instant::now() + SLEEP_MAX;
        due.map_or(latest, |due| due.min(latest))
    }

    fn take(&mut self, state: &mut State, arrival: Arrival) -> Result<(), End> {
        let now = Instant::now();
        state.heard = now;
        let ArrivalKind::Datagram(datagram) = arrival.kind else {
            let is_chosen = matches!(arrival.kind, ArrivalKind::Check { is_chosen: true });
            return if is_chosen { self.follow(state, now, arrival.route) } else { Ok(()) };
        };
        if state.route.is_none() {
            state.route = Some(arrival.route);
        }
        self.dtls.handle_timeout(now).map_err(|error| Some(error.to_string()))?;
        self.dtls.handle_packet(&datagram).map_err(|error| Some(error.to_string()))?;
        self.poll_dtls(state, now)?;
        self.follow(state, now, arrival.route)
    }

    /// A client seems to be elsewhere. Its addresses can be forged, and what is sent to one that is would hit another:
    /// it is asked there first. The handshake is such a question, too.
    fn follow(&mut self, state: &mut State, now: Instant, route: Route) -> Result<(), End> {
        let is_asked = state.asked.is_some_and(|(_, _, at)| now < at + ASK_AGAIN);
        if state.route.is_none_or(|known| known == route) || is_asked {
            return Ok(());
        }
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| Some(error.to_string()))?;
        let Some(probe) = self.association.probe(&nonce) else { return Ok(()) };
        state.asked = Some((route, nonce, now));
        let socket = Arc::clone(&self.socket);
        self.seal(state, &probe, |packet| socket.send(&route, packet, packet.len()))
    }

    /// Takes what DTLS has: packets for the path, what the other end sent, and who it is.
    fn poll_dtls(&mut self, state: &mut State, now: Instant) -> Result<(), End> {
        loop {
            match self.dtls.poll_output(&mut state.buffer) {
                Output::Packet(packet) => {
                    state.route.iter().for_each(|route| self.socket.send(route, packet, packet.len()))
                }
                Output::ApplicationData(packet) if state.is_trusted => {
                    for happening in self.association.handle(now, packet) {
                        match happening {
                            Happening::Message(message) => self.events.received(self.id, &message),
                            Happening::Echoed(held) => {
                                let proven = state.asked.filter(|(_, nonce, _)| *nonce == held[..]);
                                state.route = proven.map(|(route, _, _)| route).or(state.route);
                            }
                            Happening::Opened => {
                                state.is_open = true;
                                self.events
                                    .change(self.id, Change::Opened { datagram_bytes_max: MESSAGE_BYTES_MAX as u32 });
                            }
                            Happening::Closed(reason) => return Err(Some(reason.to_owned())),
                        }
                    }
                }
                Output::PeerCert(certificate) => {
                    state.is_trusted = crate::certificate::sha256(certificate) == self.fingerprint;
                    if !state.is_trusted {
                        return Err(Some("the other end's certificate is not the one it announced".to_owned()));
                    }
                }
                Output::Connected if self.route.is_some() => self.association.call(now),
                Output::Timeout(due) => {
                    state.dtls_due = due;
                    return Ok(());
                }
                Output::BufferTooSmall { needed } => state.buffer.resize(needed, 0),
                Output::CloseNotify => return Err(Some("connection closed".to_owned())),
                _ => (),
            }
        }
    }

    /// Lets messages go as the path takes them.
    fn send_queue(&mut self, state: &mut State, now: Instant) {
        let mut sent = 0;
        while let Some(message) = state.queue.front() {
            if self.association.opens_at(message.len()).is_none_or(|at| at > now) {
                break;
            }
            let message = state.queue.pop_front().expect("one is there");
            self.association.send(now, &message, state.queue.is_empty());
            sent += message.len();
        }
        if sent == 0 {
            return;
        }
        if let Some(Stats { rtt, window_bytes, .. }) = self.association.stats() {
            self.held.room.follow(window_bytes as f64 / rtt.as_secs_f64().max(1e-4));
        }
        if self.held.room.remove(sent) {
            self.events.change(self.id, Change::Writable);
        }
    }

    /// Wraps SCTP's packets; those of one length leave together.
    fn send_packets(&mut self, state: &mut State) -> Result<(), End> {
        let Some(route) = state.route else { return Ok(()) };
        let socket = Arc::clone(&self.socket);
        let (mut batch, mut length, batch_max): (Vec<u8>, usize, usize) = (Vec::new(), 0, socket.batch_max());
        for packet in std::mem::take(&mut self.association.packets) {
            self.seal(state, &packet, |packet| {
                if !batch.is_empty() && (packet.len() != length || batch.len() >= batch_max * length) {
                    socket.send(&route, &batch, length);
                    batch.clear();
                }
                length = packet.len();
                batch.extend_from_slice(packet);
            })?;
        }
        if !batch.is_empty() {
            socket.send(&route, &batch, length);
        }
        Ok(())
    }

    /// Wraps one packet of SCTP.
    fn seal(&mut self, state: &mut State, packet: &[u8], mut send: impl FnMut(&[u8])) -> Result<(), End> {
        self.dtls.send_application_data(packet).map_err(|error| Some(error.to_string()))?;
        loop {
            match self.dtls.poll_output(&mut state.buffer) {
                Output::Packet(packet) => send(packet),
                Output::BufferTooSmall { needed } => state.buffer.resize(needed, 0),
                Output::Timeout(due) => {
                    state.dtls_due = due;
                    return Ok(());
                }
                _ => (),
            }
        }
    }
}

fn obey(state: &mut State, order: Option<Order>) -> Result<(), End> {
    match order {
        Some(Order::Send(message)) => {
            state.queue.push_back(message);
            Ok(())
        }
        Some(Order::Close) | None => Err(None),
    }
}
