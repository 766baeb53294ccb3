//! How QUIC and TLS are configured, for server and client. It opens no socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use wtransport::config::QuicTransportConfig;
use wtransport::quinn::{self, VarInt};
use wtransport::tls::client::ServerHashVerification;
use wtransport::tls::rustls::server::StoresServerSessions;
use wtransport::tls::rustls::RootCertStore;
use wtransport::tls::{client, server, Sha256Digest, Sha256DigestFmt};
use wtransport::{ClientConfig, Identity, ServerConfig};

use super::session::QUIC_QUEUE_BYTES_MAX;
use super::Congestion;
use crate::congestion::{DeliveryConfig, Path, LOST_AFTER_ROUND_TRIPS};

const IDLE_TIME_MAX: Duration = Duration::from_secs(75);
/// Keeps the address translation of a NAT alive.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// HTTP/3 needs three one-way streams and the session's own stream. No other stream is read.
const UNI_STREAMS_MAX: u32 = 4;
const BIDI_STREAMS_MAX: u32 = 2;
/// Of a stream, these bytes may arrive before they can be read. A client may leave out the first ones for ever.
const STREAM_BYTES_MAX: u32 = 64 * 1024;
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// The builders require an address, but the endpoint binds its own.
const UNUSED_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// `path`: what the last connection over it has learned.
pub fn transport(congestion: Congestion, path: Option<Path>) -> QuicTransportConfig {
    let mut config = QuicTransportConfig::default();
    config
        .max_idle_timeout(Some(IDLE_TIME_MAX.try_into().expect("within QUIC's range")))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_bidi_streams(VarInt::from_u32(BIDI_STREAMS_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS_MAX))
        .stream_receive_window(VarInt::from_u32(STREAM_BYTES_MAX))
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

/// `tickets`: each is good for one connection, whose first packets may carry a request (0-RTT). An attacker who replays
/// the packets gets no second answer (RFC 8446 section 8.1).
pub fn server_config(
    identity: Identity,
    congestion: Congestion,
    tickets: &Arc<dyn StoresServerSessions>,
) -> quinn::ServerConfig {
    let mut tls = server::build_default_tls_config(identity);
    tls.session_storage = Arc::clone(tickets);
    tls.max_early_data_size = u32::MAX;
    ServerConfig::builder()
        .with_bind_address(UNUSED_ADDRESS)
        .with_custom_tls_and_transport(tls, transport(congestion, None))
        .build()
        .quic_config()
        .clone()
}

/// The server must show a certificate with one of `digests`.
pub fn client_config(digests: Vec<Sha256Digest>, congestion: Congestion) -> quinn::ClientConfig {
    let verifier = Arc::new(ServerHashVerification::new(digests));
    let mut tls = client::build_default_tls_config(Arc::new(RootCertStore::empty()), Some(verifier));
    tls.enable_early_data = true;
    ClientConfig::builder()
        .with_bind_address(UNUSED_ADDRESS)
        .with_custom_tls_and_transport(tls, transport(congestion, None))
        .build()
        .quic_config()
        .clone()
}

/// Reads a certificate's SHA-256 in hex.
pub fn digest_of(hash: &str) -> Result<Sha256Digest, String> {
    let pairs: Vec<&str> = (0..hash.len()).step_by(2).filter_map(|at| hash.get(at..at + 2)).collect();
    Sha256Digest::from_str_fmt(pairs.join(":"), Sha256DigestFmt::DottedHex)
        .map_err(|_| format!("not a SHA-256 in hex: {hash}"))
}
