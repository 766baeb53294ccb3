//! Transports for Node, as a Node addon: WebTransport, which is HTTP/3 datagrams over QUIC (RFC 9220, RFC 9221, RFC
//! 9297), and WebRTC with one data channel (RFC 8831). This file is the door: it translates between JavaScript and the
//! modules behind it and decides nothing. src/addon.ts declares the same interface. Datagrams cross in batches, one
//! call each way. Events call `wake` once, and `take` then returns all of them.

#[cfg(test)]
#[path = "../test/beside_tcp.rs"]
mod beside_tcp;
mod certificate;
mod congestion;
mod events;

mod room;
mod runtime;
mod udp;
mod webrtc;
mod webtransport;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use napi::bindgen_prelude::{Buffer, Function, Uint32Array, Uint8Array};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Error, Result};
use napi_derive::napi;
use quinn_proto::congestion::Controller;

use crate::congestion::{DeliveryController, ACK_TIME};
use crate::events::{Change, Events, Stats};
use crate::webrtc::PeerHandle;
use crate::webtransport::{Congestion, Session, HANDSHAKE_TIME_MAX};

/// An event of a session. `kind` says which other fields are present.
#[napi(object)]
pub struct SessionEvent {
    pub session: u32,
    /// "opened", "received", "writable" or "closed".
    pub kind: String,
    pub datagram_bytes_max: Option<u32>,
    /// The peer's IP address.
    pub address: Option<String>,
    /// The received datagrams, end to end.
    pub bytes: Option<Buffer>,
    pub lengths: Option<Uint32Array>,
    pub reason: Option<String>,
}

#[napi(object)]
pub struct SessionStats {
    pub rtt_ms: f64,
    pub sent_packets: f64,
    pub lost_packets: f64,
    pub window_bytes: f64,
}

#[napi(object)]
pub struct ListenOptions {
    pub host: String,
    pub port: u32,
    /// The server's host name or address. It goes into the certificates.
    pub name: String,
    pub sessions_max: u32,
    /// "delivery", "bbr" or "cubic".
    pub congestion: String,
}

#[napi(js_name = "WebTransportServer")]
pub struct JsWebTransportServer {
    server: webtransport::Server,
    events: Arc<Events>,
}

#[napi]
impl JsWebTransportServer {
    /// Throws when the port is taken.
    #[napi(constructor)]
    pub fn new(options: ListenOptions, wake: Function<(), ()>) -> Result<Self> {
        let events = events_to(wake)?;
        let options = webtransport::Options {
            address: address_of(&options.host, options.port)?,
            name: &options.name,
            sessions_max: options.sessions_max as usize,
            handshake_time: HANDSHAKE_TIME_MAX,
            congestion: congestion_of(&options.congestion)?,
        };
        let server = webtransport::Server::bind(options, Arc::clone(&events)).map_err(Error::from_reason)?;
        Ok(Self { server, events })
    }

    #[napi(getter)]
    pub fn port(&self) -> u32 {
        self.server.port.into()
    }

    #[napi(getter)]
    pub fn certificate_hashes(&self) -> Vec<String> {
        self.server.certificate_hashes()
    }

    #[napi]
    pub fn rotate_certificate(&self) -> Result<()> {
        self.server.rotate_certificate().map_err(Error::from_reason)
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        send(self.server.session(session), &bytes, &lengths)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.server.session(session).map(|session| stats(session.stats()))
    }

    #[napi]
    pub fn close_session(&self, session: u32, reason: String) {
        if let Some(session) = self.server.session(session) {
            session.close(&reason);
        }
    }

    #[napi]
    pub fn drain(&self) {
        self.server.drain();
    }

    #[napi]
    pub fn close(&self) {
        self.server.close();
    }
}

#[napi(js_name = "WebTransportClient")]
pub struct JsWebTransportClient {
    client: webtransport::Client,
    events: Arc<Events>,
}

#[napi]
impl JsWebTransportClient {
    #[napi(constructor)]
    pub fn new(congestion: String, wake: Function<(), ()>) -> Result<Self> {
        let events = events_to(wake)?;
        let client = webtransport::Client::new(congestion_of(&congestion)?, Arc::clone(&events));
        Ok(Self { client, events })
    }

    /// Returns the session's number. An event "opened" or "closed" follows.
    #[napi]
    pub fn connect(&self, url: String, certificate_hashes: Vec<String>) -> Result<u32> {
        self.client.connect(url, &certificate_hashes).map_err(Error::from_reason)
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        send(self.client.session(session), &bytes, &lengths)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.client.session(session).map(|session| stats(session.stats()))
    }

    #[napi]
    pub fn close_session(&self, session: u32) {
        self.client.close_session(session);
    }

    #[napi]
    pub fn close(&self) {
        self.client.close();
    }
}

