//! The first frames of a ZooKeeper connection, enough to learn the session timeout that a server grants.
//!
//! The client library tells neither the negotiated timeout nor the session's id, so a throw-away connection
//! asks: it sends [`ConnectRequest`], reads [`ConnectResponse`], sends [`close_session`], and hangs up. All
//! integers are big-endian; each frame follows its length in four bytes.

use bytes::{Buf, BufMut, BytesMut};
use thiserror::Error;

/// Asks for a new session, or for an old one back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The last transaction seen; a server that is behind it refuses. 0 for a new session.
    pub last_zxid: i64,
    /// The session timeout asked for, in milliseconds; the server clamps it to 2 to 20 of its ticks by
    /// default.
    pub timeout_ms: i32,
    /// 0 for a new session.
    pub session_id: i64,
    /// Zeros for a new session.
    pub password: [u8; 16],
    /// Whether a server that is cut off from its quorum may answer.
    pub read_only: bool,
}

impl ConnectRequest {
    /// Asks for a new session with this timeout.
    pub fn new_session(timeout_ms: i32) -> Self {
        Self { last_zxid: 0, timeout_ms, session_id: 0, password: [0; 16], read_only: false }
    }

    /// The frame with its length in front, 49 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut frame = BytesMut::with_capacity(4 + REQUEST_LEN);
        frame.put_i32(REQUEST_LEN as i32);
        frame.put_i32(PROTOCOL_VERSION);
        frame.put_i64(self.last_zxid);
        frame.put_i32(self.timeout_ms);
        frame.put_i64(self.session_id);
        frame.put_i32(self.password.len() as i32);
        frame.put_slice(&self.password);
        frame.put_u8(self.read_only.into());
        frame.to_vec()
    }
}

/// What the server grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// The negotiated session timeout in milliseconds; 0 when the session asked back for has expired.
    pub timeout_ms: i32,
    /// The session's id, the `ephemeralOwner` of its nodes; 0 when the session asked back for has expired.
    pub session_id: i64,
    /// The secret that asks for this session back.
    pub password: Vec<u8>,
    /// Whether the server is cut off from its quorum. `false` from servers before 3.4, which do not say.
    pub read_only: bool,
}

/// A reply that is no `ConnectResponse`: the peer is not a ZooKeeper server, or its frame is cut.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectFrameError {
    /// The length in front of the frame.
    #[error(
        "a ConnectResponse has {MIN_RESPONSE_LEN} to {MAX_RESPONSE_LEN} bytes, not {0}: is this a ZooKeeper server?"
    )]
    Length(i32),
    /// A field that does not fit into the frame.
    #[error("the ConnectResponse ends within its field `{0}`")]
    Truncated(&'static str),
    /// Another protocol.
    #[error("the ConnectResponse has protocol version {0}, not {PROTOCOL_VERSION}")]
    Protocol(i32),
}

impl ConnectResponse {
    /// How many bytes follow the four bytes `prefix`. A length outside what a response can have is an error.
    pub fn frame_len(prefix: [u8; 4]) -> Result<usize, ConnectFrameError> {
        let len = i32::from_be_bytes(prefix);
        usize::try_from(len)
            .ok()
            .filter(|len| (MIN_RESPONSE_LEN..=MAX_RESPONSE_LEN).contains(len))
            .ok_or(ConnectFrameError::Length(len))
    }

    /// Decodes a frame, without its length in front. Further bytes are left alone.
    pub fn decode(mut frame: &[u8]) -> Result<Self, ConnectFrameError> {
        let truncated = |field| move |_| ConnectFrameError::Truncated(field);
        let protocol = frame.try_get_i32().map_err(truncated("protocolVersion"))?;
        if protocol != PROTOCOL_VERSION {
            return Err(ConnectFrameError::Protocol(protocol));
        }
        let timeout_ms = frame.try_get_i32().map_err(truncated("timeOut"))?;
        let session_id = frame.try_get_i64().map_err(truncated("sessionId"))?;
        let len = frame.try_get_i32().map_err(truncated("passwd"))?;
        let password = match usize::try_from(len) {
            // -1 is jute's null buffer
            Err(_) => Vec::new(),
            Ok(len) => frame.split_off(..len).ok_or(ConnectFrameError::Truncated("passwd"))?.to_vec(),
        };
        let read_only = frame.first().is_some_and(|flag| *flag != 0);
        Ok(Self { timeout_ms, session_id, password, read_only })
    }
}

/// The request that ends a session at once, with its length in front, instead of letting it time out.
pub fn close_session(xid: i32) -> [u8; 12] {
    let mut frame = [0; 12];
    frame[..4].copy_from_slice(&8i32.to_be_bytes());
    frame[4..8].copy_from_slice(&xid.to_be_bytes());
    frame[8..].copy_from_slice(&CLOSE_SESSION.to_be_bytes());
    frame
}

const PROTOCOL_VERSION: i32 = 0;
/// ZooKeeper's `OpCode.closeSession`.
const CLOSE_SESSION: i32 = -11;
const REQUEST_LEN: usize = 45;
/// Null password, no read-only flag.
const MIN_RESPONSE_LEN: usize = 20;
/// 37 in practice; room for a longer password.
const MAX_RESPONSE_LEN: usize = 128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response() -> Vec<u8> {
        let mut frame = vec![0, 0, 0, 0, 0, 0, 0x27, 0x10, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 16];
        frame.extend([7; 16]);
        frame
    }

    #[test]
    fn request_is_byte_exact() {
        let frame = ConnectRequest::new_session(6000).encode();
        let mut expected = vec![0, 0, 0, 45, 0, 0, 0, 0];
        expected.extend([0; 8]);
        expected.extend(6000i32.to_be_bytes());
        expected.extend([0; 8]);
        expected.extend([0, 0, 0, 16]);
        expected.extend([0; 17]);
        assert_eq!(frame, expected);
        assert_eq!(close_session(1), [0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5]);
    }

    #[test]
    fn response_is_read_with_and_without_the_read_only_flag() {
        let mut expected = ConnectResponse {
            timeout_ms: 10_000,
            session_id: 0x0100_0000_0000_0002,
            password: vec![7; 16],
            read_only: false,
        };
        let mut frame = response();
        assert_eq!(ConnectResponse::decode(&frame).unwrap(), expected);
        frame.push(1);
        expected.read_only = true;
        assert_eq!(ConnectResponse::decode(&frame).unwrap(), expected);
    }

    #[test]
    fn a_length_that_lies_is_an_error() {
        assert_eq!(ConnectResponse::frame_len(37i32.to_be_bytes()), Ok(37));
        for len in [-1, 0, 19, 129, i32::MAX] {
            assert_eq!(ConnectResponse::frame_len(len.to_be_bytes()), Err(ConnectFrameError::Length(len)));
        }
        let mut frame = response();
        frame[16..20].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(ConnectResponse::decode(&frame), Err(ConnectFrameError::Truncated("passwd")));
        assert_eq!(ConnectResponse::decode(b"HTTP/1.1"), Err(ConnectFrameError::Protocol(0x48545450)));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail(frame: Vec<u8>) {
            let _ = ConnectResponse::decode(&frame);
        }

        #[test]
        fn a_cut_response_is_truncated(len in 0usize..36) {
            prop_assert!(matches!(ConnectResponse::decode(&response()[..len]), Err(ConnectFrameError::Truncated(_))));
        }
    }
}
