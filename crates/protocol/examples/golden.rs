//! Prints our encoding of every fixture as `name hex` lines, for the Java check in `e2e/golden`.
//!
//! Each line must mean to the official classes what their own line of that name means.

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    io::{self, Write},
    net::SocketAddr,
};

use common::{ADMIN_BODIES, BODIES, RECORDS, bodies, fixture, frames, hex, pop};
use rmq_protocol::{
    java_properties,
    message::{OffsetId, Record, batch, properties},
};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (serializer, part) in frames::SERIALIZERS {
        for frame in frames::all() {
            let bytes = frames::encode(&frame.command, serializer);
            writeln!(out, "frame.{part}.{} {}", frame.name, hex(&bytes))?;
        }
    }
    for body in bodies::all() {
        writeln!(out, "body.{} {}", body.name, hex(&body.ours))?;
        let old = format!("body.{}.fastjson1", body.name);
        // Java's own old form of these two sets an attribute twice, through a later setter.
        if matches!(body.name, "TopicConfigWrapper" | "RegisterBrokerBody") {
            continue;
        }
        if fixture(BODIES, &old)
            .or_else(|| fixture(ADMIN_BODIES, &old))
            .is_some()
        {
            writeln!(out, "{old} {}", hex(&body.ours))?;
        }
    }
    for (name, route) in [
        ("TopicRouteData", bodies::route()),
        ("TopicRouteData.mapping", bodies::mapped_route()),
    ] {
        writeln!(out, "body.{name} {}", hex(&route.to_json_legacy()))?;
        writeln!(
            out,
            "body.{name}.fastjson1 {}",
            hex(&route.to_json_legacy())
        )?;
    }
    for (name, bytes) in others().into_iter().chain(pop::all()) {
        writeln!(out, "{name} {}", hex(&bytes))?;
    }
    Ok(())
}

fn others() -> Vec<(&'static str, Vec<u8>)> {
    let mut list = Vec::new();
    for name in [
        "record.v1",
        "record.v1_ipv6",
        "record.half",
        "record.empty_body",
    ] {
        let bytes = fixture(RECORDS, name).expect("a record");
        let (record, _) = Record::decode(&bytes).expect("Java's record");
        let mut out = vec![0; record.encoded_len()];
        let size = record.encode_into(&mut out).expect("the record fits");
        out.truncate(size);
        list.push((name, out));
    }
    let bytes = fixture(RECORDS, "batch.two").expect("a batch");
    let mut out = Vec::new();
    for item in batch::iter(&bytes) {
        batch::push(&mut out, &item.expect("Java's item"));
    }
    list.push(("batch.two", out));
    for (name, host, offset) in [
        (
            "offset_id.v4",
            SocketAddr::from(([10, 0, 0, 1], 10_911)),
            1_234_567_890_123,
        ),
        (
            "offset_id.v6",
            SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2], 10_911)),
            4096,
        ),
    ] {
        let mut text = String::new();
        OffsetId { host, offset }.write(&mut text);
        list.push((name, text.into_bytes()));
    }
    let mut text = Vec::new();
    for (name, value) in [
        ("KEYS", "k1 k2"),
        ("TAGS", "TagA"),
        ("WAIT", "false"),
        ("主", "题"),
    ] {
        properties::push(&mut text, name, value.as_bytes());
    }
    list.push(("message_properties", text));
    for name in ["config_text", "config_text_odd"] {
        let text = fixture(RECORDS, name).expect("a text");
        let map = java_properties::parse_map(&text).expect("Java's text");
        list.push((name, java_properties::write(&map).into_bytes()));
    }
    list
}
