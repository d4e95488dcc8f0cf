//! Configuration of a broker: Java's `broker.conf` keys as one typed table.
//!
//! Three shapes: text (properties of Java, or our own kebab-case YAML) → [`Settings`] (typed, bounds
//! checked) → options of each part. **Invariant:** no value ever becomes a command, and no key that
//! names a path or an address can be changed over the wire (CVE-2023-33246).

mod inert;
mod live;
mod load;
mod refused;
mod settings;
mod value;

pub use inert::UnknownKey;
pub use live::{LiveSettings, OVERRIDES_FILE, UpdateError, apply_overrides};
pub use load::{ConfigError, KeyError, Loaded, load, parse_properties};
pub use refused::RefusedValue;
pub use settings::{Change, KeyInfo, Settings};
pub use value::{BrokerRole, FlushDiskType, Int, RequestMode, ValueError};

#[cfg(test)]
mod tests;
