//! `troupe groups list`.

use futures_util::stream::{self, StreamExt};
use kafka_troupe::admin::{AdminError, KafkaAdmin, KafkaGroupListing, ZooKeeperAdmin};
use serde::Serialize;

use super::kafka_group::shows_members;
use super::places::{Places, of_kafka};
use super::{AT_A_TIME, Coordination};
use crate::exit::{Answer, Failure, Outcome, finish};
use crate::output::{Output, Row, or_dash};
use crate::servers::Servers;

/// Which groups.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub servers: Servers,
    /// Only groups in these states, such as Stable,Empty
    #[arg(long, num_args = 0..=1, value_delimiter = ',', value_name = "STATE,..")]
    pub state: Option<Vec<String>>,
    /// Only groups of these types, such as classic,consumer
    #[arg(long, num_args = 0..=1, value_delimiter = ',', value_name = "TYPE,..")]
    pub r#type: Option<Vec<String>>,
}

/// Whether it is one of those asked for; without any, all are.
fn is_wanted(value: Option<&String>, wanted: Option<&Vec<String>>) -> bool {
    match wanted.map(Vec::as_slice) {
        None | Some([]) => true,
        Some(wanted) => {
            value.is_some_and(|value| wanted.iter().any(|it| it.trim().eq_ignore_ascii_case(value)))
        }
    }
}

/// A group.
#[derive(Debug, Serialize)]
struct Listed {
    group: String,
    coordination: Coordination,
    /// Of a Kafka group: classic, consumer (KIP-848), share, streams; brokers tell from 3.8 on.
    r#type: Option<String>,
    /// Of a Kafka group as its coordinator names it; of one in ZooKeeper, Active with members and Empty without.
    state: Option<String>,
    members: Option<usize>,
}

impl Row for Listed {
    const HEAD: &'static [&'static str] = &["GROUP", "COORDINATION", "TYPE", "STATE", "#MEMBERS"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.group.clone(),
            self.coordination.to_string(),
            or_dash(self.r#type.as_ref()),
            or_dash(self.state.as_ref()),
            or_dash(self.members),
        ]
    }
}

/// Lists groups.
pub async fn run(args: Args, output: Output) -> Outcome {
    let places = Places::of(&args.servers).await?;
    let (mut rows, mut failed) = (Vec::new(), None);
    if let Some(zookeeper) = &places.zookeeper {
        match in_zookeeper(zookeeper).await {
            Ok((told, why)) => (rows, failed) = (told, why.map(Failure::from)),
            Err(why) => failed = Some(why.into()),
        }
    }
    if let Some(kafka) = &places.kafka {
        match in_kafka(kafka).await {
            Ok((told, why)) => {
                rows.extend(told);
                failed = first(failed, why);
            }
            // there are none, then: brokers of 0.8 coordinate no groups
            Err(AdminError::Unsupported { .. }) if places.zookeeper.is_some() => {}
            Err(why) => failed.replace(why.into()).into_iter().for_each(|why| say!("{why}")),
        }
    }
    places.close().await;
    rows.retain(|row: &Listed| {
        is_wanted(row.state.as_ref(), args.state.as_ref())
            && is_wanted(row.r#type.as_ref(), args.r#type.as_ref())
    });
    rows.sort_by(|one, other| one.group.cmp(&other.group));
    let printed = match failed {
        Some(_) if rows.is_empty() => Ok(()),
        _ => output.print(&rows),
    };
    finish(printed, failed.map_or(Ok(Answer::Yes), Err))
}

/// Its groups, and why it does not tell members of some; these are listed all the same.
async fn in_zookeeper(admin: &ZooKeeperAdmin) -> Result<(Vec<Listed>, Option<AdminError>), AdminError> {
    let groups = admin.groups().await?;
    let rows = groups.into_iter().map(|group| async move {
        let members = admin.members(&group).await.map(|members| members.len());
        let (members, why) = members.map_or_else(|why| (None, Some(why)), |members| (Some(members), None));
        let state = members.map(|members| Coordination::state(members).to_owned());
        (Listed { group, coordination: Coordination::ZooKeeper, r#type: None, state, members }, why)
    });
    let (mut told, mut rows, mut first) = (stream::iter(rows).buffered(AT_A_TIME), Vec::new(), None);
    while let Some((row, why)) = told.next().await {
        match why {
            // it is away: the others would be waited for as long
            Some(AdminError::ZooKeeper(why)) if why.is_in_doubt() => return Err(why.into()),
            why => first = first.or(why),
        }
        rows.push(row);
    }
    Ok((rows, first))
}

/// Its groups, and why some may be missing.
async fn in_kafka(admin: &KafkaAdmin) -> Result<(Vec<Listed>, Option<Failure>), AdminError> {
    let (groups, missing) = of_kafka(admin).await?;
    let rows = groups.into_iter().map(|group| kafka_group(admin, group));
    let told: Vec<_> = stream::iter(rows).buffered(AT_A_TIME).collect().await;
    let (rows, errors): (Vec<_>, Vec<_>) = told.into_iter().unzip();
    let why = errors.into_iter().flatten().next().map(Failure::from);
    Ok((rows, first(missing, why)))
}

/// The one that the program ends with; the other is said.
fn first(one: Option<Failure>, other: Option<Failure>) -> Option<Failure> {
    let Some(one) = one else { return other };
    other.iter().for_each(|why| say!("{why}"));
    Some(one)
}

/// A group that cannot be described is listed all the same, with why.
async fn kafka_group(admin: &KafkaAdmin, listed: KafkaGroupListing) -> (Listed, Option<AdminError>) {
    let (described, why) = match admin.describe(&listed.name).await {
        Ok(described) => (Some(described), None),
        // gone since, or of brokers that list more than they describe
        Err(AdminError::NoSuchGroup { .. } | AdminError::Unsupported { .. }) => (None, None),
        Err(why) => (None, Some(why)),
    };
    let members =
        described.as_ref().filter(|group| shows_members(&group.group_type)).map(|it| it.members.len());
    let (group_type, state) = described.map(|group| (group.group_type, group.state)).unzip();
    let row = Listed {
        group: listed.name,
        coordination: Coordination::Kafka,
        r#type: listed.group_type.or(group_type),
        state: state.or(listed.state),
        members,
    };
    (row, why)
}
