//! The other end of a session over WebRTC: its DTLS, its SCTP, and the queue of messages for it. Each peer is a task
//! that ends with the session. The socket, and the addresses that ICE finds, belong to server.rs when the peer is a
//! client, and to client.rs when it is a proxy.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Dtls, Output};
use tokio::sync::mpsc;

use super::sctp::{Association, Event, MESSAGE_BYTES_MAX};
use super::socket::{Route, Socket};
use crate::events::{Change, Events, Stats};
use crate::room::Room;
use crate::runtime::lock;

/// A peer that is silent for this time is gone. RFC 7675 makes browsers send something every few seconds.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The time from the offer to the open channel.
pub const OPENING_MAX: Duration = Duration::from_secs(15);
/// One packet of DTLS fits in this.
const BUFFER_BYTES: usize = 2048;
/// A client proves its address by sending this nonce back.
const NONCE_BYTES: usize = 16;
/// The time between two probes of an address.
const PROBE_AGAIN: Duration = Duration::from_secs(1);
/// The peer handles this many datagrams before it sends.
const TURN_MAX: usize = 64;
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// What the rest of the process asks of a peer.
pub enum Order {
    Send(Bytes),
    /// JavaScript has closed the session. No event may follow.
    Close,
}

/// The end of a peer that the rest of the process holds.
pub struct PeerHandle {
    orders: mpsc::UnboundedSender<Order>,
    room: Arc<Room>,
    /// None until the association exists.
    stats: Arc<Mutex<Option<Stats>>>,
}

/// The peer's end of a handle.
pub struct PeerControls {
    pub orders: mpsc::UnboundedReceiver<Order>,
    room: Arc<Room>,
    stats: Arc<Mutex<Option<Stats>>>,
}

impl PeerHandle {
    pub fn new() -> (Self, PeerControls) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let handle = Self { orders, room: Arc::default(), stats: Arc::default() };
        let (room, stats) = (Arc::clone(&handle.room), Arc::clone(&handle.stats));
        (handle, PeerControls { orders: ordered, room, stats })
    }

    /// Queues messages that lie end to end in `bytes`. Returns how many more bytes the queue takes: below 0 when it
    /// holds too many. When the result is not above 0, `Writable` follows.
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

    /// No event follows.
    pub fn close(&self) {
        let _ = self.orders.send(Order::Close);
    }
}

/// Something that came for a peer, and the route on which it came.
pub struct Arrival {
    pub route: Route,
    pub kind: ArrivalKind,
}

pub enum ArrivalKind {
    Datagram(Vec<u8>),
    /// A check of ICE. `is_chosen`: the client wants this route to be used.
    Check {
        is_chosen: bool,
    },
}

pub struct Peer {
    pub id: u32,
    pub dtls: Dtls,
    pub association: Association,
    /// The route to a proxy, which we connect to. None for a client, which connects to us.
    pub route: Option<Route>,
    /// SHA-256 of its certificate, from its offer or answer.
    pub fingerprint: [u8; 32],
    pub socket: Arc<Socket>,
    pub controls: PeerControls,
    pub events: Arc<Events>,
}

/// Why a session ended. None: JavaScript closed it.
pub type CloseReason = Option<String>;

/// What changes while a peer runs.
struct State {
    /// The route on which the peer has answered.
    route: Option<Route>,
    /// The route on which the peer may be, the nonce of the probe that was sent there, and when.
    probed: Option<(Route, [u8; NONCE_BYTES], Instant)>,
    heard: Instant,
    is_trusted: bool,
    is_open: bool,
    queue: VecDeque<Bytes>,
    dtls_due: Instant,
    buffer: Vec<u8>,
}

