//! The broker's message id: hexadecimal text of store host and commit log offset.
//!
//! | part | bytes |
//! |---|---|
//! | ip | 4 or 16 |
//! | port | 4 |
//! | commit log offset | 8 |
//!
//! **Invariant:** `parse(to_string(id)) == id`. Does not say whether a message is there.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use super::hex::{self, HexError};

/// Where a message lies: the broker's address and the offset in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetId {
    /// Address of the broker.
    pub host: SocketAddr,
    /// Offset in its commit log.
    pub offset: i64,
}

impl OffsetId {
    /// Appends the text to `out`.
    pub fn write(&self, out: &mut String) {
        match self.host.ip() {
            IpAddr::V4(ip) => hex::write(&ip.octets(), out),
            IpAddr::V6(ip) => hex::write(&ip.octets(), out),
        }
        hex::write(&i32::from(self.host.port()).to_be_bytes(), out);
        hex::write(&self.offset.to_be_bytes(), out);
    }

    /// Reads 32 or 56 characters of either case.
    pub fn parse(text: &str) -> Result<Self, HexError> {
        if text.len() != 32 && text.len() != 56 {
            return Err(HexError::Length {
                length: text.len(),
                expected: "32 or 56",
            });
        }
        let mut buffer = [0u8; 28];
        let bytes = hex::read(text, &mut buffer)?;
        let (host, tail) = bytes.split_at(bytes.len() - 12);
        let ip = if let Ok(v4) = <[u8; 4]>::try_from(host) {
            IpAddr::from(v4)
        } else {
            let v6 = <[u8; 16]>::try_from(host).map_err(|_| HexError::Range { field: "ip" })?;
            IpAddr::from(v6)
        };
        let mut port = [0u8; 4];
        let mut offset = [0u8; 8];
        port.copy_from_slice(&tail[..4]);
        offset.copy_from_slice(&tail[4..]);
        let port = u16::try_from(i32::from_be_bytes(port))
            .map_err(|_| HexError::Range { field: "port" })?;
        let offset = i64::from_be_bytes(offset);
        if offset < 0 {
            return Err(HexError::Range { field: "offset" });
        }
        Ok(Self {
            host: SocketAddr::new(ip, port),
            offset,
        })
    }
}

impl fmt::Display for OffsetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(56);
        self.write(&mut text);
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_v4_id_has_the_known_text() {
        let id = OffsetId {
            host: "127.0.0.1:10911".parse().unwrap(),
            offset: 0x1234,
        };
        assert_eq!(id.to_string(), "7F00000100002A9F0000000000001234");
        assert_eq!(OffsetId::parse(&id.to_string().to_lowercase()), Ok(id));
    }

    proptest! {
        #[test]
        fn ids_read_back(v6 in any::<Option<[u8; 16]>>(), v4 in any::<[u8; 4]>(), port in any::<u16>(), offset in 0..i64::MAX) {
            let ip = v6.map_or(IpAddr::from(v4), IpAddr::from);
            let id = OffsetId { host: SocketAddr::new(ip, port), offset };
            prop_assert_eq!(OffsetId::parse(&id.to_string()), Ok(id));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = OffsetId::parse(&text);
        }
    }
}
