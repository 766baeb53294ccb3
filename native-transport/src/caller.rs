//! WebRTC's end that connects: asks a proxy's addresses as the controlling agent of ICE does (RFC 8445), takes the one
//that
//! answers first, and hands on what comes from there. A socket for each connection; what is said over it is peer.rs's.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls, DtlsCertificate};
use is::stun::{StunMessage, TransId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::endpoint::{lock, runtime};
use crate::events::{Change, Events};
use crate::peer::{Arrival, ArrivalKind, End, Handle, Held, Peer, OPENING_MAX};
use crate::rtc::{dtls_config, hmac, Memory, Route, Socket, WAITING_MAX};
use crate::sctp::{Association, Secrets};

const ASK_EVERY: Duration = Duration::from_millis(100);
/// Once it has answered: that its address still takes what we send, and that we are still there (RFC 7675, which has 5
/// s). It is also how the proxy learns of a new address of ours, before we hold it for dead.
const CONSENT_EVERY: Duration = Duration::from_secs(1);
/// Of a candidate that the other end learns of by being asked (RFC 8445 section 5.1.2).
const PRIORITY: u32 = (110 << 24) + (65_535 << 8) + 255;

/// By what an end is called in ICE, and what is signed with by who calls it.
pub struct Name {
    pub ufrag: String,
    pub password: String,
}

/// What a proxy's answer says of it.
pub struct Answer {
    /// SHA-256 of its certificate.
    pub fingerprint: [u8; 32],
    pub name: Name,
    pub candidates: Vec<SocketAddr>,
}

enum Call {
    Offered(DtlsCertificate),
    Made(Handle),
}

pub struct Caller {
    calls: Arc<Mutex<HashMap<u32, Call>>>,
    config: Arc<Config>,
    events: Arc<Events>,
    last_id: AtomicU32,
}

impl Caller {
    pub fn new(events: Arc<Events>) -> Result<Self, String> {
        Ok(Self { calls: Arc::default(), config: dtls_config()?, events, last_id: AtomicU32::new(0) })
    }

    /// The session's number, and the fingerprint of the certificate that the proxy will be shown. `call` follows, or
    /// `close_session`.
    pub fn offer(&self) -> Result<(u32, [u8; 32]), String> {
        let (certificate, fingerprint) = crate::certificate::make_for_dtls()?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.calls).insert(id, Call::Offered(certificate));
        Ok((id, fingerprint))
    }

    /// `own`: as the offer said. `Opened` or `Closed` follows.
    pub fn call(&self, id: u32, own: Name, answer: Answer) -> Result<(), String> {
        let secrets = Secrets::draw()?;
        let (handle, mut held) = Handle::new();
        let mut calls = lock(&self.calls);
        let Some(Call::Offered(certificate)) = calls.remove(&id) else {
            return Err(format!("session {id} was not offered"));
        };
        calls.insert(id, Call::Made(handle));
        drop(calls);
        let mut tie_breaker = [0; 8];
        getrandom::fill(&mut tie_breaker).map_err(|error| error.to_string())?;
        let agent = Agent {
            username: format!("{}:{}", answer.name.ufrag, own.ufrag),
            own,
            other: answer.name,
            tie_breaker: u64::from_be_bytes(tie_breaker),
            asked: TransId::new(),
        };
        let (config, events, calls) = (Arc::clone(&self.config), Arc::clone(&self.events), Arc::clone(&self.calls));
        runtime().spawn(async move {
            let end = match find(&Arc::new(agent), answer.candidates, &mut held).await {
                Ok((agent, socket, route)) => {
                    let mut dtls = Dtls::new_auto(config, certificate, Instant::now());
                    dtls.set_active(true);
                    let association = Association::new(secrets);
                    let (fingerprint, to) = (answer.fingerprint, Arc::clone(&socket));
                    let peer = Peer {
                        id,
                        dtls,
                        association,
                        route: Some(route),
                        fingerprint,
                        socket: to,
                        held,
                        events: Arc::clone(&events),
                    };
                    let (arrivals, arriving) = mpsc::channel(WAITING_MAX);
                    tokio::select! {
                        end = peer.run(arriving) => end,
                        never = listen(&agent, &socket, &route, arrivals) => match never {},
                    }
                }
                Err(end) => end,
            };
            lock(&calls).remove(&id);
            if let Some(reason) = end {
                events.change(id, Change::Closed { reason });
            }
        });
        Ok(())
    }

    /// See `Handle`.
    pub fn with<T>(&self, id: u32, then: impl FnOnce(&Handle) -> T) -> Option<T> {
        match lock(&self.calls).get(&id)? {
            Call::Made(handle) => Some(then(handle)),
            Call::Offered(_) => None,
        }
    }

    /// Nothing more is told of it.
    pub fn close_session(&self, id: u32) {
        let mut calls = lock(&self.calls);
        match calls.get(&id) {
            Some(Call::Made(handle)) => handle.close(),
            _ => drop(calls.remove(&id)),
        }
    }

    pub fn close(&self) {
        let ids: Vec<u32> = lock(&self.calls).keys().copied().collect();
        ids.into_iter().for_each(|id| self.close_session(id));
    }
}

