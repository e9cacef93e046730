//! The jars of a release, fetched once by Maven into a cache under the target folder.

use crate::{ClusterError, KafkaVersion, version::Release};
use rustix::fs::{FlockOperation, flock};
use std::{
    env,
    fs::{self, File},
    io::{self, Write},
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
    if complete() && on_path("java") {
        return Ok(folder);
    }
    let _lock = lock(&root)?;
    if !on_path("java") {
        install(JDK)?;
    }
    if !complete() {
        tell(&format!("fetching Kafka {version} and what it needs by Maven into {}", folder.display()));
        fetch(&pom, &folder)?;
    }
    Ok(folder)
}

/// Makes sure that `java` can run a source file; the JRE alone cannot.
pub(crate) fn ensure_compiler() -> Result<(), ClusterError> {
    if on_path("javac") {
        return Ok(());
    }
    let _lock = lock(&cache_root())?;
    if on_path("javac") { Ok(()) } else { install(JDK) }
}

/// Lets parallel test binaries queue; the lock goes with the file handle.
fn lock(root: &Path) -> Result<File, ClusterError> {
    fs::create_dir_all(root).map_err(ClusterError::io(format!("create {}", root.display())))?;
    let lock = root.join("lock");
    let lock = File::create(&lock).map_err(ClusterError::io(format!("create {}", lock.display())))?;
    flock(&lock, FlockOperation::LockExclusive)
        .map_err(|e| ClusterError::io("lock the jar cache")(e.into()))?;
    Ok(lock)
}

/// Lets Maven copy the release and all it depends on, then renames the result into place, so that a folder that
/// exists is complete.
fn fetch(pom: &str, folder: &Path) -> Result<(), ClusterError> {
    if !on_path("mvn") {
        install("maven")?;
    }
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

/// Whether a program is on the `PATH`.
fn on_path(program: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// Installs a Debian package as root; anyone else is told to.
fn install(package: &str) -> Result<(), ClusterError> {
    if !rustix::process::geteuid().is_root() || !on_path("apt-get") {
        let what =
            format!("the test cluster needs Java and Maven: install {package} (Java 17 is known to work)");
        return Err(ClusterError::Fetch { what });
    }
    tell(&format!("installing {package} by apt-get"));
    run(Command::new("apt-get").args(["update", "-q"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-q", "-y", "--no-install-recommends", package]);
    run(apt.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Says on standard error why it takes long; not by `eprintln!`, which the test harness holds back.
fn tell(what: &str) {
    // a closed standard error is no reason to stop
    let _ = writeln!(io::stderr(), "cluster: {what}");
}

/// Runs a command to its end; its output is kept for the error.
fn run(command: &mut Command) -> Result<(), ClusterError> {
    let output = command.output().map_err(ClusterError::io(format!("run {command:?}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let what = format!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&said));
    Err(ClusterError::Fetch { what })
}
