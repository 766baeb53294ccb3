//! The end of WebRTC that is connected to, on one UDP port. It answers the checks of ICE as a lite agent does (RFC 8445
//! section 2.5). It hands every other datagram to the client that has signed a check from that address. It decides no
//! route: where a client's datagrams go is up to peer.rs.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls};
use is::stun::StunMessage;
use tokio::sync::{mpsc, watch};

use super::peer::{Arrival, ArrivalKind, Peer, PeerHandle};
use super::sctp::{Association, Secrets};
use super::socket::{ReceiveBuffer, Route, Socket};
use super::{dtls_config, hmac, IceCredentials, WAITING_MAX};
use crate::events::{Change, Events};
use crate::runtime::{lock, runtime};

/// Addresses per client. Beyond that, the server forgets the oldest.
const ADDRESSES_MAX: usize = 4;
/// For this time after a client was heard at an address, no other client can take the address.
const HELD: Duration = Duration::from_secs(5);

/// A client as the port knows it.
struct KnownClient {
    /// Names us to the client, and signs its checks.
    credentials: IceCredentials,
    arrivals: mpsc::Sender<Arrival>,
    handle: PeerHandle,
    /// The latest is last.
    addresses: Vec<SocketAddr>,
}

#[derive(Default)]
struct Clients {
    by_id: HashMap<u32, KnownClient>,
    by_ufrag: HashMap<String, u32>,
    /// The client at each address, and when it was last heard there.
    by_address: HashMap<SocketAddr, (u32, Instant)>,
}

impl Clients {
    fn forget(&mut self, id: u32) {
        let Some(client) = self.by_id.remove(&id) else { return };
        self.by_ufrag.remove(&client.credentials.ufrag);
        for address in client.addresses {
            self.by_address.remove(&address);
        }
    }

    /// The client says in a signed check that it is at `address`. The signature does not prove the address, so the
    /// client cannot take an address that another client uses.
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
        let Some(client) = self.by_id.get_mut(&id) else { return };
        client.addresses.push(address);
        let oldest = (client.addresses.len() > ADDRESSES_MAX).then(|| client.addresses.remove(0));
        if let Some(oldest) = oldest {
            self.by_address.remove(&oldest);
        }
        self.by_address.insert(address, (id, now));
    }
}

/// A client's offer, and the credentials that our answer gives.
pub struct Offer {
    /// SHA-256 of the client's certificate.
    pub fingerprint: [u8; 32],
    pub credentials: IceCredentials,
}

pub struct Server {
    /// None when the server is closed.
    socket: Mutex<Option<Arc<Socket>>>,
    clients: Arc<Mutex<Clients>>,
    config: Arc<Config>,
    events: Arc<Events>,
    last_id: AtomicU32,
    stop: watch::Sender<bool>,
    pub port: u16,
}

impl Server {
    pub fn bind(address: SocketAddr, events: Arc<Events>) -> Result<Self, String> {
        let _entered = runtime().enter();
        let socket = Arc::new(Socket::open(address).map_err(|error| format!("UDP {address}: {error}"))?);
        let port = socket.port().map_err(|error| error.to_string())?;
        let config = dtls_config()?;
        let (stop, stopped) = watch::channel(false);
        let clients = Arc::default();
        runtime().spawn(receive_all(Arc::clone(&socket), Arc::clone(&clients), stopped));
        Ok(Self { socket: Mutex::new(Some(socket)), clients, config, events, last_id: AtomicU32::new(0), stop, port })
    }

    /// Returns the session's number, and the fingerprint of the certificate that the client will see. `Opened` or
    /// `Closed` follows.
    pub fn accept(&self, offer: Offer) -> Result<(u32, [u8; 32]), String> {
        let socket = lock(&self.socket).clone().ok_or("the server is closed")?;
        let (certificate, fingerprint) = crate::certificate::make_for_dtls()?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (arrivals, arriving) = mpsc::channel(WAITING_MAX);
        let (handle, controls) = PeerHandle::new();
        let peer = Peer {
            id,
            dtls: Dtls::new_auto(Arc::clone(&self.config), certificate, Instant::now()),
            association: Association::new(Secrets::draw()?),
            route: None,
            fingerprint: offer.fingerprint,
            socket,
            controls,
            events: Arc::clone(&self.events),
        };
        let mut clients = lock(&self.clients);
        clients.by_ufrag.insert(offer.credentials.ufrag.clone(), id);
        let client = KnownClient { credentials: offer.credentials, arrivals, handle, addresses: Vec::new() };
        clients.by_id.insert(id, client);
        drop(clients);
        let (clients, events) = (Arc::clone(&self.clients), Arc::clone(&self.events));
        let run = runtime().spawn(peer.run(arriving));
        runtime().spawn(async move {
            let reason = run.await.unwrap_or_else(|_| Some("the connection failed".to_owned()));
            lock(&clients).forget(id);
            if let Some(reason) = reason {
                events.change(id, Change::Closed { reason });
            }
        });
        Ok((id, fingerprint))
    }

    /// Calls `then` with the session's handle. None when there is no such session.
    pub fn with<T>(&self, id: u32, then: impl FnOnce(&PeerHandle) -> T) -> Option<T> {
        lock(&self.clients).by_id.get(&id).map(|client| then(&client.handle))
    }

    /// Ends all sessions and frees the port.
    pub fn close(&self) {
        lock(&self.clients).by_id.values().for_each(|client| client.handle.close());
        let _ = self.stop.send(true);
        lock(&self.socket).take();
    }
}

async fn receive_all(socket: Arc<Socket>, clients: Arc<Mutex<Clients>>, mut stopped: watch::Receiver<bool>) {
    let mut buffer = ReceiveBuffer::default();
    loop {
        tokio::select! {
            () = socket.receive(&mut buffer, |route, datagram| take(&socket, &clients, route, datagram)) => (),
            _ = stopped.changed() => return,
        }
    }
}

/// A datagram's first byte says whether it belongs to ICE or to DTLS (RFC 7983).
fn take(socket: &Socket, clients: &Mutex<Clients>, route: Route, datagram: &[u8]) {
    match datagram.first() {
        Some(0..=3) => answer_check(socket, clients, route, datagram),
        Some(20..=63) => {
            let Clients { by_id, by_address, .. } = &mut *lock(clients);
            let Some((id, heard)) = by_address.get_mut(&route.remote) else { return };
            if let Some(client) = by_id.get(id) {
                *heard = Instant::now();
                let _ = client.arrivals.try_send(Arrival { route, kind: ArrivalKind::Datagram(datagram.to_vec()) });
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
    let Some(client) = clients.by_id.get(&id) else { return };
    let password = &client.credentials.password;
    if !check.verify(password.as_bytes(), hmac) {
        return;
    }
    socket.answer(&route, &check, password);
    let _ = client.arrivals.try_send(Arrival { route, kind: ArrivalKind::Check { is_chosen: check.use_candidate() } });
    clients.note_address(id, route.remote);
}
