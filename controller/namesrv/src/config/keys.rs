//! The table of keys: Java's names, what they set here, and who may change them when.
//!
//! This is the one place where Java's key names appear. A key without an effect here is listed with
//! the reason, so that a Java file is read and its owner told; a key not listed is refused.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use super::{NamesrvOptions, nearest::nearest_of, yaml::Form, yaml::kebab_case};

/// Who may change a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// While the server runs.
    Live,
    /// At the start only.
    Start,
    /// Never over the wire, not even by asking: paths and the black list itself.
    Forbidden,
}

type Get = fn(&NamesrvOptions) -> String;
type Set = fn(&mut NamesrvOptions, &str) -> Result<(), String>;

#[derive(Clone, Copy)]
enum Effect {
    Value {
        get: Get,
        set: Set,
    },
    /// Read and not used: the reason.
    None(&'static str),
    /// Only `false` is possible.
    Off(&'static str),
}

pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) reach: Reach,
    effect: Effect,
}

impl Key {
    pub(super) fn get(&self, options: &NamesrvOptions) -> Option<String> {
        match self.effect {
            Effect::Value { get, .. } => Some(get(options)),
            Effect::None(_) | Effect::Off(_) => None,
        }
    }

    pub(super) fn set(&self, options: &mut NamesrvOptions, text: &str) -> Result<(), String> {
        match self.effect {
            Effect::Value { set, .. } => set(options, text),
            Effect::None(_) => Ok(()),
            Effect::Off(reason) => match switch(text) {
                Ok(false) => Ok(()),
                Ok(true) => Err(reason.to_owned()),
                Err(problem) => Err(problem),
            },
        }
    }

    /// Why setting the key changes nothing.
    pub(super) fn note(&self) -> Option<&'static str> {
        match self.effect {
            Effect::None(reason) => Some(reason),
            Effect::Value { .. } | Effect::Off(_) => None,
        }
    }
}

const fn value(name: &'static str, reach: Reach, get: Get, set: Set) -> Key {
    Key {
        name,
        reach,
        effect: Effect::Value { get, set },
    }
}

const fn unused(name: &'static str) -> Key {
    let reason = "tunes the Java server and has no effect here";
    Key {
        name,
        reach: Reach::Start,
        effect: Effect::None(reason),
    }
}

const fn off(name: &'static str, reason: &'static str) -> Key {
    Key {
        name,
        reach: Reach::Start,
        effect: Effect::Off(reason),
    }
}

const fn path_unused(name: &'static str, reason: &'static str) -> Key {
    Key {
        name,
        reach: Reach::Forbidden,
        effect: Effect::None(reason),
    }
}

macro_rules! live_switch {
    ($name:literal, $field:ident) => {
        value(
            $name,
            Reach::Live,
            |options| options.live.$field.to_string(),
            |options, text| {
                options.live.$field = switch(text)?;
                Ok(())
            },
        )
    };
}

static KEYS: [Key; 17] = [
    value(
        "bindAddress",
        Reach::Start,
        |options| options.bind_address.to_string(),
        set_address,
    ),
    value(
        "configBlackList",
        Reach::Forbidden,
        |options| options.black_list.join(";"),
        |options, text| {
            let names = text
                .split(';')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            options.black_list = names.map(str::to_owned).collect();
            Ok(())
        },
    ),
    value(
        "connectionsMax",
        Reach::Start,
        |options| options.connections_max.to_string(),
        |options, text| {
            options.connections_max = number(text, 1, 10_000_000)? as usize;
            Ok(())
        },
    ),
    live_switch!(
        "deleteTopicWithBrokerRegistration",
        delete_topic_with_broker_registration
    ),
    live_switch!("enableAllTopicList", enable_all_topic_list),
    live_switch!("enableTopicList", enable_topic_list),
    value(
        "kvConfigPath",
        Reach::Forbidden,
        |o| o.kv_path.display().to_string(),
        set_kv_path,
    ),
    value(
        "listenPort",
        Reach::Start,
        |options| options.listen_port.to_string(),
        |options, text| {
            options.listen_port = number(text, 0, u64::from(u16::MAX))? as u16;
            Ok(())
        },
    ),
    live_switch!("needWaitForService", need_wait_for_service),
    live_switch!("notifyMinBrokerIdChanged", notify_min_broker_id_changed),
    live_switch!("orderMessageEnable", order_message_enable),
    live_switch!(
        "returnOrderTopicConfigToBroker",
        return_order_topic_config_to_broker
    ),
    value(
        "scanNotActiveBrokerInterval",
        Reach::Live,
        |options| options.live.scan_interval.as_millis().to_string(),
        |options, text| {
            options.live.scan_interval = Duration::from_millis(number(text, 10, 3_600_000)?);
            Ok(())
        },
    ),
    value(
        "serverChannelMaxIdleTimeSeconds",
        Reach::Start,
        |options| options.idle_timeout.as_secs().to_string(),
        |options, text| {
            options.idle_timeout = Duration::from_secs(number(text, 1, 86_400)?);
            Ok(())
        },
    ),
    live_switch!("supportActingMaster", support_acting_master),
    value(
        "waitSecondsForService",
        Reach::Live,
        |options| options.live.wait_for_service.as_secs().to_string(),
        |options, text| {
            options.live.wait_for_service = Duration::from_secs(number(text, 0, 86_400)?);
            Ok(())
        },
    ),
    off("useTLS", "TLS is not supported yet; only false is possible"),
];

