# What apache/kafka does at its start: write server.properties, format the log once, run.
set -euo pipefail
config=/opt/kafka/config
kafka=(java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError
    -Djava.awt.headless=true -Dorg.slf4j.simpleLogger.defaultLogLevel=warn
    -Dorg.slf4j.simpleLogger.showDateTime=true -cp '/opt/kafka/libs/*')
told=$("${kafka[@]}" -Xmx64m kafka.docker.KafkaDockerWrapper setup \
    --default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config \
    --final-configs-dir "$config" 2>&1) || grep -qi 'already formatted' <<<"$told" || {
    echo "$told" >&2
    exit 1
}
# shellcheck disable=SC2086 # several options in one variable, as the real image takes them
exec "${kafka[@]}" ${KAFKA_HEAP_OPTS:-} kafka.Kafka "$config/server.properties"
