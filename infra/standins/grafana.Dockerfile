# Stand-in of Grafana: a page of tables over the same provisioning files.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
# As in collector.Dockerfile, so that both share this layer.
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends python3-yaml \
    && rm -rf /var/lib/apt/lists/*
COPY code /opt/berth
ENV PYTHONPATH=/opt/berth
USER 10001
ENTRYPOINT ["python", "-u", "-m", "infra.standins.grafana"]
