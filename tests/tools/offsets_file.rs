//! `troupe offsets export|import` beside `kafka.tools.ExportZkOffsets` and `kafka.tools.ImportZkOffsets`.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use troupe_cluster::{Cluster, KafkaVersion};

use crate::old_tools::{Ended, old_tool, troupe};
use crate::znodes::Znodes;
use crate::{on_1_1_1, on_each};

const EXPORT: &str = "kafka.tools.ExportZkOffsets";
const IMPORT: &str = "kafka.tools.ImportZkOffsets";

/// Two groups with offsets in ZooKeeper; the topics need not be there.
struct Groups {
    cluster: &'static Cluster,
    version: KafkaVersion,
    znodes: Znodes,
    names: [String; 2],
}

const OFFSETS: [(&str, i32, i64); 4] =
    [("orders", 0, 0), ("orders", 1, 9_223_372_036_854_775_807), ("orders", 10, 17), ("a.b-c_d", 0, 1)];

impl Groups {
    fn on(cluster: &'static Cluster, version: KafkaVersion, name: &str) -> Self {
        let names = ["a", "b"].map(|which| format!("{name}-{which}"));
        let groups = Self { cluster, version, znodes: Znodes::of(cluster), names };
        groups.commit();
        groups
    }

    fn commit(&self) {
        for (topic, partition, offset) in OFFSETS {
            self.znodes.commit(&self.names[0], topic, partition, offset);
            self.znodes.commit(&self.names[1], topic, partition + 1, offset / 2);
        }
    }

    /// All lines of both, sorted.
    fn lines(&self) -> Vec<String> {
        let of_group = |(group, name): (i64, &String)| {
            OFFSETS.map(|(topic, partition, offset)| {
                let (partition, offset) = (partition + i32::try_from(group).unwrap(), offset / (group + 1));
                format!("/consumers/{name}/offsets/{topic}/{partition}:{offset}")
            })
        };
        sorted((0..).zip(&self.names).flat_map(of_group).collect())
    }

    /// What stands in ZooKeeper, in the same form.
    fn stored(&self) -> Vec<String> {
        let lines = self.lines();
        let paths = lines.iter().filter_map(|line| line.rsplit_once(':'));
        paths.filter_map(|(path, _)| Some(format!("{path}:{}", self.znodes.data(path)?))).collect()
    }

    fn forget(&self) {
        self.lines()
            .iter()
            .filter_map(|line| line.rsplit_once(':'))
            .for_each(|(path, _)| self.znodes.delete(path));
        assert_eq!(self.stored(), [""; 0]);
    }

    fn file(&self, name: &str) -> String {
        let file: PathBuf = self.cluster.folder().join(format!("{}-{name}", self.names[0]));
        file.display().to_string()
    }

