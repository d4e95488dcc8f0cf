//! Load generator and floor broker behind rocketmq bench.
