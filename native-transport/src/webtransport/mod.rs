//! WebTransport over HTTP/3 datagrams (RFC 9220, RFC 9221, RFC 9297), as server and as client. server.rs and client.rs
//! own the endpoints, http3.rs speaks HTTP/3 on a QUIC connection, and session.rs carries the datagrams of a session.

mod client;
mod config;
mod endpoint;
mod http3;
mod server;
mod session;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

pub use client::Client;
pub use server::{Options, Server};
pub use session::Session;

/// Sessions are opened at this path. Any other path is not found.
pub const PATH: &str = "/v1/datagrams";
/// The time from the first packet to the session.
pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// A client remembers this many servers, and a server this many addresses of clients.
const KNOWN_MAX: usize = 4096;

#[derive(Clone, Copy, PartialEq)]
pub enum Congestion {
    Delivery,
    Bbr,
    Cubic,
}

/// Forgets everything when `known` is full.
fn remember<K: Eq + Hash, V>(known: &mut HashMap<K, V>, key: K, value: V) {
    if known.len() >= KNOWN_MAX && !known.contains_key(&key) {
        known.clear();
    }
    known.insert(key, value);
}
