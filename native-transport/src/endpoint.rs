//! Listener and connector: one UDP socket that takes sessions, or one that makes one. Decides how many sessions there
//are and
//! answers strangers; what a session does is session.rs.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::{watch, Notify};
use wtransport::config::QuicTransportConfig;
use wtransport::proto::ids::StatusCode;
use wtransport::proto::session::SessionRequest;
use wtransport::quinn::{self, Endpoint, Incoming, VarInt};
use wtransport::tls::client::ServerHashVerification;
use wtransport::tls::rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use wtransport::tls::rustls::RootCertStore;
use wtransport::tls::{client, server, Sha256Digest, Sha256DigestFmt};
use wtransport::{ClientConfig, Identity, ServerConfig};

use crate::certificate::Certificates;
use crate::congestion::{DeliveryConfig, Path, LOST_AFTER_ROUND_TRIPS};
use crate::events::{Change, Events};
use crate::http3::{self, Connection};
use crate::session::{Session, QUIC_QUEUE_BYTES_MAX};

/// Where sessions are taken; anything else is not found.
pub const PATH: &str = "/v1/datagrams";
/// Of a message that comes with the request for a session: a frame of the protocol that asks for a chunk.
const FIRST_BYTES_MAX: usize = 1024;
/// Handshakes under way at once; from half of it on, clients must first show that they own their address.
const HANDSHAKES_MAX: usize = 256;
const HTTPS_PORT: u16 = 443;
/// From the first packet to the session.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// Keeps addresses translated on the way.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// HTTP/3 needs three one-way streams and the session's own; no other stream is ever read.
const UNI_STREAMS_MAX: u32 = 4;
const BIDI_STREAMS_MAX: u32 = 2;
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// For clients that come again, each of a few hundred bytes.
const TICKETS_MAX: usize = 4096;
/// Servers that a client remembers, and addresses of clients that a server does.
const KNOWN_MAX: usize = 4096;
/// How long a path is taken for what it was.
const PATH_TIME_MAX: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, PartialEq)]
pub enum Congestion {
    Delivery,
    Bbr,
    Cubic,
}

/// All endpoints of the process share it. A second thread pays where there is a third processor: Node's own thread has
/// one, and two that share the other wake each other for each packet.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let processors = available_parallelism().map_or(1, NonZero::get);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(if processors > 2 { 2 } else { 1 })
            .thread_name("transport")
            .enable_all()
            .build()
            .expect("threads can be started")
    })
}

/// `path`: as the last connection that went over it has found it.
fn transport(congestion: Congestion, path: Option<Path>) -> QuicTransportConfig {
    let mut config = QuicTransportConfig::default();
    config
        .max_idle_timeout(Some(IDLE_TIME_MAX.try_into().expect("within QUIC's range")))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_bidi_streams(VarInt::from_u32(BIDI_STREAMS_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS_MAX))
        .packet_threshold(u32::MAX)
        .time_threshold(LOST_AFTER_ROUND_TRIPS)
        .datagram_send_buffer_size(QUIC_QUEUE_BYTES_MAX)
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER_BYTES));
    match congestion {
        Congestion::Delivery => config.congestion_controller_factory(Arc::new(DeliveryConfig { path })),
        Congestion::Bbr => config.congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default())),
        Congestion::Cubic => config.congestion_controller_factory(Arc::new(quinn::congestion::CubicConfig::default())),
    };
    if let Some(Path { round_trip, .. }) = path {
        config.initial_rtt(round_trip);
    }
    config
}

/// Where no address is bound by the configuration itself.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// `tickets`: each is good for one connection, whose first packets may be a request (0-RTT). Nobody who has overheard
/// them can have them answered a second time (RFC 8446 section 8.1).
fn server_config(
    identity: Identity,
    congestion: Congestion,
    tickets: &Arc<dyn StoresServerSessions>,
) -> quinn::ServerConfig {
    let mut tls = server::build_default_tls_config(identity);
    tls.session_storage = Arc::clone(tickets);
    tls.max_early_data_size = u32::MAX;
    ServerConfig::builder()
        .with_bind_address(NOWHERE)
        .with_custom_tls_and_transport(tls, transport(congestion, None))
        .build()
        .quic_config()
        .clone()
}

