//! Snappy without a frame, as clients other than Java's write it, through a broker that leaves it so (B17).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::{fs, iter};

use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::records::Reading;
use crate::support::system::run;

const SNAPPY: u8 = 2;
/// Relative offsets, which a broker need not write anew: so it leaves the bytes alone.
const MAGIC: u8 = 1;

fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes()[..], bytes].concat()
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

/// CRC-32 as zlib has it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

/// An entry without a key.
fn message(offset: u64, codec: u8, value: &[u8]) -> Vec<u8> {
    let time = 1_600_000_000_000_u64;
    let body = [&[MAGIC, codec][..], &time.to_be_bytes(), &[0xff; 4], &sized(value)].concat();
    let body = [&crc(&body).to_be_bytes()[..], &body].concat();
    [&offset.to_be_bytes()[..], &sized(&body)].concat()
}

/// As literals only: the decoder's business is where they begin.
fn bare(bytes: &[u8]) -> Vec<u8> {
    let lengths = iter::successors(Some(bytes.len()), |left| (*left > 0x7f).then_some(left >> 7));
    let preamble = lengths.map(|left| (left & 0x7f) as u8 | if left > 0x7f { 0x80 } else { 0 });
    let mut out: Vec<u8> = preamble.collect();
    for chunk in bytes.chunks(1 << 16) {
        // a literal whose length less one is in the two bytes that follow
        out.push(61 << 2);
        out.extend(u16::try_from(chunk.len() - 1).unwrap().to_le_bytes());
        out.extend(chunk);
    }
    out
}

/// Sends message sets by Produce 2; panics with what was answered unless they were taken.
fn produce(address: &str, topic: &str, set: &[u8]) {
    let header = [&[0, 0, 0, 2, 0, 0, 0, 1][..], &text("bare")].concat();
    let one = 1_u32.to_be_bytes();
    let (acks, timeout, partition) = ([0xff, 0xff], 5000_u32.to_be_bytes(), [0; 4]);
    let body = [&acks[..], &timeout, &one, &text(topic), &one, &partition, &sized(set)].concat();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&sized(&[header, body].concat())).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer).unwrap();
    let code = &answer[4 + 4 + 2 + topic.len() + 4 + 4..][..2];
    assert_eq!(code, [0, 0], "{answer:?}");
}

#[test]
fn b17_bare_snappy_is_read() {
    let (cluster, topic) = (shared(KafkaVersion::V1_1_1), "b17-bare");
    cluster.create_topic_with(topic, 1, 1, &[("message.format.version", "0.10.2")]).unwrap();
    cluster.wait_for_leaders(topic).unwrap();
    let values = [vec![], b"small".to_vec(), (0..200_000).map(|it: u32| (it % 251) as u8).collect()];
    let inner: Vec<u8> = (0..).zip(&values).flat_map(|(offset, value)| message(offset, 0, value)).collect();
    produce(&cluster.broker(0).address(), topic, &message(2, SNAPPY, &bare(&inner)));
    let segment = cluster.broker(0).data().join(topic.to_owned() + "-0/00000000000000000000.log");
    let log = fs::read(segment).unwrap();
    assert!(!log.windows(7).any(|window| window == b"\x82SNAPPY"), "the broker has framed it");
    run(async {
        let reading = Reading::start(cluster, topic, "m", &[]).await;
        let records = reading.kept.wait_for(topic, 0, 3).await;
        assert!(records.iter().map(|record| record.offset).eq(0..3));
        assert!(records.iter().map(|record| record.value.as_ref().unwrap()).eq(&values), "the bytes differ");
        reading.member.shutdown().await;
    });
}
