//! WebRTC's end that is connected to, on one UDP port: answers ICE's checks as a lite agent does (RFC 8445 section
//2.5), and hands what else comes
//! to the client that it is from, as far as it has said, signed, that it is there. Where a client's own datagrams go is
//its
//! peer's affair.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls};
use is::stun::StunMessage;
use is::{DefaultSha1HmacProvider, Sha1HmacProvider};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState, BATCH_SIZE};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};

use crate::endpoint::{lock, runtime};
use crate::events::{Change, Events};
use crate::peer::{Arrival, ArrivalKind, Handle, Peer};
use crate::sctp::{Association, Secrets};

/// Datagrams of one client that wait for its task; what comes beyond them is dropped, as on any path.
pub const WAITING_MAX: usize = 1024;
/// Of a client's addresses, the oldest is forgotten.
const ROUTES_MAX: usize = 4;
const RECEIVE_BYTES: usize = 64 * 1024;
const SOCKET_BYTES: usize = 1024 * 1024;
const STUN_BYTES_MAX: usize = 256;
/// What every path carries over IPv4 and UDP.
const DTLS_BYTES_MAX: usize = 1200 - 28;
/// What a path carries; longer ones only a path of the machine to itself.
const DATAGRAM_BYTES_MAX: usize = 1500;
/// Datagrams that leave by one call: as many as a client may be sent at once.
const BATCH_MAX: usize = 32;
/// An address at which a client was heard so short a time ago is that client's.
const HELD: Duration = Duration::from_secs(5);
/// DTLS asks again first so soon.
const DTLS_AGAIN: Duration = Duration::from_millis(250);

/// Where the other end is, and the address of ours that it came to.
#[derive(Clone, Copy, PartialEq)]
pub struct Route {
    pub other: SocketAddr,
    pub own: Option<IpAddr>,
}

/// What is received at once.
pub struct Memory(Vec<u8>);

impl Default for Memory {
    fn default() -> Self {
        Self(vec![0; RECEIVE_BYTES * BATCH_SIZE])
    }
}

pub struct Socket {
    pub udp: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let udp = std::net::UdpSocket::bind(address)?;
        udp.set_nonblocking(true)?;
        let udp = UdpSocket::from_std(udp)?;
        let state = UdpSocketState::new((&udp).into())?;
        // More than the machine allows is not an error worth ending for.
        let _ = state.set_recv_buffer_size((&udp).into(), SOCKET_BYTES);
        let _ = state.set_send_buffer_size((&udp).into(), SOCKET_BYTES);
        Ok(Self { udp, state })
    }

    /// Takes what has come, one datagram after the other, and waits until something has.
    pub async fn receive(&self, memory: &mut Memory, mut take: impl FnMut(Route, &[u8])) {
        let _ = self.udp.readable().await;
        let mut parts: Vec<_> = memory.0.chunks_mut(RECEIVE_BYTES).map(io::IoSliceMut::new).collect();
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let received =
            self.udp.try_io(Interest::READABLE, || self.state.recv((&self.udp).into(), &mut parts, &mut metas));
        // An error is one of an earlier datagram of ours, told by the way.
        for (meta, part) in metas.iter().zip(&parts).take(received.unwrap_or(0)) {
            for datagram in
                part[..meta.len].chunks(meta.stride.max(1)).filter(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX)
            {
                take(Route { other: meta.addr, own: meta.dst_ip }, datagram);
            }
        }
    }

    /// Datagrams that may leave by one call.
    pub fn batch_max(&self) -> usize {
        self.state.max_gso_segments().min(BATCH_MAX)
    }

    /// Of ICE, signed.
    pub fn send_stun(&self, route: &Route, message: StunMessage, password: &str) {
        let mut bytes = [0; STUN_BYTES_MAX];
        if let Ok(length) = message.to_bytes(Some(password.as_bytes()), &mut bytes, hmac) {
            self.send(route, &bytes[..length], length);
        }
    }

    /// Answers one of ICE's checks.
    pub fn answer(&self, route: &Route, check: &StunMessage, password: &str) {
        let seen = SocketAddr::new(route.other.ip().to_canonical(), route.other.port());
        self.send_stun(route, StunMessage::binding_reply(check.trans_id(), seen), password);
    }

    /// Sends datagrams of `length` each that lie end to end. What the machine does not take is lost, as on any path.
    pub fn send(&self, route: &Route, datagrams: &[u8], length: usize) {
        let segment_size = (datagrams.len() > length).then_some(length);
        let transmit =
            Transmit { destination: route.other, ecn: None, contents: datagrams, segment_size, src_ip: route.own };
        let _ = self.udp.try_io(Interest::WRITABLE, || self.state.try_send((&self.udp).into(), &transmit));
    }
}

