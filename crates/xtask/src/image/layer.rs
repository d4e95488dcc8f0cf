//! The files of the image, as a tar: the program, its user, and a folder for temporary files.
//!
//! **Invariant:** the bytes depend on the program alone: names in a fixed order, owner root, no time
//! of day. There is no shell, no library and nothing that the user may write to but `/tmp`.

use anyhow::Context as _;
use tar::{Builder, EntryType, Header};

/// Who runs the program: no account of the node has this id.
pub(super) const USER: u32 = 65532;
/// Where the program stands.
pub(super) const PROGRAM: &str = "usr/bin/rocketmq";

/// One entry.
struct Entry<'a> {
    path: &'a str,
    mode: u32,
    content: Option<&'a [u8]>,
}

/// The layer, not compressed.
pub(super) fn tar(program: &[u8]) -> anyhow::Result<Vec<u8>> {
    let passwd = format!(
        "root:x:0:0:root:/:/sbin/nologin\nrocketmq:x:{USER}:{USER}:rocketmq:/tmp:/sbin/nologin\n"
    );
    let group = format!("root:x:0:\nrocketmq:x:{USER}:\n");
    let folder = |path, mode| Entry {
        path,
        mode,
        content: None,
    };
    let file = |path, mode, content| Entry {
        path,
        mode,
        content: Some(content),
    };
    let entries = [
        folder("etc/", 0o755),
        file("etc/group", 0o644, group.as_bytes()),
        file("etc/passwd", 0o644, passwd.as_bytes()),
        folder("tmp/", 0o1777),
        folder("usr/", 0o755),
        folder("usr/bin/", 0o755),
        file(PROGRAM, 0o755, program),
    ];
    let mut builder = Builder::new(Vec::with_capacity(program.len() + 8192));
    for entry in entries {
        append(&mut builder, &entry).with_context(|| entry.path.to_owned())?;
    }
    Ok(builder.into_inner()?)
}

fn append(builder: &mut Builder<Vec<u8>>, entry: &Entry<'_>) -> anyhow::Result<()> {
    let content = entry.content.unwrap_or_default();
    let mut header = Header::new_ustar();
    header.set_entry_type(if entry.content.is_some() {
        EntryType::Regular
    } else {
        EntryType::Directory
    });
    header.set_mode(entry.mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(u64::try_from(content.len())?);
    builder.append_data(&mut header, entry.path, content)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn the_image_holds_the_program_its_user_and_nothing_that_can_be_written_but_tmp() {
        let layer = tar(b"program").unwrap();
        let mut archive = tar::Archive::new(layer.as_slice());
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let header = entry.header().clone();
            assert_eq!(header.uid().unwrap(), 0, "{path}");
            assert_eq!(header.mtime().unwrap(), 0, "{path}");
            let mode = header.mode().unwrap();
            assert!(mode & 0o022 == 0 || path == "tmp/", "{path} {mode:o}");
            let mut text = Vec::new();
            entry.read_to_end(&mut text).unwrap();
            seen.push((path, mode, text));
        }
        let paths: Vec<&str> = seen.iter().map(|(path, _, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "etc/",
                "etc/group",
                "etc/passwd",
                "tmp/",
                "usr/",
                "usr/bin/",
                PROGRAM
            ]
        );
        let (_, mode, text) = seen.last().unwrap();
        assert_eq!((*mode, text.as_slice()), (0o755, &b"program"[..]));
        let passwd = String::from_utf8(seen[2].2.clone()).unwrap();
        assert!(passwd.contains(":65532:65532:"), "{passwd}");
    }
}
