//! The part of HTTP/3 (RFC 9114) that one WebTransport session over datagrams needs (RFC 9220, RFC 9297,
//! draft-ietf-webtrans-http3): SETTINGS, one extended CONNECT, and the session's end. It refuses streams within a
//! session. Each stream has its own task that reads it to its end. So no read is interrupted, and no bytes of a frame
//! are lost between two tasks. `wtransport_proto` encodes field sections and settings, and rustls does TLS.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use tokio::sync::oneshot;
use wtransport::proto::error::ErrorCode;
use wtransport::proto::frame::Frame;
use wtransport::proto::headers::Headers;
use wtransport::proto::ids::StatusCode;
use wtransport::proto::session::{SessionRequest, SessionResponse};
use wtransport::proto::settings::{SettingId, Settings};
use wtransport::quinn::{self, RecvStream, SendStream};
use wtransport::VarInt;

use crate::runtime::lock;

/// Limit of a frame or capsule that is read. Our own peers send shorter ones.
const RECORD_BYTES_MAX: u64 = 16 * 1024;
const READ_BYTES: usize = 4 * 1024;

/// Types of frames (RFC 9114 section 7.2).
const DATA: u64 = 0x0;
const HEADERS: u64 = 0x1;
const SETTINGS: u64 = 0x4;
/// Opens a stream of a session. The session's number follows, not a length (draft-ietf-webtrans-http3 section 4).
const SESSION_STREAM: u64 = 0x41;
/// Types of one-way streams (RFC 9114 section 6.2, RFC 9204 section 4.2).
const CONTROL: u64 = 0x0;
const QPACK_ENCODER: u64 = 0x2;
const QPACK_DECODER: u64 = 0x3;
/// A type of capsule (draft-ietf-webtrans-http3 section 6).
const CLOSE_SESSION: u64 = 0x2843;

/// Reads a QUIC integer (RFC 9000 section 16) at the start of `bytes`. Returns it and its length, or None while bytes
/// are missing.
fn integer(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1usize << (first >> 6);
    let rest = bytes.get(1..length)?;
    Some((rest.iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte)), length))
}

/// Splits bytes that come in any pieces into records: HTTP/3 frames or capsules, each a type, a length and a value.
struct Records {
    bytes: Vec<u8>,
    /// Bytes of an unwanted record that are still to come.
    skip: u64,
    wanted: &'static [u64],
}

impl Records {
    fn new(wanted: &'static [u64]) -> Self {
        Self { bytes: Vec::new(), skip: 0, wanted }
    }

    /// The next record of a wanted type, or None until more bytes come. It skips other types (RFC 9114 section 9).
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, ErrorCode> {
        loop {
            let skipped = self.skip.min(self.bytes.len() as u64);
            self.bytes.drain(..skipped as usize);
            self.skip -= skipped;
            let Some((kind, kind_bytes)) = integer(&self.bytes) else { return Ok(None) };
            let Some((length, length_bytes)) = integer(&self.bytes[kind_bytes..]) else { return Ok(None) };
            let head = kind_bytes + length_bytes;
            if !self.wanted.contains(&kind) {
                self.bytes.drain(..head);
                self.skip = length;
                continue;
            }
            if length > RECORD_BYTES_MAX {
                return Err(ErrorCode::ExcessiveLoad);
            }
            let end = head + length as usize;
            if self.bytes.len() < end {
                return Ok(None);
            }
            let value = self.bytes[head..end].to_vec();
            self.bytes.drain(..end);
            return Ok(Some((kind, value)));
        }
    }
}

/// The frames of a stream.
struct Frames {
    stream: RecvStream,
    records: Records,
}

impl Frames {
    fn new(stream: RecvStream, wanted: &'static [u64]) -> Self {
        Self { stream, records: Records::new(wanted) }
    }

    /// None at the stream's end.
    async fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, ErrorCode> {
        loop {
            if let Some(record) = self.records.next()? {
                return Ok(Some(record));
            }
            match self.stream.read_chunk(READ_BYTES, true).await {
                Ok(Some(chunk)) => self.records.bytes.extend_from_slice(&chunk.bytes),
                Ok(None) if self.records.bytes.is_empty() && self.records.skip == 0 => return Ok(None),
                Ok(None) => return Err(ErrorCode::Frame),
                Err(_) => return Err(ErrorCode::ClosedCriticalStream),
            }
        }
    }
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frame.write_size());
    frame.write(&mut bytes).expect("a vector takes every byte");
    bytes
}

