use super::{cuts_fail, judge_decode, judge_encode, judge_text, text};
use crate::kafka::frame::Response;
use crate::kafka::sasl::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use bytes::Bytes;
use kafka_protocol::messages as judge;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn sasl_handshake(version in 0..=1i16, error: i16, mechanism in text(), mechanisms in vec(text(), 0..4)) {
        let request = SaslHandshakeRequest { mechanism };
        let judged: judge::SaslHandshakeRequest = judge_decode(&request, version);
        prop_assert_eq!(judged.mechanism.as_str(), &*request.mechanism);
        let encoded = judge::SaslHandshakeResponse::default()
            .with_error_code(error)
            .with_mechanisms(mechanisms.iter().map(|mechanism| judge_text(mechanism)).collect());
        let body = judge_encode(&encoded, version);
        let expected = SaslHandshakeResponse { error: error.into(), mechanisms };
        prop_assert_eq!(SaslHandshakeResponse::decode(version, body.clone()).expect("we decode"), expected);
        cuts_fail::<SaslHandshakeResponse>(version, &body);
    }

    #[test]
    fn sasl_authenticate(
        version in 0..=1i16,
        (error, lifetime) in any::<(i16, i64)>(),
        error_message in option::of(text()),
        token in vec(any::<u8>(), 0..40),
    ) {
        let auth_bytes = Bytes::from(token);
        let request = SaslAuthenticateRequest { auth_bytes: auth_bytes.clone() };
        let judged: judge::SaslAuthenticateRequest = judge_decode(&request, version);
        prop_assert_eq!(&judged.auth_bytes, &auth_bytes);
        let session_lifetime_ms = if version >= 1 { lifetime } else { 0 };
        let encoded = judge::SaslAuthenticateResponse::default()
            .with_error_code(error)
            .with_error_message(error_message.as_deref().map(judge_text))
            .with_auth_bytes(auth_bytes.clone())
            .with_session_lifetime_ms(session_lifetime_ms);
        let body = judge_encode(&encoded, version);
        let expected =
            SaslAuthenticateResponse { error: error.into(), error_message, auth_bytes, session_lifetime_ms };
        prop_assert_eq!(SaslAuthenticateResponse::decode(version, body.clone()).expect("we decode"), expected);
        cuts_fail::<SaslAuthenticateResponse>(version, &body);
    }
}

#[test]
fn tokens_do_not_show_in_debug_output() {
    let request = SaslAuthenticateRequest { auth_bytes: Bytes::from_static(b"\0user\0secret") };
    assert_eq!(format!("{request:?}"), "SaslAuthenticateRequest { .. }");
    let encoded = judge::SaslAuthenticateResponse::default().with_auth_bytes(request.auth_bytes);
    let response = SaslAuthenticateResponse::decode(0, judge_encode(&encoded, 0)).expect("we decode");
    assert!(!format!("{response:?}").contains("secret"));
}