/// A client as it is known at the port.
struct Known {
    password: String,
    arrivals: mpsc::Sender<Arrival>,
    handle: Handle,
    ufrag: String,
    /// Latest last.
    addresses: Vec<SocketAddr>,
}

#[derive(Default)]
struct Clients {
    by_id: HashMap<u32, Known>,
    by_ufrag: HashMap<String, u32>,
    /// Whose it is, and when that client was last heard there.
    by_address: HashMap<SocketAddr, (u32, Instant)>,
}

impl Clients {
    fn forget(&mut self, id: u32) {
        let Some(known) = self.by_id.remove(&id) else { return };
        self.by_ufrag.remove(&known.ufrag);
        for address in known.addresses {
            self.by_address.remove(&address);
        }
    }

    /// The client says, signed, that it is at `address`. Signed is not proven: it does not take what another one uses.
    fn note_address(&mut self, id: u32, address: SocketAddr) {
        let now = Instant::now();
        if let Some(&(before, heard)) = self.by_address.get(&address) {
            if before != id && now < heard + HELD {
                return;
            }
            if let Some(before) = self.by_id.get_mut(&before) {
                before.addresses.retain(|&other| other != address);
            }
        }
        let Some(known) = self.by_id.get_mut(&id) else { return };
        known.addresses.push(address);
        let oldest = (known.addresses.len() > ROUTES_MAX).then(|| known.addresses.remove(0));
        if let Some(oldest) = oldest {
            self.by_address.remove(&oldest);
        }
        self.by_address.insert(address, (id, now));
    }
}

/// A client's offer, as far as it matters here, and what our answer says.
pub struct Offer {
    /// SHA-256 of the client's certificate.
    pub fingerprint: [u8; 32],
    pub ufrag: String,
    pub password: String,
}

pub struct RtcListener {
    /// None when it is closed.
    socket: Mutex<Option<Arc<Socket>>>,
    clients: Arc<Mutex<Clients>>,
    config: Arc<Config>,
    events: Arc<Events>,
    last_id: AtomicU32,
    stop: watch::Sender<bool>,
    pub port: u16,
}

impl RtcListener {
    pub fn bind(address: SocketAddr, events: Arc<Events>) -> Result<Self, String> {
        let _entered = runtime().enter();
        let socket = Arc::new(Socket::open(address).map_err(|error| format!("UDP {address}: {error}"))?);
        let port = socket.udp.local_addr().map_err(|error| error.to_string())?.port();
        let config = dtls_config()?;
        let (stop, stopped) = watch::channel(false);
        let clients = Arc::default();
        runtime().spawn(receive_all(Arc::clone(&socket), Arc::clone(&clients), stopped));
        Ok(Self { socket: Mutex::new(Some(socket)), clients, config, events, last_id: AtomicU32::new(0), stop, port })
    }

