# The publisher, and outboxctl to migrate its database, as static programs on an empty image:
#   docker build --build-arg VERSION="$(git describe --always --dirty)" -t outbox-publisher .
# docs/operate/deploy.md says how to run it. heroku.yml uses the stage heroku.

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=${VERSION}" -o /out/ ./cmd/outbox-publisher ./cmd/outboxctl
RUN echo 'publisher:x:65532:65532::/:' >/out/passwd
RUN cp LICENSE THIRD-PARTY-NOTICES /out/
# Heroku has no volumes: the registry goes into the image, from where docs/operate/deploy.md says to put it.
RUN mkdir -p deploy/heroku/registry

# Heroku starts commands with a shell, so its image needs one, and a script that reads its config vars.
FROM alpine:3.22.2 AS heroku
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/outbox-publisher /out/outboxctl /usr/local/bin/
COPY --from=build /out/LICENSE /out/THIRD-PARTY-NOTICES /usr/share/doc/posthaste/
COPY deploy/heroku/start /usr/local/bin/heroku-start
COPY --from=build /src/deploy/heroku/registry /app/deploy/heroku/registry
WORKDIR /app
USER 65532:65532
CMD ["outbox-publisher"]

FROM scratch AS publisher
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/passwd /etc/
COPY --from=build /out/outbox-publisher /out/outboxctl /usr/local/bin/
COPY --from=build /out/LICENSE /out/THIRD-PARTY-NOTICES /usr/share/doc/posthaste/
# Numbers, so that Kubernetes can see that it is not root. Nothing is written: the root may be read-only.
USER 65532:65532
# Inside a container, loopback is nobody's but the container's own.
ENV PATH=/usr/local/bin POSTHASTE_HTTP_LISTEN=:8086
EXPOSE 8086
# Whether it lives, not whether it is ready: Swarm, ECS and others restart what is unhealthy, and an outage of the
# database or the broker is no reason for that.
HEALTHCHECK --interval=10s --timeout=8s --start-period=10s --retries=3 CMD ["outbox-publisher", "health", "--live"]
ENTRYPOINT ["outbox-publisher"]
