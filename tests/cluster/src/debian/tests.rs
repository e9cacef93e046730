use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

/// Tells of each run in `log`, fails where it runs twice at a time, and installs `tool`.
const APT: &str = r#"
mkdir "$HERE/busy" || { echo "twice at a time"; exit 1; }
echo "$*" >> "$HERE/log"
sleep 0.05
case "$*" in *install*) printf '#!/bin/sh\n' > "$HERE/tool";; esac
rmdir "$HERE/busy"
"#;

/// An installer whose `apt-get` is a script of ours.
fn installer(apt: &str) -> (TempDir, Installer) {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("apt-get");
    let text = format!("#!/bin/sh\nHERE='{}'\n{apt}", folder.path().display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let real = env::var_os("PATH").unwrap();
    let path =
        env::join_paths([folder.path().to_owned()].into_iter().chain(env::split_paths(&real))).unwrap();
    let queue = folder.path().to_owned();
    let patience = Duration::from_secs(10);
    (folder, Installer { path, is_root: true, queue, patience, pause: Duration::from_millis(1) })
}

fn runs(folder: &TempDir) -> Vec<String> {
    let log = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

#[test]
fn what_many_tests_need_at_once_is_installed_once_and_never_twice_at_a_time() {
    let (folder, installer) = installer(APT);
    thread::scope(|scope| {
        let started: Vec<_> = (0..4).map(|_| scope.spawn(|| installer.ensure("tool", "tools"))).collect();
        started.into_iter().for_each(|it| it.join().unwrap().unwrap());
    });
    let timeout = "-o DPkg::Lock::Timeout=600";
    let install = format!("{timeout} install -q -y --no-install-recommends tools");
    assert_eq!(runs(&folder), [format!("{timeout} update -q"), install]);
}

#[test]
fn a_turn_is_waited_for_that_another_test_binary_has() {
    let (folder, installer) = installer(APT);
    let other = queue(folder.path()).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            installer.ensure("tool", "tools").unwrap();
            folder.path().join("released").exists()
        });
        File::create(folder.path().join("released")).unwrap();
        drop(other);
        assert!(waiting.join().unwrap(), "it did not wait");
    });
}

#[test]
fn somebody_elses_apt_is_waited_for_in_each_step() {
    let locked = r#"
echo "$*" >> "$HERE/log"
lines=$(wc -l < "$HERE/log")
case $lines in
1|2) echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2; exit 100;;
3) ;;
4) echo "E: Unable to lock directory /var/cache/apt/archives/" >&2; exit 100;;
*) printf '#!/bin/sh\n' > "$HERE/tool";;
esac
"#;
    let (folder, installer) = installer(locked);
    installer.ensure("tool", "tools").unwrap();
    let steps: Vec<_> = runs(&folder).iter().map(|run| run.contains("install")).collect();
    assert_eq!(steps, [false, false, false, true, true]);

    let hurried = Installer { patience: Duration::ZERO, ..installer };
    fs::remove_file(folder.path().join("tool")).unwrap();
    fs::remove_file(folder.path().join("log")).unwrap();
    let error = hurried.ensure("tool", "tools").unwrap_err().to_string();
    assert!(error.starts_with("another process has had apt's lock for 0ns: end it"), "{error}");
    assert!(error.contains("held by process 7"), "{error}");
}

#[test]
fn what_apt_cannot_do_is_told_in_its_words_and_not_tried_again() {
    let (folder, installer) = installer("echo \"$*\" >> \"$HERE/log\"; echo 'E: no network' >&2; exit 100");
    let error = installer.ensure("tool", "tools").unwrap_err().to_string();
    assert!(error.contains("update") && error.contains("E: no network"), "{error}");
    assert_eq!(runs(&folder).len(), 1);
}

#[test]
fn whoever_is_not_root_is_told_what_to_install() {
    let (folder, installer) = installer(APT);
    let error = Installer { is_root: false, ..installer }.ensure("tool", "tools").unwrap_err();
    assert_eq!(error.to_string(), "this needs tool, of Debian's package tools: install it");
    assert!(runs(&folder).is_empty());
}

#[test]
fn a_package_without_the_program_is_named() {
    let (_folder, installer) = installer("true");
    let error = installer.ensure("tool", "tools").unwrap_err();
    assert_eq!(error.to_string(), "apt-get has installed tools, but no tool is on the PATH");
}
