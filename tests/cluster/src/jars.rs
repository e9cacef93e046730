//! The jars of a release, fetched once by Maven into a cache under the target folder.

use crate::debian::{debian_program, queue, run, tell};
use crate::{ClusterError, KafkaVersion, version::Release};
use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// Debian's package with Java and its compiler.
const JDK: &str = "default-jdk-headless";

/// The folder of the jars: `TROUPE_CLUSTER_CACHE`, else `cluster` in `CARGO_TARGET_DIR`, else in the workspace's
/// `target`.
pub fn cache_root() -> PathBuf {
    let target = || match env::var_os("CARGO_TARGET_DIR") {
        Some(target) => PathBuf::from(target),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
    };
    env::var_os("TROUPE_CLUSTER_CACHE").map_or_else(|| target().join("cluster"), PathBuf::from)
}

/// The folder with all jars of a version, fetching them (and, as root, a JDK and Maven) if they are missing.
pub(crate) fn jars(version: KafkaVersion) -> Result<PathBuf, ClusterError> {
    let root = cache_root();
    let folder = root.join(version.to_string());
    let pom = pom(&version.release());
    // a row of the table that has changed since is fetched anew
    let complete = || fs::read_to_string(folder.join("pom.xml")).is_ok_and(|fetched| fetched == pom);
    debian_program("java", JDK)?;
    if complete() {
        return Ok(folder);
    }
    debian_program("mvn", "maven")?;
    let _lock = lock(&root)?;
    if !complete() {
        tell(&format!("fetching Kafka {version} and what it needs by Maven into {}", folder.display()));
        fetch(&pom, &folder)?;
    }
    Ok(folder)
}

/// Makes sure that `java` can run a source file; the JRE alone cannot.
pub(crate) fn ensure_compiler() -> Result<(), ClusterError> {
    debian_program("javac", JDK)
}

/// Lets parallel test binaries queue.
fn lock(root: &Path) -> Result<File, ClusterError> {
    fs::create_dir_all(root).map_err(ClusterError::io(format!("create {}", root.display())))?;
    queue(root)
}

/// Lets Maven copy the release and all it depends on, then renames the result into place, so that a folder that
/// exists is complete.
fn fetch(pom: &str, folder: &Path) -> Result<(), ClusterError> {
    let mut work = folder.as_os_str().to_owned();
    work.push(".fetching");
    let work = PathBuf::from(work);
    for old in [folder, work.as_path()] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(ClusterError::io(format!("remove {}", old.display())))?;
        }
    }
    let failed = |what: &'static str| ClusterError::io(format!("{what} {}", work.display()));
    fs::create_dir_all(&work).map_err(failed("create"))?;
    fs::write(work.join("pom.xml"), pom).map_err(failed("write pom.xml in"))?;
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=."]).current_dir(&work);
    run(&mut maven)?;
    fs::rename(&work, folder).map_err(failed("rename"))
}

/// A project that only depends on the release.
fn pom(release: &Release) -> String {
    let kafka = format!("org.apache.kafka:kafka_{}:{}", release.scala, release.name);
    let dependencies: String = std::iter::once(kafka.as_str())
        .chain(release.extras.iter().copied())
        .filter_map(|coordinates| {
            let (group, rest) = coordinates.split_once(':')?;
            let (artifact, version) = rest.split_once(':')?;
            Some(format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>"
            ))
        })
        .collect();
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>troupe</groupId><artifactId>cluster-jars</artifactId><version>1</version>\
         <packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
    )
}