impl Peer {
    /// Runs until the session ends. Returns the reason.
    pub async fn run(mut self, mut arrivals: mpsc::Receiver<Arrival>) -> CloseReason {
        let now = Instant::now();
        let mut state = State {
            route: self.route,
            probed: None,
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

    /// Waits for the next arrival, order or timeout, and handles it.
    async fn step(
        &mut self,
        state: &mut State,
        arrivals: &mut mpsc::Receiver<Arrival>,
        opening_ends: Instant,
    ) -> Result<(), CloseReason> {
        let due = self.due(state);
        tokio::select! {
            biased;
            arrival = arrivals.recv() => {
                let arrival = arrival.ok_or_else(|| Some("the port was closed".to_owned()))?;
                self.take(state, arrival)?;
            }
            order = self.controls.orders.recv() => obey(state, order)?,
            () = tokio::time::sleep_until(due.into()) => (),
        }
        for _ in 0..TURN_MAX {
            let Ok(arrival) = arrivals.try_recv() else { break };
            self.take(state, arrival)?;
        }
        while let Ok(order) = self.controls.orders.try_recv() {
            obey(state, Some(order))?;
        }
        let now = Instant::now();
        if now > state.heard + SILENCE_MAX {
            return Err(Some(format!("the other end was silent for {} s", SILENCE_MAX.as_secs())));
        }
        if !state.is_open && now > opening_ends {
            return Err(Some(format!("the channel did not open within {} s", OPENING_MAX.as_secs())));
        }
        if state.dtls_due <= now {
            self.dtls.handle_timeout(now).map_err(|error| Some(error.to_string()))?;
            self.poll_dtls(state, now)?;
        }
        self.association.advance(now);
        self.send_queue(state, now);
        self.send_packets(state)?;
        *lock(&self.controls.stats) = self.association.stats();
        Ok(())
    }

    fn due(&self, state: &State) -> Instant {
        let queued = state.queue.front().and_then(|message| self.association.opens_at(message.len()));
        let due = [Some(state.dtls_due), self.association.due(), queued].into_iter().flatten().min();
        let latest = Instant::now() + SLEEP_MAX;
        due.map_or(latest, |due| due.min(latest))
    }

    fn take(&mut self, state: &mut State, arrival: Arrival) -> Result<(), CloseReason> {
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

    /// Probes a new route of a client before using it. Addresses can be forged, and our packets would then hit somebody
    /// else. The first route needs no probe, because the DTLS handshake proves it.
    fn follow(&mut self, state: &mut State, now: Instant, route: Route) -> Result<(), CloseReason> {
        let is_probed = state.probed.is_some_and(|(_, _, at)| now < at + PROBE_AGAIN);
        if state.route.is_none_or(|known| known == route) || is_probed {
            return Ok(());
        }
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| Some(error.to_string()))?;
        let Some(probe) = self.association.probe(&nonce) else { return Ok(()) };
        state.probed = Some((route, nonce, now));
        let socket = Arc::clone(&self.socket);
        self.seal(state, &probe, |packet| socket.send(&route, packet, packet.len()))
    }

    /// Handles the output of DTLS: packets to send, decrypted packets of SCTP, and the other end's certificate.
    fn poll_dtls(&mut self, state: &mut State, now: Instant) -> Result<(), CloseReason> {
        loop {
            match self.dtls.poll_output(&mut state.buffer) {
                Output::Packet(packet) => {
                    state.route.iter().for_each(|route| self.socket.send(route, packet, packet.len()))
                }
                Output::ApplicationData(packet) if state.is_trusted => {
                    for event in self.association.handle(now, packet) {
                        self.handle_event(state, event)?;
                    }
                }
                Output::PeerCert(certificate) => {
                    state.is_trusted = crate::certificate::sha256(certificate) == self.fingerprint;
                    if !state.is_trusted {
                        return Err(Some("the other end's certificate is not the one it announced".to_owned()));
                    }
                }
                Output::Connected if self.route.is_some() => self.association.connect(now),
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

    fn handle_event(&mut self, state: &mut State, event: Event) -> Result<(), CloseReason> {
        match event {
            Event::Message(message) => self.events.received(self.id, &message),
            Event::ProbeAnswered(nonce) => {
                let proven = state.probed.filter(|(_, probed, _)| *probed == nonce[..]);
                state.route = proven.map(|(route, _, _)| route).or(state.route);
            }
            Event::Opened => {
                state.is_open = true;
                let address = state.route.map(|route| route.remote.ip());
                self.events.change(self.id, Change::Opened { datagram_bytes_max: MESSAGE_BYTES_MAX as u32, address });
            }
            Event::Closed(reason) => return Err(Some(reason.to_owned())),
        }
        Ok(())
    }

    /// Sends queued messages as fast as the path takes them.
    fn send_queue(&mut self, state: &mut State, now: Instant) {
        let mut sent = 0;
        while let Some(message) = state.queue.front() {
            if self.association.opens_at(message.len()).is_none_or(|at| at > now) {
                break;
            }
            let message = state.queue.pop_front().expect("the queue has a front");
            self.association.send(now, &message, state.queue.is_empty());
            sent += message.len();
        }
        if sent == 0 {
            return;
        }
        if let Some(Stats { rtt, window_bytes, .. }) = self.association.stats() {
            self.controls.room.follow(window_bytes as f64 / rtt.as_secs_f64().max(1e-4));
        }
        if self.controls.room.remove(sent) {
            self.events.change(self.id, Change::Writable);
        }
    }

    /// Encrypts and sends the packets of SCTP. Packets of one length leave in one call.
    fn send_packets(&mut self, state: &mut State) -> Result<(), CloseReason> {
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

    /// Encrypts one packet of SCTP.
    fn seal(&mut self, state: &mut State, packet: &[u8], mut send: impl FnMut(&[u8])) -> Result<(), CloseReason> {
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

fn obey(state: &mut State, order: Option<Order>) -> Result<(), CloseReason> {
    match order {
        Some(Order::Send(message)) => {
            state.queue.push_back(message);
            Ok(())
        }
        Some(Order::Close) | None => Err(None),
    }
}