static UNUSED: [Key; 40] = [
    path_unused(
        "configStorePath",
        "has no effect here: live changes are not written to a file",
    ),
    path_unused(
        "rocketmqHome",
        "has no effect here: there is no installation folder",
    ),
    off(
        "clusterTest",
        "the cluster-test name server is not supported; only false is possible",
    ),
    off(
        "enableControllerInNamesrv",
        "the controller is a role of its own; only false is possible",
    ),
    unused("productEnvName"),
    unused("clientRequestThreadPoolNums"),
    unused("clientRequestThreadPoolQueueCapacity"),
    unused("defaultThreadPoolNums"),
    unused("defaultThreadPoolQueueCapacity"),
    unused("unRegisterBrokerQueueCapacity"),
    unused("serverWorkerThreads"),
    unused("serverCallbackExecutorThreads"),
    unused("serverSelectorThreads"),
    unused("serverOnewaySemaphoreValue"),
    unused("serverAsyncSemaphoreValue"),
    unused("serverSocketSndBufSize"),
    unused("serverSocketRcvBufSize"),
    unused("serverSocketBacklog"),
    unused("serverNettyWorkerGroupEnable"),
    unused("serverPooledByteBufAllocatorEnable"),
    unused("writeBufferHighWaterMark"),
    unused("writeBufferLowWaterMark"),
    unused("enableShutdownGracefully"),
    unused("shutdownWaitTimeSeconds"),
    unused("useEpollNativeSelector"),
    unused("clientWorkerThreads"),
    unused("clientCallbackExecutorThreads"),
    unused("clientOnewaySemaphoreValue"),
    unused("clientAsyncSemaphoreValue"),
    unused("connectTimeoutMillis"),
    unused("channelNotActiveInterval"),
    unused("clientChannelMaxIdleTimeSeconds"),
    unused("clientSocketSndBufSize"),
    unused("clientSocketRcvBufSize"),
    unused("clientPooledByteBufAllocatorEnable"),
    unused("clientCloseSocketIfTimeout"),
    unused("disableCallbackExecutor"),
    unused("disableNettyWorkerGroup"),
    unused("maxReconnectIntervalTimeSeconds"),
    unused("socksProxyConfig"),
];

pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(&UNUSED)
}

pub(super) fn find(name: &str) -> Option<&'static Key> {
    all().find(|key| key.name == name)
}

pub(super) fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, all().map(|key| key.name))
}

/// The key with this name in a text of this form; YAML takes Java's spelling as well.
pub(super) fn find_in(form: Form, name: &str) -> Option<&'static Key> {
    match form {
        Form::Properties => find(name),
        Form::Yaml => all().find(|key| key.name == name || kebab_case(key.name) == name),
    }
}

/// As [`nearest`], spelled as in the form.
pub(super) fn nearest_in(form: Form, name: &str) -> Option<String> {
    match form {
        Form::Properties => nearest(name).map(str::to_owned),
        Form::Yaml => nearest(&name.replace('-', "")).map(kebab_case),
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("it must be a number from {min} to {max}"))
}

fn set_address(options: &mut NamesrvOptions, text: &str) -> Result<(), String> {
    options.bind_address = if text == "localhost" {
        IpAddr::from([127, 0, 0, 1])
    } else {
        text.parse()
            .map_err(|_| "it must be an IPv4 or IPv6 address".to_owned())?
    };
    Ok(())
}

fn set_kv_path(options: &mut NamesrvOptions, text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains('\0') {
        return Err("it must be a file's path".to_owned());
    }
    options.kv_path = PathBuf::from(text);
    Ok(())
}
