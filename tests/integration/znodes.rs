//! What stands in ZooKeeper, byte by byte, as the old consumer would have written it.

use troupe_cluster::KafkaVersion;

use crate::support::clusters::shared;
use crate::support::group::Group;
use crate::support::load::numbered;

crate::on_each_version!(znodes_are_those_of_the_old_consumer);

fn znodes_are_those_of_the_old_consumer(version: KafkaVersion) {
    let name = "znodes";
    let group = Group::new(shared(version), name, 3);
    group.cluster.produce(name, numbered(375)).unwrap();
    let properties =
        ["auto.offset.reset=smallest", "auto.commit.interval.ms=100", "zookeeper.session.timeout.ms=1500"];
    let member = group.join_plainly("m", 2, properties);
    group.wait_for_all();
    crate::support::wait::until("the last commit", || {
        let committed = group.zookeeper().committed(name);
        if committed.values().all(|offset| *offset == 125) { Ok(()) } else { Err(format!("{committed:?}")) }
    });
    let zookeeper = group.zookeeper();

    // the registration
    let [id] = &zookeeper.children("ids")[..] else { panic!("one member") };
    let (rest, random) = id.rsplit_once('-').unwrap();
    let (rest, millis) = rest.rsplit_once('-').unwrap();
    assert!(rest.starts_with("znodes_") && rest.len() > "znodes_".len(), "{id}");
    assert!(millis.len() == 13 && millis.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
    assert!(random.len() == 8 && random.bytes().all(|byte| b"0123456789abcdef".contains(&byte)), "{id}");
    let record = zookeeper.node(&format!("ids/{id}")).unwrap();
    let text = record.text();
    let timestamp = text.strip_suffix("\"}").unwrap().rsplit_once('"').unwrap().1;
    assert!(timestamp.len() == 13 && timestamp.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
    let expected = format!(
        "{{\"version\":1,\"subscription\":{{\"znodes\":2}},\"pattern\":\"static\",\"timestamp\":\"{timestamp}\"}}"
    );
    assert_eq!(text, expected);
    assert!(record.versions.is_empty(), "the heartbeat changes nothing");
    let session = record.session.expect("it is ephemeral");

    // owners and offsets
    for (partition, thread) in [(0, 0), (1, 0), (2, 1)] {
        let owner = zookeeper.node(&format!("owners/{name}/{partition}")).unwrap();
        assert_eq!(owner.text(), format!("{id}-{thread}"));
        assert_eq!(owner.session, Some(session));
        let offset = zookeeper.node(&format!("offsets/{name}/{partition}")).unwrap();
        assert_eq!(offset.data.as_deref(), Some(&b"125"[..]));
        assert_eq!(offset.session, None);
    }

    // their parents, and who may do what
    for parent in ["ids", "owners", "owners/znodes", "offsets", "offsets/znodes"] {
        let node = zookeeper.node(parent).unwrap_or_else(|| panic!("{parent}"));
        assert!(node.data.as_deref().unwrap_or_default().is_empty(), "{parent}: {:?}", node.text());
        assert_eq!(node.session, None, "{parent}");
    }
    for (path, node) in &zookeeper.nodes {
        assert_eq!(node.acl, [(31, "world".to_owned(), "anyone".to_owned())], "{path}");
    }
    let below: Vec<_> = zookeeper.nodes.keys().filter(|path| *path != "/consumers").collect();
    assert_eq!(below.len(), 1 + 5 + 1 + 3 + 3, "and nothing else: {below:?}");
    member.leave();
}
