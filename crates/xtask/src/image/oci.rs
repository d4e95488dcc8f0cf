//! The archive: an OCI image layout in a tar, with the index that `docker load` reads beside it.
//!
//! **Invariant:** every blob's name is the SHA-256 of its bytes and every descriptor's size is its
//! length. The bytes depend on the description and the program alone.
//!
//! Formats: OCI image-spec 1.1 (image layout, manifest, configuration, annotations).

use super::layer::{self, USER};
use anyhow::Context as _;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

const GZIP_LEVEL: u32 = 6;
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What the image says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// Name and tag, as `localhost/rocketmq:0.1.0`.
    pub(super) name: String,
    /// The product's version.
    pub(super) version: String,
    /// The commit.
    pub(super) revision: String,
    /// Seconds since 1970: the commit's time, not the build's.
    pub(super) created_secs: i64,
}

/// What was made.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    /// The tar.
    pub(super) bytes: Vec<u8>,
    /// The manifest's digest, which names the image whatever its tag says.
    pub(super) digest: String,
}

/// Blobs by the hexadecimal digits of their digest.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Takes a blob and gives its descriptor.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digits = sha256(&bytes);
        let descriptor = json!({
            "mediaType": media_type,
            "digest": format!("sha256:{digits}"),
            "size": bytes.len(),
        });
        self.0.insert(digits, bytes);
        descriptor
    }
}

/// Makes the archive.
pub(super) fn archive(description: &Description, program: &[u8]) -> anyhow::Result<Archive> {
    let layer = layer::tar(program)?;
    let mut blobs = Blobs::default();
    let config = config(description, &sha256(&layer))?;
    let config = blobs.add(CONFIG, serde_json::to_vec(&config)?);
    let layer = blobs.add(LAYER, gzip(&layer)?);
    let docker = json!([{
        "Config": blob_path(&config)?,
        "RepoTags": [description.name],
        "Layers": [blob_path(&layer)?],
    }]);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
        "annotations": labels(description)?,
    });
    let mut manifest = blobs.add(MANIFEST, serde_json::to_vec(&manifest)?);
    let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();
    let (_, tag) = description
        .name
        .rsplit_once(':')
        .context("an image name needs a tag: NAME:TAG")?;
    manifest["platform"] = json!({ "architecture": architecture()?, "os": "linux" });
    manifest["annotations"] = json!({
        "io.containerd.image.name": description.name,
        "org.opencontainers.image.ref.name": tag,
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] });

    let mut files = vec![
        ("index.json".to_owned(), serde_json::to_vec(&index)?),
        ("manifest.json".to_owned(), serde_json::to_vec(&docker)?),
        (
            "oci-layout".to_owned(),
            br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
        ),
    ];
    let blobs = blobs.0.into_iter();
    files.extend(blobs.map(|(digits, bytes)| (format!("blobs/sha256/{digits}"), bytes)));
    let bytes = tar(&files)?;
    Ok(Archive { bytes, digest })
}

fn config(description: &Description, layer_digits: &str) -> anyhow::Result<Value> {
    let created = rfc3339(description.created_secs)?;
    Ok(json!({
        "created": created,
        "architecture": architecture()?,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": [format!("/{}", layer::PROGRAM)],
            "WorkingDir": "/",
            "Labels": labels(description)?,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digits}")] },
        "history": [{ "created": created, "created_by": "cargo xtask image" }],
    }))
}

fn labels(description: &Description) -> anyhow::Result<Value> {
    Ok(json!({
        "org.opencontainers.image.title": "rocketmq",
        "org.opencontainers.image.description":
            "RocketMQ for Kubernetes: NameServer, broker, operator and tools in one program",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": description.version,
        "org.opencontainers.image.revision": description.revision,
        "org.opencontainers.image.created": rfc3339(description.created_secs)?,
    }))
}

/// Go's name of the architecture this was built for.
fn architecture() -> anyhow::Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => anyhow::bail!("no image for {other}: there are x86_64 and aarch64"),
    }
}