    fn arguments<'a>(&'a self, connect: &'a str, file: &'a str) -> Vec<&'a str> {
        let [a, b] = &self.names;
        vec!["--zkconnect", connect, "--group", a, "--group", b, "--output-file", file]
    }

    /// Exports by the old tool and by ours, with the very same command line, and gives both files.
    fn exported(&self) -> [String; 2] {
        let (connect, old, ours) = (self.cluster.zookeeper_connect(), self.file("old"), self.file("ours"));
        old_tool(self.cluster, self.version, EXPORT, &self.arguments(&connect, &old)).printed();
        let arguments = [&["kafka-run-class.sh", EXPORT], &self.arguments(&connect, &ours)[..]].concat();
        troupe(&arguments).printed();
        [old, ours]
    }

    #[track_caller]
    fn import(&self, file: &str, more: &[&str]) -> Ended {
        let connect = self.cluster.zookeeper_connect();
        let arguments =
            ["--output", "json", "offsets", "import", "--zkconnect", &connect, "--input-file", file];
        troupe(&[&arguments[..], more].concat())
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

fn lines_of(file: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    sorted(text.lines().map(str::to_owned).collect())
}

fn what_is_exported_is_what_the_old_tool_exports(cluster: &'static Cluster, version: KafkaVersion) {
    let groups = Groups::on(cluster, version, "exported");
    // the old consumer's "no position yet"
    groups.znodes.commit(&groups.names[0], "new", 0, -1);
    let none = format!("/consumers/{}/offsets/new/0:-1", groups.names[0]);
    let expected = sorted([groups.lines(), vec![none.clone()]].concat());
    let [old, ours] = groups.exported();
    assert_eq!(lines_of(&old), expected);
    assert_eq!(lines_of(&ours), expected);

    let connect = cluster.zookeeper_connect();
    // what other tests have there may be left out
    let all = troupe(&["offsets", "export", "--zookeeper", &connect]);
    assert!(expected.iter().all(|line| all.lines.contains(line)), "without --group all groups: {all:#?}");
    let new = ["--output", "json", "offsets", "export", "--zookeeper", &connect, "--group", &groups.names[0]];
    let rows = troupe(&new).rows();
    let row = json!({ "group": groups.names[0], "topic": "new", "partition": 0, "offset": -1 });
    assert!(rows.contains(&row), "{rows:#?}");
    // what says that there is no position is not written
    let imported = groups.import(&ours, &[]);
    assert_eq!(imported.code, 0, "{imported:#?}");
    let rows = imported.rows();
    let row = rows.iter().find(|row| row["topic"] == "new").unwrap();
    assert!(row["note"].as_str().unwrap().contains("not set"), "{row}");
}

fn each_tool_imports_what_the_other_exports(cluster: &'static Cluster, version: KafkaVersion) {
    let groups = Groups::on(cluster, version, "imported");
    let [old, ours] = groups.exported();
    groups.forget();
    let connect = cluster.zookeeper_connect();
    let arguments = ["--zkconnect", &connect, "--input-file", &ours];
    old_tool(cluster, version, IMPORT, &arguments).printed();
    assert_eq!(groups.stored(), groups.lines());

    groups.forget();
    let dry = groups.import(&old, &["--dry-run"]);
    assert_eq!((dry.code, groups.stored().len(), dry.rows().len()), (0, 0, 8), "{dry:#?}");
    let done = groups.import(&old, &[]);
    assert_eq!((done.code, groups.stored()), (0, groups.lines()), "{done:#?}");
    assert_eq!(done.rows(), dry.rows());
    // over what is there too
    groups.znodes.commit(&groups.names[0], "orders", 0, 55);
    let again = groups.import(&old, &[]);
    assert_eq!((again.code, groups.stored()), (0, groups.lines()), "{again:#?}");
    assert!(again.rows().iter().any(|row| row["old_offset"] == 55 && row["new_offset"] == 0));
}

on_each!([on_0_8_2_2 V0_8_2_2, on_1_1_1 V1_1_1] (
    what_is_exported_is_what_the_old_tool_exports, each_tool_imports_what_the_other_exports
));

#[test]
fn a_group_without_an_offsets_node_ends_the_old_tool_and_not_ours() {
    let (cluster, version) = (on_1_1_1(), KafkaVersion::V1_1_1);
    let groups = Groups::on(cluster, version, "beside-bare");
    groups.znodes.put("/consumers/exported-bare/ids", "");
    let (connect, file) = (cluster.zookeeper_connect(), groups.file("bare"));
    let arguments = [
        "--zkconnect",
        &connect,
        "--group",
        "exported-bare",
        "--group",
        &groups.names[0],
        "--output-file",
        &file,
    ];
    let old = old_tool(cluster, version, EXPORT, &arguments);
    assert!(old.code != 0 && old.errors.contains("NoNode"), "{old:#?}");
    let ours = troupe(&[&["offsets", "export"], &arguments[..]].concat());
    assert_eq!((ours.code, lines_of(&file).len()), (0, OFFSETS.len()), "{ours:#?}");

    // one that does not exist, and a node that holds no offset: told, and all else is there
    groups.znodes.put(&format!("/consumers/{}/offsets/orders/0", groups.names[0]), "none");
    let arguments = [&arguments[..], &["--group", "exported-nobody"]].concat();
    let ours = troupe(&[&["offsets", "export"], &arguments[..]].concat());
    assert_eq!((ours.code, lines_of(&file).len()), (1, OFFSETS.len() - 1), "{ours:#?}");
    assert!(ours.errors.contains("exported-nobody\" does not exist"), "{ours:#?}");
    assert!(ours.errors.contains("/offsets/orders/0 is left out"), "{ours:#?}");
}

#[test]
fn what_stands_behind_an_empty_line_is_dropped_by_the_old_tool_and_not_by_ours() {
    let (cluster, version) = (on_1_1_1(), KafkaVersion::V1_1_1);
    let groups = Groups::on(cluster, version, "behind");
    let file = groups.file("gaps");
    let lines = groups.lines();
    fs::write(&file, format!("{}\n\n{}\n", lines[0], lines[1..].join("\n\n"))).unwrap();
    groups.forget();
    let connect = cluster.zookeeper_connect();
    old_tool(cluster, version, IMPORT, &["--zkconnect", &connect, "--input-file", &file]).printed();
    assert_eq!(groups.stored(), lines[..1]);
    let ours = groups.import(&file, &[]);
    assert_eq!((ours.code, groups.stored()), (0, lines), "{ours:#?}");
}

#[test]
fn nothing_is_imported_of_a_file_with_a_bad_line() {
    let groups = Groups::on(on_1_1_1(), KafkaVersion::V1_1_1, "bad-line");
    let file = groups.file("bad");
    let lines = groups.lines();
    fs::write(&file, format!("{}\n/consumers/g/offsets/t/x:5\n{}", lines[0], lines[1])).unwrap();
    groups.forget();
    let ended = groups.import(&file, &[]);
    assert_eq!((ended.code, groups.stored().len()), (2, 0), "{ended:#?}");
    assert!(ended.errors.contains("line 2: \"/consumers/g/offsets/t/x:5\""), "{ended:#?}");
}

#[test]
fn a_group_with_a_member_is_refused_unless_forced() {
    let groups = Groups::on(on_1_1_1(), KafkaVersion::V1_1_1, "import-live");
    let file = groups.file("live");
    fs::write(&file, groups.lines().join("\n")).unwrap();
    groups.forget();
    groups.znodes.put(&format!("/consumers/{}/ids", groups.names[1]), "");
    groups.znodes.ephemeral(&format!("/consumers/{}/ids/member", groups.names[1]), "{}");
    for more in [&[][..], &["--dry-run"]] {
        let ended = groups.import(&file, more);
        assert_eq!((ended.code, groups.stored().len()), (1, 0), "not of the other group either: {ended:#?}");
        assert!(ended.errors.contains("stop member first"), "{ended:#?}");
    }
    let ended = groups.import(&file, &["--force"]);
    assert_eq!((ended.code, groups.stored()), (0, groups.lines()), "{ended:#?}");
}
