//! Transports for Node, as a Node addon: WebTransport, which is HTTP/3 datagrams over QUIC (RFC 9220, RFC 9221, RFC
//9297), and
//! WebRTC with one data channel (RFC 8831). This file is the door: it translates between JavaScript and the parts
//! behind it and decides nothing. Datagrams cross in batches, one call each way; whatever happens calls `wake` once,
//and
//! `take` gives all of it.

mod caller;
mod certificate;
mod congestion;
mod cubic;
mod endpoint;
mod events;
mod http3;
#[cfg(test)]
mod neighbours;
mod peer;
mod rivals;
mod room;
mod round_trips;
mod rtc;
mod sctp;
mod session;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use napi::bindgen_prelude::{Buffer, Function, Uint32Array, Uint8Array};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Error, Result};
use napi_derive::napi;
use quinn_proto::congestion::Controller;

use crate::caller::{Answer, Caller, Name};
use crate::congestion::{Delivery, ACK_TIME};
use crate::endpoint::{Congestion, Connector, Listener, HANDSHAKE_TIME_MAX};
use crate::events::{Change, Events, Stats};
use crate::peer::Handle;
use crate::rtc::{Offer, RtcListener};
use crate::session::Session;

/// One thing that happened to a session; `kind` says which of the others are there.
#[napi(object)]
pub struct SessionEvent {
    pub session: u32,
    /// "opened", "received", "writable" or "closed".
    pub kind: String,
    pub datagram_bytes_max: Option<u32>,
    /// Datagrams end to end, and their lengths.
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
    /// What clients call this server; goes into its certificates.
    pub name: String,
    pub sessions_max: u32,
    /// "delivery", "bbr" or "cubic".
    pub congestion: String,
}

#[napi(js_name = "Listener")]
pub struct JsListener {
    listener: Listener,
    events: Arc<Events>,
}

#[napi]
impl JsListener {
    /// Throws when the port is taken.
    #[napi(constructor)]
    pub fn new(options: ListenOptions, wake: Function<(), ()>) -> Result<Self> {
        let address = address_of(&options.host, options.port)?;
        let events = events_to(wake)?;
        let congestion = congestion_of(&options.congestion)?;
        let sessions_max = options.sessions_max as usize;
        let listener =
            Listener::bind(address, &options.name, sessions_max, HANDSHAKE_TIME_MAX, congestion, Arc::clone(&events))
                .map_err(Error::from_reason)?;
        Ok(Self { listener, events })
    }

    #[napi(getter)]
    pub fn port(&self) -> u32 {
        self.listener.port.into()
    }

    #[napi(getter)]
    pub fn certificate_hashes(&self) -> Vec<String> {
        self.listener.hashes()
    }

    #[napi]
    pub fn rotate_certificate(&self) -> Result<()> {
        self.listener.rotate().map_err(Error::from_reason)
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        send(self.listener.session(session), &bytes, &lengths)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.listener.session(session).map(|session| stats(session.stats()))
    }

    #[napi]
    pub fn close_session(&self, session: u32, reason: String) {
        if let Some(session) = self.listener.session(session) {
            session.close(&reason);
        }
    }

    #[napi]
    pub fn drain(&self) {
        self.listener.drain();
    }

    #[napi]
    pub fn close(&self) {
        self.listener.close();
    }
}

#[napi(js_name = "Connector")]
pub struct JsConnector {
    connector: Connector,
    events: Arc<Events>,
}

#[napi]
impl JsConnector {
    #[napi(constructor)]
    pub fn new(congestion: String, wake: Function<(), ()>) -> Result<Self> {
        let events = events_to(wake)?;
        Ok(Self { connector: Connector::new(congestion_of(&congestion)?, Arc::clone(&events)), events })
    }

    /// The session's number; its event "opened" or "closed" follows.
    #[napi]
    pub fn connect(&self, url: String, certificate_hashes: Vec<String>) -> Result<u32> {
        self.connector.connect(url, &certificate_hashes).map_err(Error::from_reason)
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        send(self.connector.session(session), &bytes, &lengths)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.connector.session(session).map(|session| stats(session.stats()))
    }

