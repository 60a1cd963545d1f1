# Stand-in of prom/prometheus: Debian's package, at the paths of the official image.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends prometheus \
    && rm -rf /var/lib/apt/lists/* /etc/prometheus/* \
    && install -d -o 65534 -g 65534 /prometheus
USER 65534
VOLUME ["/prometheus"]
WORKDIR /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
