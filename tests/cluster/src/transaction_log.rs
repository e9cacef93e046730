//! ZooKeeper's transaction log, as far as needed: a header of 16 bytes, then per transaction a checksum (8 bytes), its
//! length, its bytes and an end mark.

use crate::ClusterError;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// A transaction that changed nodes, or ended a session with its nodes.
pub struct Transaction {
    /// The session of the client that asked for it.
    pub session: i64,
    /// Its number.
    pub zxid: i64,
    /// Epoch milliseconds of the server, when it took the request up.
    pub time: i64,
    /// What it did.
    pub change: Change,
}

/// What a [`Transaction`] did.
pub enum Change {
    /// A node was made.
    Create {
        /// With the chroot, as all paths here.
        path: String,
        /// None is null, which is not the same as empty.
        data: Option<Vec<u8>>,
        /// Permissions, scheme and id of each entry.
        acl: Vec<(i32, String, String)>,
        /// Whether it goes with its session.
        ephemeral: bool,
    },
    /// A node was given another value.
    SetData {
        /// Its path.
        path: String,
        /// None is null, which is not the same as empty.
        data: Option<Vec<u8>>,
    },
    /// A node was deleted by a client.
    Delete {
        /// Its path.
        path: String,
    },
    /// A session ended, and its ephemeral nodes with it.
    CloseSession,
}

/// Follows the log as it grows; nobody is asked, so nobody is disturbed.
pub struct TransactionLog {
    folder: PathBuf,
    /// By its first transaction: the file that was read last, and how far.
    read: (i64, u64),
}

impl TransactionLog {
    /// From its beginning.
    pub(crate) fn of(data_folder: &Path) -> Self {
        Self { folder: data_folder.join("version-2"), read: (i64::MIN, 0) }
    }

    /// What has been written since the last call, in order.
    ///
    /// # Errors
    /// [`ClusterError::Io`] if there is no log, or it cannot be read.
    pub fn more(&mut self) -> Result<Vec<Transaction>, ClusterError> {
        let what = format!("read ZooKeeper's log in {}", self.folder.display());
        self.read_on().map_err(ClusterError::io(what))
    }

    fn read_on(&mut self) -> io::Result<Vec<Transaction>> {
        let mut files: Vec<(i64, PathBuf)> = std::fs::read_dir(&self.folder)?
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let first = path.file_name()?.to_str()?.strip_prefix("log.")?;
                Some((i64::from_str_radix(first, 16).ok()?, path))
            })
            .filter(|(first, _)| *first >= self.read.0)
            .collect();
        files.sort();
        let mut all = Vec::new();
        for (first, path) in files {
            self.read_file(first, &path, &mut all)?;
        }
        Ok(all)
    }

    fn read_file(&mut self, first: i64, path: &Path, all: &mut Vec<Transaction>) -> io::Result<()> {
        if self.read.0 != first {
            self.read = (first, HEADER);
        }
        let bytes = read_used(path, self.read.1)?;
        let mut rest = Bytes(&bytes);
        // one that is being written is read the next time
        let mut whole = bytes.len();
        while let Some(transaction) = next(&mut rest) {
            all.extend(transaction);
            whole = rest.0.len();
        }
        self.read.1 += (bytes.len() - whole) as u64;
        Ok(())
    }
}

/// Bytes before the first transaction.
const HEADER: u64 = 16;

/// A log is allocated ahead of its use, 64 MiB of zeros.
fn read_used(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    const BLOCK: usize = 1 << 18;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    loop {
        let begin = bytes.len();
        let read = file.by_ref().take(BLOCK as u64).read_to_end(&mut bytes)?;
        if read == 0 || bytes[begin..].iter().all(|byte| *byte == 0) {
            return Ok(bytes);
        }
    }
}

/// The next transaction, or none inside when it is of no interest; none at the end, or at one that is being written.
fn next(log: &mut Bytes<'_>) -> Option<Option<Transaction>> {
    log.long()?;
    let length = usize::try_from(log.int()?).ok().filter(|length| *length > 0)?;
    let mut body = Bytes(log.take(length)?);
    if log.take(1)? != b"B" {
        return None;
    }
    let (session, _cxid) = (body.long()?, body.int()?);
    let (zxid, time) = (body.long()?, body.long()?);
    let change = match body.int()? {
        1 | 15 => Some(Change::Create {
            path: body.text()?,
            data: body.buffer()?,
            acl: body.acl()?,
            ephemeral: body.take(1)? == [1],
        }),
        2 => Some(Change::Delete { path: body.text()? }),
        5 => Some(Change::SetData { path: body.text()?, data: body.buffer()? }),
        -11 => Some(Change::CloseSession),
        _ => None,
    };
    Some(change.map(|change| Transaction { session, zxid, time, change }))
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// `None` inside is null, which is not the same as empty.
    fn buffer(&mut self) -> Option<Option<Vec<u8>>> {
        match usize::try_from(self.int()?) {
            Ok(length) => Some(Some(self.take(length)?.to_vec())),
            Err(_) => Some(None),
        }
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.buffer()??).ok()
    }

    fn acl(&mut self) -> Option<Vec<(i32, String, String)>> {
        let count = self.int()?;
        (0..count).map(|_| Some((self.int()?, self.text()?, self.text()?))).collect()
    }
}
