//! The body of a batch send (`MessageDecoder.encodeMessage`): per message
//! `total i32, magic i32, crc i32, flag i32, body length i32, body, properties length i16, properties`.
//!
//! **Invariant:** an item's parts fill exactly its stated total; the first error ends the iteration.
//! Does not hold topic or queue: those stand in the request header.

/// One message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchItem<'a> {
    /// The user's flag.
    pub flag: i32,
    /// Its body.
    pub body: &'a [u8],
    /// Its properties text.
    pub properties: &'a [u8],
}

/// Why a body is no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The body ends inside an item.
    #[error("batch item {item} needs {needed} bytes, {have} are left")]
    Truncated {
        /// Index of the item.
        item: usize,
        /// Bytes needed.
        needed: usize,
        /// Bytes left.
        have: usize,
    },
    /// A length that cannot be.
    #[error("batch item {item}: {field} length {value} is out of range")]
    Length {
        /// Index of the item.
        item: usize,
        /// Which length.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// The parts do not fill the stated total.
    #[error("batch item {item} states {stated} bytes, its parts have {counted}")]
    SizeMismatch {
        /// Index of the item.
        item: usize,
        /// Stated total.
        stated: usize,
        /// Counted total.
        counted: usize,
    },
}

/// Bytes of an item beside its body and properties.
pub const ITEM_OVERHEAD: usize = 22;

/// The messages of a batch body, in order.
#[must_use]
pub const fn iter(body: &[u8]) -> Items<'_> {
    Items {
        rest: body,
        item: 0,
    }
}

/// Iterator of [`iter`].
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
    item: usize,
}

impl<'a> Items<'a> {
    fn read(&mut self) -> Result<BatchItem<'a>, BatchError> {
        let item = self.item;
        let have = self.rest.len();
        let truncated = |needed| BatchError::Truncated { item, needed, have };
        let stated = number(self.rest, 0).ok_or(truncated(4))?;
        let total = usize::try_from(stated)
            .ok()
            .filter(|total| *total >= ITEM_OVERHEAD)
            .ok_or(BatchError::Length {
                item,
                field: "total",
                value: i64::from(stated),
            })?;
        let whole = self.rest.get(..total).ok_or(truncated(total))?;
        let flag = number(whole, 12).ok_or(truncated(16))?;
        let stated_body = number(whole, 16).ok_or(truncated(20))?;
        let body_len = usize::try_from(stated_body).map_err(|_| BatchError::Length {
            item,
            field: "body",
            value: i64::from(stated_body),
        })?;
        let mismatch = |counted| BatchError::SizeMismatch {
            item,
            stated: total,
            counted,
        };
        let body_end = 20usize.saturating_add(body_len);
        let body = whole
            .get(20..body_end)
            .ok_or(mismatch(body_end.saturating_add(2)))?;
        let length = whole
            .get(body_end..body_end + 2)
            .and_then(|bytes| bytes.try_into().ok())
            .map(i16::from_be_bytes)
            .ok_or(mismatch(body_end + 2))?;
        let properties_len = usize::try_from(length).map_err(|_| BatchError::Length {
            item,
            field: "properties",
            value: i64::from(length),
        })?;
        let end = body_end + 2 + properties_len;
        if end != total {
            return Err(mismatch(end));
        }
        let properties = whole.get(body_end + 2..end).ok_or(mismatch(end))?;
        self.rest = self.rest.get(total..).unwrap_or(&[]);
        self.item += 1;
        Ok(BatchItem {
            flag,
            body,
            properties,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(i32::from_be_bytes)
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<BatchItem<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = self.read();
        if item.is_err() {
            self.rest = &[];
        }
        Some(item)
    }
}

/// Appends one message to a batch body; `false` if its properties are too long for the form.
pub fn push(out: &mut Vec<u8>, item: &BatchItem<'_>) -> bool {
    let total = ITEM_OVERHEAD + item.body.len() + item.properties.len();
    let (Ok(total), Ok(properties)) = (i32::try_from(total), i16::try_from(item.properties.len()))
    else {
        return false;
    };
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&item.flag.to_be_bytes());
    out.extend_from_slice(&(item.body.len() as i32).to_be_bytes());
    out.extend_from_slice(item.body);
    out.extend_from_slice(&properties.to_be_bytes());
    out.extend_from_slice(item.properties);
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_pushed_batch_is_read_back(items in proptest::collection::vec(
            (any::<i32>(), proptest::collection::vec(any::<u8>(), 0..40), proptest::collection::vec(any::<u8>(), 0..40)), 0..6)) {
            let mut body = Vec::new();
            for (flag, bytes, properties) in &items {
                let fits = push(&mut body, &BatchItem { flag: *flag, body: bytes, properties });
                prop_assert!(fits);
            }
            let read: Result<Vec<_>, _> = iter(&body).collect();
            let read: Vec<_> = read.unwrap().iter().map(|i| (i.flag, i.body.to_vec(), i.properties.to_vec())).collect();
            prop_assert_eq!(&read, &items);
            for cut in 0..body.len() {
                let whole = iter(&body[..cut]).flatten().count();
                prop_assert!(whole <= items.len());
            }
        }

        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = iter(&body).count();
        }
    }

    #[test]
    fn an_item_with_a_wrong_total_or_negative_length_is_refused() {
        let mut body = Vec::new();
        push(
            &mut body,
            &BatchItem {
                flag: 0,
                body: b"hello",
                properties: b"",
            },
        );
        let mut longer = body.clone();
        longer[3] += 1;
        longer.push(0);
        assert!(matches!(
            iter(&longer).next(),
            Some(Err(BatchError::SizeMismatch { .. }))
        ));
        let mut negative = body.clone();
        negative[16] = 0x80;
        assert!(matches!(
            iter(&negative).next(),
            Some(Err(BatchError::Length { field: "body", .. }))
        ));
        body[0] = 0xFF;
        assert!(matches!(
            iter(&body).next(),
            Some(Err(BatchError::Length { field: "total", .. }))
        ));
        assert_eq!(iter(&body).count(), 1);
    }
}
