use proptest::prelude::*;

use super::*;

fn plaintext(data: &str) -> Result<(String, u16), String> {
    let broker = BrokerRegistration::parse(1, data.as_bytes()).map_err(|why| why.to_string())?;
    let (host, port) = broker.address(SecurityProtocol::Plaintext).map_err(|why| why.to_string())?;
    Ok((host.to_owned(), port))
}

fn at(host: &str, port: u16) -> Result<(String, u16), String> {
    Ok((host.to_owned(), port))
}

#[test]
fn version_1_has_host_and_port() {
    let v1 = r#"{"jmx_port":-1,"timestamp":"1","host":"127.0.0.1","version":1,"port":29082}"#;
    assert_eq!(plaintext(v1), at("127.0.0.1", 29082));
}

#[test]
fn versions_2_to_5_have_endpoints() {
    let v2 = r#"{"jmx_port":-1,"timestamp":"1","endpoints":["SSL://h:9093","PLAINTEXT://h:9092"],"host":"h","version":2,"port":9092}"#;
    assert_eq!(plaintext(v2), at("h", 9092));
    let v3 = r#"{"endpoints":["PLAINTEXT://h:9092"],"rack":"r1","host":"h","version":3,"port":9092}"#;
    assert_eq!(BrokerRegistration::parse(1, v3.as_bytes()).unwrap().rack.as_deref(), Some("r1"));
    let v5 = r#"{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://127.0.0.1:29391"],"jmx_port":-1,"port":29391,"host":"127.0.0.1","version":5,"timestamp":"1"}"#;
    assert_eq!(plaintext(v5), at("127.0.0.1", 29391));
}

#[test]
fn named_listeners_go_through_the_map() {
    let v4 = r#"{"listener_security_protocol_map":{"OUTSIDE":"SSL","INSIDE":"PLAINTEXT"},"endpoints":["OUTSIDE://pub:9093","inside://priv:9092"],"host":null,"port":-1,"version":4}"#;
    assert_eq!(plaintext(v4), at("priv", 9092));
    let broker = BrokerRegistration::parse(1, v4.as_bytes()).unwrap();
    assert_eq!(broker.address(SecurityProtocol::Ssl), Ok(("pub", 9093)));
}

#[test]
fn no_match_lists_what_is_on_offer() {
    let sasl = r#"{"listener_security_protocol_map":{"SASL_SSL":"SASL_SSL","X":"SSL"},"endpoints":["SASL_SSL://h:9094","X://[::1]:1"],"host":null,"port":-1,"version":4}"#;
    assert_eq!(
        plaintext(sasl).unwrap_err(),
        "broker 1 has no PLAINTEXT listener to connect to; it offers SASL_SSL://h:9094, X://[::1]:1 (SSL)"
    );
    let hdp = r#"{"endpoints":["PLAINTEXTSASL://h:6667"],"host":"h","port":6667,"version":2}"#;
    assert!(plaintext(hdp).unwrap_err().contains("it offers PLAINTEXTSASL://h:6667"));
    assert!(plaintext(r#"{"endpoints":[],"version":2}"#).unwrap_err().contains("it offers nothing"));
}

#[test]
fn a_listener_without_host_or_port_is_not_dialled() {
    assert!(
        plaintext(r#"{"host":null,"port":-1,"version":1}"#).unwrap_err().contains("PLAINTEXT://(no host):-1")
    );
    assert!(
        plaintext(r#"{"endpoints":["PLAINTEXT://:9092"],"version":2}"#)
            .unwrap_err()
            .contains("(no host):9092")
    );
    assert!(plaintext(r#"{"endpoints":["PLAINTEXT://h:-1"],"version":2}"#).is_err());
    let second = r#"{"endpoints":["PLAINTEXT://:9092","PLAINTEXT://h:9092"],"version":2}"#;
    assert_eq!(plaintext(second), at("h", 9092));
}

#[test]
fn ipv6_loses_its_brackets() {
    let v2 =
        r#"{"endpoints":["PLAINTEXT://[2001:db8::1]:9092"],"host":"2001:db8::1","port":9092,"version":2}"#;
    assert_eq!(plaintext(v2), at("2001:db8::1", 9092));
}

#[test]
fn unreadable_nodes_say_which_and_why() {
    for (data, why) in [
        ("kafka-1234:host:9092", "/brokers/ids/1 cannot be read: written by Kafka 0.7"),
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "neither `endpoints` nor `host`"),
        (r#"{"host":"h"}"#, "`port` is not a number"),
        (r#"{"endpoints":"x"}"#, "`endpoints` is not an array"),
        (r#"{"endpoints":["PLAINTEXT:h:9092"]}"#, "is not listener://host:port"),
        (r#"{"endpoints":["PLAINTEXT://h:9092,SSL://h:9093"]}"#, "is not listener://host:port"),
        (r#"{"endpoints":["PLAINTEXT://h"]}"#, "is not listener://host:port"),
    ] {
        let error = plaintext(data).unwrap_err();
        assert!(error.contains(why), "{data}: {error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_parse_or_fail(data: Vec<u8>) {
        let _ = BrokerRegistration::parse(1, &data);
    }

    #[test]
    fn any_endpoint_parses_or_fails(endpoint in ".*") {
        let data = serde_json::json!({ "endpoints": [endpoint] }).to_string();
        let _ = plaintext(&data);
    }
}
