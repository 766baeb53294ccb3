//! The end of WebRTC that connects. It checks a proxy's addresses as the controlling agent of ICE does (RFC 8445),
//! takes the address that answers first, and hands on the datagrams from there. Each session has its own socket. What
//! the datagrams say is up to peer.rs.

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

use super::peer::{Arrival, ArrivalKind, CloseReason, Peer, PeerControls, PeerHandle, OPENING_MAX};
use super::sctp::{Association, Secrets};
use super::socket::{ReceiveBuffer, Route, Socket};
use super::{dtls_config, hmac, IceCredentials, WAITING_MAX};
use crate::events::{Change, Events};
use crate::runtime::{lock, runtime};

const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Checks go on after the first answer: they ask whether the proxy still takes our datagrams, and they show the proxy
/// that we are still there. RFC 7675 checks every 5 s. The shorter time also tells the proxy our new address before we
/// take the proxy for dead.
const CONSENT_EVERY: Duration = Duration::from_secs(1);
/// Priority of a peer-reflexive candidate (RFC 8445 section 5.1.2): the proxy learns our address from our checks.
const PRIORITY: u32 = (110 << 24) + (65_535 << 8) + 255;

/// A proxy's answer.
pub struct Answer {
    /// SHA-256 of the proxy's certificate.
    pub fingerprint: [u8; 32],
    pub credentials: IceCredentials,
    pub candidates: Vec<SocketAddr>,
}

enum Session {
    Offered(DtlsCertificate),
    Started(PeerHandle),
}

pub struct Client {
    sessions: Arc<Mutex<HashMap<u32, Session>>>,
    config: Arc<Config>,
    events: Arc<Events>,
    last_id: AtomicU32,
}

impl Client {
    pub fn new(events: Arc<Events>) -> Result<Self, String> {
        Ok(Self { sessions: Arc::default(), config: dtls_config()?, events, last_id: AtomicU32::new(0) })
    }

    /// Returns the session's number, and the fingerprint of the certificate that the proxy will see. `connect` or
    /// `close_session` must follow.
    pub fn offer(&self) -> Result<(u32, [u8; 32]), String> {
        let (certificate, fingerprint) = crate::certificate::make_for_dtls()?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.sessions).insert(id, Session::Offered(certificate));
        Ok((id, fingerprint))
    }

    /// `own`: the credentials in the offer. `Opened` or `Closed` follows.
    pub fn connect(&self, id: u32, own: IceCredentials, answer: Answer) -> Result<(), String> {
        let secrets = Secrets::draw()?;
        let (handle, mut controls) = PeerHandle::new();
        let mut sessions = lock(&self.sessions);
        let Some(Session::Offered(certificate)) = sessions.remove(&id) else {
            return Err(format!("session {id} was not offered"));
        };
        sessions.insert(id, Session::Started(handle));
        drop(sessions);
        let mut tie_breaker = [0; 8];
        getrandom::fill(&mut tie_breaker).map_err(|error| error.to_string())?;
        let agent = Agent {
            username: format!("{}:{}", answer.credentials.ufrag, own.ufrag),
            own,
            other: answer.credentials,
            tie_breaker: u64::from_be_bytes(tie_breaker),
            transaction: TransId::new(),
        };
        let (config, events, sessions) =
            (Arc::clone(&self.config), Arc::clone(&self.events), Arc::clone(&self.sessions));
        runtime().spawn(async move {
            let reason = match find(&Arc::new(agent), answer.candidates, &mut controls).await {
                Ok((agent, socket, route)) => {
                    let mut dtls = Dtls::new_auto(config, certificate, Instant::now());
                    dtls.set_active(true);
                    let peer = Peer {
                        id,
                        dtls,
                        association: Association::new(secrets),
                        route: Some(route),
                        fingerprint: answer.fingerprint,
                        socket: Arc::clone(&socket),
                        controls,
                        events: Arc::clone(&events),
                    };
                    let (arrivals, arriving) = mpsc::channel(WAITING_MAX);
                    tokio::select! {
                        reason = peer.run(arriving) => reason,
                        never = listen(&agent, &socket, &route, arrivals) => match never {},
                    }
                }
                Err(reason) => reason,
            };
            lock(&sessions).remove(&id);
            if let Some(reason) = reason {
                events.change(id, Change::Closed { reason });
            }
        });
        Ok(())
    }

    /// Calls `then` with the session's handle. None when there is no such session.
    pub fn with<T>(&self, id: u32, then: impl FnOnce(&PeerHandle) -> T) -> Option<T> {
        match lock(&self.sessions).get(&id)? {
            Session::Started(handle) => Some(then(handle)),
            Session::Offered(_) => None,
        }
    }

    /// No event follows.
    pub fn close_session(&self, id: u32) {
        let mut sessions = lock(&self.sessions);
        match sessions.get(&id) {
            Some(Session::Started(handle)) => handle.close(),
            _ => drop(sessions.remove(&id)),
        }
    }

    pub fn close(&self) {
        let ids: Vec<u32> = lock(&self.sessions).keys().copied().collect();
        ids.into_iter().for_each(|id| self.close_session(id));
    }
}