    #[napi]
    pub fn close_session(&self, session: u32) {
        self.connector.close_session(session);
    }

    #[napi]
    pub fn close(&self) {
        self.connector.close();
    }
}

#[napi(object)]
pub struct RtcOffer {
    /// SHA-256 of the client's certificate: 32 bytes.
    pub fingerprint: Uint8Array,
    /// What the client will name us by in ICE, and what it will sign with.
    pub ufrag: String,
    pub password: String,
}

/// A session that is to be, and the certificate that the other end will be shown.
#[napi(object)]
pub struct RtcSession {
    pub session: u32,
    pub fingerprint: Uint8Array,
}

#[napi(js_name = "RtcListener")]
pub struct JsRtcListener {
    listener: RtcListener,
    events: Arc<Events>,
}

#[napi]
impl JsRtcListener {
    /// Throws when the port is taken.
    #[napi(constructor)]
    pub fn new(host: String, port: u32, wake: Function<(), ()>) -> Result<Self> {
        let address = address_of(&host, port)?;
        let events = events_to(wake)?;
        let listener = RtcListener::bind(address, Arc::clone(&events)).map_err(Error::from_reason)?;
        Ok(Self { listener, events })
    }

    #[napi(getter)]
    pub fn port(&self) -> u32 {
        self.listener.port.into()
    }

    /// The session's event "opened" or "closed" follows.
    #[napi]
    pub fn accept(&self, offer: RtcOffer) -> Result<RtcSession> {
        let fingerprint = bytes_of(&offer.fingerprint)?;
        let offer = Offer { fingerprint, ufrag: offer.ufrag, password: offer.password };
        let (session, fingerprint) = self.listener.accept(offer).map_err(Error::from_reason)?;
        Ok(RtcSession { session, fingerprint: fingerprint.to_vec().into() })
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        self.listener.with(session, |handle| handle.send(&bytes, &lengths)).unwrap_or(0)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.listener.with(session, Handle::stats).flatten().map(stats)
    }

    #[napi]
    pub fn close_session(&self, session: u32) {
        self.listener.with(session, Handle::close);
    }

    #[napi]
    pub fn close(&self) {
        self.listener.close();
    }
}

/// How an end is called in ICE, and what is signed with by who calls it.
#[napi(object)]
pub struct RtcName {
    pub ufrag: String,
    pub password: String,
}

/// What a proxy's answer says of it.
#[napi(object)]
pub struct RtcProxy {
    /// SHA-256 of its certificate: 32 bytes.
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

#[napi(js_name = "RtcCaller")]
pub struct JsRtcCaller {
    caller: Caller,
    events: Arc<Events>,
}

#[napi]
impl JsRtcCaller {
    #[napi(constructor)]
    pub fn new(wake: Function<(), ()>) -> Result<Self> {
        let events = events_to(wake)?;
        Ok(Self { caller: Caller::new(Arc::clone(&events)).map_err(Error::from_reason)?, events })
    }

    /// `call` or `close_session` follows.
    #[napi]
    pub fn offer(&self) -> Result<RtcSession> {
        let (session, fingerprint) = self.caller.offer().map_err(Error::from_reason)?;
        Ok(RtcSession { session, fingerprint: fingerprint.to_vec().into() })
    }

    /// The session's event "opened" or "closed" follows.
    #[napi]
    pub fn call(&self, session: u32, own: RtcName, proxy: RtcProxy) -> Result<()> {
        let fingerprint = bytes_of(&proxy.fingerprint)?;
        let candidates = proxy
            .candidates
            .iter()
            .map(|candidate| address_of(&candidate.address, candidate.port))
            .collect::<Result<_>>()?;
        let name = |ufrag, password| Name { ufrag, password };
        let answer = Answer { fingerprint, name: name(proxy.ufrag, proxy.password), candidates };
        self.caller.call(session, name(own.ufrag, own.password), answer).map_err(Error::from_reason)
    }

