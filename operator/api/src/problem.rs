//! What is wrong in a manifest, and at which field.
//!
//! **Invariant:** a problem names one field of the manifest in the user's own spelling, so that a
//! person can find it and a condition in a status can carry it.

use rmq_types::NameError;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Problem {
    /// Where.
    pub field: Field,
    /// What.
    pub reason: Reason,
}

/// A field of the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// `metadata.name`
    Name,
    /// `spec.version`
    Version,
    /// `spec.clusterName`
    ClusterName,
    /// `spec.nameServer.replicas`
    NameServerReplicas,
    /// `spec.nameServer.config`
    NameServerConfig,
    /// A key in `spec.nameServer.config`
    NameServerConfigKey(String),
    /// `spec.brokers.groups`
    BrokerGroups,
    /// `spec.brokers.namePrefix`
    BrokerNamePrefix,
    /// `spec.brokers.replicasPerGroup`
    ReplicasPerGroup,
    /// `spec.brokers.storage.size`
    StorageSize,
    /// `spec.brokers.flush`
    Flush,
    /// `spec.brokers.config`
    BrokerConfig,
    /// A key in `spec.brokers.config`
    BrokerConfigKey(String),
    /// `spec.controller.replicas`
    ControllerReplicas,
    /// `spec.proxy.replicas`
    ProxyReplicas,
    /// Any other field of the manifest, by its path from `spec`.
    Spec(String),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("metadata.name"),
            Self::Version => f.write_str("spec.version"),
            Self::ClusterName => f.write_str("spec.clusterName"),
            Self::NameServerReplicas => f.write_str("spec.nameServer.replicas"),
            Self::NameServerConfig => f.write_str("spec.nameServer.config"),
            Self::NameServerConfigKey(key) => {
                write!(f, "spec.nameServer.config.{}", key.escape_debug())
            }
            Self::BrokerGroups => f.write_str("spec.brokers.groups"),
            Self::BrokerNamePrefix => f.write_str("spec.brokers.namePrefix"),
            Self::ReplicasPerGroup => f.write_str("spec.brokers.replicasPerGroup"),
            Self::StorageSize => f.write_str("spec.brokers.storage.size"),
            Self::Flush => f.write_str("spec.brokers.flush"),
            Self::BrokerConfig => f.write_str("spec.brokers.config"),
            Self::BrokerConfigKey(key) => {
                write!(f, "spec.brokers.config.{}", key.escape_debug())
            }
            Self::ControllerReplicas => f.write_str("spec.controller.replicas"),
            Self::ProxyReplicas => f.write_str("spec.proxy.replicas"),
            Self::Spec(path) => write!(f, "spec.{}", path.escape_debug()),
        }
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The field must be there.
    #[error("is required")]
    Missing,
    /// A number out of its bounds.
    #[error("must be from {min} to {max}, but is {value}")]
    OutOfRange {
        /// What was written.
        value: i32,
        /// Smallest.
        min: i32,
        /// Largest.
        max: i32,
    },
    /// A majority needs an odd number.
    #[error("must be odd, but is {value}: an even quorum survives no more failures than one less")]
    Even {
        /// What was written.
        value: i32,
    },
    /// A name that cannot become part of an object's name in Kubernetes.
    #[error(
        "`{text}` must be 1 to {max} lower-case letters, digits and '-', beginning with a letter \
         and not ending with '-'"
    )]
    NotALabel {
        /// What was written.
        text: String,
        /// Most bytes.
        max: usize,
    },
    /// A name RocketMQ does not take.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// No version.
    #[error("`{text}` is no version: write three numbers, such as 0.1.0")]
    NotAVersion {
        /// What was written.
        text: String,
    },
    /// Nothing.
    #[error("must be more than nothing")]
    Zero,
    /// The key is set through another field.
    #[error("is set by {owner}; remove it here")]
    Owned {
        /// Who sets it.
        owner: &'static str,
    },
    /// The key cannot be one.
    #[error("is no configuration key: keys are letters, digits, '.', '_' and '-'")]
    BadKey,
    /// The value would break the line of a properties file.
    #[error("its value holds a line break or control character")]
    BadValue,
    /// Fields that do not go together, or a value that cannot be carried out; see `rules`.
    #[error("{says}")]
    Rule {
        /// What must hold.
        says: &'static str,
    },
    /// The program that would read the key does not take it, in its own words.
    #[error("{says}")]
    Program {
        /// What it says.
        says: String,
    },
    /// The same thing named twice.
    #[error("names {what} twice")]
    Twice {
        /// What.
        what: String,
    },
    /// Cannot be changed.
    #[error("cannot be changed: it was {was}")]
    Immutable {
        /// What it was.
        was: String,
    },
    /// Too many keys.
    #[error("has {count} keys, more than {max}")]
    TooManyKeys {
        /// How many.
        count: usize,
        /// Most.
        max: usize,
    },
}
