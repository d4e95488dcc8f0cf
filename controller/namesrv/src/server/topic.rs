//! Topics by name: lists (206, 224, 304, 311 to 313), registering (217) and deleting (216) one.

use rmq_protocol::{
    body::{TopicList, TopicRouteData},
    header::{DeleteTopicFromNameServer, GetTopicsByCluster, TopicHeader},
};
use rmq_types::TopicName;

use super::{
    call::{Call, Handled, Refusal, echo},
    core::{Core, State},
};
use crate::route::{QueueSettings, TopicSummary};

pub(super) fn all(core: &Core, call: &Call<'_>) -> Handled {
    let list = {
        let state = core.read();
        enabled(state.options.live.enable_all_topic_list)?;
        named(state.table.topics(TopicSummary::All))
    };
    Ok(call.success().with_body(list.to_json()))
}

pub(super) fn of_cluster(core: &Core, call: &Call<'_>) -> Handled {
    let header: GetTopicsByCluster<'_> = call.fields()?;
    let list = {
        let state = core.read();
        enabled(state.options.live.enable_topic_list)?;
        named(state.table.topics_of_cluster(&header.cluster))
    };
    Ok(call.success().with_body(list.to_json()))
}

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one shape")]
pub(super) fn system(core: &Core, call: &Call<'_>) -> Handled {
    let list = {
        let state = core.read();
        let broker_addr = state.table.any_address().map(str::to_owned);
        TopicList {
            broker_addr,
            ..named(state.table.system_topics())
        }
    };
    Ok(call.success().with_body(list.to_json()))
}

pub(super) fn unit(core: &Core, call: &Call<'_>) -> Handled {
    by_flag(&core.read(), call, TopicSummary::Unit)
}

pub(super) fn unit_sub(core: &Core, call: &Call<'_>) -> Handled {
    by_flag(&core.read(), call, TopicSummary::UnitSub)
}

pub(super) fn unit_sub_not_unit(core: &Core, call: &Call<'_>) -> Handled {
    by_flag(&core.read(), call, TopicSummary::UnitSubNotUnit)
}

fn by_flag(state: &State, call: &Call<'_>, which: TopicSummary) -> Handled {
    enabled(state.options.live.enable_topic_list)?;
    Ok(call
        .success()
        .with_body(named(state.table.topics(which)).to_json()))
}

fn enabled(enabled: bool) -> Result<(), Refusal> {
    if enabled {
        Ok(())
    } else {
        Err(Refusal::error("disable"))
    }
}

fn named<'a>(topics: impl Iterator<Item = &'a str>) -> TopicList {
    TopicList {
        topic_list: topics.map(str::to_owned).collect(),
        ..TopicList::default()
    }
}

pub(super) fn register(core: &Core, call: &Call<'_>) -> Handled {
    let header: TopicHeader<'_> = call.fields()?;
    let topic = TopicName::parse(&header.topic).map_err(|error| Refusal::field("topic", error))?;
    if call.body.is_empty() {
        return Err(Refusal::error("the body holds no queues of the topic"));
    }
    let route = TopicRouteData::from_json(call.body).map_err(|error| Refusal::body(&error))?;
    let mut queues = Vec::with_capacity(route.queue_datas.len());
    for data in route.queue_datas {
        let settings = QueueSettings {
            read_queues: data.read_queue_nums,
            write_queues: data.write_queue_nums,
            perm: data.perm,
            sys_flag: data.topic_sys_flag,
        };
        if !settings.is_sane() {
            let broker = echo(&data.broker_name);
            return Err(Refusal::error(format!(
                "bad queue numbers for broker {broker}"
            )));
        }
        queues.push((data.broker_name, settings));
    }
    let registered = core.write().table.register_topic(&topic, &queues);
    registered.map_err(|error| Refusal::error(echo(&error.to_string())))?;
    Ok(call.success())
}

pub(super) fn delete(core: &Core, call: &Call<'_>) -> Handled {
    let header: DeleteTopicFromNameServer<'_> = call.fields()?;
    let cluster = header
        .cluster_name
        .as_deref()
        .filter(|cluster| !cluster.is_empty());
    core.write().table.delete_topic(&header.topic, cluster);
    tracing::info!(
        topic = echo(&header.topic),
        cluster = cluster.map(echo),
        "topic removed from routes"
    );
    Ok(call.success())
}
