//! One broker process.
