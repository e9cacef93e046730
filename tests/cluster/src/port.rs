//! Free ports that stay ours.

use crate::ClusterError;
use rustix::fs::{FlockOperation, flock};
use std::{
    env,
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, TcpListener},
    sync::Mutex,
};

/// Below Linux's range of ephemeral ports (32768 up), so that no outgoing connection takes the port of a server
/// that is about to be restarted on it.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// Locks of the ports given out, held until the process ends.
static LEASES: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 on which nothing listens and that no other call of this function, in this or any other live
/// process of the user, gets.
///
/// # Errors
/// [`ClusterError::Io`] if the folder of the leases cannot be written, [`ClusterError::Invalid`] if all are taken.
pub fn free_port() -> Result<u16, ClusterError> {
    let folder =
        env::temp_dir().join(format!("troupe-cluster-ports-{}", rustix::process::geteuid().as_raw()));
    fs::create_dir_all(&folder).map_err(ClusterError::io(format!("create {}", folder.display())))?;
    let span = u64::from(RANGE.end - RANGE.start);
    let first = RandomState::new().hash_one(()) % span;
    for step in 0..span {
        let port = RANGE.start + u16::try_from((first + step) % span).unwrap_or_default();
        let lease = folder.join(port.to_string());
        let lease = File::create(&lease).map_err(ClusterError::io(format!("create {}", lease.display())))?;
        let free = flock(&lease, FlockOperation::NonBlockingLockExclusive).is_ok()
            && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if free {
            LEASES.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(lease);
            return Ok(port);
        }
    }
    Err(ClusterError::Invalid(format!("no free port of 127.0.0.1 in {RANGE:?}")))
}