/// An end's name in ICE, and the key with which the other end signs its checks.
#[napi(object)]
pub struct IceCredentials {
    pub ufrag: String,
    pub password: String,
}

#[napi(object)]
pub struct RtcOffer {
    /// SHA-256 of the client's certificate: 32 bytes.
    pub fingerprint: Uint8Array,
    /// The credentials that our answer gives to the client.
    pub ufrag: String,
    pub password: String,
}

/// A session that is not open yet, and the fingerprint of the certificate that the other end will see.
#[napi(object)]
pub struct RtcSession {
    pub session: u32,
    pub fingerprint: Uint8Array,
}

#[napi(js_name = "RtcServer")]
pub struct JsRtcServer {
    server: webrtc::Server,
    events: Arc<Events>,
}

#[napi]
impl JsRtcServer {
    /// Throws when the port is taken.
    #[napi(constructor)]
    pub fn new(host: String, port: u32, wake: Function<(), ()>) -> Result<Self> {
        let address = address_of(&host, port)?;
        let events = events_to(wake)?;
        let server = webrtc::Server::bind(address, Arc::clone(&events)).map_err(Error::from_reason)?;
        Ok(Self { server, events })
    }

    #[napi(getter)]
    pub fn port(&self) -> u32 {
        self.server.port.into()
    }

    /// An event "opened" or "closed" follows for the session.
    #[napi]
    pub fn accept(&self, offer: RtcOffer) -> Result<RtcSession> {
        let RtcOffer { fingerprint, ufrag, password } = offer;
        let credentials = webrtc::IceCredentials { ufrag, password };
        rtc_session(self.server.accept(webrtc::Offer { fingerprint: fingerprint_of(&fingerprint)?, credentials }))
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        self.server.with(session, |peer| peer.send(&bytes, &lengths)).unwrap_or(0)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.server.with(session, PeerHandle::stats).flatten().map(stats)
    }

    #[napi]
    pub fn close_session(&self, session: u32) {
        self.server.with(session, PeerHandle::close);
    }

    #[napi]
    pub fn close(&self) {
        self.server.close();
    }
}

/// A proxy's answer.
#[napi(object)]
pub struct RtcAnswer {
    /// SHA-256 of the proxy's certificate: 32 bytes.
    pub fingerprint: Uint8Array,
    pub ufrag: String,
    pub password: String,
    pub candidates: Vec<RtcCandidate>,
}

#[napi(object)]
pub struct RtcCandidate {
    /// An IP address.
    pub address: String,
    pub port: u32,
}

#[napi(js_name = "RtcClient")]
pub struct JsRtcClient {
    client: webrtc::Client,
    events: Arc<Events>,
}

#[napi]
impl JsRtcClient {
    #[napi(constructor)]
    pub fn new(wake: Function<(), ()>) -> Result<Self> {
        let events = events_to(wake)?;
        Ok(Self { client: webrtc::Client::new(Arc::clone(&events)).map_err(Error::from_reason)?, events })
    }

    /// `connect` or `close_session` must follow.
    #[napi]
    pub fn offer(&self) -> Result<RtcSession> {
        rtc_session(self.client.offer())
    }

    /// `own`: the credentials in the offer. An event "opened" or "closed" follows for the session.
    #[napi]
    pub fn connect(&self, session: u32, own: IceCredentials, answer: RtcAnswer) -> Result<()> {
        let RtcAnswer { fingerprint, ufrag, password, candidates } = answer;
        let address = |candidate: &RtcCandidate| address_of(&candidate.address, candidate.port);
        let answer = webrtc::Answer {
            fingerprint: fingerprint_of(&fingerprint)?,
            credentials: webrtc::IceCredentials { ufrag, password },
            candidates: candidates.iter().map(address).collect::<Result<_>>()?,
        };
        let own = webrtc::IceCredentials { ufrag: own.ufrag, password: own.password };
        self.client.connect(session, own, answer).map_err(Error::from_reason)
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        self.client.with(session, |peer| peer.send(&bytes, &lengths)).unwrap_or(0)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.client.with(session, PeerHandle::stats).flatten().map(stats)
    }

    #[napi]
    pub fn close_session(&self, session: u32) {
        self.client.close_session(session);
    }

    #[napi]
    pub fn close(&self) {
        self.client.close();
    }
}

/// The congestion controller of one session alone, for simulations. Times are milliseconds from 0 on.
#[napi(js_name = "CongestionControl")]
pub struct JsCongestionControl {
    controller: DeliveryController,
    start: Instant,
}

#[napi]
impl JsCongestionControl {
    #[napi(constructor)]
    pub fn new(packet_bytes: u32) -> Self {
        let start = Instant::now();
        let mtu = packet_bytes.min(u16::MAX.into()) as u16;
        Self { controller: DeliveryController::new(start, mtu, ACK_TIME), start }
    }

