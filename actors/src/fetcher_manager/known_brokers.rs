//! The brokers as the coordinator read them last, for whoever asks one now and then.

use std::sync::{Mutex, PoisonError};

use super::BrokerAddress;

/// The brokers that are registered, as the coordinator read them last; none before its first read. Outlives every
/// actor that looks at it.
#[derive(Debug, Default)]
pub struct KnownBrokers(Mutex<Vec<BrokerAddress>>);

impl KnownBrokers {
    /// They were read anew.
    pub fn set(&self, brokers: &[BrokerAddress]) {
        brokers.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// As they were read last.
    pub fn get(&self) -> Vec<BrokerAddress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
