//! The server's UDP socket: takes connections, limits how many there are, and answers clients that ask for a session.
//! What a session does is session.rs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use wtransport::proto::ids::StatusCode;
use wtransport::quinn::{self, Endpoint, Incoming, VarInt};
use wtransport::tls::rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use super::config::{server_config, transport};
use super::endpoint;
use super::http3::{self, Connection};
use super::sessions::Sessions;
use super::{remember, Congestion, Session, PATH};
use crate::certificate::Certificates;
use crate::congestion::Path;
use crate::events::Events;
use crate::runtime::{lock, runtime};

/// Limit of the message in the request for a session. It is one frame of the protocol that asks for a chunk.
pub(super) const FIRST_BYTES_MAX: usize = 1024;
/// Limit of handshakes at once. From half of it on, clients must first show that they own their address.
const HANDSHAKES_MAX: usize = 256;
/// Limit of handshakes at once with one network, from that half on. Otherwise one client could hold all of them.
const HANDSHAKES_OF_ONE_MAX: usize = HANDSHAKES_MAX / 8;
/// TLS tickets for clients that come again. Each takes a few hundred bytes.
const TICKETS_MAX: usize = 4096;
/// What a connection has learned about its path is used for this time.
const PATH_TIME_MAX: Duration = Duration::from_secs(600);

pub struct Options<'a> {
    /// The port may be 0.
    pub address: SocketAddr,
    /// Goes into the certificate.
    pub name: &'a str,
    pub sessions_max: usize,
    /// The server drops a client that has no session after this time.
    pub handshake_time: Duration,
    pub congestion: Congestion,
}

pub struct Server {
    sessions: Arc<Sessions>,
    pub(super) certificates: Mutex<Certificates>,
    tickets: Arc<dyn StoresServerSessions>,
    endpoint: Endpoint,
    congestion: Congestion,
    pub(super) config: Arc<Mutex<quinn::ServerConfig>>,
    draining: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    pub port: u16,
}

impl Server {
    pub fn bind(options: Options, events: Arc<Events>) -> Result<Self, String> {
        let Options { address, name, sessions_max, handshake_time, congestion } = options;
        let certificates = Certificates::new(name)?;
        let tickets: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(TICKETS_MAX);
        let _entered = runtime().enter();
        let config = server_config(certificates.shown(), congestion, &tickets);
        let endpoint =
            endpoint::open(address, Some(config.clone())).map_err(|error| format!("UDP {address}: {error}"))?;
        let port = endpoint.local_addr().map_err(|error| error.to_string())?.port();
        let (stop, stopped) = watch::channel(false);
        let server = Self {
            sessions: Arc::default(),
            certificates: Mutex::new(certificates),
            tickets,
            endpoint,
            congestion,
            config: Arc::new(Mutex::new(config)),
            draining: Arc::default(),
            stop,
            port,
        };
        let admission = Admission {
            sessions: Arc::clone(&server.sessions),
            config: Arc::clone(&server.config),
            congestion,
            paths: Mutex::default(),
            draining: Arc::clone(&server.draining),
            handshakes: Mutex::default(),
            handshake_time,
            sessions_max,
            events,
        };
        runtime().spawn(accept_all(server.endpoint.clone(), Arc::new(admission), stopped));
        Ok(server)
    }

    pub fn certificate_hashes(&self) -> Vec<String> {
        lock(&self.certificates).hashes()
    }

    /// New connections see the next certificate. Open connections stay.
    pub fn rotate_certificate(&self) -> Result<(), String> {
        let mut certificates = lock(&self.certificates);
        certificates.rotate()?;
        let config = server_config(certificates.shown(), self.congestion, &self.tickets);
        *lock(&self.config) = config.clone();
        self.endpoint.set_server_config(Some(config));
        Ok(())
    }

    /// Takes no new sessions from here on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub fn session(&self, id: u32) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// Ends all sessions and frees the port.
    pub fn close(&self) {
        let _ = self.stop.send(true);
    }
}

/// Decides which clients get a session.
struct Admission {
    sessions: Arc<Sessions>,
    config: Arc<Mutex<quinn::ServerConfig>>,
    congestion: Congestion,
    /// What earlier connections learned, by client address, and when.
    paths: Mutex<HashMap<IpAddr, (Path, Instant)>>,
    draining: Arc<AtomicBool>,
    handshakes: Mutex<Handshakes>,
    handshake_time: Duration,
    sessions_max: usize,
    events: Arc<Events>,
}

/// Handshakes under way, by the network of the client.
#[derive(Default)]
struct Handshakes {
    under_way: usize,
    of_client: HashMap<IpAddr, usize>,
}

impl Handshakes {
    /// All, and those of the client.
    fn counts(&self, client: IpAddr) -> (usize, usize) {
        (self.under_way, self.of_client.get(&client).copied().unwrap_or(0))
    }

