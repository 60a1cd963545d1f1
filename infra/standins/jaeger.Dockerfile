# Stand-in of Jaeger: Zipkin's server with spans in memory, behind an OTLP/HTTP gateway.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
# As in kafka.Dockerfile, so that both share this layer.
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless netcat-openbsd \
    && rm -rf /var/lib/apt/lists/*
COPY decoder.txt /opt/
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install -q --no-cache-dir --no-deps -r /opt/decoder.txt
COPY zipkin.jar /opt/
COPY code /opt/berth
ENV PYTHONPATH=/opt/berth
USER 10001
ENTRYPOINT ["/opt/venv/bin/python", "-u", "-m", "infra.standins.jaeger"]