fn client_config(digests: Vec<Sha256Digest>, congestion: Congestion) -> quinn::ClientConfig {
    let verifier = Arc::new(ServerHashVerification::new(digests));
    let mut tls = client::build_default_tls_config(Arc::new(RootCertStore::empty()), Some(verifier));
    tls.enable_early_data = true;
    ClientConfig::builder()
        .with_bind_address(NOWHERE)
        .with_custom_tls_and_transport(tls, transport(congestion, None))
        .build()
        .quic_config()
        .clone()
}

/// Sessions by the number that JavaScript knows them by.
#[derive(Default)]
struct Sessions {
    open: Mutex<HashMap<u32, Arc<Session>>>,
    last_id: AtomicU32,
}

impl Sessions {
    fn next_id(&self) -> u32 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn get(&self, id: u32) -> Option<Arc<Session>> {
        self.lock().get(&id).cloned()
    }

    /// Runs the session to its end; returns what it has found of its path.
    async fn run(&self, id: u32, connection: Connection, first: Option<Vec<u8>>, events: &Arc<Events>) -> Option<Path> {
        let session = Session::start(id, connection, Arc::clone(events));
        self.lock().insert(id, Arc::clone(&session));
        if let Some(message) = first {
            events.received(id, &message);
        }
        let reason = session.receive().await;
        self.lock().remove(&id);
        events.change(id, Change::Closed { reason });
        session.path()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<Session>>> {
        lock(&self.open)
    }
}

pub struct Listener {
    sessions: Arc<Sessions>,
    certificates: Mutex<Certificates>,
    tickets: Arc<dyn StoresServerSessions>,
    endpoint: Endpoint,
    congestion: Congestion,
    config: Arc<Mutex<quinn::ServerConfig>>,
    draining: Arc<AtomicBool>,
    stop: watch::Sender<bool>,
    pub port: u16,
}

impl Listener {
    /// Binds `address`; the port may be 0. `name` goes into the certificate. A client that has no session after
    /// `handshake_time` is left.
    pub fn bind(
        address: SocketAddr,
        name: &str,
        sessions_max: usize,
        handshake_time: Duration,
        congestion: Congestion,
        events: Arc<Events>,
    ) -> Result<Self, String> {
        let certificates = Certificates::new(name)?;
        let tickets: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(TICKETS_MAX);
        let _entered = runtime().enter();
        let config = server_config(certificates.shown(), congestion, &tickets);
        let endpoint = Endpoint::server(config.clone(), address).map_err(|error| format!("UDP {address}: {error}"))?;
        let port = endpoint.local_addr().map_err(|error| error.to_string())?.port();
        let (stop, stopped) = watch::channel(false);
        let listener = Self {
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
        let door = Door {
            sessions: Arc::clone(&listener.sessions),
            config: Arc::clone(&listener.config),
            congestion,
            paths: Mutex::default(),
            draining: Arc::clone(&listener.draining),
            handshakes: AtomicUsize::new(0),
            handshake_time,
            sessions_max,
            events,
        };
        runtime().spawn(accept_all(listener.endpoint.clone(), Arc::new(door), stopped));
        Ok(listener)
    }

    pub fn hashes(&self) -> Vec<String> {
        self.certificates.lock().map(|certificates| certificates.hashes()).unwrap_or_default()
    }

    /// New connections see the next certificate; those that exist stay.
    pub fn rotate(&self) -> Result<(), String> {
        let mut certificates = self.certificates.lock().map_err(|error| error.to_string())?;
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

/// Who comes in.
struct Door {
    sessions: Arc<Sessions>,
    config: Arc<Mutex<quinn::ServerConfig>>,
    congestion: Congestion,
    /// To where clients were connected, and until when.
    paths: Mutex<HashMap<IpAddr, (Path, Instant)>>,
    draining: Arc<AtomicBool>,
    handshakes: AtomicUsize,
    handshake_time: Duration,
    sessions_max: usize,
    events: Arc<Events>,
}

async fn accept_all(endpoint: Endpoint, door: Arc<Door>, mut stopped: watch::Receiver<bool>) {
    loop {
        // Dropped together with the listener, the channel says so by an error.
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            _ = stopped.changed() => break,
        };
        let Some(incoming) = incoming else { break };
        let under_way = door.handshakes.load(Ordering::Relaxed);
        if under_way >= HANDSHAKES_MAX || door.draining.load(Ordering::Acquire) {
            incoming.refuse();
        } else if under_way >= HANDSHAKES_MAX / 2 && !incoming.remote_address_validated() {
            // Fails for those alone who have shown it, and they do not come here.
            let _ = incoming.retry();
        } else {
            door.handshakes.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(Arc::clone(&door).admit(incoming));
        }
    }
    endpoint.close(VarInt::from_u32(0), b"the proxy stops");
    endpoint.wait_idle().await;
}

/// Closes the connection that it holds when it is dropped: one without a session would live on by our own keep-alives.
struct Unserved(Option<quinn::Connection>);

impl Drop for Unserved {
    fn drop(&mut self) {
        if let Some(quic) = &self.0 {
            quic.close(VarInt::from_u32(0), b"there is no session");
        }
    }
}

impl Door {
    async fn admit(self: Arc<Self>, incoming: Incoming) {
        let address = incoming.remote_address().ip();
        let handshake = tokio::time::timeout(self.handshake_time, self.handshake(incoming)).await;
        self.handshakes.fetch_sub(1, Ordering::Relaxed);
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
        // Until the client's hello is all here, in Chromium's two packets, we may open no stream, and quinn wakes
        // nobody who waits for one.
        connecting.handshake_data().await.ok()?;
        // Our settings go out with the handshake (RFC 9001 section 5.7): the client can ask a round trip earlier.
        let quic = match connecting.into_0rtt() {
            Ok((quic, _)) => quic,
            Err(connecting) => connecting.await.ok()?,
        };
        let mut unserved = Unserved(Some(quic.clone()));
        let request = http3::take_request(quic).await.ok()?;
        let Some(first) = first_message(request.path()) else {
            request.refuse(StatusCode::NOT_FOUND).await;
            return None;
        };
        if self.sessions.lock().len() >= self.sessions_max {
            request.refuse(StatusCode::TOO_MANY_REQUESTS).await;
            return None;
        }
        let connection = request.accept().await.ok()?;
        unserved.0 = None;
        Some((self.sessions.next_id(), connection, first))
    }
}

/// Forgets all when it is full.
fn remember<K: Eq + Hash, V>(known: &mut HashMap<K, V>, key: K, value: V) {
    if known.len() >= KNOWN_MAX && !known.contains_key(&key) {
        known.clear();
    }
    known.insert(key, value);
}

/// What a client has from servers that it was connected to: TLS tickets and address tokens, for a request in the first
/// packets of the next connection (0-RTT, RFC 9001 section 4.6).
struct Servers {
    congestion: Congestion,
    /// By host and port: the hashes that its certificate was to have, and where QUIC keeps the rest.
    known: Mutex<HashMap<String, (Vec<Sha256Digest>, quinn::ClientConfig)>>,
}

impl Servers {
    fn config(&self, authority: &str, digests: &[Sha256Digest]) -> quinn::ClientConfig {
        let mut known = lock(&self.known);
        if let Some((_, config)) = known.get(authority).filter(|(had, _)| had == digests) {
            return config.clone();
        }
        let config = client_config(digests.to_vec(), self.congestion);
        remember(&mut known, authority.to_owned(), (digests.to_vec(), config.clone()));
        config
    }

    fn forget(&self, authority: &str) {
        lock(&self.known).remove(authority);
    }
}

/// Makes sessions, each over a socket of its own.
pub struct Connector {
    sessions: Arc<Sessions>,
    servers: Arc<Servers>,
    events: Arc<Events>,
    /// What ends each attempt, and the session that came of it.
    stops: Arc<Mutex<HashMap<u32, Arc<Notify>>>>,
}

impl Connector {
    pub fn new(congestion: Congestion, events: Arc<Events>) -> Self {
        let servers = Arc::new(Servers { congestion, known: Mutex::default() });
        Self { sessions: Arc::default(), servers, events, stops: Arc::default() }
    }

    /// The session's number; `Opened` or `Closed` follows. The server must show a certificate with one of `hashes`.
    pub fn connect(&self, url: String, hashes: &[String]) -> Result<u32, String> {
        let digests = hashes.iter().map(|hash| digest_of(hash)).collect::<Result<Vec<_>, _>>()?;
        let any: SocketAddr = if url.contains("//[") { ([0; 16], 0).into() } else { ([0; 4], 0).into() };
        let _entered = runtime().enter();
        let endpoint = Endpoint::client(any).map_err(|error| format!("no UDP socket: {error}"))?;
        let id = self.sessions.next_id();
        let stop = Arc::new(Notify::new());
        lock(&self.stops).insert(id, Arc::clone(&stop));
        let (sessions, servers) = (Arc::clone(&self.sessions), Arc::clone(&self.servers));
        let (events, stops) = (Arc::clone(&self.events), Arc::clone(&self.stops));
        runtime().spawn(async move {
            tokio::select! {
                _ = stop.notified() => (),
                _ = attempt(id, &endpoint, &url, (&servers, &digests), &sessions, &events) => (),
            }
            sessions.lock().remove(&id);
            lock(&stops).remove(&id);
            endpoint.close(VarInt::from_u32(0), b"closed");
            endpoint.wait_idle().await;
        });
        Ok(id)
    }

    pub fn session(&self, id: u32) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// Ends a session or gives up its making; nothing more is told of it.
    pub fn close_session(&self, id: u32) {
        if let Some(stop) = lock(&self.stops).get(&id) {
            stop.notify_one();
        }
    }

    pub fn close(&self) {
        lock(&self.stops).values().for_each(|stop| stop.notify_one());
    }
}

/// One session from its handshake to its end.
async fn attempt(
    id: u32,
    endpoint: &Endpoint,
    url: &str,
    (servers, digests): (&Servers, &[Sha256Digest]),
    sessions: &Sessions,
    events: &Arc<Events>,
) {
    let reason = match tokio::time::timeout(HANDSHAKE_TIME_MAX, open(endpoint, url, servers, digests)).await {
        Ok(Ok(connection)) => {
            sessions.run(id, connection, None, events).await;
            return;
        }
        Ok(Err(reason)) => reason,
        Err(_) => "no answer in time".to_owned(),
    };
    events.change(id, Change::Closed { reason });
}

async fn open(
    endpoint: &Endpoint,
    url: &str,
    servers: &Servers,
    digests: &[Sha256Digest],
) -> Result<Connection, String> {
    let question = SessionRequest::new(url).map_err(|error| format!("{url}: {error}"))?;
    let authority = question.authority();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| format!("{url}: no port"))?),
        _ => (authority, HTTPS_PORT),
    };
    let name = host.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((name, port)).await.map_err(|error| format!("{name}: {error}"))?.next();
    let address = found.ok_or_else(|| format!("{name}: no address"))?;
    loop {
        let connecting = endpoint
            .connect_with(servers.config(authority, digests), address, name)
            .map_err(|error| error.to_string())?;
        match connecting.into_0rtt() {
            Ok((quic, accepted)) => match http3::request(quic, url, true).await {
                // The server was started anew, say. Without its tickets there is nothing early that it could refuse.
                Err(_) if !accepted.await => servers.forget(authority),
                answered => return answered,
            },
            Err(connecting) => {
                return http3::request(connecting.await.map_err(|error| error.to_string())?, url, false).await
            }
        }
    }
}

