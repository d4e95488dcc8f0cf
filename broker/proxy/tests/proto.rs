//! What is committed of the proto file: the Rust code and the descriptor set for reflection.
//!
//! **Invariant:** both are what the generator makes of the text today. `RMQ_WRITE_PROTO=1 cargo test
//! -p rmq-proxy --test proto` writes them anew. The generator is a dependency of tests only, so that
//! building the program needs neither it nor `protoc`.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message as _;

const MARK: &str = "// @generated from proto/rocketmq.proto; see tests/proto.rs\n";

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/proto")
}

#[cfg(test)]
fn generate(out: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let set = protox::compile(["rocketmq.proto"], [&folder]).unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .out_dir(out)
        .compile_fds(set.clone())
        .unwrap();
    let code = fs::read_to_string(out.join("apache.rocketmq.v2.rs")).unwrap();
    let mut bare = set;
    for file in &mut bare.file {
        file.source_code_info = None;
    }
    vec![
        ("generated.rs", format!("{MARK}{code}").into_bytes()),
        ("descriptor.bin", bare.encode_to_vec()),
    ]
}

#[test]
fn proto_is_current() {
    let out = tempfile::tempdir().unwrap();
    let write = std::env::var_os("RMQ_WRITE_PROTO").is_some();
    for (name, bytes) in generate(out.path()) {
        let path = committed().join(name);
        if write {
            fs::write(&path, bytes).unwrap();
            continue;
        }
        let found = fs::read(&path).unwrap();
        assert!(
            found == bytes,
            "src/proto/{name} is not what proto/rocketmq.proto says: \
             RMQ_WRITE_PROTO=1 cargo test -p rmq-proxy --test proto"
        );
    }
}