    fn begin(&mut self, client: IpAddr) {
        self.under_way += 1;
        *self.of_client.entry(client).or_default() += 1;
    }

    fn end(&mut self, client: IpAddr) {
        self.under_way -= 1;
        if let Some(count) = self.of_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&client);
            }
        }
    }
}

/// The address itself, or the /64 of an IPv6 address, because one client can use all addresses of it.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() >> 64 << 64)),
        four => four,
    }
}

async fn accept_all(endpoint: Endpoint, admission: Arc<Admission>, mut stopped: watch::Receiver<bool>) {
    loop {
        // `changed` also returns, with an error, when the server is dropped.
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            _ = stopped.changed() => break,
        };
        let Some(incoming) = incoming else { break };
        let client = network_of(incoming.remote_address().ip());
        let (under_way, of_client) = lock(&admission.handshakes).counts(client);
        let is_half_full = under_way >= HANDSHAKES_MAX / 2;
        if under_way >= HANDSHAKES_MAX || admission.draining.load(Ordering::Acquire) {
            incoming.refuse();
        } else if is_half_full && !incoming.remote_address_validated() {
            // Fails only for clients that have shown their address, and this branch excludes them.
            let _ = incoming.retry();
        } else if is_half_full && of_client >= HANDSHAKES_OF_ONE_MAX {
            incoming.refuse();
        } else {
            lock(&admission.handshakes).begin(client);
            tokio::spawn(Arc::clone(&admission).admit(incoming, client));
        }
    }
    endpoint.close(VarInt::from_u32(0), b"the proxy stops");
    endpoint.wait_idle().await;
}

/// Closes its connection when it is dropped. Our own keep-alives would keep a connection without a session open.
struct CloseOnDrop(Option<quinn::Connection>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(quic) = &self.0 {
            quic.close(VarInt::from_u32(0), b"there is no session");
        }
    }
}

impl Admission {
    async fn admit(self: Arc<Self>, incoming: Incoming, client: IpAddr) {
        let address = incoming.remote_address().ip();
        let handshake = tokio::time::timeout(self.handshake_time, self.handshake(incoming)).await;
        lock(&self.handshakes).end(client);
        if let Ok(Some((id, connection, first))) = handshake {
            if let Some(path) = self.sessions.run(id, connection, first, &self.events).await {
                remember(&mut lock(&self.paths), address, (path, Instant::now()));
            }
        }
    }

    fn config_for(&self, address: IpAddr) -> quinn::ServerConfig {
        let mut config = lock(&self.config).clone();
        if let Some(&(path, _)) = lock(&self.paths).get(&address).filter(|(_, since)| since.elapsed() < PATH_TIME_MAX) {
            config.transport_config(Arc::new(transport(self.congestion, Some(path))));
        }
        config
    }

    /// The session, and the message that came with its request.
    async fn handshake(&self, incoming: Incoming) -> Option<(u32, Connection, Option<Vec<u8>>)> {
        let config = self.config_for(incoming.remote_address().ip());
        let mut connecting = incoming.accept_with(Arc::new(config)).ok()?;
        // The server may open no stream before the client's hello is complete, and quinn wakes no task that waits for
        // one. Chromium's hello takes two packets.
        connecting.handshake_data().await.ok()?;
        // Our settings go out with the handshake (RFC 9001 section 5.7), so the client can ask a round trip earlier.
        let quic = match connecting.into_0rtt() {
            Ok((quic, _)) => quic,
            Err(connecting) => connecting.await.ok()?,
        };
        let mut guard = CloseOnDrop(Some(quic.clone()));
        let request = http3::take_request(quic).await.ok()?;
        let Some(first) = first_message(request.path()) else {
            request.refuse(StatusCode::NOT_FOUND).await;
            return None;
        };
        if self.sessions.count() >= self.sessions_max {
            request.refuse(StatusCode::TOO_MANY_REQUESTS).await;
            return None;
        }
        let connection = request.accept().await.ok()?;
        guard.0 = None;
        Some((self.sessions.next_id(), connection, first))
    }
}

/// Reads the message from a request's path, `PATH?first=HEX`. The client would otherwise send it as its first datagram,
/// a round trip later. None: the path is another one. Some(None): the path carries no message.
pub(super) fn first_message(path: &str) -> Option<Option<Vec<u8>>> {
    let query = path.strip_prefix(PATH)?;
    if query.is_empty() {
        return Some(None);
    }
    let hex = query.strip_prefix("?first=")?;
    let pairs =
        hex.len() % 2 == 0 && hex.len() <= 2 * FIRST_BYTES_MAX && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    pairs.then(|| (0..hex.len()).step_by(2).map(byte).collect())
}
