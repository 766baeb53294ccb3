//! One client over WebRTC: DTLS and SCTP on top of what its datagrams bring, and the messages that wait to be sent. A task of
//! its own that ends with the connection; addresses and the port are rtc.rs's.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Dtls, Output};
use tokio::sync::mpsc;

use crate::events::{Change, Events, Stats};
use crate::room::Room;
use crate::rtc::{Route, Socket};
use crate::sctp::{Association, Happening};

/// A client that is not heard for so long is gone (RFC 7675 asks browsers to be heard every few seconds).
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// From the offer to the open channel.
const OPENING_MAX: Duration = Duration::from_secs(15);
/// Of messages to send, and of packets in their wrapping.
pub const MESSAGE_BYTES_MAX: u32 = 1104;
const DATAGRAM_BYTES_MAX: usize = 2048;
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// What the rest of the process asks of a peer.
pub enum Order {
    Send(Bytes),
    /// JavaScript has closed the session and wants to hear no more of it.
    Close,
}

/// What the rest of the process sees of a peer.
pub struct Handle {
    pub orders: mpsc::UnboundedSender<Order>,
    pub room: Arc<Room>,
    /// None until SCTP is there.
    pub stats: Arc<Mutex<Option<Stats>>>,
}

/// A datagram from the client, or a sign of life from ICE: which way it came.
pub struct Arrival {
    pub route: Route,
    pub datagram: Vec<u8>,
}

pub struct Peer {
    pub id: u32,
    pub dtls: Dtls,
    pub association: Association,
    /// SHA-256 of the client's certificate, as its offer says.
    pub fingerprint: [u8; 32],
    pub socket: Arc<Socket>,
    pub room: Arc<Room>,
    pub stats: Arc<Mutex<Option<Stats>>>,
    pub events: Arc<Events>,
}

/// Why a connection is over; None: JavaScript knows.
type End = Option<String>;

/// What changes while a peer runs.
struct State {
    route: Option<Route>,
    heard: Instant,
    is_trusted: bool,
    is_open: bool,
    queue: VecDeque<Bytes>,
    dtls_due: Instant,
    buffer: Vec<u8>,
}

impl Peer {
    /// Until the connection is over; says so then.
    pub async fn run(mut self, mut arrivals: mpsc::Receiver<Arrival>, mut orders: mpsc::UnboundedReceiver<Order>) {
        let now = Instant::now();
        let mut state = State {
            route: None, heard: now, is_trusted: false, is_open: false, queue: VecDeque::new(), dtls_due: now, buffer: vec![0; DATAGRAM_BYTES_MAX],
        };
        let opening_ends = now + OPENING_MAX;
        let reason = loop {
            match self.step(&mut state, &mut arrivals, &mut orders, opening_ends).await {
                Ok(()) => (),
                Err(reason) => break reason,
            }
        };
        self.association.abort();
        let _ = self.send_packets(&mut state);
        if self.dtls.close().is_ok() {
            let _ = self.poll_dtls(&mut state, Instant::now());
        }
        if let Some(reason) = reason {
            self.events.change(self.id, Change::Closed { reason });
        }
    }

    /// Waits for something to happen and deals with it.
    async fn step(
        &mut self, state: &mut State, arrivals: &mut mpsc::Receiver<Arrival>, orders: &mut mpsc::UnboundedReceiver<Order>, opening_ends: Instant,
    ) -> Result<(), End> {
        let due = self.due(state);
        tokio::select! {
            biased;
            arrival = arrivals.recv() => self.take(state, arrival.ok_or_else(|| Some("the proxy stops".to_owned()))?)?,
            order = orders.recv() => obey(state, order)?,
            () = tokio::time::sleep_until(due.into()) => (),
        }
        while let Ok(arrival) = arrivals.try_recv() {
            self.take(state, arrival)?;
        }
        while let Ok(order) = orders.try_recv() {
            obey(state, Some(order))?;
        }
        let now = Instant::now();
        if now > state.heard + SILENCE_MAX || !state.is_open && now > opening_ends {
            return Err(Some("the client was not heard any more".to_owned()));
        }
        if state.dtls_due <= now {
            self.dtls.handle_timeout(now).map_err(|error| Some(error.to_string()))?;
            self.poll_dtls(state, now)?;
        }
        self.association.advance(now);
        self.send_queue(state, now);
        self.send_packets(state)?;
        *self.stats.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = self.association.stats();
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
        state.route = Some(arrival.route);
        if arrival.datagram.is_empty() {
            return Ok(());
        }
        self.dtls.handle_packet(&arrival.datagram).map_err(|error| Some(error.to_string()))?;
        self.poll_dtls(state, now)
    }

    /// Takes what DTLS has: packets for the path, what the client sent, and who the client is.
    fn poll_dtls(&mut self, state: &mut State, now: Instant) -> Result<(), End> {
        loop {
            match self.dtls.poll_output(&mut state.buffer) {
                Output::Packet(packet) => state.route.iter().for_each(|route| self.socket.send(route, packet, packet.len())),
                Output::ApplicationData(packet) if state.is_trusted => {
                    for happening in self.association.handle(now, packet) {
                        match happening {
                            Happening::Message(message) => self.events.received(self.id, &message),
                            Happening::Opened => {
                                state.is_open = true;
                                self.events.change(self.id, Change::Opened { datagram_bytes_max: MESSAGE_BYTES_MAX });
                            }
                            Happening::Closed(reason) => return Err(Some(reason.to_owned())),
                        }
                    }
                }
                Output::PeerCert(certificate) => {
                    state.is_trusted = crate::certificate::sha256(certificate) == self.fingerprint;
                    if !state.is_trusted {
                        return Err(Some("the client's certificate is not the one it offered".to_owned()));
                    }
                }
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
            self.room.follow(window_bytes as f64 / rtt.as_secs_f64().max(1e-4));
        }
        if self.room.remove(sent) {
            self.events.change(self.id, Change::Writable);
        }
    }

    /// Wraps SCTP's packets; those of one length leave together.
    fn send_packets(&mut self, state: &mut State) -> Result<(), End> {
        let Some(route) = &state.route else { return Ok(()) };
        let (mut batch, mut length): (Vec<u8>, usize) = (Vec::new(), 0);
        for packet in self.association.packets.drain(..) {
            self.dtls.send_application_data(&packet).map_err(|error| Some(error.to_string()))?;
            loop {
                match self.dtls.poll_output(&mut state.buffer) {
                    Output::Packet(packet) => {
                        if !batch.is_empty() && (packet.len() != length || batch.len() >= self.socket.batch_max * length) {
                            self.socket.send(route, &batch, length);
                            batch.clear();
                        }
                        length = packet.len();
                        batch.extend_from_slice(packet);
                    }
                    Output::Timeout(due) => {
                        state.dtls_due = due;
                        break;
                    }
                    _ => (),
                }
            }
        }
        if !batch.is_empty() {
            self.socket.send(route, &batch, length);
        }
        Ok(())
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
