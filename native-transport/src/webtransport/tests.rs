//! Server and client over loopback, down to single streams of HTTP/3.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wtransport::proto::frame::Frame;
use wtransport::proto::session::SessionRequest;
use wtransport::proto::settings::Settings;
use wtransport::quinn::{self, Endpoint};
use wtransport::tls::client::{build_default_tls_config, ServerHashVerification};
use wtransport::tls::rustls::server::ServerSessionMemoryCache;
use wtransport::tls::rustls::RootCertStore;
use wtransport::tls::Sha256Digest;
use wtransport::ClientConfig;

use super::client::{open, KnownServers};
use super::config::{client_config, digest_of, server_config};
use super::server::{first_message, FIRST_BYTES_MAX};
use super::{http3, Congestion, Options, Server, HANDSHAKE_TIME_MAX, PATH};
use crate::events::{Change, Events};
use crate::runtime::{lock, runtime};

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.write(&mut bytes).unwrap();
    bytes
}

fn serve(handshake_time: Duration, events: &Arc<Events>) -> Server {
    let options = Options {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        name: "127.0.0.1",
        sessions_max: 8,
        handshake_time,
        congestion: Congestion::Delivery,
    };
    Server::bind(options, Arc::clone(events)).unwrap()
}

fn no_events() -> Arc<Events> {
    Arc::new(Events::new(Box::new(|| ())))
}

/// The first bytes of a client's control stream.
fn control_bytes() -> Vec<u8> {
    let settings =
        Settings::builder().qpack_max_table_capacity(wtransport::VarInt::from_u32(0)).enable_h3_datagrams().build();
    let mut bytes = vec![0];
    bytes.extend(encoded(&settings.generate_frame()));
    bytes
}

async fn connection(server: &Server) -> (Endpoint, quinn::Connection) {
    let digests = server.certificate_hashes().iter().map(|hash| digest_of(hash).unwrap()).collect();
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let quic = endpoint
        .connect_with(client_config(digests, Congestion::Delivery), address, "127.0.0.1")
        .unwrap()
        .await
        .unwrap();
    (endpoint, quic)
}

/// Passes packets to `server` and back. Before the server's first answer, it passes only the client's first packet.
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

/// A hello that takes two packets, as Chromium's does.
fn client_config_with_long_hello(server: &Server) -> quinn::ClientConfig {
    let digests = server.certificate_hashes().into_iter().map(|hash| digest_of(&hash).unwrap());
    let mut tls = build_default_tls_config(
        Arc::new(RootCertStore::empty()),
        Some(Arc::new(ServerHashVerification::new(digests))),
    );
    tls.alpn_protocols.extend((0..8).map(|_| vec![b'x'; 200]));
    ClientConfig::builder().with_bind_default().with_custom_tls(tls).build().quic_config().clone()
}

#[test]
fn a_session_opens_when_the_second_half_of_the_hello_is_late() {
    let server = serve(HANDSHAKE_TIME_MAX, &no_events());
    runtime().block_on(async {
        let relay = relay_one_before_an_answer(([127, 0, 0, 1], server.port).into()).await;
        let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
        let known = HashMap::from([(relay.to_string(), (Vec::new(), client_config_with_long_hello(&server)))]);
        let servers = KnownServers { congestion: Congestion::Delivery, known: Mutex::new(known) };
        let session =
            tokio::time::timeout(HANDSHAKE_TIME_MAX, open(&endpoint, &format!("https://{relay}{PATH}"), &servers, &[]))
                .await;
        assert_eq!(session.expect("an answer in time").err(), None);
    });
    server.close();
}

async fn is_closed(quic: &quinn::Connection) -> bool {
    tokio::time::timeout(HANDSHAKE_TIME_MAX / 2, quic.closed()).await.is_ok()
}

#[test]
fn closes_a_connection_when_its_client_asks_for_no_session_in_time() {
    let server = serve(Duration::from_secs(1), &no_events());
    runtime().block_on(async {
        let (_endpoint, silent) = connection(&server).await;
        let (_other_endpoint, settled) = connection(&server).await;
        let mut control = settled.open_uni().await.unwrap();
        control.write_all(&control_bytes()).await.unwrap();
        assert!(is_closed(&silent).await && is_closed(&settled).await);
    });
    server.close();
}

#[test]
fn closes_a_connection_after_a_refusal_and_tells_the_client_why() {
    let server = serve(HANDSHAKE_TIME_MAX, &no_events());
    runtime().block_on(async {
        let (_endpoint, quic) = connection(&server).await;
        let refused = http3::request(quic.clone(), &format!("https://127.0.0.1:{}/other", server.port), false).await;
        assert_eq!(refused.err().as_deref(), Some("the server refused the session: 404"));
        assert!(is_closed(&quic).await);
    });
    server.close();
}

#[test]
fn reads_a_message_from_the_path() {
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

/// A slow or lossy path: the control stream comes byte by byte, with other streams in between.
#[test]
fn a_session_opens_when_its_settings_come_in_pieces() {
    let events = no_events();
    let server = serve(HANDSHAKE_TIME_MAX, &events);
    runtime().block_on(async {
        let (_endpoint, quic) = connection(&server).await;
        let (mut session, mut answer) = quic.open_bi().await.unwrap();
        let request = SessionRequest::new(format!("https://127.0.0.1:{}{PATH}", server.port)).unwrap();
        session.write_all(&encoded(&request.headers().generate_frame())).await.unwrap();
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
    server.close();
}

/// The server takes one request in the first packets (0-RTT) for each earlier session.
#[test]
fn a_client_that_returns_asks_in_its_first_packets() {
    let events = no_events();
    let server = serve(HANDSHAKE_TIME_MAX, &events);
    let (port, hashes) = (server.port, server.certificate_hashes());
    let digests: Vec<Sha256Digest> = hashes.iter().map(|hash| digest_of(hash).unwrap()).collect();
    let (authority, url) = (format!("127.0.0.1:{port}"), format!("https://127.0.0.1:{port}{PATH}"));
    let servers = KnownServers { congestion: Congestion::Delivery, known: Mutex::default() };
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
        // The server sends tickets at the end of the handshake.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(is_early().await);
        let early = open(&endpoint, &url, &servers, &digests).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        first.close("");
        early.close("");
        server.rotate_certificate().unwrap();
        assert!(is_early().await, "a new certificate changes nothing");
        tokio::time::sleep(Duration::from_millis(100)).await;
        *lock(&server.config) = server_config(
            lock(&server.certificates).shown(),
            Congestion::Delivery,
            &(ServerSessionMemoryCache::new(1) as _),
        );
        assert!(!is_early().await, "the server does not know the client");
        open(&endpoint, &url, &servers, &digests).await.unwrap();
    });
    server.close();
}
