# shellcheck shell=bash
# One real Kafka node, broker and controller in one process (KRaft), from the jars of Maven Central.

libs=$TOOLS/kafka-$VERSION_KAFKA/libs

packages() {
  package java openjdk-17-jre-headless
  package mvn maven
}
install() { unpacked "$TOOLS/kafka-$VERSION_KAFKA" download; }
download() {
  mvn -B -q -f "$here/kafka/pom.xml" "-Dkafka.version=$VERSION_KAFKA" "-DoutputDirectory=$PWD/libs" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
}
version() { echo "$VERSION_KAFKA"; }
address() { echo "127.0.0.1:$PORT_KAFKA"; }

# Replication factors of one, because internal topics ask for three; few partitions for them, because
# each costs a directory and a file handle at the first consumer or transaction of every fresh node.
write_settings() {
  cat >"$DATA/server.properties" <<SETTINGS
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$PORT_KAFKA_CONTROLLER
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$PORT_KAFKA,CONTROLLER://127.0.0.1:$PORT_KAFKA_CONTROLLER
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT_KAFKA,CONTROLLER://127.0.0.1:$PORT_KAFKA_CONTROLLER
log.dirs=$DATA/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
SETTINGS
}

# The first tier of the compiler is enough for short commands, and halves their time.
short_java=(java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$libs/*")
tool() { "${short_java[@]}" "$@"; }

start() {
  write_settings
  if [[ ! -e $DATA/log/meta.properties ]]; then
    quietly "$LOG.format" "the storage could not be formatted" format_storage
  fi
  launch "$NAME" java -Xms256m -Xmx512m -XX:+UseG1GC -Dlog4j2.level=INFO -cp "$libs/*" \
    kafka.Kafka "$DATA/server.properties"
}

format_storage() {
  cd "$DATA" || exit
  as_service "${short_java[@]}" kafka.tools.StorageTool format --standalone \
    --cluster-id cG9zdGhhc3RlLXNlcnZpYw --config server.properties
}

# The log line means that the controller has let the broker in; before it, topics cannot be made.
# Then an ApiVersions request (key 18, version 0) must come back with its number (7) and no error.
ready() {
  grep -q 'Kafka Server started' "$LOG" && [[ $(api_versions) == 000000070000 ]]
}
api_versions() {
  exec 3<>"/dev/tcp/127.0.0.1/$PORT_KAFKA"
  printf '\0\0\0\012\0\022\0\0\0\0\0\007\377\377' >&3
  # The answer: its length (4 bytes), the request's number (4), the error code (2).
  timeout 2 head -c 10 <&3 | tail -c 6 | od -An -v -tx1 | tr -d ' \n'
}

hint() { echo "is port $PORT_KAFKA or $PORT_KAFKA_CONTROLLER taken (ss -ltnp)? Is java 17 or newer?"; }

# A partition is named so that no consumer group is needed: on a fresh node the first group waits for an
# internal topic to be made. The consumer's time is long for slow machines, and within that of timed_check.
check() {
  local at=(--bootstrap-server "127.0.0.1:$PORT_KAFKA" --topic "posthaste-services-check-$$") got
  echo "$$" | tool org.apache.kafka.tools.ConsoleProducer "${at[@]}" --command-property acks=all --sync
  got=$(tool org.apache.kafka.tools.consumer.ConsoleConsumer "${at[@]}" \
    --partition 0 --offset earliest --max-messages 1 --timeout-ms 100000 2>"$LOG.check")
  expect "$$" "$got" "the record read back (see $LOG.check)"
  tool org.apache.kafka.tools.TopicCommand "${at[@]}" --delete
  echo "Kafka $VERSION_KAFKA"
}

exports() { echo "export SERVICES_KAFKA_BROKERS='$(address)'"; }
