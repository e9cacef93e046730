//! README's table of old scripts: each new command runs on a real cluster.

use troupe_cluster::Cluster;

use crate::old_tools::{Ended, troupe};
use crate::on_1_1_1;
use crate::znodes::Znodes;

/// The new commands, in the order of the table, each with its words.
fn commands() -> Vec<Vec<&'static str>> {
    let text = include_str!("../../README.md");
    let from = text.find("<!-- old scripts").expect("the table's mark");
    let table = &text[from..from + text[from..].find("<!-- end of old scripts").expect("its end")];
    let commands = table.lines().filter_map(|row| row.split_once("`troupe "));
    let commands = commands.map(|(_, rest)| rest.split('`').next().unwrap().split(' ').collect());
    commands.collect()
}

/// What stands for what in the table.
struct Places {
    zookeeper: String,
    brokers: String,
    offsets: String,
    properties: String,
}

impl Places {
    fn of(cluster: &Cluster) -> Self {
        let file = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
        Self {
            zookeeper: cluster.zookeeper_connect(),
            brokers: cluster.bootstrap(),
            offsets: file("readme.offsets"),
            properties: file("readme.properties"),
        }
    }

    fn run(&self, command: &[&str]) -> Ended {
        let words = command.iter().map(|word| match *word {
            "Z" => &self.zookeeper,
            "B" => &self.brokers,
            "T" | "G" => "readme",
            "F" => &self.offsets,
            "P" => &self.properties,
            word => word,
        });
        // what would go on without end
        let more: &[&str] = match command[..2] {
            ["consume", _] => &["--max-messages", "3"],
            ["groups", "watch"] => &["--iterations", "1"],
            _ => &[],
        };
        let words: Vec<&str> = words.chain(more.iter().copied()).collect();
        troupe(&words)
    }
}

#[test]
fn every_command_of_the_readme_does_its_work() {
    let cluster = on_1_1_1();
    let (places, znodes) = (Places::of(cluster), Znodes::of(cluster));
    cluster.create_topic("readme", 1, 1).unwrap();
    cluster.wait_for_leaders("readme").unwrap();
    cluster.produce("readme", ["a", "b", "c"].map(Into::into)).unwrap();
    std::fs::write(&places.properties, format!("zookeeper.connect={}\ngroup.id=readme\n", places.zookeeper))
        .unwrap();
    let commands = commands();
    assert!(commands.len() > 15, "{commands:#?}");
    for command in commands {
        // whatever the command before has done to the group
        znodes.commit("readme", "readme", 0, 2);
        znodes.put("/consumers/readme/ids", "");
        let ended = places.run(&command);
        // nobody is in the group
        let code = i32::from(command[0] == "verify");
        assert_eq!(ended.code, code, "{command:?}: {ended:#?}");
        if command[0] == "consume" {
            assert_eq!(ended.lines, ["a", "b", "c"], "{command:?}: {ended:#?}");
        }
    }
}
