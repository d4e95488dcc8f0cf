//! Response codes (`ResponseCode`, `RemotingSysResponseCode`).

macro_rules! codes {
    ($($name:ident = $code:literal, $when:literal;)*) => {
        $(#[doc = $when] pub const $name: i32 = $code;)*

        /// The name of a code, for people.
        #[must_use]
        pub const fn name(code: i32) -> &'static str {
            match code {
                $($code => stringify!($name),)*
                _ => "UNKNOWN",
            }
        }
    };
}

codes! {
    SUCCESS = 0, "Done.";
    SYSTEM_ERROR = 1, "Generic failure; the remark says what.";
    SYSTEM_BUSY = 2, "Overload: clients retry elsewhere.";
    REQUEST_CODE_NOT_SUPPORTED = 3, "Nobody handles this request code.";
    FLUSH_DISK_TIMEOUT = 10, "Stored, but not yet known to be on disk.";
    SLAVE_NOT_AVAILABLE = 11, "Stored, but no replica; or this broker is a replica.";
    FLUSH_SLAVE_TIMEOUT = 12, "Stored, but not yet on a replica.";
    MESSAGE_ILLEGAL = 13, "The message breaks a rule.";
    SERVICE_NOT_AVAILABLE = 14, "Not writable: disk full, replica, shutting down.";
    NO_PERMISSION = 16, "Not allowed.";
    TOPIC_NOT_EXIST = 17, "No such topic here.";
    PULL_NOT_FOUND = 19, "Nothing new.";
    PULL_RETRY_IMMEDIATELY = 20, "All filtered out: go on at the next offset.";
    PULL_OFFSET_MOVED = 21, "The offset is not in the queue; the header says where to go on.";
    QUERY_NOT_FOUND = 22, "Nothing stored under that name.";
    SUBSCRIPTION_PARSE_FAILED = 23, "The filter expression is broken.";
    SUBSCRIPTION_NOT_EXIST = 24, "The group has no such subscription.";
    SUBSCRIPTION_NOT_LATEST = 25, "The broker knows an older subscription.";
    SUBSCRIPTION_GROUP_NOT_EXIST = 26, "No such group.";
    FILTER_DATA_NOT_EXIST = 27, "No compiled filter.";
    FILTER_DATA_NOT_LATEST = 28, "An older compiled filter.";
    INVALID_PARAMETER = 29, "A parameter is out of its range.";
    CONSUMER_NOT_ONLINE = 206, "No such consumer is connected.";
    CONSUME_MSG_TIMEOUT = 207, "The client did not answer in time.";
    NO_MESSAGE = 208, "The offset is outside the queue.";
    POLLING_FULL = 209, "No more waiting pops are taken.";
    POLLING_TIMEOUT = 210, "Nothing arrived in time.";
    BROKER_NOT_EXIST = 211, "No such broker.";
    BROADCAST_CONSUMPTION = 213, "Not for a broadcasting group.";
    FLOW_CONTROL = 215, "Too fast.";
    NOT_LEADER_FOR_QUEUE = 501, "Static topic served elsewhere.";
    ILLEGAL_OPERATION = 604, "Not possible in this state.";
    GO_AWAY = 1500, "Reconnect elsewhere.";
    CONTROLLER_FENCED_MASTER_EPOCH = 2000, "The master's epoch is another one.";
    CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH = 2001, "The SyncStateSet's epoch is another one.";
    CONTROLLER_INVALID_MASTER = 2002, "The sender is not the master.";
    CONTROLLER_INVALID_REPLICAS = 2003, "The set holds a broker that is not registered.";
    CONTROLLER_MASTER_NOT_AVAILABLE = 2004, "The group has no master.";
    CONTROLLER_INVALID_REQUEST = 2005, "The request lacks what it needs.";
    CONTROLLER_BROKER_NOT_ALIVE = 2006, "The set holds a broker that is not alive.";
    CONTROLLER_NOT_LEADER = 2007, "Another controller leads.";
    CONTROLLER_BROKER_METADATA_NOT_EXIST = 2008, "The group is not known.";
    CONTROLLER_INVALID_CLEAN_BROKER_METADATA = 2009, "These ids cannot be cleaned.";
    CONTROLLER_BROKER_NEED_TO_BE_REGISTERED = 2010, "The broker must register first.";
    CONTROLLER_MASTER_STILL_EXIST = 2011, "The present master stays.";
    CONTROLLER_ELECT_MASTER_FAILED = 2012, "Nobody can be elected.";
    CONTROLLER_ALTER_SYNC_STATE_SET_FAILED = 2013, "The set cannot be altered so.";
    CONTROLLER_BROKER_ID_INVALID = 2014, "The id is taken.";
}
