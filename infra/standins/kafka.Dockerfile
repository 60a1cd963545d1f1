# Stand-in of apache/kafka: its own jars, its own reader of KAFKA_* variables, another Java and Linux.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless netcat-openbsd \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 1000 --no-create-home appuser \
    && install -d -o appuser -g appuser /opt/kafka/config /opt/kafka/logs /mnt/shared/config \
        /var/lib/kafka/data /etc/kafka/docker \
    && install -o appuser -g appuser /dev/null /opt/kafka/config/server.properties
COPY jars /opt/kafka/libs
COPY kafka.sh /etc/kafka/docker/run
USER appuser
VOLUME ["/var/lib/kafka/data"]
CMD ["bash", "/etc/kafka/docker/run"]