fn code(error: ErrorCode) -> quinn::VarInt {
    quinn::VarInt::from_u64(error.to_code().into_inner()).expect("within QUIC's range")
}

/// An HTTP/3 connection, and the reason of its end.
struct Http3 {
    quic: quinn::Connection,
    ended: OnceLock<String>,
}

impl Http3 {
    /// Sends our settings. The peer's settings come over the returned channel.
    async fn start(quic: quinn::Connection) -> Result<(Arc<Self>, oneshot::Receiver<Settings>), String> {
        let http3 = Arc::new(Self { quic, ended: OnceLock::new() });
        let mut control = http3.quic.open_uni().await.map_err(|_| http3.why())?;
        let settings = Settings::builder()
            .qpack_max_table_capacity(VarInt::from_u32(0))
            .qpack_blocked_streams(VarInt::from_u32(0))
            .enable_connect_protocol()
            .enable_webtransport()
            .enable_h3_datagrams()
            .webtransport_max_sessions(VarInt::from_u32(1))
            .build();
        let mut bytes = vec![CONTROL as u8];
        bytes.extend(encoded(&settings.generate_frame()));
        control.write_all(&bytes).await.map_err(|_| http3.why())?;
        let (settings_sender, settings) = oneshot::channel();
        tokio::spawn(Arc::clone(&http3).take_one_way_streams(control, settings_sender));
        Ok((http3, settings))
    }

    /// Why the connection ended. The first reason stays.
    fn why(&self) -> String {
        let quic =
            || self.quic.close_reason().map_or("the HTTP/3 connection failed".to_owned(), |reason| reason.to_string());
        self.ended.get().cloned().unwrap_or_else(quic)
    }

    fn end(&self, error: ErrorCode, why: String) {
        let why = self.ended.get_or_init(|| why);
        self.quic.close(code(error), why.as_bytes());
    }

    fn fail(&self, error: ErrorCode) {
        self.end(error, format!("HTTP/3: {error}"));
    }

    /// Keeps our control stream open until the connection ends. The peer may open only one control stream.
    async fn take_one_way_streams(self: Arc<Self>, _control: SendStream, settings: oneshot::Sender<Settings>) {
        let settings = Arc::new(Mutex::new(Some(settings)));
        while let Ok(stream) = self.quic.accept_uni().await {
            let (http3, settings) = (Arc::clone(&self), Arc::clone(&settings));
            tokio::spawn(async move {
                if let Err(error) = http3.take_one_way_stream(stream, &settings).await {
                    http3.fail(error);
                }
            });
        }
    }

    async fn take_one_way_stream(
        &self,
        mut stream: RecvStream,
        settings: &Mutex<Option<oneshot::Sender<Settings>>>,
    ) -> Result<(), ErrorCode> {
        let mut head = Vec::new();
        let kind = loop {
            if let Some((kind, length)) = integer(&head) {
                head.drain(..length);
                break kind;
            }
            match stream.read_chunk(8, true).await {
                Ok(Some(chunk)) => head.extend_from_slice(&chunk.bytes),
                // A stream may end before its type is complete.
                _ => return Ok(()),
            }
        };
        match kind {
            CONTROL => {
                let settings = lock(settings).take().ok_or(ErrorCode::StreamCreation)?;
                let mut frames = Frames::new(stream, &[DATA, HEADERS, SETTINGS]);
                frames.records.bytes = head;
                self.read_control(frames, settings).await
            }
            // We allow no dynamic table, so these streams carry nothing that we need (RFC 9204 section 3.2.3).
            QPACK_ENCODER | QPACK_DECODER => {
                while let Ok(Some(_)) = stream.read_chunk(READ_BYTES, false).await {}
                Ok(())
            }
            _ => {
                let _ = stream.stop(code(ErrorCode::StreamCreation));
                Ok(())
            }
        }
    }

    async fn read_control(&self, mut frames: Frames, settings: oneshot::Sender<Settings>) -> Result<(), ErrorCode> {
        let Some((SETTINGS, payload)) = frames.next().await? else { return Err(ErrorCode::MissingSettings) };
        let _ = settings.send(Settings::with_frame(&Frame::new_settings(Cow::Owned(payload)))?);
        match frames.next().await? {
            Some(_) => Err(ErrorCode::FrameUnexpected),
            None => Err(ErrorCode::ClosedCriticalStream),
        }
    }

