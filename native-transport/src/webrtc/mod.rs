//! WebRTC with one data channel (RFC 8831), without its signalling. server.rs is the end that is connected to,
//! client.rs the end that connects; both speak ICE (RFC 8445). peer.rs runs DTLS and SCTP with one other end.

mod client;
mod peer;
mod sctp;
mod server;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use dimpl::Config;
use is::{DefaultSha1HmacProvider, Sha1HmacProvider};

pub use client::{Answer, Client};
pub use peer::PeerHandle;
pub use server::{Offer, Server};

/// Limit of datagrams of one peer that wait for its task. More datagrams are dropped, as on any path.
const WAITING_MAX: usize = 1024;
/// Every path carries this much over IPv4 and UDP.
const DTLS_BYTES_MAX: usize = 1200 - 28;
/// The first time after which DTLS repeats a flight.
const DTLS_AGAIN: Duration = Duration::from_millis(250);

/// An end's name in ICE, and the key with which the other end signs its checks (RFC 8445 section 5.3).
pub struct IceCredentials {
    pub ufrag: String,
    pub password: String,
}

/// Signs messages of ICE.
fn hmac(key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
    DefaultSha1HmacProvider.sha1_hmac(key, payloads)
}

/// DTLS without a cookie exchange, which would cost a round trip. DTLS answers an address only after a client has
/// signed a check from it.
fn dtls_config() -> Result<Arc<Config>, String> {
    let config = Config::builder().mtu(DTLS_BYTES_MAX).use_server_cookie(false).flight_start_rto(DTLS_AGAIN).build();
    config.map(Arc::new).map_err(|error| error.to_string())
}
