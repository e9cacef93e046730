use prost_reflect::prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

use super::*;

fn text(decoder: &str, bytes: &[u8]) -> Result<String, String> {
    let decoder = Decoder::named(decoder)?;
    Ok(String::from_utf8_lossy(decoder.decode(bytes)?.as_bytes()).into_owned())
}

fn json(decoder: &str, bytes: &[u8]) -> String {
    Decoder::named(decoder).unwrap().decode(bytes).unwrap().to_json()
}

#[test]
fn bytes_go_through_as_they_are() {
    let decoder = Decoder::named("utf8").unwrap();
    assert_eq!(decoder.decode(b"\xff\x00a").unwrap().as_bytes(), b"\xff\x00a");
    assert_eq!(json("utf8", "é\"\n".as_bytes()), r#""é\"\n""#);
    assert_eq!(json("utf8", b"\xff\x00a"), r#"{"base64":"/wBh"}"#);
}

#[test]
fn base64_is_rfc_4648s() {
    let vectors = ["", "f", "fo", "foo", "foob", "fooba", "foobar"]
        .map(|plain| text("base64", plain.as_bytes()).unwrap());
    assert_eq!(vectors, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    assert_eq!(text("hex", b"\x00\xffA"), Ok("00ff41".to_owned()));
}

/// What jshell 21 prints.
#[test]
fn numbers_read_as_in_java() {
    let doubles = [0.0, -0.0, 1.0, 1e7, 9_999_999.5, 1e-3, 1e-4, -2.5e10, 0.1, f64::MAX, f64::MIN_POSITIVE];
    let doubles = doubles.map(|number: f64| text("double", &number.to_be_bytes()).unwrap());
    let expected = [
        "0.0",
        "-0.0",
        "1.0",
        "1.0E7",
        "9999999.5",
        "0.001",
        "1.0E-4",
        "-2.5E10",
        "0.1",
        "1.7976931348623157E308",
        "2.2250738585072014E-308",
    ];
    assert_eq!(doubles, expected);
    let others = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let others = others.map(|number| json("double", &number.to_be_bytes()));
    assert_eq!(others, [r#""NaN""#, r#""Infinity""#, r#""-Infinity""#]);
    assert_eq!(text("float", &1.1_f32.to_be_bytes()), Ok("1.1".to_owned()));
    assert_eq!(json("long", &i64::MIN.to_be_bytes()), "-9223372036854775808");
    assert_eq!(text("integer", &[0xff; 4]), Ok("-1".to_owned()));
    assert_eq!(text("short", &[1, 0]), Ok("256".to_owned()));
    assert_eq!(text("boolean", &[1]), Ok("true".to_owned()));
}

#[test]
fn java_classes_are_known_by_their_names() {
    let long = "org.apache.kafka.common.serialization.LongDeserializer";
    assert_eq!(text(long, &7_i64.to_be_bytes()), Ok("7".to_owned()));
    assert_eq!(text("kafka.serializer.StringDecoder", b"a\xff"), Ok("a\u{fffd}".to_owned()));
    let bytes = "org.apache.kafka.common.serialization.BytesDeserializer";
    assert_eq!(text(bytes, b"a\\\n~"), Ok(r"a\x5C\x0A~".to_owned()));
    let uuid = "org.apache.kafka.common.serialization.UUIDDeserializer";
    assert_eq!(
        text(uuid, b"123E4567-e89b-12d3-a456-426614174000"),
        Ok("123e4567-e89b-12d3-a456-426614174000".to_owned())
    );
    for unknown in ["com.example.OrderDeserializer", "", "org.apache.kafka.common.serialization.Deserializer"]
    {
        let error = Decoder::named(unknown).unwrap_err();
        assert!(
            error.starts_with(&format!("no decoder `{unknown}`; there are utf8, string, escaped")),
            "{error}"
        );
    }
}

#[test]
fn what_does_not_decode_says_what_it_is_not() {
    assert_eq!(text("long", b"null"), Err("4 bytes are not a long, which has 8".to_owned()));
    assert_eq!(text("boolean", &[2]), Err("byte 2 is not a boolean, which is 0 or 1".to_owned()));
    assert_eq!(text("uuid", b"123"), Err("3 bytes are not a UUID's text".to_owned()));
    assert!(text("json", b"{\"a\":").unwrap_err().starts_with("not JSON: "));
    assert!(text("json", b"\"\xff\"").unwrap_err().starts_with("not JSON: "));
}

#[test]
fn json_becomes_one_line_and_stays_as_it_is_otherwise() {
    let json =
        "{ \"z\": [1.10, 123456789012345678901234567890],\n\t\"a b\" : \"c \\\" \\\\\" , \"d\" : null }";
    let expected = r#"{"z":[1.10,123456789012345678901234567890],"a b":"c \" \\","d":null}"#;
    assert_eq!(text("json", json.as_bytes()), Ok(expected.to_owned()));
}

#[test]
fn a_descriptor_set_tells_a_message() {
    let field = |name: &str, number, kind: Type| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..FieldDescriptorProto::default()
    };
    let order = DescriptorProto {
        name: Some("Order".to_owned()),
        field: vec![field("order_id", 1, Type::Int64), field("note", 2, Type::String)],
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("order.proto".to_owned()),
        package: Some("shop".to_owned()),
        message_type: vec![order],
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a#b.pb");
    std::fs::write(&path, FileDescriptorSet { file: vec![file] }.encode_to_vec()).unwrap();
    let path = path.to_str().unwrap();
    let decoder = format!("protobuf:{path}#shop.Order");
    assert_eq!(json(&decoder, b"\x08\x05\x12\x02hi"), r#"{"orderId":"5","note":"hi"}"#);
    assert!(text(&decoder, b"\x08").unwrap_err().starts_with("not a shop.Order: "));
    let unknown = Decoder::named(&format!("protobuf:{path}#shop.Nothing")).unwrap_err();
    assert_eq!(unknown, format!("{path}: no message shop.Nothing; there are shop.Order"));
    assert!(Decoder::named("protobuf:no.such#a.B").unwrap_err().starts_with("no.such: "));
    assert!(
        Decoder::named("protobuf:order.pb").unwrap_err().contains("must be protobuf:FILE#package.Message")
    );
}
