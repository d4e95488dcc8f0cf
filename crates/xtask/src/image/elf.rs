//! Whether a program is static: it must run in an image that holds no loader and no library.
//!
//! **Invariant:** never reads past the bytes it was given; what it does not understand is an error.

use anyhow::Context as _;

const PROGRAM_HEADER_INTERPRETER: u32 = 3;
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_DYNAMIC: u16 = 3;

/// An error unless it is a 64-bit little-endian ELF program without an interpreter.
pub(super) fn check_static(program: &[u8]) -> anyhow::Result<()> {
    anyhow::ensure!(
        program.starts_with(b"\x7fELF\x02\x01"),
        "is no 64-bit little-endian ELF program"
    );
    let kind = u16::from_le_bytes(field(program, 16)?);
    anyhow::ensure!(
        matches!(kind, TYPE_EXECUTABLE | TYPE_DYNAMIC),
        "is an ELF file of type {kind}, no program"
    );
    let offset = usize::try_from(u64::from_le_bytes(field(program, 32)?))?;
    let size = usize::from(u16::from_le_bytes(field(program, 54)?));
    let count = usize::from(u16::from_le_bytes(field(program, 56)?));
    anyhow::ensure!(count > 0, "has no program headers");
    for index in 0..count {
        let at = offset
            .checked_add(index * size)
            .context("has headers past its end")?;
        anyhow::ensure!(
            u32::from_le_bytes(field(program, at)?) != PROGRAM_HEADER_INTERPRETER,
            "wants a loader: build it with -C target-feature=+crt-static"
        );
    }
    Ok(())
}

fn field<const N: usize>(program: &[u8], at: usize) -> anyhow::Result<[u8; N]> {
    let end = at.checked_add(N).context("has headers past its end")?;
    let bytes = program.get(at..end).context("has headers past its end")?;
    Ok(bytes.try_into()?)
}

/// The smallest program that passes, with one header of this type.
#[cfg(test)]
pub(super) fn program_with_header(header: u32) -> Vec<u8> {
    let mut bytes = vec![0_u8; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[16..18].copy_from_slice(&TYPE_DYNAMIC.to_le_bytes());
    bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
    bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
    bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
    bytes[64..68].copy_from_slice(&header.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u32 = 1;

    #[test]
    fn a_program_that_wants_a_loader_is_refused() {
        assert!(check_static(&program_with_header(LOAD)).is_ok());
        let error = check_static(&program_with_header(PROGRAM_HEADER_INTERPRETER)).unwrap_err();
        assert!(error.to_string().contains("crt-static"), "{error}");
    }

    #[test]
    fn what_is_cut_short_or_no_program_is_refused_without_a_panic() {
        let whole = program_with_header(LOAD);
        for length in 0..whole.len() {
            let cut = &whole[..length];
            if length < 68 {
                assert!(check_static(cut).is_err(), "{length} bytes");
            }
        }
        assert!(check_static(b"#!/bin/sh\n").is_err());
        let mut far = whole;
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(check_static(&far).is_err());
    }
}
