//! Makes sessions to servers, each over its own UDP socket. What a session does is session.rs.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use wtransport::proto::session::SessionRequest;
use wtransport::quinn::{self, Endpoint, VarInt};
use wtransport::tls::Sha256Digest;

use super::config::{client_config, digest_of};
use super::endpoint;
use super::http3::{self, Connection};
use super::sessions::Sessions;
use super::{remember, Congestion, Session, HANDSHAKE_TIME_MAX};
use crate::events::{Change, Events};
use crate::runtime::{lock, runtime};

const HTTPS_PORT: u16 = 443;

/// What a client keeps from servers that it was connected to: TLS tickets and address tokens. With them, the first
/// packets of the next connection carry its request (0-RTT, RFC 9001 section 4.6).
pub(super) struct KnownServers {
    pub congestion: Congestion,
    /// By host and port: the hashes that the server's certificate had to have, and the configuration in which QUIC
    /// keeps the rest.
    pub known: Mutex<HashMap<String, (Vec<Sha256Digest>, quinn::ClientConfig)>>,
}

impl KnownServers {
    pub fn config(&self, authority: &str, digests: &[Sha256Digest]) -> quinn::ClientConfig {
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

pub struct Client {
    sessions: Arc<Sessions>,
    servers: Arc<KnownServers>,
    events: Arc<Events>,
    /// Ends each attempt, and the session that came from it.
    stops: Arc<Mutex<HashMap<u32, Arc<Notify>>>>,
}

impl Client {
    pub fn new(congestion: Congestion, events: Arc<Events>) -> Self {
        let servers = Arc::new(KnownServers { congestion, known: Mutex::default() });
        Self { sessions: Arc::default(), servers, events, stops: Arc::default() }
    }

    /// Returns the session's number. `Opened` or `Closed` follows. The server must show a certificate with one of
    /// `hashes`.
    pub fn connect(&self, url: String, hashes: &[String]) -> Result<u32, String> {
        let digests = hashes.iter().map(|hash| digest_of(hash)).collect::<Result<Vec<_>, _>>()?;
        let any: SocketAddr = if url.contains("//[") { ([0; 16], 0).into() } else { ([0; 4], 0).into() };
        let _entered = runtime().enter();
        let endpoint = endpoint::open(any, None).map_err(|error| format!("no UDP socket: {error}"))?;
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
            sessions.remove(id);
            lock(&stops).remove(&id);
            endpoint.close(VarInt::from_u32(0), b"closed");
            endpoint.wait_idle().await;
        });
        Ok(id)
    }

    pub fn session(&self, id: u32) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// Ends a session or an attempt. No event follows.
    pub fn close_session(&self, id: u32) {
        if let Some(stop) = lock(&self.stops).get(&id) {
            stop.notify_one();
        }
    }

    pub fn close(&self) {
        lock(&self.stops).values().for_each(|stop| stop.notify_one());
    }
}

/// Runs one session from its handshake to its end.
async fn attempt(
    id: u32,
    endpoint: &Endpoint,
    url: &str,
    (servers, digests): (&KnownServers, &[Sha256Digest]),
    sessions: &Sessions,
    events: &Arc<Events>,
) {
    let reason = match tokio::time::timeout(HANDSHAKE_TIME_MAX, open(endpoint, url, servers, digests)).await {
        Ok(Ok(connection)) => {
            sessions.run(id, connection, None, events).await;
            return;
        }
        Ok(Err(reason)) => reason,
        Err(_) => format!("the server did not answer within {} s", HANDSHAKE_TIME_MAX.as_secs()),
    };
    events.change(id, Change::Closed { reason });
}

pub(super) async fn open(
    endpoint: &Endpoint,
    url: &str,
    servers: &KnownServers,
    digests: &[Sha256Digest],
) -> Result<Connection, String> {
    let request = SessionRequest::new(url).map_err(|error| format!("{url}: {error}"))?;
    let authority = request.authority();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, port.parse().map_err(|_| format!("{url}: port must be 0 to 65535, got {port}"))?)
        }
        _ => (authority, HTTPS_PORT),
    };
    let name = host.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((name, port)).await.map_err(|error| format!("{name}: {error}"))?.next();
    let address = found.ok_or_else(|| format!("{name} has no address"))?;
    loop {
        let connecting = endpoint
            .connect_with(servers.config(authority, digests), address, name)
            .map_err(|error| error.to_string())?;
        match connecting.into_0rtt() {
            Ok((quic, accepted)) => match http3::request(quic, url, true).await {
                // The server refused the early packets, for example because it was restarted. Without its tickets the
                // next attempt sends nothing early.
                Err(_) if !accepted.await => servers.forget(authority),
                answered => return answered,
            },
            Err(connecting) => {
                return http3::request(connecting.await.map_err(|error| error.to_string())?, url, false).await
            }
        }
    }
}