/// Of ICE: the controlling end.
struct Agent {
    own: Name,
    other: Name,
    username: String,
    tie_breaker: u64,
    asked: TransId,
}

impl Agent {
    fn ask(&self, socket: &Socket, route: &Route) {
        let check = StunMessage::binding_request(&self.username, self.asked, true, self.tie_breaker, PRIORITY, true);
        socket.send_stun(route, check, &self.other.password);
    }

    /// Answers the other end's checks. True when it is an answer to one of ours.
    fn handle(&self, socket: &Socket, route: &Route, datagram: &[u8]) -> bool {
        let Ok(message) = StunMessage::parse(datagram) else { return false };
        let called = message.split_username().is_some_and(|(ufrag, _)| ufrag == self.own.ufrag);
        if message.is_binding_request() && called && message.verify(self.own.password.as_bytes(), hmac) {
            socket.answer(route, &message, &self.own.password);
        }
        message.is_successful_binding_response()
            && message.trans_id() == self.asked
            && message.verify(self.other.password.as_bytes(), hmac)
    }
}

type Found = (Arc<Agent>, Arc<Socket>, Route);

/// Asks all candidates until one answers.
async fn find(agent: &Arc<Agent>, candidates: Vec<SocketAddr>, held: &mut Held) -> Result<Found, End> {
    let mut asking = JoinSet::new();
    for unspecified in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        let fitting: Vec<SocketAddr> =
            candidates.iter().copied().filter(|candidate| candidate.is_ipv4() == unspecified.is_ipv4()).collect();
        if !fitting.is_empty() {
            asking.spawn(ask(Arc::clone(agent), unspecified, fitting));
        }
    }
    let first = async {
        while let Some(found) = asking.join_next().await {
            if let Ok(Ok(found)) = found {
                return Some(found);
            }
        }
        None
    };
    tokio::select! {
        found = tokio::time::timeout(OPENING_MAX, first) => found.ok().flatten().ok_or_else(|| Some("no address of the proxy answers".to_owned())),
        // Nothing is sent before the channel is open: it is closed.
        _ = held.orders.recv() => Err(None),
    }
}

async fn ask(agent: Arc<Agent>, from: IpAddr, candidates: Vec<SocketAddr>) -> std::io::Result<Found> {
    let socket = Arc::new(Socket::open(SocketAddr::new(from, 0))?);
    let mut memory = Memory::default();
    let mut due = tokio::time::interval(ASK_EVERY);
    let mut found = None;
    loop {
        tokio::select! {
            _ = due.tick() => candidates.iter().for_each(|&other| agent.ask(&socket, &Route { other, own: None })),
            () = socket.receive(&mut memory, |route, datagram| {
                let other = candidates.iter().copied().find(|candidate| *candidate == route.other);
                found = found.or(other.filter(|_| agent.handle(&socket, &route, datagram)));
            }) => (),
        }
        if let Some(other) = found {
            return Ok((agent, socket, Route { other, own: None }));
        }
    }
}

/// Hands on what comes from the proxy, and keeps the way open.
async fn listen(agent: &Agent, socket: &Socket, proxy: &Route, arrivals: mpsc::Sender<Arrival>) -> Infallible {
    let mut memory = Memory::default();
    let mut due = tokio::time::interval(CONSENT_EVERY);
    loop {
        tokio::select! {
            _ = due.tick() => agent.ask(socket, proxy),
            () = socket.receive(&mut memory, |route, datagram| {
                if route.other != proxy.other {
                    return;
                }
                let kind = match datagram.first() {
                    Some(0..=3) if agent.handle(socket, &route, datagram) => ArrivalKind::Check { is_chosen: false },
                    Some(20..=63) => ArrivalKind::Datagram(datagram.to_vec()),
                    _ => return,
                };
                let _ = arrivals.try_send(Arrival { route: *proxy, kind });
            }) => (),
        }
    }
}
