//! A UDP socket that sends and receives datagrams in batches, and the messages of ICE that it sends.

use std::io;
use std::net::{IpAddr, SocketAddr};

use is::stun::StunMessage;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState, BATCH_SIZE};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::hmac;
use crate::udp;

const RECEIVE_BYTES: usize = 64 * 1024;
const STUN_BYTES_MAX: usize = 256;
/// Longer datagrams come only over a path of the machine to itself. The socket skips them.
const DATAGRAM_BYTES_MAX: usize = 1500;
/// Datagrams per call at most: a client may be sent this many at once.
const BATCH_MAX: usize = 32;

/// The other end's address, and our address to which it sent.
#[derive(Clone, Copy, PartialEq)]
pub struct Route {
    pub remote: SocketAddr,
    pub local: Option<IpAddr>,
}

/// Room for one batch of received datagrams.
pub struct ReceiveBuffer(Vec<u8>);

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self(vec![0; RECEIVE_BYTES * BATCH_SIZE])
    }
}

pub struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let udp = UdpSocket::from_std(udp::bind(address)?)?;
        let state = UdpSocketState::new((&udp).into())?;
        Ok(Self { udp, state })
    }

    pub fn port(&self) -> io::Result<u16> {
        Ok(self.udp.local_addr()?.port())
    }

    /// Waits for datagrams and hands them to `take`, one after the other.
    pub async fn receive(&self, buffer: &mut ReceiveBuffer, mut take: impl FnMut(Route, &[u8])) {
        let _ = self.udp.readable().await;
        let mut parts: Vec<_> = buffer.0.chunks_mut(RECEIVE_BYTES).map(io::IoSliceMut::new).collect();
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let received =
            self.udp.try_io(Interest::READABLE, || self.state.recv((&self.udp).into(), &mut parts, &mut metas));
        // An error here concerns a datagram that was sent earlier.
        for (meta, part) in metas.iter().zip(&parts).take(received.unwrap_or(0)) {
            for datagram in
                part[..meta.len].chunks(meta.stride.max(1)).filter(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX)
            {
                take(Route { remote: meta.addr, local: meta.dst_ip }, datagram);
            }
        }
    }

    /// Datagrams of one length that one call can send.
    pub fn batch_max(&self) -> usize {
        self.state.max_gso_segments().min(BATCH_MAX)
    }

    /// Sends a message of ICE, signed with `password`.
    pub fn send_stun(&self, route: &Route, message: StunMessage, password: &str) {
        let mut bytes = [0; STUN_BYTES_MAX];
        if let Ok(length) = message.to_bytes(Some(password.as_bytes()), &mut bytes, hmac) {
            self.send(route, &bytes[..length], length);
        }
    }

    /// Answers a check of ICE.
    pub fn answer(&self, route: &Route, check: &StunMessage, password: &str) {
        let seen = SocketAddr::new(route.remote.ip().to_canonical(), route.remote.port());
        self.send_stun(route, StunMessage::binding_reply(check.trans_id(), seen), password);
    }

    /// Sends datagrams of `length` each that lie end to end. A datagram that the machine does not take is lost, as on
    /// any path.
    pub fn send(&self, route: &Route, datagrams: &[u8], length: usize) {
        let segment_size = (datagrams.len() > length).then_some(length);
        let transmit =
            Transmit { destination: route.remote, ecn: None, contents: datagrams, segment_size, src_ip: route.local };
        let _ = self.udp.try_io(Interest::WRITABLE, || self.state.try_send((&self.udp).into(), &transmit));
    }
}