    #[napi]
    pub fn take(&self) -> Vec<SessionEvent> {
        take(&self.events)
    }

    #[napi]
    pub fn send(&self, session: u32, bytes: Uint8Array, lengths: Uint32Array) -> i64 {
        self.caller.with(session, |handle| handle.send(&bytes, &lengths)).unwrap_or(0)
    }

    #[napi]
    pub fn stats(&self, session: u32) -> Option<SessionStats> {
        self.caller.with(session, Handle::stats).flatten().map(stats)
    }

    #[napi]
    pub fn close_session(&self, session: u32) {
        self.caller.close_session(session);
    }

    #[napi]
    pub fn close(&self) {
        self.caller.close();
    }
}

/// The congestion control of one session by itself, for simulations. Times in milliseconds from 0 on, sizes in bytes.
#[napi(js_name = "CongestionControl")]
pub struct JsCongestionControl {
    control: Delivery,
    start: Instant,
}

#[napi]
impl JsCongestionControl {
    #[napi(constructor)]
    pub fn new(packet_bytes: u32) -> Self {
        let start = Instant::now();
        Self { control: Delivery::new(start, packet_bytes.min(u16::MAX.into()) as u16, ACK_TIME), start }
    }

    #[napi]
    pub fn sent(&mut self, now_ms: f64, bytes: u32) {
        self.control.on_sent(self.at(now_ms), bytes.into(), 0);
    }

    /// A packet that was sent at `sent_ms` has arrived; `acknowledged` ends what one acknowledgement tells.
    #[napi]
    pub fn arrived(&mut self, now_ms: f64, sent_ms: f64, bytes: u32) {
        self.control.acked(self.at(now_ms), self.at(sent_ms), bytes.into());
    }

    #[napi]
    pub fn acknowledged(&mut self, now_ms: f64, in_flight: u32) {
        self.control.on_end_acks(self.at(now_ms), in_flight.into(), false, None);
    }

    #[napi]
    pub fn lost(&mut self, now_ms: f64, sent_ms: f64, bytes: u32) {
        self.control.on_congestion_event(self.at(now_ms), self.at(sent_ms), false, bytes.into());
    }

    #[napi(getter)]
    pub fn window(&self) -> f64 {
        self.control.window() as f64
    }

    fn at(&self, ms: f64) -> Instant {
        self.start + Duration::from_secs_f64(ms.max(0.0) / 1000.0)
    }
}

/// The path on which a listener takes sessions.
#[napi]
pub fn path() -> String {
    endpoint::PATH.to_owned()
}

fn address_of(host: &str, port: u32) -> Result<SocketAddr> {
    let host: IpAddr = host.parse().map_err(|_| Error::from_reason("host must be an IP address"))?;
    let port = u16::try_from(port).map_err(|_| Error::from_reason("port must be 0 to 65535"))?;
    Ok(SocketAddr::new(host, port))
}

fn bytes_of<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::from_reason(format!("must be {N} bytes, got {}", bytes.len())))
}

/// `wake` runs on the event loop and does not keep the process alive.
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
        _ => Err(Error::from_reason(format!("congestion must be delivery, bbr or cubic, got {name}"))),
    }
}

/// Changes that open sessions come first, those that close them last.
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
        Change::Opened { datagram_bytes_max } => {
            SessionEvent { datagram_bytes_max: Some(datagram_bytes_max), ..event(session, "opened") }
        }
        Change::Writable => event(session, "writable"),
        Change::Closed { reason } => SessionEvent { reason: Some(reason), ..event(session, "closed") },
    };
    others.into_iter().map(changed).chain(received).chain(closed.into_iter().map(changed)).collect()
}

fn event(session: u32, kind: &str) -> SessionEvent {
    SessionEvent { session, kind: kind.to_owned(), datagram_bytes_max: None, bytes: None, lengths: None, reason: None }
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
