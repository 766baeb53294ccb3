//! Opens QUIC endpoints.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use wtransport::quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};

use crate::udp;

/// `server`: how connections are accepted. Without it the endpoint only connects.
pub fn open(address: SocketAddr, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    Endpoint::new(EndpointConfig::default(), server, udp::bind(address)?, Arc::new(TokioRuntime))
}
