# Stand-in of the OpenTelemetry Collector.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends python3-yaml \
    && rm -rf /var/lib/apt/lists/*
COPY code /opt/berth
ENV PYTHONPATH=/opt/berth
USER 10001
ENTRYPOINT ["python", "-u", "-m", "infra.standins.collector"]
