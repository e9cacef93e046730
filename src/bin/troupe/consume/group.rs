//! What is done with the group before its member comes and after it has gone.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use kafka_troupe::ConsumerConfig;
use kafka_troupe::admin::{AdminError, ZooKeeperAdmin};
use tokio::time::sleep;

use super::kafka_offsets::{self, KafkaOffsets};
use crate::exit::Failure;

/// So long what is left of a member may be in the way of the group's removal: one that was cut off at its end.
const REMOVAL: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

/// Whether the member may come.
pub enum Prepared {
    Ready,
    /// It may not, and this is why.
    Refused(String),
}

/// A name as the old tool makes them.
pub fn temporary_name() -> String {
    // no crate for one number: the keys of a hasher are random
    format!("console-consumer-{}", RandomState::new().build_hasher().finish() % 100_000)
}

/// Looks whether there are brokers, and whether what the group has stored is in the way. A temporary group is given
/// another name when there is a group of that name: it would be removed with ours.
pub async fn prepare(
    config: &mut ConsumerConfig,
    temporary: bool,
    from_beginning: bool,
    delete: bool,
) -> Result<Prepared, Failure> {
    let admin = connect(config).await?;
    let free = if temporary { take_free(&admin, config, temporary_name).await } else { Ok(()) };
    let prepared = match free {
        Ok(()) => prepare_with(&admin, config, from_beginning, delete).await,
        Err(error) => Err(error.into()),
    };
    admin.close().await;
    prepared
}

/// Until the name is nobody's.
async fn take_free(
    admin: &ZooKeeperAdmin,
    config: &mut ConsumerConfig,
    mut another: impl FnMut() -> String,
) -> Result<(), AdminError> {
    while is_taken(admin, config).await? {
        config.group_id = another();
    }
    Ok(())
}

async fn is_taken(admin: &ZooKeeperAdmin, config: &ConsumerConfig) -> Result<bool, AdminError> {
    if admin.group_exists(&config.group_id).await? {
        return Ok(true);
    }
    match KafkaOffsets::of(config, admin).await? {
        Some(kafka) => kafka.any().await,
        None => Ok(false),
    }
}

async fn prepare_with(
    admin: &ZooKeeperAdmin,
    config: &ConsumerConfig,
    from_beginning: bool,
    delete: bool,
) -> Result<Prepared, Failure> {
    let group = &config.group_id;
    if config.bootstrap_servers.is_empty() && !admin.knows_brokers().await? {
        return Ok(Prepared::Refused("No brokers found in ZK.".to_owned()));
    }
    if delete {
        delete_stored(admin, config).await?;
    } else if from_beginning && has_offsets(admin, config).await? {
        return Ok(Prepared::Refused(format!(
            "Found previous offset information for this group {group}. Please use --delete-consumer-offsets to delete \
             previous offsets metadata"
        )));
    }
    Ok(Prepared::Ready)
}

/// Wherever the group stores them.
async fn has_offsets(admin: &ZooKeeperAdmin, config: &ConsumerConfig) -> Result<bool, AdminError> {
    if !admin.offsets(&config.group_id).await?.is_empty() {
        return Ok(true);
    }
    match KafkaOffsets::of(config, admin).await? {
        Some(kafka) => kafka.any().await,
        None => Ok(false),
    }
}

/// From Kafka first: it may refuse, and then nothing is deleted. ZooKeeper refuses for itself while the group has
/// members, but nothing in Kafka fences its offsets, so that they are looked for before.
async fn delete_stored(admin: &ZooKeeperAdmin, config: &ConsumerConfig) -> Result<(), Failure> {
    let group = &config.group_id;
    if let Some(kafka) = KafkaOffsets::of(config, admin).await? {
        let members = admin.members(group).await?;
        if !members.is_empty() {
            return Err(AdminError::Active { group: group.clone(), members }.into());
        }
        match kafka.delete().await {
            Err(error @ AdminError::Unsupported { .. }) => return Err(kafka_offsets::advice(config, &error)),
            deleted => deleted?,
        }
    }
    Ok(delete_nodes(admin, group).await?)
}

async fn delete_nodes(admin: &ZooKeeperAdmin, group: &str) -> Result<(), AdminError> {
    match admin.delete_group(group).await {
        Err(AdminError::NoSuchGroup { .. }) => Ok(()),
        deleted => deleted,
    }
}

/// Removes all of a temporary group whose member has gone. One that was cut off may be registered still, or write a
/// last time: it is tried again until nothing of it is left.
pub async fn remove(config: &ConsumerConfig) {
    let begun = Instant::now();
    loop {
        let removed = match connect(config).await {
            Ok(admin) => {
                let removed = removed_by(&admin, config).await;
                admin.close().await;
                removed
            }
            Err(error) => Err(error.to_string()),
        };
        match removed {
            Ok(()) => return,
            Err(_) if begun.elapsed() < REMOVAL => sleep(PAUSE).await,
            Err(why) => {
                say!("the temporary group {} is left behind: {why}", config.group_id);
                return;
            }
        }
    }
}

/// Its offsets in Kafka too, if it has any there.
async fn removed_by(admin: &ZooKeeperAdmin, config: &ConsumerConfig) -> Result<(), String> {
    let removed = async {
        delete_nodes(admin, &config.group_id).await?;
        match KafkaOffsets::of(config, admin).await? {
            Some(kafka) => kafka.delete().await,
            None => Ok(()),
        }
    };
    match removed.await {
        // they go by themselves, after offsets.retention.minutes
        Ok(()) | Err(AdminError::Unsupported { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

async fn connect(config: &ConsumerConfig) -> Result<ZooKeeperAdmin, Failure> {
    let connect =
        ZooKeeperAdmin::connect(config.zookeeper_connect.clone(), config.zookeeper_connection_timeout);
    Ok(connect.await?)
}

#[cfg(test)]
mod tests {
    use kafka_troupe::actors::testkit::MemoryZooKeeper;

    use super::*;

    #[actix::test]
    async fn a_temporary_group_takes_no_name_that_another_has() {
        let zookeeper = MemoryZooKeeper::default();
        for taken in ["1", "2"] {
            zookeeper.put(&format!("/consumers/console-consumer-{taken}/ids"), b"");
        }
        let servers = "memory".parse().unwrap();
        let admin = ZooKeeperAdmin::over(&zookeeper, servers, Duration::from_secs(9)).await.unwrap();
        let config = ConsumerConfig::builder().zookeeper_connect("memory").group_id("console-consumer-1");
        let mut config = config.build().unwrap();
        let mut names = ["console-consumer-2", "console-consumer-3"].map(str::to_owned).into_iter();
        take_free(&admin, &mut config, || names.next().unwrap()).await.unwrap();
        assert_eq!(config.group_id, "console-consumer-3");
    }
}