fn blob_path(descriptor: &Value) -> anyhow::Result<String> {
    let digest = descriptor["digest"].as_str().context("no digest")?;
    Ok(format!("blobs/{}", digest.replace(':', "/")))
}

fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn tar(files: &[(String, Vec<u8>)]) -> anyhow::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(u64::try_from(bytes.len())?);
        builder.append_data(&mut header, path, bytes.as_slice())?;
    }
    Ok(builder.into_inner()?)
}

/// `2026-11-30T12:00:00Z` of seconds since 1970.
fn rfc3339(seconds: i64) -> anyhow::Result<String> {
    let time = jiff::Timestamp::from_second(seconds).context("a time out of range")?;
    Ok(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::elf::program_with_header;
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    fn description() -> Description {
        Description {
            name: "localhost/rocketmq:0.1.0".to_owned(),
            version: "0.1.0".to_owned(),
            revision: "abc".to_owned(),
            created_secs: 1_780_000_000,
        }
    }

    fn files(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            found.insert(path, bytes);
        }
        found
    }

    fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
        let bytes = &files[&blob_path(descriptor).unwrap()];
        assert_eq!(descriptor["size"], bytes.len());
        assert_eq!(descriptor["digest"], format!("sha256:{}", sha256(bytes)));
        bytes
    }

    fn json_of(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn every_descriptor_leads_to_a_blob_of_its_digest_and_size() {
        let program = program_with_header(1);
        let archive = archive(&description(), &program).unwrap();
        let files = files(&archive.bytes);
        let index = json_of(&files["index.json"]);
        let named = &index["manifests"][0];
        assert_eq!(named["digest"], archive.digest);
        assert_eq!(
            named["annotations"]["io.containerd.image.name"],
            "localhost/rocketmq:0.1.0"
        );
        let manifest = json_of(blob(&files, named));
        let config = json_of(blob(&files, &manifest["config"]));
        let layer = blob(&files, &manifest["layers"][0]);
        let mut tar = Vec::new();
        GzDecoder::new(layer).read_to_end(&mut tar).unwrap();
        assert_eq!(
            config["rootfs"]["diff_ids"][0],
            format!("sha256:{}", sha256(&tar))
        );
        assert!(tar.windows(program.len()).any(|part| part == program));
    }

    #[test]
    fn the_image_runs_the_program_as_a_user_without_rights_and_says_what_it_is() {
        let archive = archive(&description(), b"program").unwrap();
        let files = files(&archive.bytes);
        let manifest = json_of(blob(&files, &json_of(&files["index.json"])["manifests"][0]));
        let config = json_of(blob(&files, &manifest["config"]));
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/rocketmq"]));
        let labels = &config["config"]["Labels"];
        assert_eq!(labels["org.opencontainers.image.version"], "0.1.0");
        assert_eq!(labels["org.opencontainers.image.revision"], "abc");
        assert_eq!(
            labels["org.opencontainers.image.created"],
            "2026-05-28T20:26:40Z"
        );
    }

    #[test]
    fn docker_finds_the_same_configuration_and_layer() {
        let archive = archive(&description(), b"program").unwrap();
        let files = files(&archive.bytes);
        let docker = json_of(&files["manifest.json"]);
        assert_eq!(docker[0]["RepoTags"], json!(["localhost/rocketmq:0.1.0"]));
        for path in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
            assert!(files.contains_key(path.as_str().unwrap()), "{path}");
        }
    }

    #[test]
    fn the_same_program_and_commit_give_the_same_bytes() {
        let first = archive(&description(), b"program").unwrap();
        let second = archive(&description(), b"program").unwrap();
        assert_eq!(first.bytes, second.bytes);
        let other = archive(&description(), b"another").unwrap();
        assert_ne!(first.digest, other.digest);
    }

    #[test]
    fn a_name_without_a_tag_is_refused() {
        let untagged = Description {
            name: "rocketmq".to_owned(),
            ..description()
        };
        assert!(archive(&untagged, b"program").is_err());
    }
}
