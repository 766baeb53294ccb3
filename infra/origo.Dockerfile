# Tributary Origo. Build from the root of the repository: docker build -f infra/origo.Dockerfile .
# The first two stages are the same, line for line, in proxy.Dockerfile, so the two builds share them.

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

FROM build AS origo-build
COPY contract contract
COPY origo origo
RUN npx tsc -b origo && npx webpack --config origo/webpack.config.js
RUN for part in contract origo; do mkdir -p /out/$part && cp -r $part/package.json $part/dist /out/$part/; done

# Production dependencies alone.
FROM build AS origo-deps
RUN --mount=type=cache,target=/root/.npm npm ci --prefer-offline --omit=dev -w @tributary/origo

FROM node:20-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=7600 DATA_DIR=/data
WORKDIR /app
COPY --from=origo-deps /app/package.json ./
COPY --from=origo-deps /app/node_modules node_modules
COPY --from=origo-build /out ./
COPY infra/docker/healthcheck.js infra/compose.yaml infra/
RUN install -d -o node -g node -m 0700 /data /run/tributary
USER node
VOLUME /data
EXPOSE 7600/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 CMD ["node", "infra/healthcheck.js"]
ENTRYPOINT ["node", "origo/dist/main.js"]
