//! The remoting protocol of RocketMQ 5.x: bytes to values and back, without IO.
