//! A way to a ZooKeeper in memory on which something foreign happens exactly between two of our operations.
//!
//! Operations on the offset and the owner node of partition 0 of topic `t` are counted, from 1, since the script was
//! begun; all others pass uncounted.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kafka_troupe_actors::zk_session::port::{
    ConnectSpec, EventSink, NodeMode, Stat, ZkClient, ZkConnector, ZkFuture, ZkTask,
};

use kafka_troupe_actors::testkit::MemoryZooKeeper;

const TOPIC: &str = "/brokers/topics/t";

type Act = Box<dyn FnOnce() + Send>;

#[derive(Clone, Default)]
pub struct Scripted {
    pub ensemble: MemoryZooKeeper,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    steps: Vec<String>,
    before: BTreeMap<usize, Act>,
    before_first: BTreeMap<&'static str, Act>,
    after: BTreeMap<usize, Act>,
    before_topic: Option<ZkTask>,
}

impl Scripted {
    pub fn over(ensemble: &MemoryZooKeeper) -> Self {
        Self { ensemble: ensemble.clone(), script: Arc::default() }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Counting begins again.
    pub fn begin(&self) {
        *self.script() = Script::default();
    }

    /// What was asked since then.
    pub fn steps(&self) -> Vec<String> {
        self.script().steps.clone()
    }

    /// Has something happen before our operation number `step` reaches the ensemble.
    pub fn before(&self, step: usize, act: impl FnOnce() + Send + 'static) {
        self.script().before.insert(step, Box::new(act));
    }

    /// Has something happen before our first operation of this name, such as `create owner`, reaches the ensemble.
    pub fn before_first(&self, operation: &'static str, act: impl FnOnce() + Send + 'static) {
        self.script().before_first.insert(operation, Box::new(act));
    }

    /// Has something happen after the ensemble has answered our operation number `step`, and before we know it.
    pub fn after(&self, step: usize, act: impl FnOnce() + Send + 'static) {
        self.script().after.insert(step, Box::new(act));
    }

    /// Has something awaited before the topic's own node is read next.
    pub fn before_topic(&self, act: impl Future<Output = ()> + Send + 'static) {
        self.script().before_topic = Some(Box::pin(act));
    }

    fn run<T: Send + 'static>(
        &self,
        operation: &str,
        path: &str,
        run: impl FnOnce() -> ZkFuture<T>,
    ) -> ZkFuture<T> {
        let node = ["offset", "owner"].into_iter().find(|node| path.ends_with(&format!("/{node}s/t/0")));
        let Some(node) = node else { return run() };
        let (step, before) = {
            let mut script = self.script();
            let name = format!("{operation} {node}");
            let first = script.before_first.remove(name.as_str());
            script.steps.push(name);
            let step = script.steps.len();
            (step, script.before.remove(&step).or(first))
        };
        // the script is not locked while others act, nor while the ensemble works
        before.into_iter().for_each(|act| act());
        let (answer, script) = (run(), self.clone());
        Box::pin(async move {
            let answer = answer.await;
            let after = script.script().after.remove(&step);
            after.into_iter().for_each(|act| act());
            answer
        })
    }
}

impl ZkConnector for Scripted {
    fn connect(&self, spec: ConnectSpec, events: EventSink) -> ZkFuture<Arc<dyn ZkClient>> {
        let (script, connecting) = (self.clone(), self.ensemble.connect(spec, events));
        Box::pin(async move {
            let client = connecting.await?;
            Ok(Arc::new(ScriptedClient { client, script }) as Arc<dyn ZkClient>)
        })
    }
}

struct ScriptedClient {
    client: Arc<dyn ZkClient>,
    script: Scripted,
}

impl ZkClient for ScriptedClient {
    fn children(&self, path: &str, watch: bool) -> ZkFuture<Vec<String>> {
        self.client.children(path, watch)
    }

    fn data(&self, path: &str, watch: bool) -> ZkFuture<(Vec<u8>, Stat)> {
        let before = if path == TOPIC { self.script.script().before_topic.take() } else { None };
        let Some(before) = before else {
            return self.script.run("read", path, || self.client.data(path, watch));
        };
        let client = self.client.clone();
        Box::pin(async move {
            before.await;
            client.data(TOPIC, watch).await
        })
    }

    fn exists(&self, path: &str, watch: bool) -> ZkFuture<Option<Stat>> {
        self.client.exists(path, watch)
    }

    fn create(&self, path: &str, data: Vec<u8>, mode: NodeMode) -> ZkFuture<()> {
        self.script.run("create", path, || self.client.create(path, data, mode))
    }

    fn set_data(&self, path: &str, data: Vec<u8>, version: Option<i32>) -> ZkFuture<Stat> {
        self.script.run("set", path, || self.client.set_data(path, data, version))
    }

    fn beat(&self, path: &str) -> ZkFuture<Stat> {
        self.client.beat(path)
    }

    fn delete(&self, path: &str, version: Option<i32>) -> ZkFuture<()> {
        self.script.run("delete", path, || self.client.delete(path, version))
    }

    fn close(&self) -> ZkFuture<()> {
        self.client.close()
    }

    fn end(&self) {
        self.client.end();
    }

    fn spawn(&self, task: ZkTask) {
        self.client.spawn(task);
    }

    fn session_timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    fn in_flight(&self) -> usize {
        self.client.in_flight()
    }
}