    async fn refuse_streams(self: Arc<Self>) {
        while let Ok((mut send, mut receive)) = self.quic.accept_bi().await {
            refuse_stream(&mut send, &mut receive);
        }
    }

    /// Reads the session's own stream until the session ends. Returns what the peer says about the end.
    async fn read_session(&self, mut frames: Frames) -> Result<String, ErrorCode> {
        let mut capsules = Records::new(&[CLOSE_SESSION]);
        while let Some((kind, payload)) = frames.next().await? {
            if kind != DATA {
                return Err(ErrorCode::FrameUnexpected);
            }
            capsules.bytes.extend_from_slice(&payload);
            if let Some((_, value)) = capsules.next()? {
                // A code of four bytes comes before the message.
                return Ok(String::from_utf8_lossy(value.get(4..).unwrap_or_default()).into_owned());
            }
        }
        Ok(String::new())
    }

    /// `send` stays open until the session ends.
    fn open_session(self: Arc<Self>, send: SendStream, frames: Frames) -> Connection {
        let id: u64 = quinn::VarInt::from(send.id()).into();
        let http3 = Arc::clone(&self);
        tokio::spawn(async move {
            let _send = send;
            match http3.read_session(frames).await {
                Ok(message) => http3.end(ErrorCode::NoError, format!("closed by the peer: {message}")),
                Err(error) => http3.fail(error),
            }
        });
        tokio::spawn(Arc::clone(&self).refuse_streams());
        Connection { http3: self, prefix: quarter_stream_id(id) }
    }
}

fn refuse_stream(send: &mut SendStream, receive: &mut RecvStream) {
    let _ = receive.stop(code(ErrorCode::RequestRejected));
    let _ = send.reset(code(ErrorCode::RequestRejected));
}

/// The prefix of each HTTP/3 datagram (RFC 9297 section 2.1): a quarter of the session's stream id, as a QUIC integer.
fn quarter_stream_id(stream: u64) -> Vec<u8> {
    match stream / 4 {
        value @ 0..=0x3f => vec![value as u8],
        value @ 0x40..=0x3fff => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        value => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
    }
}

/// A client's request for a session.
pub struct Request {
    http3: Arc<Http3>,
    path: String,
    send: SendStream,
    frames: Frames,
}

/// Waits for a client's request for a session. It refuses other requests on the same connection.
pub async fn take_request(quic: quinn::Connection) -> Result<Request, String> {
    let (http3, settings) = Http3::start(quic).await?;
    settings.await.map_err(|_| http3.why())?;
    loop {
        let (mut send, receive) = http3.quic.accept_bi().await.map_err(|_| http3.why())?;
        let mut frames = Frames::new(receive, &[DATA, HEADERS, SETTINGS, SESSION_STREAM]);
        match read_request(&mut frames).await {
            Ok(Some(path)) => return Ok(Request { http3, path, send, frames }),
            Ok(None) => refuse_stream(&mut send, &mut frames.stream),
            Err(error) => {
                http3.fail(error);
                return Err(http3.why());
            }
        }
    }
}

/// The path if the stream asks for a session, else None.
async fn read_request(frames: &mut Frames) -> Result<Option<String>, ErrorCode> {
    match frames.next().await? {
        Some((HEADERS, payload)) => {
            let headers = Headers::with_frame(&Frame::new_headers(Cow::Owned(payload)))?;
            Ok(SessionRequest::try_from(headers).ok().map(|request| request.path().to_owned()))
        }
        Some((DATA | SETTINGS, _)) => Err(ErrorCode::FrameUnexpected),
        _ => Ok(None),
    }
}

impl Request {
    pub fn path(&self) -> &str {
        &self.path
    }

    pub async fn accept(mut self) -> Result<Connection, String> {
        let answer = encoded(&SessionResponse::ok().headers().generate_frame());
        self.send.write_all(&answer).await.map_err(|_| self.http3.why())?;
        Ok(self.http3.open_session(self.send, self.frames))
    }

    pub async fn refuse(mut self, status: StatusCode) {
        let answer = encoded(&SessionResponse::with_status_code(status).headers().generate_frame());
        let _ = self.send.write_all(&answer).await;
        let _ = self.send.finish();
        let _ = self.send.stopped().await;
    }
}

