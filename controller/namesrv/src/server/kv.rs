//! KV configuration requests (100, 101, 102, 219). Putting and deleting write a file: they run on
//! the housekeeping thread.

use rmq_protocol::{
    body::KvTable,
    header::{GetKvResponse, KvKey, KvNamespace, PutKv},
    remoting::response_code,
};

use super::{
    call::{Call, Handled, Refusal, echo},
    core::Core,
};
use crate::kv::{ChangeError, ORDER_TOPIC_NAMESPACE};

pub(super) fn put(core: &Core, call: &Call<'_>) -> Handled {
    let header: PutKv<'_> = call.fields()?;
    let changed = core.kv.put(&header.namespace, &header.key, &header.value);
    finish(core, call, &header.namespace, changed)
}

pub(super) fn delete(core: &Core, call: &Call<'_>) -> Handled {
    let header: KvKey<'_> = call.fields()?;
    let changed = core.kv.delete(&header.namespace, &header.key);
    finish(core, call, &header.namespace, changed)
}

fn finish(
    core: &Core,
    call: &Call<'_>,
    namespace: &str,
    changed: Result<(), ChangeError>,
) -> Handled {
    match changed {
        Ok(()) => {
            if namespace == ORDER_TOPIC_NAMESPACE {
                core.write().table.forget_answers();
            }
            Ok(call.success())
        }
        Err(error) => {
            if let ChangeError::NotSaved(error) = &error {
                tracing::error!(%error, "KV configuration not changed");
            }
            Err(Refusal::error(error.to_string()))
        }
    }
}

pub(super) fn get(core: &Core, call: &Call<'_>) -> Handled {
    let header: KvKey<'_> = call.fields()?;
    let table = core.kv.table();
    match table.get(&header.namespace, &header.key) {
        Some(value) => Ok(call.success().with_header(&GetKvResponse {
            value: Some(value.into()),
        })),
        None => Err(Refusal::new(
            response_code::QUERY_NOT_FOUND,
            format!(
                "No config item, Namespace: {} Key: {}",
                echo(&header.namespace),
                echo(&header.key)
            ),
        )),
    }
}

pub(super) fn list(core: &Core, call: &Call<'_>) -> Handled {
    let header: KvNamespace<'_> = call.fields()?;
    match core.kv.table().namespace(&header.namespace) {
        Some(table) => Ok(call.success().with_body(
            KvTable {
                table: table.clone(),
            }
            .to_json(),
        )),
        None => Err(Refusal::new(
            response_code::QUERY_NOT_FOUND,
            format!("No config item, Namespace: {}", echo(&header.namespace)),
        )),
    }
}
