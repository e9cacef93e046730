use super::*;

/// A server that answers each frame with itself.
fn echo() -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?.to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || io::copy(&mut &stream, &mut &stream));
        }
    });
    Ok(address)
}

fn connect(proxy: &Proxy) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(proxy.address())?;
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    Ok(stream)
}

fn ask(mut stream: &TcpStream) -> io::Result<[u8; 6]> {
    stream.write_all(&[0, 0, 0, 2, 7, 9])?;
    let mut reply = [0; 6];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[test]
fn frames_pass_and_may_be_delayed() -> Result {
    let proxy = Proxy::start(echo()?)?;
    let client = connect(&proxy)?;
    assert_eq!(ask(&client)?, [0, 0, 0, 2, 7, 9]);
    assert_eq!(proxy.connections(), 1);
    proxy.delay(Duration::from_millis(50));
    let begun = Instant::now();
    ask(&client)?;
    assert!(begun.elapsed() >= Duration::from_millis(50));
    Ok(())
}

#[test]
fn a_cut_closes_what_is_open_and_what_opens_until_healed() -> Result {
    let proxy = Proxy::start(echo()?)?;
    let client = connect(&proxy)?;
    ask(&client)?;
    proxy.cut();
    assert!(ask(&client).is_err());
    assert!(ask(&connect(&proxy)?).is_err());
    proxy.heal();
    ask(&connect(&proxy)?)?;
    Ok(())
}

#[test]
fn a_reset_leaves_new_connections_alone() -> Result {
    let proxy = Proxy::start(echo()?)?;
    let client = connect(&proxy)?;
    ask(&client)?;
    proxy.reset();
    assert!(ask(&client).is_err());
    ask(&connect(&proxy)?)?;
    Ok(())
}

#[test]
fn what_was_frozen_flows_on() -> Result {
    let proxy = Proxy::start(echo()?)?;
    let client = connect(&proxy)?;
    ask(&client)?;
    proxy.freeze();
    assert_eq!(ask(&client).map_err(|error| error.kind()), Err(io::ErrorKind::WouldBlock));
    proxy.heal();
    let mut reply = [0; 6];
    (&client).read_exact(&mut reply)?;
    assert_eq!(reply, [0, 0, 0, 2, 7, 9]);
    Ok(())
}

#[test]
fn only_the_chosen_reply_is_lost() -> Result {
    let proxy = Proxy::start(echo()?)?;
    let client = connect(&proxy)?;
    proxy.lose_reply(2);
    ask(&client)?;
    assert_eq!(ask(&client).map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
    ask(&connect(&proxy)?)?;
    Ok(())
}

#[test]
fn nothing_listens_after_the_drop() -> Result {
    let proxy = Proxy::start(echo()?)?;
    let address = proxy.address();
    let client = connect(&proxy)?;
    ask(&client)?;
    drop(proxy);
    assert!(ask(&client).is_err());
    while TcpStream::connect(&address).is_ok() {
        thread::yield_now();
    }
    Ok(())
}
