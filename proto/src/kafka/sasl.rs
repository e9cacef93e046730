//! SaslHandshake 0 and 1, SaslAuthenticate 0 and 1: the SASL exchange before all other requests.
//!
//! After handshake 0 (brokers from 0.10) the tokens travel bare, each behind an int32 size, outside of any request;
//! after handshake 1 (from 1.0) each is a [`SaslAuthenticateRequest`], and the broker says why it refuses.

use super::error_code::ErrorCode;
use super::frame::{ApiKey, Request, Response, VersionRange};
use super::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Names the mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslHandshakeRequest {
    /// `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` and the like (Kafka property `sasl.mechanism`).
    pub mechanism: Arc<str>,
}

/// Whether the mechanism will do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaslHandshakeResponse {
    /// 33 for a mechanism that the listener does not offer, 34 on a listener without SASL.
    pub error: ErrorCode,
    /// What the listener offers.
    pub mechanisms: Vec<Arc<str>>,
}

/// One step of the exchange. Its `Debug` leaves the token out.
#[derive(Clone, PartialEq, Eq)]
pub struct SaslAuthenticateRequest {
    /// The client's token of this step.
    pub auth_bytes: Bytes,
}

/// The broker's step.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaslAuthenticateResponse {
    /// 58 for wrong credentials.
    pub error: ErrorCode,
    /// Why it was refused, for the user.
    pub error_message: Option<Arc<str>>,
    /// The broker's token of this step.
    pub auth_bytes: Bytes,
    /// From version 1: ms after which the broker wants to be shown credentials again (KIP-368); 0 for never.
    pub session_lifetime_ms: i64,
}

impl fmt::Debug for SaslAuthenticateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslAuthenticateRequest").finish_non_exhaustive()
    }
}

impl fmt::Debug for SaslAuthenticateResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslAuthenticateResponse")
            .field("error", &self.error)
            .field("error_message", &self.error_message)
            .field("session_lifetime_ms", &self.session_lifetime_ms)
            .finish_non_exhaustive()
    }
}

impl Request for SaslHandshakeRequest {
    const API: ApiKey = ApiKey::SaslHandshake;
    const NAME: &'static str = "SaslHandshakeRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    type Response = SaslHandshakeResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.string("SaslHandshakeRequest.mechanism", &self.mechanism);
    }
}

impl Response for SaslHandshakeResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        SaslHandshakeRequest::VERSIONS.check("SaslHandshakeResponse", version)?;
        let mut r = Reader::new(body);
        let error = r.i16("SaslHandshakeResponse.error_code")?.into();
        let what = "SaslHandshakeResponse.mechanisms";
        let mechanisms = r.array(what, 2, |r| r.string(what))?;
        r.finish("SaslHandshakeResponse")?;
        Ok(Self { error, mechanisms })
    }
}

impl Request for SaslAuthenticateRequest {
    const API: ApiKey = ApiKey::SaslAuthenticate;
    const NAME: &'static str = "SaslAuthenticateRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    type Response = SaslAuthenticateResponse;

    fn encode(&self, _version: i16, out: &mut Writer) {
        out.nullable_bytes("SaslAuthenticateRequest.auth_bytes", Some(&self.auth_bytes));
    }
}

impl Response for SaslAuthenticateResponse {
    fn decode(version: i16, body: Bytes) -> Result<Self, WireError> {
        SaslAuthenticateRequest::VERSIONS.check("SaslAuthenticateResponse", version)?;
        let mut r = Reader::new(body);
        let response = Self {
            error: r.i16("SaslAuthenticateResponse.error_code")?.into(),
            error_message: r.nullable_string("SaslAuthenticateResponse.error_message")?,
            auth_bytes: r.bytes("SaslAuthenticateResponse.auth_bytes")?,
            session_lifetime_ms: match version {
                1.. => r.i64("SaslAuthenticateResponse.session_lifetime_ms")?,
                _ => 0,
            },
        };
        r.finish("SaslAuthenticateResponse")?;
        Ok(response)
    }
}