    /// The client's number, and the fingerprint of the certificate that it will be shown. `Opened` or `Closed` follows.
    pub fn accept(&self, offer: Offer) -> Result<(u32, [u8; 32]), String> {
        let socket = lock(&self.socket).clone().ok_or("the listener is closed")?;
        let (certificate, fingerprint) = crate::certificate::make_for_dtls()?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (arrivals, arriving) = mpsc::channel(WAITING_MAX);
        let (handle, held) = Handle::new();
        let peer = Peer {
            id,
            dtls: Dtls::new_auto(Arc::clone(&self.config), certificate, Instant::now()),
            association: Association::new(Secrets::draw()?),
            route: None,
            fingerprint: offer.fingerprint,
            socket,
            held,
            events: Arc::clone(&self.events),
        };
        let known =
            Known { password: offer.password, arrivals, handle, ufrag: offer.ufrag.clone(), addresses: Vec::new() };
        let mut clients = lock(&self.clients);
        clients.by_ufrag.insert(offer.ufrag, id);
        clients.by_id.insert(id, known);
        drop(clients);
        let (clients, events) = (Arc::clone(&self.clients), Arc::clone(&self.events));
        let run = runtime().spawn(peer.run(arriving));
        runtime().spawn(async move {
            let end = run.await.unwrap_or_else(|_| Some("the connection failed".to_owned()));
            lock(&clients).forget(id);
            if let Some(reason) = end {
                events.change(id, Change::Closed { reason });
            }
        });
        Ok((id, fingerprint))
    }

    /// See `Handle`.
    pub fn with<T>(&self, id: u32, then: impl FnOnce(&Handle) -> T) -> Option<T> {
        lock(&self.clients).by_id.get(&id).map(|known| then(&known.handle))
    }

    /// Ends all connections and frees the port.
    pub fn close(&self) {
        lock(&self.clients).by_id.values().for_each(|known| known.handle.close());
        let _ = self.stop.send(true);
        lock(&self.socket).take();
    }
}

async fn receive_all(socket: Arc<Socket>, clients: Arc<Mutex<Clients>>, mut stopped: watch::Receiver<bool>) {
    let mut memory = Memory::default();
    loop {
        tokio::select! {
            () = socket.receive(&mut memory, |route, datagram| take(&socket, &clients, route, datagram)) => (),
            _ = stopped.changed() => return,
        }
    }
}

/// With which ICE's messages are signed.
pub fn hmac(key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
    DefaultSha1HmacProvider.sha1_hmac(key, payloads)
}

/// DTLS's answer goes once to an address that a client has signed: to ask for a cookie first would cost a round trip.
pub fn dtls_config() -> Result<Arc<Config>, String> {
    let config = Config::builder().mtu(DTLS_BYTES_MAX).use_server_cookie(false).flight_start_rto(DTLS_AGAIN).build();
    config.map(Arc::new).map_err(|error| error.to_string())
}

/// By its first byte a datagram is ICE's or DTLS's (RFC 7983).
fn take(socket: &Socket, clients: &Mutex<Clients>, route: Route, datagram: &[u8]) {
    match datagram.first() {
        Some(0..=3) => answer_check(socket, clients, route, datagram),
        Some(20..=63) => {
            let Clients { by_id, by_address, .. } = &mut *lock(clients);
            let Some((id, heard)) = by_address.get_mut(&route.other) else { return };
            if let Some(known) = by_id.get(id) {
                *heard = Instant::now();
                let _ = known.arrivals.try_send(Arrival { route, kind: ArrivalKind::Datagram(datagram.to_vec()) });
            }
        }
        _ => (),
    }
}

fn answer_check(socket: &Socket, clients: &Mutex<Clients>, route: Route, datagram: &[u8]) {
    let Ok(check) = StunMessage::parse(datagram) else { return };
    let Some((ufrag, _)) = check.split_username().filter(|_| check.is_binding_request()) else { return };
    let mut clients = lock(clients);
    let Some(&id) = clients.by_ufrag.get(ufrag) else { return };
    let Some(known) = clients.by_id.get(&id).filter(|known| check.verify(known.password.as_bytes(), hmac)) else {
        return;
    };
    socket.answer(&route, &check, &known.password);
    let _ = known.arrivals.try_send(Arrival { route, kind: ArrivalKind::Check { is_chosen: check.use_candidate() } });
    clients.note_address(id, route.other);
}
