use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::{Decoder, value};
use crate::record::Record;

/// The value as JSON text of a type that serde can read. Null (a tombstone) is an error, and so is what follows the
/// JSON; the text `null` is whatever the type makes of it.
///
/// ```
/// use kafka_troupe_actors::{Subscription, decoder::Json};
///
/// #[derive(serde::Deserialize)]
/// struct Order {
///     id: u64,
///     lines: Vec<String>,
/// }
///
/// let subscription = Subscription::topic("orders").decoder(Json::<Order>::new());
/// ```
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned + 'static> Json<T> {
    /// The type is all that it needs.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: DeserializeOwned + 'static> Decoder for Json<T> {
    type Output = T;

    fn decode(&self, record: &Record) -> Result<T, Box<dyn Error + Send + Sync>> {
        Ok(serde_json::from_slice(value(record)?)?)
    }
}

impl<T: DeserializeOwned + 'static> Default for Json<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json<{}>", std::any::type_name::<T>())
    }
}
