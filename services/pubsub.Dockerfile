# The Pub/Sub emulator for services/compose.yaml. Build it from the root of the repository.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY . .
RUN cd test && CGO_ENABLED=0 go build -o /pubsub-emulator ./cmd/pubsub-emulator

# Alpine and not scratch: the health check needs wget.
FROM alpine:3.22
COPY --from=build /pubsub-emulator /usr/local/bin/pubsub-emulator
VOLUME /data
EXPOSE 18085 18086
ENTRYPOINT ["pubsub-emulator"]
CMD ["-addr", "0.0.0.0:18085", "-fault-addr", "0.0.0.0:18086", "-dir", "/data"]
