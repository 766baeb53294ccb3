# Tributary proxy. Build from the root of the repository: docker build -f infra/proxy.Dockerfile .
# The first two stages are the same, line for line, in origo.Dockerfile, so the two builds share them.

# What npm reads, of every workspace there is. Only a change of these files installs the packages again.
FROM node:20-bookworm-slim AS manifests
WORKDIR /app
COPY . /repository
RUN cd /repository && cp --parents package.json package-lock.json .npmrc tsconfig.base.json */package.json lab/*/package.json /app

FROM node:20-bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=manifests /app ./
RUN --mount=type=cache,target=/root/.npm npm ci --prefer-offline --ignore-scripts -w @tributary/proxy -w @tributary/origo --include-workspace-root

# The native transport. Debian's own cargo is too old; its security archive has the one that its browsers are built with.
# Where it cannot be built the image offers WebRTC alone, and the proxy's log says so.
FROM build AS native-transport-build
RUN apt-get update \
 && apt-get install -y --no-install-recommends cargo-web rustc-web \
 && rm -rf /var/lib/apt/lists/* \
 || echo "no recent cargo: the image offers WebRTC alone"
COPY native-transport native-transport
RUN mkdir -p native-transport/build \
 && (node native-transport/build.mjs || echo "not built: the image offers WebRTC alone") \
 && rm -rf native-transport/build/target

FROM build AS proxy-build
COPY protocol protocol
COPY wasm-codec wasm-codec
COPY native-codec native-codec
COPY native-transport native-transport
COPY contract contract
COPY proxy proxy
RUN npx tsc -b proxy && node native-codec/build.mjs
RUN for part in protocol wasm-codec native-codec native-transport contract proxy; do \
      mkdir -p /out/$part && cp -r $part/package.json $part/dist /out/$part/; \
    done \
 && cp -r wasm-codec/module /out/wasm-codec/ \
 && install -D -t /out/native-codec/build native-codec/build/codec.node

# Production dependencies alone.
FROM build AS proxy-deps
RUN --mount=type=cache,target=/root/.npm npm ci --prefer-offline --omit=dev -w @tributary/proxy

FROM node:20-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=7610 UDP_PORT=7610 WEBTRANSPORT_PORT=7620 DATA_DIR=/data
WORKDIR /app
COPY --from=proxy-deps /app/package.json ./
COPY --from=proxy-deps /app/node_modules node_modules
COPY --from=proxy-build /out ./
COPY --from=native-transport-build /app/native-transport/build native-transport/build
COPY infra/docker/healthcheck.js infra/
RUN install -d -o node -g node -m 0700 /data /run/tributary
USER node
# The key of each container. Compose keeps it when it replaces the container.
VOLUME /data
EXPOSE 7610/tcp 7610/udp 7620/udp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 CMD ["node", "infra/healthcheck.js"]
ENTRYPOINT ["node", "proxy/dist/main.js"]
