# Stand-in of postgres: Debian's server behind the variables of the official image.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE}
RUN groupadd --gid 999 postgres \
    && useradd --uid 999 --gid 999 --home-dir /var/lib/postgresql postgres \
    && apt-get update -q \
    && apt-get install -y -q --no-install-recommends postgresql-common \
    && sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' \
        /etc/postgresql-common/createcluster.conf \
    && apt-get install -y -q --no-install-recommends postgresql-15 \
    && rm -rf /var/lib/apt/lists/* \
    && install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data \
    && install -d -o postgres -g postgres -m 3777 /var/run/postgresql
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/data
COPY postgres.sh /usr/local/bin/docker-entrypoint.sh
VOLUME ["/var/lib/postgresql/data"]
STOPSIGNAL SIGINT
USER postgres
ENTRYPOINT ["bash", "/usr/local/bin/docker-entrypoint.sh"]
CMD ["postgres"]