/// What a task that panicked has left is taken as it is.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The message that a client's first datagram would be, which saves it a round trip: `PATH?first=HEX`. None: another
/// path.
fn first_message(path: &str) -> Option<Option<Vec<u8>>> {
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

fn digest_of(hash: &str) -> Result<Sha256Digest, String> {
    let pairs: Vec<&str> = (0..hash.len()).step_by(2).filter_map(|at| hash.get(at..at + 2)).collect();
    Sha256Digest::from_str_fmt(pairs.join(":"), Sha256DigestFmt::DottedHex)
        .map_err(|_| format!("not a SHA-256 in hex: {hash}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wtransport::proto::frame::Frame;
    use wtransport::proto::settings::Settings;
    use wtransport::tls::client::{build_default_tls_config, ServerHashVerification};
    use wtransport::tls::rustls::RootCertStore;

    fn encoded(frame: &Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        bytes
    }

    fn listen(events: &Arc<Events>) -> Listener {
        listen_for(HANDSHAKE_TIME_MAX, events)
    }

    fn listen_for(handshake_time: Duration, events: &Arc<Events>) -> Listener {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Listener::bind(address, "127.0.0.1", 8, handshake_time, Congestion::Delivery, Arc::clone(events)).unwrap()
    }

    /// What a client's control stream begins with.
    fn control_bytes() -> Vec<u8> {
        let settings =
            Settings::builder().qpack_max_table_capacity(wtransport::VarInt::from_u32(0)).enable_h3_datagrams().build();
        let mut bytes = vec![0];
        bytes.extend(encoded(&settings.generate_frame()));
        bytes
    }

    async fn connection(listener: &Listener) -> (Endpoint, quinn::Connection) {
        let digests = listener.hashes().iter().map(|hash| digest_of(hash).unwrap()).collect();
        let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.port));
        let quic = endpoint
            .connect_with(client_config(digests, Congestion::Delivery), address, "127.0.0.1")
            .unwrap()
            .await
            .unwrap();
        (endpoint, quic)
    }

    /// Passes packets to `server` and back; until it has answered, the client's first alone.
    async fn relay_one_before_an_answer(server: SocketAddr) -> SocketAddr {
        let socket = tokio::net::UdpSocket::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut client, mut answered, mut held, mut packet) = (None, false, Vec::new(), [0; 2048]);
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                if from == server {
                    answered = true;
                    socket.send_to(&packet[..length], client.unwrap()).await.unwrap();
                } else if client.replace(from).is_none() || answered {
                    socket.send_to(&packet[..length], server).await.unwrap();
                } else {
                    held.push(packet[..length].to_vec());
                }
                if answered {
                    for late in held.drain(..) {
                        socket.send_to(&late, server).await.unwrap();
                    }
                }
            }
        });
        address
    }

    /// As Chromium's, whose hello takes two packets.
    fn client_config_with_long_hello(listener: &Listener) -> quinn::ClientConfig {
        let digests = listener.hashes().into_iter().map(|hash| digest_of(&hash).unwrap());
        let mut tls = build_default_tls_config(
            Arc::new(RootCertStore::empty()),
            Some(Arc::new(ServerHashVerification::new(digests))),
        );
        tls.alpn_protocols.extend((0..8).map(|_| vec![b'x'; 200]));
        ClientConfig::builder().with_bind_default().with_custom_tls(tls).build().quic_config().clone()
    }

    #[test]
    fn a_session_opens_though_the_second_half_of_the_hello_is_late() {
        let listener = listen(&Arc::new(Events::new(Box::new(|| ()))));
        runtime().block_on(async {
            let relay = relay_one_before_an_answer(([127, 0, 0, 1], listener.port).into()).await;
            let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
            let known = HashMap::from([(relay.to_string(), (Vec::new(), client_config_with_long_hello(&listener)))]);
            let servers = Servers { congestion: Congestion::Delivery, known: Mutex::new(known) };
            let session = tokio::time::timeout(
                HANDSHAKE_TIME_MAX,
                open(&endpoint, &format!("https://{relay}{PATH}"), &servers, &[]),
            )
            .await;
            assert_eq!(session.expect("an answer in time").err(), None);
        });
        listener.close();
    }

    async fn is_closed(quic: &quinn::Connection) -> bool {
        tokio::time::timeout(HANDSHAKE_TIME_MAX / 2, quic.closed()).await.is_ok()
    }

    #[test]
    fn a_connection_whose_client_asks_for_no_session_in_time_is_closed() {
        let listener = listen_for(Duration::from_secs(1), &Arc::new(Events::new(Box::new(|| ()))));
        runtime().block_on(async {
            let (_endpoint, silent) = connection(&listener).await;
            let (_other_endpoint, settled) = connection(&listener).await;
            let mut control = settled.open_uni().await.unwrap();
            control.write_all(&control_bytes()).await.unwrap();
            assert!(is_closed(&silent).await && is_closed(&settled).await);
        });
        listener.close();
    }

    #[test]
    fn a_connection_whose_request_was_refused_is_closed_and_its_client_knows_why() {
        let listener = listen(&Arc::new(Events::new(Box::new(|| ()))));
        runtime().block_on(async {
            let (_endpoint, quic) = connection(&listener).await;
            let refused =
                http3::request(quic.clone(), &format!("https://127.0.0.1:{}/other", listener.port), false).await;
            assert_eq!(refused.err().as_deref(), Some("the server refused the session: 404"));
            assert!(is_closed(&quic).await);
        });
        listener.close();
    }

    #[test]
    fn a_message_comes_with_the_path_or_not_at_all() {
        assert_eq!(first_message(PATH), Some(None));
        assert_eq!(first_message(&format!("{PATH}?first=00ff7A")), Some(Some(vec![0, 255, 0x7a])));
        assert_eq!(
            first_message(&format!("{PATH}?first={}", "00".repeat(FIRST_BYTES_MAX))),
            Some(Some(vec![0; FIRST_BYTES_MAX]))
        );
        let long = format!("?first={}", "00".repeat(FIRST_BYTES_MAX + 1));
        for other in ["?first=0", "?first=+1", "?first=zz", "?first=\u{e9}", "?second=00", "x", &long] {
            assert_eq!(first_message(&format!("{PATH}{other}")), None, "{other}");
        }
        assert_eq!(first_message("/"), None);
    }

    /// A control stream whose bytes come one by one, other streams in between, as a slow or lossy path has them.
    #[test]
    fn a_session_opens_however_its_settings_come() {
        let events = Arc::new(Events::new(Box::new(|| ())));
        let listener = listen(&events);
        runtime().block_on(async {
            let (_endpoint, quic) = connection(&listener).await;
            let (mut session, mut answer) = quic.open_bi().await.unwrap();
            let question = SessionRequest::new(format!("https://127.0.0.1:{}{PATH}", listener.port)).unwrap();
            session.write_all(&encoded(&question.headers().generate_frame())).await.unwrap();
            let mut control = quic.open_uni().await.unwrap();
            let mut others = Vec::new();
            for byte in control_bytes() {
                control.write_all(&[byte]).await.unwrap();
                if others.len() < 2 {
                    let mut other = quic.open_uni().await.unwrap();
                    other.write_all(&[[2, 3][others.len()]]).await.unwrap();
                    others.push(other);
                }
                quic.send_datagram(vec![0, 1, 2].into()).unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert!(answer.read_chunk(100, true).await.unwrap().is_some());
            let opened = async {
                while !matches!(events.take().changes.first(), Some((_, Change::Opened { .. }))) {
                    tokio::task::yield_now().await
                }
            };
            tokio::time::timeout(Duration::from_secs(5), opened).await.expect("the session opens");
        });
        listener.close();
    }

    /// A request in the first packets is taken once for each session before, and by the server that it was.
    #[test]
    fn a_client_that_comes_again_asks_at_once() {
        let events = Arc::new(Events::new(Box::new(|| ())));
        let listener = listen(&events);
        let (port, hashes) = (listener.port, listener.hashes());
        let digests: Vec<Sha256Digest> = hashes.iter().map(|hash| digest_of(hash).unwrap()).collect();
        let (authority, url) = (format!("127.0.0.1:{port}"), format!("https://127.0.0.1:{port}{PATH}"));
        let servers = Servers { congestion: Congestion::Delivery, known: Mutex::default() };
        runtime().block_on(async {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
            let is_early = async || match endpoint
                .connect_with(servers.config(&authority, &digests), address, "127.0.0.1")
                .unwrap()
                .into_0rtt()
            {
                Ok((_quic, accepted)) => accepted.await,
                Err(connecting) => connecting.await.is_err(),
            };
            assert!(!is_early().await);
            let first = open(&endpoint, &url, &servers, &digests).await.unwrap();
            // Its tickets come with the end of the handshake.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(is_early().await);
            let early = open(&endpoint, &url, &servers, &digests).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            first.close("");
            early.close("");
            listener.rotate().unwrap();
            assert!(is_early().await, "a new certificate changes nothing");
            tokio::time::sleep(Duration::from_millis(100)).await;
            *lock(&listener.config) = server_config(
                lock(&listener.certificates).shown(),
                Congestion::Delivery,
                &(ServerSessionMemoryCache::new(1) as _),
            );
            assert!(!is_early().await, "the server has forgotten the client");
            open(&endpoint, &url, &servers, &digests).await.unwrap();
        });
        listener.close();
    }
}
