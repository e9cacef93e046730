use std::net::SocketAddr;
use std::time::Instant;

use kafka_troupe_proto::kafka::fetch::FetchRequest;
use kafka_troupe_proto::kafka::metadata::MetadataRequest;
use tokio::net::TcpListener;

use super::*;

/// A server that answers each request of one connection with the next of `answers`, then stays silent.
async fn server(answers: Vec<Vec<u8>>) -> SocketAddr {
    serve(answers, true).await
}

/// As [`server`]; or closes the connection then.
async fn serve(answers: Vec<Vec<u8>>, stays: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await?;
        for answer in answers {
            let size = socket.read_u32().await?;
            tokio::io::copy(&mut (&mut socket).take(size.into()), &mut tokio::io::sink()).await?;
            // in pieces, as a slow network delivers it
            for piece in answer.chunks(1_000) {
                socket.write_all(piece).await?;
                tokio::task::yield_now().await;
            }
        }
        // until the client hangs up
        if stays { tokio::io::copy(&mut socket, &mut tokio::io::sink()).await } else { Ok(0) }
    });
    address
}

fn framed(body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len()).expect("a small body");
    [&size.to_be_bytes(), body].concat()
}

/// An ApiVersions answer with correlation id 0: Fetch 4 and Metadata 0 to 5.
fn versions() -> Vec<u8> {
    framed(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 4, 0, 4, 0, 3, 0, 0, 0, 5])
}

/// A Fetch 4 answer with correlation id 1: the first `given` bytes of a record set of `claimed`, then one of 3 bytes.
fn fetched(claimed: u32, given: usize) -> Vec<u8> {
    let mut body = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 2].to_vec();
    for (partition, claimed, given) in [(0, claimed, given), (1, 3, 3)] {
        body.extend([
            0, 0, 0, partition, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 9, 255, 255, 255, 255,
        ]);
        body.extend(claimed.to_be_bytes());
        body.extend(std::iter::repeat_n(partition + 1, given));
    }
    let size = u32::try_from(body.len() - given).expect("a small body") + claimed;
    [&size.to_be_bytes(), &body[..]].concat()
}

fn fetch_request() -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 1,
        read_committed: false,
        session_id: 0,
        session_epoch: -1,
        topics: Vec::new(),
        forgotten: Vec::new(),
        rack: "".into(),
    }
}

async fn connect(address: SocketAddr, timeout_ms: u64) -> Result<BrokerConnection, ConnectionError> {
    let options = ConnectOptions::new("test", Duration::from_millis(timeout_ms));
    BrokerConnection::connect("127.0.0.1", address.port(), options).await
}

async fn refusal(answer: &[u8]) -> String {
    let address = server(vec![answer.to_vec()]).await;
    let error = connect(address, 5_000).await.expect_err("that is no Kafka");
    let text = error.to_string();
    assert!(text.contains(&address.to_string()), "{text}");
    text
}

#[tokio::test]
async fn a_port_that_speaks_tls_or_http_is_told_as_such() {
    let tls = refusal(&[0x15, 3, 3, 0, 2, 2, 70]).await;
    assert!(tls.contains("not Kafka") && tls.contains("TLS"), "{tls}");
    let http = refusal(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    assert!(http.contains("not Kafka") && http.contains("HTTP"), "{http}");
}

#[tokio::test]
async fn a_lying_size_costs_no_memory() {
    let mut lie = 100_000_000_u32.to_be_bytes().to_vec();
    lie.extend([0, 0, 0, 1, 0, 0, 0]);
    let address = server(vec![versions(), lie]).await;
    let mut connection = connect(address, 200).await.expect("a broker");
    let error = connection.call(&MetadataRequest::default()).await.expect_err("the rest never comes");
    assert!(matches!(error.problem, ConnectionProblem::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn record_sets_are_read_into_buffers_of_their_own() {
    let mut connection =
        connect(server(vec![versions(), fetched(100_000, 100_000)]).await, 5_000).await.expect("one");
    let answer = connection.fetch(&fetch_request()).await.expect("an answer");
    let [(first, large), (second, small)] = &answer.partitions[..] else { panic!("two partitions") };
    assert_eq!((first.to_string(), second.to_string()), ("t-0".to_owned(), "t-1".to_owned()));
    assert!(large.records.len() == 100_000 && large.records.iter().all(|byte| *byte == 1));
    assert_eq!((&small.records[..], small.high_watermark), (&[2, 2, 2][..], 9));
}

#[tokio::test]
async fn a_lying_record_set_costs_no_memory() {
    let mut connection =
        connect(server(vec![versions(), fetched(100_000_000, 5_000)]).await, 200).await.expect("one");
    let error = connection.fetch(&fetch_request()).await.expect_err("the rest never comes");
    assert!(matches!(error.problem, ConnectionProblem::TimedOut { .. }), "{error}");
}

/// Such a number is no quota's.
#[tokio::test]
async fn a_broker_that_throttles_us_for_weeks_is_asked_again_after_a_minute() {
    let speaks_fetch_8 = framed(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 4, 0, 8]);
    let mut connection = connect(server(vec![speaks_fetch_8]).await, 5_000).await.expect("a broker");
    for (told, least, most) in [(i32::MAX, 50, 60), (5_000, 1, 5), (-1, 0, 0)] {
        connection.throttled(told);
        let deaf = connection.deaf_for();
        assert!(deaf >= Duration::from_secs(least) && deaf <= Duration::from_secs(most), "{told}: {deaf:?}");
    }
}

#[tokio::test]
async fn a_foreign_correlation_id_is_refused() {
    let address = server(vec![versions(), framed(&[0, 0, 0, 9, 0, 0])]).await;
    let mut connection = connect(address, 5_000).await.expect("a broker");
    let error = connection.call(&MetadataRequest::default()).await.expect_err("not our answer");
    assert!(error.to_string().contains("correlation id 9 answers 1"), "{error}");
}

#[tokio::test]
async fn a_silent_or_absent_broker_is_given_up_in_time() {
    let began = Instant::now();
    let error = connect(server(Vec::new()).await, 100).await.expect_err("it is silent");
    assert!(error.to_string().contains("socket.timeout.ms"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    drop(listener);
    let error = connect(address, 5_000).await.expect_err("nobody listens");
    assert!(matches!(error.problem, ConnectionProblem::Io(_)), "{error}");
}

#[tokio::test]
async fn a_request_the_broker_does_not_know_is_not_sent() {
    let only_fetch = framed(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 5]);
    let mut connection = connect(server(vec![only_fetch]).await, 5_000).await.expect("a broker");
    let error = connection.call(&MetadataRequest::default()).await.expect_err("unknown");
    let told = format!("no common version of MetadataRequest: we speak {}", MetadataRequest::VERSIONS);
    assert!(error.to_string().contains(&told), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_closed_before_a_byte_of_an_answer_is_told_from_one_that_breaks_off() {
    for (answers, unanswered) in [(vec![versions()], true), (vec![versions(), vec![0, 0]], false)] {
        let mut connection = connect(serve(answers, false).await, 5_000).await.expect("a broker");
        let error = connection.fetch(&fetch_request()).await.expect_err("it hangs up");
        assert!(error.problem.is_hang_up() && error.unanswered == unanswered, "{error:?}");
    }
    let mut silent = connect(server(vec![versions()]).await, 200).await.expect("a broker");
    let error = silent.fetch(&fetch_request()).await.expect_err("it is silent");
    assert!(!error.unanswered, "{error:?}");
}
