# The container image, for people with docker. `cargo xtask image` makes the same image without it.
# Nothing but one static program: no shell, no library, no package of a distribution.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --release --package rocketmq \
      --target "$(uname -m)-unknown-linux-gnu" \
 && install -D -m 0755 target/*/release/rocketmq /image/usr/bin/rocketmq \
 && install -d -m 1777 /image/tmp && install -d /image/etc \
 && printf 'root:x:0:0:root:/:/sbin/nologin\nrocketmq:x:65532:65532:rocketmq:/tmp:/sbin/nologin\n' >/image/etc/passwd \
 && printf 'root:x:0:\nrocketmq:x:65532:\n' >/image/etc/group

FROM scratch
COPY --from=build /image/ /
LABEL org.opencontainers.image.title="rocketmq" \
      org.opencontainers.image.description="RocketMQ for Kubernetes: NameServer, broker, operator and tools in one program" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/usr/bin
USER 65532:65532
ENTRYPOINT ["/usr/bin/rocketmq"]
