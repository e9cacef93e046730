//! The format of ZooKeeper's transaction log, as far as needed: a header of 16 bytes, then per transaction a
//! checksum (8 bytes), its length, its bytes and an end mark.

use std::path::{Path, PathBuf};

/// A transaction that concerns nodes of a consumer group.
pub struct Transaction {
    pub session: i64,
    pub zxid: i64,
    /// Epoch milliseconds of the server, when it took the request up.
    pub time: i64,
    pub change: Change,
}

pub enum Change {
    Create { path: String, data: Option<Vec<u8>>, acl: Vec<(i32, String, String)>, ephemeral: bool },
    SetData { path: String, data: Option<Vec<u8>> },
    Delete { path: String },
    CloseSession,
}

/// All transactions so far, in order.
pub fn transactions(data_folder: &Path) -> Vec<Transaction> {
    Tail::of(data_folder).more()
}

/// Follows the log as it grows.
pub struct Tail {
    folder: PathBuf,
    /// By its first transaction: the file that was read last, and how far.
    read: (i64, u64),
}

impl Tail {
    /// From its beginning.
    pub fn of(data_folder: &Path) -> Self {
        Self { folder: data_folder.join("version-2"), read: (i64::MIN, 0) }
    }

    /// What has been written since the last call, in order.
    pub fn more(&mut self) -> Vec<Transaction> {
        let mut files: Vec<(i64, PathBuf)> = std::fs::read_dir(&self.folder)
            .expect("ZooKeeper has a log")
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let first = path.file_name()?.to_str()?.strip_prefix("log.")?;
                Some((i64::from_str_radix(first, 16).ok()?, path))
            })
            .filter(|(first, _)| *first >= self.read.0)
            .collect();
        files.sort();
        files.iter().flat_map(|(first, path)| self.in_file(*first, path)).collect()
    }

    fn in_file(&mut self, first: i64, path: &Path) -> Vec<Transaction> {
        if self.read.0 != first {
            self.read = (first, HEADER);
        }
        let bytes = read_used(path, self.read.1);
        let mut rest = Bytes(&bytes);
        let mut all = Vec::new();
        // one that is being written is read the next time
        let mut whole = bytes.len();
        while let Some(transaction) = next(&mut rest) {
            all.extend(transaction);
            whole = rest.0.len();
        }
        self.read.1 += (bytes.len() - whole) as u64;
        all
    }
}

/// Bytes before the first transaction.
const HEADER: u64 = 16;

/// A log is allocated ahead of its use, 64 MiB of zeros.
fn read_used(path: &Path, from: u64) -> Vec<u8> {
    use std::io::{Read, Seek, SeekFrom};
    const BLOCK: usize = 1 << 18;
    let mut file = std::fs::File::open(path).expect("a log can be read");
    file.seek(SeekFrom::Start(from)).expect("a log can be read");
    let mut bytes = Vec::new();
    loop {
        let begin = bytes.len();
        let read = file.by_ref().take(BLOCK as u64).read_to_end(&mut bytes).expect("a log can be read");
        if read == 0 || bytes[begin..].iter().all(|byte| *byte == 0) {
            return bytes;
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