/// The controlling agent of ICE.
struct Agent {
    own: IceCredentials,
    other: IceCredentials,
    username: String,
    tie_breaker: u64,
    transaction: TransId,
}

impl Agent {
    fn check(&self, socket: &Socket, route: &Route) {
        let check =
            StunMessage::binding_request(&self.username, self.transaction, true, self.tie_breaker, PRIORITY, true);
        socket.send_stun(route, check, &self.other.password);
    }

    /// Answers the other end's checks. Returns true when the datagram answers one of our checks.
    fn handle(&self, socket: &Socket, route: &Route, datagram: &[u8]) -> bool {
        let Ok(message) = StunMessage::parse(datagram) else { return false };
        let is_for_us = message.split_username().is_some_and(|(ufrag, _)| ufrag == self.own.ufrag);
        if message.is_binding_request() && is_for_us && message.verify(self.own.password.as_bytes(), hmac) {
            socket.answer(route, &message, &self.own.password);
        }
        message.is_successful_binding_response()
            && message.trans_id() == self.transaction
            && message.verify(self.other.password.as_bytes(), hmac)
    }
}

type Found = (Arc<Agent>, Arc<Socket>, Route);

/// Checks all candidates until one answers.
async fn find(
    agent: &Arc<Agent>,
    candidates: Vec<SocketAddr>,
    controls: &mut PeerControls,
) -> Result<Found, CloseReason> {
    let mut checking = JoinSet::new();
    for unspecified in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        let fitting: Vec<SocketAddr> =
            candidates.iter().copied().filter(|candidate| candidate.is_ipv4() == unspecified.is_ipv4()).collect();
        if !fitting.is_empty() {
            checking.spawn(check_all(Arc::clone(agent), unspecified, fitting));
        }
    }
    let first = async {
        while let Some(found) = checking.join_next().await {
            if let Ok(Ok(found)) = found {
                return Some(found);
            }
        }
        None
    };
    tokio::select! {
        found = tokio::time::timeout(OPENING_MAX, first) => {
            found.ok().flatten().ok_or_else(|| Some("no address of the proxy answers".to_owned()))
        }
        // JavaScript sends nothing before the channel is open, so this order closes the session.
        _ = controls.orders.recv() => Err(None),
    }
}

/// Checks candidates of one address family from a new socket.
async fn check_all(agent: Arc<Agent>, from: IpAddr, candidates: Vec<SocketAddr>) -> std::io::Result<Found> {
    let socket = Arc::new(Socket::open(SocketAddr::new(from, 0))?);
    let mut buffer = ReceiveBuffer::default();
    let mut due = tokio::time::interval(CHECK_EVERY);
    let mut found = None;
    loop {
        tokio::select! {
            _ = due.tick() => {
                candidates.iter().for_each(|&remote| agent.check(&socket, &Route { remote, local: None }))
            }
            () = socket.receive(&mut buffer, |route, datagram| {
                let remote = candidates.iter().copied().find(|candidate| *candidate == route.remote);
                found = found.or(remote.filter(|_| agent.handle(&socket, &route, datagram)));
            }) => (),
        }
        if let Some(remote) = found {
            return Ok((agent, socket, Route { remote, local: None }));
        }
    }
}

/// Hands on what comes from the proxy, and keeps checking its address.
async fn listen(agent: &Agent, socket: &Socket, proxy: &Route, arrivals: mpsc::Sender<Arrival>) -> Infallible {
    let mut buffer = ReceiveBuffer::default();
    let mut due = tokio::time::interval(CONSENT_EVERY);
    loop {
        tokio::select! {
            _ = due.tick() => agent.check(socket, proxy),
            () = socket.receive(&mut buffer, |route, datagram| {
                if route.remote != proxy.remote {
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