    #[napi]
    pub fn sent(&mut self, now_ms: f64, bytes: u32) {
        self.controller.on_sent(self.at(now_ms), bytes.into(), 0);
    }

    /// The packet that was sent at `sent_ms` has arrived. `acknowledged` must follow at the acknowledgement's end.
    #[napi]
    pub fn arrived(&mut self, now_ms: f64, sent_ms: f64, bytes: u32) {
        self.controller.acked(self.at(now_ms), self.at(sent_ms), bytes.into());
    }

    #[napi]
    pub fn acknowledged(&mut self, now_ms: f64, in_flight_bytes: u32) {
        self.controller.on_end_acks(self.at(now_ms), in_flight_bytes.into(), false, None);
    }

    #[napi]
    pub fn lost(&mut self, now_ms: f64, sent_ms: f64, bytes: u32) {
        self.controller.on_congestion_event(self.at(now_ms), self.at(sent_ms), false, bytes.into());
    }

    #[napi(getter)]
    pub fn window(&self) -> f64 {
        self.controller.window() as f64
    }

    fn at(&self, ms: f64) -> Instant {
        self.start + Duration::from_secs_f64(ms.max(0.0) / 1000.0)
    }
}

/// The path on which a WebTransport server takes sessions.
#[napi]
pub fn path() -> String {
    webtransport::PATH.to_owned()
}

fn address_of(host: &str, port: u32) -> Result<SocketAddr> {
    let ip: IpAddr =
        host.parse().map_err(|_| Error::from_reason(format!("the host must be an IP address, got {host}")))?;
    let port =
        u16::try_from(port).map_err(|_| Error::from_reason(format!("the port must be 0 to 65535, got {port}")))?;
    Ok(SocketAddr::new(ip, port))
}

fn fingerprint_of(bytes: &[u8]) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| Error::from_reason(format!("a fingerprint must be 32 bytes, got {}", bytes.len())))
}

fn rtc_session(made: std::result::Result<(u32, [u8; 32]), String>) -> Result<RtcSession> {
    let (session, fingerprint) = made.map_err(Error::from_reason)?;
    Ok(RtcSession { session, fingerprint: fingerprint.to_vec().into() })
}

/// Events that call `wake` on the event loop. `wake` does not keep the process alive.
fn events_to(wake: Function<(), ()>) -> Result<Arc<Events>> {
    let wake = wake.build_threadsafe_function::<()>().weak::<true>().build()?;
    Ok(Arc::new(Events::new(Box::new(move || {
        wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }))))
}

fn congestion_of(name: &str) -> Result<Congestion> {
    match name {
        "delivery" => Ok(Congestion::Delivery),
        "bbr" => Ok(Congestion::Bbr),
        "cubic" => Ok(Congestion::Cubic),
        _ => Err(Error::from_reason(format!("the congestion control must be delivery, bbr or cubic, got {name}"))),
    }
}

/// All events since the last call. "opened" comes first and "closed" last.
fn take(events: &Events) -> Vec<SessionEvent> {
    let pending = events.take();
    let (closed, others): (Vec<_>, Vec<_>) =
        pending.changes.into_iter().partition(|(_, change)| matches!(change, Change::Closed { .. }));
    let received = pending.received.into_iter().map(|(session, batch)| SessionEvent {
        bytes: Some(batch.bytes.into()),
        lengths: Some(batch.lengths.into()),
        ..event(session, "received")
    });
    let changed = |(session, change): (u32, Change)| match change {
        Change::Opened { datagram_bytes_max, address } => SessionEvent {
            datagram_bytes_max: Some(datagram_bytes_max),
            address: address.map(|address| address.to_string()),
            ..event(session, "opened")
        },
        Change::Writable => event(session, "writable"),
        Change::Closed { reason } => SessionEvent { reason: Some(reason), ..event(session, "closed") },
    };
    others.into_iter().map(changed).chain(received).chain(closed.into_iter().map(changed)).collect()
}

fn event(session: u32, kind: &str) -> SessionEvent {
    SessionEvent {
        session,
        kind: kind.to_owned(),
        datagram_bytes_max: None,
        address: None,
        bytes: None,
        lengths: None,
        reason: None,
    }
}

fn send(session: Option<Arc<Session>>, bytes: &[u8], lengths: &[u32]) -> i64 {
    session.map_or(0, |session| session.send(bytes, lengths))
}

fn stats(stats: Stats) -> SessionStats {
    SessionStats {
        rtt_ms: stats.rtt.as_secs_f64() * 1000.0,
        sent_packets: stats.sent_packets as f64,
        lost_packets: stats.lost_packets as f64,
        window_bytes: stats.window_bytes as f64,
    }
}