/// Asks for the session at `url`. `is_early`: the request goes out in 0-RTT packets. The server has taken sessions
/// before, so the client does not wait for its settings (RFC 9114 section 7.2.4.2).
pub async fn request(quic: quinn::Connection, url: &str, is_early: bool) -> Result<Connection, String> {
    let (http3, settings) = Http3::start(quic).await?;
    if !is_early {
        let settings = settings.await.map_err(|_| http3.why())?;
        if settings.get(SettingId::EnableConnectProtocol) != Some(VarInt::from_u32(1)) {
            return Err("the server takes no sessions".to_owned());
        }
    }
    let request = SessionRequest::new(url).map_err(|error| error.to_string())?;
    let (mut send, receive) = http3.quic.open_bi().await.map_err(|_| http3.why())?;
    send.write_all(&encoded(&request.headers().generate_frame())).await.map_err(|_| http3.why())?;
    let mut frames = Frames::new(receive, &[DATA, HEADERS, SETTINGS]);
    match read_answer(&mut frames).await {
        Ok(status) if status.is_successful() => Ok(http3.open_session(send, frames)),
        Ok(status) => Err(format!("the server refused the session: {status}")),
        Err(error) => {
            http3.fail(error);
            Err(http3.why())
        }
    }
}

async fn read_answer(frames: &mut Frames) -> Result<StatusCode, ErrorCode> {
    match frames.next().await? {
        Some((HEADERS, payload)) => {
            let headers = Headers::with_frame(&Frame::new_headers(Cow::Owned(payload)))?;
            SessionResponse::try_from(headers).map(|answer| answer.code()).map_err(|_| ErrorCode::Message)
        }
        Some(_) => Err(ErrorCode::FrameUnexpected),
        None => Err(ErrorCode::Message),
    }
}

/// The connection of an open session.
pub struct Connection {
    http3: Arc<Http3>,
    prefix: Vec<u8>,
}

impl Connection {
    pub fn quic(&self) -> &quinn::Connection {
        &self.http3.quic
    }

    /// The bytes before the message in each QUIC datagram.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The longest message, in bytes. 0 when the peer takes no datagrams.
    pub fn message_bytes_max(&self) -> usize {
        self.quic().max_datagram_size().unwrap_or(0).saturating_sub(self.prefix.len())
    }

    /// The next message of this session. It skips other datagrams. The error says why the session ended.
    pub async fn receive(&self) -> Result<Bytes, String> {
        loop {
            let datagram = self.quic().read_datagram().await.map_err(|_| self.http3.why())?;
            if datagram.starts_with(&self.prefix) {
                return Ok(datagram.slice(self.prefix.len()..));
            }
        }
    }

    pub fn close(&self, why: &str) {
        self.quic().close(quinn::VarInt::from_u32(0), why.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u64, value: &[u8]) -> Vec<u8> {
        let mut bytes = (kind as u32 | 0x8000_0000).to_be_bytes().to_vec();
        bytes.extend([0x40 | (value.len() >> 8) as u8, value.len() as u8]);
        bytes.extend(value);
        bytes
    }

    /// Unwanted records here: GOAWAY, PRIORITY_UPDATE, and a reserved type (RFC 9114 section 7.2.8).
    #[test]
    fn reads_records_from_pieces_of_any_size_and_skips_unwanted_ones() {
        let bytes = [
            record(7, b"goaway"),
            record(SETTINGS, b"one"),
            record(0xf0700, &[1; 500]),
            record(0x21, b""),
            record(DATA, b"two"),
        ]
        .concat();
        for piece in 1..bytes.len() {
            let mut records = Records::new(&[DATA, SETTINGS]);
            let mut got = Vec::new();
            for part in bytes.chunks(piece) {
                records.bytes.extend_from_slice(part);
                while let Some(record) = records.next().unwrap() {
                    got.push(record);
                }
            }
            assert_eq!(got, [(SETTINGS, b"one".to_vec()), (DATA, b"two".to_vec())], "in pieces of {piece}");
            assert!(records.bytes.is_empty() && records.skip == 0);
        }
    }

    #[test]
    fn refuses_a_wanted_record_that_is_too_long_and_keeps_no_unwanted_one() {
        let mut records = Records::new(&[DATA]);
        records.bytes = [&[0x7, 0xbf, 0xff, 0xff, 0xff], &[0; 100][..]].concat();
        assert!(records.next().unwrap().is_none());
        assert!(records.bytes.is_empty());
        let mut records = Records::new(&[DATA]);
        records.bytes = vec![0x0, 0xbf, 0xff, 0xff, 0xff];
        assert!(matches!(records.next(), Err(ErrorCode::ExcessiveLoad)));
    }
}
